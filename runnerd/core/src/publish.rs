//! What is done next to publish an isolated run: a choice from what was read of its workspace and its source.
//!
//! It reads nothing itself. Whoever publishes looks, asks, does the one step and asks again, and looks again after each
//! move of a reference, so that a death between two steps leaves what the next look finds.

mod anew;

use protocol::view::StopReason;

pub use self::anew::{WorkspaceSource, WorkspaceRemains, WorkspaceLoss, StartBase, choose_source, missing_workspace};

use crate::shell::quoted;

/// Digits of a commit's id that people are told.
const SHORT_ID_LEN: usize = 12;

/// How a reference of the source stands to the tip of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefRelation {
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
pub enum ObjectCompleteness {
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
pub struct PublishInput {
    /// The reference that keeps the run's objects in the source.
    pub keep_ref: RefRelation,
    /// The run's branch in the source.
    pub branch: RefRelation,
    /// Whether what is kept of the run beside its branch is kept in the source too.
    pub has_extras: bool,
    /// Whether what is new was sent since it was looked for the first time.
    pub is_sent: bool,
    /// Whether the source has all objects.
    pub objects: ObjectCompleteness,
    /// Whether the branch was published before.
    pub was_published: bool,
    /// Whether a branch of another name leaves no room for this one.
    pub is_in_the_way: bool,
    /// Whether a work tree of the source has the branch checked out, or git is at work there.
    pub is_in_use: bool,
    /// Whether the id of the run is reserved there for another one.
    pub is_reserved_for_another: bool,
}

impl PublishInput {
    /// Returns what is known of the source once objects were sent: all is there where each of them was seen to be, and they
    /// were sent upon a branch that was looked at when it was moved.
    pub fn objects_after_send(&self, is_each_seen: bool, is_upon_branch: bool) -> ObjectCompleteness {
        if is_each_seen && is_upon_branch && self.branch == RefRelation::Behind { ObjectCompleteness::Yes } else { ObjectCompleteness::Unknown }
    }
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishStep {
    /// Nothing: the run has no commit yet.
    NotBegun,
    /// Nothing: the source has what the workspace has.
    UpToDate,
    /// Send what is new.
    Send,
    /// Send everything, as something was taken away in between.
    SendAll,
    /// Look whether all is there.
    CheckObjects,
    /// Keep what was sent by references, and look again: somebody may have collected it just before.
    KeepRefs,
    /// Move the branch.
    MoveBranch,
    /// Nothing for now: the branch is in use, and is moved later.
    Skip,
    /// Nothing: a person has to look first.
    Hold(PublishHold),
}

/// Why a person has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishHold {
    /// The branch has a commit that the run did not make.
    ForeignBranch,
    /// The reference that keeps the objects has one.
    ForeignKeepRef,
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
pub fn next_step(seen: Option<&PublishInput>) -> PublishStep {
    let Some(seen) = seen else { return PublishStep::NotBegun };
    match seen {
        // What the run did not make is never written over, and nothing is sent before a person has looked.
        PublishInput { branch: RefRelation::Foreign, .. } => PublishStep::Hold(PublishHold::ForeignBranch),
        PublishInput { keep_ref: RefRelation::Foreign, .. } => PublishStep::Hold(PublishHold::ForeignKeepRef),
        PublishInput { is_reserved_for_another: true, .. } => PublishStep::Hold(PublishHold::ReservedForAnother),
        PublishInput { branch: RefRelation::Missing, was_published: true, .. } => PublishStep::Hold(PublishHold::BranchGone),
        PublishInput { branch: RefRelation::Missing, is_in_the_way: true, .. } => PublishStep::Hold(PublishHold::InTheWay),

        // Objects come before what names them, and are all there before it does: nothing names what is in part.
        PublishInput { keep_ref: RefRelation::Missing | RefRelation::Behind, is_sent: false, .. }
        | PublishInput { has_extras: false, is_sent: false, .. } => PublishStep::Send,
        PublishInput { objects: ObjectCompleteness::Lacking, .. } => PublishStep::SendAll,
        PublishInput { objects: ObjectCompleteness::LackingAll, .. } => PublishStep::Hold(PublishHold::Incomplete),
        PublishInput { objects: ObjectCompleteness::Unknown, .. } => PublishStep::CheckObjects,
        PublishInput { keep_ref: RefRelation::Missing | RefRelation::Behind, .. } | PublishInput { has_extras: false, .. } => PublishStep::KeepRefs,

        PublishInput { branch: RefRelation::Same, .. } => PublishStep::UpToDate,
        PublishInput { is_in_use: true, .. } => PublishStep::Skip,
        PublishInput { branch: RefRelation::Missing | RefRelation::Behind, .. } => PublishStep::MoveBranch,
    }
}

/// What a person is told of a hold.
#[derive(Debug, Clone, Copy)]
pub struct HoldContext<'a> {
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

impl PublishHold {
    /// Returns why the run is held, and what can be typed to go on: nothing of it loses a commit.
    pub fn stop_reason(self, context: &HoldContext<'_>) -> StopReason {
        let HoldContext { run, source, workspace, found, kept } = *context;
        let branch = format!("runner/{run}");
        let is_id = found.bytes().all(|byte| byte.is_ascii_hexdigit());
        let short = found.get(..SHORT_ID_LEN).filter(|_| is_id).unwrap_or(found);
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
            Self::ForeignKeepRef => {
                let keeper = keep_ref(run);
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
                format!("{git} branch -m {} {} && {resume}", quoted(found), quoted(&alternative_branch(found))),
            ),
            Self::ReservedForAnother => {
                let reservation = reservation_ref(run);
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
pub fn keep_ref(run: &str) -> String {
    format!("refs/runner/at/{run}")
}

/// Returns the name of the reference that takes a run's id in its source.
pub fn reservation_ref(run: &str) -> String {
    format!("refs/runner/reserved/{run}")
}

/// Returns the name of the reference that keeps what the last guard was given. It is not published: the next commit has it.
pub fn guard_ref(run: &str) -> String {
    format!("refs/runner/guard/{run}")
}

/// Returns the folders of the references that keep what a run has beside its branch.
pub fn extra_ref_dirs(run: &str) -> [String; 4] {
    ["raw", "rescue", "moved", "review"].map(|kind| format!("refs/runner/{kind}/{run}"))
}

/// Returns another name for a branch that is in the way.
fn alternative_branch(branch: &str) -> String {
    format!("{}-old", branch.replace('/', "-"))
}

/// How a branch is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchUse {
    /// A work tree has it checked out, or comes back to it.
    InWorkTree,
    /// So does one whose folder is not there, and that is locked.
    InLostWorkTree,
    /// Git is at work in a work tree, and may be checking it out.
    GitAtWork,
}

/// Returns why a branch is not moved for now, and what lets it move or says more.
pub fn skip_reason(run: &str, how: BranchUse, [source, work_tree]: [&str; 2]) -> StopReason {
    let place = quoted(work_tree);
    match how {
        BranchUse::InWorkTree => {
            StopReason::new(format!("runner/{run} is in use in {work_tree}"), format!("git -C {place} switch --detach"))
        }
        BranchUse::InLostWorkTree => StopReason::new(
            format!("runner/{run} is in use in {work_tree}, which is not there"),
            format!("git -C {0} worktree unlock {place} && git -C {0} worktree prune", quoted(source)),
        ),
        BranchUse::GitAtWork => StopReason::new(format!("git is at work in {work_tree}"), format!("git -C {place} status")),
    }
}
