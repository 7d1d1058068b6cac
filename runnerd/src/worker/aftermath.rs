//! What follows from an iteration: told to subscribers, decided by `runner_core::run`, and written down.

use protocol::event::EventKind;
use protocol::meta::SecretSeen;
use protocol::words::GuardOutcome;
use runner_core::fallback::Outage;
use runner_core::run::{self, Event, IllegalEvent, Next};
use runner_core::tree;
use runner_core::verdict::{Task, Verdict, row};
use tokio::task::block_in_place;

use super::failure::Failure;
use super::life::{Life, Then};
use super::load::Loaded;
use super::log::SessionFacts;
use super::open::Found;
use super::site::Site;
use crate::clock;
use crate::git::CommitInfo;

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
    pub(super) async fn untouched(&mut self, id: &str, found: Option<Found>) -> Result<Then, IllegalEvent> {
        let event = match found {
            Some(Found::Next(next)) => return self.follow(id, next, Event::Declined).await,
            Some(Found::Hold(why)) => Event::Hold(why),
            Some(Found::Task(..)) | None => Event::Between,
        };
        self.happens(id, event).await?;
        Ok(Then::Rest)
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
        self.learn(id, settled).await?;
        self.tell_questions(site, settled.task, &loaded);
        let Some(run) = self.desk.run(id) else { return Ok(Then::Rest) };
        let next = run::next(&loaded.standing(&run.uncommitted), Some(verdict), run.asked);
        if !matches!(next, Next::GoOn(_)) {
            // Whoever sees that the run has stopped sees all that led to it.
            self.refresh();
        }
        Ok(self.follow(id, next, Event::Followed).await?)
    }

    /// Keeps what no commit holds of an iteration.
    async fn learn(&mut self, id: &str, settled: Settled<'_>) -> Result<(), IllegalEvent> {
        let Settled { mark, task, verdict, facts, commit, .. } = settled;
        let Some(run) = self.desk.run(id) else { return Ok(()) };
        let is_committed = commit.is_some();
        let seen =
            run::Settled { mark, task, verdict, is_reviewed: facts.is_reviewed, spent: &facts.spent, is_committed };
        let Some(after) = run.uncommitted.after(seen, clock::now()) else { return Ok(()) };
        if let (Verdict::Unavailable { .. }, Some(Outage { kind, why, wait, .. })) =
            (verdict, after.outages.last().cloned())
        {
            self.desk.tell(id, Some(task.iter), EventKind::Outage { agent: kind, why, until: wait.until });
        }
        self.happens(id, Event::Learned(after)).await.map(drop)
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
    async fn follow(&mut self, id: &str, next: Next, event: fn(Next) -> Event) -> Result<Then, IllegalEvent> {
        let then = if matches!(next, Next::GoOn(_)) { Then::GoOn } else { Then::Rest };
        self.happens(id, event(next)).await?;
        Ok(then)
    }
}
