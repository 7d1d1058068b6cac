//! The landed commits of a branch, looked at again: each merge is made once more from the run's commits and the commit
//! before, and its files are compared.

use std::collections::BTreeMap;

use protocol::landing::{LandForm, LandedCheck, LandedCommit, LandedReport, LandedState};
use runner_core::landing::{self, LANDED, Lacks, Landed, Landing};

use super::branch::Branch;
use super::fit::{Fit, Manner};
use super::{LandError, Site};
use crate::git::{CommitInfo, Id, Identity};
use crate::verify::Target;

/// Most paths that are told of one commit.
const SHOWN: usize = 10;

/// A landed commit, and what it says of itself.
struct Claim {
    commit: CommitInfo,
    landed: Landed,
}

/// What a merge that is made again leads to.
enum Again {
    /// These files, in the form that comes nearest.
    Files(Id),
    /// It cannot be made: this is why.
    Unknown(String),
}

/// Looks at all landed commits of a branch.
pub fn landed(site: &Site<'_>, branch: &str, tip: Id) -> Result<LandedReport, LandError> {
    let claims = claims(site, &tip)?;
    let mut branches: BTreeMap<String, Option<Branch>> = BTreeMap::new();
    let mut commits = Vec::new();
    // The newest commit of a run has all its branch that landed: it is read once.
    for claim in claims.iter().rev() {
        if site.stop.is_cancelled() {
            return Err(crate::verify::VerifyError::Interrupted.into());
        }
        let run = &claim.landed.run;
        let known = branches.get(run).and_then(Option::as_ref);
        if known.is_none_or(|known| known.head(&claim.landed.commit).is_none()) {
            branches.insert(run.clone(), read(site, &claim.landed)?);
        }
        let again = match branches.get(run).and_then(Option::as_ref) {
            Some(branch) => again(site, (branch, claim))?,
            None => Again::Unknown(format!("commit {} of run {run} is not here", claim.landed.commit)),
        };
        commits.push(check(site, claim, again)?);
    }
    commits.reverse();
    Ok(LandedReport { branch: branch.to_owned(), tip: tip.to_string(), commits })
}

/// Returns the commits that say that they have landed something, oldest first.
fn claims(site: &Site<'_>, tip: &Id) -> Result<Vec<Claim>, LandError> {
    let mut claims = Vec::new();
    for (commit, message) in site.repository.told_of_beyond(tip, None, LANDED)? {
        let (Some(landed), Some(commit)) =
            (landing::landed(&message).pop(), site.repository.first_parents(&commit, 1)?.pop())
        else {
            continue;
        };
        claims.push(Claim { commit, landed });
    }
    claims.reverse();
    Ok(claims)
}

/// Reads the branch of a run as far as it has landed; none where its commits are not here.
fn read(site: &Site<'_>, landed: &Landed) -> Result<Option<Branch>, LandError> {
    let Some(tip) = site.repository.resolve(&landed.commit)? else { return Ok(None) };
    let target = Target { run: landed.run.clone(), tip };
    let plan = crate::verify::plan(site.repository, &target, site.stop)?;
    Ok(Some(Branch { target, plan }))
}

/// Makes a merge again, upon the commit before it.
fn again(site: &Site<'_>, (branch, claim): (&Branch, &Claim)) -> Result<Again, LandError> {
    let Some(before) = claim.commit.parents.first() else {
        return Ok(Again::Unknown("it has no parent".to_owned()));
    };
    let lacks = match branch.missing(site.repository, before) {
        Ok(missing) => missing.lacks,
        Err(LandError::Refused(refusal)) => return Ok(Again::Unknown(refusal.to_string())),
        Err(error) => return Err(error),
    };
    let Lacks::Something(landing) = lacks else {
        return Ok(Again::Unknown("what it brings was there before".to_owned()));
    };
    let last = landing.cuts.iter().position(|cut| cut.commit == claim.landed.commit);
    let Some(last) = last else { return Ok(Again::Unknown("what it brings is no end of a leaf".to_owned())) };
    let landing = Landing { cuts: landing.cuts[..=last].to_vec(), last: landing.last.min(last), ..landing };
    let forms: &[LandForm] =
        if claim.commit.parents.len() > 1 { &[LandForm::Merge] } else { &[LandForm::Leaves, LandForm::Squash] };
    let mut nearest = Again::Unknown("its merge cannot be made again".to_owned());
    for form in forms {
        match merged(site, (branch, &landing, claim), (*form, *before))? {
            Again::Files(tree) if site.repository.tree_id(&tree)? == claim.commit.tree => {
                return Ok(Again::Files(tree));
            }
            files @ Again::Files(_) => nearest = files,
            Again::Unknown(_) => {}
        }
    }
    Ok(nearest)
}

/// Makes the commits of one form again; those of leaves that lead to several are not what one commit says.
fn merged(
    site: &Site<'_>,
    (branch, landing, claim): (&Branch, &Landing, &Claim),
    (form, before): (LandForm, Id),
) -> Result<Again, LandError> {
    let committer = Identity::runner();
    let with_runner = site.repository.runner_folder(&claim.commit.id)? != site.repository.runner_folder(&before)?;
    let manner = Manner { form, with_runner, committer: &committer, sign: false };
    let commits = match Fit::new(site, (branch, landing), ("the branch", before), manner)?.commits() {
        Ok(commits) => commits,
        Err(LandError::Refused(refusal)) => return Ok(Again::Unknown(refusal.to_string())),
        Err(error) => return Err(error),
    };
    Ok(match &commits[..] {
        [one] => one.commit.parse().map_or_else(|_| Again::Unknown(String::new()), Again::Files),
        _ => Again::Unknown("it brings more than one leaf".to_owned()),
    })
}

fn check(site: &Site<'_>, claim: &Claim, again: Again) -> Result<LandedCheck, LandError> {
    let Claim { commit, landed } = claim;
    let git = site.repository.git_version()?;
    let other = landing::merged_by(&commit.message).filter(|by| *by != git);
    let by_other = other.map(|by| format!("it was merged by git {by}, and made again by git {git}"));
    let (state, differs, note) = match again {
        Again::Unknown(why) => (LandedState::Unknown, Vec::new(), Some(why)),
        Again::Files(again) if site.repository.tree_id(&again)? == commit.tree => {
            (LandedState::Same, Vec::new(), by_other)
        }
        Again::Files(again) => {
            let paths = site.repository.changed_paths(&again, &commit.id)?;
            let differs = paths.iter().take(SHOWN).map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            let state = if by_other.is_some() { LandedState::Unknown } else { LandedState::Differs };
            (state, differs, by_other)
        }
    };
    let subject = commit.message.lines().next().unwrap_or_default().to_owned();
    let landed_commit =
        LandedCommit { commit: commit.id.to_string(), subject, node: landed.node.clone(), of: landed.commit.clone() };
    Ok(LandedCheck { run: landed.run.clone(), landed: landed_commit, state, differs, note })
}
