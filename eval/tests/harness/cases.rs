//! The harness from outside: runs its own cases through the real daemon, and checks what is left behind.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::kit::EvalKit;

const GREEN: &str = "[config.guard]\ncommand = [\"true\"]\nbaseline = false\n";
const DONE: &str = "[agent]\nscript = 'echo 1 >work; answer done \"Wrote the file.\"'\n";
/// A session that reports its start, and does not end.
const STAYS: &str = "[agent]\nscript = 'setsid sleep 600 & echo here >\"$ARRIVALS\"; sleep 600'\n";

#[test]
fn result_holds_the_run_with_its_branch_and_its_records() {
    let kit = EvalKit::new();
    kit.case("one", &format!("{GREEN}{DONE}[[checks]]\ntype = \"branch_verifies\"\n"));
    kit.eval(&["run", "one"]).exits(0);
    let result = kit.results().join("one_latest");
    for name in
        ["meta.json", "checks.json", "tree.json", "run_state.json", "records/0001/prompt.md", "logs/runnerd.log"]
    {
        assert!(result.join(name).is_file(), "{name} is missing");
    }
    for (name, schema) in
        [("meta.json", "eval-meta.v1"), ("checks.json", "eval-checks.v1"), ("started.json", "eval-started.v1")]
    {
        let text = fs::read_to_string(result.join(name)).expect("a file");
        EvalKit::assert_valid(schema, &serde_json::from_str(&text).expect("JSON"));
    }
    let clone = kit.git(&["clone", "--quiet", "--branch", "runner/one", "results/one_latest/branch.bundle", "clone"]);
    assert!(clone && kit.home.path().join("clone/work").is_file(), "the branch cannot be cloned");
}

#[test]
fn interrupted_run_leaves_nothing_alive_and_a_result_that_says_so() {
    let kit = EvalKit::new();
    kit.case("stays", &format!("{GREEN}{STAYS}[env]\nARRIVALS = \"{}\"\n", kit.arrivals().display()));
    let running = kit.start(&["run", "stays", "--runs", "3", "--json"]);
    kit.wait_arrived();
    running.signal(Signal::SIGINT);
    let output = running.wait();
    output.exits(130);
    let runs = output.json();
    assert_eq!(runs["interrupted"], true);
    let metas = runs["runs"].as_array().expect("runs");
    assert_eq!(metas.len(), 1, "what had not begun does not begin: {metas:#?}");
    assert_eq!((metas[0]["outcome"].as_str(), metas[0]["reason"].as_str()), (Some("error"), Some("interrupted")));
    kit.assert_nothing_left();
}

#[test]
fn harness_that_is_killed_leaves_nothing_alive_and_its_result_counts_as_an_error() {
    let kit = EvalKit::new();
    kit.case("stays", &format!("{GREEN}{STAYS}[env]\nARRIVALS = \"{}\"\n", kit.arrivals().display()));
    let running = kit.start(&["run", "stays"]);
    kit.wait_arrived();
    running.signal(Signal::SIGKILL);
    running.wait();
    kit.wait_all_gone();
    let report = kit.eval(&["report", "--json"]).exits(0).json();
    assert_eq!(report["rows"][0]["outcomes"]["error"], 1, "{report:#}");
    kit.case("one", &format!("{GREEN}{DONE}"));
    kit.eval(&["run", "one"]).exits(0);
    let meta = fs::read_to_string(kit.results().join("stays_latest/meta.json")).expect("it was written down");
    assert!(meta.contains("the harness died"), "{meta}");
    kit.assert_nothing_left();
}

#[test]
fn two_harnesses_at_once_do_not_meet() {
    let kit = EvalKit::new();
    kit.case("one", &format!("{GREEN}{DONE}"));
    let both = [kit.start(&["run", "one", "--runs", "2", "--jobs", "2"]), kit.start(&["run", "one", "--runs", "2"])];
    for running in both {
        running.wait().exits(0);
    }
    let report = kit.eval(&["report", "one", "--json"]).exits(0).json();
    assert_eq!(report["rows"][0]["outcomes"]["success"], 4, "{report:#}");
    kit.assert_nothing_left();
}

#[test]
fn check_that_kills_its_supervisor_does_not_outlive_it() {
    // Inside a namespace these are only the namespace's own first processes.
    assert_killer_ends(&EvalKit::new(), "for pid in $PPID 1; do kill -KILL $pid; done");
}

#[test]
fn check_that_kills_its_supervisor_does_not_outlive_it_on_a_machine_without_namespaces() {
    let kit = EvalKit::new();
    kit.home.install("unshare", "#!/bin/sh\nexit 1\n");
    assert_killer_ends(&kit, "kill -KILL $PPID");
    let meta = fs::read_to_string(kit.results().join("kills_latest/meta.json")).expect("a result");
    assert!(meta.contains("\"containment\": \"walk\""), "{meta}");
}

