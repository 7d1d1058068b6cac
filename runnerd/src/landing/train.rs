//! Runs landing one behind the other: each upon what the ones before it have led to, and one that does not fit is left out.
//! No reference moves here.

use protocol::error::{ErrorData, ErrorKind};
use protocol::landing::{LandForm, LandOutcome, LandParams, LandRefusal, LandedCommit, RunLanding};
use runner_core::landing::train::{Car, order};
use runner_core::landing::{Lacks, Landing, Refusal, begins_on};
use runner_core::shell;
use tokio::task::block_in_place;

use super::branch::{Branch, Missing};
use super::fit::{Fit, Manner};
use super::{LandError, Site, guarded};
use crate::config::RepoConfig;
use crate::git::{Id, Identity};
use crate::verify::VerifyError;
use crate::worker::load_config;

/// Runs that are to land, and how.
#[derive(Debug)]
pub struct Train<'a> {
    /// What was asked.
    pub asked: &'a LandParams,
    /// Short name of the branch.
    pub onto: &'a str,
    /// The run of which a session is at work: its last commits have no receipt yet.
    pub live: Option<&'a str>,
    /// Digests of the commands that this user has confirmed.
    pub known: &'a [String],
}

/// What is ready to be moved to.
#[derive(Debug)]
pub struct Prepared {
    /// The branch's tip; none where it is to be made.
    pub before: Option<Id>,
    /// The commit that it is to be at.
    pub after: Id,
    /// What becomes of each run, in the order in which they land.
    pub runs: Vec<RunLanding>,
}

impl Prepared {
    /// Whether there is anything to move to.
    pub fn moves(&self) -> bool {
        self.before != Some(self.after)
    }
}

/// Merges runs and runs their guards on what comes of it.
///
/// One run alone that does not fit is an error; of several, it is left out.
pub async fn prepare(site: &Site<'_>, train: &Train<'_>) -> Result<Prepared, LandError> {
    let (before, branches) = block_in_place(|| Ok::<_, LandError>((tip(site, train)?, branches(site, train)?)))?;
    let begin = match before {
        Some(tip) => tip,
        None => block_in_place(|| beginning(site, train))?,
    };
    let mut prepared = Prepared { before, after: begin, runs: Vec::new() };
    let is_alone = branches.len() == 1;
    for branch in &branches {
        let landed = one(site, train, (branch, prepared.after)).await;
        let landing = match landed {
            Ok(landing) => landing,
            Err(LandError::Refused(refusal)) if !is_alone => {
                let hint = refusal.hint(train.onto);
                left_out(branch.run(), LandRefusal { message: refusal.to_string(), hint })
            }
            Err(error) => return Err(error),
        };
        if let (LandOutcome::Landed, Some(last)) = (landing.outcome, landing.commits.last()) {
            prepared.after = last.commit.parse().map_err(|_| VerifyError::NoCommit(last.commit.clone()))?;
        }
        prepared.runs.push(landing);
    }
    Ok(prepared)
}

fn left_out(run: &str, refusal: LandRefusal) -> RunLanding {
    let (commits, notes) = (Vec::new(), Vec::new());
    RunLanding { run: run.to_owned(), outcome: LandOutcome::LeftOut, commits, refusal: Some(refusal), notes }
}

/// Returns the branch's tip; none where there is no such branch and it is said where it begins.
fn tip(site: &Site<'_>, train: &Train<'_>) -> Result<Option<Id>, LandError> {
    let onto = train.onto;
    if onto.starts_with("runner/") {
        let message = format!("{onto} is the branch of a run: nothing lands on it");
        let hint = shell::words(["git", "branch", "--list"]);
        return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint(hint).into());
    }
    let tip = site.repository.branch(onto)?;
    if tip.is_none() && train.asked.from.is_none() {
        let message = format!("there is no branch {onto} in {}", site.repository.work_dir().display());
        let hint = shell::words(["git", "branch", "--list"]);
        return Err(ErrorData::new(ErrorKind::NotFound, message).hint(hint).into());
    }
    if tip.is_none() {
        site.repository.refuse_no_room(&format!("refs/heads/{onto}"))?;
    }
    Ok(tip)
}

/// Returns the commit at which the branch is made.
fn beginning(site: &Site<'_>, train: &Train<'_>) -> Result<Id, LandError> {
    let from = train.asked.from.as_deref().unwrap_or_default();
    let found = site.repository.resolve(from)?;
    found.ok_or_else(|| {
        let message = format!("`{from}` names no commit");
        ErrorData::new(ErrorKind::InvalidRequest, message).hint("git log --oneline").into()
    })
}

/// Reads the branches of the runs, each once, in the order in which they land.
fn branches(site: &Site<'_>, train: &Train<'_>) -> Result<Vec<Branch>, LandError> {
    let mut branches: Vec<Branch> = Vec::new();
    for wanted in &train.asked.runs {
        let branch = Branch::read(site, wanted)?;
        if branches.iter().all(|known| known.run() != branch.run()) {
            branches.push(branch);
        }
    }
    let cars: Vec<Car> = branches
        .iter()
        .map(|branch| Car { run: branch.run().to_owned(), begins_on: begins_on(&branch.plan) })
        .collect();
    let mut branches: Vec<Option<Branch>> = branches.into_iter().map(Some).collect();
    Ok(order(&cars).into_iter().filter_map(|at| branches[at].take()).collect())
}

