//! Decides which files are watched for the guard, and which of them a person has accepted, at the commit at which a
//! session begins.
//!
//! A function of two commits, the runner's last and the one at which the session begins: a person has made the
//! differences between them. What the command reaches is determined from accepted files alone, so that nothing left by
//! a session affects what is watched. Reading the commits is up to the caller.

use std::collections::{BTreeMap, BTreeSet};

use runner_config::Patterns;

use super::definition::{GuardDefinition, is_definition_path};
use super::git_rules;
use super::manifest;
use super::paths::escape_glob;
use super::reached_files::{self, AcceptedFile, AcceptedFiles, ReachedFiles};
use super::tools;

/// Inputs at the commit at which a session begins.
#[derive(Debug, Clone, Copy)]
pub struct WatchQuery<'a> {
    /// The configuration there.
    pub now: WatchConfig<'a>,
    /// The configuration at the runner's last commit; `None` if a run begins.
    pub before: Option<WatchConfig<'a>>,
    /// The paths that people have changed since then.
    pub changed: &'a BTreeSet<String>,
    /// Whether a path matches any of these globs.
    pub matches: GlobMatcher,
}

/// Whether a path matches any of some globs.
pub type GlobMatcher = fn(&[String], &str) -> bool;

/// Everything that determines what is watched at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchConfig<'a> {
    /// The guard's command.
    pub command: &'a [String],
    /// The configured globs; `None` if the configuration has no list.
    pub configured: Option<&'a [String]>,
    /// The definition that the run state has recorded as accepted.
    pub accepted: &'a GuardDefinition,
}

/// The files of the commit at which a session begins.
pub trait CommitFiles {
    /// Why the files cannot be read.
    type Error;

    /// Returns the form of the file at a path; `None` if there is none.
    fn form_at(&mut self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Returns the forms of all files, by path.
    fn all_forms(&mut self) -> Result<GuardDefinition, Self::Error>;

    /// Returns the content of a file with this form.
    fn read_content(&mut self, form: &str) -> Result<Vec<u8>, Self::Error>;

    /// Whether a submodule is at a path, or was when the run began: no commit here has its files.
    fn is_submodule(&mut self, path: &str) -> Result<bool, Self::Error>;
}

/// What is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedFiles {
    /// The watched files, as globs.
    pub globs: Vec<String>,
    /// The accepted forms among them.
    pub accepted: GuardDefinition,
    /// Files that the guard reads and that are neither accepted nor watched for: a task may have yet to write one, or
    /// git ignores it.
    pub missing: BTreeSet<String>,
    /// Whether the absence of a file is part of what was accepted.
    pub is_absence_accepted: bool,
    /// Whether nothing is watched although the guard may read files of the repository. Not so for an unknown program at
    /// an absolute path, which is out of a session's reach, nor for an empty list, which says that there is nothing to
    /// watch.
    pub is_blind: bool,
    /// Commands that run files which cannot be determined, as `FILE: COMMAND`; empty if the configuration has a list,
    /// which names them or says that there are none.
    pub unknown: Vec<String>,
    /// What the watched manifests say about checks, and git's own rules for watched files.
    pub checks: CheckDigests,
}

/// Whether two versions of a file are compared by meaning rather than byte for byte.
pub fn is_compared_by_content(path: &str) -> bool {
    manifest::is_manifest(path) || git_rules::is_rules_file(path)
}

/// What manifests say about checks (a digest), and git's own rules for files (the lines), by blob id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckDigests(BTreeMap<String, String>);

impl CheckDigests {
    /// Adds a file if it is one of these.
    pub fn add(&mut self, path: &str, form: &str, bytes: &[u8]) {
        let rules = || git_rules::is_rules_file(path).then(|| git_rules::effective_lines(bytes));
        if let Some(checks) = manifest::checks_digest(path, bytes).or_else(rules) {
            self.0.insert(form.to_owned(), checks);
        }
    }

