//! What clients see of the daemon, its repositories and runs.
//!
//! Views are plain data for display; no decision is based on them. New fields are added with a default, none is removed
//! within an API version, and clients ignore unknown fields.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::{Command, NextSteps};
use crate::doctor::GuardFiles;
use crate::meta::{IterationMeta, PhaseTime, SecretFinding};
use crate::path::WirePath;
use crate::state::UsageTotal;
use crate::words::{Containment, GuardOutcome, IterationStatus, PhaseName, Role, RunStatus, VerdictName};

/// The daemon itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonView {
    /// Version of the program.
    pub version: String,
    /// Version of the API: must be equal on both sides.
    pub api_version: u32,
    /// Process id.
    pub pid: u32,
    /// When it started.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// The socket it listens on.
    pub socket: WirePath,
    /// The folder of its durable state.
    pub state_folder: WirePath,
    /// How tightly it holds the processes of an iteration.
    pub containment: Containment,
    /// The levels of containment that it does not use, the weakest first.
    pub containment_missing: Vec<MissingLevel>,
    /// Registered repositories.
    pub repositories: u32,
    /// Runs that are being driven.
    pub running: u32,
    /// Whether it ends after the current iterations.
    pub draining: bool,
    /// The log filter in force.
    pub log_filter: String,
    /// The folder of its log; none: standard error, which a service manager may keep.
    pub log: Option<WirePath>,
    /// The file that it was started from.
    pub program: Option<WirePath>,
    /// Whether another file has taken the place of that one: a restart starts another program.
    pub outdated: bool,
    /// Whether a service manager has passed the socket, and keeps it when the daemon ends.
    pub socket_passed: bool,
    /// Whether the machine may go to sleep by itself.
    pub sleep: SleepView,
}

/// Whether the machine may go to sleep by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SleepView {
    /// Whether the daemon keeps it awake.
    pub inhibited: bool,
    /// Why not, where it does not.
    pub why: Option<String>,
}

/// A level of containment that is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingLevel {
    /// Which.
    pub level: Containment,
    /// Why not.
    pub why: String,
    /// What a person can do to have it.
    pub raise: String,
}

/// A registered repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepoView {
    /// Id of the repository: the start of a digest of its git folder.
    pub id: String,
    /// The work tree that was registered.
    pub path: WirePath,
    /// Why its state could not be read, where that is so.
    pub held: Option<StopReason>,
    /// Its runs that are not over, in order.
    pub queue: Vec<RunSummary>,
    /// The work tree that its run was asked for in, where this is the workspace of an isolated run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<WirePath>,
    /// Id of the repository that its run was begun from, where this is the workspace of an isolated run.
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
    /// The work tree it runs in.
    pub path: WirePath,
    /// What its goal is called: the first heading or line of it; null where nobody has told.
    pub goal: Option<String>,
    /// Its state.
    pub state: RunStatus,
    /// Why it is not running, where that is so.
    pub reason: Option<StopReason>,
    /// When it was put into the queue.
    #[schemars(with = "String")]
    pub queued_at: Timestamp,
    /// When it reached a terminal state.
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// How far it is published, where it is an isolated run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedView>,
}

/// How far an isolated run is published: what its branch is in the repository that it was begun from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedView {
    /// A work tree of that repository.
    pub to: WirePath,
    /// The commit that the branch names there; null where there is no such branch, or `behind` is null.
    pub tip: Option<String>,
    /// Commits of the run that the branch does not have yet; null where the last look at it has failed.
    pub behind: Option<u32>,
    /// Why it is behind, or why that is not known, where that is so.
    pub why: Option<StopReason>,
}

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionView {
    /// The start of the hash of its text.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// What a person has answered.
    pub answer: Option<String>,
    /// The work tree of the run.
    pub path: WirePath,
    /// Id of the run.
    pub run: String,
}

/// Why a run stopped, and what goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopReason {
    /// One sentence.
    pub message: String,
    /// What goes on, as a sentence.
    pub command: Option<String>,
    /// The commands of that sentence, for whoever runs or copies them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
}

