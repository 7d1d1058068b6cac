//! What is done next to publish an isolated run: a choice from what was read of its workspace and its source.
//!
//! It reads nothing itself. Whoever publishes looks, asks, does the one step and asks again, and looks again after each
//! move of a reference, so that a death between two steps leaves what the next look finds.

mod anew;

use protocol::view::StopReason;

pub use self::anew::{Anew, Left, Lost, Start, anew, gone};

use crate::shell::quoted;

/// Digits of a commit's id that people are told.
const SHORT: usize = 12;

/// How a reference of the source stands to the tip of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is no such reference.
    Missing,
    /// It names a commit that the tip has come from.
    Behind,
    /// It names the tip.
    Same,
    /// It names something else, which the run did not make.
    Foreign,
}

/// Whether the source has all that the tip is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// Nobody has looked since something was sent.
    Unknown,
    /// It has.
    Yes,
    /// It has not.
    Lacking,
    /// It has not, though all was sent to it.
    LackingAll,
}

/// What was read of workspace and source.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The reference that keeps the run's objects in the source.
    pub at: Standing,
    /// The run's branch in the source.
    pub branch: Standing,
    /// Whether what is kept of the run beside its branch is kept in the source too.
    pub has_extras: bool,
    /// Whether what is new was sent since it was looked for the first time.
    pub is_sent: bool,
    /// Whether the source has all objects.
    pub whole: Whole,
    /// Whether the branch was published before.
    pub was_published: bool,
    /// Whether a branch of another name leaves no room for this one.
    pub is_in_the_way: bool,
    /// Whether a work tree of the source has the branch checked out, or git is at work there.
    pub is_in_use: bool,
    /// Whether the id of the run is reserved there for another one.
    pub is_reserved_for_another: bool,
}

impl Seen {
    /// Returns what is known of the source once objects were sent: all is there where each of them was seen to be, and they
    /// were sent upon a branch that was looked at when it was moved.
    pub fn when_sent(&self, is_each_seen: bool, is_upon_branch: bool) -> Whole {
        if is_each_seen && is_upon_branch && self.branch == Standing::Behind { Whole::Yes } else { Whole::Unknown }
    }
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the run has no commit yet.
    NotBegun,
    /// Nothing: the source has what the workspace has.
    UpToDate,
    /// Send what is new.
    Send,
    /// Send everything, as something was taken away in between.
    SendAll,
    /// Look whether all is there.
    Check,
    /// Keep what was sent by references, and look again: somebody may have collected it just before.
    Keep,
    /// Move the branch.
    Move,
    /// Nothing for now: the branch is in use, and is moved later.
    Skip,
    /// Nothing: a person has to look first.
    Hold(Hold),
}

/// Why a person has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The branch has a commit that the run did not make.
    ForeignBranch,
    /// The reference that keeps the objects has one.
    ForeignKeeper,
    /// The branch is gone.
    BranchGone,
    /// Another branch leaves no room for the run's.
    InTheWay,
    /// The id is reserved for another run.
    ReservedForAnother,
    /// The workspace itself does not have what its branch is made of.
    Incomplete,
}

/// Decides what is done next; nothing was seen of a run without a commit.
pub fn next(seen: Option<&Seen>) -> Step {
    let Some(seen) = seen else { return Step::NotBegun };
    match seen {
        // What the run did not make is never written over, and nothing is sent before a person has looked.
        Seen { branch: Standing::Foreign, .. } => Step::Hold(Hold::ForeignBranch),
        Seen { at: Standing::Foreign, .. } => Step::Hold(Hold::ForeignKeeper),
        Seen { is_reserved_for_another: true, .. } => Step::Hold(Hold::ReservedForAnother),
        Seen { branch: Standing::Missing, was_published: true, .. } => Step::Hold(Hold::BranchGone),
        Seen { branch: Standing::Missing, is_in_the_way: true, .. } => Step::Hold(Hold::InTheWay),

        // Objects come before what names them, and are all there before it does: nothing names what is in part.
        Seen { at: Standing::Missing | Standing::Behind, is_sent: false, .. }
        | Seen { has_extras: false, is_sent: false, .. } => Step::Send,
        Seen { whole: Whole::Lacking, .. } => Step::SendAll,
        Seen { whole: Whole::LackingAll, .. } => Step::Hold(Hold::Incomplete),
        Seen { whole: Whole::Unknown, .. } => Step::Check,
        Seen { at: Standing::Missing | Standing::Behind, .. } | Seen { has_extras: false, .. } => Step::Keep,

        Seen { branch: Standing::Same, .. } => Step::UpToDate,
        Seen { is_in_use: true, .. } => Step::Skip,
        Seen { branch: Standing::Missing | Standing::Behind, .. } => Step::Move,
    }
}

