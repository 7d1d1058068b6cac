//! The net change of several commits: the difference between the first and the last, ignoring intermediate states.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::commit_data::{PathChange, PathEntry};

/// The differences by path: before and after.
#[derive(Debug, Clone, Default)]
pub(super) struct NetDiff {
    paths: BTreeMap<Vec<u8>, (Option<PathEntry>, Option<PathEntry>)>,
}

/// A path that differs: before and after.
pub(super) type PathSides<'a> = (&'a Option<PathEntry>, &'a Option<PathEntry>);

impl NetDiff {
    /// Returns the changes of one commit.
    pub(super) fn from_changes(changes: &[PathChange]) -> Self {
        let mut net = Self::default();
        net.add(changes);
        net
    }

    /// Adds the changes of the next commit.
    pub(super) fn add<'a>(&mut self, changes: impl IntoIterator<Item = &'a PathChange>) {
        for change in changes {
            let old = match self.paths.remove(&change.path) {
                Some((old, _)) => old,
                None => change.old.clone(),
            };
            if !is_same(old.as_ref(), change.new.as_ref()) {
                self.paths.insert(change.path.clone(), (old, change.new.clone()));
            }
        }
    }

    /// Returns the paths under `.runner/` that differ.
    pub(super) fn runner_paths(&self) -> impl Iterator<Item = (Cow<'_, str>, PathSides<'_>)> {
        let named = self.paths.iter().map(|(path, (old, new))| (String::from_utf8_lossy(path), (old, new)));
        named.filter(|(path, _)| path.starts_with(".runner/"))
    }

    /// Returns the other paths that differ and are valid UTF-8, with both sides.
    pub(super) fn code_paths_with_sides(&self) -> impl Iterator<Item = (&str, PathSides<'_>)> {
        self.code_paths().filter_map(|(path, sides)| Some((str::from_utf8(path).ok()?, sides)))
    }

    /// Returns the other paths that differ, with both sides.
    pub(super) fn code_paths(&self) -> impl Iterator<Item = (&[u8], PathSides<'_>)> {
        let code = self.paths.iter().filter(|(path, _)| !path.starts_with(b".runner/"));
        code.map(|(path, (old, new))| (path.as_slice(), (old, new)))
    }
}

fn is_same(a: Option<&PathEntry>, b: Option<&PathEntry>) -> bool {
    fn known(side: Option<&PathEntry>) -> Option<(u32, &str)> {
        side.map(|stored| (stored.mode, stored.id.as_str()))
    }
    known(a) == known(b)
}
