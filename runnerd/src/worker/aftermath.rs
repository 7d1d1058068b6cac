//! What follows from an iteration: told to subscribers, decided by `runner_core::run`, and written down.

use protocol::event::EventKind;
use protocol::meta::SecretSeen;
use protocol::view::StopReason;
use protocol::words::{GuardOutcome, RunStatus};
use runner_core::fallback::{self, Outage};
use runner_core::run::{self, Asked, Next};
use runner_core::tree;
use runner_core::usage::Spent;
use runner_core::verdict::{StopCause, Task, Verdict, row};
use tokio::task::block_in_place;

use super::desk;
use super::failure::Failure;
use super::life::{Life, Then};
use super::load::Loaded;
use super::log::SessionFacts;
use super::open::Found;
use super::site::Site;
use crate::clock;
use crate::git::CommitInfo;
use crate::store::{AskedFor, RunRecord, Uncommitted};

/// What people are told of an iteration, and what decides nothing.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Files of the session that hold secrets.
    pub(super) secrets: Vec<SecretSeen>,
    /// References of others that its processes moved.
    pub(super) moved_refs: Vec<String>,
}

/// An iteration that was settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settled<'a> {
    /// Where it took place.
    pub(super) site: &'a Site,
    /// Its mark, which no other iteration has.
    pub(super) mark: &'a str,
    /// What it was about.
    pub(super) task: &'a Task,
    /// How it ended.
    pub(super) verdict: &'a Verdict,
    /// Its session.
    pub(super) facts: &'a SessionFacts,
    /// What was found in passing.
    pub(super) seen: &'a Seen,
    /// Its commit, where it has one.
    pub(super) commit: Option<&'a str>,
}

impl Life {
    /// Follows an iteration that began nothing.
    pub(super) async fn untouched(&mut self, id: &str, found: Option<Found>) -> Then {
        match found {
            // A stop that came meanwhile goes before a wait.
            Some(Found::Next(Next::Wait(..))) if self.stopped_before_work(id).await => Then::Rest,
            Some(Found::Next(next)) => self.follow(id, next).await,
            Some(Found::Hold(why)) => {
                self.write(id, |run| hold(run, why.clone())).await;
                Then::Rest
            }
            Some(Found::Task(..)) | None => {
                self.stopped_before_work(id).await;
                Then::Rest
            }
        }
    }

    /// Follows an iteration that was settled.
    pub(super) async fn settled(&mut self, id: &str, settled: Settled<'_>) -> Result<Then, Failure> {
        let Settled { site, verdict, commit, .. } = settled;
        let (loaded, made) = block_in_place(|| -> Result<_, Failure> {
            let repository = site.repository()?;
            let tip = repository.branch(&site.branch())?.ok_or(Failure::NoBranch)?;
            let made = commit.map(str::parse).transpose()?;
            let made = made.map(|made| repository.first_parents(&made, 1)).transpose()?;
            Ok((site.shelf.load(&repository, tip)?, made.and_then(|made| made.into_iter().next())))
        })?;
        self.tell_settled(&loaded, settled, made.as_ref());
        self.learn(id, settled).await;
        self.tell_questions(site, settled.task, &loaded);
        let Some(run) = self.desk.run(id) else { return Ok(Then::Rest) };
        let asked = match run.asked {
            None => Asked::Nothing,
            Some(AskedFor::Pause) => Asked::Pause,
            Some(AskedFor::Step) => Asked::Step,
            Some(AskedFor::Cancel) => Asked::Cancel,
        };
        let next = run::next(&loaded.standing(&run.uncommitted), Some(verdict), asked);
        if !matches!(next, Next::GoOn(_)) {
            // Whoever sees that the run has stopped sees all that led to it.
            self.refresh();
        }
        Ok(self.follow(id, next).await)
    }

