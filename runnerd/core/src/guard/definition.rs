//! The guard's definition: the files that define what the guard does, and what follows if they differ from what a
//! person has accepted.
//!
//! Values only. The files and their forms are passed in, from commits and from the work tree.

use std::collections::{BTreeMap, BTreeSet};

use runner_config::ChangePolicy;
use runner_config::Patterns;
use serde::{Deserialize, Serialize};

use crate::files::layout;
use crate::text::fence::one_line;

/// Most bytes of a path in a notice.
const MAX_SHOWN: usize = 200;

/// Files by path, each as git would store it: the blob's id, with the mode and a colon in front unless it is a plain
/// file (`100755:…` can be executed, `120000:…` is a link).
pub type GuardDefinition = BTreeMap<String, String>;

/// The definition at one commit, and the one that a person accepted last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionState {
    /// The accepted files.
    pub accepted: GuardDefinition,
    /// The committed files.
    pub committed: GuardDefinition,
    /// Whether the absence of files was accepted, although there are no files.
    pub is_absence_accepted: bool,
}

/// Difference between the definition that the guard finds and the accepted one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionDiff {
    /// The files that differ, are gone or are new, in order.
    pub paths: Vec<String>,
    /// Whether there is an accepted definition at all.
    pub has_accepted: bool,
}

/// Whether a path belongs to the definition that these globs select.
pub fn is_in_definition(globs: &[String], path: &str) -> bool {
    is_definition_path(path, &Patterns::new(globs.iter().cloned()))
}

/// Whether a path belongs to the definition that these patterns select; the runner's files and git's own folder never
/// do.
pub fn is_definition_path(path: &str, patterns: &Patterns) -> bool {
    !is_within(path, layout::FOLDER) && !is_within(path, ".git") && patterns.matches_path(path)
}

/// Whether a path is that of a folder, or below it.
pub fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl DefinitionDiff {
    /// Compares the existing files with the accepted ones.
    pub fn between(accepted: &GuardDefinition, current: &GuardDefinition) -> Self {
        let differs = |path: &&String| accepted.get(*path) != current.get(*path);
        let paths = all_paths([accepted, current]).into_iter().filter(differs).cloned().collect();
        Self { paths, has_accepted: !accepted.is_empty() }
    }

    /// Returns what to do about it; if nothing was ever accepted, there is nothing to restore.
    pub fn effective_policy(&self, policy: ChangePolicy) -> ChangePolicy {
        if self.paths.is_empty() || !self.has_accepted { ChangePolicy::Report } else { policy }
    }

    /// Combines two differences, because a repeated effect may find less than the first time.
    #[must_use]
    pub fn merged_with(&self, other: &Self) -> Self {
        let paths: BTreeSet<&String> = self.paths.iter().chain(&other.paths).collect();
        Self { paths: paths.into_iter().cloned().collect(), has_accepted: self.has_accepted || other.has_accepted }
    }
}

impl DefinitionState {
    /// Returns the files in which both differ.
    pub fn changed_paths(&self) -> Vec<String> {
        self.diff_from_accepted(&self.committed).paths
    }

    /// Compares the existing files with the accepted ones.
    pub fn diff_from_accepted(&self, current: &GuardDefinition) -> DefinitionDiff {
        let diff = DefinitionDiff::between(&self.accepted, current);
        DefinitionDiff { has_accepted: diff.has_accepted || self.is_absence_accepted, ..diff }
    }
}

/// Returns the text for a session about a definition that differs from the accepted one; `None` if it does not differ.
pub fn session_notice(policy: ChangePolicy, guarded: &DefinitionState) -> Option<String> {
    let DefinitionState { accepted, committed, .. } = guarded;
    let diff = guarded.diff_from_accepted(committed);
    let how = |path: &String| match (accepted.contains_key(path), committed.contains_key(path)) {
        (true, true) => "changed",
        (true, false) => "removed",
        (false, _) => "new",
    };
    let lines: Vec<String> =
        diff.paths.iter().map(|path| format!("{} ({})\n", one_line(path, MAX_SHOWN), how(path))).collect();
    let rule = match diff.effective_policy(policy) {
        ChangePolicy::Both => {
            "`done` needs the guard to be green twice: with these files, and with those that were accepted."
        }
        ChangePolicy::Revert => "The accepted files are put back before the guard runs.",
        ChangePolicy::Report => "The guard runs with these files, and a person is told.",
    };
    (!lines.is_empty()).then(|| format!("{}No person has accepted that. {rule}\n", lines.concat()))
}

fn all_paths<const N: usize>(definitions: [&GuardDefinition; N]) -> BTreeSet<&String> {
    definitions.into_iter().flat_map(BTreeMap::keys).collect()
}
