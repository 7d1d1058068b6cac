//! Objects that commits add to those before them, found by a walk within this process, for the few of an iteration: git
//! takes several programs for them. What is odd or too much here is git's to walk, which has the last word.

use std::collections::{BTreeMap, HashSet};

use gix::ObjectId;
use gix::objs::Kind;

use super::checked;

/// A walk from what is wanted to what is known.
pub(super) struct ObjectWalk<'a> {
    repo: &'a gix::Repository,
    /// Commits of which everything is there.
    known: &'a [ObjectId],
    /// Most objects that are looked at, and bytes of files.
    limits: (usize, u64),
    bytes: u64,
    seen: HashSet<ObjectId>,
    commits: Vec<ObjectId>,
}

/// Why a walk has ended early.
#[derive(Debug, thiserror::Error)]
enum WalkAbort {
    /// There is more than it was to look at.
    #[error("more than a few objects")]
    TooMany,
    /// No iteration makes one.
    #[error("{0} is a tag")]
    Tag(ObjectId),
}

impl<'a> ObjectWalk<'a> {
    /// Walks within `repo` until what is `known`, over `most` objects and bytes of files.
    pub(super) fn new(repo: &'a gix::Repository, known: &'a [ObjectId], most: (usize, u64)) -> Self {
        Self { repo, known, limits: most, bytes: 0, seen: HashSet::new(), commits: Vec::new() }
    }

    /// Returns what `tips` lead to and the known commits do not: every object was there, and what others are reached by
    /// was what its name says. It may return more, where what is known is reached by another way as well.
    pub(super) fn collect_from(mut self, tips: &[ObjectId]) -> gix::Result<HashSet<ObjectId>> {
        for tip in tips {
            match self.repo.find_header(*tip)?.kind() {
                Kind::Commit => self.commits.push(*tip),
                Kind::Tree => self.visit_tree(*tip, None)?,
                Kind::Blob => self.visit_blob(*tip)?,
                Kind::Tag => return Err(gix::Error::from_error(WalkAbort::Tag(*tip))),
            }
        }
        while let Some(commit) = self.commits.pop() {
            self.visit_commit(commit)?;
        }
        Ok(self.seen)
    }

    /// Takes an object; false if it was taken before.
    fn mark_seen(&mut self, id: ObjectId) -> gix::Result<bool> {
        let is_new = self.seen.insert(id);
        if self.seen.len() > self.limits.0 || self.bytes > self.limits.1 {
            Err(gix::Error::from_error(WalkAbort::TooMany))
        } else {
            Ok(is_new)
        }
    }

    fn visit_commit(&mut self, id: ObjectId) -> gix::Result<()> {
        if self.known.contains(&id) || !self.mark_seen(id)? {
            return Ok(());
        }
        let commit = checked::read_commit(self.repo, id)?;
        let (tree, parents) =
            (commit.tree_id()?.detach(), commit.parent_ids().map(gix::Id::detach).collect::<Vec<_>>());
        // Either is walked too, or known: what it has of this one is looked at there.
        let before = parents.first().map(|parent| checked::read_commit(self.repo, *parent)?.tree_id());
        let before = before.transpose()?.map(gix::Id::detach);
        self.commits.extend(parents);
        self.visit_tree(tree, before)
    }

    /// Takes a tree and what is in it, but for what the tree `before` has at the same place.
    fn visit_tree(&mut self, id: ObjectId, before: Option<ObjectId>) -> gix::Result<()> {
        if before == Some(id) || !self.mark_seen(id)? {
            return Ok(());
        }
        let before = before.map(|before| checked::read_entries(self.repo, before)).transpose()?.unwrap_or_default();
        let before: BTreeMap<_, _> = before.into_iter().map(|(name, mode, id)| (name, (mode, id))).collect();
        for (name, mode, id) in checked::read_entries(self.repo, id)? {
            let there = before.get(&name).filter(|there| there.0.is_tree() == mode.is_tree()).map(|there| there.1);
            if there == Some(id) || mode.is_commit() {
                continue;
            }
            if mode.is_tree() { self.visit_tree(id, there)? } else { self.visit_blob(id)? }
        }
        Ok(())
    }

    fn visit_blob(&mut self, id: ObjectId) -> gix::Result<()> {
        self.bytes += self.repo.find_header(id)?.size();
        self.mark_seen(id).map(drop)
    }
}
