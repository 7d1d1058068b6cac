//! Reads the state of workspace and source at one moment. Changes nothing.

use std::collections::BTreeMap;

use protocol::state::RunState;
use runner_core::publish::{self, ObjectCompleteness, PublishInput, RefRelation};
use runner_git::{BranchUseKind, BranchUser, GitError, Id, Repository};

use super::{PublishError, PublishedMove, Publisher};
use crate::repo::layout::Layout;

/// State of workspace and source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PublishSnapshot {
    /// The run's last commit.
    pub(super) tip: Id,
    /// The commit that it was started from.
    pub(super) base: Option<Id>,
    /// Value of the branch in the source.
    pub(super) branch: Option<String>,
    /// Value of the source's reference that keeps the objects.
    pub(super) keeper: Option<String>,
    /// What is kept outside the branch: in the workspace, and in the source.
    pub(super) extras: [BTreeMap<String, Id>; 2],
    /// A branch that leaves no room for the run's.
    pub(super) conflicting_branch: Option<String>,
    /// Where the source uses the branch.
    pub(super) branch_user: Option<BranchUser>,
    /// Value of a reservation that takes the id for another run.
    pub(super) reserved_for: Option<String>,
    /// The daemon's note of the last move.
    pub(super) record: Option<PublishedMove>,
    /// Input for the decision.
    pub(super) input: PublishInput,
}

impl Publisher<'_> {
    /// Reads the state; `None` before the run has a commit.
    pub(super) fn read_snapshot(&self) -> Result<Option<PublishSnapshot>, PublishError> {
        let run = &self.source.run;
        let name = format!("runner/{run}");
        let Some(tip) = self.workspace.find_branch_tip(&name)? else { return Ok(None) };
        let full = format!("refs/heads/{name}");
        let keeper = publish::keep_ref(run);
        let kinds = publish::extra_ref_dirs(run);
        let reservation = publish::reservation_ref(run);
        let names: Vec<String> = [&full, &keeper, &reservation].into_iter().chain(&kinds).cloned().collect();
        let refs = self.target.list_refs_under(&names)?;
        let reserved_for = self.find_other_reservation(refs.get(&reservation))?;
        let branch = refs.get(&full).cloned();
        let at = refs.get(&keeper).cloned();
        let extras = [self.find_extras(&self.workspace.list_refs_under(&kinds)?)?, parse_ids(&refs, &kinds)];
        let record = self.record_file.read()?;
        let keeper_relation = self.compare_ref(at.as_deref(), tip)?;
        let branch_relation = if branch == at { keeper_relation } else { self.compare_ref(branch.as_deref(), tip)? };
        // Someone may have checked the branch out at the moment it was moved.
        let is_unsettled =
            record.as_ref().is_some_and(|note| branch == note.unsettled_target().map(|to| to.to_string()));
        let may_move = matches!(branch_relation, RefRelation::Missing | RefRelation::Behind);
        let branch_user = if may_move || is_unsettled { self.target.find_branch_use(&name)? } else { None };
        let in_the_way =
            if branch_relation == RefRelation::Missing { self.target.find_conflicting_ref(&full)? } else { None };
        let in_the_way = in_the_way.map(|name| name.trim_start_matches("refs/heads/").to_owned());
        let input = PublishInput {
            keep_ref: keeper_relation,
            branch: branch_relation,
            has_extras: extras[0].iter().all(|(name, id)| extras[1].get(name) == Some(id)),
            is_sent: self.progress.has_sent,
            objects: self.completeness(record.as_ref(), tip),
            was_published: record.as_ref().is_some_and(PublishedMove::was_published),
            is_in_the_way: in_the_way.is_some(),
            is_in_use: branch_user.is_some(),
            is_reserved_for_another: reserved_for.is_some(),
        };
        let base = if at.is_none() { self.read_base(&tip)? } else { None };
        Ok(Some(PublishSnapshot {
            tip,
            base,
            branch,
            keeper: at,
            extras,
            conflicting_branch: in_the_way,
            branch_user,
            reserved_for,
            record,
            input,
        }))
    }

    /// Returns the value of the reservation of the run's id if it belongs to no run of this daemon. A removed
    /// reservation says nothing: commits show what the run did not make.
    fn find_other_reservation(&self, reserved: Option<&String>) -> Result<Option<String>, GitError> {
        let Some(reserved) = reserved else { return Ok(None) };
        let expected = self.target.hash_blob(self.source.nonce.as_bytes())?.to_string();
        Ok((*reserved != expected).then(|| reserved.clone()))
    }

    fn compare_ref(&self, value: Option<&str>, tip: Id) -> Result<RefRelation, GitError> {
        let Some(value) = value else { return Ok(RefRelation::Missing) };
        // The run never creates symbolic references.
        let Ok(id) = value.parse::<Id>() else { return Ok(RefRelation::Foreign) };
        if id == tip {
            return Ok(RefRelation::Same);
        }
        let is_behind = self.workspace.has_object(&id)? && self.workspace.is_ancestor(&id, &tip)?;
        Ok(if is_behind { RefRelation::Behind } else { RefRelation::Foreign })
    }

    /// What was checked before the branch was moved is not checked again.
    fn completeness(&self, note: Option<&PublishedMove>, tip: Id) -> ObjectCompleteness {
        let is_known = !self.progress.has_sent && note.is_some_and(|note| note.to == tip);
        if is_known && self.progress.completeness == ObjectCompleteness::Unknown {
            ObjectCompleteness::Yes
        } else {
            self.progress.completeness
        }
    }

    /// Returns what the workspace keeps outside the branch, except references that a session has made point to nothing.
    fn find_extras(&self, refs: &BTreeMap<String, String>) -> Result<BTreeMap<String, Id>, GitError> {
        let mut found = BTreeMap::new();
        for (name, id) in refs.iter().filter_map(|(name, id)| Some((name, id.parse::<Id>().ok()?))) {
            if self.workspace.has_object(&id)? {
                found.insert(name.clone(), id);
            }
        }
        Ok(found)
    }

    /// Returns the commit that the run was started from, according to its commits; `None` if that cannot be read, in
    /// which case everything is sent.
    fn read_base(&self, tip: &Id) -> Result<Option<Id>, GitError> {
        let state = self.workspace.read_file(tip, Layout::RUN_STATE)?.unwrap_or_default();
        let state = serde_json::from_slice::<RunState>(&state).ok();
        let base = state.and_then(|state| state.base?.parse::<Id>().ok());
        base.map_or(Ok(None), |base| Ok(self.workspace.has_object(&base)?.then_some(base)))
    }
}

