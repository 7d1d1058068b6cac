//! The steps of publishing, any of which may be the last before a crash: first objects, then the references that keep
//! them, and finally the branch.

use runner_core::publish::{self, ObjectCompleteness, RefRelation};
use runner_git::{BranchUseKind, Id, KnownObjects, ObjectRange, RefChange};

use super::snapshot::PublishSnapshot;
use super::{PublishError, PublishedMove, Publisher};

/// Message in reflogs.
const MESSAGE: &str = "runner: publish";

impl Publisher<'_> {
    /// Sends new objects to the source, or all of them.
    pub(super) fn send_objects(&mut self, snapshot: &PublishSnapshot, everything: bool) -> Result<(), PublishError> {
        self.progress.has_sent = true;
        self.progress.has_sent_all |= everything;
        let known = snapshot.keeper.as_deref().and_then(|at| at.parse().ok()).or(snapshot.base).filter(|_| !everything);
        // Before the pointers to them.
        self.workspace.send_large_files(&self.target)?;
        let tips = if everything { snapshot.tips() } else { snapshot.unpublished_tips() };
        let is_seen =
            self.workspace.send_objects(&self.target, ObjectRange { tips: &tips, excluded: known.as_slice() })?;
        self.progress.completeness = snapshot.input.objects_after_send(is_seen, snapshot.keeper == snapshot.branch);
        self.progress.sent = tips;
        Ok(())
    }

    /// Points the keeping references to the objects, in one transaction.
    pub(super) fn update_keep_refs(&mut self, snapshot: &PublishSnapshot) -> Result<(), PublishError> {
        let [expected, present] = &snapshot.extras;
        let differing = expected.iter().filter(|(name, id)| present.get(*name) != Some(id));
        let mut changes: Vec<RefChange> = differing
            .map(|(name, id)| RefChange { name: name.clone(), from: present.get(name).copied(), to: *id })
            .collect();
        if snapshot.input.keep_ref != RefRelation::Same {
            let from = snapshot.keeper.as_deref().and_then(|at| at.parse().ok());
            changes.push(RefChange { name: publish::keep_ref(&self.source.run), from, to: snapshot.tip });
        }
        self.progress.completeness = ObjectCompleteness::Unknown;
        Ok(self.target.update_refs(MESSAGE, &changes)?)
    }

    /// Checks whether the source has everything that the run's references lead to.
    pub(super) fn check_complete(&mut self, snapshot: &PublishSnapshot) -> Result<(), PublishError> {
        let branch = snapshot.branch.as_deref().and_then(|branch| branch.parse().ok());
        let known = match branch {
            _ if self.progress.has_sent_all => KnownObjects::Nothing,
            // It was checked before the branch was moved there.
            Some(branch) if snapshot.input.branch == RefRelation::Behind => KnownObjects::Commit(branch),
            _ => KnownObjects::References,
        };
        // What an earlier process kept may never have been checked.
        let tips = if self.progress.has_sent {
            [snapshot.unpublished_tips(), self.progress.sent.clone()].concat()
        } else {
            snapshot.tips()
        };
        let missing = self.target.find_missing_object(&tips, known)?;
        self.progress.completeness = match &missing {
            None => ObjectCompleteness::Yes,
            Some(_) if self.progress.has_sent_all => ObjectCompleteness::LackingAll,
            Some(_) => ObjectCompleteness::Lacking,
        };
        self.progress.missing = missing.unwrap_or_default();
        Ok(())
    }

    /// Moves the branch from the value it was read with, unless someone has checked it out meanwhile.
    pub(super) fn move_branch(&self, snapshot: &PublishSnapshot) -> Result<(), PublishError> {
        let from = snapshot.branch.as_deref().and_then(|branch| branch.parse().ok());
        let note = PublishedMove { from, to: snapshot.tip, is_done: false };
        self.record_file.write(&note)?;
        self.set_branch(from, snapshot.tip)?;
        self.verify_move(&note)
    }

    /// Sets the branch from one value to another.
    pub(super) fn set_branch(&self, from: Option<Id>, to: Id) -> Result<(), PublishError> {
        let name = format!("refs/heads/{}", self.branch_name());
        Ok(self.target.update_refs(MESSAGE, &[RefChange { name, from, to }])?)
    }

    /// Checks after a move whether someone checked the branch out just before it: their files would be those of the old
    /// commit, and would look like a change that reverts the run's commit. In that case the branch is moved back.
    pub(super) fn verify_move(&self, note: &PublishedMove) -> Result<(), PublishError> {
        let used = self.target.find_branch_use(&self.branch_name())?;
        if let (Some(from), Some(used)) = (note.from, &used) {
            let is_current =
                used.kind == BranchUseKind::CheckedOut && self.target.is_index_closer_to(used, &note.to, &from)?;
            if !is_current {
                tracing::info!(run = self.source.run, place = %used.work_tree.display(), "the branch is moved back: it is in use");
                return self.set_branch(Some(note.to), from);
            }
        }
        // From here on, a checkout of the branch gets its current files.
        Ok(self.record_file.write(&PublishedMove { is_done: true, ..note.clone() })?)
    }

    /// Records that the branch is where it should be, regardless of who moved it.
    pub(super) fn record_published(&self, snapshot: &PublishSnapshot) -> Result<(), PublishError> {
        let is_known = |note: &PublishedMove| note.to == snapshot.tip && note.was_published();
        if snapshot.record.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let from = snapshot.record.as_ref().map(|note| note.to).filter(|to| *to != snapshot.tip);
        Ok(self.record_file.write(&PublishedMove { from, to: snapshot.tip, is_done: true })?)
    }
}

impl PublishSnapshot {
    /// Returns the commits that should be in the source.
    fn tips(&self) -> Vec<Id> {
        let extras = self.extras[0].values();
        [self.tip].into_iter().chain(extras.copied()).collect()
    }

    /// Returns those of them that no reference of the source keeps.
    fn unpublished_tips(&self) -> Vec<Id> {
        let [expected, present] = &self.extras;
        let extras = expected.iter().filter(|(name, id)| present.get(*name) != Some(id)).map(|(_, id)| *id);
        [self.tip].into_iter().chain(extras).collect()
    }
}
