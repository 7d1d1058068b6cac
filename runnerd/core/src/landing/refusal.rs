//! Why something does not land, in one sentence each, with what to type next.

use protocol::doctor::LANDING_GIT;
use protocol::shell;

use super::resolution::ResolutionFault;
use crate::message::RulesError;

/// Most files that a sentence names.
const MAX_SHOWN: usize = 10;

/// Why a run does not land.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LandingRefusal {
    /// No leaf has passed since the last landing, or ever.
    #[error("no task of run {run} has passed yet: there is nothing to land")]
    NothingPassed {
        /// Id of the run.
        run: String,
    },
    /// The whole run has landed already.
    #[error("all of run {run} has landed already")]
    AlreadyLanded {
        /// Id of the run.
        run: String,
    },
    /// The run and the branch have no commit in common.
    #[error("run {run} and the branch have no commit in common")]
    Unrelated {
        /// Id of the run.
        run: String,
    },
    /// The run begins on another run, which is not on the branch.
    #[error("run {run} begins on run {on}, which the branch does not have")]
    BaseNotLanded {
        /// Id of the run.
        run: String,
        /// Id of the other run.
        on: String,
    },
    /// One of its commits was made under other rules.
    #[error("run {run} does not land: commit {commit} cannot be read: {why}")]
    Rules {
        /// Id of the run.
        run: String,
        /// Id of the commit.
        commit: String,
        /// Why the commit cannot be read.
        why: RulesError,
    },
    /// Its audit found violations, or was incomplete.
    #[error("run {run} is not proven: {why}")]
    NotProven {
        /// Id of the run.
        run: String,
        /// The first finding, and the number of others.
        why: String,
        /// Whether the audit merely could not examine everything.
        is_unseen: bool,
    },
    /// One of its sessions has merged the branch itself.
    #[error("a session of run {run} has merged {onto} itself: its tasks cannot be told apart")]
    MergedBySession {
        /// Id of the run.
        run: String,
        /// Name of the branch.
        onto: String,
    },
    /// A merge would bring in ancestors that the branch lacks, without their files.
    #[error("run {run} begins at {commit}, which {onto} has not: a merge would take it for merged without its changes")]
    MissingAncestors {
        /// Id of the run.
        run: String,
        /// The commit at which it begins, abbreviated.
        commit: String,
        /// Name of the branch.
        onto: String,
    },
    /// The files of a leaf, or of the whole run, conflict.
    #[error("{} conflicts in {}", describe_subject(node.as_deref(), run), join_paths(paths))]
    Conflict {
        /// Id of the run.
        run: String,
        /// Id of the leaf; `None` for the whole run.
        node: Option<String>,
        /// The conflicting files.
        paths: Vec<String>,
        /// Whether the whole run merges as one commit.
        fits_as_squash: bool,
    },
    /// A submodule was moved on both sides.
    #[error("{} conflicts in the submodule {}", describe_subject(node.as_deref(), run), join_paths(paths))]
    Submodule {
        /// Id of the run.
        run: String,
        /// Id of the leaf; `None` for the whole run.
        node: Option<String>,
        /// Paths of the submodules.
        paths: Vec<String>,
    },
    /// Merging one by one results in other files than merging everything at once.
    #[error("the tasks of run {run}, merged one by one, do not lead to the result of the whole run")]
    Diverges {
        /// Id of the run.
        run: String,
    },
    /// Its files do not show that it has brought in the run that it was created for.
    #[error("run {run} does not show that it brings in run {settled}: {}", describe_faults(faults))]
    Unresolved {
        /// Id of the run.
        run: String,
        /// Id of the run that it was to bring in.
        settled: String,
        /// The files, and why they do not show it.
        faults: Vec<(String, ResolutionFault)>,
    },
    /// The git program cannot merge without a work tree.
    #[error(
        "git {version} cannot merge trees by themselves: nothing lands with it; install git {}.{} or later where the daemon finds \
         it first",
        LANDING_GIT[0],
        LANDING_GIT[1]
    )]
    OldGit {
        /// Its version, as it reports it.
        version: String,
    },
    /// The accepted guard is red on the result.
    #[error("the guard of run {run} is red on the result ({how}){}", indent_output(tail))]
    RedGuard {
        /// Id of the run.
        run: String,
        /// How the guard ended.
        how: String,
        /// The most informative lines of its output.
        tail: String,
    },
}

impl LandingRefusal {
    /// Returns the commands to type next, one per line; `onto` is the branch.
    pub fn hint(&self, onto: &str) -> Option<String> {
        let land = |words: &[&str]| {
            let command = ["runnerctl", "land"].into_iter().chain(words.iter().copied());
            shell::join_args(command.chain(["--onto", onto]))
        };
        Some(match self {
            Self::NothingPassed { run } => shell::join_args(["runnerctl", "tree", "--run", run.as_str()]),
            Self::AlreadyLanded { .. } => shell::join_args(["runnerctl", "verify", "--landed", onto]),
            Self::Unrelated { run } => {
                shell::join_args(["git", "log", "--oneline", "--graph", &format!("runner/{run}"), onto])
            }
            // The branch of a delivery begins at what the remote has.
            Self::BaseNotLanded { on, .. } if onto.starts_with("deliver/") => {
                shell::join_args(["runnerctl", "deliver", on.as_str()])
            }
            Self::BaseNotLanded { run, on } => land(&[on, run]),
            Self::Rules { .. } => shell::join_args(["runnerctl", "start", "--id", "NEW", "--base", onto]),
            Self::NotProven { run, is_unseen: true, .. } => land(&[run, "--unproven"]),
            Self::NotProven { run, .. } => shell::join_args(["runnerctl", "verify", "--run", run.as_str()]),
            Self::MergedBySession { run, .. } | Self::MissingAncestors { run, .. } => land(&[run, "--as", "squash"]),
            Self::Conflict { run, fits_as_squash: true, .. } => {
                format!("{}\n{}", land(&[run, "--as", "squash"]), land(&[run, "--resolve"]))
            }
            Self::Conflict { run, .. } => land(&[run, "--resolve"]),
            Self::Diverges { run } => land(&[run, "--as", "squash"]),
            Self::Unresolved { run, faults, .. } => {
                let paths = faults.iter().flat_map(|(path, _)| ["--accept", path]);
                let accept: Vec<&str> = std::iter::once(run.as_str()).chain(paths).collect();
                let diff = shell::join_args(["git", "diff", &format!("{onto}...runner/{run}")]);
                format!("{diff}\n{}", land(&accept))
            }
            Self::Submodule { run, .. } => shell::join_args(["git", "merge", "--no-ff", &format!("runner/{run}")]),
            Self::OldGit { .. } => shell::join_args(["runnerctl", "doctor"]),
            Self::RedGuard { run, .. } => land(&[run, "--resolve"]),
        })
    }
}

fn describe_subject(node: Option<&str>, run: &str) -> String {
    node.map_or_else(|| format!("run {run}"), |node| format!("task {node} of run {run}"))
}

fn join_paths(paths: &[String]) -> String {
    let list = paths.iter().take(MAX_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MAX_SHOWN) {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

fn describe_faults(faults: &[(String, ResolutionFault)]) -> String {
    join_paths(&faults.iter().map(|(path, fault)| format!("{path} {fault}")).collect::<Vec<_>>())
}

fn indent_output(tail: &str) -> String {
    if tail.is_empty() { String::new() } else { format!(":\n{}", tail.trim_end()) }
}
