//! Decides the next step of publishing an isolated run, from the observed state of its workspace and its source.
//!
//! Reads nothing itself. The publisher observes, asks, carries out one step and repeats, and observes again after each
//! update of a reference, so that after a death between two steps the next observation finds what is left to do.

mod recreate;

use protocol::view::StopReason;

pub use self::recreate::{
    StartBase, WorkspaceLoss, WorkspaceRemains, WorkspaceSource, choose_source, missing_workspace,
};

use protocol::shell::quote;

/// Digits of a commit id that are shown to people.
const SHORT_ID_LEN: usize = 12;

/// Relation of a reference in the source to the tip of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefRelation {
    /// The reference does not exist.
    Missing,
    /// It points to an ancestor of the tip.
    Behind,
    /// It points to the tip.
    Same,
    /// It points to something else, which the run did not make.
    Foreign,
}

/// Whether the source has every object that the tip needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectCompleteness {
    /// Nothing has been checked since objects were last sent.
    Unknown,
    /// The source has them all.
    Yes,
    /// Objects are missing.
    Lacking,
    /// Objects are missing although everything was sent.
    LackingAll,
}

/// Observed state of workspace and source.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishInput {
    /// The reference that keeps the run's objects alive in the source.
    pub keep_ref: RefRelation,
    /// The run's branch in the source.
    pub branch: RefRelation,
    /// Whether the run's other references are kept in the source too.
    pub has_extras: bool,
    /// Whether new objects were sent since the first observation.
    pub is_sent: bool,
    /// Whether the source has all objects.
    pub objects: ObjectCompleteness,
    /// Whether the branch was published before.
    pub was_published: bool,
    /// Whether another branch's name prevents this one from being created.
    pub is_in_the_way: bool,
    /// Whether a work tree of the source has the branch checked out, or git is running there.
    pub is_in_use: bool,
    /// Whether the run's id is reserved there for another run.
    pub is_reserved_for_another: bool,
}

impl PublishInput {
    /// Returns what is known about the source after objects were sent. It is complete if each object was observed
    /// there, and if they were sent on top of a branch that was checked when it was moved.
    pub fn objects_after_send(&self, is_each_seen: bool, is_upon_branch: bool) -> ObjectCompleteness {
        if is_each_seen && is_upon_branch && self.branch == RefRelation::Behind {
            ObjectCompleteness::Yes
        } else {
            ObjectCompleteness::Unknown
        }
    }
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishStep {
    /// Nothing to do: the run has no commit yet.
    NotBegun,
    /// Nothing to do: the source has what the workspace has.
    UpToDate,
    /// Send what is new.
    Send,
    /// Send everything, because objects were removed in the meantime.
    SendAll,
    /// Check whether the source is complete.
    CheckObjects,
    /// Protect what was sent by references, and check again: a garbage collection may have removed it just before.
    KeepRefs,
    /// Move the branch.
    MoveBranch,
    /// Nothing for now: the branch is in use, and is moved later.
    Skip,
    /// Stop until a person has looked.
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
    /// Another branch's name prevents the run's branch.
    InTheWay,
    /// The id is reserved for another run.
    ReservedForAnother,
    /// The workspace itself lacks objects of its branch.
    Incomplete,
}

/// Decides the next step; `None` stands for a run without a commit.
pub fn next_step(input: Option<&PublishInput>) -> PublishStep {
    let Some(input) = input else { return PublishStep::NotBegun };
    match input {
        // What the run did not make is never overwritten, and nothing is sent before a person has looked.
        PublishInput { branch: RefRelation::Foreign, .. } => PublishStep::Hold(PublishHold::ForeignBranch),
        PublishInput { keep_ref: RefRelation::Foreign, .. } => PublishStep::Hold(PublishHold::ForeignKeepRef),
        PublishInput { is_reserved_for_another: true, .. } => PublishStep::Hold(PublishHold::ReservedForAnother),
        PublishInput { branch: RefRelation::Missing, was_published: true, .. } => {
            PublishStep::Hold(PublishHold::BranchGone)
        }
        PublishInput { branch: RefRelation::Missing, is_in_the_way: true, .. } => {
            PublishStep::Hold(PublishHold::InTheWay)
        }

        // Objects are sent, completely, before a reference points to them: no reference ever points to part of a
        // commit.
        PublishInput { keep_ref: RefRelation::Missing | RefRelation::Behind, is_sent: false, .. }
        | PublishInput { has_extras: false, is_sent: false, .. } => PublishStep::Send,
        PublishInput { objects: ObjectCompleteness::Lacking, .. } => PublishStep::SendAll,
        PublishInput { objects: ObjectCompleteness::LackingAll, .. } => PublishStep::Hold(PublishHold::Incomplete),
        PublishInput { objects: ObjectCompleteness::Unknown, .. } => PublishStep::CheckObjects,
        PublishInput { keep_ref: RefRelation::Missing | RefRelation::Behind, .. }
        | PublishInput { has_extras: false, .. } => PublishStep::KeepRefs,

        PublishInput { branch: RefRelation::Same, .. } => PublishStep::UpToDate,
        PublishInput { is_in_use: true, .. } => PublishStep::Skip,
        PublishInput { branch: RefRelation::Missing | RefRelation::Behind, .. } => PublishStep::MoveBranch,
    }
}

/// Details for the explanation of a hold.
#[derive(Debug, Clone, Copy)]
pub struct HoldContext<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// The source, as git is given it.
    pub source: &'a str,
    /// Path of the workspace.
    pub workspace: &'a str,
    /// What the branch, the reference or the other branch points to, or the object that is missing.
    pub found: &'a str,
    /// The run's last commit in the source.
    pub kept: Option<&'a str>,
}

