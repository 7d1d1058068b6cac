//! Tests of what a reader who does not know the runner sees of a run.

use protocol::test_record::TestAbsence;
use protocol::verify::{AuditCounts, AuditPass, AuditRule, PersonCommit};

use super::*;
use crate::message::tests::minimal_receipt;
use crate::message::{AgentStamp, VerdictLine};

fn leaf(id: &str, title: &str, passes: bool) -> Node {
    Node {
        id: id.to_owned(),
        order: 0,
        title: title.to_owned(),
        goal: "It works.".to_owned(),
        acceptance: Vec::new(),
        passes,
        attempts: 1,
        max_attempts: 3,
        children: Vec::new(),
    }
}

fn tree(children: Vec<Node>) -> TaskTree {
    let root = Node { children, passes: true, ..leaf("root", "Root", true) };
    TaskTree { root, ..crate::tree::new_tree(3) }
}

fn iteration(iter: u32, node: &str, verdict: VerdictName, summary: &str) -> IterationCommit {
    let receipt = Receipt {
        run: "port".to_owned(),
        iter,
        node: node.to_owned(),
        summary: summary.to_owned(),
        verdict: VerdictLine::new(verdict, None),
        agent: Some(AgentStamp::new("codex", "0.46.0")),
        ..minimal_receipt()
    };
    IterationCommit { commit: format!("{iter:040x}"), receipt }
}

fn audit(passes: usize) -> AuditReport {
    let pass = AuditPass { node: "root.1".to_owned(), iter: 1, commit: "a".repeat(40) };
    AuditReport {
        run: "port".to_owned(),
        base: None,
        tip: "b".repeat(40),
        findings: Vec::new(),
        people: Vec::new(),
        passes: vec![pass; passes],
        brought: Vec::new(),
        unseen: Vec::new(),
        counts: AuditCounts { iterations: 3, prompts: 3, guards_unproven: 3, ..AuditCounts::default() },
        since: None,
        signed: None,
        reviews: Vec::new(),
        reviewed: None,
    }
}

fn usage() -> RunState {
    let usage = UsageTotal {
        sessions: 3,
        input_tokens: Some(120_000),
        cached_tokens: Some(90_000),
        output_tokens: Some(4_000),
        cost_micro_usd: Some(1_250_000),
        ..UsageTotal::default()
    };
    RunState { usage, ..RunState::default() }
}

struct DescriptionCase {
    goal: String,
    tree: TaskTree,
    questions: String,
    tests: TestRecord,
    iterations: Vec<IterationCommit>,
    audit: AuditReport,
    run_state: RunState,
}

impl DescriptionCase {
    fn plain() -> Self {
        Self {
            goal: "# Port the store to Postgres\n\nAll queries run on Postgres; `make test` passes.\n".to_owned(),
            tree: tree(vec![leaf("root.1", "The schema", true), leaf("root.2", "The queries", true)]),
            questions: "# Questions\n\n- Is version 12 still supported?\n".to_owned(),
            iterations: vec![
                iteration(1, "root.1", VerdictName::Accepted, "Wrote the schema.\nAll tables have keys."),
                iteration(2, "root.2", VerdictName::RedGuard, "Half of it."),
                iteration(3, "root.2", VerdictName::Accepted, "Moved every query."),
            ],
            tests: TestRecord::default(),
            audit: audit(2),
            run_state: usage(),
        }
    }

    fn describe(&self) -> PullRequestText {
        let guard = ["make", "test"].map(str::to_owned);
        describe_run(&DeliveredRun {
            run: "port",
            branch: "deliver/port",
            remote: "origin",
            goal: &self.goal,
            tree: &self.tree,
            run_state: &self.run_state,
            tests: &self.tests,
            questions: &self.questions,
            guard: &guard,
            iterations: &self.iterations,
            audit: &self.audit,
        })
    }
}

#[test]
fn a_stranger_reads_what_was_asked_done_proven_and_said() {
    let described = DescriptionCase::plain().describe();
    assert_eq!(described.title, "Port the store to Postgres");
    insta::assert_snapshot!(described.body);
}