/// Lands one run upon a commit, and has its guard look at the result.
async fn one(site: &Site<'_>, train: &Train<'_>, (branch, onto): (&Branch, Id)) -> Result<RunLanding, LandError> {
    let (missing, config) = block_in_place(|| {
        branch.refuse_unproven(site, (train.asked.unproven, train.live))?;
        let config = load_config(site.repository, branch.target.tip);
        let config = config.map_err(|error| VerifyError::State(Box::new(error)))?;
        Ok::<_, LandError>((branch.missing(site.repository, &onto)?, config))
    })?;
    let Lacks::Something(landing) = &missing.lacks else { return Ok(already(branch, &missing)) };
    let commits = block_in_place(|| {
        if train.asked.form == LandForm::Merge {
            refuse_swallowing(site, (branch, &missing), (train.onto, &onto))?;
        }
        merged(site, train, (branch, landing, &config), onto)
    })?;
    let Some(last) = commits.last() else { return Ok(already(branch, &missing)) };
    if !train.asked.preview {
        confirm(train, &config)?;
        let result = last.commit.parse().map_err(|_| VerifyError::NoCommit(last.commit.clone()))?;
        guarded::check(site, (branch, &config), &result).await?;
    }
    let notes = notes(branch, landing, train.asked.form);
    Ok(RunLanding { run: branch.run().to_owned(), outcome: LandOutcome::Landed, commits, refusal: None, notes })
}

/// Refuses a merge whose history would have commits from before the run that the branch has not, and its files not theirs.
fn refuse_swallowing(
    site: &Site<'_>,
    (branch, missing): (&Branch, &Missing),
    (onto, tip): (&str, &Id),
) -> Result<(), LandError> {
    let Some(before) = &missing.before else { return Ok(()) };
    let commit: Id = before.parse().map_err(|_| VerifyError::NoCommit(before.clone()))?;
    if site.repository.is_ancestor(&commit, tip)? {
        return Ok(());
    }
    let (run, commit, onto) = (branch.run().to_owned(), commit.short(12), onto.to_owned());
    Err(Refusal::WouldSwallow { run, commit, onto }.into())
}

fn merged(
    site: &Site<'_>,
    train: &Train<'_>,
    (branch, landing, config): (&Branch, &Landing, &RepoConfig),
    onto: Id,
) -> Result<Vec<LandedCommit>, LandError> {
    let committer = site.repository.identity().unwrap_or_else(Identity::runner);
    let LandParams { form, with_runner, .. } = *train.asked;
    // A preview asks nobody for a key.
    let sign = config.git.sign && !train.asked.preview;
    let manner = Manner { form, with_runner, committer: &committer, sign };
    Fit::new(site, (branch, landing), (train.onto, onto), manner)?.commits()
}

/// Tells of a run of which the branch has everything: by which commit, where one says so.
fn already(branch: &Branch, missing: &Missing) -> RunLanding {
    let newest = missing.landed.iter().find_map(|(commit, landed)| {
        let of = landed.iter().rev().find(|landed| branch.head(&landed.commit).is_some())?;
        Some(LandedCommit {
            commit: commit.to_string(),
            subject: String::new(),
            node: of.node.clone(),
            of: of.commit.clone(),
        })
    });
    let (commits, run) = (newest.into_iter().collect(), branch.run().to_owned());
    RunLanding { run, outcome: LandOutcome::AlreadyLanded, commits, refusal: None, notes: Vec::new() }
}

fn notes(branch: &Branch, landing: &Landing, form: LandForm) -> Vec<String> {
    let mut notes = Vec::new();
    if form == LandForm::Merge {
        let run = branch.run();
        notes.push(format!(
            ".runner/ is in the history of runner/{run}, which is merged, and so are the messages of its commits, as \
             sessions wrote them"
        ));
    }
    match landing.left {
        0 => {}
        1 => notes.push("1 commit after the last leaf that passed does not land".to_owned()),
        left => notes.push(format!("{left} commits after the last leaf that passed do not land")),
    }
    notes
}

/// Refuses to run a guard's command, and the setup before it, that this user has not confirmed.
fn confirm(train: &Train<'_>, config: &RepoConfig) -> Result<(), LandError> {
    if train.asked.confirmed || train.known.contains(&config.commands_digest()) {
        return Ok(());
    }
    let setup = Some(&config.workspace.setup).filter(|argv| !argv.is_empty());
    let commands = setup.into_iter().chain([&config.guard.command]);
    let message = format!("the guard would be run on the result, as this user:{}", shell::lines(commands));
    Err(ErrorData::new(ErrorKind::Unconfirmed, message).hint("look at the command, then add --yes").into())
}
