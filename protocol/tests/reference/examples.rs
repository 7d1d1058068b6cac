//! One example of parameters and reply per method, built from the types themselves.
//!
//! All of them describe the same moment: a run of the repository at `/home/me/proj` in its third iteration.

use std::any::type_name;
use std::fmt::Debug;

use jiff::Timestamp;
use protocol::answer::SessionUsage;
use protocol::api::API_VERSION;
use protocol::bisect::{BisectPoint, PointKind, PointsParams, PointsReply, TryParams, TryReply};
use protocol::branch::{BranchState, BranchView};
use protocol::command::NextSteps;
use protocol::delivery::{DescribeParams, DescribeReply, FeedbackItem, FeedbackKind, FeedbackParams, FeedbackReply};
use protocol::doctor::{AgentFacts, AgentFitness, GuardFiles, GuardSuggestion, RepositoryFacts};
use protocol::event::{Activity, ActivityKind, Event, EventKind};
use protocol::explain::{Ending, EndingView, ExplainReply, LeafView, NextView, RoleReason, StepView};
use protocol::flakes::{FlakyRunView, FlakyTest};
use protocol::landing::{
    CandidatesParams, LandForm, LandOutcome, LandParams, LandReply, LandedCheck, LandedCommit, LandedParams,
    LandedReport, LandedState, ResolveParams, RunLanding,
};
use protocol::meta::{IterationMeta, PhaseTime};
use protocol::path::WirePath;
use protocol::reply::{
    ActivityReply, ActivityStep, ChangeReply, ConfigEditReply, ConfigPathReply, ConfigReply, ConfigSetReply,
    ConfigShowReply, ConfigTextReply, ControlReply, CreatedWorkspace, ExportReply, GcReply, InitReply, IterationReply,
    MemoryFile, MemoryReply, ReviewReply, RunRecords, SettingOrigin, SettingView, SigningKeyReply, StartReply,
    StartSettings, StepReply, TakenSetting, TreeReply, ValidateReply, VouchReply, WorkspaceSwept,
};
use protocol::request::{
    AcceptParams, ActivityParams, AddParams, AgentParams, AnswerParams, AtIteration, AtPath, AtRun, AtSettings,
    CallerEnv, ConfigEditParams, ConfigKey, ConfigSetParams, ConfigTextParams, EditParams, ExportParams, ForkParams,
    GcParams, Handshake, InitParams, LogFilter, LogParams, LogStream, NoteParams, PauseParams, QuestionsParams,
    RemoveParams, RerunParams, ResumeParams, RetryParams, SigningKeyParams, StartParams, StepParams, Subscription,
    ValidateParams, VerifyParams, VouchParams,
};
use protocol::review::{ApproveParams, PendingReview, RejectParams, ReviewStatement};
use protocol::state::UsageTotal;
use protocol::test_record::{LostTest, TestAbsence, TestsChange, TestsView};
use protocol::tree::{Node, TaskTree};
use protocol::verify::{
    AuditCounts, AuditFinding, AuditPass, AuditReport, AuditReview, AuditRule, PersonCommit, RerunReport, Severity,
    TipsParams,
};
use protocol::view::{
    ChangeView, CheckView, DaemonView, DiskView, IterationView, MissingLevel, NodeRef, OutageView, PhaseView,
    QuestionView, RepoView, RunSummary, RunView, SelectView, SleepView, StatusView, StopReason, TextView,
    WorkspaceDisk,
};
use protocol::words::{
    Containment, GuardOutcome, IterationStatus, Mode, PhaseName, ReviewVerdict, Role, RunStatus, VerdictName,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const ID: &str = "port-to-postgres";
const COMMIT: &str = "3f0a9c1e5b7d2f4a6c8e0b1d3f5a7c9e1b3d5f70";
const FROM: &str = "8d1c2b3a4f5e6d7c8b9a0f1e2d3c4b5a69788790";

/// An example of one method.
pub(crate) struct Example {
    pub method: &'static str,
    /// Name of the parameter's type; empty if there is none.
    pub params_type: String,
    pub params: Option<Value>,
    pub reply_type: String,
    pub reply: Value,
}

/// Returns the examples in the order of the methods.
pub(crate) fn all() -> Vec<Example> {
    [
        daemon(),
        repositories(),
        runs(),
        views_of_runs(),
        trees(),
        edits(),
        steering(),
        iterations(),
        audits(),
        landing(),
        bisect_examples(),
        doctor_examples(),
        delivery_examples(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A value that is unchanged by serializing and parsing it.
trait Wire: Serialize + DeserializeOwned + PartialEq + Debug {
    fn sent(&self) -> Value {
        let value = serde_json::to_value(self).expect("serializes");
        let back: Self = serde_json::from_value(value.clone()).expect("is read back");
        assert_eq!(*self, back);
        for place in objects(&value) {
            let mut newer = value.clone();
            let object = newer.pointer_mut(&place).and_then(Value::as_object_mut).expect("it was just there");
            object.insert("of_a_later_version".to_owned(), Value::from(1));
            let read = serde_json::from_value::<Self>(newer);
            assert!(read.is_ok_and(|read| read == *self), "{}{place} is not read with a field more", short::<Self>());
        }
        value
    }
}

/// Task tree, usage, lost and flaky tests are parts of committed files, with fixed fields; variables can have any names.
const CLOSED: [&str; 5] = ["tree", "usage", "env", "first_lost", "flakes"];

/// Returns the paths of all objects to which a later version may add fields.
fn objects(value: &Value) -> Vec<String> {
    let within = |key: &str, value: &Value| {
        let key = key.replace('~', "~0").replace('/', "~1");
        objects(value).into_iter().map(move |place| format!("/{key}{place}")).collect::<Vec<_>>()
    };
    match value {
        Value::Object(fields) => {
            let open = fields.iter().filter(|(key, _)| !CLOSED.contains(&key.as_str()));
            let inner = open.flat_map(|(key, value)| within(key, value));
            [String::new()].into_iter().chain(inner).collect()
        }
        Value::Array(items) => items.iter().enumerate().flat_map(|(at, item)| within(&at.to_string(), item)).collect(),
        _ => Vec::new(),
    }
}

impl<T: Serialize + DeserializeOwned + PartialEq + Debug> Wire for T {}

fn example<P: Wire, R: Wire>(method: &'static str, params: &P, reply: &R) -> Example {
    Example { params_type: short::<P>(), params: Some(params.sent()), ..bare(method, reply) }
}

/// The example of a method without parameters.
fn bare<R: Wire>(method: &'static str, reply: &R) -> Example {
    Example { method, params_type: String::new(), params: None, reply_type: short::<R>(), reply: reply.sent() }
}

/// Returns the name of a type without its module path.
fn short<T>() -> String {
    let words = type_name::<T>().split('<').map(|word| word.rsplit("::").next().unwrap_or(word));
    words.collect::<Vec<_>>().join("<")
}

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().expect("a time")
}

fn path(text: &str) -> WirePath {
    WirePath(text.into())
}

fn proj() -> WirePath {
    path("/home/me/proj")
}

fn daemon() -> Vec<Example> {
    let view = DaemonView {
        version: "0.1.0".into(),
        api_version: API_VERSION,
        pid: 4711,
        started_at: at("08:00:00"),
        socket: path("/run/user/1000/runnerd/runnerd.sock"),
        state_folder: path("/home/me/.local/state/runnerd"),
        containment: Containment::Walk,
        containment_missing: vec![MissingLevel {
            level: Containment::Cgroup,
            why: "/sys/fs/cgroup/system.slice is not writable for this user".to_owned(),
            raise: "start the daemon with: systemd-run --user --scope -p Delegate=yes runnerd".to_owned(),
        }],
        repositories: 1,
        running: 1,
        draining: false,
        log_filter: "info".into(),
        log: Some(path("/home/me/.local/state/runnerd/logs")),
        program: Some(path("/home/me/.local/bin/runnerd")),
        outdated: false,
        socket_passed: false,
        sleep: SleepView { inhibited: true, why: None },
    };
    let handshake = Handshake { client: "runnerctl".into(), version: "0.1.0".into(), api_version: API_VERSION };
    let finer = LogFilter { filter: "info,runner_git=debug".into() };
    vec![
        example("daemon.handshake", &handshake, &view),
        bare("daemon.info", &view),
        bare("daemon.drain", &DaemonView { draining: true, ..view.clone() }),
        bare("daemon.shutdown", &view),
        example("daemon.log_filter", &finer, &DaemonView { log_filter: finer.filter.clone(), ..view.clone() }),
        example(
            "daemon.vouch",
            &VouchParams { pids: vec![4711], method: "run.pause".into() },
            &VouchReply { method: "run.pause".into() },
        ),
        example(
            "daemon.signing_key",
            &SigningKeyParams { make: true },
            &SigningKeyReply {
                file: WirePath("/home/me/.local/state/runnerd/private/signing/key".into()),
                signer: "runnerd@night namespaces=\"git\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKxuFQ".into(),
                is_new: true,
            },
        ),
    ]
}

fn repo(queue: Vec<RunSummary>) -> RepoView {
    RepoView { id: "9f86d081884c".into(), path: proj(), held: None, queue, source: None, source_id: None }
}

fn repositories() -> Vec<Example> {
    vec![
        bare("repo.list", &vec![repo(vec![summary(RunStatus::Running)])]),
        example("repo.remove", &RemoveParams { path: proj(), force: false }, &repo(Vec::new())),
        bare("repo.disk", &disk()),
    ]
}

fn workspace() -> WirePath {
    WirePath(format!("/home/me/.local/state/runnerd/workspaces/9f86d081884c/{ID}").into())
}

fn disk() -> DiskView {
    DiskView {
        folder: WirePath("/home/me/.local/state/runnerd/workspaces".into()),
        workspaces: vec![WorkspaceDisk {
            path: workspace(),
            source: proj(),
            run: ID.into(),
            removable: false,
            bytes: 734_003_200,
        }],
        free_bytes: Some(51_539_607_552),
    }
}

fn summary(state: RunStatus) -> RunSummary {
    RunSummary {
        id: ID.into(),
        branch: format!("runner/{ID}"),
        path: proj(),
        goal: Some("Port the store to Postgres".into()),
        state,
        needs_you: false,
        reason: None,
        queued_at: at("09:00:00"),
        ended_at: None,
        published: None,
    }
}

fn stopped_run(state: RunStatus, message: &str, ways: impl Into<NextSteps>) -> RunSummary {
    let reason = StopReason::new(message, ways);
    RunSummary { reason: Some(reason), needs_you: state != RunStatus::Cancelled, ..summary(state) }
}

fn caller() -> CallerEnv {
    CallerEnv([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())].into())
}

fn runs() -> Vec<Example> {
    let init = InitReply {
        path: proj(),
        created: vec![".runner/GOAL.md".into(), ".runner/state/tree.json".into()],
        kept: vec![".runner/state/config.toml".into()],
        overwritten: Vec::new(),
    };
    let start = StartParams {
        path: proj(),
        goal: Some("# Port the store to Postgres\n".into()),
        goal_file: None,
        id: Some(ID.into()),
        base: None,
        onto: None,
        keep_tree: false,
        queue_only: false,
        isolated: Some(true),
        default_config: false,
        defaults: None,
        confirmed: false,
        env: caller(),
    };
    let created = CreatedWorkspace {
        path: workspace(),
        base: FROM.into(),
        not_taken: vec!["notes.txt".into()],
        not_taken_count: 1,
        warnings: Vec::new(),
    };
    let isolated = RunSummary { path: workspace(), ..summary(RunStatus::Queued) };
    let started = StartReply {
        run: isolated,
        ahead: 0,
        resumed: false,
        workspace: Some(created),
        from: Some("main".into()),
        back: Some("main".into()),
        detached: None,
        guard: None,
        settings: Some(StartSettings {
            run: Some("lexer".into()),
            keys: vec![TakenSetting { key: "max_cost_usd".into(), value: "20.0".into() }],
        }),
        head_config: false,
    };
    let fork = ForkParams {
        path: proj(),
        run: Some("port".into()),
        iter: 2,
        id: Some("port-again".into()),
        queue_only: false,
        confirmed: false,
        env: caller(),
    };
    let forked =
        RunSummary { id: "port-again".into(), branch: "runner/port-again".into(), ..summary(RunStatus::Queued) };
    let step = StepParams { path: proj(), run: None, confirmed: false, env: caller() };
    let paused = stopped_run(RunStatus::Paused, "the iteration you asked for is done", "runnerctl resume");
    let resume = ResumeParams { path: proj(), run: None, now: false, more: Some(20), confirmed: false, env: caller() };
    let cancelled = RunSummary {
        ended_at: Some(at("10:00:00")),
        ..stopped_run(RunStatus::Cancelled, "cancelled by the user", "runnerctl start")
    };
    vec![
        example("run.init", &InitParams { path: proj(), force: false, defaults: None }, &init),
        example("run.start", &start, &started),
        example(
            "run.fork",
            &fork,
            &StartReply {
                run: forked,
                ahead: 1,
                resumed: false,
                workspace: None,
                from: Some("main".into()),
                back: Some("main".into()),
                detached: None,
                guard: None,
                settings: None,
                head_config: false,
            },
        ),
        example("run.step", &step, &StepReply { run: paused, iteration: Some(iteration()) }),
        example(
            "run.pause",
            &PauseParams { path: proj(), run: None, now: true },
            &ControlReply { run: summary(RunStatus::Running), pending: true, already: false },
        ),
        example(
            "run.resume",
            &resume,
            &ControlReply { run: summary(RunStatus::Queued), pending: false, already: false },
        ),
        example("run.cancel", &at_run(), &ControlReply { run: cancelled, pending: false, already: false }),
    ]
}

fn at_run() -> AtRun {
    AtRun { path: proj(), run: Some("port".into()) }
}

fn iteration() -> IterationView {
    IterationView {
        run: ID.into(),
        iter: 2,
        node: "root.1".into(),
        verdict: VerdictName::RedGuard,
        status: IterationStatus::Done,
        guard: GuardOutcome::Fail,
        commit: Some(COMMIT.into()),
        title: Some("Move the accounts".into()),
        summary: Some("The schema is there; two tests still name the old store.".into()),
        ended_at: Some(at("09:31:00")),
        duration_ms: Some(184_210),
        usage: Some(usage(1)),
        agent: Some("codex codex-cli 0.169.0".into()),
        tests: Some(TestsChange { added: 3, lost: 1, names: vec!["shop tests::rounds".to_owned()] }),
        flaky: Some(FlakyRunView { names: vec!["tests/test_net.py::test_get".to_owned()], more: 0 }),
        recorded: Some(true),
        wait: None,
        phases: vec![
            PhaseTime { phase: PhaseName::Work, duration_ms: 170_100 },
            PhaseTime { phase: PhaseName::Guard, duration_ms: 13_900 },
        ],
    }
}

fn explain_reply() -> ExplainReply {
    let step = StepView { node: "root.1".into(), parent: "root".into(), passed_before: 0, siblings: 2 };
    let goes_on = |node: &str| NextView::GoesOn { node: node.into(), role: Role::Worker };
    let leaf = LeafView { node: node(), steps: vec![step], role_reason: RoleReason::Leaf, narrowing: false };
    let green = EndingView {
        ending: Ending::Green,
        verdict: VerdictName::Accepted,
        detail: None,
        subject: Some(format!("chore(loop): run {ID} iter 0002 node root.1 status=done guard=pass")),
        guard: GuardOutcome::Pass,
        tree_taken: true,
        attempts: 1,
        max_attempts: 3,
        passes: vec!["root.1".into()],
        gains: Vec::new(),
        next: goes_on("root.2"),
    };
    ExplainReply {
        run: Some(ID.into()),
        summary: Some(summary_of_now()),
        commit: COMMIT.into(),
        iter: 2,
        next: goes_on("root.1"),
        after_resume: false,
        leaf: Some(leaf),
        endings: vec![green],
    }
}

fn node() -> NodeRef {
    NodeRef {
        id: "root.1".into(),
        path: vec!["root".into(), "root.1".into()],
        title: "Move the accounts table".into(),
        attempts: 1,
        max_attempts: 3,
        role: Some(Role::Worker),
        usage: Some(usage(1)),
    }
}

fn usage(sessions: u64) -> UsageTotal {
    UsageTotal {
        sessions,
        input_tokens: Some(48_210),
        output_tokens: Some(3_120),
        cost_unknown: sessions,
        ..UsageTotal::default()
    }
}

fn views_of_runs() -> Vec<Example> {
    let phase = PhaseView {
        name: PhaseName::Work,
        since: at("09:31:02"),
        iteration_since: at("09:31:00"),
        budget_ms: 1_800_000,
        agent: Some("claude".into()),
        obstacle: None,
        baseline: false,
    };
    let run = RunView {
        summary: summary(RunStatus::Running),
        wait_until: None,
        outages: vec![OutageView { agent: "codex".into(), why: "usage limit reached".into(), until: at("14:00:00") }],
        phase: Some(phase),
        node: Some(node()),
        leaves_passed: 0,
        leaves_total: 2,
        iteration: 3,
        usage: usage(2),
        list_price: None,
        elapsed_ms: 290_400,
        baseline: Some(GuardOutcome::Pass),
        recent: vec![iteration()],
        questions: 0,
        held_back: vec![".env".into()],
        reverted: Vec::new(),
        guard_changed: Vec::new(),
        tests: TestsView {
            passed: 41,
            lost: 1,
            first_lost: vec![LostTest { name: "shop tests::rounds".to_owned(), iter: 2, now: TestAbsence::Skipped }],
        },
        flakes: vec![FlakyTest {
            name: Some("tests/test_net.py::test_get".to_owned()),
            count: 3,
            first_node: "root.1".to_owned(),
            last_iter: 2,
        }],
        guard: Some(GuardFiles { watched: vec!["justfile".into()], is_blind: false, unknown: Vec::new() }),
        secrets: Vec::new(),
        notices: Vec::new(),
        containment: Containment::Walk,
        pending: None,
        notes: vec!["n1".into()],
        changes: vec![ChangeView { command: "note".into(), id: Some("n2".into()), text: "Keep the old table.".into() }],
        git_wait: None,
    };
    let status = StatusView {
        repo: repo(vec![summary(RunStatus::Running)]),
        run: Some(run),
        isolated: Vec::new(),
        on_run: None,
    };
    let queue = vec![summary(RunStatus::Running)];
    vec![
        example("run.status", &AtRun { path: proj(), run: None }, &status),
        bare("run.status_all", &vec![status]),
        example("run.list", &AtPath { path: proj() }, &queue),
        example("run.branches", &AtRun { path: proj(), run: None }, &vec![branch()]),
        example("run.locate", &AtRun { path: proj(), run: None }, &summary(RunStatus::Running)),
        example("run.queue", &AtPath { path: proj() }, &queue),
    ]
}

fn branch() -> BranchView {
    BranchView {
        run: "port".into(),
        goal: Some("Move everything to Postgres".into()),
        state: BranchState::Claimed,
        driver: Some("slurm/4711.0@n1".into()),
        tip: "3f9c1d2e4b5a69788796a5b4c3d2e1f00f1e2d3c".into(),
        subject: "chore(loop): claim run port".into(),
        moved_at: Some("2026-02-03T04:05:06Z".parse().expect("it is a time")),
        leaves_passed: 1,
        leaves_total: 3,
        iterations: 6,
        node: None,
        usage: UsageTotal::default(),
        elapsed_ms: 290_400,
        questions: 0,
        fault: None,
    }
}

fn tree_node(id: &str, title: &str, children: Vec<Node>) -> Node {
    Node {
        id: id.into(),
        order: 1,
        title: title.into(),
        goal: format!("{title}."),
        acceptance: vec!["the guard is green".into()],
        passes: false,
        attempts: u32::from(id == "root.1"),
        max_attempts: 3,
        children,
    }
}

fn trees() -> Vec<Example> {
    let root = tree_node(
        "root",
        "Port the store to Postgres",
        vec![tree_node("root.1", "Move the accounts table", Vec::new())],
    );
    let tree = TreeReply {
        tree: TaskTree { version: 1, root },
        current: Some("root.1".into()),
        state: Some(RunStatus::Running),
        digest: "5d1f0c…".into(),
    };
    let check = |name: &str, faults: &[&str]| CheckView {
        name: name.into(),
        ok: faults.is_empty(),
        faults: faults.iter().map(ToString::to_string).collect(),
    };
    let checks = vec![check("layout", &[]), check("goal", &[".runner/GOAL.md is missing"])];
    let retried = ChangeReply {
        pending: false,
        waits_for: None,
        commit: Some(COMMIT.into()),
        ..change_reply("retry", "root.1", "node root.1 may be tried 6 times, 3 more")
    };
    let add = AddParams {
        at: at_run(),
        parent: "root".into(),
        title: "Docs".into(),
        goal: "The README says how to migrate.".into(),
        acceptance: vec!["the guide is complete".into()],
        after: Some("root.1".into()),
        order: None,
    };
    let env = CallerEnv([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
    let validate = ValidateParams { path: proj(), env };
    let edit = EditParams { at: at_run(), file: path("/tmp/tree.json"), opened: Some("5d1f0c…".into()) };
    let set = ConfigSetParams {
        at: at_run(),
        key: "guard.command".into(),
        value: Some("[\"make\", \"test\"]".into()),
        defaults: None,
    };
    let configured = ConfigSetReply {
        key: "guard.command".into(),
        value: Some("[\"make\", \"test\"]".into()),
        change: Some(change_reply("config set", "guard.command", "guard.command is [\"make\", \"test\"]")),
        file: path("/home/me/proj/.runner/state/config.toml"),
    };
    let key = ConfigKey { path: proj(), key: Some("guard.command".into()), defaults: None };
    let files = ConfigPathReply {
        file: path("/home/me/proj/.runner/state/config.toml"),
        daemon_file: path("/home/me/.config/runnerd/config.toml"),
    };
    vec![
        example("tree.get", &at_run(), &tree),
        example("tree.select", &at_run(), &SelectView::Open { node: node() }),
        example("tree.explain", &at_run(), &explain_reply()),
        example("tree.validate", &validate, &ValidateReply { path: proj(), ok: false, checks }),
        example("tree.retry", &RetryParams { at: at_run(), node: "root.1".into() }, &retried),
        example("tree.add", &add, &ChangeReply { id: None, ..change_reply("add", "", "node root.2 under root: Docs") }),
        example(
            "tree.edit",
            &edit,
            &ChangeReply { id: None, ..change_reply("edit", "", "changed root.1; added root.3") },
        ),
        example("config.get", &key, &ConfigReply { value: serde_json::json!(["just", "ci"]), variables: Vec::new() }),
        example("config.show", &AtSettings { path: proj(), defaults: None }, &config_reply()),
        example("config.path", &AtPath { path: proj() }, &files),
        example("config.set", &set, &configured),
    ]
}

fn edits() -> Vec<Example> {
    let text = ConfigTextReply {
        text: "max_iterations = 20\n".into(),
        digest: "7f3a91…".into(),
        file: path("/home/me/proj/.runner/state/config.toml"),
    };
    let settings =
        ConfigEditParams { at: at_run(), text: "max_iterations = 40\n".into(), opened: Some("7f3a91…".into()) };
    let edited = ConfigEditReply {
        keys: vec!["max_iterations".into()],
        change: Some(ChangeReply { id: None, ..change_reply("config edit", "", "max_iterations") }),
        file: path("/home/me/proj/.runner/state/config.toml"),
    };
    vec![
        example("config.text", &ConfigTextParams { at: at_run(), defaults: None }, &text),
        example("config.edit", &settings, &edited),
    ]
}

fn doctor_examples() -> Vec<Example> {
    let facts = RepositoryFacts {
        path: proj(),
        has_layout: true,
        by_program: vec!["core.sparseCheckout is set".into()],
        attribute: None,
        locks: vec![path("/home/me/proj/.git/index.lock")],
        operation: None,
        confirmed: Some(true),
        guard: Some(GuardFiles { watched: vec!["justfile".into()], is_blind: false, unknown: Vec::new() }),
        workspace: None,
        has_settings: true,
        guard_suggestion: Some(GuardSuggestion {
            command: vec!["cargo".into(), "test".into()],
            reason: "Cargo.toml".into(),
        }),
        ci_commands: vec!["cargo test --locked".into()],
        unborn: false,
        uncommitted: Vec::new(),
    };
    let fit = AgentFitness::Fit { version: Some("0.172.0".into()), tested: Some("0.169.0".into()), login: Some(true) };
    let agents = vec![AgentFacts { section: "executor".into(), kind: "codex".into(), fitness: fit }];
    let env = CallerEnv([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
    vec![
        example("doctor.repository", &AtSettings { path: proj(), defaults: None }, &facts),
        example("doctor.agents", &AgentParams { path: proj(), env: env.clone(), defaults: None }, &agents),
        example("doctor.installed", &ValidateParams { path: proj(), env }, &agents),
    ]
}

fn delivery_examples() -> Vec<Example> {
    let describe = DescribeParams { path: proj(), run: Some(ID.into()), remote: None, confirmed: false };
    let described = DescribeReply {
        run: ID.into(),
        tip: COMMIT.into(),
        branch: format!("deliver/{ID}"),
        landed_on: None,
        at_work: None,
        leaves_passed: 3,
        leaves_total: 3,
        title: "Port the store to Postgres".into(),
        body: "## What was asked\n\n> All queries run on Postgres.\n".into(),
        remote: "origin".into(),
        base: Some("main".into()),
        command: Vec::new(),
        on_complete: false,
    };
    let comment = FeedbackItem {
        kind: FeedbackKind::Comment,
        id: "101".into(),
        by: "alice (member)".into(),
        at: Some("src/store.rs:42".into()),
        text: "This loses the last line.".into(),
        url: Some("https://github.com/o/r/pull/5#discussion_r101".into()),
        log: None,
    };
    let feedback = FeedbackParams {
        at: AtRun { path: proj(), run: Some(ID.into()) },
        request: "pull request 5, https://github.com/o/r/pull/5".into(),
        items: vec![comment],
        add: false,
        dry_run: true,
    };
    let reply = FeedbackReply {
        included: 1,
        known: 0,
        omitted: 0,
        text: "Feedback on pull request 5 …\n".into(),
        change: None,
    };
    vec![example("delivery.describe", &describe, &described), example("delivery.feedback", &feedback, &reply)]
}

fn audit_report() -> AuditReport {
    let [base, tip, commit] = [FROM, COMMIT, COMMIT].map(str::to_owned);
    AuditReport {
        run: "port-to-postgres".into(),
        base: Some(base),
        tip,
        findings: vec![AuditFinding {
            commit: commit.clone(),
            iter: Some(7),
            rule: AuditRule::Passes,
            severity: Severity::Violation,
            at: "node root.3: passes".into(),
            expected: "false".into(),
            found: "true".into(),
        }],
        people: vec![PersonCommit {
            commit: commit.clone(),
            subject: "chore(loop): note run port-to-postgres".into(),
            command: Some("note".into()),
            runner_paths: vec![".runner/state/notes.md".into()],
            other_paths: 0,
        }],
        passes: vec![AuditPass { node: "root.2".into(), iter: 7, commit: commit.clone() }],
        brought: Vec::new(),
        unseen: Vec::new(),
        counts: AuditCounts {
            commits: 10,
            iterations: 7,
            decisions: 0,
            prompts: 7,
            prompts_unknown: 0,
            agents_commits: 1,
            leaves_passed: 1,
            leaves_total: 3,
            guards_unproven: 2,
        },
        since: None,
        signed: None,
        reviews: vec![AuditReview {
            commit,
            iter: 7,
            node: "root.2".into(),
            verdict: ReviewVerdict::Accept,
            text: ReviewStatement { review: &pending_review(), verdict: ReviewVerdict::Accept, reason: "" }.to_string(),
            signature: None,
        }],
        reviewed: None,
    }
}

fn config_reply() -> ConfigShowReply {
    let setting = |key: &str, value: &str, place: Option<&str>| SettingView {
        choices: Vec::new(),
        key: key.into(),
        value: Some(value.into()),
        origin: if place.is_some() { SettingOrigin::File } else { SettingOrigin::Default },
        place: place.map(str::to_owned),
    };
    let file = "/home/me/proj/.runner/state/config.toml";
    ConfigShowReply {
        file: path(file),
        settings: vec![
            setting("max_iterations", "100", None),
            setting("guard.command", "[\"just\", \"ci\"]", Some(&format!("{file}:54"))),
        ],
        daemon_file: path("/home/me/.config/runnerd/config.toml"),
        daemon_settings: vec![SettingView {
            choices: Vec::new(),
            key: "log_level".into(),
            value: Some("\"debug\"".into()),
            origin: SettingOrigin::Start,
            place: Some("RUNNERD_LOG".into()),
        }],
    }
}

fn change_reply(command: &str, id: &str, summary: &str) -> ChangeReply {
    ChangeReply {
        run: summary_of_now(),
        command: command.into(),
        id: Some(id.into()),
        summary: summary.into(),
        pending: true,
        waits_for: Some("a session is running".into()),
        commit: None,
    }
}

fn summary_of_now() -> RunSummary {
    summary(RunStatus::Running)
}

fn review_reply(verdict: ReviewVerdict) -> ReviewReply {
    ReviewReply { run: summary(RunStatus::Queued), node: "root.1".into(), iteration: 2, verdict }
}

fn pending_review() -> PendingReview {
    PendingReview { run: ID.into(), node: "root.2".into(), iteration: 6, commit: FROM.into() }
}

fn steering() -> Vec<Example> {
    let at = AtRun { path: proj(), run: None };
    let approve = ApproveParams { at: at.clone(), iteration: 6, signature: None };
    let reject = RejectParams {
        at,
        iteration: 6,
        reason: "No test for empty input.".into(),
        signature: Some("U1NIU0lHAAAAAQ…".into()),
    };
    let accept = AcceptParams { at: AtRun { path: proj(), run: None }, file: None };
    let accepted = ChangeReply { id: None, ..change_reply("guard accept", "", "justfile") };
    let note = NoteParams { at: AtRun { path: proj(), run: None }, text: "Use sqlx, not diesel.".into() };
    let question = QuestionView {
        id: "1a2b3c4d".into(),
        text: "Which version of Postgres?".into(),
        answer: None,
        path: proj(),
        run: ID.into(),
    };
    let answer = AnswerParams { path: None, id: "1a2b".into(), text: "16".into() };
    let answered = change_reply("answer", "1a2b3c4d", "1a2b3c4d: Which version of Postgres?\n16");
    let text = "- accounts have one currency\n";
    let files = vec![MemoryFile { name: "assumptions.md".into(), text: text.into() }];
    vec![
        example("memory.get", &at_run(), &MemoryReply { commit: Some(COMMIT.into()), files }),
        example("question.list", &QuestionsParams { path: None, all: false }, &vec![question]),
        example("question.answer", &answer, &answered),
        example("review.pending", &at_run(), &pending_review()),
        example("review.approve", &approve, &review_reply(ReviewVerdict::Accept)),
        example("review.reject", &reject, &review_reply(ReviewVerdict::Reject)),
        example("note.add", &note, &change_reply("note", "n1", "n1: Use sqlx, not diesel.")),
        example("guard.accept", &accept, &accepted),
    ]
}

fn meta() -> IterationMeta {
    let phases =
        [(PhaseName::Brief, 12), (PhaseName::Work, 170_300), (PhaseName::Inspect, 25), (PhaseName::Guard, 13_800)];
    IterationMeta {
        run: ID.into(),
        iter: 2,
        from: FROM.into(),
        node: "root.1".into(),
        node_path: node().path,
        role: Role::Worker,
        mode: Mode::Execute,
        agent: "codex 0.169.0".into(),
        session_id: Some("0199a213-81c0-7800-8aa1-bbab2a035a53".into()),
        verdict: VerdictName::RedGuard,
        detail: None,
        status: IterationStatus::Done,
        guard: GuardOutcome::Fail,
        agent_exit: Some(0),
        guard_exit: Some(1),
        started_at: at("09:27:55"),
        ended_at: at("09:31:00"),
        phases: phases.map(|(phase, duration_ms)| PhaseTime { phase, duration_ms }).to_vec(),
        captured_bytes: 20_480,
        dropped_bytes: 0,
        failure: None,
        usage: SessionUsage { input_tokens: Some(24_105), output_tokens: Some(1_560), ..SessionUsage::default() },
        review: None,
        containment: Containment::Walk,
        survivors_ended: 0,
        secrets: Vec::new(),
        log_faults: Vec::new(),
        moved_refs: Vec::new(),
        held_back: vec![".env".into()],
        reverted: Vec::new(),
        hidden: Vec::new(),
        dirty_submodules: Vec::new(),
        guard_changed: Vec::new(),
        guard_with_accepted: false,
        commit: Some(COMMIT.into()),
    }
}

fn landing() -> Vec<Example> {
    let commit = LandedCommit {
        commit: FROM.into(),
        subject: "Move the accounts to Postgres".into(),
        node: "root.1".into(),
        of: COMMIT.into(),
    };
    let of_run = RunLanding {
        run: ID.into(),
        outcome: LandOutcome::Landed,
        commits: vec![commit.clone()],
        refusal: None,
        notes: Vec::new(),
    };
    let landed = LandReply {
        onto: "main".into(),
        before: Some(COMMIT.into()),
        after: FROM.into(),
        preview: false,
        on_run: None,
        left: Some("runner/port-to-postgres".into()),
        back: Some("main".into()),
        uncommitted: Vec::new(),
        settings: Some("runner/port-to-postgres".into()),
        work_tree: Some(proj()),
        runs: vec![of_run],
    };
    let land = LandParams {
        path: proj(),
        runs: vec![ID.into()],
        onto: Some("main".into()),
        from: None,
        form: LandForm::Leaves,
        with_runner: false,
        unproven: false,
        accepted: Vec::new(),
        preview: false,
        confirmed: true,
        env: CallerEnv::default(),
    };
    let resolve =
        ResolveParams { path: proj(), run: ID.into(), onto: None, confirmed: true, env: CallerEnv::default() };
    let queued = StartReply {
        run: summary(RunStatus::Queued),
        ahead: 0,
        resumed: false,
        workspace: None,
        from: Some("main".into()),
        back: Some("main".into()),
        detached: None,
        guard: None,
        settings: None,
        head_config: false,
    };
    let check =
        LandedCheck { run: ID.into(), landed: commit, state: LandedState::Same, differs: Vec::new(), note: None };
    let report = LandedReport { branch: "main".into(), tip: FROM.into(), commits: vec![check] };
    vec![
        example("land.run", &land, &landed),
        example(
            "land.candidates",
            &CandidatesParams { path: proj(), onto: None },
            &vec![summary(RunStatus::Completed)],
        ),
        example("land.resolve", &resolve, &queued),
        example("land.verify", &LandedParams { path: proj(), branch: "main".into() }, &report),
    ]
}

fn bisect_examples() -> Vec<Example> {
    let command = vec!["cargo".to_owned(), "test".to_owned()];
    let points = PointsParams { path: proj(), run: Some(ID.into()), command: command.clone() };
    let point = BisectPoint {
        commit: COMMIT.into(),
        files: "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0".into(),
        kind: PointKind::Iteration,
        subject: "chore(loop): run port-to-postgres iter 0002 node root.1 status=done guard=pass".into(),
        iter: Some(2),
        node: Some("root.1".into()),
        title: Some("Move the accounts".into()),
        from: Some(FROM.into()),
        known: Some(0),
    };
    let run = ID.into();
    let commit = COMMIT.into();
    let tried = TryParams { path: proj(), run, commit, command, confirmed: false, env: CallerEnv::default() };
    let ended = TryReply {
        exit: Some(101),
        ended: "exit=101".into(),
        output: "error: 2 tests failed\n".into(),
        elapsed_ms: 4210,
    };
    vec![
        example("bisect.points", &points, &PointsReply { run: ID.into(), points: vec![point] }),
        example("bisect.try", &tried, &ended),
    ]
}

fn iterations() -> Vec<Example> {
    let second = AtIteration { path: proj(), run: None, iter: Some(2), wait: None };
    let record = path("/home/me/proj/.runner/iterations/port-to-postgres/0002");
    let log = LogParams { at: second.clone(), stream: LogStream::Guard, offset: 0, raw: false };
    let text = TextView { text: "error: 2 tests failed\n".into(), next_offset: 22, complete: true, size: Some(22) };
    let step = Activity { what: ActivityKind::Tool, text: "cargo test".into() };
    let steps = vec![ActivityStep { offset: 4210, activity: step }];
    let done = ActivityReply { steps, next_offset: 5321, complete: true };
    let export = ExportParams { at: at_run(), record: Some("0002".into()), to: path("/tmp/for-the-issue") };
    let exported = ExportReply {
        run: ID.into(),
        to: path("/tmp/for-the-issue"),
        files: 9,
        bytes: 183_204,
        left_out: Vec::new(),
        records: Vec::new(),
    };
    let of_run = |run: &str, records, bytes| RunRecords { run: run.into(), records, bytes };
    let freed = GcReply {
        path: proj(),
        removed: vec![of_run("tidy", 31, 48_310_225)],
        kept: vec![of_run(ID, 12, 20_118_400)],
        workspaces: vec![WorkspaceSwept {
            run: "tidy".into(),
            path: workspace(),
            bytes: 734_003_200,
            kept: None,
            uncommitted: 0,
        }],
        freed_bytes: 782_313_425,
        dry_run: true,
    };
    let event = Event {
        seq: 118,
        time: at("09:31:02"),
        repo: Some("9f86d081884c".into()),
        run: Some(ID.into()),
        iter: Some(3),
        kind: EventKind::Phase { phase: PhaseName::Work, node: Some("root.1".into()) },
    };
    vec![
        example("iteration.list", &at_run(), &vec![iteration()]),
        example(
            "iteration.get",
            &second,
            &IterationReply { iteration: iteration(), record, meta: Some(meta()), failures: Vec::new() },
        ),
        example("iteration.log", &log, &text),
        example("iteration.activity", &ActivityParams { at: second, offset: 4096 }, &done),
        example("iteration.export", &export, &exported),
        example("iteration.gc", &GcParams { path: proj(), keep: 1, dry_run: true, discard: Vec::new() }, &freed),
        example("events.subscribe", &Subscription { path: Some(proj()), since: Some(118), output: false }, &event),
    ]
}

fn audits() -> Vec<Example> {
    let rerun = RerunParams {
        path: proj(),
        passes: audit_report().passes,
        since: Some("HEAD~3".into()),
        confirmed: true,
        env: CallerEnv::default(),
    };
    let tips = TipsParams { path: proj(), tip: COMMIT.into(), tips: vec![FROM.into()] };
    let lost = vec![AuditFinding {
        commit: COMMIT.into(),
        iter: None,
        rule: AuditRule::Tip,
        severity: Severity::Violation,
        at: "branch".into(),
        expected: format!("commit {FROM}, which was its last once"),
        found: "a branch without it".into(),
    }];
    vec![
        example(
            "verify.run",
            &VerifyParams {
                path: proj(),
                run: Some("port-to-postgres".into()),
                since: None,
                signers: None,
                reviewers: None,
            },
            &audit_report(),
        ),
        example("verify.rerun", &rerun, &RerunReport { guards: 1, findings: Vec::new() }),
        example("verify.tips", &tips, &lost),
    ]
}
