//! Replies that are not views of something persistent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Activity;
use crate::path::WirePath;
use crate::tree::TaskTree;
use crate::view::{CheckView, IterationView, RunSummary, SettingView, StopReason};
use crate::words::{ReviewVerdict, RunStatus};

/// `run.init`: what was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InitReply {
    /// The work tree.
    pub path: WirePath,
    /// Files that were made, relative to the work tree.
    pub created: Vec<String>,
    /// Files that were there and kept.
    pub kept: Vec<String>,
    /// Files that were there and overwritten.
    pub overwritten: Vec<String>,
}

/// `run.start`: the run as it was put into the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartReply {
    /// The run.
    pub run: RunSummary,
    /// Runs of the same repository before it.
    pub ahead: u32,
    /// Whether a run with this id goes on.
    pub resumed: bool,
    /// What is to be told of the workspace that was made for it; null where it works in place, or goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<CreatedWorkspace>,
}

/// A workspace that was made for an isolated run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedWorkspace {
    /// Its folder: the work tree of the run.
    pub path: WirePath,
    /// The commit that it was made at.
    pub base: String,
    /// Paths of the source that have uncommitted changes, which the run does not see; the first of many.
    pub not_taken: Vec<String>,
    /// How many there are.
    pub not_taken_count: u64,
    /// What else somebody should know: links that lead out of it, a disk that fills up.
    pub warnings: Vec<String>,
}

/// `run.step`: the iteration that ran, and the state the run is in now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepReply {
    /// The run.
    pub run: RunSummary,
    /// The iteration; null where none could be run, and `run.reason` says why.
    pub iteration: Option<IterationView>,
}

/// `run.pause`, `run.resume`, `run.cancel`: the run after the request was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlReply {
    /// The run.
    pub run: RunSummary,
    /// Whether the request takes effect only after the current iteration or session has ended.
    pub pending: bool,
}

/// `daemon.vouch`: none of the processes is inside an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VouchReply {
    /// The method that may be called for them.
    pub method: String,
}

/// `daemon.signing_key`: a key of the runner's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKeyReply {
    /// The file of its private half, in the daemon's own state.
    pub file: WirePath,
    /// The line that git's file of allowed signers has for it.
    pub signer: String,
    /// Whether it was made now.
    pub made: bool,
}

/// `note.add`, `question.answer`, `tree.add`, `tree.retry`, `tree.edit`, `guard.accept`, and within `config.set`: a person's request, acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReply {
    /// The run.
    pub run: RunSummary,
    /// The command that it is named after in its commit.
    pub command: String,
    /// Id of the note, the question or the node, or the key; null for an edit, for what is accepted, and for a node that waits.
    pub id: Option<String>,
    /// What is done, as its commit says.
    pub summary: String,
    /// Whether it waits: it is committed before the next session.
    pub pending: bool,
    /// What it waits for.
    pub waits_for: Option<String>,
    /// Its commit, once there is one.
    pub commit: Option<String>,
}

/// `tree.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeReply {
    /// The tree at HEAD.
    pub tree: TaskTree,
    /// SHA-256 of its canonical form, for `tree.edit`.
    pub digest: String,
    /// The node of the live iteration, else the next leaf.
    pub current: Option<String>,
    /// State of the run, where there is one.
    pub state: Option<RunStatus>,
}

/// `review.approve`, `review.reject`: a person's word, taken; it is committed as an iteration of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewReply {
    /// The run, which goes on.
    pub run: RunSummary,
    /// Id of the node that was reviewed.
    pub node: String,
    /// Number of the iteration that has finished it.
    pub iteration: u32,
    /// What was decided.
    pub verdict: ReviewVerdict,
}

/// `tree.validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidateReply {
    /// The work tree.
    pub path: WirePath,
    /// Whether every check holds.
    pub ok: bool,
    /// The checks in order.
    pub checks: Vec<CheckView>,
}

/// `config.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReply {
    /// The value as JSON; the whole configuration as an object where no key was named.
    pub value: serde_json::Value,
    /// Which of its variables a caller is to pass on with `run.start`, `run.step` and `run.resume`, besides `PATH`, the home
    /// and the locale: names, and globs with `*`. Empty where a key was named.
    pub variables: Vec<String>,
}

