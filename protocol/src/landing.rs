//! Landing the results of runs: the request, the commits that are or would be made, and the result of a later audit.
//!
//! Data only. `runner-core` decides which commits are combined, and what is refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::request::CallerEnv;
use crate::words::words;

words! {
    /// The form in which a run's result becomes commits of a branch.
    LandForm {
        /// One commit for each task that passed.
        Leaves = "leaves",
        /// One commit for the whole run.
        Squash = "squash",
        /// One merge commit, which keeps the run's own history.
        Merge = "merge",
    }
}

words! {
    /// The outcome of landing a run.
    LandOutcome {
        /// Its commits are on the branch; in a preview, they would be.
        Landed = "landed",
        /// Everything was on the branch already.
        AlreadyLanded = "already_landed",
        /// It could not be landed; nothing was added to the branch.
        LeftOut = "left_out",
    }
}

words! {
    /// Whether a landed commit is the correct merge of its run and the branch before it.
    LandedState {
        /// The run's branch is proven up to the recorded commit, and the repeated merge is the same.
        Same = "same",
        /// Its files or its message differ from the repeated merge.
        Differs = "differs",
        /// The recorded commit is not on the run's branch, or an audit of that branch finds a violation before it.
        Unproven = "unproven",
        /// The merge cannot be repeated: the run's branch is missing here, in whole or in part.
        Unknown = "unknown",
    }
}

/// `land.run`: lands runs on a branch, or previews the result.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of a command")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Ids of runs, or unique prefixes; several runs land in this order.
    pub runs: Vec<String>,
    /// Short name of the branch; default: the branch recorded when the runs were started.
    #[serde(default)]
    pub onto: Option<String>,
    /// Revision at which that branch is created if it does not exist.
    #[serde(default)]
    pub from: Option<String>,
    /// The form of the commits.
    #[serde(default = "leaves")]
    pub form: LandForm,
    /// Land the run's `.runner/` too.
    #[serde(default)]
    pub with_runner: bool,
    /// Continue if a part of a run's branch could not be audited.
    #[serde(default)]
    pub unproven: bool,
    /// Files that land as they are, although they do not show that a conflict is resolved.
    #[serde(default)]
    pub accepted: Vec<String>,
    /// Only return the result: runs no guard and moves no branch.
    #[serde(default)]
    pub preview: bool,
    /// Whether the guards' commands are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment, for the guards.
    #[serde(default)]
    pub env: CallerEnv,
}

fn leaves() -> LandForm {
    LandForm::Leaves
}

/// `land.resolve`: queues a run that merges the work of a run that cannot be landed automatically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Id of the run, or a unique prefix.
    pub run: String,
    /// Short name of the branch; default: the branch recorded when the run was started.
    #[serde(default)]
    pub onto: Option<String>,
    /// Whether the commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `land.candidates`: asks which runs can land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidatesParams {
    /// Absolute path inside the working tree.
    pub path: WirePath,
    /// Short name of the branch; default: the branch recorded when each run was started.
    #[serde(default)]
    pub onto: Option<String>,
}

/// `land.verify`: repeats the merges of a branch's landed commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedParams {
    /// Absolute path in the repository, which may be bare.
    pub path: WirePath,
    /// Short name of the branch, or a revision.
    pub branch: String,
}

/// `land.run`: the landed runs, and the new tip of the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandReply {
    /// Short name of the branch.
    pub onto: String,
    /// Its previous tip; null if the branch was created.
    pub before: Option<String>,
    /// Its new tip; in a preview, the tip that it would have.
    pub after: String,
    /// Whether this was a preview, which moves no branch.
    pub preview: bool,
    /// The working tree that was updated; null if the branch is not checked out.
    pub work_tree: Option<WirePath>,
    /// The run's branch that the requested working tree is on; null if it is on another branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_run: Option<String>,
    /// The run's branch that the working tree was on before it was switched to `back`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// The branch that the working tree was switched to from that of a run, or that leads back from it: the one that the
    /// run landed on, or, for a delivery, the one that it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
    /// The first files there with changes that are not committed, which keep the working tree on the branch of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    /// The branch of the last run that landed, if its settings differ from the defaults and the branch that it landed on
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// The runs, in the order in which they landed.
    pub runs: Vec<RunLanding>,
}

/// The outcome for one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLanding {
    /// Id of the run.
    pub run: String,
    /// The outcome.
    pub outcome: LandOutcome,
    /// The new commits, oldest first; for a run that had landed already, the newest of its commits.
    pub commits: Vec<LandedCommit>,
    /// The reason why it was left out; null if it was not.
    pub refusal: Option<LandRefusal>,
    /// Other notices, in sentences.
    pub notes: Vec<String>,
}

/// A commit that landing made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedCommit {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// The task that passed with it; `-` for a person's own commit.
    pub node: String,
    /// The run's commit whose state it lands.
    pub of: String,
}

/// Why a run does not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandRefusal {
    /// The problem, with the task and the files.
    pub message: String,
    /// The next commands to type, one per line, if there are any.
    pub hint: Option<String>,
}

/// `land.verify`: the checked commits of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedReport {
    /// The branch, or the revision, as requested.
    pub branch: String,
    /// The commit at its tip.
    pub tip: String,
    /// Its landed commits, oldest first.
    pub commits: Vec<LandedCheck>,
}

/// The check of one landed commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedCheck {
    /// Id of the run.
    pub run: String,
    /// The commit.
    pub landed: LandedCommit,
    /// The result of the check.
    pub state: LandedState,
    /// Paths that differ, at most ten.
    pub differs: Vec<String>,
    /// A notice, for example about a different version of git; null without one.
    pub note: Option<String>,
}
