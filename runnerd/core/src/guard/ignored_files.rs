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
    /// A deviating file stays so until it is in its accepted state again, or gone.
    #[must_use]
    pub fn before_session(&self, current: &GuardDefinition) -> Self {
        let departed: BTreeSet<String> =
            self.changed_paths(current).filter(|path| self.departed.contains(path)).collect();
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
    pub fn after_session(&self, current: &GuardDefinition) -> Self {
        Self { accepted: self.accepted.clone(), departed: self.changed_paths(current).collect() }
    }

    fn changed_paths(&self, current: &GuardDefinition) -> impl Iterator<Item = String> {
        current.iter().filter(|(path, form)| self.accepted.get(*path) != Some(form)).map(|(path, _)| path.clone())
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
        let before = IgnoredDefinition::default().before_session(&files([
            (".env", "1"),
            ("venv/conftest.py", "2"),
            ("gone", "3"),
        ]));
        assert_eq!(before.departed, BTreeSet::new());
        let after = before.after_session(&files([(".env", "1"), ("venv/conftest.py", "4"), ("zz/conftest.py", "5")]));
        assert_eq!(after.departed, ["venv/conftest.py", "zz/conftest.py"].map(str::to_owned).into());
        assert_eq!(after.accepted, before.accepted);
    }

    #[test]
    fn what_a_session_has_left_departs_until_it_is_as_it_was_or_gone() {
        let left = files([(".env", "2"), ("conftest.py", "1"), ("setup.cfg", "1")]);
        let after = IgnoredDefinition::default().before_session(&files([(".env", "1")])).after_session(&left);
        // The guard wrote `cache`, which is accepted; what the session wrote is not, even if the guard rewrote it.
        let later = files([(".env", "1"), ("cache", "1"), ("conftest.py", "9")]);
        let next = after.before_session(&later);
        assert_eq!(next.departed, ["conftest.py".to_owned()].into());
        assert_eq!(next.accepted, files([(".env", "1"), ("cache", "1")]));
        assert_eq!(next.after_session(&later).departed, next.departed);
    }
}
