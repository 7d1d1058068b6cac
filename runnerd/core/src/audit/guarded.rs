//! The guard's definition along a branch: what a person has accepted of it, and whether what departs from that was
//! announced.

use std::collections::{BTreeMap, BTreeSet};

use protocol::verify::AuditRule;

use super::findings::Findings;
use super::link::{PathChange, Readers, Stored};
use super::net_diff::NetDiff;
use crate::definition::{Definition, Departure, Guarded};
use crate::layout;
use crate::message::Receipt;
use crate::watched::{Checks, Watched};

/// The trailer that names what no person has accepted.
const ANNOUNCED: &str = "Runner-Guard-Changed";

/// What stands outside `.runner/`, as far as the branch has told of it since its start.
#[derive(Debug, Default)]
pub(super) struct Ground {
    /// None as long as no start was seen.
    files: Option<BTreeMap<String, String>>,
    /// Files that are known to stand there no more.
    gone: BTreeSet<String>,
    /// The files that some globs name, as they were asked for last.
    standing: Option<Standing>,
    /// What manifests say of checks.
    checks: Checks,
}

/// The part of the ground that is a guard's definition.
#[derive(Debug)]
struct Standing {
    globs: Vec<String>,
    definition: Definition,
}

/// What a receipt says of files that depart from what was accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Announced<'a> {
    /// What a person had accepted at From.
    pub accepted: &'a Accepted,
    /// The receipt.
    pub receipt: &'a Receipt,
}

impl Ground {
    /// Takes over the files of a commit, where the run begins at an iteration of another.
    pub(super) fn stand(&mut self, before: &[PathChange]) {
        let code = before.iter().filter(|change| !change.path.starts_with(b".runner/"));
        let file = |change: &PathChange| {
            let path = String::from_utf8(change.path.clone()).ok()?;
            Some((path, change.new.as_ref().and_then(form)?))
        };
        (self.files, self.standing) = (Some(code.filter_map(file).collect()), None);
    }

    /// Begins with what a start says that the guard's definition is, but for what is known of the files there.
    pub(super) fn begin(&mut self, told: &Definition) {
        let files = self.files.get_or_insert_default();
        for (path, form) in told {
            files.entry(path.clone()).or_insert_with(|| form.clone());
        }
        self.standing = None;
    }

    /// Takes over what a commit changed; what it changed stood there before.
    pub(super) fn apply(&mut self, changes: &[PathChange], readers: &Readers, findings: &mut Findings) {
        let Some(files) = &mut self.files else { return };
        for change in changes.iter().filter(|change| !change.path.starts_with(b".runner/")) {
            let Ok(path) = String::from_utf8(change.path.clone()) else { continue };
            let old = change.old.as_ref().and_then(form);
            if let Some(told) = files.get(&path).filter(|told| Some(*told) != old.as_ref()) {
                let found = old.as_deref().unwrap_or("nothing");
                let at = format!("{}: guard_definition: {path}", layout::RUN_STATE);
                findings.violation(AuditRule::Milestone, &at, (found, told));
            }
            if let Some(standing) = self.standing.as_mut().filter(|it| (readers.is_definition)(&it.globs, &path)) {
                put(&mut standing.definition, &path, change.new.as_ref());
            }
            put(files, &path, change.new.as_ref());
            if files.contains_key(&path) {
                self.gone.remove(&path);
            } else {
                self.gone.insert(path);
            }
        }
    }

    /// Returns the definition that these globs name, as far as it is known.
    fn standing(&mut self, globs: &[String], readers: &Readers) -> &Definition {
        let known = self.standing.take().filter(|standing| standing.globs == globs);
        let named = || {
            let files = self.files.iter().flatten().filter(|(path, _)| (readers.is_definition)(globs, path));
            let definition = files.map(|(path, form)| (path.clone(), form.clone())).collect();
            Standing { globs: globs.to_vec(), definition }
        };
        &self.standing.insert(known.unwrap_or_else(named)).definition
    }

    /// Takes over what is watched at the commit at which a session begins, as it was told from that commit.
    pub(super) fn watch(&mut self, watched: &Watched, readers: &Readers) -> Option<Accepted> {
        let Watched { globs, accepted, is_absence_accepted, checks, .. } = watched;
        self.checks.extend(checks);
        // What no commit has changed stands there as it was accepted.
        let files = self.files.as_mut()?;
        for (path, form) in accepted.iter().filter(|(path, _)| !self.gone.contains(*path)) {
            files.entry(path.clone()).or_insert_with(|| form.clone());
        }
        self.standing = None;
        let standing = self.standing(globs, readers).clone();
        let committed = self.checks.settle(accepted, standing, readers.is_definition);
        let guarded = Guarded { accepted: accepted.clone(), committed, is_absence_accepted: *is_absence_accepted };
        Some(Accepted { guarded, globs: globs.clone() })
    }

