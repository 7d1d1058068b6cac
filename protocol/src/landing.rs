//! Landing the results of runs: the request, the commits that are or would be made, and the result of a later audit.
//!
//! Data only. `runner-core` decides which commits are combined, and what is refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::request::CallerEnv;
use crate::words::words;

words! {
    /// In which form the result of a run becomes commits of a branch.
    LandForm {
        /// One commit for each leaf that passed.
        Leaves = "leaves",
        /// One commit for the whole run.
        Squash = "squash",
        /// One merge commit, which keeps the run's own history.
        Merge = "merge",
    }
}

words! {
    /// What became of a run that was to land.
    LandOutcome {
        /// Its commits are on the branch; in a preview: would be.
        Landed = "landed",
        /// All of it was there before.
        AlreadyLanded = "already_landed",
        /// It did not fit: nothing of it was taken.
        LeftOut = "left_out",
    }
}

words! {
    /// Whether a landed commit is what its run and the branch before it lead to.
    LandedState {
        /// The run's branch is proven up to the commit that it names, and the merge, made again, is the same.
        Same = "same",
        /// It has other files, or says something else of itself.
        Differs = "differs",
        /// The commit that it names is not on the run's branch, or an audit of that branch finds a violation before it.
        Unproven = "unproven",
        /// It cannot be made again: the run's branch is not here, or not all of it.
        Unknown = "unknown",
    }
}

/// `land.run`: brings runs onto a branch, or tells what that would make.
#[expect(clippy::struct_excessive_bools, reason = "each is an option that somebody types")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Ids of runs, or unique prefixes; several are a train.
    pub runs: Vec<String>,
    /// Short name of the branch; default: the one that was recorded when the runs were started.
    #[serde(default)]
    pub onto: Option<String>,
    /// Revision at which that branch is made, if there is none.
    #[serde(default)]
    pub from: Option<String>,
    /// In which form.
    #[serde(default = "leaves")]
    pub form: LandForm,
    /// Bring `.runner/` along as the run has it.
    #[serde(default)]
    pub with_runner: bool,
    /// Go on where a part of a run's branch could not be checked.
    #[serde(default)]
    pub unproven: bool,
    /// Tell what would be made; no guard is run, and nothing moves.
    #[serde(default)]
    pub preview: bool,
    /// The guards' commands are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment, for the guards.
    #[serde(default)]
    pub env: CallerEnv,
}

fn leaves() -> LandForm {
    LandForm::Leaves
}

/// `land.resolve`: puts a run into the queue that brings in what does not fit by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    /// Absolute path inside the work tree.
    pub path: WirePath,
    /// Id of the run, or a unique prefix.
    pub run: String,
    /// Short name of the branch; default: the one that was recorded when the run was started.
    #[serde(default)]
    pub onto: Option<String>,
    /// The commands in the repository's configuration are confirmed.
    #[serde(default)]
    pub confirmed: bool,
    /// The caller's environment.
    #[serde(default)]
    pub env: CallerEnv,
}

/// `land.verify`: makes the merges of a branch's landed commits again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedParams {
    /// Absolute path in the repository, a bare one included.
    pub path: WirePath,
    /// Short name of the branch, or a revision.
    pub branch: String,
}

/// `land.run`: what landed, and where the branch is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandReply {
    /// Short name of the branch.
    pub onto: String,
    /// Its tip before; null where it was made.
    pub before: Option<String>,
    /// Its tip now; in a preview, what it would be.
    pub after: String,
    /// Whether nothing was moved because only a preview was asked for.
    pub preview: bool,
    /// The work tree that was brought along; null where none has the branch checked out.
    pub work_tree: Option<WirePath>,
    /// The runs, in the order in which they landed.
    pub runs: Vec<RunLanding>,
}

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLanding {
    /// Id of the run.
    pub run: String,
    /// What became of it.
    pub outcome: LandOutcome,
    /// The commits that were made, oldest first; of a run that had landed before, the newest of those.
    pub commits: Vec<LandedCommit>,
    /// Why it was left out; null where it was not.
    pub refusal: Option<LandRefusal>,
    /// What else is to be known, in sentences.
    pub notes: Vec<String>,
}

/// A commit that brings something home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedCommit {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// The node that passed with it; `-` for a person's own commit.
    pub node: String,
    /// The commit of the run whose state it brings.
    pub of: String,
}

/// Why a run does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandRefusal {
    /// What is wrong, naming leaf and files.
    pub message: String,
    /// The commands to type next, one per line, where there are such.
    pub hint: Option<String>,
}

/// `land.verify`: what was found on a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedReport {
    /// The branch, or the revision, as it was named.
    pub branch: String,
    /// The commit that it is at.
    pub tip: String,
    /// Its landed commits, oldest first.
    pub commits: Vec<LandedCheck>,
}

/// One landed commit, looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedCheck {
    /// Id of the run.
    pub run: String,
    /// The commit.
    pub landed: LandedCommit,
    /// What it is.
    pub state: LandedState,
    /// Paths in which it differs, the first ten.
    pub differs: Vec<String>,
    /// What is to be known of it, such as another version of git; null where nothing is.
    pub note: Option<String>,
}
