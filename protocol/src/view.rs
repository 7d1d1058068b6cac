//! The data that clients receive about the daemon, its repositories and runs.
//!
//! Views are plain data for display; no decision is based on them. Within an API version, new fields are added with a
//! default, no field is removed, and clients ignore unknown fields.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::branch::RunCheckout;
use crate::command::{Command, NextSteps};
use crate::doctor::GuardFiles;
use crate::flakes::{FlakyRunView, FlakyTest};
use crate::meta::{IterationMeta, PhaseTime, SecretFinding};
use crate::path::WirePath;
use crate::state::UsageTotal;
use crate::test_record::{TestsChange, TestsView};
use crate::words::{Containment, GuardOutcome, IterationStatus, PhaseName, Role, RunStatus, VerdictName};

/// The daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonView {
    /// Version of the program.
    pub version: String,
    /// Version of the API, which must be equal on both sides.
    pub api_version: u32,
    /// Process id.
    pub pid: u32,
    /// When it started.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// The socket it listens on.
    pub socket: WirePath,
    /// The directory of its durable state.
    pub state_folder: WirePath,
    /// The level of containment of an iteration's processes.
    pub containment: Containment,
    /// The levels of containment that are not in use, weakest first.
    pub containment_missing: Vec<MissingLevel>,
    /// Registered repositories.
    pub repositories: u32,
    /// Runs in progress.
    pub running: u32,
    /// Whether the daemon stops after the current iterations.
    pub draining: bool,
    /// The current log filter.
    pub log_filter: String,
    /// The directory of its log; null if it logs to standard error, which a service manager may keep.
    pub log: Option<WirePath>,
    /// The file from which it was started.
    pub program: Option<WirePath>,
    /// Whether that file has been replaced: after a restart, the daemon is a different program.
    pub outdated: bool,
    /// Whether a service manager passed the socket, and keeps it open after the daemon ends.
    pub socket_passed: bool,
    /// Whether the machine may go to sleep automatically.
    pub sleep: SleepView,
}

/// Whether the machine may go to sleep automatically.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SleepView {
    /// Whether the daemon keeps it awake.
    pub inhibited: bool,
    /// The reason, if it does not.
    pub why: Option<String>,
}

/// A level of containment that is not in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingLevel {
    /// The level.
    pub level: Containment,
    /// The reason.
    pub why: String,
    /// How to make it available.
    pub raise: String,
}

/// A registered repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepoView {
    /// Id of the repository: the start of a digest of its git directory.
    pub id: String,
    /// The registered working tree.
    pub path: WirePath,
    /// Why its state could not be read; null if it could.
    pub held: Option<StopReason>,
    /// Its runs that have not ended, in order.
    pub queue: Vec<RunSummary>,
    /// If this is the workspace of an isolated run: the working tree in which the run was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<WirePath>,
    /// If this is the workspace of an isolated run: the id of the repository from which the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Id of the run.
    pub id: String,
    /// The branch `runner/<id>`.
    pub branch: String,
    /// The working tree it runs in.
    pub path: WirePath,
    /// The title of its goal, which is the first heading or line; null if unknown.
    pub goal: Option<String>,
    /// Its state.
    pub state: RunStatus,
    /// Whether it waits for a person: for a review, or because it stopped before its goal and does not continue
    /// automatically.
    #[serde(default)]
    pub needs_you: bool,
    /// Why it is not running, if it is not.
    pub reason: Option<StopReason>,
    /// When it was queued.
    #[schemars(with = "String")]
    pub queued_at: Timestamp,
    /// When it reached a terminal state.
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// For an isolated run: how much of it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedView>,
}

/// How much of an isolated run is published: the state of its branch in the repository from which it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedView {
    /// A working tree of that repository.
    pub to: WirePath,
    /// The commit at the tip of the branch there; null if the branch does not exist, or `behind` is null.
    pub tip: Option<String>,
    /// Commits of the run that the branch does not have yet; null if the last check failed.
    pub behind: Option<u32>,
    /// Why it is behind, or why that is unknown.
    pub why: Option<StopReason>,
}

/// An agent's question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionView {
    /// The beginning of the hash of its text.
    pub id: String,
    /// The question.
    pub text: String,
    /// A person's answer.
    pub answer: Option<String>,
    /// The working tree of the run.
    pub path: WirePath,
    /// Id of the run.
    pub run: String,
}

/// Why a run stopped, and how to continue it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopReason {
    /// One sentence.
    pub message: String,
    /// How to continue, as a sentence.
    pub command: Option<String>,
    /// The commands in that sentence, for clients that run or copy them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
}

impl StopReason {
    /// Builds a reason from a sentence and the possible next steps, which may be empty.
    pub fn new(message: impl Into<String>, ways: impl Into<NextSteps>) -> Self {
        let (command, commands) = ways.into().into_parts();
        Self { message: message.into(), command, commands }
    }

