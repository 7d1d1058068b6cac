//! Follows the guard's definition along a branch: what a person has accepted of it, and whether deviations were
//! announced.

use std::collections::{BTreeMap, BTreeSet};

use protocol::verify::AuditRule;

use super::commit_data::{PathChange, PathEntry};
use super::findings::AuditFindings;
use super::net_diff::NetDiff;
use crate::files::layout;
use crate::guard::definition::{DefinitionDiff, DefinitionState, GuardDefinition, is_in_definition, is_within};
use crate::guard::watched_files::{CheckDigests, WatchedFiles};
use crate::message::Receipt;
use crate::scope::Scope;

/// The trailer that names files no person has accepted.
const ANNOUNCED: &str = "Runner-Guard-Changed";

/// The files outside `.runner/`, as far as the branch has shown them since its start.
#[derive(Debug, Default)]
pub(super) struct DefinitionTracker {
    /// `None` until a start has been seen.
    files: Option<BTreeMap<String, String>>,
    /// Files that are known to be gone.
    removed: BTreeSet<String>,
    /// The files matched by some globs, from the last query.
    known: Option<KnownDefinition>,
    /// What manifests say about checks.
    checks: CheckDigests,
}

/// The tracked files that form a guard's definition.
#[derive(Debug)]
struct KnownDefinition {
    globs: Vec<String>,
    definition: GuardDefinition,
}

/// A receipt's statement about files that differ from what was accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnnouncedChanges<'a> {
    /// What a person had accepted at From.
    pub accepted: &'a SessionDefinition,
    /// The receipt with the statement.
    pub receipt: &'a Receipt,
}

impl DefinitionTracker {
    /// Loads the files of a commit, for a run that begins at an iteration of another one.
    pub(super) fn load_files(&mut self, before: &[PathChange]) {
        let code = before.iter().filter(|change| !change.path.starts_with(b".runner/"));
        let file = |change: &PathChange| {
            let path = String::from_utf8(change.path.clone()).ok()?;
            Some((path, change.new.as_ref().and_then(definition_form)?))
        };
        (self.files, self.known) = (Some(code.filter_map(file).collect()), None);
    }

    /// Begins with the guard's definition that a start records, except for files about which more is already known.
    pub(super) fn begin_run(&mut self, definition: &GuardDefinition) {
        let files = self.files.get_or_insert_default();
        for (path, form) in definition {
            files.entry(path.clone()).or_insert_with(|| form.clone());
        }
        self.known = None;
    }

    /// Applies a commit's changes; a file that it changed existed before with its old content.
    pub(super) fn apply(&mut self, changes: &[PathChange], findings: &mut AuditFindings) {
        let Some(files) = &mut self.files else { return };
        for change in changes.iter().filter(|change| !change.path.starts_with(b".runner/")) {
            let Ok(path) = String::from_utf8(change.path.clone()) else { continue };
            let old = change.old.as_ref().and_then(definition_form);
            if let Some(recorded) = files.get(&path).filter(|recorded| Some(*recorded) != old.as_ref()) {
                let found = old.as_deref().unwrap_or("nothing");
                let at = format!("{}: guard_definition: {path}", layout::RUN_STATE);
                findings.add_violation(AuditRule::Milestone, &at, found, recorded);
            }
            if let Some(current) = self.known.as_mut().filter(|known| is_in_definition(&known.globs, &path)) {
                set_file(&mut current.definition, &path, change.new.as_ref());
            }
            set_file(files, &path, change.new.as_ref());
            if files.contains_key(&path) {
                self.removed.remove(&path);
            } else {
                self.removed.insert(path);
            }
        }
    }

    /// Returns the definition that these globs match, as far as it is known.
    fn known_definition(&mut self, globs: &[String]) -> &GuardDefinition {
        let known = self.known.take().filter(|known| known.globs == globs);
        let named = || {
            let files = self.files.iter().flatten().filter(|(path, _)| is_in_definition(globs, path));
            let definition = files.map(|(path, form)| (path.clone(), form.clone())).collect();
            KnownDefinition { globs: globs.to_vec(), definition }
        };
        &self.known.insert(known.unwrap_or_else(named)).definition
    }

    /// Applies the watched files of the commit at which a session begins, as determined from that commit.
    pub(super) fn apply_watched(&mut self, watched: &WatchedFiles) -> Option<SessionDefinition> {
        let WatchedFiles { globs, accepted, missing, is_absence_accepted, checks, .. } = watched;
        self.checks.extend(checks);
        // A file that no commit has changed is still as it was accepted.
        let files = self.files.as_mut()?;
        for (path, form) in accepted.iter().filter(|(path, _)| !self.removed.contains(*path)) {
            files.entry(path.clone()).or_insert_with(|| form.clone());
        }
        self.known = None;
        let current = self.known_definition(globs).clone();
        let committed = self.checks.normalize_forms(accepted, current, is_in_definition);
        let guarded =
            DefinitionState { accepted: accepted.clone(), committed, is_absence_accepted: *is_absence_accepted };
        Some(SessionDefinition { definition_state: guarded, globs: globs.clone(), missing: missing.clone() })
    }

