//! The generated parts of `docs/prompts.md`: a complete prompt for each role, and the sizes of sections in large runs.
//!
//! Every prompt is built twice and must be the same. The page contains a digest, so results are compared across
//! machines, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protocol::state::{Attempt, Failure, Feedback, NodeFeedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::{Node, TaskTree};
use protocol::words::{Role, VerdictName};
use runner_config::RepoConfig;
use runner_core::feedback::reduce;
use runner_core::iteration::transition::{MAX_FAILURE, PROGRESS_HEADING};
use runner_core::prompt::{MemoryFiles, PersonNote, Prompt, PromptInput, ReviewMaterial, build_prompt};
use runner_core::scope::Scope;
use runner_core::text::digest::sha256_hex;

use crate::documents::compare;

const BUDGET: usize = 40_960;
const GOAL: &str =
    "# A command for to-do lists\n\n`todo add`, `todo list` and `todo done` keep a list in a file. No dependency.\n";

/// The inputs of an example prompt.
struct Story {
    tree: TaskTree,
    feedback: Feedback,
    run_state: RunState,
    notes: Vec<PersonNote>,
    progress: String,
    memory: [String; 3],
    guard: Vec<String>,
    overrides: BTreeMap<Role, String>,
}

fn node(id: &str, title: &str, goal: &str, acceptance: &[&str]) -> Node {
    Node {
        id: id.to_owned(),
        order: 0,
        title: title.to_owned(),
        goal: goal.to_owned(),
        acceptance: acceptance.iter().map(|&text| text.to_owned()).collect(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}

/// A run in which the second leaf was tried once.
fn story() -> Story {
    let mut store = node("root.1", "Store entries in a file", "`src/store.rs` has load() and save().", &[]);
    store.passes = true;
    let acceptance =
        ["`tests/cli.rs` runs `todo add x` and finds it in the file", "an empty text is refused with exit code 2"];
    let mut add =
        node("root.2", "Command add", "`todo add TEXT` appends an entry through `src/store.rs`.", &acceptance);
    add.attempts = 1;
    let list = node("root.3", "Command list", "`todo list` prints the open entries, oldest first.", &[]);
    let mut root = node("root", "A command for to-do lists", "What GOAL.md says.", &[]);
    root.children = vec![store, add, list];
    let failure = Failure {
        iter: 3,
        verdict: VerdictName::RedGuard,
        text: "---- add_refuses_an_empty_text stdout ----\nthread 'add_refuses_an_empty_text' panicked at tests/cli.rs:41:5:\n\
               assertion `left == right` failed\n  left: Some(0)\n right: Some(2)\n"
            .to_owned(),
        invalid_tree: None,
    };
    let attempt = Attempt {
        iter: 3,
        verdict: VerdictName::RedGuard,
        detail: Some("exit 101: add_refuses_an_empty_text".to_owned()),
        summary: Some("`todo add` appends through the store; tests/cli.rs covers it.".to_owned()),
        failure_digest: None,
    };
    let remembered = NodeFeedback { history: vec![attempt], failures: vec![failure] };
    Story {
        tree: TaskTree { version: 1, root },
        feedback: Feedback { baseline: None, nodes: [("root.2".to_owned(), remembered)].into() },
        run_state: RunState::default(),
        notes: vec![PersonNote { id: "n1".to_owned(), text: "Exit codes as in sysexits are not wanted.".to_owned() }],
        progress: format!("{PROGRESS_HEADING}- root.1 — Store entries in a file (iteration 0002)\n"),
        memory: ["- `cargo test` needs HOME set\n", "- entries are lines of UTF-8\n", ""].map(str::to_owned),
        guard: ["cargo", "test"].map(str::to_owned).to_vec(),
        overrides: BTreeMap::new(),
    }
}

impl Story {
    fn prompt(&self, node: &str, role: Role) -> Prompt {
        let review = ReviewMaterial {
            from: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            criteria: "Errors go to standard error.",
            diff: "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -9,3 +9,4 @@\n-    store.add(&text);\n+    if text.is_empty() { exit(2) }\n+    store.add(&text);\n",
        };
        let input = PromptInput {
            tree: &self.tree,
            node,
            role,
            narrowing: false,
            mode_strict: false,
            goal_body: GOAL,
            instructions: &[],
            scope: Scope::new(&RepoConfig::default()),
            inherited: &[],
            run_state: &self.run_state,
            feedback: &self.feedback,
            notes: self.notes.clone(),
            guard_notice: None,
            budget_ms: 3_600_000,
            tests: &TestRecord::default(),
            guard_command: &self.guard,
            progress: &self.progress,
            memory: MemoryFiles {
                guardrails: &self.memory[0],
                assumptions: &self.memory[1],
                questions: &self.memory[2],
            },
            node_context: None,
            own_template: self.overrides.get(&role).map(String::as_str),
            review: (role == Role::Reviewer).then_some(review),
            budget_bytes: BUDGET,
        };
        let prompt = build_prompt(&input);
        assert_eq!(prompt, build_prompt(&input), "the same input gives the same prompt");
        assert!(prompt.text.len() <= BUDGET);
        prompt
    }
}

/// A complete prompt for each role.
fn examples() -> String {
    let story = story();
    let mut beginning = self::story();
    beginning.tree.root.children.clear();
    beginning.feedback = Feedback::default();
    beginning.notes.clear();
    beginning.progress.clear();
    beginning.memory = Default::default();
    let mut torn = self::story();
    let failure = Failure {
        iter: 3,
        verdict: VerdictName::Broken,
        text: "the task tree must be valid:\n- line 3, column 5: expected `,` or `}`\n".to_owned(),
        invalid_tree: Some(
            "{\"version\": 1,\n  \"root\": {\"id\": \"root\"\n    \"order\": 0, \"title\": \"A command".to_owned(),
        ),
    };
    torn.feedback.nodes.insert("root.2".to_owned(), NodeFeedback { history: Vec::new(), failures: vec![failure] });
    let shown = [
        ("Worker", "the second task after a red guard", story.prompt("root.2", Role::Worker)),
        ("Planner", "the first session of a run", beginning.prompt("root", Role::Planner)),
        ("Repair", "after a session that left a task tree that is no JSON", torn.prompt("root.2", Role::Repair)),
        ("Reviewer", "the second task, its guard green", story.prompt("root.2", Role::Reviewer)),
    ];
    let mut text = String::new();
    for (role, when, prompt) in shown {
        writeln!(text, "### {role}: {when}\n\n````text\n{}````\n", prompt.text).expect("writes");
    }
    text.trim_end().to_owned() + "\n"
}

fn of_20_000_nodes(story: &mut Story) {
    let leaf = |number: usize| Node {
        passes: number < 40,
        ..node(&format!("m{number}"), "Move one more caller", "Move it.", &[])
    };
    let part = |part: usize| Node {
        children: (part * 100..(part + 1) * 100).map(leaf).collect(),
        ..node(&format!("p{part}"), "A hundred callers", "They are moved.", &[])
    };
    story.tree.root.children.extend((0..198).map(part));
}

fn of_a_long_log(story: &mut Story) {
    let mut log = String::with_capacity(11 << 20);
    for number in 0..90_000 {
        let outcome = if number % 9_001 == 17 { "FAILED" } else { "ok" };
        writeln!(
            log,
            "test module_{}::case_{number} with a name of some length, as tests have them ... {outcome}",
            number % 97
        )
        .expect("writes");
        if outcome == "FAILED" {
            writeln!(log, "thread 'case_{number}' panicked at src/module.rs:{number}:5:\nassertion failed: it holds")
                .expect("writes");
        }
    }
    while log.len() < 10 << 20 {
        log.push_str("\u{1b}[2K\rBuilding [=====>     ] 812/1024: some_crate(build.rs)\nwarning: unused variable: `x`\n --> src/a.rs:7:9\n");
    }
    let failure =
        story.feedback.nodes.get_mut("root.2").and_then(|node| node.failures.first_mut()).expect("it has failed");
    failure.text = reduce(log.as_bytes(), MAX_FAILURE);
}

fn of_a_year(story: &mut Story) {
    let lines = |what: &str, per_day: usize| -> String {
        let line =
            |n: usize| format!("- day {}: {what}, learnt in a session and kept for those after it\n", n / per_day + 1);
        (0..365 * per_day).map(line).collect()
    };
    story.memory = [lines("a rule", 2), lines("an assumption", 4), lines("a question", 1)];
    story.progress += &lines("a node passed", 5);
}

/// Makes a run large in one respect.
type Growth = fn(&mut Story);

/// The size of each section in bytes, in runs that are large in one respect, and in all of them.
fn sizes() -> String {
    let cases: [(&str, &[Growth]); 5] = [
        ("a small run", &[]),
        ("20,000 nodes", &[of_20_000_nodes]),
        ("10 MB of guard log", &[of_a_long_log]),
        ("a year of memory", &[of_a_year]),
        ("all three", &[of_20_000_nodes, of_a_long_log, of_a_year]),
    ];
    let prompts = cases.map(|(name, grow)| {
        let mut story = story();
        for grow in grow {
            grow(&mut story);
        }
        (name, story.prompt("root.2", Role::Worker))
    });
    let cell = |prompt: &Prompt, name: &str| {
        let size = prompt.sections.iter().find(|size| size.name == name);
        size.map_or("–".to_owned(), |size| match size.cut_bytes {
            0 => size.bytes.to_string(),
            cut => format!("{} (−{cut})", size.bytes),
        })
    };
    let row = |name: &str, cell: &dyn Fn(&Prompt) -> String| {
        let cells: Vec<String> = prompts.iter().map(|(_, prompt)| cell(prompt)).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let names = prompts.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" | ");
    let mut text = format!("| bytes of | {names} |\n|---{}|\n", "|--:".repeat(prompts.len()));
    for size in &prompts[4].1.sections {
        text += &row(&format!("`{}`", size.name), &|prompt| cell(prompt, size.name));
    }
    text += &row("**the prompt**", &|prompt| format!("**{}**", prompt.text.len()));
    text + &row("its SHA-256", &|prompt| format!("`{}`", &sha256_hex(prompt.text.as_bytes())[..12]))
}

#[test]
fn the_page_about_prompts_has_what_the_code_builds() {
    compare("docs/prompts.md", &[("sizes", sizes()), ("prompts", examples())]);
}