impl PublishSnapshot {
    /// Returns the last move of the branch if it has not been checked whether the branch was checked out just before.
    pub(super) fn unsettled_move(&self) -> Option<&PublishedMove> {
        let note =
            self.record.as_ref().filter(|note| self.branch == note.unsettled_target().map(|to| to.to_string()))?;
        self.branch_user.as_ref().filter(|used| used.kind == BranchUseKind::CheckedOut).map(|_| note)
    }
}

/// Returns the last commit of a run that its source keeps: if the branch is in use, objects may be ahead of it.
pub fn find_preserved_tip(source: &Repository, run: &str) -> Result<Option<Id>, GitError> {
    let keeper = publish::keep_ref(run);
    let refs = source.list_refs_under(std::slice::from_ref(&keeper))?;
    let at = refs.get(&keeper).and_then(|at| at.parse::<Id>().ok());
    let branch = source.find_branch_tip(&format!("runner/{run}"))?;
    Ok(match (branch, at) {
        (Some(branch), Some(at)) if source.has_object(&at)? && source.is_ancestor(&branch, &at)? => Some(at),
        (branch, at) => branch.or(at),
    })
}

fn parse_ids(refs: &BTreeMap<String, String>, prefixes: &[String]) -> BTreeMap<String, Id> {
    let is_below = |name: &str| prefixes.iter().any(|folder| name.starts_with(&format!("{folder}/")));
    let of = refs.iter().filter(|(name, _)| is_below(name));
    of.filter_map(|(name, id)| Some((name.clone(), id.parse().ok()?))).collect()
}
