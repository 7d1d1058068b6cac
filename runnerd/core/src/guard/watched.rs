//! Which files are watched for the guard, and which of them a person has accepted, at the commit at which a session
//! begins.
//!
//! A function of two commits, the runner's last and the one at which the session begins: what differs between them a person
//! has made. What the command reaches is told from accepted files alone, so that nothing that a session has left decides
//! what is watched. How commits are read is the caller's.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::GuardDefinition;
use super::git;
use super::manifest;
use super::paths::escape_glob;
use super::reach::{self, AcceptedFiles, AcceptedFile, ReachedFiles};
use super::tools;

/// What is asked of the commit at which a session begins.
#[derive(Debug, Clone, Copy)]
pub struct WatchQuery<'a> {
    /// What is set there.
    pub now: WatchConfig<'a>,
    /// What was set at the runner's last commit; none where a run begins.
    pub before: Option<WatchConfig<'a>>,
    /// The paths that people have changed since then.
    pub changed: &'a BTreeSet<String>,
    /// Tells whether a path is one that these globs name.
    pub matches: GlobMatcher,
}

/// Tells whether a path is one that some globs name.
pub type GlobMatcher = fn(&[String], &str) -> bool;

/// What decides what is watched at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchConfig<'a> {
    /// The guard's command.
    pub command: &'a [String],
    /// The globs of the configuration; none where it has no list.
    pub configured: Option<&'a [String]>,
    /// What the run state has kept as accepted.
    pub accepted: &'a GuardDefinition,
}

/// The files of the commit at which a session begins.
pub trait CommitFiles {
    /// Why they cannot be read.
    type Error;

    /// Returns the form of the file at a path.
    fn form_at(&mut self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Returns the forms of all files.
    fn all_forms(&mut self) -> Result<GuardDefinition, Self::Error>;

    /// Returns what a file of this form holds.
    fn read_content(&mut self, form: &str) -> Result<Vec<u8>, Self::Error>;
}

/// What is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedFiles {
    /// It, as globs.
    pub globs: Vec<String>,
    /// What was accepted of it.
    pub accepted: GuardDefinition,
    /// Whether it says something that a file is not there.
    pub is_absence_accepted: bool,
    /// Whether nothing is watched of a guard that may read files of the repository: a program at a path of its own, of which
    /// nothing is known, is out of a session's reach, and a list without an entry says that there is none.
    pub is_blind: bool,
    /// Commands that run files of which nobody can tell which these are, as `FILE: COMMAND`; none where the configuration
    /// has a list, which names them or says that there are none.
    pub unknown: Vec<String>,
    /// What the manifests among it say of checks, and git's own rules of watched files.
    pub checks: CheckDigests,
}

/// Tells whether a file is told from another by what it says, and not by its bytes alone.
pub fn is_compared_by_content(path: &str) -> bool {
    manifest::is_manifest(path) || git::is_rules_file(path)
}

/// What manifests say of checks, and git's own rules of files: a digest, or the lines, by the id of each blob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckDigests(BTreeMap<String, String>);

impl CheckDigests {
    /// Adds a file, where it is one of these.
    pub fn add(&mut self, path: &str, form: &str, bytes: &[u8]) {
        let rules = || git::is_rules_file(path).then(|| git::effective_lines(bytes));
        if let Some(checks) = manifest::checks_digest(path, bytes).or_else(rules) {
            self.0.insert(form.to_owned(), checks);
        }
    }

    /// Adds what others say.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    /// Returns these files with the accepted form wherever one says the same of checks, or of watched files, as the accepted
    /// one.
    #[must_use]
    pub fn normalize_forms(&self, accepted: &GuardDefinition, mut current: GuardDefinition, matches: GlobMatcher) -> GuardDefinition {
        for (path, form) in current.iter_mut().filter(|(path, _)| manifest::is_manifest(path)) {
            let is_same = |other: &&String| self.0.contains_key(*other) && self.0.get(*other) == self.0.get(form);
            if let Some(other) = accepted.get(path).filter(is_same) {
                form.clone_from(other);
            }
        }
        let rules: BTreeSet<String> = [accepted, &current].into_iter().flat_map(BTreeMap::keys).cloned().collect();
        for path in rules.into_iter().filter(|path| git::is_rules_file(path)) {
            // One that is not there says nothing.
            let checks = |form: Option<&String>| form.map_or(Some(""), |form| self.0.get(form).map(String::as_str));
            let both = checks(accepted.get(&path)).zip(checks(current.get(&path)));
            if both.is_some_and(|both| git::has_same_effect(&path, both, (accepted, matches))) {
                match accepted.get(&path) {
                    Some(form) => drop(current.insert(path, form.clone())),
                    None => drop(current.remove(&path)),
                }
            }
        }
        current
    }
}

