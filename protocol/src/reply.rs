//! Replies that are not views of something persistent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::doctor::GuardFiles;
use crate::event::Activity;
use crate::path::WirePath;
use crate::tree::TaskTree;
use crate::view::{CheckView, IterationView, RunSummary, StopReason};
use crate::words::{ReviewVerdict, RunStatus};

/// `run.init`: the created files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InitReply {
    /// The working tree.
    pub path: WirePath,
    /// Files that were created, relative to the working tree.
    pub created: Vec<String>,
    /// Existing files that were kept.
    pub kept: Vec<String>,
    /// Existing files that were overwritten.
    pub overwritten: Vec<String>,
}

/// `run.start`: the queued run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartReply {
    /// The run.
    pub run: RunSummary,
    /// Runs of the same repository before it.
    pub ahead: u32,
    /// Whether an existing run with this id continues.
    pub resumed: bool,
    /// The new workspace of the run; null if the run works in place, or continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<CreatedWorkspace>,
    /// The start of its branch: as named by the request, else the branch or the commit of HEAD; null if the run
    /// continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The branch to land on, and to switch the working tree back to afterwards; null if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
    /// The commit that HEAD was at, if it was on no branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detached: Option<String>,
    /// The settings that it takes from another run, because its base has none; null if there is nothing to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<StartSettings>,
    /// The files that it watches for its guard; null if the run continues, or if they cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardFiles>,
    /// Whether it begins with the configuration of HEAD because the work tree has no file of it.
    #[serde(default)]
    pub head_config: bool,
}

/// Settings that a new run takes from the newest run that the daemon started in the repository, or from the caller's
/// own defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartSettings {
    /// Id of that run; null for the caller's defaults.
    pub run: Option<String>,
    /// The keys that differ from the defaults.
    pub keys: Vec<TakenSetting>,
}

/// A key that a new run takes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenSetting {
    /// The dotted key.
    pub key: String,
    /// Its value as TOML.
    pub value: String,
}

/// The workspace that was created for an isolated run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedWorkspace {
    /// Its directory: the working tree of the run.
    pub path: WirePath,
    /// The commit that is checked out in it.
    pub base: String,
    /// Paths with uncommitted changes in the source, which the run does not see; only the first ones.
    pub not_taken: Vec<String>,
    /// The total number.
    pub not_taken_count: u64,
    /// Warnings, such as links that lead out of the workspace, or a disk that is almost full.
    pub warnings: Vec<String>,
}

/// `run.step`: the iteration that ran, and the new state of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepReply {
    /// The run.
    pub run: RunSummary,
    /// The iteration; null if none could run, and `run.reason` gives the reason.
    pub iteration: Option<IterationView>,
}

/// `run.pause`, `run.resume`, `run.cancel`: the run after the request was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlReply {
    /// The run.
    pub run: RunSummary,
    /// Whether the request takes effect only after the current iteration or session has ended.
    pub pending: bool,
    /// Whether the same request was made before, and this one has changed nothing.
    #[serde(default)]
    pub already: bool,
}

/// `daemon.vouch`: none of the processes runs inside an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VouchReply {
    /// The method that may be called for them.
    pub method: String,
}

/// `daemon.signing_key`: the runner's own key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKeyReply {
    /// The file of the private key, in the daemon's state directory.
    pub file: WirePath,
    /// The line for git's file of allowed signers.
    pub signer: String,
    /// Whether the key was created by this request.
    #[serde(rename = "made")]
    pub is_new: bool,
}

/// `note.add`, `question.answer`, `tree.add`, `tree.retry`, `tree.edit`, `guard.accept`, and within `config.set`: a person's request, acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReply {
    /// The run.
    pub run: RunSummary,
    /// The command that the subject of its commit names.
    pub command: String,
    /// Id of the note, question or task, or the key; null for an edit, an acceptance, and a task that has not been
    /// added yet.
    pub id: Option<String>,
    /// The change, as described by its commit.
    pub summary: String,
    /// Whether the change is pending: it is committed before the next session.
    pub pending: bool,
    /// What the request waits for.
    pub waits_for: Option<String>,
    /// Its commit, if there is one yet.
    pub commit: Option<String>,
}

/// `tree.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeReply {
    /// The tree at HEAD.
    pub tree: TaskTree,
    /// SHA-256 of the tree's canonical form, for `tree.edit`.
    pub digest: String,
    /// The task of the live iteration, otherwise the next task.
    pub current: Option<String>,
    /// State of the run, if there is one.
    pub state: Option<RunStatus>,
}

/// `review.approve`, `review.reject`: a person's decision, accepted; it is committed as a separate iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewReply {
    /// The run, which continues.
    pub run: RunSummary,
    /// Id of the reviewed task.
    pub node: String,
    /// Number of the iteration that finished the task.
    pub iteration: u32,
    /// The decision.
    pub verdict: ReviewVerdict,
}

/// `tree.validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidateReply {
    /// The working tree.
    pub path: WirePath,
    /// Whether every check succeeded.
    pub ok: bool,
    /// The checks in order.
    pub checks: Vec<CheckView>,
}

/// `config.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReply {
    /// The value as JSON; the whole configuration as an object if no key was named.
    pub value: serde_json::Value,
    /// Which of its variables a caller should pass on with `run.start`, `run.step` and `run.resume`, besides `PATH`,
    /// the home directory and the locale: names, and globs with `*`. Empty if a key was named.
    pub variables: Vec<String>,
}

