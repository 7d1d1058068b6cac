//! Parameters of the requests: one struct each, sent as the only positional parameter.
//!
//! New fields get a default. Unknown fields are ignored, so that an older daemon can report what it lacks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::begin::{ForkParams, InitParams, StartParams, UserDefaults};
use crate::path::WirePath;
use crate::verify::AuditPass;

/// The first request on every connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handshake {
    /// Name of the client's program.
    pub client: String,
    /// Its version.
    pub version: String,
    /// The API version that it speaks.
    pub api_version: u32,
}

/// Names a repository by any path inside its working tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtPath {
    /// Absolute path.
    pub path: WirePath,
}

/// `repo.remove`: the repository to forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoveParams {
    /// Its absolute path as registered, or any path inside its working tree.
    pub path: WirePath,
    /// Whether to also forget its isolated runs if its directory is missing. Their workspaces stay.
    #[serde(default)]
    pub force: bool,
}

/// Names a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtRun {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix; default: the only one that has not ended, otherwise the last one.
    #[serde(default)]
    pub run: Option<String>,
}

/// The part of its own environment that a client passes on: `PATH`, the locale, and the variables that `[env]` names.
///
/// The values are kept in a private file of the daemon, never in the repository or in logs.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerEnv(pub BTreeMap<String, String>);

impl std::fmt::Debug for CallerEnv {
    /// Prints only the names: the values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// `run.step`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// Whether the commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `verify.rerun`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunParams {
    /// Absolute path in the repository, which may be bare.
    pub path: WirePath,
    /// Passes from a reply of `verify.run`; the guards of their commits are run.
    pub passes: Vec<AuditPass>,
    /// Revision: passes in its first-parent history are left out.
    #[serde(default)]
    pub since: Option<String>,
    /// Whether the guards' commands are confirmed, and the user's git configuration if a session has changed it.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `verify.run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyParams {
    /// Absolute path in the repository, which may be bare.
    pub path: WirePath,
    /// Id of the run or a unique prefix; default: the run that is checked out, or the only one.
    #[serde(default)]
    pub run: Option<String>,
    /// Findings in commits that this revision contains are only counted; the whole branch is still audited.
    #[serde(default)]
    pub since: Option<String>,
    /// The text of a file of allowed signers for the runner's commits; without it, their signatures are not checked.
    #[serde(default)]
    pub signers: Option<String>,
    /// The text of a file of allowed signers for people's reviews; without it, their signatures are not checked.
    #[serde(default)]
    pub reviewers: Option<String>,
}

/// `run.pause`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// End the session at once and commit its work as `interrupted`.
    #[serde(default)]
    pub now: bool,
}

/// `run.resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResumeParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// Do not wait for the time at which the run would continue automatically.
    #[serde(default)]
    pub now: bool,
    /// Iterations granted beyond `max_iterations`.
    #[serde(default)]
    pub more: Option<u32>,
    /// Whether the commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `tree.validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidateParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// The caller's environment, in which programs are searched for.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `note.add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoteParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// The note to the next session, at most 8 KiB.
    pub text: String,
}

/// `guard.accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Absolute path of the only file to accept, which may have been deleted; default: all changed files.
    #[serde(default)]
    pub file: Option<WirePath>,
}

/// `question.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionsParams {
    /// Absolute path inside a working tree; default: all repositories.
    #[serde(default)]
    pub path: Option<WirePath>,
    /// Include answered questions, after the open ones.
    #[serde(default)]
    pub all: bool,
}

/// `question.answer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// Absolute path inside a working tree; default: the one with the question.
    #[serde(default)]
    pub path: Option<WirePath>,
    /// Id of the question, or a unique prefix; `RUN/ID` if several runs ask the same question.
    pub id: String,
    /// The answer, at most 8 KiB.
    pub text: String,
}

/// `tree.retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Id of a task without remaining attempts, or a unique prefix.
    pub node: String,
}

/// `tree.add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Id of the parent, or a unique prefix.
    pub parent: String,
    /// Title of the task.
    pub title: String,
    /// The result that the task must achieve.
    pub goal: String,
    /// Testable statements.
    #[serde(default)]
    pub acceptance: Vec<String>,
    /// Id of the sibling after which it is added.
    #[serde(default)]
    pub after: Option<String>,
    /// Position among the siblings, counted from 0; default: last.
    #[serde(default)]
    pub order: Option<i64>,
}

/// `tree.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Absolute path of a file with the new tree, which may be larger than a request. It is read before the reply.
    pub file: WirePath,
    /// `digest` of the tree that was opened; refused if the tree at the tip has a different one.
    #[serde(default)]
    pub opened: Option<String>,
}

/// `daemon.log_filter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogFilter {
    /// Directives in the form of `RUST_LOG`.
    pub filter: String,
}

/// `daemon.vouch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VouchParams {
    /// Ids of the requesting processes, as the daemon sees them.
    pub pids: Vec<i32>,
    /// The method that they want to call.
    pub method: String,
}