impl StopReason {
    /// Makes a reason of a sentence and what can be done about it; an empty text is nothing.
    pub fn new(message: impl Into<String>, ways: impl Into<NextSteps>) -> Self {
        let (command, commands) = ways.into().into_parts();
        Self { message: message.into(), command, commands }
    }

    /// Returns what can be done about it, where there is something.
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
    /// The run at the head of the queue, else the last one that ended.
    pub run: Option<RunView>,
    /// Its isolated runs, each in a workspace of its own, those that are over included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolated: Vec<RunSummary>,
}

/// Room on the disk that a workspace takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceDisk {
    /// Its folder.
    pub path: WirePath,
    /// The work tree that its run was asked for in.
    pub source: WirePath,
    /// Id of the run.
    pub run: String,
    /// Whether the run is over: `runnerctl gc` may remove it.
    pub over: bool,
    /// Bytes of its files.
    pub bytes: u64,
}

/// `repo.disk`: what the workspaces of isolated runs take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskView {
    /// The folder of all workspaces, which need not be there.
    pub folder: WirePath,
    /// The workspaces.
    pub workspaces: Vec<WorkspaceDisk>,
    /// Bytes that are free on the disk of that folder; null where the system does not tell.
    pub free_bytes: Option<u64>,
}

/// One run in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Identity and state.
    pub summary: RunSummary,
    /// When a waiting run goes on by itself.
    #[schemars(with = "Option<String>")]
    pub wait_until: Option<Timestamp>,
    /// Kinds of agents whose services were not available when they were last asked, and are not asked now.
    pub outages: Vec<OutageView>,
    /// What the live iteration is doing.
    pub phase: Option<PhaseView>,
    /// The node of the live iteration, else the next one.
    pub node: Option<NodeRef>,
    /// Leaves that pass.
    pub leaves_passed: u32,
    /// Leaves of the tree.
    pub leaves_total: u32,
    /// Number of the next iteration, or of the live one.
    pub iteration: u32,
    /// What the run has consumed, tries that left no commit included.
    pub usage: UsageTotal,
    /// What costs are computed from that no agent has told and no configuration states: "list price" and its date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_price: Option<String>,
    /// Time spent in iterations, in milliseconds.
    pub elapsed_ms: u64,
    /// Result of the guard on the base.
    pub baseline: Option<GuardOutcome>,
    /// The last iterations, newest first.
    pub recent: Vec<IterationView>,
    /// Questions that are open.
    pub questions: u32,
    /// Files that stay in the work tree and out of the branch.
    pub held_back: Vec<String>,
    /// Paths that the last iteration changed without right.
    pub reverted: Vec<String>,
    /// Files of the guard's definition that are committed otherwise than a person has accepted them.
    pub guard_changed: Vec<String>,
    /// What is watched for the guard; null where the committed state cannot be read.
    pub guard: Option<GuardFiles>,
    /// Files of the last iterations that hold secrets.
    pub secrets: Vec<SecretFinding>,
    /// What else somebody should know of the last iterations: moved references, logs that are not complete.
    pub notices: Vec<String>,
    /// How tightly its processes are held.
    pub containment: Containment,
    /// A stop that was asked for and has not taken effect.
    pub pending: Option<PendingControl>,
    /// Ids of the notes that no session has answered to.
    pub notes: Vec<String>,
    /// What a person has asked of its files and what is not committed yet, oldest first.
    pub changes: Vec<ChangeView>,
    /// A command of git's that has not ended for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_wait: Option<GitWaitView>,
}

/// A command of git's that has not ended for a while: until it has, nothing else is done in the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitWaitView {
    /// The subcommand.
    pub command: String,
    /// The program that git waits for, such as gpg or a filter; null where it waits for none.
    pub program: Option<String>,
    /// When it was started.
    #[schemars(with = "String")]
    pub since: Timestamp,
}

/// A request of a person's that waits for its commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeView {
    /// The command that asked for it.
    pub command: String,
    /// Id of the note, the question or the node, or the key, where it is known before it is done.
    pub id: Option<String>,
    /// What is asked, in one line.
    pub text: String,
}

