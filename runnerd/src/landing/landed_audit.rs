//! Verifies the landed commits of a branch: audits the run named by each up to the named commit, and repeats the merge
//! from there and the preceding commit.
//!
//! Takes no claim of a landed commit on trust: the commit it names must be on the run's branch.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use protocol::landing::{LandForm, LandedCheck, LandedCommit, LandedReport, LandedState};
use protocol::verify::AuditReport;
use runner_core::landing::{
    self, InvalidLandedTrailer, LANDED, LandPlan, LandedCommitFields, LandedTrailer, LandingRefusal, MissingCommits,
    NO_NODE,
};
use runner_git::{CommitInfo, GitError, Id, Identity};

use super::branch::RunBranch;
use super::run_merge::{MergeOptions, RunMerge};
use super::{LandContext, LandError};
use crate::verify::{self, VerifyTarget};
use crate::worker;

/// Maximum number of paths reported for one commit.
const SHOWN: usize = 10;

/// A landed commit, and its claim about itself.
struct LandedClaim {
    commit: CommitInfo,
    landed: LandedTrailer,
}

/// A run's branch, and the audit of it.
struct AuditedBranch {
    branch: RunBranch,
    report: AuditReport,
}

/// Result of repeating a merge.
enum RemakeResult {
    /// The repeated commit, in the form closest to the landed one.
    Remade(CommitInfo),
    /// It cannot be repeated, for this reason.
    Unknown(String),
    /// It claims to bring in a run, and its files do not show it.
    Unresolved(String),
}

/// Result of checking a landed commit.
struct ClaimCheck {
    state: LandedState,
    differs: Vec<String>,
    note: Option<String>,
}

/// Verifies all landed commits of a branch.
pub fn audit_landed(site: &LandContext<'_>, branch: &str, tip: Id) -> Result<LandedReport, LandError> {
    let mut runs: BTreeMap<String, Option<AuditedBranch>> = BTreeMap::new();
    let mut commits = Vec::new();
    for (commit, value) in list_claims(site, &tip)? {
        if site.stop.is_cancelled() {
            return Err(verify::VerifyError::Interrupted.into());
        }
        let landed: LandedTrailer = match value.parse() {
            Ok(landed) => landed,
            Err(error) => {
                commits.push(to_malformed_check(commit, value, &error));
                continue;
            }
        };
        let run = landed.run.clone();
        let claim = LandedClaim { commit, landed };
        let audited = match runs.entry(run) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let audited = load_audited_branch(site, new.key())?;
                new.insert(audited)
            }
        };
        let result = check_claim(site, audited, &claim)?;
        commits.push(to_landed_check(claim, result));
    }
    Ok(LandedReport { branch: branch.to_owned(), tip: tip.to_string(), commits })
}

/// Returns the commits that claim to have landed something, oldest first, and what each claims of itself.
fn list_claims(site: &LandContext<'_>, tip: &Id) -> Result<Vec<(CommitInfo, String)>, LandError> {
    let mut claims = Vec::new();
    for (commit, message) in site.repository.find_commits_mentioning(tip, None, LANDED)? {
        let (Some(value), Some(commit)) =
            (landing::landing_values(&message).pop(), site.repository.first_parents(&commit, 1)?.pop())
        else {
            continue;
        };
        claims.push((commit, value));
    }
    claims.reverse();
    Ok(claims)
}

/// Reads a run's branch and audits it; `None` if it is not here. A fetched branch is used if there is no local one, or
/// if it continues the local one.
fn load_audited_branch(site: &LandContext<'_>, run: &str) -> Result<Option<AuditedBranch>, LandError> {
    let mut branch: Option<RunBranch> = None;
    for tip in verify::list_run_tips(site.repository, run)? {
        if branch.as_ref().is_some_and(|branch| branch.find_commit(&tip.to_string()).is_some()) {
            continue;
        }
        let target = VerifyTarget { run: run.to_owned(), tip };
        let plan = verify::plan_audit(site.repository, &target, site.stop)?;
        let next = RunBranch { target, plan };
        if branch.as_ref().is_none_or(|branch| next.find_commit(&branch.target.tip.to_string()).is_some()) {
            branch = Some(next);
        }
    }
    let Some(branch) = branch else { return Ok(None) };
    let report = verify::verify_branch(site.repository, &branch.target, false, site.stop)?;
    Ok(Some(AuditedBranch { branch, report }))
}