    /// Returns it with the name of the run in its commands: needed where other runs have not ended.
    #[must_use]
    pub fn about_run(self, run: &str) -> Self {
        let steps = self.next_steps().unwrap_or_default();
        Self::new(self.message, steps.about_run(run))
    }

    /// Returns the possible next steps, if there are any.
    pub fn next_steps(&self) -> Option<NextSteps> {
        let text = self.command.clone()?;
        Some(NextSteps { text, commands: self.commands.clone() })
    }
}

/// One repository in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusView {
    /// The repository.
    pub repo: RepoView,
    /// The run at the head of the queue, otherwise the last one that ended.
    pub run: Option<RunView>,
    /// Its isolated runs, each in a separate workspace, including those that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<RunSummary>,
    /// The run's branch that the working tree is on, if it is on one and no run is at work there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_run: Option<RunCheckout>,
}

impl StatusView {
    /// Whether the repository or its run waits for a person.
    pub fn needs_you(&self) -> bool {
        self.repo.held.is_some() || self.run.as_ref().is_some_and(|run| run.summary.needs_you)
    }
}

/// Disk space that a workspace uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceDisk {
    /// Its directory.
    pub path: WirePath,
    /// The working tree in which its run was requested.
    pub source: WirePath,
    /// Id of the run.
    pub run: String,
    /// Whether `runnerctl gc` would remove the workspace: its run has ended, and all its work exists elsewhere.
    pub removable: bool,
    /// Size of its files in bytes.
    pub bytes: u64,
}

/// `repo.disk`: disk space that the workspaces of isolated runs use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskView {
    /// The directory of all workspaces, which may be missing.
    pub folder: WirePath,
    /// The workspaces.
    pub workspaces: Vec<WorkspaceDisk>,
    /// Free bytes on the disk of that directory; null if the system does not report it.
    pub free_bytes: Option<u64>,
}

/// One run in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Identity and state.
    pub summary: RunSummary,
    /// When a waiting run continues automatically.
    #[schemars(with = "Option<String>")]
    pub wait_until: Option<Timestamp>,
    /// Agents whose services were unavailable at the last request, and are not used now.
    pub outages: Vec<OutageView>,
    /// The phase of the live iteration.
    pub phase: Option<PhaseView>,
    /// The task of the live iteration, otherwise the next one.
    pub node: Option<NodeRef>,
    /// Leaf tasks that have passed.
    pub leaves_passed: u32,
    /// Leaf tasks of the tree.
    pub leaves_total: u32,
    /// Number of the next iteration, or of the live one.
    pub iteration: u32,
    /// Tokens and cost of the run, including tries without a commit.
    pub usage: UsageTotal,
    /// The list prices of costs that no agent reported and no configuration sets: "list price" and its date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_price: Option<String>,
    /// Time spent in sessions and guards, in milliseconds.
    pub elapsed_ms: u64,
    /// The guard's result on the base.
    pub baseline: Option<GuardOutcome>,
    /// The last iterations, newest first.
    pub recent: Vec<IterationView>,
    /// Open questions.
    pub questions: u32,
    /// Files that stay in the working tree and are not on the branch.
    pub held_back: Vec<String>,
    /// Paths that the last iteration changed without permission.
    pub reverted: Vec<String>,
    /// Files of the guard definition whose committed versions differ from the ones that a person accepted.
    pub guard_changed: Vec<String>,
    /// The tests that its guard names.
    #[serde(default)]
    pub tests: TestsView,
    /// Tests that failed in this run and then passed on the same files, last first, at most 50.
    #[serde(default)]
    pub flakes: Vec<FlakyTest>,
    /// The watched files of the guard; null if the committed state cannot be read.
    pub guard: Option<GuardFiles>,
    /// Files with secrets from the last iterations.
    pub secrets: Vec<SecretFinding>,
    /// Other notices about the last iterations: moved references, incomplete logs.
    pub notices: Vec<String>,
    /// The level of containment of its processes.
    pub containment: Containment,
    /// A requested stop that has not taken effect yet.
    pub pending: Option<PendingControl>,
    /// Ids of the notes that stay in the prompt, because no session has returned an answer yet.
    pub notes: Vec<String>,
    /// A person's changes to its files that are not committed yet, oldest first.
    pub changes: Vec<ChangeView>,
    /// A git command that takes long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_wait: Option<GitWaitView>,
}

/// A git command that takes long; the daemon does nothing else in the repository until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitWaitView {
    /// The subcommand.
    pub command: String,
    /// The program that git waits for, such as gpg or a filter; null if there is none.
    pub program: Option<String>,
    /// When it was started.
    #[schemars(with = "String")]
    pub since: Timestamp,
}