    /// Adds the entries of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    /// Returns these files with the accepted form wherever a file says the same about checks, or about watched files,
    /// as its accepted version.
    #[must_use]
    pub fn normalize_forms(
        &self,
        accepted: &GuardDefinition,
        mut current: GuardDefinition,
        matches: GlobMatcher,
    ) -> GuardDefinition {
        for (path, form) in current.iter_mut().filter(|(path, _)| manifest::is_manifest(path)) {
            let is_same = |other: &&String| self.0.contains_key(*other) && self.0.get(*other) == self.0.get(form);
            if let Some(other) = accepted.get(path).filter(is_same) {
                form.clone_from(other);
            }
        }
        let rules: BTreeSet<String> = [accepted, &current].into_iter().flat_map(BTreeMap::keys).cloned().collect();
        for path in rules.into_iter().filter(|path| git_rules::is_rules_file(path)) {
            // A missing file says nothing.
            let checks = |form: Option<&String>| form.map_or(Some(""), |form| self.0.get(form).map(String::as_str));
            let both = checks(accepted.get(&path)).zip(checks(current.get(&path)));
            if both.is_some_and(|both| git_rules::has_same_effect(&path, both.into(), accepted, matches)) {
                match accepted.get(&path) {
                    Some(form) => drop(current.insert(path, form.clone())),
                    None => drop(current.remove(&path)),
                }
            }
        }
        current
    }
}

/// Determines what is watched.
pub fn find_watched<F: CommitFiles>(query: &WatchQuery<'_>, files: &mut F) -> Result<WatchedFiles, F::Error> {
    let (accepts_unknown, known) = match query.before {
        None => (true, Vec::new()),
        Some(before) => {
            let changed = BTreeSet::new();
            let was = AcceptedView {
                query: &WatchQuery { now: before, changed: &changed, ..*query },
                files,
                all: None,
                accepts_unknown: false,
                previous_globs: &[],
                folders: BTreeMap::new(),
            }
            .find_watched()?
            .globs;
            let is_touched = query.changed.iter().any(|path| (query.matches)(&was, path));
            (before != query.now || is_touched, was)
        }
    };
    let folders = BTreeMap::new();
    AcceptedView { query, files, all: None, accepts_unknown, previous_globs: &known, folders }.find_watched()
}

/// The files as a person has accepted them.
struct AcceptedView<'a, F> {
    query: &'a WatchQuery<'a>,
    files: &'a mut F,
    all: Option<GuardDefinition>,
    /// Whether files about which nothing is known count as accepted, because a person has decided what is watched.
    accepts_unknown: bool,
    /// What was watched before: a file in it that was not accepted then is not accepted now.
    previous_globs: &'a [String],
    /// The folders that were asked about, and whether each is a submodule.
    folders: BTreeMap<String, bool>,
}

