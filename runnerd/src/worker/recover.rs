//! What a previous life has left: state that is read, or holds the repository, and a journal that is gone through again.

use jiff::SignedDuration;
use runner_core::iteration::{Event, Phase};
use runner_core::message::{Receipt, RunnerCommit};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::run::{self, Effect};
use runner_core::verdict::Task;
use runner_core::wait::Wait;
use tokio::task::block_in_place;

use super::desk::reason;
use super::drive::DriveError;
use super::failure::Failure;
use super::journal::{self, Place, Recorded};
use super::life::Life;
use super::log::{Entries, JournalLog};
use super::site::{Obstacle, Site};
use crate::causes::in_one_line;
use crate::clock;
use crate::git::Id;
use crate::obstruction::{Obstructs as _, obstruction};

/// Pause before state that could not be read is read again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

impl Life {
    /// Reads what a previous life has left; what cannot be read holds the repository, and is read again by itself where
    /// that may help.
    pub(super) fn recover(&mut self) {
        let left = self.read_left();
        let passes = left.as_ref().is_err_and(Failure::passes);
        let now = clock::now();
        self.desk.look_again = passes.then(|| Wait { since: now, until: now + LOOK_AGAIN });
        self.desk.held = left.err().map(|error| {
            tracing::error!(repo = self.desk.file.id, error = in_one_line(&error), "repository held");
            let message = format!("the daemon's state of this repository cannot be read: {}", in_one_line(&error));
            reason(message, self.way_on(passes))
        });
        self.desk.refuse_steps_if_held();
        self.refresh();
    }

    fn way_on(&self, passes: bool) -> &'static str {
        match (passes, self.desk.frozen) {
            (true, _) => "it is read again by itself, and at once with: runnerctl resume",
            (false, true) => {
                "restore the file, and: runnerctl resume; or forget the repository: runnerctl repos --remove PATH"
            }
            (false, false) => "look at the file, move it away, and: runnerctl resume",
        }
    }

    fn read_left(&mut self) -> Result<(), Failure> {
        if self.desk.frozen {
            let no_record = || Failure::NoRecord { folder: self.desk.store.folder() };
            self.desk.file = self.desk.store.take_over()?.ok_or_else(no_record)?;
            self.desk.frozen = false;
        }
        self.desk.changes = block_in_place(|| self.desk.store.load_changes())?;
        self.recorded = None;
        self.desk.unfinished = None;
        let place = Place::of(&self.desk.store);
        let Some(recorded) = block_in_place(|| place.read())? else { return Ok(()) };
        let Some(run) = self.desk.run(&recorded.header.run) else { return Ok(()) };
        let is_over = matches!(journal::replay(place.path(), &recorded), Ok(Phase::Over { .. }));
        if run::decide(run, run::Event::Restarted { is_over }, clock::now())?.effects.contains(&Effect::RemoveJournal) {
            // What followed from it is written down.
            return Ok(place.remove()?);
        }
        self.desk.unfinished = Some(run.id.clone());
        self.recorded = Some(recorded);
        Ok(())
    }

    /// Reads the journal of a previous life again before its run has its turn: a person may have moved it away. False
    /// if the repository is held now.
    pub(super) fn read_again(&mut self) -> bool {
        if self.recorded.is_some() {
            self.recover();
        }
        self.desk.held.is_none()
    }

    /// Goes on with the journal of a previous life, however long the disk refuses.
    pub(super) async fn reopen(
        &mut self,
        site: &Site,
        recorded: Recorded,
        entries: &Entries,
    ) -> Result<(Phase, JournalLog), DriveError> {
        block_in_place(|| refuse_outdated(site, &recorded))?;
        let mut tries = 0;
        loop {
            match block_in_place(|| JournalLog::reopen(&self.desk.store, recorded.clone(), entries.clone())) {
                Err(DriveError::Journal(error)) if error.is_obstacle() && !self.desk.is_shutting_down() => {
                    tries += 1;
                    if !self.wait_for_obstacle(&site.run, &obstruction(&error), tries).await {
                        return Err(error.into());
                    }
                }
                reopened => {
                    let reopened = reopened?;
                    self.recorded = None;
                    self.desk.unfinished = None;
                    return Ok(reopened);
                }
            }
        }
    }

    /// Removes the journal of an iteration from which nothing is left to follow.
    pub(super) fn close_journal(&self) {
        if let Err(error) = Place::of(&self.desk.store).remove() {
            tracing::warn!(repo = self.desk.file.id, error = in_one_line(&error), "the journal stays");
        }
    }

    /// Removes what the effects of a settled iteration have kept.
    pub(super) fn sweep_live(&self) {
        let Ok(files) = std::fs::read_dir(self.desk.store.live()) else { return };
        for file in files.flatten().filter(|file| file.file_name() != "shim.lock") {
            // What stays is removed when the same number is used again.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Refuses a journal that is not of what goes on: its seals do not tell an old one, or the beginning of one, from the
/// last, and the branch does.
fn refuse_outdated(site: &Site, recorded: &Recorded) -> Result<(), DriveError> {
    let phase = journal::replay(Place::of(&site.store).path(), recorded)?;
    let opened = recorded.entries.iter().find_map(|entry| match &entry.event {
        Event::Opened(task) => Some(task),
        _ => None,
    });
    let Some(task) = opened else { return Ok(()) };
    let is_settling = matches!(phase, Phase::Settle { .. } | Phase::Over { .. });
    let beyond = made_beyond(site, (task, is_settling)).map_err(|error| DriveError::Obstructed(obstruction(&error)))?;
    let Some(commit) = beyond else { return Ok(()) };
    let what = format!("the journal is of iteration {}, and the branch has gone on to {}", task.iter, commit.short(12));
    let remedy = format!("look at {}, and move it away", Place::of(&site.store).path().display());
    Err(DriveError::Obstructed(Obstruction { what, remedy, nature: Nature::Lasting }))
}

/// Returns a commit of an iteration upon From that a journal of this one cannot know of.
fn made_beyond(site: &Site, (task, is_settling): (&Task, bool)) -> Result<Option<Id>, Obstacle> {
    let repository = site.repository()?;
    if !repository.find_pipes().is_empty() {
        // Git would wait for them; those who look at what the session has left take them away.
        return Ok(None);
    }
    let is_beyond = |receipt: &Receipt| {
        let is_own = receipt.iter == task.iter && receipt.from == task.from && is_settling;
        receipt.run == site.run && receipt.iter >= task.iter && !is_own
    };
    Ok(Site::was_made(
        &repository,
        &task.from,
        |commit| matches!(commit, RunnerCommit::Iteration(receipt) if is_beyond(receipt)),
    )?)
}