/// A person's request that waits for its commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeView {
    /// The command that asked for it.
    pub command: String,
    /// Id of the note, question or task, or the key, if it is known in advance.
    pub id: Option<String>,
    /// The request, in one line.
    pub text: String,
}

/// A kind of agent whose service is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutageView {
    /// The kind.
    pub agent: String,
    /// The service's message.
    pub why: String,
    /// When the service is tried again.
    #[schemars(with = "String")]
    pub until: Timestamp,
}

/// A requested stop that has not taken effect yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PendingControl {
    /// Pause after the iteration, or at once.
    Pause,
    /// Cancel.
    Cancel,
}

/// A live phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseView {
    /// The phase.
    pub name: PhaseName,
    /// When it started.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// When the iteration began.
    #[schemars(with = "String")]
    pub iteration_since: Timestamp,
    /// Time budget of the iteration, in milliseconds.
    pub budget_ms: u64,
    /// The kind of agent chosen for the session.
    pub agent: Option<String>,
    /// The obstacle that prevents its effect, if there is one.
    pub obstacle: Option<String>,
    /// Whether it is the guard's run on the base, before the first iteration.
    pub baseline: bool,
}

/// A task and its place in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRef {
    /// Id.
    pub id: String,
    /// Ids from the root to the task, both included.
    pub path: Vec<String>,
    /// Title.
    pub title: String,
    /// Attempts charged so far.
    pub attempts: u32,
    /// Attempts allowed.
    pub max_attempts: u32,
    /// The role of its session, or of the next one.
    pub role: Option<Role>,
    /// Tokens and cost of its sessions, including failed ones and those without a service; null if not requested.
    pub usage: Option<UsageTotal>,
}

/// One finished iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationView {
    /// Id of the run.
    pub run: String,
    /// Number.
    pub iter: u32,
    /// Task of the session.
    pub node: String,
    /// How it ended.
    pub verdict: VerdictName,
    /// `status=` of its commit.
    pub status: IterationStatus,
    /// `guard=` of its commit.
    pub guard: GuardOutcome,
    /// Its commit, if it has one.
    pub commit: Option<String>,
    /// Title of the task, if its commit has it.
    pub title: Option<String>,
    /// First line of the summary.
    pub summary: Option<String>,
    /// When it ended.
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Tokens and cost, including tries without a commit.
    pub usage: Option<UsageTotal>,
    /// Kind and version of the agent.
    pub agent: Option<String>,
    /// How the tests that passed changed, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsChange>,
    /// What failed before the guard passed on the same files, if that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<FlakyRunView>,
    /// Whether it is in the records of this machine with this commit; absent if its record was removed or none is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<bool>,
    /// Number of the wait that it led to, if it left no commit: the iteration was then started again under the same
    /// number.
    pub wait: Option<u32>,
    /// The duration of each of its phases, in order; empty if its record is missing.
    pub phases: Vec<PhaseTime>,
}

impl From<&IterationMeta> for IterationView {
    /// The fields that only its record has.
    fn from(meta: &IterationMeta) -> Self {
        Self {
            run: meta.run.clone(),
            iter: meta.iter,
            node: meta.node.clone(),
            verdict: meta.verdict,
            status: meta.status,
            guard: meta.guard,
            commit: meta.commit.clone(),
            title: None,
            summary: meta.detail.clone(),
            ended_at: Some(meta.ended_at),
            duration_ms: Some(meta.duration_ms()),
            usage: Some(UsageTotal::from(&meta.usage)),
            agent: Some(meta.agent.clone()),
            tests: None,
            flaky: None,
            recorded: None,
            wait: None,
            phases: meta.phases.clone(),
        }
    }
}

/// The reply to `select`: the next task, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SelectView {
    /// This task is next.
    Open {
        /// The task.
        node: NodeRef,
    },
    /// This task is next, but has no attempts left.
    Stuck {
        /// The task.
        node: NodeRef,
    },
    /// Every task has passed.
    Complete,
}

/// One check of `validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckView {
    /// The subject of the check: `layout`, `config`, `programs`, `prompts`, `nodes`, `goal`, `tree`, `run_state`,
    /// `feedback`, `identity`.
    pub name: String,
    /// Whether the check succeeded.
    pub ok: bool,
    /// The exact faults, if it failed.
    pub faults: Vec<String>,
}

/// A file as the daemon read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextView {
    /// Its text; invalid UTF-8 is replaced, and control characters are made visible.
    pub text: String,
    /// The offset for the next read, in bytes.
    pub next_offset: u64,
    /// Whether the end was reached and nothing more will be written.
    pub complete: bool,
    /// Size of the file in bytes when it was read; null if the daemon does not report it.
    pub size: Option<u64>,
}