/// `config.set`: what the key is now, or will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigSetReply {
    /// The dotted key.
    pub key: String,
    /// Its value as TOML; null where the default holds.
    pub value: Option<String>,
    /// What became of the request where a run goes on; null where the file in the work tree was written.
    pub change: Option<ChangeReply>,
    /// The file in the work tree.
    pub file: WirePath,
}

/// `config.text`: the text that an edit begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigTextReply {
    /// The text.
    pub text: String,
    /// Digest of the text that is there; an edit of another one is refused.
    pub digest: String,
    /// The file in the work tree.
    pub file: WirePath,
}

/// `config.edit`: what became of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEditReply {
    /// The keys whose values it changes.
    pub keys: Vec<String>,
    /// What became of the request where a run goes on; null where the file in the work tree was written.
    pub change: Option<ChangeReply>,
    /// The file in the work tree.
    pub file: WirePath,
}

/// `config.path`: the files, which need be neither valid nor there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigPathReply {
    /// The repository's file in the work tree.
    pub file: WirePath,
    /// The daemon's own file.
    pub daemon_file: WirePath,
}

/// `config.show`: every key and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigShowReply {
    /// The repository's file in the work tree, which need not exist.
    pub file: WirePath,
    /// Its keys.
    pub settings: Vec<SettingView>,
    /// The daemon's file, which need not exist.
    pub daemon_file: WirePath,
    /// Its keys; what has changed since the daemon started holds from its next start on.
    pub daemon_settings: Vec<SettingView>,
}

/// `iteration.get`: one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationReply {
    /// The iteration.
    pub iteration: IterationView,
    /// The record's folder.
    pub record: WirePath,
    /// The facts, where the record holds them.
    pub meta: Option<crate::meta::IterationMeta>,
    /// What has failed in its guard, as runners of tests and compilers have reported it; the first ones, bounded.
    pub failures: Vec<ReportedFailure>,
}

/// What a runner of tests or a compiler has reported as failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedFailure {
    /// What has failed.
    pub name: String,
    /// What was said of it, the line that names it first.
    pub lines: Vec<String>,
}

/// `iteration.activity`: steps of an agent's work, as its output tells them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityReply {
    /// The steps, oldest first; none from an agent whose output has no form that is known.
    pub steps: Vec<ActivityStep>,
    /// Where the next request goes on.
    pub next_offset: u64,
    /// Whether the end was reached and nobody writes any more.
    pub complete: bool,
}

/// One step of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityStep {
    /// Where the line that tells it begins in the agent's output, in bytes.
    pub offset: u64,
    /// The step.
    #[serde(flatten)]
    pub activity: Activity,
}

/// `memory.get`: the texts that sessions are told from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReply {
    /// The commit that they are read from; null where they are read from a work tree.
    pub commit: Option<String>,
    /// The texts that are there: goal, progress, notes, and what agents append to.
    pub files: Vec<MemoryFile>,
}

/// One of the texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFile {
    /// Its name without a folder, like `assumptions.md`.
    pub name: String,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// `iteration.export`: what was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportReply {
    /// Id of the run.
    pub run: String,
    /// The folder that it is in now.
    pub to: WirePath,
    /// Files that were copied.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// What was left out since it is no file.
    pub left_out: Vec<WirePath>,
    /// Names of the run's records, where none was asked for: each can be copied.
    pub records: Vec<String>,
}

/// `iteration.gc`: what was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcReply {
    /// The work tree.
    pub path: WirePath,
    /// Runs whose records are gone, the newest first.
    pub removed: Vec<RunRecords>,
    /// Runs whose records stay.
    pub kept: Vec<RunRecords>,
    /// Workspaces of isolated runs, and what has become of each.
    pub workspaces: Vec<WorkspaceSwept>,
    /// Bytes of the files that are gone.
    pub freed_bytes: u64,
    /// Whether nothing was removed, as was asked for.
    pub dry_run: bool,
}

/// A workspace whose run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceSwept {
    /// Id of the run.
    pub run: String,
    /// Its folder.
    pub path: WirePath,
    /// Bytes of its files.
    pub bytes: u64,
    /// Why it stays; null where it is gone, or would be.
    pub kept: Option<StopReason>,
}

/// How much there is of a run's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecords {
    /// Id of the run.
    pub run: String,
    /// Records of iterations and waits.
    pub records: u32,
    /// Bytes of their files.
    pub bytes: u64,
}
