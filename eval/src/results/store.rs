//! The folder of results: `<case>/<result>/`, one per run, written once and then left alone.
//!
//! A harness locks a result while writing it. A result without `meta.json` and without lock was lost: it counts as an
//! error, and the next harness records that in it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ChecksFile, ResultMeta, StartedFile};
use crate::case::find::suggest_word;
use crate::error::EvalError;
use crate::outcome::Outcome;

const META: &str = "meta.json";
const CHECKS: &str = "checks.json";
const STARTED: &str = "started.json";
const LOCK: &str = "lock";
/// Symbolic link to the lab while a run is active.
const LAB: &str = "lab";
const LATEST: &str = "_latest";
const LOST: &str = "the harness died before the run was over";

/// The folder of results.
#[derive(Debug, Clone)]
pub(crate) struct ResultStore {
    folder: PathBuf,
}

/// The folder of a result that is being written.
#[derive(Debug)]
pub(crate) struct ResultSlot {
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
    _lock: File,
}

/// A finished result.
#[derive(Debug, Clone)]
pub(crate) struct ResultEntry {
    pub(crate) meta: ResultMeta,
    pub(crate) checks: Option<ChecksFile>,
}

impl ResultStore {
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Creates the folder of a new result, with a name that no other harness uses.
    pub(crate) fn begin(&self, case: &str) -> Result<ResultSlot, EvalError> {
        let parent = self.folder.join(case);
        fs::create_dir_all(&parent).map_err(|error| EvalError::file("making the folder", &parent, &error))?;
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ-").to_string();
        let made = tempfile::Builder::new().prefix(&time).rand_bytes(6).tempdir_in(&parent);
        let folder = made.map_err(|error| EvalError::file("making a folder in", &parent, &error))?.keep();
        let failed = |error: io::Error| EvalError::file("locking", &folder, &error);
        let lock = File::create(folder.join(LOCK)).map_err(failed)?;
        // Another harness searching for lost results may hold the lock for a moment.
        lock.lock().map_err(failed)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.point_latest(case, &name)?;
        Ok(ResultSlot { folder, name, _lock: lock })
    }

    /// Points `latest` at a result. Two harnesses may do this at once; the link always points at one of their results.
    fn point_latest(&self, case: &str, name: &str) -> Result<(), EvalError> {
        let link = self.latest(case);
        let new = self.folder.join(case).join(name).join("latest");
        let target = Path::new(case).join(name);
        let made = symlink(target, &new).and_then(|()| fs::rename(&new, &link));
        made.map_err(|error| EvalError::file("making the link", &link, &error))
    }

    /// Returns the path of the link to the case's most recently started result.
    pub(crate) fn latest(&self, case: &str) -> PathBuf {
        self.folder.join(format!("{case}{LATEST}"))
    }

    /// Returns the ids of cases that have results.
    pub(crate) fn cases(&self) -> Result<Vec<String>, EvalError> {
        let mut cases: Vec<String> = folders(&self.folder)?
            .into_iter()
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect();
        cases.retain(|case| crate::case::is_id(case));
        Ok(cases)
    }

    /// Reads the finished results of a case, oldest first; those being written are omitted.
    pub(crate) fn read(&self, case: &str) -> Result<Vec<ResultEntry>, EvalError> {
        let folders = folders(&self.folder.join(case))?;
        folders.iter().filter_map(|folder| read_entry(folder).transpose()).collect()
    }

    /// Reads the results of the given cases, or of all cases if none is given.
    pub(crate) fn read_cases(&self, named: &[String]) -> Result<Vec<ResultEntry>, EvalError> {
        let known = self.cases()?;
        if let Some(unknown) = named.iter().find(|case| !known.contains(case)) {
            return Err(self.unknown(unknown, &known));
        }
        let wanted = if named.is_empty() { &known } else { named };
        let mut found = Vec::new();
        for case in wanted {
            found.append(&mut self.read(case)?);
        }
        Ok(found)
    }

    fn unknown(&self, case: &str, known: &[String]) -> EvalError {
        let meant = suggest_word(case, known);
        let message = format!("there are no results of `{case}` in {}{meant}", self.folder.display());
        EvalError::usage(message).hint("runner-eval list")
    }

