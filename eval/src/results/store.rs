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
const LOCK_NAME: &str = "lock";
/// Symbolic link to the sandbox while a run is active.
const SANDBOX_LINK: &str = "sandbox";
const LATEST_SUFFIX: &str = "_latest";
const LOST_REASON: &str = "the harness died before the run was over";

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
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Creates the folder of a new result, with a name that no other harness uses.
    pub(crate) fn create_slot(&self, case: &str) -> Result<ResultSlot, EvalError> {
        let parent = self.folder.join(case);
        fs::create_dir_all(&parent).map_err(|error| EvalError::file("making the directory", &parent, &error))?;
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ-").to_string();
        let created = tempfile::Builder::new().prefix(&time).rand_bytes(6).tempdir_in(&parent);
        let folder = created.map_err(|error| EvalError::file("making a directory in", &parent, &error))?.keep();
        let failed = |error: io::Error| EvalError::file("locking", &folder, &error);
        let lock = File::create(folder.join(LOCK_NAME)).map_err(failed)?;
        // Another harness searching for lost results may hold the lock for a moment.
        lock.lock().map_err(failed)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.point_latest(case, &name)?;
        Ok(ResultSlot { folder, name, _lock: lock })
    }

    /// Points `latest` at a result. Two harnesses may do this at once; the link always points at one of their results.
    fn point_latest(&self, case: &str, name: &str) -> Result<(), EvalError> {
        let link = self.latest_link(case);
        let new = self.folder.join(case).join(name).join("latest");
        let target = Path::new(case).join(name);
        let linked = symlink(target, &new).and_then(|()| fs::rename(&new, &link));
        linked.map_err(|error| EvalError::file("making the link", &link, &error))
    }

    /// Returns the path of the link to the case's most recently started result.
    pub(crate) fn latest_link(&self, case: &str) -> PathBuf {
        self.folder.join(format!("{case}{LATEST_SUFFIX}"))
    }

    /// Returns the ids of cases that have results.
    pub(crate) fn list_cases(&self) -> Result<Vec<String>, EvalError> {
        let mut cases: Vec<String> = list_folders(&self.folder)?
            .into_iter()
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect();
        cases.retain(|case| crate::case::is_id(case));
        Ok(cases)
    }

    /// Reads the finished results of a case, oldest first; those being written are omitted.
    pub(crate) fn read_results(&self, case: &str) -> Result<Vec<ResultEntry>, EvalError> {
        let folders = list_folders(&self.folder.join(case))?;
        folders.iter().filter_map(|folder| read_entry(folder).transpose()).collect()
    }

    /// Reads the results of the given cases, or of all cases if none is given.
    pub(crate) fn read_cases(&self, named: &[String]) -> Result<Vec<ResultEntry>, EvalError> {
        let known = self.list_cases()?;
        if let Some(unknown) = named.iter().find(|case| !known.contains(case)) {
            return Err(self.unknown_case(unknown, &known));
        }
        let selected = if named.is_empty() { &known } else { named };
        let mut found = Vec::new();
        for case in selected {
            found.append(&mut self.read_results(case)?);
        }
        Ok(found)
    }

    fn unknown_case(&self, case: &str, known: &[String]) -> EvalError {
        let suggestion = suggest_word(case, known);
        let message = format!("there are no results of `{case}` in {}{suggestion}", self.folder.display());
        EvalError::usage(message).hint("runner-eval list")
    }

    /// Records lost results as errors.
    pub(crate) fn record_lost(&self) -> Result<(), EvalError> {
        for case in self.list_cases()? {
            for folder in list_folders(&self.folder.join(case))?.iter().filter(|folder| !folder.join(META).exists()) {
                // Held until the end of this iteration, so that other harnesses leave the result alone.
                let Some(_lock) = try_lock_dead(folder)? else { continue };
                if folder.join(META).exists() {
                    continue;
                }
                let _ = fs::remove_file(folder.join(SANDBOX_LINK));
                if let Ok(started) = read_json::<StartedFile>(&folder.join(STARTED)) {
                    write_json(&folder.join(META), &lost_meta(&started, folder))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the results of exactly one case and returns how many there were.
    pub(crate) fn remove_case(&self, case: &str) -> Result<usize, EvalError> {
        let known = self.list_cases()?;
        if !known.iter().any(|id| id == case) {
            return Err(self.unknown_case(case, &known));
        }
        let folder = self.folder.join(case);
        let results = list_folders(&folder)?;
        let mut locks = Vec::new();
        for result in &results {
            match try_lock_dead(result)? {
                Some(lock) => locks.push(lock),
                None => {
                    return Err(EvalError::new(format!(
                        "{} is being written: a run of {case} is under way",
                        result.display()
                    )));
                }
            }
        }
        let link = self.latest_link(case);
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
    pub(crate) fn write_started(&self, started: &StartedFile) -> Result<(), EvalError> {
        write_json(&self.folder.join(STARTED), started)
    }

    /// Links to the sandbox while it exists.
    pub(crate) fn link_sandbox(&self, sandbox: &Path) -> Result<(), EvalError> {
        let link = self.folder.join(SANDBOX_LINK);
        symlink(sandbox, &link).map_err(|error| EvalError::file("making the link", &link, &error))
    }

    pub(crate) fn unlink_sandbox(&self) {
        let _ = fs::remove_file(self.folder.join(SANDBOX_LINK));
    }

    /// Writes the result; `meta.json` is written last, which makes the result valid.
    pub(crate) fn write_result(&self, meta: &ResultMeta, checks: &ChecksFile) -> Result<(), EvalError> {
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
    let is_lost = try_lock_dead(folder)?.is_some();
    Ok(is_lost.then(|| ResultEntry { meta: lost_meta(&started, folder), checks: None }))
}

/// Returns the metadata of a lost result. It ended some time after its last file was written; no more is known.
fn lost_meta(started: &StartedFile, folder: &Path) -> ResultMeta {
    let modified = fs::metadata(folder.join(STARTED)).and_then(|found| found.modified()).ok();
    let ended = modified.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(started.started_at);
    let mut meta =
        ResultMeta::from_started(started, Outcome::Error, Some(LOST_REASON.into()), ended.max(started.started_at));
    meta.evidence.push(format!("process {} held the result and is gone", started.pid));
    meta
}

/// Takes the lock of a result that no harness holds.
fn try_lock_dead(folder: &Path) -> Result<Option<File>, EvalError> {
    let path = folder.join(LOCK_NAME);
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
fn list_folders(folder: &Path) -> Result<Vec<PathBuf>, EvalError> {
    let read_error = |error: io::Error| EvalError::file("reading the directory", folder, &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(read_error)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(read_error)?;
        if entry.file_type().map_err(read_error)?.is_dir() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
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

    fn started_file(case: &str, slot: &ResultSlot) -> StartedFile {
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

    fn test_store() -> (tempfile::TempDir, ResultStore) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ResultStore::new(folder.path());
        (folder, store)
    }

    fn write_finished(store: &ResultStore, case: &str) {
        let slot = store.create_slot(case).expect("begins");
        let started = started_file(case, &slot);
        slot.write_started(&started).expect("starts");
        let meta = ResultMeta::from_started(&started, Outcome::Success, None, Timestamp::now());
        slot.write_result(&meta, &ChecksFile { schema: String::new(), checks: Vec::new() }).expect("finishes");
    }

    #[test]
    fn exactly_one_case_is_cleaned() {
        let (_folder, store) = test_store();
        for case in ["foo", "foobar", "foo-bar"] {
            write_finished(&store, case);
        }
        assert_eq!(store.remove_case("foo").expect("cleans"), 1);
        assert_eq!(store.list_cases().expect("reads"), ["foo-bar", "foobar"]);
        assert!(store.latest_link("foobar").exists() && !store.latest_link("foo").exists());
        assert!(store.remove_case("foo").is_err());
    }

    #[test]
    fn a_result_whose_harness_died_counts_as_an_error_and_is_written_down_once() {
        let (_folder, store) = test_store();
        let slot = store.create_slot("a").expect("begins");
        slot.write_started(&started_file("a", &slot)).expect("starts");
        assert!(store.read_results("a").expect("reads").is_empty(), "it is being written");
        assert!(store.remove_case("a").is_err(), "it is being written");
        drop(slot);
        assert_eq!(store.read_results("a").expect("reads")[0].meta.reason.as_deref(), Some(LOST_REASON));
        store.record_lost().expect("buries");
        let written = store.read_results("a").expect("reads");
        assert_eq!((written.len(), written[0].meta.outcome), (1, Outcome::Error));
    }

    #[test]
    fn the_link_leads_to_the_last_result_that_was_begun() {
        let (_folder, store) = test_store();
        write_finished(&store, "a");
        let slot = store.create_slot("a").expect("begins");
        let target = store.latest_link("a").canonicalize().expect("leads somewhere");
        assert_eq!(target, slot.folder.canonicalize().expect("a path"));
    }
}
