//! Prepares a run that cannot be merged automatically for a session: one commit with everything the run has changed,
//! kept by a reference, and the goal of the run that resolves the conflicts.

use protocol::shell;
use runner_core::landing::{LandPlan, LandingRefusal, MissingCommits};
use runner_git::{Id, Identity, MergeResult, NewCommit, TreeMerge};

use super::branch::{BranchGap, RunBranch};
use super::commit_message::SETTLES;
use super::run_merge::{MergeOptions, RunMerge};
use super::{LandContext, LandError};
use crate::verify::VerifyError;

/// A run prepared for a session to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SquashPlan {
    /// Id of the run.
    pub run: String,
    /// The branch's tip, at which the session starts.
    pub base: Id,
    /// Goal for the session.
    pub goal: String,
}

/// Prepares a run to be landed by a session that starts at the tip of a branch.
pub fn prepare_squash(site: &LandContext<'_>, run_id: &str, onto: &str, tip: Id) -> Result<SquashPlan, LandError> {
    let branch = RunBranch::load(site, run_id)?;
    branch.check_proven(site, false, None)?;
    let missing = branch.find_missing(site.repository, &tip)?;
    let run = branch.run().to_owned();
    let MissingCommits::Missing(landing) = &missing.commits else {
        return Err(LandingRefusal::AlreadyLanded { run }.into());
    };
    let commit = create_stripped_commit(site, &branch, &missing, landing, tip)?;
    let name = format!("refs/runner/squash/{run}");
    site.repository.set_runner_ref(&name, &commit)?;
    let files = find_conflicts(site, &branch, landing, (onto, tip))?;
    let goal = format_goal(&IncomingRun {
        run: &run,
        onto,
        name: &name,
        files: &files,
        settles: &format_settles(&branch, landing),
    });
    Ok(SquashPlan { run, base: tip, goal })
}

/// Creates the commit that holds everything from a run, on a parent the branch has too, without `.runner/`.
fn create_stripped_commit(
    site: &LandContext<'_>,
    branch: &RunBranch,
    missing: &BranchGap,
    landing: &LandPlan,
    onto: Id,
) -> Result<Id, LandError> {
    let repository = site.repository;
    let base = parse_id(&landing.base)?;
    let last = parse_id(last_commit(landing))?;
    let (parent, tree) = if repository.is_ancestor(&base, &onto)? {
        (base, repository.replace_runner_folder(&last, &repository.read_runner_folder(&base)?)?)
    } else {
        let landed = missing
            .landed_commits
            .iter()
            .find(|(_, landed)| landed.iter().any(|landed_commit| landed_commit.commit == landing.base));
        let unrelated = || LandingRefusal::Unrelated { run: branch.run().to_owned() };
        let parent = match landed {
            Some((commit, _)) => *commit,
            None => repository.merge_base(&base, &onto)?.ok_or_else(unrelated)?,
        };
        let folder = repository.read_runner_folder(&parent)?;
        let tree = |commit: &Id| repository.replace_runner_folder(commit, &folder);
        let merge = TreeMerge { base: tree(&base)?, ours: tree(&parent)?, theirs: tree(&last)? };
        match site.create_merger(&parent)?.merge(&merge)? {
            MergeResult::Clean(tree) => (parent, tree),
            MergeResult::Conflict { paths, .. } => {
                let run = branch.run().to_owned();
                let node = None;
                return Err(LandingRefusal::Conflict { run, node, paths, fits_as_squash: false }.into());
            }
        }
    };
    let author = Identity::runner();
    let line = format!("{} <{}> 0 +0000", author.name, author.email);
    let message = format!("Everything that run {} has changed\n", branch.run());
    let parents = [parent];
    let committer = repository.identity().unwrap_or(author);
    let commit = NewCommit {
        tree,
        parents: &parents,
        author: Some(&line),
        committer: &committer,
        message: &message,
        sign: false,
    };
    Ok(repository.create_commit(&commit)?)
}

/// Returns the files that conflict when the run is merged as a whole.
fn find_conflicts(
    site: &LandContext<'_>,
    branch: &RunBranch,
    landing: &LandPlan,
    onto: (&str, Id),
) -> Result<Vec<String>, LandError> {
    let committer = Identity::runner();
    let form = protocol::landing::LandForm::Squash;
    let options = MergeOptions { form, with_runner: false, committer: &committer, sign: false, accepted: &[] };
    let merge = RunMerge::new(site, branch, landing, onto, options)?;
    match merge.squash_tree(merge.has_merged_onto()?) {
        Ok(_) => Ok(Vec::new()),
        Err(LandError::Refused(LandingRefusal::Conflict { paths, .. } | LandingRefusal::Submodule { paths, .. })) => {
            Ok(paths)
        }
        Err(error) => Err(error),
    }
}

/// Contents of the session's goal.
struct IncomingRun<'a> {
    run: &'a str,
    onto: &'a str,
    name: &'a str,
    files: &'a [String],
    settles: &'a str,
}

fn format_goal(IncomingRun { run, onto, name, files, settles }: &IncomingRun<'_>) -> String {
    let command = shell::join_args(["git", "merge", "--squash", name]);
    let conflicts = match files {
        [] => format!("It merges with {onto} without a conflict; what comes of it does not pass the checks yet."),
        files => {
            let list: Vec<String> = files.iter().map(|file| format!("- `{file}`")).collect();
            format!("It conflicts with {onto} in:\n\n{}", list.join("\n"))
        }
    };
    format!(
        "---\n{SETTLES}: {settles}\n---\n\n# Bring in run {run}\n\nRun {run} has reached its goal on a branch of its own. \
         {conflicts}\n\nBring its work in as one change:\n\n1. Run `{command}`.\n2. Settle each conflict so that what \
         {onto} has and what run {run} wants both hold; leave no conflict mark behind.\n3. See that the project's checks \
         pass.\n\nDo not merge `runner/{run}` itself, and bring nothing else in.\n"
    )
}

fn format_settles(branch: &RunBranch, landing: &LandPlan) -> String {
    let node = landing.groups.last().and_then(|cut| cut.node.clone()).unwrap_or_default();
    let run = branch.run().to_owned();
    let commit = last_commit(landing).to_owned();
    runner_core::landing::LandedTrailer { run, commit, node }.to_string()
}

fn last_commit(landing: &LandPlan) -> &str {
    landing.groups.last().map_or(&landing.base, |cut| &cut.commit)
}

fn parse_id(text: &str) -> Result<Id, LandError> {
    text.parse().map_err(|_| VerifyError::InvalidCommit(text.to_owned()).into())
}
