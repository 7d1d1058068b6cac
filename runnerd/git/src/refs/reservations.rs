//! Reservations: `refs/runner/reserved/<run>` reserves the id of a run that has no branch yet. It points to a blob that
//! names the holder; the process that creates the reference holds the id.

use std::collections::BTreeMap;

use super::{ExpectedRef, RefMove};
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

const RESERVATION_PREFIX: &str = "refs/runner/reserved/";

impl Repository {
    /// Reserves the id of a run for `holder`; false if it is already reserved.
    pub fn reserve_run_id(&self, run: &str, holder: &str) -> Result<bool, GitError> {
        let to = self.write_blob(holder.as_bytes())?;
        let name = format!("{RESERVATION_PREFIX}{run}");
        let taken = self.move_ref(&RefMove {
            name: &name,
            to,
            expected: ExpectedRef::Missing,
            message: "runner: reserve",
            identity: &Identity::runner(),
        });
        match taken {
            Ok(()) => Ok(true),
            Err(GitError::RefMoved { .. }) => Ok(false),
            // The library does not say why it failed; an existing reference explains it.
            Err(error) => {
                if self.find_ref(&name)?.is_some() {
                    Ok(false)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Returns the reserved ids, each with what its holder has written; empty if that cannot be read.
    pub fn list_reservations(&self) -> Result<BTreeMap<String, String>, GitError> {
        let refs = self.list_refs()?;
        let taken = refs.iter().filter_map(|(name, target)| Some((name.strip_prefix(RESERVATION_PREFIX)?, target)));
        let holder = |target: &String| self.read_blob(&target.parse::<Id>().ok()?).ok();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(taken.map(|(run, target)| (run.to_owned(), holder(target).map(text).unwrap_or_default())).collect())
    }

    /// Releases an id that `holder` has reserved; a reservation by another holder stays.
    pub fn release_run_id(&self, run: &str, holder: &str) -> Result<(), GitError> {
        let name = format!("{RESERVATION_PREFIX}{run}");
        let id = self.hash_blob(holder.as_bytes())?;
        self.delete_ref(&name, &id)
    }

    /// Removes a reference below `refs/runner/` that points to `id`; a reference with any other value stays.
    pub fn delete_ref(&self, name: &str, id: &Id) -> Result<(), GitError> {
        if self.find_ref(name)? != Some(*id) {
            return Ok(());
        }
        GitCommand::new(self, "update-ref").args(["--no-deref", "-d", name, &id.to_string()]).run().map(drop)
    }
}