fn assert_killer_ends(kit: &EvalKit, kill: &str) {
    let kill = format!("setsid sleep 600 & {kill}; kill -KILL 0");
    let check = format!("[[checks]]\ntype = \"command_succeeds\"\ncmd = [\"sh\", \"-c\", \"{kill}\"]\n");
    kit.case("kills", &format!("{GREEN}{DONE}{check}"));
    let runs = kit.eval(&["run", "kills", "--json"]).exits(9).json();
    assert_eq!(runs["runs"][0]["outcome"], "fail", "{runs:#}");
    kit.assert_nothing_left();
}

#[test]
fn case_file_that_is_broken_is_told_with_its_place_and_runs_nothing() {
    let kit = EvalKit::new();
    kit.case("bad", "[[checks]]\ntype = \"file_exist\"\npath = \"x\"\n");
    let output = kit.eval(&["run", "bad"]);
    output.exits(2);
    assert!(output.stderr.contains("bad.toml:5:9: unknown check `file_exist`"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `file_exists`?"), "{}", output.stderr);
    let error: Value = serde_json::from_str(&kit.eval(&["run", "bad", "--json"]).exits(2).stderr).expect("JSON");
    assert!(error["error"]["message"].as_str().is_some_and(|message| message.contains(":5:9:")), "{error}");
    assert!(!kit.results().exists(), "something was run");
    kit.eval(&["list"]).exits(0);
}

#[test]
fn configuration_that_the_runner_refuses_is_told_with_its_place_and_runs_nothing() {
    let kit = EvalKit::new();
    kit.case("good", &format!("{GREEN}{DONE}"));
    let sections = [
        ("[config]\nmax_iteration = 3\n", "10:1: unknown key `max_iteration`"),
        ("[config]\nmax_iterations = \"3\"\n", "10:18: "),
        ("[config.executor]\nkind = \"command\"\nmodle = \"m\"\n", "11:1: "),
        ("[daemon]\nmax_repository = 3\n", "10:1: unknown key `max_repository`"),
    ];
    for (at, (section, _)) in sections.iter().enumerate() {
        kit.case(&format!("odd{at}"), &format!("{GREEN}{DONE}{section}"));
    }
    let output = kit.eval(&["run", "good", "odd0"]);
    assert!(output.exits(2).stderr.contains(&format!("odd0.toml:{}", sections[0].1)), "{}", output.stderr);
    let listed = kit.eval(&["list", "--json"]).exits(0).json();
    let broken: Vec<_> = listed["cases"].as_array().expect("a list").iter().map(|case| &case["broken"]).collect();
    assert!(broken[0].is_null(), "{listed:#}");
    for ((_, message), broken) in sections.iter().zip(&broken[1..]) {
        assert!(broken.as_str().is_some_and(|why| why.contains(message)), "{message}: {broken}");
    }
    assert!(!kit.results().exists(), "something was run");
    kit.assert_nothing_left();
}

mod slow {
    use super::*;

    #[test]
    fn every_shipped_case_with_a_scripted_agent_comes_out_as_it_expects() {
        let kit = EvalKit::with_shipped_cases();
        let listed = kit.eval(&["list", "--json"]).exits(0).json();
        let cases: Vec<&Value> = listed["cases"].as_array().expect("a list").iter().collect();
        assert!(cases.iter().all(|case| case["broken"].is_null()), "{cases:#?}");
        let scripted: Vec<&str> =
            cases.iter().filter(|case| case["agent"] == "script").filter_map(|case| case["case"].as_str()).collect();
        assert!(scripted.len() >= 12 && cases.len() - scripted.len() >= 8, "{} of {}", scripted.len(), cases.len());
        let output = kit.eval(&[&["run", "--json", "--jobs", "3"], &scripted[..]].concat());
        let runs = output.exits(0).json();
        EvalKit::assert_valid("eval-runs.v1", &runs);
        let outcomes: BTreeSet<&str> =
            runs["runs"].as_array().expect("runs").iter().filter_map(|run| run["outcome"].as_str()).collect();
        let every = ["error", "fail", "limit", "skipped", "stuck", "success", "timed_out"];
        assert_eq!(outcomes, BTreeSet::from(every));
        kit.assert_nothing_left();

        EvalKit::assert_valid("eval-report.v1", &kit.eval(&["report", "--json"]).exits(0).json());
        let again = kit.eval(&["run", "--json", "--continue", scripted[0]]).exits(0).json();
        assert_eq!((again["there"].as_u64(), again["runs"].as_array().map(Vec::len)), (Some(1), Some(0)));
    }
}
