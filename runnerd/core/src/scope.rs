//! The scope of a run: which paths outside `.runner/` its sessions and guards may change, and what is restored of what
//! they changed elsewhere.
//!
//! Values only. Paths are judged one by one, as they would be committed; a rename is a file that is gone and a new one.

use std::collections::BTreeSet;

use runner_config::{Patterns, RepoConfig};

use crate::files::layout;
use crate::guard::definition::is_within;
use crate::text::fence::one_line;

/// Most bytes of a path or a glob in a message.
const MAX_SHOWN: usize = 200;
/// Most paths that a message names.
const MAX_NAMED: usize = 10;

/// What a run may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    write: Patterns,
    never: Patterns,
}

/// A path that a process changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeChange {
    /// The path, relative to the root of the repository.
    pub path: String,
    /// Whether there was a file at From.
    pub at_from: bool,
    /// Whether there is a file now.
    pub is_there: bool,
}

impl Scope {
    /// Returns the scope of a run whose iteration begins with this committed state.
    pub fn new(config: &RepoConfig) -> Self {
        Self { write: config.scope.write.clone(), never: config.scope.never.clone() }
    }

    /// Whether every path is in the scope.
    pub fn is_everything(&self) -> bool {
        self.write.as_slice().iter().any(|glob| glob == "**") && self.never.as_slice().is_empty()
    }

    /// Whether a run may change this path. Rules of their own apply to the runner's files.
    pub fn contains(&self, path: &str) -> bool {
        is_within(path, layout::FOLDER) || self.write.covers_path(path) && !self.never.covers_path(path)
    }

    /// Returns the paths to restore, in order: those outside of the scope, and new ones in the place of such a file or of
    /// a folder on the way to it.
    pub fn paths_to_restore(&self, changes: &[ScopeChange]) -> Vec<String> {
        let outside: Vec<&ScopeChange> = changes.iter().filter(|change| !self.contains(&change.path)).collect();
        let present: BTreeSet<&str> =
            changes.iter().filter(|change| change.is_there).map(|change| change.path.as_str()).collect();
        let mut paths: BTreeSet<&str> = outside.iter().map(|change| change.path.as_str()).collect();
        for ScopeChange { path, .. } in outside.iter().filter(|change| change.at_from) {
            let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
            paths.extend(folders.filter(|folder| present.contains(folder)));
            let below = present.range(path.as_str()..).skip_while(|other| *other == path);
            paths.extend(
                below.take_while(|other| other.starts_with(path.as_str())).filter(|other| is_within(other, path)),
            );
        }
        paths.into_iter().map(str::to_owned).collect()
    }

    /// Returns the globs of what may be changed.
    pub fn write_globs(&self) -> &[String] {
        self.write.as_slice()
    }

    /// Returns the globs of what must not be changed.
    pub fn never_globs(&self) -> &[String] {
        self.never.as_slice()
    }

    /// Returns those of restored paths that are outside of the scope; the others belong to the runner or to git.
    pub fn restored_outside<'p>(&self, restored: &'p [String]) -> impl Iterator<Item = &'p String> {
        let is_gits = |path: &str| {
            matches!(path, "." | "HEAD") || path.starts_with("refs/") || path.split('/').any(|name| name == ".git")
        };
        restored.iter().filter(move |path| !self.contains(path) && !is_gits(path))
    }
}

/// Names paths in a message.
pub fn name_paths(paths: &[String]) -> String {
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| one_line(path, MAX_SHOWN)).collect();
    let more = paths.len() - named.len();
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

/// Describes what a guard wrote outside of the scope, for its output; `None` if it wrote nothing there.
pub fn describe_guard_writes(outside: &[String]) -> Option<String> {
    (!outside.is_empty()).then(|| {
        format!(
            "The guard wrote outside of the scope of this run: {}. That is restored, and the guard counts as red. Add what it writes to \
             [scope] write or to .gitignore, or let it write nothing.",
            name_paths(outside)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(write: &[&str], never: &[&str]) -> Scope {
        let list = |globs: &[&str]| Patterns::new(globs.iter().copied());
        Scope { write: list(write), never: list(never) }
    }

    fn change((path, at_from, is_there): (&str, bool, bool)) -> ScopeChange {
        ScopeChange { path: path.to_owned(), at_from, is_there }
    }

    #[test]
    fn the_default_is_everything() {
        let default = Scope::new(&RepoConfig::default());
        assert!(default.is_everything() && default.contains("any/path"));
        assert!(!scope(&["**"], &["x"]).is_everything() && !scope(&["src"], &[]).is_everything());
    }

    #[test]
    fn never_wins_over_write_and_the_runners_folder_has_its_own_rules() {
        let scope = scope(&["src", "*.md"], &["src/vendor/", "LICENSE.md"]);
        for path in ["src/a.rs", "README.md", "docs/x.md", ".runner/state/notes.md", ".runner/nodes/a/context.md"] {
            assert!(scope.contains(path), "{path}");
        }
        for path in ["src/vendor/a.rs", "LICENSE.md", "Cargo.toml", ".runners/x", ".gitignore"] {
            assert!(!scope.contains(path), "{path}");
        }
    }

    #[test]
    fn a_file_that_moved_out_comes_back_and_its_new_name_is_removed() {
        let moved = [
            ("src/a.rs", true, false),
            ("lib/a.rs", false, true),
            ("tests/b.rs", true, false),
            ("src/b.rs", false, true),
        ];
        assert_eq!(scope(&["src"], &[]).paths_to_restore(&moved.map(change)), ["lib/a.rs", "tests/b.rs"]);
    }

    #[test]
    fn what_is_in_the_place_of_a_restored_file_is_restored_too() {
        let changes = [
            ("docs", true, false),
            ("docs/a.md", false, true),
            ("docs-a.md", false, true),
            ("lib", false, true),
            ("lib/x", true, false),
            ("lib/y.md", true, false),
        ];
        let restored = scope(&["*.md", "lib"], &["lib/x"]).paths_to_restore(&changes.map(change));
        assert_eq!(restored, ["docs", "docs/a.md", "lib", "lib/x"]);
    }

    #[test]
    fn names_of_git_are_not_outside() {
        let restored = [".git/config", "sub/.git", "HEAD", "refs/heads/x", ".runner/state/tree.json", "lib/x", "src/y"];
        let restored = restored.map(str::to_owned);
        let outside: Vec<_> = scope(&["src"], &[]).restored_outside(&restored).collect();
        assert_eq!(outside, ["lib/x"]);
    }
}
