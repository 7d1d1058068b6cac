//! Whose a workspace is that is being made or removed: several daemons may have their workspaces in one folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::repo::seal::Key;

/// The beginning of the name of one that is being made or removed; no id of a run begins like this.
const UNFINISHED: &str = ".unfinished-";

/// A daemon among those that share a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The beginning of the names of what it makes and removes.
    beginning: String,
}

impl Owner {
    /// Returns the daemon that seals with a key.
    pub fn of(key: &Key) -> Self {
        Self { beginning: format!("{UNFINISHED}{}-", key.tag()) }
    }

    /// Returns where a workspace is while this daemon makes or removes it.
    pub fn unfinished(&self, place: &Path) -> PathBuf {
        let mut name = OsString::from(&self.beginning);
        name.push(place.file_name().unwrap_or_default());
        place.with_file_name(name)
    }

    /// Whether a folder is one that this daemon had begun to make or to remove.
    pub(super) fn has_begun(&self, folder: &Path) -> bool {
        let name = folder.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(self.beginning.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_knows_what_it_has_begun_and_nothing_of_another() {
        let key = Key::random().unwrap();
        let (own, other) = (Owner::of(&key), Owner::of(&Key::random().unwrap()));
        assert_eq!(own, Owner::of(&key));
        let place = Path::new("/w/0123456789ab/tidy");
        let begun = own.unfinished(place);
        assert_eq!(begun.parent(), place.parent());
        assert!(own.has_begun(&begun) && !other.has_begun(&begun) && !own.has_begun(place));
    }
}