    /// Keeps what no commit holds of an iteration, once: it may be followed again after a crash.
    async fn learn(&mut self, id: &str, settled: Settled<'_>) {
        let Settled { mark, task, verdict, facts, commit, .. } = settled;
        let Some(before) = self.desk.run(id).map(|run| &run.uncommitted) else { return };
        let kind = |kind: &Option<String>| kind.clone().unwrap_or_default();
        let (worker, reviewer) = (kind(&task.kind), kind(&task.reviewer));
        let outages = if facts.is_reviewed {
            fallback::after_review(&before.outages, (&worker, &reviewer), verdict, clock::now())
        } else {
            fallback::after(&before.outages, &worker, verdict, clock::now())
        };
        let tried = if commit.is_some() { Spent::default() } else { before.tried.and(&facts.spent) };
        let word = before.word.clone().filter(|_| is_still_said(settled));
        let is_followed = before.followed.as_deref() == Some(mark);
        let is_another = outages != before.outages || tried != before.tried || word != before.word;
        if !is_followed && is_another {
            if let (Verdict::Unavailable { .. }, Some(Outage { kind, why, wait, .. })) =
                (verdict, outages.last().cloned())
            {
                let kind = EventKind::Outage { agent: kind, why, until: wait.until };
                self.desk.tell(id, Some(task.iter), kind);
            }
            let after = Uncommitted { outages, tried, followed: Some(mark.to_owned()), word };
            self.write(id, |run| run.uncommitted.clone_from(&after)).await;
        }
    }

    fn tell_settled(&mut self, loaded: &Loaded, settled: Settled<'_>, commit: Option<&CommitInfo>) {
        let Settled { task, verdict, facts, .. } = settled;
        self.desk.stepped_iter = Some(task.iter);
        let tell = |kind| self.desk.tell(&task.run, Some(task.iter), kind);
        if let Some(commit) = commit {
            let subject = commit.message.lines().next().unwrap_or_default().to_owned();
            tell(EventKind::Commit { commit: commit.id.to_string(), subject });
        }
        if !loaded.run_state.reverted.is_empty() && commit.is_some() {
            tell(EventKind::Reverted { paths: loaded.run_state.reverted.clone() });
        }
        let Seen { secrets, moved_refs } = settled.seen.clone();
        if !secrets.is_empty() {
            tell(EventKind::Secrets { seen: secrets });
        }
        if !moved_refs.is_empty() {
            tell(EventKind::Refs { moved: moved_refs });
        }
        let (leaves_passed, leaves_total) = loaded.tree.root.leaves();
        tell(EventKind::Tree { leaves_passed, leaves_total });
        let row = row(verdict.name());
        let guard = loaded.run_state.last_guard.filter(|_| commit.is_some()).or(row.guard);
        tell(EventKind::Iteration {
            node: task.node.clone(),
            verdict: verdict.name(),
            status: row.status,
            guard: guard.unwrap_or(GuardOutcome::Skipped),
            attempts: tree::find(&loaded.tree, &task.node).map_or(task.attempts, |node| node.attempts),
            max_attempts: task.max_attempts,
            agent: Some(facts.agent.clone()).filter(|agent| !agent.is_empty()),
            usage: facts.usage,
        });
    }

    /// Writes down what a run does next.
    async fn follow(&mut self, id: &str, next: Next) -> Then {
        match next {
            Next::GoOn(_) => return Then::GoOn,
            Next::Wait(wait, reason) => {
                self.write(id, |run| {
                    run.state = RunStatus::Waiting;
                    run.reason = Some(reason.clone());
                    run.wait = Some(wait);
                })
                .await;
            }
            Next::WaitForPerson(reason) => {
                self.write(id, |run| {
                    run.state = RunStatus::Waiting;
                    run.reason = Some(reason.clone());
                })
                .await;
            }
            Next::Pause(why) => self.write(id, |run| pause(run, why.clone())).await,
            Next::End { status, reason } => self.write(id, |run| desk::end(run, status, reason.clone())).await,
        }
        Then::Rest
    }
}

/// Whether a person's word is said again when the run goes on: it was cut off, or the guard could not be asked.
fn is_still_said(settled: Settled<'_>) -> bool {
    let Settled { verdict, commit, .. } = settled;
    let is_cut_off = match verdict {
        Verdict::Interrupted { by } => *by != StopCause::Cancel,
        verdict => matches!(verdict, Verdict::Timeout { .. } | Verdict::Misconfigured { .. }),
    };
    commit.is_none() && is_cut_off
}

/// Pauses a run's record.
pub(super) fn pause(run: &mut RunRecord, why: StopReason) {
    run.state = RunStatus::Paused;
    run.reason = Some(why);
    run.asked = None;
}

/// Holds a run's record until somebody looks.
pub(super) fn hold(run: &mut RunRecord, why: StopReason) {
    run.state = RunStatus::Held;
    run.reason = Some(why);
}
