//! Finds attributes of a session or a guard by which git would refuse one of its files, and restores those of From.
//!
//! The guard judges what is in the work tree. A rule of the process it judges must not keep a file out of the commit.

use std::collections::BTreeSet;

use runner_core::guard::definition::{DefinitionDiff, GuardDefinition};
use runner_git::{Id, Repository};

use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition::{attribute_files_above, entry_form, work_tree_form};
use crate::worker::integrity::guard_overlay;

/// The attribute files to restore.
pub(super) struct RefusingRules {
    at_from: GuardDefinition,
    differing: DefinitionDiff,
}

impl RefusingRules {
    /// Finds the attribute files that differ from From and are above a file that git refuses.
    pub(super) fn find(context: &RunContext, repository: &Repository, from: Id) -> Result<Self, EffectError> {
        let mut at_from = GuardDefinition::new();
        let mut differing = BTreeSet::new();
        let changes = context.cached_changes()?;
        let above = |path: &str| attribute_files_above(path).collect::<Vec<_>>();
        let files: BTreeSet<String> = changes.iter().flat_map(|change| above(&change.display_path())).collect();
        for path in files {
            let form = repository.find_entry(&from, &path)?.as_ref().and_then(entry_form);
            if work_tree_form(context, repository, &path)? != form {
                differing.insert(path.clone());
            }
            at_from.extend(form.map(|form| (path, form)));
        }
        if !differing.is_empty() {
            let refused = repository.find_refused(&changes)?;
            let is_to_blame: BTreeSet<String> = refused.iter().flat_map(|path| above(path)).collect();
            differing.retain(|path| is_to_blame.contains(path));
        }
        let differing = DefinitionDiff { paths: differing.into_iter().collect(), has_accepted: true };
        Ok(Self { at_from, differing })
    }

    /// Returns the attribute files to restore, in order.
    pub(super) fn paths(&self) -> &[String] {
        &self.differing.paths
    }

    /// Restores them; what was there is saved in the record.
    pub(super) fn restore(&self, context: &RunContext, iter: u32) -> Result<(), EffectError> {
        if self.differing.paths.is_empty() {
            return Ok(());
        }
        guard_overlay::restore_accepted(context, iter, &self.at_from, &self.differing)?;
        context.last_scan.invalidate();
        Ok(())
    }
}