/// Tells what is watched.
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
            }
            .find_watched()?
            .globs;
            let is_touched = query.changed.iter().any(|path| (query.matches)(&was, path));
            (before != query.now || is_touched, was)
        }
    };
    AcceptedView { query, files, all: None, accepts_unknown, previous_globs: &known }.find_watched()
}

/// The files as a person has accepted them.
struct AcceptedView<'a, F> {
    query: &'a WatchQuery<'a>,
    files: &'a mut F,
    all: Option<GuardDefinition>,
    /// Whether what stands there is accepted where nothing is known of it: a person has said what is to be watched.
    accepts_unknown: bool,
    /// What was watched before: what stands there and was not accepted then is not accepted now.
    previous_globs: &'a [String],
}

impl<F: CommitFiles> AcceptedView<'_, F> {
    fn find_watched(mut self) -> Result<WatchedFiles, F::Error> {
        let WatchConfig { command, configured, accepted: kept } = self.query.now;
        let ReachedFiles { files: mut candidates, optional_globs: beside, unknown } = reach::find_reached_files(command, &mut self)?;
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
        // What the configuration says of a path counts last: it may take out what the command reaches.
        globs.splice(0..0, accepted.keys().map(|path| format!("/{}", escape_glob(path))));
        accepted.retain(|path, _| (self.query.matches)(&globs, path));
        let is_empty = accepted.is_empty();
        self.add_rules(&mut accepted, &mut globs)?;
        let checks = self.collect_checks(&accepted)?;
        let is_elsewhere = command.first().is_some_and(|program| program.starts_with('/'));
        let is_out_of_reach = is_elsewhere && tools::mentioned_tools(&command.join(" ")).next().is_none();
        let is_blind = is_empty && !is_out_of_reach && configured.is_none_or(|globs| !globs.is_empty());
        let unknown = unknown.into_iter().filter(|_| configured.is_none()).collect();
        Ok(WatchedFiles { globs, accepted, is_absence_accepted, is_blind, unknown, checks })
    }

    /// Adds git's own rules on the way to what is watched: what is laid out for the guard follows from them.
    fn add_rules(&mut self, accepted: &mut GuardDefinition, globs: &mut Vec<String>) -> Result<(), F::Error> {
        let rules: BTreeSet<String> = accepted.keys().flat_map(|path| git::rules_files_for(path)).collect();
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
            None if self.accepts_unknown && !(self.query.matches)(self.previous_globs, path) => self.files.form_at(path),
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

    /// Returns the paths of which this is true, where one can be accepted.
    fn matching_paths(&mut self, is_asked: impl Fn(&str) -> bool) -> Result<Vec<String>, F::Error> {
        let known = self.query.now.accepted.keys().chain(self.query.changed).filter(|path| is_asked(path)).cloned();
        let mut paths: BTreeSet<String> = known.collect();
        if self.accepts_unknown {
            paths.extend(self.accepted_forms()?.keys().filter(|path| is_asked(path)).cloned());
        }
        Ok(paths.into_iter().collect())
    }

    /// Returns what manifests and git's own rules say, as they are accepted and as they are.
    fn collect_checks(&mut self, accepted: &GuardDefinition) -> Result<CheckDigests, F::Error> {
        let rules = accepted.keys().flat_map(|path| git::rules_files_for(path));
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
        Ok(Some(if is_link { AcceptedFile::Link(String::from_utf8_lossy(&bytes).into_owned()) } else { AcceptedFile::Content(bytes) }))
    }

    fn find_named(&mut self, name: &str) -> Result<Vec<String>, F::Error> {
        self.matching_paths(|path| path.rsplit('/').next() == Some(name))
    }

    fn find_matching(&mut self, glob: &str) -> Result<Vec<String>, F::Error> {
        let (globs, matches) = ([glob.to_owned()], self.query.matches);
        self.matching_paths(|path| matches(&globs, path))
    }
}
