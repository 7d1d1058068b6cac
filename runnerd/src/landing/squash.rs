//! What does not fit by itself, made ready for a session to bring in: one commit with everything that a run has changed,
//! kept under a reference, and the goal of the run that is to settle its conflicts.

use runner_core::landing::{Lacks, Landing, Refusal};
use runner_core::shell;

use super::branch::{Branch, Missing};
use super::fit::{Fit, Manner};
use super::told::SETTLES;
use super::{LandError, Site};
use crate::git::{Id, Identity, Merge, Merged, NewCommit};
use crate::verify::VerifyError;

/// A run made ready to be brought in by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Squash {
    /// Id of the run.
    pub run: String,
    /// The branch's tip, at which the session begins.
    pub base: Id,
    /// The goal.
    pub goal: String,
}

/// Makes a run ready to be brought in by a session that begins at the tip of a branch.
pub fn squash(site: &Site<'_>, wanted: &str, (onto, tip): (&str, Id)) -> Result<Squash, LandError> {
    let branch = Branch::read(site, wanted)?;
    branch.refuse_unproven(site, (false, None))?;
    let missing = branch.missing(site.repository, &tip)?;
    let run = branch.run().to_owned();
    let Lacks::Something(landing) = &missing.lacks else { return Err(Refusal::Landed { run }.into()) };
    let commit = stripped(site, (&branch, &missing, landing), tip)?;
    let name = format!("refs/runner/squash/{run}");
    site.repository.keep(&name, &commit)?;
    let files = in_conflict(site, (&branch, landing), (onto, tip))?;
    let goal = goal(&Brought { run: &run, onto, name: &name, files: &files, settles: &settles(&branch, landing) });
    Ok(Squash { run, base: tip, goal })
}

/// Makes the commit that has everything of a run, upon one that the branch has too, without `.runner/`.
fn stripped(
    site: &Site<'_>,
    (branch, missing, landing): (&Branch, &Missing, &Landing),
    onto: Id,
) -> Result<Id, LandError> {
    let repository = site.repository;
    let (base, last) = (id(&landing.base)?, id(last(landing))?);
    let (parent, tree) = if repository.is_ancestor(&base, &onto)? {
        (base, repository.tree_with(&last, &repository.runner_folder(&base)?)?)
    } else {
        let landed = missing.landed.iter().find(|(_, landed)| landed.iter().any(|it| it.commit == landing.base));
        let unrelated = || Refusal::Unrelated { run: branch.run().to_owned() };
        let parent = match landed {
            Some((commit, _)) => *commit,
            None => repository.merge_base(&base, &onto)?.ok_or_else(unrelated)?,
        };
        let folder = repository.runner_folder(&parent)?;
        let tree = |commit: &Id| repository.tree_with(commit, &folder);
        let merge = Merge { base: tree(&base)?, ours: tree(&parent)?, theirs: tree(&last)? };
        match site.merger(&parent)?.merge(&merge)? {
            Merged::Clean(tree) => (parent, tree),
            Merged::Conflict { paths, .. } => {
                let (run, node) = (branch.run().to_owned(), None);
                return Err(Refusal::Conflict { run, node, paths, fits_as_squash: false }.into());
            }
        }
    };
    let author = Identity::runner();
    let line = format!("{} <{}> 0 +0000", author.name, author.email);
    let message = format!("Everything that run {} has changed\n", branch.run());
    let (parents, committer) = ([parent], repository.identity().unwrap_or(author));
    let commit =
        NewCommit { tree, parents: &parents, author: &line, committer: &committer, message: &message, sign: false };
    Ok(repository.write(&commit)?)
}

/// Returns the files in which the whole of a run conflicts.
fn in_conflict(
    site: &Site<'_>,
    (branch, landing): (&Branch, &Landing),
    onto: (&str, Id),
) -> Result<Vec<String>, LandError> {
    let committer = Identity::runner();
    let form = protocol::landing::LandForm::Squash;
    let manner = Manner { form, with_runner: false, committer: &committer, sign: false };
    let fit = Fit::new(site, (branch, landing), onto, manner)?;
    match fit.squashed(fit.has_merged_onto()?) {
        Ok(_) => Ok(Vec::new()),
        Err(LandError::Refused(Refusal::Conflict { paths, .. } | Refusal::Submodule { paths, .. })) => Ok(paths),
        Err(error) => Err(error),
    }
}

/// What a session is told to bring in.
struct Brought<'a> {
    run: &'a str,
    onto: &'a str,
    name: &'a str,
    files: &'a [String],
    settles: &'a str,
}

fn goal(Brought { run, onto, name, files, settles }: &Brought<'_>) -> String {
    let command = shell::words(["git", "merge", "--squash", name]);
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

fn settles(branch: &Branch, landing: &Landing) -> String {
    let node = landing.cuts.last().and_then(|cut| cut.node.clone()).unwrap_or_default();
    let (run, commit) = (branch.run().to_owned(), last(landing).to_owned());
    runner_core::landing::Landed { run, commit, node }.to_string()
}

fn last(landing: &Landing) -> &str {
    landing.cuts.last().map_or(&landing.base, |cut| &cut.commit)
}

fn id(text: &str) -> Result<Id, LandError> {
    text.parse().map_err(|_| VerifyError::NoCommit(text.to_owned()).into())
}