/// What a person is told of a hold.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// The source, as git is pointed to it.
    pub source: &'a str,
    /// The workspace.
    pub workspace: &'a str,
    /// What the branch, the reference or the other branch names, or the object that is missing.
    pub found: &'a str,
    /// The last commit that the source has of the run.
    pub kept: Option<&'a str>,
}

impl Hold {
    /// Returns why the run is held, and what can be typed to go on: nothing of it loses a commit.
    pub fn reason(self, told: &Told<'_>) -> StopReason {
        let Told { run, source, workspace, found, kept } = *told;
        let branch = format!("runner/{run}");
        let is_id = found.bytes().all(|byte| byte.is_ascii_hexdigit());
        let short = found.get(..SHORT).filter(|_| is_id).unwrap_or(found);
        let git = format!("git -C {}", quoted(source));
        let resume = format!("runnerctl resume {} --run {run}", quoted(source));
        let aside = format!("{run}-by-hand");
        let fetch = format!("{git} fetch {} {branch}:{branch}", quoted(workspace));
        match self {
            Self::ForeignBranch => {
                let back = kept.map_or_else(String::new, |kept| format!(" && {git} branch {branch} {kept}"));
                StopReason::new(
                    format!("{branch} has {short}, which the run did not make"),
                    format!("{git} branch -m {branch} {aside}{back} && {resume}"),
                )
            }
            Self::ForeignKeeper => {
                let keeper = keeper(run);
                StopReason::new(
                    format!("{keeper} has {short}, which the run did not make"),
                    format!("{git} branch {aside} {keeper} && {git} update-ref -d {keeper} {found} && {resume}"),
                )
            }
            Self::BranchGone => {
                let back = kept.map_or(fetch, |kept| format!("{git} branch {branch} {kept}"));
                StopReason::new(format!("{branch} is gone from {source}"), format!("{back} && {resume}"))
            }
            Self::InTheWay => StopReason::new(
                format!("branch {found} of {source} leaves no room for {branch}"),
                format!("{git} branch -m {} {} && {resume}", quoted(found), quoted(&renamed(found))),
            ),
            Self::ReservedForAnother => {
                let reservation = reservation(run);
                StopReason::new(
                    format!("{run} is reserved for another run in {source}, and would be mixed up with it"),
                    format!("{git} update-ref -d {reservation} {found} && {resume}"),
                )
            }
            Self::Incomplete => StopReason::new(
                format!("{branch} cannot be published: {short} is missing in {workspace}"),
                format!("git -C {} fsck", quoted(workspace)),
            ),
        }
    }
}

/// Returns the name of the reference that keeps a run's objects in its source.
pub fn keeper(run: &str) -> String {
    format!("refs/runner/at/{run}")
}

/// Returns the name of the reference that takes a run's id in its source.
pub fn reservation(run: &str) -> String {
    format!("refs/runner/reserved/{run}")
}

/// Returns the name of the reference that keeps what the last guard was given. It is not published: the next commit has it.
pub fn guarded(run: &str) -> String {
    format!("refs/runner/guard/{run}")
}

/// Returns the folders of the references that keep what a run has beside its branch.
pub fn extras(run: &str) -> [String; 4] {
    ["raw", "rescue", "moved", "review"].map(|kind| format!("refs/runner/{kind}/{run}"))
}

/// Returns another name for a branch that is in the way.
fn renamed(branch: &str) -> String {
    format!("{}-old", branch.replace('/', "-"))
}

/// How a branch is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A work tree has it checked out, or comes back to it.
    InWorkTree,
    /// So does one whose folder is not there, and that is locked.
    InLostWorkTree,
    /// Git is at work in a work tree, and may be checking it out.
    GitAtWork,
}

/// Returns why a branch is not moved for now, and what lets it move or says more.
pub fn skipped(run: &str, how: Use, [source, work_tree]: [&str; 2]) -> StopReason {
    let place = quoted(work_tree);
    match how {
        Use::InWorkTree => {
            StopReason::new(format!("runner/{run} is in use in {work_tree}"), format!("git -C {place} switch --detach"))
        }
        Use::InLostWorkTree => StopReason::new(
            format!("runner/{run} is in use in {work_tree}, which is not there"),
            format!("git -C {0} worktree unlock {place} && git -C {0} worktree prune", quoted(source)),
        ),
        Use::GitAtWork => StopReason::new(format!("git is at work in {work_tree}"), format!("git -C {place} status")),
    }
}
