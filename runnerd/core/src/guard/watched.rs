//! Which files are watched for the guard, and which of them a person has accepted, at the commit at which a session
//! begins.
//!
//! A function of two commits, the runner's last and the one at which the session begins: what differs between them a person
//! has made. What the command reaches is told from accepted files alone, so that nothing that a session has left decides
//! what is watched. How commits are read is the caller's.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::Definition;
use super::git;
use super::manifest;
use super::paths::escaped;
use super::reach::{self, Accepted, File, Reached};
use super::tools;

/// What is asked of the commit at which a session begins.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What is set there.
    pub now: Set<'a>,
    /// What was set at the runner's last commit; none where a run begins.
    pub before: Option<Set<'a>>,
    /// The paths that people have changed since then.
    pub changed: &'a BTreeSet<String>,
    /// Tells whether a path is one that these globs name.
    pub matches: Matches,
}

/// Tells whether a path is one that some globs name.
pub type Matches = fn(&[String], &str) -> bool;

/// What decides what is watched at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// The guard's command.
    pub command: &'a [String],
    /// The globs of the configuration; none where it has no list.
    pub configured: Option<&'a [String]>,
    /// What the run state has kept as accepted.
    pub kept: &'a Definition,
}

/// The files of the commit at which a session begins.
pub trait Files {
    /// Why they cannot be read.
    type Error;

    /// Returns the form of the file at a path.
    fn form(&mut self, path: &str) -> Result<Option<String>, Self::Error>;

    /// Returns the forms of all files.
    fn all(&mut self) -> Result<Definition, Self::Error>;

    /// Returns what a file of this form holds.
    fn content(&mut self, form: &str) -> Result<Vec<u8>, Self::Error>;
}

/// What is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// It, as globs.
    pub globs: Vec<String>,
    /// What was accepted of it.
    pub accepted: Definition,
    /// Whether it says something that a file is not there.
    pub is_absence_accepted: bool,
    /// Whether nothing is watched of a guard that may read files of the repository: a program at a path of its own, of which
    /// nothing is known, is out of a session's reach, and a list without an entry says that there is none.
    pub is_blind: bool,
    /// Commands that run files of which nobody can tell which these are, as `FILE: COMMAND`; none where the configuration
    /// has a list, which names them or says that there are none.
    pub unknown: Vec<String>,
    /// What the manifests among it say of checks, and git's own rules of watched files.
    pub checks: Checks,
}

/// Tells whether a file is told from another by what it says, and not by its bytes alone.
pub fn is_told_by_content(path: &str) -> bool {
    manifest::is_manifest(path) || git::is_rules(path)
}

/// What manifests say of checks, and git's own rules of files: a digest, or the lines, by the id of each blob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks(BTreeMap<String, String>);

impl Checks {
    /// Adds a file, where it is one of these.
    pub fn add(&mut self, path: &str, form: &str, bytes: &[u8]) {
        let rules = || git::is_rules(path).then(|| git::said(bytes));
        if let Some(said) = manifest::checks(path, bytes).or_else(rules) {
            self.0.insert(form.to_owned(), said);
        }
    }

    /// Adds what others say.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    /// Returns these files with the accepted form wherever one says the same of checks, or of watched files, as the accepted
    /// one.
    #[must_use]
    pub fn settle(&self, accepted: &Definition, mut standing: Definition, matches: Matches) -> Definition {
        for (path, form) in standing.iter_mut().filter(|(path, _)| manifest::is_manifest(path)) {
            let is_same = |other: &&String| self.0.contains_key(*other) && self.0.get(*other) == self.0.get(form);
            if let Some(other) = accepted.get(path).filter(is_same) {
                form.clone_from(other);
            }
        }
        let rules: BTreeSet<String> = [accepted, &standing].into_iter().flat_map(BTreeMap::keys).cloned().collect();
        for path in rules.into_iter().filter(|path| git::is_rules(path)) {
            // One that is not there says nothing.
            let said = |form: Option<&String>| form.map_or(Some(""), |form| self.0.get(form).map(String::as_str));
            let both = said(accepted.get(&path)).zip(said(standing.get(&path)));
            if both.is_some_and(|both| git::say_the_same(&path, both, (accepted, matches))) {
                match accepted.get(&path) {
                    Some(form) => drop(standing.insert(path, form.clone())),
                    None => drop(standing.remove(&path)),
                }
            }
        }
        standing
    }
}

/// Tells what is watched.
pub fn watched<F: Files>(asked: &Asked<'_>, files: &mut F) -> Result<Watched, F::Error> {
    let (afresh, known) = match asked.before {
        None => (true, Vec::new()),
        Some(before) => {
            let changed = BTreeSet::new();
            let was = View {
                asked: &Asked { now: before, changed: &changed, ..*asked },
                files,
                all: None,
                afresh: false,
                known: &[],
            }
            .watched()?
            .globs;
            let is_touched = asked.changed.iter().any(|path| (asked.matches)(&was, path));
            (before != asked.now || is_touched, was)
        }
    };
    View { asked, files, all: None, afresh, known: &known }.watched()
}

/// The files as a person has accepted them.
struct View<'a, F> {
    asked: &'a Asked<'a>,
    files: &'a mut F,
    all: Option<Definition>,
    /// Whether what stands there is accepted where nothing is known of it: a person has said what is to be watched.
    afresh: bool,
    /// What was watched before: what stands there and was not accepted then is not accepted now.
    known: &'a [String],
}

