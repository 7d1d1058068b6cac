//! References for a replica: branches but those of runs, what was fetched, tags and notes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use super::Replica;
use crate::git::repository::engine::RefStore;
use crate::git::repository::program::Git;
use crate::git::{GitError, Repository};

const TAKEN: [&str; 4] = ["refs/heads/", "refs/remotes/", "refs/tags/", "refs/notes/"];
/// Branches of runs: each is worked on in one place.
const OF_RUNS: &str = "refs/heads/runner/";

impl Repository {
    /// Returns the references that a replica has too, by full name: an object id each, or `ref: ` and a name.
    pub(super) fn taken_references(&self) -> Result<BTreeMap<String, String>, GitError> {
        let mut references = self.refs()?;
        references.retain(|name, _| TAKEN.iter().any(|of| name.starts_with(of)) && !name.starts_with(OF_RUNS));
        Ok(references)
    }
}

impl Replica<'_> {
    /// Takes over the references.
    pub fn references(&self) -> Result<(), GitError> {
        let references = self.source.taken_references()?;
        let store = self.made.ref_store(&self.made.open()?);
        let (links, plain): (Vec<_>, Vec<_>) = references.iter().partition(|(_, target)| target.starts_with("ref: "));
        match store {
            RefStore::Files => self.write_packed(&plain)?,
            RefStore::Program => self.create(&plain)?,
        }
        for (name, target) in links {
            Git::new(&self.made, "symbolic-ref").args([name, target.trim_start_matches("ref: ")]).run()?;
        }
        Ok(())
    }

    /// Writes them into the one file that git itself packs them into: a file for each takes long where they are many.
    fn write_packed(&self, references: &[(&String, &String)]) -> Result<(), GitError> {
        let file = self.made.common_dir().join("packed-refs");
        let mut text = String::from("# pack-refs with: sorted \n");
        for (name, id) in references {
            let _ = writeln!(text, "{id} {name}");
        }
        fs::write(&file, text).map_err(GitError::io("writing", &file))
    }

    fn create(&self, references: &[(&String, &String)]) -> Result<(), GitError> {
        let mut orders = String::new();
        for (name, id) in references {
            let _ = writeln!(orders, "create {name} {id}");
        }
        if orders.is_empty() {
            return Ok(());
        }
        Git::new(&self.made, "update-ref").args(["--no-deref", "--stdin"]).input(orders.into_bytes()).run().map(drop)
    }
}