impl<F: CommitFiles> AcceptedView<'_, F> {
    fn find_watched(mut self) -> Result<WatchedFiles, F::Error> {
        let WatchConfig { command, configured, accepted: kept } = self.query.now;
        let ReachedFiles { files: mut candidates, optional_globs: beside, mut missing, unknown } =
            reached_files::find_reached_files(command, &mut self)?;
        let is_absence_accepted = !beside.is_empty();
        let mut globs: Vec<String> = beside.into_iter().chain(configured.unwrap_or_default().iter().cloned()).collect();
        let is_named = |path: &&String| (self.query.matches)(&globs, path);
        candidates.extend(self.query.changed.iter().filter(is_named).cloned());
        if self.accepts_unknown {
            candidates.extend(kept.keys().filter(is_named).cloned());
            candidates.extend(self.accepted_forms()?.keys().filter(is_named).cloned());
        } else {
            candidates.extend(kept.keys().cloned());
        }
        let mut accepted = GuardDefinition::new();
        for path in candidates {
            if let Some(form) = self.accepted_form(&path)? {
                accepted.insert(path, form);
            }
        }
        let rooted = |path: &String| format!("/{}", escape_glob(path));
        // The configuration has the last word on a path: it may exclude what the command reaches.
        globs.splice(0..0, accepted.keys().map(rooted));
        accepted.retain(|path, _| (self.query.matches)(&globs, path));
        if !missing.is_empty() {
            let watched = Patterns::new(globs.iter().cloned());
            let with_missing = Patterns::new(missing.iter().map(rooted).chain(globs.iter().cloned()));
            missing.retain(|path| is_definition_path(path, &with_missing) && !is_definition_path(path, &watched));
        }
        let is_empty = accepted.is_empty() && !self.folders.values().any(|is_submodule| *is_submodule);
        self.add_rules(&mut accepted, &mut globs)?;
        let checks = self.collect_checks(&accepted)?;
        let is_elsewhere = command.first().is_some_and(|program| program.starts_with('/'));
        let is_out_of_reach = is_elsewhere && tools::mentioned_tools(&command.join(" ")).next().is_none();
        let is_blind = is_empty && !is_out_of_reach && configured.is_none_or(|globs| !globs.is_empty());
        let unknown = unknown.into_iter().filter(|_| configured.is_none()).collect();
        Ok(WatchedFiles { globs, accepted, missing, is_absence_accepted, is_blind, unknown, checks })
    }

    /// Adds git's own rules on the path to each watched file, because they affect how files are checked out for the
    /// guard.
    fn add_rules(&mut self, accepted: &mut GuardDefinition, globs: &mut Vec<String>) -> Result<(), F::Error> {
        let rules: BTreeSet<String> = accepted.keys().flat_map(|path| git_rules::rules_files_for(path)).collect();
        globs.splice(0..0, rules.iter().map(|path| format!("/{}", escape_glob(path))));
        for path in rules.into_iter().filter(|path| (self.query.matches)(globs, path)) {
            if let Some(form) = self.accepted_form(&path)? {
                accepted.insert(path, form);
            }
        }
        Ok(())
    }

    fn accepted_form(&mut self, path: &str) -> Result<Option<String>, F::Error> {
        if self.query.changed.contains(path) {
            return self.files.form_at(path);
        }
        match self.query.now.accepted.get(path) {
            Some(form) => Ok(Some(form.clone())),
            None if self.accepts_unknown && !(self.query.matches)(self.previous_globs, path) => {
                self.files.form_at(path)
            }
            None => Ok(None),
        }
    }

    fn accepted_forms(&mut self) -> Result<&GuardDefinition, F::Error> {
        let all = match self.all.take() {
            Some(all) => all,
            None => self.files.all_forms()?,
        };
        Ok(self.all.insert(all))
    }

    /// Returns the paths that satisfy the predicate and that may be accepted.
    fn matching_paths(&mut self, is_asked: impl Fn(&str) -> bool) -> Result<Vec<String>, F::Error> {
        let known = self.query.now.accepted.keys().chain(self.query.changed).filter(|path| is_asked(path)).cloned();
        let mut paths: BTreeSet<String> = known.collect();
        if self.accepts_unknown {
            paths.extend(self.accepted_forms()?.keys().filter(|path| is_asked(path)).cloned());
        }
        Ok(paths.into_iter().collect())
    }

    /// Returns what manifests and git's own rules say, both as accepted and as they are now.
    fn collect_checks(&mut self, accepted: &GuardDefinition) -> Result<CheckDigests, F::Error> {
        let rules = accepted.keys().flat_map(|path| git_rules::rules_files_for(path));
        let paths: BTreeSet<String> =
            accepted.keys().filter(|path| is_compared_by_content(path)).cloned().chain(rules).collect();
        let mut checks = CheckDigests::default();
        for path in paths {
            let forms = [accepted.get(&path).cloned(), self.files.form_at(&path)?];
            for form in forms.into_iter().flatten().filter(|form| !form.contains(':')) {
                checks.add(&path, &form, &self.files.read_content(&form)?);
            }
        }
        Ok(checks)
    }
}

impl<F: CommitFiles> AcceptedFiles for AcceptedView<'_, F> {
    type Error = F::Error;

    fn read_file(&mut self, path: &str) -> Result<Option<AcceptedFile>, F::Error> {
        let Some(form) = self.accepted_form(path)? else { return Ok(None) };
        let bytes = self.files.read_content(&form)?;
        let is_link = form.starts_with("120000:");
        Ok(Some(if is_link {
            AcceptedFile::Link(String::from_utf8_lossy(&bytes).into_owned())
        } else {
            AcceptedFile::Content(bytes)
        }))
    }

    fn submodule_above(&mut self, path: &str) -> Result<Option<String>, F::Error> {
        for (at, _) in path.match_indices('/') {
            let folder = &path[..at];
            let is_submodule = match self.folders.get(folder) {
                Some(known) => *known,
                None => self.files.is_submodule(folder)?,
            };
            self.folders.insert(folder.to_owned(), is_submodule);
            if is_submodule {
                return Ok(Some(folder.to_owned()));
            }
        }
        Ok(None)
    }

    fn find_named(&mut self, name: &str) -> Result<Vec<String>, F::Error> {
        self.matching_paths(|path| path.rsplit('/').next() == Some(name))
    }

    fn find_matching(&mut self, glob: &str) -> Result<Vec<String>, F::Error> {
        let globs = [glob.to_owned()];
        let matches = self.query.matches;
        self.matching_paths(|path| matches(&globs, path))
    }
}
