//! Finds the objects that commits add to earlier ones by a walk within this process, for the few objects of an
//! iteration: git needs several programs for that. Walks that are too large or meet anything odd are left to git, whose
//! answer is final.

use std::collections::{BTreeMap, HashSet};

use gix::ObjectId;
use gix::objs::Kind;

use super::object_reader;

/// A walk from wanted objects to known ones.
pub(super) struct ObjectWalk<'a> {
    repo: &'a gix::Repository,
    /// Commits whose objects are all present.
    known: &'a [ObjectId],
    /// Limits: number of objects, and bytes of file content.
    limits: (usize, u64),
    bytes: u64,
    visited: HashSet<ObjectId>,
    commits: Vec<ObjectId>,
}

/// Why a walk ended early.
#[derive(Debug, thiserror::Error)]
enum WalkAbort {
    /// The limits were exceeded.
    #[error("more than a few objects")]
    TooMany,
    /// No iteration creates tags.
    #[error("{0} is a tag")]
    Tag(ObjectId),
}

impl<'a> ObjectWalk<'a> {
    /// Prepares a walk in `repo` that stops at `known` commits and at the limits `most`.
    pub(super) fn new(repo: &'a gix::Repository, known: &'a [ObjectId], most: (usize, u64)) -> Self {
        Self { repo, known, limits: most, bytes: 0, visited: HashSet::new(), commits: Vec::new() }
    }

    /// Returns the objects reachable from `tips` but not from the known commits. Checks that every object exists and
    /// that every commit and tree matches its name. May return more if something known is also reachable another way.
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
        Ok(self.visited)
    }

    /// Records an object; false if it was recorded before.
    fn record_object(&mut self, id: ObjectId) -> gix::Result<bool> {
        let is_new = self.visited.insert(id);
        if self.visited.len() > self.limits.0 || self.bytes > self.limits.1 {
            Err(gix::Error::from_error(WalkAbort::TooMany))
        } else {
            Ok(is_new)
        }
    }

    fn visit_commit(&mut self, id: ObjectId) -> gix::Result<()> {
        if self.known.contains(&id) || !self.record_object(id)? {
            return Ok(());
        }
        let commit = object_reader::read_commit(self.repo, id)?;
        let tree = commit.tree_id()?.detach();
        let parents = commit.parent_ids().map(gix::Id::detach).collect::<Vec<_>>();
        // Each parent is either walked too or known, so what it shares with this commit is checked there.
        let before = parents.first().map(|parent| object_reader::read_commit(self.repo, *parent)?.tree_id());
        let before = before.transpose()?.map(gix::Id::detach);
        self.commits.extend(parents);
        self.visit_tree(tree, before)
    }

    /// Records a tree and its contents, except what the tree `before` has at the same place.
    fn visit_tree(&mut self, id: ObjectId, before: Option<ObjectId>) -> gix::Result<()> {
        if before == Some(id) || !self.record_object(id)? {
            return Ok(());
        }
        let before =
            before.map(|before| object_reader::read_entries(self.repo, before)).transpose()?.unwrap_or_default();
        let before: BTreeMap<_, _> = before.into_iter().map(|(name, mode, id)| (name, (mode, id))).collect();
        for (name, mode, id) in object_reader::read_entries(self.repo, id)? {
            let known = before.get(&name).filter(|entry| entry.0.is_tree() == mode.is_tree()).map(|entry| entry.1);
            if known == Some(id) || mode.is_commit() {
                continue;
            }
            if mode.is_tree() { self.visit_tree(id, known)? } else { self.visit_blob(id)? }
        }
        Ok(())
    }

    fn visit_blob(&mut self, id: ObjectId) -> gix::Result<()> {
        self.bytes += self.repo.find_header(id)?.size();
        self.record_object(id).map(drop)
    }
}
