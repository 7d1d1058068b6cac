//! Which daemon is creating or removing a workspace: several daemons may have their workspaces in one folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::repo::seal::SealKey;

/// Prefix of the name while a workspace is being created or removed; no run id begins like this.
const UNFINISHED: &str = ".unfinished-";

/// A daemon among those that share a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceOwner {
    /// Prefix of the names of what it creates and removes.
    name_prefix: String,
}

impl WorkspaceOwner {
    /// Returns the daemon that seals with a key.
    pub fn from_key(key: &SealKey) -> Self {
        Self { name_prefix: format!("{UNFINISHED}{}-", key.tag()) }
    }

    /// Returns the path of a workspace while this daemon creates or removes it.
    pub fn unfinished_path(&self, place: &Path) -> PathBuf {
        let mut name = OsString::from(&self.name_prefix);
        name.push(place.file_name().unwrap_or_default());
        place.with_file_name(name)
    }

    /// Whether this daemon has begun to create or remove a folder.
    pub(super) fn is_owner_of(&self, folder: &Path) -> bool {
        let name = folder.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(self.name_prefix.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_knows_what_it_has_begun_and_nothing_of_another() {
        let key = SealKey::random().unwrap();
        let own = WorkspaceOwner::from_key(&key);
        let other = WorkspaceOwner::from_key(&SealKey::random().unwrap());
        assert_eq!(own, WorkspaceOwner::from_key(&key));
        let place = Path::new("/w/0123456789ab/tidy");
        let begun = own.unfinished_path(place);
        assert_eq!(begun.parent(), place.parent());
        assert!(own.is_owner_of(&begun) && !other.is_owner_of(&begun) && !own.is_owner_of(place));
    }
}