/// A kind of agent whose service is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutageView {
    /// The kind.
    pub agent: String,
    /// What it said.
    pub why: String,
    /// When it is asked again.
    #[schemars(with = "String")]
    pub until: Timestamp,
}

/// A stop that was asked for and has not taken effect.
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
    /// Which one.
    pub name: PhaseName,
    /// When it began.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// When the iteration began.
    #[schemars(with = "String")]
    pub iteration_since: Timestamp,
    /// Budget of the iteration, in milliseconds.
    pub budget_ms: u64,
    /// The kind of agent that was chosen for the session.
    pub agent: Option<String>,
    /// What keeps its effect from being done, where that is so.
    pub obstacle: Option<String>,
    /// Whether it is the guard on the base, before the first iteration.
    pub baseline: bool,
}

/// A node by its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRef {
    /// Id.
    pub id: String,
    /// Ids from the root to the node, both included.
    pub path: Vec<String>,
    /// Title.
    pub title: String,
    /// Attempts charged so far.
    pub attempts: u32,
    /// Attempts allowed.
    pub max_attempts: u32,
    /// What the session is, or would be, asked to be.
    pub role: Option<Role>,
    /// What its sessions have consumed, those that failed and that found no service included; null where that is not
    /// asked for.
    pub usage: Option<UsageTotal>,
}

/// One finished iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationView {
    /// Id of the run.
    pub run: String,
    /// Number.
    pub iter: u32,
    /// Node that was worked on.
    pub node: String,
    /// How it ended.
    pub verdict: VerdictName,
    /// `status=` of its commit.
    pub status: IterationStatus,
    /// `guard=` of its commit.
    pub guard: GuardOutcome,
    /// Its commit, where it has one.
    pub commit: Option<String>,
    /// Title of the node, where its commit tells it.
    pub title: Option<String>,
    /// First line of the summary.
    pub summary: Option<String>,
    /// When it ended.
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// What it consumed, tries that left no commit included.
    pub usage: Option<UsageTotal>,
    /// Kind and version of the agent.
    pub agent: Option<String>,
    /// Number of the wait that it led to, where it left no commit: the iteration was begun again under the same number.
    pub wait: Option<u32>,
    /// How long each of its phases took, in order; empty where its record is gone.
    pub phases: Vec<PhaseTime>,
}

impl From<&IterationMeta> for IterationView {
    /// What its record alone tells.
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
            wait: None,
            phases: meta.phases.clone(),
        }
    }
}

/// The answer to `select`: which leaf is next, and why there may be none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SelectView {
    /// This leaf is next.
    Open {
        /// The leaf.
        node: NodeRef,
    },
    /// This leaf is next and has no attempts left.
    Stuck {
        /// The leaf.
        node: NodeRef,
    },
    /// Every leaf passes.
    Complete,
}

/// One check of `validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckView {
    /// What was checked: `layout`, `config`, `programs`, `prompts`, `nodes`, `goal`, `tree`, `run_state`, `feedback`, `identity`.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// The exact faults, where it does not.
    pub faults: Vec<String>,
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingOrigin {
    /// No file sets it.
    Default,
    /// A file sets it.
    File,
    /// What the daemon was started with stands above its file.
    Start,
    /// No file sets it, and a price is as the service lists it.
    ListPrice,
}

/// A key of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingView {
    /// The dotted key.
    pub key: String,
    /// Its value as TOML; null where it is off.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: SettingOrigin,
    /// Where exactly: `FILE:LINE`, or a variable.
    pub place: Option<String>,
    /// The words that it may be, where it is one of a few.
    pub choices: Vec<String>,
}

/// A file as the daemon read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextView {
    /// Its text; bytes that are not UTF-8 are replaced, control characters made visible.
    pub text: String,
    /// Where the next read goes on, in bytes.
    pub next_offset: u64,
    /// Whether the end was reached and nobody writes any more.
    pub complete: bool,
    /// Bytes of the file when it was read; null from a daemon that does not say.
    pub size: Option<u64>,
}