/// `config.set`: the new value of the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigSetReply {
    /// The dotted key.
    pub key: String,
    /// Its value as TOML; null if the default applies.
    pub value: Option<String>,
    /// The change on the run's branch, if a run can continue; null if the file in the working tree was written.
    pub change: Option<ChangeReply>,
    /// The file in the working tree.
    pub file: WirePath,
}

/// `config.text`: the text to edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigTextReply {
    /// The text.
    pub text: String,
    /// Digest of the current text; an edit of a different text is refused.
    pub digest: String,
    /// The file in the working tree.
    pub file: WirePath,
}

/// `config.edit`: the result of the edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEditReply {
    /// The keys whose values the edit changes.
    pub keys: Vec<String>,
    /// The change on the run's branch, if a run can continue; null if the file in the working tree was written.
    pub change: Option<ChangeReply>,
    /// The file in the working tree.
    pub file: WirePath,
}

/// `config.path`: the configuration files, which may be missing or not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigPathReply {
    /// The repository's file in the working tree.
    pub file: WirePath,
    /// The daemon's own file.
    pub daemon_file: WirePath,
}

/// `config.show`: every key and the origin of its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigShowReply {
    /// The repository's file in the working tree, which need not exist.
    pub file: WirePath,
    /// Its keys.
    pub settings: Vec<SettingView>,
    /// The daemon's file, which need not exist.
    pub daemon_file: WirePath,
    /// Its keys; changes since the daemon started apply from its next start.
    pub daemon_settings: Vec<SettingView>,
}

/// `iteration.get`: one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationReply {
    /// The iteration.
    pub iteration: IterationView,
    /// The record's directory.
    pub record: WirePath,
    /// The facts, if the record has them.
    pub meta: Option<crate::meta::IterationMeta>,
    /// The failures that test runners and compilers reported in the guard's output; only the first ones.
    pub failures: Vec<ReportedFailure>,
}

/// A failure reported by a test runner or a compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedFailure {
    /// The name of the failed test, or of the failed check.
    pub name: String,
    /// The lines about it, starting with the one that names it.
    pub lines: Vec<String>,
}

/// `iteration.activity`: steps of an agent's work, from its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityReply {
    /// The steps, oldest first; empty if the format of the agent's output is unknown.
    pub steps: Vec<ActivityStep>,
    /// The offset for the next request.
    pub next_offset: u64,
    /// Whether the end was reached and nothing more will be written.
    pub complete: bool,
}

/// One step of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityStep {
    /// The byte offset in the agent's output of the line that reports the step.
    pub offset: u64,
    /// The step.
    #[serde(flatten)]
    pub activity: Activity,
}

/// `memory.get`: the texts from which prompts are built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryReply {
    /// The commit from which they are read; null if they are read from a working tree.
    pub commit: Option<String>,
    /// The existing texts: goal, progress, notes, and the files that agents append to.
    pub files: Vec<MemoryFile>,
}

/// One of the texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryFile {
    /// Its name without a directory, like `assumptions.md`.
    pub name: String,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// `iteration.export`: the copied files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportReply {
    /// Id of the run.
    pub run: String,
    /// The directory with the copy.
    pub to: WirePath,
    /// Number of copied files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Paths that were left out because they are not regular files.
    pub left_out: Vec<WirePath>,
    /// Names of the run's records, if no record was requested; each of them can be copied.
    pub records: Vec<String>,
}

/// `iteration.gc`: the removed files, or with `dry_run` those that would be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcReply {
    /// The working tree.
    pub path: WirePath,
    /// Runs whose records were removed, newest first.
    pub removed: Vec<RunRecords>,
    /// Runs whose records stay.
    pub kept: Vec<RunRecords>,
    /// Workspaces of isolated runs, and whether each was removed.
    pub workspaces: Vec<WorkspaceSwept>,
    /// Bytes of the removed files.
    pub freed_bytes: u64,
    /// Whether this was a dry run, which removes nothing.
    pub dry_run: bool,
}

/// The workspace of an ended run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceSwept {
    /// Id of the run.
    pub run: String,
    /// Its directory.
    pub path: WirePath,
    /// Size of its files in bytes.
    pub bytes: u64,
    /// The reason why the workspace stays; null if it was removed, or would be in a dry run.
    pub kept: Option<StopReason>,
    /// If only uncommitted files keep it: the number of those files, and of directories that contain only such files.
    #[serde(default)]
    pub uncommitted: u64,
}

/// The size of a run's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecords {
    /// Id of the run.
    pub run: String,
    /// Records of iterations and waits.
    pub records: u32,
    /// Bytes of their files.
    pub bytes: u64,
}

/// The origin of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingOrigin {
    /// No file sets it.
    Default,
    /// A file sets it.
    File,
    /// A flag or variable at the daemon's start overrides its file.
    Start,
    /// No file sets it; the price is the service's list price.
    ListPrice,
}

/// A key of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingView {
    /// The dotted key.
    pub key: String,
    /// Its value as TOML; null if it is not set.
    pub value: Option<String>,
    /// The origin of the value.
    pub origin: SettingOrigin,
    /// The exact origin: `FILE:LINE`, or a variable.
    pub place: Option<String>,
    /// The possible words, if its value is one of a few.
    pub choices: Vec<String>,
}