fn check_claim(
    site: &LandContext<'_>,
    known: &mut Option<AuditedBranch>,
    claim: &LandedClaim,
) -> Result<ClaimCheck, LandError> {
    let LandedTrailer { run, commit: of, .. } = &claim.landed;
    let Some(AuditedBranch { branch, report }) = known else {
        return Ok(ClaimCheck::unresolved(LandedState::Unknown, format!("branch runner/{run} is not here")));
    };
    if branch.find_commit(of).is_none() {
        let why = format!("commit {of} is not among the first parents of branch runner/{run}");
        return Ok(ClaimCheck::unresolved(LandedState::Unproven, why));
    }
    if let Some((why, is_unseen)) = branch.find_proof_gap_at(report, of) {
        let state = if is_unseen { LandedState::Unknown } else { LandedState::Unproven };
        return Ok(ClaimCheck::unresolved(state, why));
    }
    match remake_merge(site, branch, claim)? {
        RemakeResult::Unknown(why) => Ok(ClaimCheck::unresolved(LandedState::Unknown, why)),
        RemakeResult::Unresolved(why) => Ok(ClaimCheck::unresolved(LandedState::Unproven, why)),
        RemakeResult::Remade(expected) => compare_commits(site, claim, &expected),
    }
}

/// Repeats a merge onto the commit before it.
///
/// The claim may describe a later commit of the run than the named one: the last one when it landed.
fn remake_merge(
    site: &LandContext<'_>,
    branch: &mut RunBranch,
    claim: &LandedClaim,
) -> Result<RemakeResult, LandError> {
    let mut nearest = RemakeResult::Unknown("its merge cannot be made again".to_owned());
    let later = branch.plan.all_commits().iter().skip_while(|head| head.id != claim.landed.commit);
    let later: Vec<Id> = later.filter_map(|head| head.id.parse().ok()).collect();
    let mut states = BTreeSet::new();
    for tip in later {
        let Ok(loaded) = worker::load_state(site.repository, tip) else { continue };
        let root = &loaded.tree.root;
        if !states.insert((root.title.clone(), root.passes, loaded.goal.headline())) {
            continue;
        }
        branch.target.tip = tip;
        let result = remake_at_tip(site, branch, claim)?;
        let RemakeResult::Remade(commit) = &result else { return Ok(result) };
        let has_files = has_same_files(site, claim, commit)?;
        if !has_files || find_difference(claim, commit).is_none() {
            return Ok(result);
        }
        nearest = result;
    }
    Ok(nearest)
}

/// Repeats a merge as it was made when the run's branch ended at `branch.target.tip`.
fn remake_at_tip(site: &LandContext<'_>, branch: &RunBranch, claim: &LandedClaim) -> Result<RemakeResult, LandError> {
    let Some(before) = claim.commit.parents.first() else {
        return Ok(RemakeResult::Unknown("it has no parent".to_owned()));
    };
    let missing = match branch.find_missing(site.repository, before) {
        Ok(missing) => missing.commits,
        Err(LandError::Refused(refusal)) => return Ok(RemakeResult::Unknown(refusal.to_string())),
        Err(error) => return Err(error),
    };
    let MissingCommits::Missing(landing) = missing else {
        return Ok(RemakeResult::Unknown("what it brings was there before".to_owned()));
    };
    let last = landing.groups.iter().position(|cut| cut.commit == claim.landed.commit);
    let Some(last) = last else {
        return Ok(RemakeResult::Unknown("it brings a commit that does not end a task".to_owned()));
    };
    let landing =
        LandPlan { groups: landing.groups[..=last].to_vec(), last_change: landing.last_change.min(last), ..landing };
    let forms: &[LandForm] =
        if claim.commit.parents.len() > 1 { &[LandForm::Merge] } else { &[LandForm::Leaves, LandForm::Squash] };
    let mut nearest = RemakeResult::Unknown("its merge cannot be made again".to_owned());
    let mut is_near = false;
    for form in forms {
        let expected = match remake_form(site, branch, &landing, claim, *form, *before)? {
            RemakeResult::Remade(expected) => expected,
            RemakeResult::Unknown(_) => continue,
            unresolved @ RemakeResult::Unresolved(_) => return Ok(unresolved),
        };
        let has_files = has_same_files(site, claim, &expected)?;
        if has_files && find_difference(claim, &expected).is_none() {
            return Ok(RemakeResult::Remade(expected));
        }
        if has_files || !is_near {
            (nearest, is_near) = (RemakeResult::Remade(expected), has_files);
        }
    }
    Ok(nearest)
}

