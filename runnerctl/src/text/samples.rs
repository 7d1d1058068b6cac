//! Views as sent by the daemon, for tests of renderings.

use std::path::Path;

use protocol::doctor::GuardFiles;
use protocol::state::UsageTotal;
use protocol::test_record::TestsView;
use protocol::view::{IterationView, NodeRef, PhaseView, RepoView, RunSummary, RunView, StatusView, StopReason};
use protocol::words::{Containment, GuardOutcome, IterationStatus, PhaseName, Role, RunStatus, VerdictName};

/// A run that is running.
pub(crate) fn summary() -> RunSummary {
    RunSummary {
        id: "run-1a2b3c4d".into(),
        branch: "runner/run-1a2b3c4d".into(),
        path: Path::new("/home/me/proj").into(),
        goal: None,
        state: RunStatus::Running,
        needs_you: false,
        reason: None,
        queued_at: "2026-01-01T11:00:00Z".parse().expect("a time"),
        ended_at: None,
        published: None,
    }
}

/// A repository with that run.
pub(crate) fn repo() -> RepoView {
    RepoView {
        id: "9f86d081".into(),
        path: Path::new("/home/me/proj").into(),
        held: None,
        queue: vec![summary()],
        source: None,
        source_id: None,
    }
}

/// The workspace of an isolated run of that repository.
pub(crate) fn workspace(run: &str) -> StatusView {
    let path = Path::new("/state/workspaces/9f86d081").join(run);
    let summary =
        RunSummary { id: run.into(), branch: format!("runner/{run}"), path: path.as_path().into(), ..summary() };
    let repo = RepoView {
        id: format!("w-{run}"),
        path: path.as_path().into(),
        queue: vec![summary.clone()],
        source: Some(repo().path),
        source_id: Some(repo().id),
        ..repo()
    };
    StatusView { repo, run: Some(RunView { summary, ..self::run() }), isolated: Vec::new(), on_run: None }
}

/// A leaf below the root.
pub(crate) fn node() -> NodeRef {
    NodeRef {
        id: "parser.lex".into(),
        path: ["root", "parser", "parser.lex"].map(str::to_owned).to_vec(),
        title: "Cut the text into tokens".into(),
        attempts: 1,
        max_attempts: 3,
        role: Some(Role::Worker),
        usage: Some(UsageTotal { sessions: 1, cost_micro_usd: Some(412_000), ..UsageTotal::default() }),
    }
}

/// An iteration whose guard was red.
pub(crate) fn iteration() -> IterationView {
    IterationView {
        run: "run-1a2b3c4d".into(),
        iter: 3,
        node: "parser.lex".into(),
        verdict: VerdictName::RedGuard,
        status: IterationStatus::Done,
        guard: GuardOutcome::Fail,
        commit: Some("0123456789abcdef0123456789abcdef01234567".into()),
        title: Some("The lexer".into()),
        summary: Some("the lexer knows numbers".into()),
        ended_at: Some("2026-01-01T11:59:00Z".parse().expect("a time")),
        duration_ms: Some(14_200),
        usage: Some(UsageTotal { sessions: 1, cost_micro_usd: Some(412_000), ..UsageTotal::default() }),
        agent: Some("codex 0.169.0".into()),
        tests: None,
        flaky: None,
        recorded: None,
        wait: None,
        phases: Vec::new(),
    }
}

/// A repository whose run is in its fourth iteration.
pub(crate) fn status() -> StatusView {
    StatusView { repo: repo(), run: Some(run()), isolated: Vec::new(), on_run: None }
}

/// A run in its fourth iteration.
pub(crate) fn run() -> RunView {
    RunView {
        summary: summary(),
        wait_until: None,
        outages: Vec::new(),
        phase: Some(PhaseView {
            name: PhaseName::Guard,
            since: "2026-01-01T11:59:58Z".parse().expect("a time"),
            iteration_since: "2026-01-01T11:59:48Z".parse().expect("a time"),
            budget_ms: 1_800_000,
            agent: None,
            obstacle: None,
            baseline: false,
        }),
        node: Some(node()),
        leaves_passed: 4,
        leaves_total: 9,
        iteration: 4,
        usage: UsageTotal {
            sessions: 3,
            input_tokens: Some(1_250_000),
            cached_tokens: Some(800_000),
            output_tokens: Some(30_400),
            cost_micro_usd: None,
            tokens_unknown: 0,
            cost_unknown: 3,
        },
        list_price: None,
        elapsed_ms: 3_900_000,
        baseline: Some(GuardOutcome::Pass),
        recent: vec![iteration(), accepted_iteration()],
        questions: 2,
        held_back: vec![".env".into()],
        reverted: Vec::new(),
        guard_changed: Vec::new(),
        tests: TestsView::default(),
        flakes: Vec::new(),
        guard: Some(GuardFiles { watched: vec!["justfile".into()], is_blind: false, unknown: Vec::new() }),
        secrets: Vec::new(),
        notices: Vec::new(),
        containment: Containment::Walk,
        pending: None,
        notes: Vec::new(),
        changes: Vec::new(),
        git_wait: None,
    }
}

/// A run that cannot continue automatically.
pub(crate) fn stuck() -> RunView {
    let mut run = run();
    (run.summary.state, run.summary.needs_you) = (RunStatus::Stuck, true);
    run.summary.reason = Some(StopReason::new("parser.lex has used all of its 3 attempts", "runnerctl resume"));
    run.phase = None;
    run
}

fn accepted_iteration() -> IterationView {
    IterationView {
        iter: 2,
        node: "parser.ast".into(),
        title: Some("The syntax tree".into()),
        verdict: VerdictName::Accepted,
        guard: GuardOutcome::Pass,
        summary: None,
        duration_ms: Some(61_000),
        usage: Some(UsageTotal { sessions: 1, cost_unknown: 1, ..UsageTotal::default() }),
        ..iteration()
    }
}
