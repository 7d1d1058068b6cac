//! Parameters of the requests: one struct each, sent as the only positional parameter.
//!
//! New fields get a default. Unknown fields are ignored, so that an older daemon can report what it lacks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::verify::AuditPass;

/// The first request on every connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handshake {
    /// Name of the client's program.
    pub client: String,
    /// Its version.
    pub version: String,
    /// Version of the API it speaks.
    pub api_version: u32,
}

/// Names a repository by any path inside its work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtPath {
    /// Absolute path.
    pub path: WirePath,
}

/// `repo.remove`: which repository is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoveParams {
    /// Its absolute path, as it is registered, or any path inside its work tree.
    pub path: WirePath,
    /// Whether its isolated runs are forgotten with it where its folder is gone. Their workspaces stay.
    #[serde(default)]
    pub force: bool,
}

/// Names a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtRun {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix; default: the one at the head of the queue, else the last one.
    #[serde(default)]
    pub run: Option<String>,
}

/// `run.init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InitParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Overwrite what is there.
    #[serde(default)]
    pub force: bool,
}

/// What a client passes on of its own environment: `PATH`, locale and what `[env]` names.
///
/// The values are kept in a private file of the daemon, never in the repository or in logs.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerEnv(pub BTreeMap<String, String>);

impl std::fmt::Debug for CallerEnv {
    /// Prints the names alone: the values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// `run.start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Text of a new goal, at most 64 KiB.
    #[serde(default)]
    pub goal: Option<String>,
    /// Id of the run.
    #[serde(default)]
    pub id: Option<String>,
    /// Revision that the branch begins from.
    #[serde(default)]
    pub base: Option<String>,
    /// Keep the task tree although the id changes.
    #[serde(default)]
    pub keep_tree: bool,
    /// Put the run into the queue and leave it paused there.
    #[serde(default)]
    pub queue_only: bool,
    /// Whether it works in a workspace of its own, not in this work tree; default: as `[workspace] kind` says.
    #[serde(default)]
    pub isolated: Option<bool>,
    /// The commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `run.fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run that is forked, or a unique prefix; default: the one at the head of the queue, else the last one.
    #[serde(default)]
    pub run: Option<String>,
    /// Number of its iteration whose commit the new run begins from.
    pub iter: u32,
    /// Id of the new run.
    #[serde(default)]
    pub id: Option<String>,
    /// Put the new run into the queue and leave it paused there.
    #[serde(default)]
    pub queue_only: bool,
    /// The commands in the commit's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `run.step`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// The commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `verify.rerun`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunParams {
    /// Absolute path in the repository, a bare one included.
    pub path: WirePath,
    /// Passes as `verify.run` has told them; the guards of their commits are run.
    pub passes: Vec<AuditPass>,
    /// Revision: what its commit has on first parents is left out.
    #[serde(default)]
    pub since: Option<String>,
    /// The guards' commands are confirmed, and the user's git configuration where a session has changed it.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `verify.run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyParams {
    /// Absolute path in the repository, a bare one included.
    pub path: WirePath,
    /// Id of the run or a unique prefix; the one that is checked out, or the only one, by default.
    #[serde(default)]
    pub run: Option<String>,
    /// Findings in commits that this revision contains are counted and left out; the whole branch is looked at all the same.
    #[serde(default)]
    pub since: Option<String>,
    /// Who may sign the runner's commits, as a file of allowed signers says it; nothing is asked of signatures without.
    #[serde(default)]
    pub signers: Option<String>,
    /// Who may review, in the same form; nothing is asked of the signatures of people's words without.
    #[serde(default)]
    pub reviewers: Option<String>,
}

/// `run.pause`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseParams {
    /// Absolute path inside the work tree.
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
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// Do not wait for the time that a waiting run waits for.
    #[serde(default)]
    pub now: bool,
    /// Iterations granted beyond `max_iterations`.
    #[serde(default)]
    pub more: Option<u32>,
    /// The commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `tree.validate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValidateParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// The caller's environment, in which programs are looked for.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `note.add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoteParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// What the next session is told, at most 8 KiB.
    pub text: String,
}

/// `guard.accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Absolute path of the only file that is accepted, be it gone; default: all that have changed.
    #[serde(default)]
    pub file: Option<WirePath>,
}

/// `question.list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionsParams {
    /// Absolute path inside a work tree; default: all repositories.
    #[serde(default)]
    pub path: Option<WirePath>,
    /// Answered ones too, after those that are open.
    #[serde(default)]
    pub all: bool,
}

