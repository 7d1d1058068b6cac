//! Reservations: `refs/runner/reserved/<run>` takes the id of a run of which there is no branch yet. It names a blob that
//! says whose it is; whoever makes it from nothing has it.

use std::collections::BTreeMap;

use super::{Before, Move};
use crate::git::repository::identity::Identity;
use crate::git::repository::program::Git;
use crate::git::{GitError, Id, Repository};

const RESERVED: &str = "refs/runner/reserved/";

impl Repository {
    /// Takes the id of a run for `holder`; false if somebody has it already.
    pub fn reserve(&self, run: &str, holder: &str) -> Result<bool, GitError> {
        let to = self.write_blob(holder.as_bytes())?;
        let name = format!("{RESERVED}{run}");
        let taken = self.move_ref(&Move {
            name: &name,
            to,
            before: Before::Nothing,
            message: "runner: reserve",
            by: &Identity::runner(),
        });
        match taken {
            Ok(()) => Ok(true),
            Err(GitError::Moved { .. }) => Ok(false),
            // The library does not say why; that something is there by now does.
            Err(error) => {
                if self.find_ref(&name)?.is_some() {
                    Ok(false)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Returns the ids that are taken, each with what its holder has written; empty where that cannot be read.
    pub fn reservations(&self) -> Result<BTreeMap<String, String>, GitError> {
        let refs = self.refs()?;
        let taken = refs.iter().filter_map(|(name, target)| Some((name.strip_prefix(RESERVED)?, target)));
        let holder = |target: &String| self.blob(&target.parse::<Id>().ok()?).ok();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(taken.map(|(run, target)| (run.to_owned(), holder(target).map(text).unwrap_or_default())).collect())
    }

    /// Gives an id back that `holder` has; one that another has by now stays.
    pub fn release(&self, run: &str, holder: &str) -> Result<(), GitError> {
        let (name, id) = (format!("{RESERVED}{run}"), self.hash_blob(holder.as_bytes())?);
        self.drop_ref(&name, &id)
    }

    /// Removes a reference below `refs/runner/` that names `id`; one that names anything else stays.
    pub fn drop_ref(&self, name: &str, id: &Id) -> Result<(), GitError> {
        if self.find_ref(name)? != Some(*id) {
            return Ok(());
        }
        Git::new(self, "update-ref").args(["--no-deref", "-d", name, &id.to_string()]).run().map(drop)
    }
}