    /// Takes over what manifests say of checks.
    pub(super) fn add_checks(&mut self, checks: &Checks) {
        self.checks.extend(checks);
    }

    /// Checks that the receipt names every file that departs from what was accepted at From.
    pub(super) fn check(&mut self, announced: Announced<'_>, readers: &Readers, findings: &mut Findings) {
        let Announced { accepted, receipt } = announced;
        let globs = &accepted.globs;
        let standing = self.standing(globs, readers).clone();
        let standing = self.checks.settle(&accepted.guarded.accepted, standing, readers.is_definition);
        let named = &receipt.guard_changed;
        let departing = Departure::between(&accepted.guarded.accepted, &standing).paths;
        let missing = named.missing(&departing);
        for path in &departing {
            let expected = format!("{path}, which no person has accepted");
            if missing.contains(&path) {
                findings.violation(AuditRule::Receipt, ANNOUNCED, (&expected, "not named"));
            } else if !named.items().iter().any(|name| name == path.as_bytes()) {
                // Who reads the receipt alone does not learn of it, so whoever asks the audit does.
                findings.warning(AuditRule::Receipt, ANNOUNCED, (&expected, "counted, and not named"));
            }
        }
        if !named.is_sorted() {
            findings.violation(AuditRule::Receipt, ANNOUNCED, ("names in order, each once", &named.to_string()));
        }
        let is_part = |name: &str| (readers.is_definition)(globs, name);
        for name in named.items().iter().filter(|name| !str::from_utf8(name).is_ok_and(is_part)) {
            let name = String::from_utf8_lossy(name);
            findings.violation(AuditRule::Receipt, ANNOUNCED, ("files of the guard's definition", &name));
        }
        if named.more() > 0 && !named.is_full() {
            let found = format!("{} that are counted only", named.more());
            findings.violation(AuditRule::Receipt, ANNOUNCED, ("every file by its name", &found));
        }
    }
}

/// The guard's definition at the commit at which a session begins.
#[derive(Debug)]
pub(super) struct Accepted {
    /// What was accepted, and what is there.
    pub guarded: Guarded,
    /// The globs that name it.
    globs: Vec<String>,
}

impl Accepted {
    /// Whether a file that differs by this much from where the session began stands as a person has accepted it.
    pub(super) fn is_put_back(&self, path: &str, net: &NetDiff) -> bool {
        let changed = net.code_with_sides().find(|(changed, _)| *changed == path);
        let now = match changed {
            Some((_, (_, new))) => new.as_ref().and_then(form),
            None => self.guarded.committed.get(path).cloned(),
        };
        now.as_ref() == self.guarded.accepted.get(path)
    }

    /// Checks that what was put back is the runner's, git's own, or of the guard's definition.
    pub(super) fn check_put_back(&self, reverted: &[String], readers: &Readers, findings: &mut Findings) {
        let is_part =
            |path: &str| (readers.is_definition)(&self.globs, path) || self.guarded.accepted.contains_key(path);
        for path in reverted.iter().filter(|path| !is_of_runner_or_git(path) && !is_part(path)) {
            let expected = "files of the runner, of git, or of the guard's definition";
            findings.violation(AuditRule::Receipt, "Runner-Reverted", (expected, path));
        }
    }
}

/// Whether a name of what was put back is one under `.runner/`, or of what git is asked through: its own folder, in whatever
/// work tree, references, and pipes in the place of its rules. Code that was changed has to stand as accepted besides.
fn is_of_runner_or_git(name: &str) -> bool {
    let rules = [".gitignore", ".gitattributes", ".gitmodules"];
    let is_rule = |last: &str| rules.contains(&last);
    matches!(name, "." | "HEAD" | layout::FOLDER)
        || name.starts_with(".runner/")
        || name.starts_with("refs/")
        || name.split('/').any(|part| part == ".git")
        || name.rsplit('/').next().is_some_and(is_rule)
}

fn put(definition: &mut Definition, path: &str, stored: Option<&Stored>) {
    match stored.and_then(form) {
        Some(form) => definition.insert(path.to_owned(), form),
        None => definition.remove(path),
    };
}

/// Returns a file as a definition has it; none for what is neither a file nor a link.
pub(super) fn form(stored: &Stored) -> Option<String> {
    match stored.mode {
        0o100_644 => Some(stored.id.clone()),
        0o100_755 => Some(format!("100755:{}", stored.id)),
        0o120_000 => Some(format!("120000:{}", stored.id)),
        _ => None,
    }
}