    /// Adds what manifests say about checks.
    pub(super) fn add_checks(&mut self, checks: &CheckDigests) {
        self.checks.extend(checks);
    }

    /// Checks that the receipt names every file that differs from what was accepted at From.
    pub(super) fn check(&mut self, announced: AnnouncedChanges<'_>, findings: &mut AuditFindings) {
        let AnnouncedChanges { accepted, receipt } = announced;
        let globs = &accepted.globs;
        let current = self.known_definition(globs).clone();
        let current = self.checks.normalize_forms(&accepted.definition_state.accepted, current, is_in_definition);
        let named = &receipt.guard_changed;
        let departing = DefinitionDiff::between(&accepted.definition_state.accepted, &current).paths;
        let missing = named.missing_names(&departing);
        for path in &departing {
            let expected = format!("{path}, which no person has accepted");
            if missing.contains(&path) {
                findings.add_violation(AuditRule::Receipt, ANNOUNCED, &expected, "not named");
            } else if !named.items().iter().any(|name| name == path.as_bytes()) {
                // A reader of the receipt alone does not see these, so the audit reports them.
                findings.add_warning(AuditRule::Receipt, ANNOUNCED, &expected, "counted, and not named");
            }
        }
        if !named.is_sorted() {
            findings.add_violation(AuditRule::Receipt, ANNOUNCED, "names in order, each once", &named.to_string());
        }
        let is_part = |name: &str| is_in_definition(globs, name) || accepted.missing.contains(name);
        for name in named.items().iter().filter(|name| !str::from_utf8(name).is_ok_and(is_part)) {
            let name = String::from_utf8_lossy(name);
            findings.add_violation(AuditRule::Receipt, ANNOUNCED, "files of the guard's definition", &name);
        }
        if named.more() > 0 && !named.is_full() {
            let found = format!("{} that are counted only", named.more());
            findings.add_violation(AuditRule::Receipt, ANNOUNCED, "every file by its name", &found);
        }
    }
}

/// The guard's definition at the commit at which a session begins.
#[derive(Debug)]
pub(super) struct SessionDefinition {
    /// The accepted and the committed definition.
    pub definition_state: DefinitionState,
    /// The globs that match it.
    globs: Vec<String>,
    /// Files that the guard reads and that are not part of it; git may ignore one.
    missing: BTreeSet<String>,
}

impl SessionDefinition {
    /// Whether a file with this difference from the session's beginning is in the state that a person has accepted.
    pub(super) fn is_restored(&self, path: &str, net: &NetDiff) -> bool {
        let changed = net.code_paths_with_sides().find(|(changed, _)| *changed == path);
        let now = match changed {
            Some((_, (_, new))) => new.as_ref().and_then(definition_form),
            None => self.definition_state.committed.get(path).cloned(),
        };
        now.as_ref() == self.definition_state.accepted.get(path)
    }

    /// Checks that every restored path belongs to the runner, to git, or to the guard's definition, or is outside of the
    /// scope.
    pub(super) fn check_restored(&self, reverted: &[String], scope: &Scope, findings: &mut AuditFindings) {
        let is_known = |path: &str| self.definition_state.accepted.contains_key(path) || self.missing.contains(path);
        let is_part = |path: &str| is_known(path) || is_in_definition(&self.globs, path);
        // What was in the place of a file that is outside is in the scope itself.
        let is_outside = |path: &str| {
            let outside = || scope.restored_outside(reverted).map(String::as_str);
            outside().any(|other| other == path || is_within(other, path) || is_within(path, other))
        };
        let is_other = |path: &&String| !is_runner_or_git_path(path) && !is_part(path) && !is_outside(path);
        for path in reverted.iter().filter(is_other) {
            let expected = "files of the runner, of git, of the guard's definition, or outside of the scope";
            findings.add_violation(AuditRule::Receipt, "Runner-Reverted", expected, path);
        }
    }
}

/// Whether the name of a restored path is under `.runner/` or belongs to git's own data: its folder, in any work tree,
/// references, and pipes in place of its rule files. Code that was changed must additionally be as accepted.
fn is_runner_or_git_path(name: &str) -> bool {
    let rules = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];
    let is_rule = |last: &str| rules.contains(&last);
    matches!(name, "." | "HEAD" | layout::FOLDER)
        || name.starts_with(".runner/")
        || name.starts_with("refs/")
        || name.split('/').any(|part| part == ".git")
        || name.rsplit('/').next().is_some_and(is_rule)
}

fn set_file(definition: &mut GuardDefinition, path: &str, stored: Option<&PathEntry>) {
    match stored.and_then(definition_form) {
        Some(form) => definition.insert(path.to_owned(), form),
        None => definition.remove(path),
    };
}

/// Returns a file as a definition has it; `None` for anything but a file or a link.
pub(super) fn definition_form(stored: &PathEntry) -> Option<String> {
    match stored.mode {
        0o100_644 => Some(stored.id.clone()),
        0o100_755 => Some(format!("100755:{}", stored.id)),
        0o120_000 => Some(format!("120000:{}", stored.id)),
        _ => None,
    }
}
