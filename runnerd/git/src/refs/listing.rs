//! Lists references with their direct values, following neither symbolic references nor tags, and changes many of them
//! at once.
//!
//! What a reference is for is up to its user.

use std::collections::BTreeMap;

use super::{ExpectedRef, RefMove, full_name};
use crate::durable;
use crate::repository::engine::RefStore;
use crate::repository::identity::Identity;
use crate::repository::program::GitCommand;
use crate::{GitError, Id, Repository};

/// One change of one reference, as part of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// Its full name.
    pub name: String,
    /// The value it was read with; `None` means that it must not exist.
    pub from: Option<Id>,
    /// Its new value.
    pub to: Id,
}

impl RefChange {
    fn to_move<'a>(&'a self, by: &'a Identity, message: &'a str) -> RefMove<'a> {
        let before = self.from.map_or(ExpectedRef::Missing, ExpectedRef::Exactly);
        RefMove { name: &self.name, to: self.to, expected: before, message, identity: by }
    }
}

impl Repository {
    /// Returns the references with these full names, and all below them: an object id each, or `ref: ` and a name.
    ///
    /// Fails if one of them cannot be read.
    pub fn list_refs_under(&self, names: &[String]) -> Result<BTreeMap<String, String>, GitError> {
        let repo = self.open()?;
        match self.choose_ref_store(&repo) {
            RefStore::Files => names.iter().try_fold(BTreeMap::new(), |mut found, name| {
                self.collect_file_refs(&repo, name, &mut found)?;
                Ok(found)
            }),
            RefStore::GitOnly => self.list_refs_under_with_git(names),
        }
    }

    fn collect_file_refs(
        &self,
        repo: &gix::Repository,
        name: &str,
        found: &mut BTreeMap<String, String>,
    ) -> Result<(), GitError> {
        let read = |error| GitError::gix("reading references", self.git_dir())(error);
        let exact = full_name(name, self)?;
        let exact = repo.try_find_reference(exact.as_ref()).map_err(read)?;
        found.extend(exact.map(|reference| (name.to_owned(), describe_target(&reference.inner.target))));
        let below = format!("{name}/");
        let all = repo.references().map_err(read)?;
        for reference in all.prefixed(below.as_str()).map_err(read)? {
            let reference = reference.map_err(read)?;
            let name = reference.name().as_bstr().to_string();
            found.insert(name, describe_target(&reference.inner.target));
        }
        Ok(())
    }

    fn list_refs_under_with_git(&self, names: &[String]) -> Result<BTreeMap<String, String>, GitError> {
        let git = GitCommand::new(self, "for-each-ref").arg("--format=%(refname) %(objectname) %(symref)").args(names);
        let listing = git.run()?;
        let mut found = BTreeMap::new();
        for line in String::from_utf8_lossy(&listing).lines() {
            let mut words = line.split(' ');
            if let (Some(name), Some(id)) = (words.next(), words.next()) {
                let symbolic = words.next().filter(|target| !target.is_empty()).map(|target| format!("ref: {target}"));
                found.insert(name.to_owned(), symbolic.unwrap_or_else(|| id.to_owned()));
            }
        }
        Ok(found)
    }

    /// Applies all changes or none: each reference must still have its `from` value. Symbolic references are not
    /// followed.
    pub fn update_refs(&self, message: &str, changes: &[RefChange]) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        let new = changes.iter().filter(|change| change.from.is_none());
        new.map(|change| &change.name).try_for_each(|name| self.check_ref_conflict(name))?;
        if let Some(foreign) = changes.iter().find(|change| !self.has_private_log(&change.name)) {
            let path = self.common_dir().join("logs").join(&foreign.name);
            return Err(GitError::Corrupt {
                doing: "moving references",
                path,
                source: "the log of a reference leads elsewhere".into(),
            });
        }
        let repo = self.open()?;
        match self.choose_ref_store(&repo) {
            RefStore::Files => {
                let by = Identity::runner();
                let moves: Vec<RefMove<'_>> = changes.iter().map(|change| change.to_move(&by, message)).collect();
                self.with_stale_lock_retry(|| self.move_file_refs(&repo, &moves, false))
            }
            RefStore::GitOnly => self.update_refs_with_git(message, changes),
        }
    }

    fn update_refs_with_git(&self, message: &str, changes: &[RefChange]) -> Result<(), GitError> {
        let mut input = Vec::new();
        for RefChange { name, from, to } in changes {
            let to = to.to_string();
            let from = from.map_or_else(|| "0".repeat(to.len()), |id| id.to_string());
            input.extend(format!("update {name}\0{to}\0{from}\0").into_bytes());
        }
        let git = GitCommand::new(self, "update-ref").args(["--no-deref", "-m", message, "--stdin", "-z"]);
        Identity::runner().apply_to(git).input(input).run()?;
        // git flushes its files, but not the folder that holds them.
        durable::sync_if_exists(&self.common_dir().join("reftable")).map(drop)
    }
}

fn describe_target(target: &gix::refs::Target) -> String {
    match target {
        gix::refs::Target::Object(id) => id.to_string(),
        gix::refs::Target::Symbolic(name) => format!("ref: {}", name.as_bstr()),
    }
}
