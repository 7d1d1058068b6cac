//! Chooses the engine for the work tree: the library, or the git program if the library is known to give another result
//! than git. Not about speed, and not about hooks, as none are run.

use std::path::Path;

use gix::bstr::ByteSlice as _;
use gix::config::Snapshot;

use super::engine::GitEngine;
use super::pinned_config::{ATTRIBUTES_FILE, RUNNER_ATTRIBUTES_LINE};
use crate::Repository;
use crate::durable::read_regular_file;

pub(crate) fn choose_engine(repo: &gix::Repository, repository: &Repository) -> GitEngine {
    if reasons_for_git(repo, repository).next().is_some() { GitEngine::Git } else { GitEngine::Gix }
}

/// Returns the reasons for using the git program, each naming the setting; evaluated lazily.
pub(crate) fn reasons_for_git(repo: &gix::Repository, repository: &Repository) -> impl Iterator<Item = &'static str> {
    type Check = fn(&Snapshot<'_>, &Repository) -> bool;
    const CHECKS: [(&str, Check); 4] = [
        ("core.sparseCheckout or index.sparse is set", |config, _| is_sparse(config)),
        ("core.sharedRepository is set", |config, _| is_shared(config)),
        ("core.ignoreCase is set", |config, _| config.boolean("core.ignoreCase").unwrap_or(false)),
        (".gitattributes names a working-tree-encoding", |_, paths| recodes_text(paths)),
    ];
    let config = repo.config_snapshot();
    CHECKS.into_iter().filter(move |(_, differs)| differs(&config, repository)).map(|(what, _)| what)
}

/// The library ignores entries outside a sparse checkout even if their files are present again.
fn is_sparse(config: &Snapshot<'_>) -> bool {
    config.boolean("core.sparseCheckout").unwrap_or(false) || config.boolean("index.sparse").unwrap_or(false)
}

/// The library gives new objects only the permissions of the umask.
fn is_shared(config: &Snapshot<'_>) -> bool {
    config
        .string("core.sharedRepository")
        .is_some_and(|value| !matches!(value.to_lowercase().as_slice(), b"umask" | b"false" | b"0" | b"no" | b"off"))
}

/// git refuses text that it cannot read in its declared encoding; the library stores it unchanged.
///
/// Checks where such declarations are made in practice: in the root folder and in the repository's own attributes.
fn recodes_text(repository: &Repository) -> bool {
    let places = [repository.work_dir().join(".gitattributes"), repository.rules_file(ATTRIBUTES_FILE)];
    places.iter().any(|path| mentions_encoding(path))
}

fn mentions_encoding(path: &Path) -> bool {
    let is_own = |line: &[u8]| line == RUNNER_ATTRIBUTES_LINE.as_bytes();
    let declares = |line: &[u8]| line.contains_str("working-tree-encoding") && !is_own(line);
    read_regular_file(path).is_ok_and(|text| text.lines().any(declares))
}

/// The library reads references only from files.
pub(crate) fn has_foreign_ref_store(repo: &gix::Repository) -> bool {
    repo.config_snapshot()
        .string("extensions.refStorage")
        .is_some_and(|format| !format.as_slice().eq_ignore_ascii_case(b"files"))
}
