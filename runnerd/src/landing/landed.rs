//! The landed commits of a branch, looked at again: the run that each names is audited up to the commit that it names, and
//! the merge is made once more from there and the commit before it.
//!
//! What a landed commit says of itself is believed of nothing: the commit that it names has to stand on the run's branch.

use std::collections::{BTreeMap, BTreeSet};

use protocol::landing::{LandForm, LandedCheck, LandedCommit, LandedReport, LandedState};
use protocol::verify::AuditReport;
use runner_core::landing::{self, LANDED, Lacks, Landed, LandedHead, Landing};

use super::branch::Branch;
use super::fit::{Fit, Manner};
use super::{LandError, Site};
use crate::git::{CommitInfo, GitError, Id, Identity};
use crate::verify::{self, Target};
use crate::worker;

/// Most paths that are told of one commit.
const SHOWN: usize = 10;

/// A landed commit, and what it says of itself.
struct Claim {
    commit: CommitInfo,
    landed: Landed,
}

/// The branch of a run, and what an audit of it has found.
struct Known {
    branch: Branch,
    report: AuditReport,
}

/// What a merge that is made again leads to.
enum Again {
    /// This commit, in the form that comes nearest.
    Made(CommitInfo),
    /// It cannot be made: this is why.
    Unknown(String),
}

/// What was found of a landed commit.
struct Look {
    state: LandedState,
    differs: Vec<String>,
    note: Option<String>,
}