/// Repeats the commits of one form; leaves that became several commits are not claimed by a single one.
fn remake_form(
    site: &LandContext<'_>,
    branch: &RunBranch,
    landing: &LandPlan,
    claim: &LandedClaim,
    form: LandForm,
    before: Id,
) -> Result<RemakeResult, LandError> {
    let committer = Identity::runner();
    let with_runner =
        site.repository.read_runner_folder(&claim.commit.id)? != site.repository.read_runner_folder(&before)?;
    let accepted = landing::parse_accepted(&claim.commit.message);
    let manner = MergeOptions { form, with_runner, committer: &committer, sign: false, accepted: &accepted };
    let commits = match RunMerge::new(site, branch, landing, ("the branch", before), manner)?.create_commits() {
        Ok(commits) => commits,
        Err(LandError::Refused(refusal @ LandingRefusal::Unresolved { .. })) => {
            return Ok(RemakeResult::Unresolved(refusal.to_string()));
        }
        Err(LandError::Refused(refusal)) => return Ok(RemakeResult::Unknown(refusal.to_string())),
        Err(error) => return Err(error),
    };
    let [one] = &commits[..] else { return Ok(RemakeResult::Unknown("it brings more than one task".to_owned())) };
    let commit_id: Id = one.commit.parse().map_err(|_| verify::VerifyError::InvalidCommit(one.commit.clone()))?;
    let commit = site.repository.first_parents(&commit_id, 1)?.pop();
    Ok(commit.map_or_else(|| RemakeResult::Unknown("its merge is gone".to_owned()), RemakeResult::Remade))
}

fn has_same_files(site: &LandContext<'_>, claim: &LandedClaim, remade: &CommitInfo) -> Result<bool, GitError> {
    Ok(site.repository.tree_id(&remade.id)? == claim.commit.tree)
}

/// Describes differences in anything but files between a landed commit and its repetition.
fn find_difference(claim: &LandedClaim, remade: &CommitInfo) -> Option<String> {
    let identify = |commit: &CommitInfo| {
        let parents: Vec<String> = commit.parents.iter().map(Id::to_string).collect();
        (parents, format!("{} <{}>", commit.author.name, commit.author.email))
    };
    let ((parents, author), (expected, writer)) = (identify(&claim.commit), identify(remade));
    let expected_fields = LandedCommitFields { parents: &expected, author: &writer, message: &remade.message };
    LandedCommitFields { parents: &parents, author: &author, message: &claim.commit.message }
        .describe_difference(&expected_fields)
}

/// Compares a landed commit with its repetition.
fn compare_commits(site: &LandContext<'_>, claim: &LandedClaim, remade: &CommitInfo) -> Result<ClaimCheck, LandError> {
    let commit = &claim.commit;
    let git = site.repository.git_version()?;
    let other = landing::parse_git_version(&commit.message).filter(|by| *by != git);
    let by_other = other.map(|by| format!("it was merged by git {by}, and made again by git {git}"));
    if !has_same_files(site, claim, remade)? {
        let paths = site.repository.changed_paths(&remade.id, &commit.id)?;
        let differs = paths.iter().take(SHOWN).map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        let state = if by_other.is_some() { LandedState::Unknown } else { LandedState::Differs };
        return Ok(ClaimCheck { state, differs, note: by_other });
    }
    Ok(match find_difference(claim, remade) {
        Some(fault) => ClaimCheck::unresolved(LandedState::Differs, fault),
        None => ClaimCheck { state: LandedState::Same, differs: Vec::new(), note: by_other },
    })
}

impl ClaimCheck {
    fn unresolved(state: LandedState, note: String) -> Self {
        Self { state, differs: Vec::new(), note: Some(note) }
    }
}

/// Describes a commit whose claim names no commit of a run.
fn to_malformed_check(commit: CommitInfo, value: String, error: &InvalidLandedTrailer) -> LandedCheck {
    let landed = LandedTrailer { run: value, commit: String::new(), node: NO_NODE.to_owned() };
    let note = format!("{LANDED}: {error}");
    let claim = LandedClaim { commit, landed };
    to_landed_check(claim, ClaimCheck::unresolved(LandedState::Unproven, note))
}

fn to_landed_check(
    LandedClaim { commit, landed }: LandedClaim,
    ClaimCheck { state, differs, note }: ClaimCheck,
) -> LandedCheck {
    let subject = commit.message.lines().next().unwrap_or_default().to_owned();
    let LandedTrailer { run, commit: of, node } = landed;
    LandedCheck { run, landed: LandedCommit { commit: commit.id.to_string(), subject, node, of }, state, differs, note }
}
