//! The steps of publishing, each of which may be the last before a death: objects, the references that keep them, and the
//! branch at the end.

use runner_core::publish::{self, Standing, Whole};

use super::look::Look;
use super::{PublishError, Published, Publisher};
use crate::git::{Id, Known, Reached, RefChange, Use};

/// Said in the logs of references.
const MESSAGE: &str = "runner: publish";

impl Publisher<'_> {
    /// Puts what is new into the source, or everything.
    pub(super) fn send(&mut self, look: &Look, everything: bool) -> Result<(), PublishError> {
        self.progress.has_sent = true;
        self.progress.has_sent_all |= everything;
        let known = look.at.as_deref().and_then(|at| at.parse().ok()).or(look.base).filter(|_| !everything);
        // Before the pointers to them.
        self.workspace.send_large_files(&self.target)?;
        let tips = if everything { look.tips() } else { look.news() };
        let is_seen = self.workspace.send_objects(&self.target, Reached { from: &tips, not_from: known.as_slice() })?;
        self.progress.whole = look.seen.when_sent(is_seen, look.at == look.branch);
        self.progress.sent = tips;
        Ok(())
    }

    /// Points to the objects what keeps them, in one transaction.
    pub(super) fn keep(&mut self, look: &Look) -> Result<(), PublishError> {
        let [wanted, there] = &look.extras;
        let differing = wanted.iter().filter(|(name, id)| there.get(*name) != Some(id));
        let mut changes: Vec<RefChange> = differing
            .map(|(name, id)| RefChange { name: name.clone(), from: there.get(name).copied(), to: *id })
            .collect();
        if look.seen.at != Standing::Same {
            let from = look.at.as_deref().and_then(|at| at.parse().ok());
            changes.push(RefChange { name: publish::keeper(&self.source.run), from, to: look.tip });
        }
        self.progress.whole = Whole::Unknown;
        Ok(self.target.change_refs(MESSAGE, &changes)?)
    }

    /// Looks whether the source has all that the run's references lead to.
    pub(super) fn check(&mut self, look: &Look) -> Result<(), PublishError> {
        let branch = look.branch.as_deref().and_then(|branch| branch.parse().ok());
        let known = match branch {
            _ if self.progress.has_sent_all => Known::Nothing,
            // It was looked at before it was moved there.
            Some(branch) if look.seen.branch == Standing::Behind => Known::Commit(branch),
            _ => Known::References,
        };
        // What was kept by a life before may never have been looked at.
        let tips =
            if self.progress.has_sent { [look.news(), self.progress.sent.clone()].concat() } else { look.tips() };
        let missing = self.target.lacking(&tips, known)?;
        self.progress.whole = match &missing {
            None => Whole::Yes,
            Some(_) if self.progress.has_sent_all => Whole::LackingAll,
            Some(_) => Whole::Lacking,
        };
        self.progress.missing = missing.unwrap_or_default();
        Ok(())
    }

    /// Moves the branch from where it was read, unless somebody has checked it out meanwhile.
    pub(super) fn move_branch(&self, look: &Look) -> Result<(), PublishError> {
        let from = look.branch.as_deref().and_then(|branch| branch.parse().ok());
        let note = Published { from, to: look.tip, is_done: false };
        self.note.write(&note)?;
        self.set_branch(from, look.tip)?;
        self.look_after(&note)
    }

    /// Sets the branch.
    pub(super) fn set_branch(&self, from: Option<Id>, to: Id) -> Result<(), PublishError> {
        let name = format!("refs/heads/{}", self.branch());
        Ok(self.target.change_refs(MESSAGE, &[RefChange { name, from, to }])?)
    }

    /// Looks after a move whether somebody has checked the branch out just before it: his files are of where it was, and
    /// would look like a change that takes the run's commit back. Then the branch goes back too.
    pub(super) fn look_after(&self, note: &Published) -> Result<(), PublishError> {
        let used = self.target.in_use(&self.branch())?;
        if let (Some(from), Some(used)) = (note.from, &used) {
            let is_of_now = used.how == Use::CheckedOut && self.target.was_laid_out_from(used, &note.to, &from)?;
            if !is_of_now {
                tracing::info!(run = self.source.run, place = %used.work_tree.display(), "the branch goes back: it is in use");
                return self.set_branch(Some(note.to), from);
            }
        }
        // From here on whoever checks the branch out has its files of now.
        Ok(self.note.write(&Published { is_done: true, ..note.clone() })?)
    }

    /// Remembers that the branch is where it is to be, whoever has brought it there.
    pub(super) fn remember(&self, look: &Look) -> Result<(), PublishError> {
        let is_known = |note: &Published| note.to == look.tip && note.was_there();
        if look.note.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let from = look.note.as_ref().map(|note| note.to).filter(|to| *to != look.tip);
        Ok(self.note.write(&Published { from, to: look.tip, is_done: true })?)
    }
}

impl Look {
    /// Returns what is to be in the source.
    fn tips(&self) -> Vec<Id> {
        let extras = self.extras[0].values();
        [self.tip].into_iter().chain(extras.copied()).collect()
    }

    /// Returns what of it no reference of the source keeps.
    fn news(&self) -> Vec<Id> {
        let [wanted, there] = &self.extras;
        let extras = wanted.iter().filter(|(name, id)| there.get(*name) != Some(id)).map(|(_, id)| *id);
        [self.tip].into_iter().chain(extras).collect()
    }
}