/// Looks at all landed commits of a branch.
pub fn landed(site: &Site<'_>, branch: &str, tip: Id) -> Result<LandedReport, LandError> {
    let mut runs: BTreeMap<String, Option<Known>> = BTreeMap::new();
    let mut commits = Vec::new();
    for claim in claims(site, &tip)? {
        if site.stop.is_cancelled() {
            return Err(verify::VerifyError::Interrupted.into());
        }
        let run = &claim.landed.run;
        if !runs.contains_key(run) {
            runs.insert(run.clone(), known(site, run)?);
        }
        let look = look(site, (runs.get_mut(run).and_then(Option::as_mut), &claim))?;
        commits.push(check(claim, look));
    }
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

/// Reads the branch of a run, and audits it; none where it is not here. One that was fetched counts where there is no own
/// one, or where it goes on from that.
fn known(site: &Site<'_>, run: &str) -> Result<Option<Known>, LandError> {
    let mut branch: Option<Branch> = None;
    for tip in verify::tips(site.repository, run)? {
        if branch.as_ref().is_some_and(|branch| branch.head(&tip.to_string()).is_some()) {
            continue;
        }
        let target = Target { run: run.to_owned(), tip };
        let plan = verify::plan(site.repository, &target, site.stop)?;
        let next = Branch { target, plan };
        if branch.as_ref().is_none_or(|branch| next.head(&branch.target.tip.to_string()).is_some()) {
            branch = Some(next);
        }
    }
    let Some(branch) = branch else { return Ok(None) };
    let report = verify::verify(site.repository, &branch.target, false, site.stop)?;
    Ok(Some(Known { branch, report }))
}

fn look(site: &Site<'_>, (known, claim): (Option<&mut Known>, &Claim)) -> Result<Look, LandError> {
    let Landed { run, commit: of, .. } = &claim.landed;
    let Some(Known { branch, report }) = known else {
        return Ok(Look::without_files(LandedState::Unknown, format!("branch runner/{run} is not here")));
    };
    if branch.head(of).is_none() {
        let why = format!("commit {of} is not among the first parents of branch runner/{run}");
        return Ok(Look::without_files(LandedState::Unproven, why));
    }
    if let Some((why, is_unseen)) = branch.why_not_proven_at(report, of) {
        let state = if is_unseen { LandedState::Unknown } else { LandedState::Unproven };
        return Ok(Look::without_files(state, why));
    }
    match again(site, (branch, claim))? {
        Again::Unknown(why) => Ok(Look::without_files(LandedState::Unknown, why)),
        Again::Made(made) => compared(site, (claim, &made)),
    }
}

/// Makes a merge again, upon the commit before it.
///
/// What it says of itself may be of a later commit of the run than the one that it names: of the last one when it landed.
fn again(site: &Site<'_>, (branch, claim): (&mut Branch, &Claim)) -> Result<Again, LandError> {
    let mut nearest = Again::Unknown("its merge cannot be made again".to_owned());
    let later = branch.plan.all().iter().skip_while(|head| head.id != claim.landed.commit);
    let later: Vec<Id> = later.filter_map(|head| head.id.parse().ok()).collect();
    let mut told = BTreeSet::new();
    for tip in later {
        let Ok(loaded) = worker::load(site.repository, tip) else { continue };
        let root = &loaded.tree.root;
        if !told.insert((root.title.clone(), root.passes, loaded.goal.headline())) {
            continue;
        }
        branch.target.tip = tip;
        let again = at_tip(site, (branch, claim))?;
        let Again::Made(made) = &again else { return Ok(again) };
        let has_files = has_files(site, (claim, made))?;
        if !has_files || fault(claim, made).is_none() {
            return Ok(again);
        }
        nearest = again;
    }
    Ok(nearest)
}

/// Makes a merge again, as it was made when the run's branch ended where it is said to.
fn at_tip(site: &Site<'_>, (branch, claim): (&Branch, &Claim)) -> Result<Again, LandError> {
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
    let (mut nearest, mut is_near) = (Again::Unknown("its merge cannot be made again".to_owned()), false);
    for form in forms {
        let Again::Made(made) = merged(site, (branch, &landing, claim), (*form, *before))? else { continue };
        let has_files = has_files(site, (claim, &made))?;
        if has_files && fault(claim, &made).is_none() {
            return Ok(Again::Made(made));
        }
        if has_files || !is_near {
            (nearest, is_near) = (Again::Made(made), has_files);
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
    let [one] = &commits[..] else { return Ok(Again::Unknown("it brings more than one leaf".to_owned())) };
    let made: Id = one.commit.parse().map_err(|_| verify::VerifyError::NoCommit(one.commit.clone()))?;
    let made = site.repository.first_parents(&made, 1)?.pop();
    Ok(made.map_or_else(|| Again::Unknown("its merge is gone".to_owned()), Again::Made))
}

fn has_files(site: &Site<'_>, (claim, made): (&Claim, &CommitInfo)) -> Result<bool, GitError> {
    Ok(site.repository.tree_id(&made.id)? == claim.commit.tree)
}

/// Says in what else than its files a landed commit differs from the one that was made again.
fn fault(claim: &Claim, made: &CommitInfo) -> Option<String> {
    let told = |commit: &CommitInfo| {
        let parents: Vec<String> = commit.parents.iter().map(Id::to_string).collect();
        (parents, format!("{} <{}>", commit.author.name, commit.author.email))
    };
    let ((parents, author), (expected, writer)) = (told(&claim.commit), told(made));
    let made = LandedHead { parents: &expected, author: &writer, message: &made.message };
    LandedHead { parents: &parents, author: &author, message: &claim.commit.message }.fault(&made)
}

/// Compares a landed commit with the one that was made again.
fn compared(site: &Site<'_>, (claim, made): (&Claim, &CommitInfo)) -> Result<Look, LandError> {
    let commit = &claim.commit;
    let git = site.repository.git_version()?;
    let other = landing::merged_by(&commit.message).filter(|by| *by != git);
    let by_other = other.map(|by| format!("it was merged by git {by}, and made again by git {git}"));
    if !has_files(site, (claim, made))? {
        let paths = site.repository.changed_paths(&made.id, &commit.id)?;
        let differs = paths.iter().take(SHOWN).map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        let state = if by_other.is_some() { LandedState::Unknown } else { LandedState::Differs };
        return Ok(Look { state, differs, note: by_other });
    }
    Ok(match fault(claim, made) {
        Some(fault) => Look::without_files(LandedState::Differs, fault),
        None => Look { state: LandedState::Same, differs: Vec::new(), note: by_other },
    })
}

impl Look {
    fn without_files(state: LandedState, note: String) -> Self {
        Self { state, differs: Vec::new(), note: Some(note) }
    }
}

fn check(Claim { commit, landed }: Claim, Look { state, differs, note }: Look) -> LandedCheck {
    let subject = commit.message.lines().next().unwrap_or_default().to_owned();
    let Landed { run, commit: of, node } = landed;
    LandedCheck { run, landed: LandedCommit { commit: commit.id.to_string(), subject, node, of }, state, differs, note }
}
