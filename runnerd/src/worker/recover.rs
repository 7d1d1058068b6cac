//! What a previous life has left: state that is read, or holds the repository, and a journal that is gone through again.

use jiff::SignedDuration;
use protocol::words::RunStatus;
use runner_core::iteration::Phase;
use runner_core::obstacle::Nature;
use runner_core::wait::Wait;
use tokio::task::block_in_place;

use super::desk::reason;
use super::drive::DriveError;
use super::journal::{self, Recorded};
use super::life::{Failure, Life};
use super::log::{Entries, JournalLog};
use super::obstruction::{nature, obstruction};
use crate::causes::in_one_line;
use crate::clock;

/// Pause before state that could not be read is read again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

impl Life {
    /// Reads what a previous life has left; what cannot be read holds the repository, and is read again by itself where
    /// that may help.
    pub(super) fn recover(&mut self) {
        let left = self.read_left();
        let passes = left.as_ref().is_err_and(|error| nature(&**error) == Nature::Passing);
        let now = clock::now();
        self.desk.look_again = passes.then(|| Wait { since: now, until: now + LOOK_AGAIN });
        self.desk.held = left.err().map(|error| {
            tracing::error!(repo = self.desk.file.id, error = in_one_line(&*error), "repository held");
            let message = format!("the daemon's state of this repository cannot be read: {}", in_one_line(&*error));
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
            self.desk.file = self
                .desk
                .store
                .take_over()?
                .ok_or_else(|| format!("{} has no repo.json", self.desk.store.folder().display()))?;
            self.desk.frozen = false;
        }
        self.desk.changes = block_in_place(|| self.desk.store.load_changes())?;
        self.recorded = None;
        self.desk.unfinished = None;
        let path = self.desk.store.journal();
        let Some(recorded) = block_in_place(|| journal::read(self.desk.store.disk(), &path))? else { return Ok(()) };
        let Some(run) = self.desk.run(&recorded.header.run) else { return Ok(()) };
        let is_over = matches!(journal::replay(&path, &recorded), Ok(Phase::Over { .. }));
        if run.state != RunStatus::Running && (is_over || run.state.is_terminal()) {
            // What followed from it is written down.
            return Ok(journal::remove(self.desk.store.disk(), &path)?);
        }
        self.desk.unfinished = Some(run.id.clone());
        self.recorded = Some(recorded);
        Ok(())
    }

    /// Goes on with the journal of a previous life, however long the disk refuses.
    pub(super) async fn reopen(
        &mut self,
        id: &str,
        recorded: Recorded,
        entries: &Entries,
    ) -> Result<(Phase, JournalLog), DriveError> {
        let mut tries = 0;
        loop {
            match block_in_place(|| JournalLog::reopen(&self.desk.store, recorded.clone(), entries.clone())) {
                Err(DriveError::Journal(error)) if error.is_obstacle() && !self.desk.is_shutting_down() => {
                    tries += 1;
                    if !self.wait_for_obstacle(id, &obstruction(&error), tries).await {
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
        if let Err(error) = journal::remove(self.desk.store.disk(), &self.desk.store.journal()) {
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