/// `daemon.signing_key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKeyParams {
    /// Create the key if it does not exist.
    pub make: bool,
}

/// `config.show`, `doctor.repository`: a working tree, and what its caller sets for every repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtSettings {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// The caller's own defaults, which apply if there is no configuration yet.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
}

/// `doctor.agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// The caller's environment, in which programs are searched for.
    #[serde(default)]
    pub env: CallerEnv,
    /// The caller's own defaults, which apply if there is no configuration yet.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
}

/// `config.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigKey {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Dotted key, e.g. `guard.command`; default: the whole configuration.
    #[serde(default)]
    pub key: Option<String>,
    /// The caller's own defaults, which apply if there is no configuration yet.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
}

/// `config.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigSetParams {
    /// The run; default: the run of this working tree that can continue; if there is none, the file in the working
    /// tree.
    #[serde(flatten)]
    pub at: AtRun,
    /// Dotted key, e.g. `guard.command`.
    pub key: String,
    /// The value as TOML, or a bare word if only a string is possible; null restores the default.
    pub value: Option<String>,
    /// The caller's own defaults, for a new configuration.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
}

/// `config.text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigTextParams {
    /// The run; default: the run of this working tree that can continue; if there is none, the file in the working
    /// tree.
    #[serde(flatten)]
    pub at: AtRun,
    /// The caller's own defaults, for a new configuration.
    #[serde(default)]
    pub defaults: Option<UserDefaults>,
}

/// `config.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEditParams {
    /// The run; default: the run of this working tree that can continue; if there is none, the file in the working
    /// tree.
    #[serde(flatten)]
    pub at: AtRun,
    /// The edited text.
    pub text: String,
    /// Digest of the text that was opened; refused if the current text has a different one.
    #[serde(default)]
    pub opened: Option<String>,
}

/// Names an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtIteration {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// Number of the iteration; default: the live one, otherwise the last one.
    #[serde(default)]
    pub iter: Option<u32>,
    /// Number of a wait at that iteration; default: the committed iteration, otherwise the last wait.
    #[serde(default)]
    pub wait: Option<u32>,
}

/// `iteration.export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportParams {
    /// The run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Name of the record: `0007`, or `0007.w2` for a wait. Default: the files of the run as a whole.
    #[serde(default)]
    pub record: Option<String>,
    /// Absolute path of the target directory: new or empty.
    pub to: WirePath,
}

/// `iteration.gc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Number of ended runs whose records stay: the ones written last.
    pub keep: u32,
    /// Report what would be removed, without removing anything.
    #[serde(default)]
    pub dry_run: bool,
    /// Ids of runs whose workspaces are removed even if they contain uncommitted files.
    #[serde(default)]
    pub discard: Vec<String>,
}

/// `log.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogParams {
    /// The iteration.
    #[serde(flatten)]
    pub at: AtIteration,
    /// The file of its record.
    pub stream: LogStream,
    /// First byte to read.
    #[serde(default)]
    pub offset: u64,
    /// Return the bytes unchanged, as base64: control characters and invalid UTF-8 are not replaced.
    #[serde(default)]
    pub raw: bool,
}

/// A file of an iteration's record that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// The agent's output.
    Agent,
    /// The guard's output.
    Guard,
    /// The guard's output with the accepted definition, if it ran with both.
    GuardAccepted,
    /// The guard's output the second time, if it failed and ran once more on the same files.
    GuardRerun,
    /// The guard's output on the base, before the first iteration; it belongs to the run, whichever iteration is named.
    Baseline,
    /// The reviewer's output.
    Review,
    /// The reviewer's decision, and the reasons.
    ReviewAnswer,
    /// The prompt.
    Prompt,
    /// The changes of the iteration.
    Diff,
    /// The answer.
    Output,
    /// The journal of the iteration: one event per line.
    Events,
}

impl LogStream {
    /// Returns the file's name in the record of an iteration; [`Baseline`](Self::Baseline) is next to the records.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Agent => "executor.log",
            Self::Guard => "guard.log",
            Self::GuardAccepted => "guard-accepted.log",
            Self::GuardRerun => "guard-rerun.log",
            Self::Baseline => "baseline.log",
            Self::Review => "reviewer.log",
            Self::ReviewAnswer => "review.json",
            Self::Prompt => "prompt.md",
            Self::Diff => "diff.patch",
            Self::Output => "output.json",
            Self::Events => "events.jsonl",
        }
    }
}

/// `iteration.activity`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityParams {
    /// The iteration.
    #[serde(flatten)]
    pub at: AtIteration,
    /// First byte of the agent's output to read: 0, or `next_offset` of a reply.
    #[serde(default)]
    pub offset: u64,
}

/// `events.subscribe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    /// Only events of the repository that contains this path.
    #[serde(default)]
    pub path: Option<WirePath>,
    /// First event to send; default: the next one.
    #[serde(default)]
    pub since: Option<u64>,
    /// Include the output of agents and guards.
    #[serde(default)]
    pub output: bool,
}