    /// Records lost results as errors.
    pub(crate) fn bury_lost(&self) -> Result<(), EvalError> {
        for case in self.cases()? {
            for folder in folders(&self.folder.join(case))?.iter().filter(|folder| !folder.join(META).exists()) {
                // Held until the end of this iteration, so that other harnesses leave the result alone.
                let Some(_lock) = lock_of_dead(folder)? else { continue };
                if folder.join(META).exists() {
                    continue;
                }
                let _ = fs::remove_file(folder.join(LAB));
                if let Ok(started) = read_json::<StartedFile>(&folder.join(STARTED)) {
                    write_json(&folder.join(META), &lost(&started, folder))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the results of exactly one case and returns how many there were.
    pub(crate) fn clean(&self, case: &str) -> Result<usize, EvalError> {
        let known = self.cases()?;
        if !known.iter().any(|there| there == case) {
            return Err(self.unknown(case, &known));
        }
        let folder = self.folder.join(case);
        let results = folders(&folder)?;
        let mut locks = Vec::new();
        for result in &results {
            match lock_of_dead(result)? {
                Some(lock) => locks.push(lock),
                None => {
                    return Err(EvalError::new(format!(
                        "{} is being written: a run of {case} goes on",
                        result.display()
                    )));
                }
            }
        }
        let link = self.latest(case);
        let removed = fs::remove_dir_all(&folder).and_then(|()| match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        removed.map_err(|error| EvalError::file("removing", &folder, &error))?;
        Ok(results.len())
    }
}

impl ResultSlot {
    /// Writes what is known when the run starts.
    pub(crate) fn start(&self, started: &StartedFile) -> Result<(), EvalError> {
        write_json(&self.folder.join(STARTED), started)
    }

    /// Links to the lab while it exists.
    pub(crate) fn show_lab(&self, lab: &Path) -> Result<(), EvalError> {
        let link = self.folder.join(LAB);
        symlink(lab, &link).map_err(|error| EvalError::file("making the link", &link, &error))
    }

    pub(crate) fn hide_lab(&self) {
        let _ = fs::remove_file(self.folder.join(LAB));
    }

    /// Writes the result; `meta.json` is written last, which makes the result valid.
    pub(crate) fn finish(&self, meta: &ResultMeta, checks: &ChecksFile) -> Result<(), EvalError> {
        write_json(&self.folder.join(CHECKS), checks)?;
        write_json(&self.folder.join(META), meta)
    }
}

fn read_entry(folder: &Path) -> Result<Option<ResultEntry>, EvalError> {
    if folder.join(META).exists() {
        let checks = folder.join(CHECKS);
        let checks = if checks.exists() { Some(read_json(&checks)?) } else { None };
        return Ok(Some(ResultEntry { meta: read_json(&folder.join(META))?, checks }));
    }
    // Between creating the folder and writing this file nothing has been run.
    let Ok(started) = read_json::<StartedFile>(&folder.join(STARTED)) else { return Ok(None) };
    let is_lost = lock_of_dead(folder)?.is_some();
    Ok(is_lost.then(|| ResultEntry { meta: lost(&started, folder), checks: None }))
}

/// Returns the metadata of a lost result. It ended some time after its last file was written; no more is known.
fn lost(started: &StartedFile, folder: &Path) -> ResultMeta {
    let written = fs::metadata(folder.join(STARTED)).and_then(|found| found.modified()).ok();
    let ended = written.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(started.started_at);
    let mut meta = ResultMeta::of(started, Outcome::Error, Some(LOST.into()), ended.max(started.started_at));
    meta.evidence.push(format!("process {} held the result and is gone", started.pid));
    meta
}

/// Takes the lock of a result that no harness holds.
fn lock_of_dead(folder: &Path) -> Result<Option<File>, EvalError> {
    let path = folder.join(LOCK);
    let failed = |error: &io::Error| EvalError::file("locking", &path, error);
    let lock = match File::options().append(true).open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => File::create(&path).map_err(|error| failed(&error))?,
        Err(error) => return Err(failed(&error)),
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(&error)),
    }
}

/// Returns the subfolders of a folder, sorted by name; empty if the folder is missing. Symbolic links are not followed.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, EvalError> {
    let failed = |error: io::Error| EvalError::file("reading the folder", folder, &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, EvalError> {
    let bytes = fs::read(path).map_err(|error| EvalError::file("reading", path, &error))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| EvalError::new(format!("reading {}", path.display())).caused_by(&error))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), EvalError> {
    let mut text = serde_json::to_string_pretty(value).expect("BUG: a result is plain data");
    text.push('\n');
    write_durably(path, text.as_bytes())
}

/// Writes a file atomically and durably.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), EvalError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    });
    written.map_err(|error| EvalError::file("writing", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Digests, Versions};

    fn started(case: &str, slot: &ResultSlot) -> StartedFile {
        StartedFile {
            schema: "runner/eval-started.v1".into(),
            case: case.into(),
            result: slot.name.clone(),
            expected: Outcome::Success,
            label: None,
            started_at: Timestamp::now(),
            executor: "script".into(),
            model: None,
            versions: Versions::default(),
            digests: Digests::default(),
            pid: 1,
        }
    }

    fn store() -> (tempfile::TempDir, ResultStore) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ResultStore::at(folder.path());
        (folder, store)
    }

    fn finished(store: &ResultStore, case: &str) {
        let slot = store.begin(case).expect("begins");
        let started = started(case, &slot);
        slot.start(&started).expect("starts");
        let meta = ResultMeta::of(&started, Outcome::Success, None, Timestamp::now());
        slot.finish(&meta, &ChecksFile { schema: String::new(), checks: Vec::new() }).expect("finishes");
    }

    #[test]
    fn exactly_one_case_is_cleaned() {
        let (_folder, store) = store();
        for case in ["foo", "foobar", "foo-bar"] {
            finished(&store, case);
        }
        assert_eq!(store.clean("foo").expect("cleans"), 1);
        assert_eq!(store.cases().expect("reads"), ["foo-bar", "foobar"]);
        assert!(store.latest("foobar").exists() && !store.latest("foo").exists());
        assert!(store.clean("foo").is_err());
    }

    #[test]
    fn a_result_whose_harness_died_counts_as_an_error_and_is_written_down_once() {
        let (_folder, store) = store();
        let slot = store.begin("a").expect("begins");
        slot.start(&started("a", &slot)).expect("starts");
        assert!(store.read("a").expect("reads").is_empty(), "it is being written");
        assert!(store.clean("a").is_err(), "it is being written");
        drop(slot);
        assert_eq!(store.read("a").expect("reads")[0].meta.reason.as_deref(), Some(LOST));
        store.bury_lost().expect("buries");
        let written = store.read("a").expect("reads");
        assert_eq!((written.len(), written[0].meta.outcome), (1, Outcome::Error));
    }

    #[test]
    fn the_link_leads_to_the_last_result_that_was_begun() {
        let (_folder, store) = store();
        finished(&store, "a");
        let slot = store.begin("a").expect("begins");
        let target = store.latest("a").canonicalize().expect("leads somewhere");
        assert_eq!(target, slot.folder.canonicalize().expect("a path"));
    }
}
