//! Files of the guard's definition that git ignores. No commit contains them, so their accepted state is the one before
//! a session began, made by setup, the guard or a person. Only a session's additions or changes are deviations.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::definition::GuardDefinition;

/// The ignored files of a run's definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoredDefinition {
    /// The files before the session; for one that an earlier session has changed, its state before that session.
    pub accepted: GuardDefinition,
    /// Files that a session has added or changed.
    pub departed: BTreeSet<String>,
}

impl IgnoredDefinition {
    /// Returns the accepted files when a session begins with these files present.
    ///
    /// A deviating file stays so until it is in its accepted state again, or gone. `missing` are files that the guard
    /// reads and that no commit has.
    #[must_use]
    pub fn before_session(&self, current: &GuardDefinition, missing: &BTreeSet<String>) -> Self {
        let mut departed = self.changed_paths(current, missing);
        departed.retain(|path| self.departed.contains(path));
        let mut accepted = current.clone();
        for path in &departed {
            match self.accepted.get(path) {
                Some(form) => accepted.insert(path.clone(), form.clone()),
                None => accepted.remove(path),
            };
        }
        Self { accepted, departed }
    }

    /// Returns the same when the session has ended with these files present.
    #[must_use]
    pub fn after_session(&self, current: &GuardDefinition, missing: &BTreeSet<String>) -> Self {
        Self { accepted: self.accepted.clone(), departed: self.changed_paths(current, missing) }
    }

    /// A missing file that a session adds is work, but one that was there may be neither changed nor removed.
    fn changed_paths(&self, current: &GuardDefinition, missing: &BTreeSet<String>) -> BTreeSet<String> {
        let is_changed = |path: &&String| match (self.accepted.get(*path), current.get(*path)) {
            (None, Some(_)) => !missing.contains(*path),
            (Some(_), None) => missing.contains(*path),
            (before, now) => before != now,
        };
        self.accepted.keys().chain(current.keys()).filter(is_changed).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files<const N: usize>(files: [(&str, &str); N]) -> GuardDefinition {
        files.map(|(path, form)| (path.to_owned(), form.to_owned())).into()
    }

    #[test]
    fn only_what_a_session_adds_or_changes_departs() {
        let missing = BTreeSet::new();
        let before = [(".env", "1"), ("venv/conftest.py", "2"), ("gone", "3")];
        let before = IgnoredDefinition::default().before_session(&files(before), &missing);
        assert_eq!(before.departed, BTreeSet::new());
        let now = [(".env", "1"), ("venv/conftest.py", "4"), ("zz/conftest.py", "5")];
        let after = before.after_session(&files(now), &missing);
        assert_eq!(after.departed, ["venv/conftest.py", "zz/conftest.py"].map(str::to_owned).into());
        assert_eq!(after.accepted, before.accepted);
    }

    #[test]
    fn what_a_session_has_left_departs_until_it_is_as_it_was_or_gone() {
        let left = files([(".env", "2"), ("conftest.py", "1"), ("setup.cfg", "1")]);
        let none = BTreeSet::new();
        let before = IgnoredDefinition::default().before_session(&files([(".env", "1")]), &none);
        let after = before.after_session(&left, &none);
        // The guard wrote `cache`, which is accepted; what the session wrote is not, even if the guard rewrote it.
        let later = files([(".env", "1"), ("cache", "1"), ("conftest.py", "9")]);
        let next = after.before_session(&later, &none);
        assert_eq!(next.departed, ["conftest.py".to_owned()].into());
        assert_eq!(next.accepted, files([(".env", "1"), ("cache", "1")]));
        assert_eq!(next.after_session(&later, &none).departed, next.departed);
    }

    #[test]
    fn file_that_the_guard_reads_may_be_new_but_neither_changed_nor_removed() {
        let missing = ["local.sh", "env.sh"].map(str::to_owned).into();
        let before = IgnoredDefinition::default().before_session(&files([("local.sh", "1")]), &missing);
        let written = files([("local.sh", "1"), ("env.sh", "1")]);
        assert_eq!(before.after_session(&written, &missing).departed, BTreeSet::new());
        let changed = before.after_session(&files([("local.sh", "2")]), &missing);
        assert_eq!(changed.departed, ["local.sh".to_owned()].into());
        let removed = before.after_session(&files([]), &missing).before_session(&files([]), &missing);
        assert_eq!((&removed.accepted, &removed.departed), (&before.accepted, &changed.departed));
        assert_eq!(removed.after_session(&written, &missing).departed, BTreeSet::new());
    }
}
