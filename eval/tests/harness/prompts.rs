//! The prompt trials from outside: each role, through the real daemon, with a program in place of the agent.

use std::fs;

use serde_json::{Value, json};

use crate::kit::EvalKit;

/// Writes the inputs and the agent, and runs the sandbox.
fn run_grid(kit: &EvalKit, role: &str, inputs: &[(&str, &str)], agent: &str) -> Value {
    let folder = kit.home.path().join("prompts");
    fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in inputs {
        fs::write(folder.join(name), text).expect("an input can be written");
    }
    kit.home.install("fake-agent", &format!("#!/bin/sh\nprompt=$(cat)\n{agent}"));
    run_prompts(kit, role)
}

fn run_prompts(kit: &EvalKit, role: &str) -> Value {
    let output = kit.eval(&["prompts", role, "--inputs", "prompts", "--json", "--command", "fake-agent"]);
    let grid = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    EvalKit::assert_valid("eval-prompts.v1", &grid);
    kit.assert_nothing_left();
    grid
}

fn cells(grid: &Value) -> &[Value] {
    grid["cells"].as_array().expect("cells")
}

#[test]
fn prompt_is_tried_with_every_input_once_and_kept() {
    let kit = EvalKit::new();
    let inputs = [
        ("typo.toml", "goal = \"Mend the typo.\"\nexpect = \"retry\"\n"),
        ("port.toml", "goal = \"Port it all.\"\nexpect = \"decomposed\"\n"),
    ];
    let agent = "echo '{\"status\": \"retry\", \"summary\": \"I have read it.\"}' >\"$RUNNER_OUTPUT\"\n";
    let grid = run_grid(&kit, "planner", &inputs, agent);
    let seen: Vec<_> = cells(&grid).iter().map(|cell| (cell["input"].as_str(), cell["matches"].as_bool())).collect();
    assert_eq!(seen, [(Some("port"), Some(false)), (Some("typo"), Some(true))], "{grid:#}");
    let again = run_prompts(&kit, "planner");
    assert!(cells(&again).iter().all(|cell| cell["kept"] == true), "{again:#}");
}

/// Accepts only if the input was shown completely, and says what it has read.
const REVIEWER: &str = r#"
verdict=reject
case $prompt in *'# Your role: reviewer'*'It greets by name.'*'+hello $1'*) verdict=accept ;; esac
echo stray >stray
printf '{"verdict": "%s", "reasons": ["Read."], "usage": {"in": 70, "out": 7}}' $verdict >"$RUNNER_OUTPUT"
"#;

#[test]
fn reviewer_is_shown_the_work_of_a_session_that_does_not_count() {
    let kit = EvalKit::new();
    let head = "goal = \"There is a greeting.\"\nacceptance = [\"It greets by name.\"]\nguard = [\"test\", \"-f\", \"greet\"]\n";
    let inputs = [
        ("fine.toml", &*format!("{head}expect = \"accept\"\n[work]\ngreet = \"hello $1\\n\"\n")),
        ("poor.toml", &*format!("{head}expect = \"reject\"\n[work]\ngreet = \"hello you\\n\"\n")),
        ("red.toml", &*format!("{head}expect = \"reject\"\n[work]\nelsewhere = \"\"\n")),
        ("planned.toml", "goal = \"This is for a planner.\"\n"),
    ];
    let grid = run_grid(&kit, "reviewer", &inputs, REVIEWER);
    assert_eq!(grid["inputs"], json!(["fine", "poor", "red"]));
    let [fine, poor, red] = cells(&grid) else { panic!("{grid:#}") };
    assert_eq!((&fine["decision"], &fine["matches"]), (&json!("accept"), &json!(true)), "{fine:#}");
    assert_eq!((&poor["decision"], &poor["verdict"]), (&json!("reject"), &json!("Rejected")), "{poor:#}");
    let usage = json!({"input_tokens": 70, "cached_tokens": null, "output_tokens": 7, "cost_micro_usd": null});
    assert_eq!((&fine["usage"], &fine["summary"]), (&usage, &json!("Read.")), "only the review is counted");
    let fault = red["fault"].as_str().expect("a fault");
    assert!(fault.starts_with("the work of the input was not reviewed: RedGuard"), "{fault}");
}

/// Returns one part, in the tree itself.
const REPAIR: &str = r#"
case $prompt in *'# Your role: repair'*'"root": oops'*) ;; *) exit 9 ;; esac
child='{"id": "one", "order": 1, "title": "Part one", "goal": "g", "acceptance": [], "passes": false, "attempts": 0, "max_attempts": 3, "children": []}'
sed "s/\"children\": \[\]/\"children\": [$child]/" .runner/state/tree.json >new && mv new .runner/state/tree.json
echo '{"status": "decomposed", "summary": "One part is back.", "usage": {"in": 50, "out": 5}}' >"$RUNNER_OUTPUT"
"#;

#[test]
fn repair_follows_a_session_that_left_an_invalid_tree_and_does_not_count() {
    let kit = EvalKit::new();
    let inputs = [
        ("torn.toml", "goal = \"It is divided.\"\nexpect = \"decomposed\"\ntree = '{\"version\": 1, \"root\": oops'\n"),
        ("work.toml", "goal = \"This is for a reviewer.\"\n[work]\na = \"\"\n"),
    ];
    let grid = run_grid(&kit, "repair", &inputs, REPAIR);
    let [torn] = cells(&grid) else { panic!("{grid:#}") };
    assert_eq!((&torn["matches"], &torn["verdict"]), (&json!(true), &json!("Decomposed")), "{torn:#}");
    assert_eq!(torn["children"], json!(["Part one"]));
    let usage = json!({"input_tokens": 50, "cached_tokens": null, "output_tokens": 5, "cost_micro_usd": null});
    assert_eq!(torn["usage"], usage, "only the repair is counted");
}

#[test]
fn repair_of_a_tree_that_is_valid_asks_nobody() {
    let kit = EvalKit::new();
    let root = json!({
        "id": "root", "order": 1, "title": "The goal", "goal": "g", "acceptance": [], "passes": false,
        "attempts": 0, "max_attempts": 3, "children": [],
    });
    let tree = json!({"version": 1, "root": root});
    let inputs = [("whole.toml", &*format!("goal = \"g\"\ntree = '{tree}'\n"))];
    let grid = run_grid(&kit, "repair", &inputs, "echo asked >>\"$HOME/asked\"; exit 1\n");
    let fault = cells(&grid)[0]["fault"].as_str().expect("a fault");
    assert!(fault.contains("there is nothing to repair"), "{fault}");
}

mod slow {
    use super::*;

    #[test]
    fn every_role_has_inputs_that_are_shipped() {
        let kit = EvalKit::with_shipped_cases();
        kit.home.install("fake-agent", "#!/bin/sh\nexit 1\n");
        let roles = ["planner", "worker", "repair", "reviewer"];
        // The guard of the reviewed work is written in Python.
        for role in roles.into_iter().filter(|role| *role != "reviewer" || kit.has_program("python3")) {
            let output = kit.eval(&["prompts", role, "--json", "--command", "fake-agent", "--jobs", "4"]);
            let grid: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
            assert!(cells(&grid).len() >= 2, "{role}");
            let faults = cells(&grid).iter().filter_map(|cell| cell["fault"].as_str());
            let strange: Vec<_> = faults.filter(|fault| !fault.starts_with("no answer: Fault")).collect();
            assert!(strange.is_empty(), "{role} was not asked: {strange:#?}");
        }
        kit.assert_nothing_left();
    }
}