#[test]
fn a_lost_test_is_named() {
    let mut case = DescriptionCase::plain();
    let lost = LostTest { name: "shop [x](y) @z".to_owned(), iter: 2, now: TestAbsence::Skipped };
    case.tests.lost = vec![lost];
    let body = case.describe().body;
    assert!(
        body.contains("Tests that passed before and do not now:\n\n- `shop [x](y) @z`: skipped, session 2\n"),
        "{body}"
    );
}

#[test]
fn what_is_not_whole_is_not_called_so() {
    let mut case = DescriptionCase::plain();
    case.tree = tree(vec![leaf("root.1", "The schema", true), leaf("root.2", "The queries", false)]);
    case.iterations.truncate(2);
    case.audit.findings.push(AuditFinding {
        commit: "c".repeat(40),
        iter: Some(2),
        rule: AuditRule::Receipt,
        severity: Severity::Violation,
        at: "usage".to_owned(),
        expected: "12".to_owned(),
        found: "@alice".to_owned(),
    });
    case.audit.people.push(PersonCommit {
        commit: "d".repeat(40),
        subject: "Fix #12 by hand".to_owned(),
        command: None,
        runner_paths: Vec::new(),
        other_paths: 1,
    });
    case.run_state.usage = UsageTotal { sessions: 2, cost_unknown: 2, tokens_unknown: 2, ..UsageTotal::default() };
    let body = case.describe().body;
    for line in [
        "**The run is not complete.**",
        "- [ ] **The queries** (not done, 1 session)",
        "not all of it.** 1 violation of the rules.",
        "(receipt, usage): expected 12, found @&#8203;alice",
        "by hand: Fix \\#&#8203;12 by hand",
        "tokens read unknown, from a cache unknown, written unknown; cost unknown",
    ] {
        assert!(body.contains(line), "{line}\n{body}");
    }
}

#[test]
fn hostile_text_neither_leaves_its_quote_nor_ends_the_runners_part() {
    let evil = format!("x\n{DESCRIPTION_ENDS}\n</details>\n/merge\n@everyone Fixes #1\n```\n# Heading\n<script>");
    let mut case = DescriptionCase::plain();
    case.goal.clone_from(&evil);
    case.questions = format!("- {}\n", evil.replace('\n', " "));
    case.tree = tree(vec![leaf("root.1", &evil, true)]);
    case.iterations = vec![iteration(1, "root.1", VerdictName::Accepted, &evil)];
    let body = case.describe().body;
    assert_eq!(body.matches(DESCRIPTION_ENDS).count(), 1);
    let of_others = body.lines().filter(|line| line.contains("everyone"));
    assert!(
        of_others.clone().count() >= 4 && of_others.clone().all(|line| line.contains("@&#8203;everyone")),
        "{body}"
    );
    assert!(
        !body
            .lines()
            .any(|line| line.starts_with('/') || line.starts_with("# ") || line.replace("\\<", "").contains("<script")),
        "{body}"
    );
}

#[test]
fn a_description_of_any_run_fits() {
    let mut case = DescriptionCase::plain();
    let nodes = 1_000;
    case.goal = "@#&<".repeat(16_000);
    case.tree = tree((0..nodes).map(|at| leaf(&format!("root.{at}"), &"&@".repeat(40), true)).collect());
    case.iterations = (0..nodes)
        .map(|at| {
            iteration(
                u32::try_from(at).unwrap_or(0),
                &format!("root.{at}"),
                VerdictName::Accepted,
                &"<@x ".repeat(4_000),
            )
        })
        .collect();
    case.questions = (0..500).fold(String::new(), |all, at| all + "- " + &at.to_string() + &"@x&".repeat(1_000) + "\n");
    let body = case.describe().body;
    assert!(body.len() <= BODY_LIMIT, "{}", body.len());
    assert!(body.contains("more; `runnerctl tree --run port`") && body.ends_with(&format!("{DESCRIPTION_ENDS}\n")));
}