impl<F: Files> View<'_, F> {
    fn watched(mut self) -> Result<Watched, F::Error> {
        let Set { command, configured, kept } = self.asked.now;
        let Reached { files: mut candidates, beside, unknown } = reach::reach(command, &mut self)?;
        let is_absence_accepted = !beside.is_empty();
        let mut globs: Vec<String> = beside.into_iter().chain(configured.unwrap_or_default().iter().cloned()).collect();
        let is_named = |path: &&String| (self.asked.matches)(&globs, path);
        candidates.extend(self.asked.changed.iter().filter(is_named).cloned());
        if self.afresh {
            candidates.extend(kept.keys().filter(is_named).cloned());
            candidates.extend(self.all()?.keys().filter(is_named).cloned());
        } else {
            candidates.extend(kept.keys().cloned());
        }
        let mut accepted = Definition::new();
        for path in candidates {
            if let Some(form) = self.form(&path)? {
                accepted.insert(path, form);
            }
        }
        // What the configuration says of a path counts last: it may take out what the command reaches.
        globs.splice(0..0, accepted.keys().map(|path| format!("/{}", escaped(path))));
        accepted.retain(|path, _| (self.asked.matches)(&globs, path));
        let is_empty = accepted.is_empty();
        self.add_rules(&mut accepted, &mut globs)?;
        let checks = self.checks(&accepted)?;
        let is_elsewhere = command.first().is_some_and(|program| program.starts_with('/'));
        let is_out_of_reach = is_elsewhere && tools::named(&command.join(" ")).next().is_none();
        let is_blind = is_empty && !is_out_of_reach && configured.is_none_or(|globs| !globs.is_empty());
        let unknown = unknown.into_iter().filter(|_| configured.is_none()).collect();
        Ok(Watched { globs, accepted, is_absence_accepted, is_blind, unknown, checks })
    }

    /// Adds git's own rules on the way to what is watched: what is laid out for the guard follows from them.
    fn add_rules(&mut self, accepted: &mut Definition, globs: &mut Vec<String>) -> Result<(), F::Error> {
        let rules: BTreeSet<String> = accepted.keys().flat_map(|path| git::on_the_way(path)).collect();
        globs.splice(0..0, rules.iter().map(|path| format!("/{}", escaped(path))));
        for path in rules.into_iter().filter(|path| (self.asked.matches)(globs, path)) {
            if let Some(form) = self.form(&path)? {
                accepted.insert(path, form);
            }
        }
        Ok(())
    }

    fn form(&mut self, path: &str) -> Result<Option<String>, F::Error> {
        if self.asked.changed.contains(path) {
            return self.files.form(path);
        }
        match self.asked.now.kept.get(path) {
            Some(form) => Ok(Some(form.clone())),
            None if self.afresh && !(self.asked.matches)(self.known, path) => self.files.form(path),
            None => Ok(None),
        }
    }

    fn all(&mut self) -> Result<&Definition, F::Error> {
        let all = match self.all.take() {
            Some(all) => all,
            None => self.files.all()?,
        };
        Ok(self.all.insert(all))
    }

    /// Returns the paths of which this is true, where one can be accepted.
    fn paths(&mut self, is_asked: impl Fn(&str) -> bool) -> Result<Vec<String>, F::Error> {
        let known = self.asked.now.kept.keys().chain(self.asked.changed).filter(|path| is_asked(path)).cloned();
        let mut paths: BTreeSet<String> = known.collect();
        if self.afresh {
            paths.extend(self.all()?.keys().filter(|path| is_asked(path)).cloned());
        }
        Ok(paths.into_iter().collect())
    }

    /// Returns what manifests and git's own rules say, as they are accepted and as they are.
    fn checks(&mut self, accepted: &Definition) -> Result<Checks, F::Error> {
        let rules = accepted.keys().flat_map(|path| git::on_the_way(path));
        let paths: BTreeSet<String> =
            accepted.keys().filter(|path| is_told_by_content(path)).cloned().chain(rules).collect();
        let mut checks = Checks::default();
        for path in paths {
            let forms = [accepted.get(&path).cloned(), self.files.form(&path)?];
            for form in forms.into_iter().flatten().filter(|form| !form.contains(':')) {
                checks.add(&path, &form, &self.files.content(&form)?);
            }
        }
        Ok(checks)
    }
}

impl<F: Files> Accepted for View<'_, F> {
    type Error = F::Error;

    fn file(&mut self, path: &str) -> Result<Option<File>, F::Error> {
        let Some(form) = self.form(path)? else { return Ok(None) };
        let bytes = self.files.content(&form)?;
        let is_link = form.starts_with("120000:");
        Ok(Some(if is_link { File::Link(String::from_utf8_lossy(&bytes).into_owned()) } else { File::Content(bytes) }))
    }

    fn named(&mut self, name: &str) -> Result<Vec<String>, F::Error> {
        self.paths(|path| path.rsplit('/').next() == Some(name))
    }

    fn matched(&mut self, glob: &str) -> Result<Vec<String>, F::Error> {
        let (globs, matches) = ([glob.to_owned()], self.asked.matches);
        self.paths(|path| matches(&globs, path))
    }
}