/// `question.answer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// Absolute path inside a work tree; default: the one that has the question.
    #[serde(default)]
    pub path: Option<WirePath>,
    /// Id of the question, or a unique beginning of it; `RUN/ID` where runs ask the same.
    pub id: String,
    /// The answer, at most 8 KiB.
    pub text: String,
}

/// `tree.retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Id of the exhausted node, or a unique beginning of it.
    pub node: String,
}

/// `tree.add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Id of the parent, or a unique beginning of it.
    pub parent: String,
    /// What the node is called.
    pub title: String,
    /// What is to be true when it is done.
    pub goal: String,
    /// Testable statements.
    #[serde(default)]
    pub acceptance: Vec<String>,
    /// Id of the sibling that it comes behind.
    #[serde(default)]
    pub after: Option<String>,
    /// Its place among the siblings; default: the last.
    #[serde(default)]
    pub order: Option<i64>,
}

/// `tree.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Absolute path of a file with the new tree: it may be larger than a request. It is read before the answer.
    pub file: WirePath,
    /// `digest` of the tree that was opened; another one at the tip is refused.
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
    /// Ids of the processes that ask, as the daemon sees them.
    pub pids: Vec<i32>,
    /// The method that they want to have called.
    pub method: String,
}

/// `daemon.signing_key`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SigningKeyParams {
    /// Make it where there is none.
    pub make: bool,
}

/// `config.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigKey {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Dotted key, e.g. `guard.command`; default: the whole configuration.
    #[serde(default)]
    pub key: Option<String>,
}

/// `config.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigSetParams {
    /// Which run; default: the one of this work tree that goes on, else no run but the file in the work tree.
    #[serde(flatten)]
    pub at: AtRun,
    /// Dotted key, e.g. `guard.command`.
    pub key: String,
    /// The value as TOML, or a bare word where only a string is possible; null has the default hold again.
    pub value: Option<String>,
}

/// `config.edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEditParams {
    /// Which run; default: the one of this work tree that goes on, else no run but the file in the work tree.
    #[serde(flatten)]
    pub at: AtRun,
    /// The text that was left.
    pub text: String,
    /// Digest of the text that was opened; another one by now is refused.
    #[serde(default)]
    pub opened: Option<String>,
}

/// Names an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtIteration {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// Number of the iteration; default: the live one, else the last one.
    #[serde(default)]
    pub iter: Option<u32>,
    /// Number of a wait under that number; default: what was committed, else the last wait.
    #[serde(default)]
    pub wait: Option<u32>,
}

/// `iteration.export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportParams {
    /// Which run.
    #[serde(flatten)]
    pub at: AtRun,
    /// Name of the record: `0007`, or `0007.w2` for a wait. Default: what belongs to the run as a whole.
    #[serde(default)]
    pub record: Option<String>,
    /// Absolute path of the folder that is made, or that is there and empty.
    pub to: WirePath,
}

/// `iteration.gc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Runs whose records stay: those that were written last. A run that is not over does not count.
    pub keep: u32,
    /// Tell what would be removed, and remove nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// `log.read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogParams {
    /// Which iteration.
    #[serde(flatten)]
    pub at: AtIteration,
    /// Which file of its record.
    pub stream: LogStream,
    /// First byte wanted.
    #[serde(default)]
    pub offset: u64,
    /// Leave control characters and bytes that are not UTF-8 to the reader: the text is base64.
    #[serde(default)]
    pub raw: bool,
}

/// A file of an iteration's record that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// What the agent printed.
    Agent,
    /// What the guard printed.
    Guard,
    /// What the guard printed with the accepted definition, where it ran with both.
    GuardAccepted,
    /// What the guard printed on the base, before the first iteration: the run's, whichever iteration is named.
    Baseline,
    /// What the reviewer printed.
    Review,
    /// What the review decided, and why.
    ReviewAnswer,
    /// The prompt.
    Prompt,
    /// What the iteration changed.
    Diff,
    /// The answer.
    Output,
    /// The journal of the iteration: an event per line.
    Events,
}

impl LogStream {
    /// Returns the file's name in the record of an iteration; [`Baseline`](Self::Baseline) stands beside those.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Agent => "executor.log",
            Self::Guard => "guard.log",
            Self::GuardAccepted => "guard-accepted.log",
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
    /// Which iteration.
    #[serde(flatten)]
    pub at: AtIteration,
    /// First byte of the agent's output that is looked at: 0, or `next_offset` of a reply.
    #[serde(default)]
    pub offset: u64,
}

/// `events.subscribe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    /// Only events of the repository that holds this path.
    #[serde(default)]
    pub path: Option<WirePath>,
    /// First event wanted; default: those that come.
    #[serde(default)]
    pub since: Option<u64>,
    /// Send output of agents and guards too.
    #[serde(default)]
    pub output: bool,
}
