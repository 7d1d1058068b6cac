//! What there is in workspace and source, read at one moment. Changes nothing.

use std::collections::BTreeMap;

use protocol::state::RunState;
use runner_core::publish::{self, Seen, Standing, Whole};

use super::{PublishError, Published, Publisher};
use crate::git::{GitError, Id, InUse, Repository, Use};
use crate::repo::layout::Layout;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// The last commit of the run.
    pub(super) tip: Id,
    /// The commit that it was begun from.
    pub(super) base: Option<Id>,
    /// What the branch names in the source.
    pub(super) branch: Option<String>,
    /// What the reference names there that keeps the objects.
    pub(super) at: Option<String>,
    /// What is kept beside the branch: in the workspace, and in the source.
    pub(super) extras: [BTreeMap<String, Id>; 2],
    /// A branch that leaves no room.
    pub(super) in_the_way: Option<String>,
    /// Where the branch is in use.
    pub(super) in_use: Option<InUse>,
    /// What the reservation names that takes the id for another run.
    pub(super) reserved_for: Option<String>,
    /// What is remembered.
    pub(super) note: Option<Published>,
    /// What is decided from.
    pub(super) seen: Seen,
}

impl Publisher<'_> {
    /// Looks; none before the run has a commit.
    pub(super) fn look(&self) -> Result<Option<Look>, PublishError> {
        let run = &self.source.run;
        let name = format!("runner/{run}");
        let Some(tip) = self.workspace.branch(&name)? else { return Ok(None) };
        let (full, keeper, kinds) = (format!("refs/heads/{name}"), publish::keeper(run), publish::extras(run));
        let reservation = publish::reservation(run);
        let asked: Vec<String> = [&full, &keeper, &reservation].into_iter().chain(&kinds).cloned().collect();
        let there = self.target.refs_of(&asked)?;
        let reserved_for = self.reserved_for_another(there.get(&reservation))?;
        let (branch, at) = (there.get(&full).cloned(), there.get(&keeper).cloned());
        let extras = [self.extras_of(&self.workspace.refs_of(&kinds)?)?, ids(&there, &kinds)];
        let note = self.note.read()?;
        let kept = self.standing(at.as_deref(), tip)?;
        let standing = if branch == at { kept } else { self.standing(branch.as_deref(), tip)? };
        // Somebody may have checked the branch out at the moment at which it was moved.
        let is_unsettled = note.as_ref().is_some_and(|note| branch == note.unsettled().map(|to| to.to_string()));
        let may_move = matches!(standing, Standing::Missing | Standing::Behind);
        let in_use = if may_move || is_unsettled { self.target.in_use(&name)? } else { None };
        let in_the_way = if standing == Standing::Missing { self.target.in_the_way_of(&full)? } else { None };
        let in_the_way = in_the_way.map(|name| name.trim_start_matches("refs/heads/").to_owned());
        let seen = Seen {
            at: kept,
            branch: standing,
            has_extras: extras[0].iter().all(|(name, id)| extras[1].get(name) == Some(id)),
            is_sent: self.progress.has_sent,
            whole: self.whole(note.as_ref(), tip),
            was_published: note.as_ref().is_some_and(Published::was_there),
            is_in_the_way: in_the_way.is_some(),
            is_in_use: in_use.is_some(),
            is_reserved_for_another: reserved_for.is_some(),
        };
        let base = if at.is_none() { self.base(&tip)? } else { None };
        Ok(Some(Look { tip, base, branch, at, extras, in_the_way, in_use, reserved_for, note, seen }))
    }

    /// Returns what the reservation of the run's id names, if that is no run of this daemon's. One that somebody has taken
    /// away says nothing: what the run did not make is found by its commits.
    fn reserved_for_another(&self, reserved: Option<&String>) -> Result<Option<String>, GitError> {
        let Some(reserved) = reserved else { return Ok(None) };
        let own = self.target.hash_blob(self.source.nonce.as_bytes())?.to_string();
        Ok((*reserved != own).then(|| reserved.clone()))
    }

    fn standing(&self, value: Option<&str>, tip: Id) -> Result<Standing, GitError> {
        let Some(value) = value else { return Ok(Standing::Missing) };
        // A reference that names another is not of the run's making.
        let Ok(id) = value.parse::<Id>() else { return Ok(Standing::Foreign) };
        if id == tip {
            return Ok(Standing::Same);
        }
        let is_behind = self.workspace.holds(&id)? && self.workspace.is_ancestor(&id, &tip)?;
        Ok(if is_behind { Standing::Behind } else { Standing::Foreign })
    }

    /// What was looked at before the branch was moved is not looked at again.
    fn whole(&self, note: Option<&Published>, tip: Id) -> Whole {
        let is_known = !self.progress.has_sent && note.is_some_and(|note| note.to == tip);
        if is_known && self.progress.whole == Whole::Unknown { Whole::Yes } else { self.progress.whole }
    }

    /// Returns what is kept in the workspace beside the branch; what a session has pointed to nothing is not.
    fn extras_of(&self, refs: &BTreeMap<String, String>) -> Result<BTreeMap<String, Id>, GitError> {
        let mut kept = BTreeMap::new();
        for (name, id) in refs.iter().filter_map(|(name, id)| Some((name, id.parse::<Id>().ok()?))) {
            if self.workspace.holds(&id)? {
                kept.insert(name.clone(), id);
            }
        }
        Ok(kept)
    }

    /// Returns the commit that the run was begun from, by what is committed; none where that cannot be read: then
    /// everything is sent.
    fn base(&self, tip: &Id) -> Result<Option<Id>, GitError> {
        let state = self.workspace.read(tip, Layout::RUN_STATE)?.unwrap_or_default();
        let state = serde_json::from_slice::<RunState>(&state).ok();
        let base = state.and_then(|state| state.base?.parse::<Id>().ok());
        base.map_or(Ok(None), |base| Ok(self.workspace.holds(&base)?.then_some(base)))
    }
}

impl Look {
    /// Returns the last move of the branch, if nobody has looked yet whether it was checked out just before.
    pub(super) fn unsettled(&self) -> Option<&Published> {
        let note = self.note.as_ref().filter(|note| self.branch == note.unsettled().map(|to| to.to_string()))?;
        self.in_use.as_ref().filter(|used| used.how == Use::CheckedOut).map(|_| note)
    }
}

/// Returns the last commit of a run that its source keeps: what was sent may be ahead of a branch that is in use.
pub fn last_kept(source: &Repository, run: &str) -> Result<Option<Id>, GitError> {
    let keeper = publish::keeper(run);
    let there = source.refs_of(std::slice::from_ref(&keeper))?;
    let at = there.get(&keeper).and_then(|at| at.parse::<Id>().ok());
    let branch = source.branch(&format!("runner/{run}"))?;
    Ok(match (branch, at) {
        (Some(branch), Some(at)) if source.holds(&at)? && source.is_ancestor(&branch, &at)? => Some(at),
        (branch, at) => branch.or(at),
    })
}

fn ids(refs: &BTreeMap<String, String>, below: &[String]) -> BTreeMap<String, Id> {
    let is_below = |name: &str| below.iter().any(|folder| name.starts_with(&format!("{folder}/")));
    let of = refs.iter().filter(|(name, _)| is_below(name));
    of.filter_map(|(name, id)| Some((name.clone(), id.parse().ok()?))).collect()
}
