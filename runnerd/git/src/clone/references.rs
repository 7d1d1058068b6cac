//! References for a replica: branches except those of runs, remote-tracking branches, tags and notes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use super::RepositoryClone;
use crate::repository::engine::RefStore;
use crate::repository::program::GitCommand;
use crate::{GitError, Repository};

const COPIED_PREFIXES: [&str; 4] = ["refs/heads/", "refs/remotes/", "refs/tags/", "refs/notes/"];
/// Branches of runs: each is worked on in only one place.
const RUN_BRANCH_PREFIX: &str = "refs/heads/runner/";

impl Repository {
    /// Returns the references that are copied, by full name: an object id each, or `ref: ` and a name.
    pub(super) fn list_cloned_refs(&self) -> Result<BTreeMap<String, String>, GitError> {
        let mut references = self.list_refs()?;
        references.retain(|name, _| {
            COPIED_PREFIXES.iter().any(|of| name.starts_with(of)) && !name.starts_with(RUN_BRANCH_PREFIX)
        });
        Ok(references)
    }
}

impl RepositoryClone<'_> {
    /// Copies the references.
    pub fn copy_references(&self) -> Result<(), GitError> {
        let references = self.source.list_cloned_refs()?;
        let store = self.target.choose_ref_store(&self.target.open()?);
        let (links, plain): (Vec<_>, Vec<_>) = references.iter().partition(|(_, target)| target.starts_with("ref: "));
        match store {
            RefStore::Files => self.write_packed(&plain)?,
            RefStore::GitOnly => self.create_refs(&plain)?,
        }
        for (name, target) in links {
            GitCommand::new(&self.target, "symbolic-ref").args([name, target.trim_start_matches("ref: ")]).run()?;
        }
        Ok(())
    }

    /// Writes them to `packed-refs` in one go: a file per reference is slow for many.
    fn write_packed(&self, references: &[(&String, &String)]) -> Result<(), GitError> {
        let file = self.target.common_dir().join("packed-refs");
        let mut text = String::from("# pack-refs with: sorted \n");
        for (name, id) in references {
            let _ = writeln!(text, "{id} {name}");
        }
        fs::write(&file, text).map_err(GitError::io("writing", &file))
    }

    fn create_refs(&self, references: &[(&String, &String)]) -> Result<(), GitError> {
        let mut commands = String::new();
        for (name, id) in references {
            let _ = writeln!(commands, "create {name} {id}");
        }
        if commands.is_empty() {
            return Ok(());
        }
        GitCommand::new(&self.target, "update-ref")
            .args(["--no-deref", "--stdin"])
            .input(commands.into_bytes())
            .run()
            .map(drop)
    }
}