impl PublishHold {
    /// Returns why the run is held, and what to type to continue; none of the commands loses a commit.
    pub fn stop_reason(self, context: &HoldContext<'_>) -> StopReason {
        let HoldContext { run, source, workspace, found, kept } = *context;
        let branch = format!("runner/{run}");
        let is_id = found.bytes().all(|byte| byte.is_ascii_hexdigit());
        let short = found.get(..SHORT_ID_LEN).filter(|_| is_id).unwrap_or(found);
        let git = format!("git -C {}", quote(source));
        let resume = format!("runnerctl resume {} --run {run}", quote(source));
        let aside = format!("{run}-by-hand");
        let fetch = format!("{git} fetch {} {branch}:{branch}", quote(workspace));
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
                format!("{git} branch -m {} {} && {resume}", quote(found), quote(&alternative_branch(found))),
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
                format!("git -C {} fsck", quote(workspace)),
            ),
        }
    }
}

/// Returns the name of the reference that keeps a run's objects alive in its source.
pub fn keep_ref(run: &str) -> String {
    format!("refs/runner/at/{run}")
}

/// Returns the name of the reference that reserves a run's id in its source.
pub fn reservation_ref(run: &str) -> String {
    format!("refs/runner/reserved/{run}")
}

/// Returns the name of the reference that keeps the last guard's input. It is not published, because the next commit
/// contains it.
pub fn guard_ref(run: &str) -> String {
    format!("refs/runner/guard/{run}")
}

/// Returns the name of the reference that keeps what a process of an iteration left before its history was restored.
pub fn rescue_ref(run: &str, iter: u32) -> String {
    format!("refs/runner/rescue/{run}/{iter:04}")
}

/// Returns the folders of the references that a run keeps in addition to its branch.
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
    /// A work tree has it checked out, or will return to it.
    InWorkTree,
    /// The same, for a locked work tree whose folder is missing.
    InLostWorkTree,
    /// Git is running in a work tree, and may be checking it out.
    GitAtWork,
}

/// Returns why a branch is not moved for now, and how to allow it or find out more.
pub fn skip_reason(run: &str, how: BranchUse, [source, work_tree]: [&str; 2]) -> StopReason {
    let place = quote(work_tree);
    match how {
        BranchUse::InWorkTree => {
            StopReason::new(format!("runner/{run} is in use in {work_tree}"), format!("git -C {place} switch --detach"))
        }
        BranchUse::InLostWorkTree => StopReason::new(
            format!("runner/{run} is in use in {work_tree}, which is not there"),
            format!("git -C {0} worktree unlock {place} && git -C {0} worktree prune", quote(source)),
        ),
        BranchUse::GitAtWork => {
            StopReason::new(format!("git is at work in {work_tree}"), format!("git -C {place} status"))
        }
    }
}
