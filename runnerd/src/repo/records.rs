//! The records of runs as files: measures, copies and removes them.
//!
//! The folder is writable by agents. No link is followed out of it, and anything but a regular file is left out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use runner_core::tree::ids::check_id;
use runner_os::dir_permissions;

use super::durable;
use super::layout::Layout;

/// Prefix of a folder that is being removed; no id begins with a dot.
const REMOVAL_PREFIX: &str = ".gc-";
/// Maximum folder depth in a record; real records have two levels.
const MAX_DEPTH: usize = 32;

/// An error, and the path it concerns.
#[derive(Debug, thiserror::Error)]
#[error("{doing} {path}")]
pub struct RecordsError {
    /// The operation, such as `removing`.
    pub doing: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordsError {
    move |source| RecordsError { doing, path: path.to_owned(), source }
}

/// The records of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecords {
    /// Id of the run.
    pub run: String,
    /// Names of the records of iterations and waits.
    pub records: Vec<String>,
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// When any of its files was last written.
    pub changed: SystemTime,
}

/// Result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Number of files.
    pub files: u64,
    /// Total size in bytes.
    pub bytes: u64,
    /// What was left out because it is not a regular file: links, pipes, sockets.
    pub skipped: Vec<PathBuf>,
}

/// The records folder of a work tree.
#[derive(Debug, Clone)]
pub struct RecordsDir {
    folder: PathBuf,
}

impl RecordsDir {
    /// Finds the folder; `None` if there is none, or if a link is in its way.
    pub fn find(layout: &Layout) -> Option<Self> {
        let folder = layout.path(Layout::ITERATIONS);
        (is_folder(&layout.folder()) && is_folder(&folder)).then_some(Self { folder })
    }

    /// Describes the records of every run, most recently written first.
    pub fn list_runs(&self) -> Result<Vec<RunRecords>, RecordsError> {
        let names = list_names(&self.folder)?.into_iter().filter(|name| check_id(name).is_ok());
        let mut runs: Vec<RunRecords> = names.filter_map(|run| self.describe_run(&run)).collect();
        runs.sort_by(|a, b| (b.changed, &b.run).cmp(&(a.changed, &a.run)));
        Ok(runs)
    }

    /// Describes the records of a run; `None` if there are none.
    pub fn describe_run(&self, run: &str) -> Option<RunRecords> {
        let folder = self.folder.join(run);
        if check_id(run).is_err() || !is_folder(&folder) {
            return None;
        }
        let records = self.list_records(run).ok()?;
        let mut summary = RunRecords { run: run.to_owned(), records, bytes: 0, changed: SystemTime::UNIX_EPOCH };
        let mut pending = vec![(folder, 0)];
        while let Some((path, depth)) = pending.pop() {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            summary.changed = summary.changed.max(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
            if metadata.is_file() {
                summary.bytes = summary.bytes.saturating_add(metadata.len());
            } else if metadata.is_dir() && depth < MAX_DEPTH {
                let names = list_names(&path).unwrap_or_default();
                pending.extend(names.iter().map(|name| (path.join(name), depth + 1)));
            }
        }
        Some(summary)
    }

    /// Lists the records of a run by name, without reading them; empty if it has no folder, or a link in its place.
    pub fn list_records(&self, run: &str) -> Result<Vec<String>, RecordsError> {
        let folder = self.folder.join(run);
        if check_id(run).is_err() || !is_folder(&folder) {
            return Ok(Vec::new());
        }
        let mut names = list_names(&folder)?;
        names.retain(|name| is_folder(&folder.join(name)));
        Ok(names)
    }

    /// Copies the record `name` of a run to `to`, which is created or must be empty; without a name, copies the files
    /// that belong to the run as a whole.
    pub fn copy_record(&self, run: &str, name: Option<&str>, to: &Path) -> Result<CopyReport, RecordsError> {
        let from = name.map_or(self.folder.join(run), |name| self.folder.join(run).join(name));
        create_empty_folder(to)?;
        let mut copied = CopyReport::default();
        copy_folder(&from, to, if name.is_some() { MAX_DEPTH } else { 0 }, &mut copied)?;
        Ok(copied)
    }

    /// Moves the records of a run to another work tree, unless they are there already: they appear there only once they
    /// are complete.
    pub fn move_records(&self, run: &str, to: &Layout) -> Result<(), RecordsError> {
        let from = self.folder.join(run);
        let target = to.run_records(run);
        if !is_folder(&from) || is_folder(&target) {
            return Ok(());
        }
        let folder = to.path(Layout::ITERATIONS);
        fs::create_dir_all(&folder).map_err(io_error("making", &folder))?;
        match dir_permissions::rename(&from, &target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let temporary = folder.join(format!("{REMOVAL_PREFIX}{run}"));
                dir_permissions::remove_all(&temporary).map_err(io_error("removing", &temporary))?;
                fs::create_dir(&temporary).map_err(io_error("making", &temporary))?;
                copy_folder(&from, &temporary, MAX_DEPTH, &mut CopyReport::default())?;
                durable::sync_file_system(&temporary)
                    .map_err(|error| io_error("flushing", &temporary)(io::Error::other(error)))?;
                fs::rename(&temporary, &target).map_err(io_error("moving", &target))?;
            }
            moved => moved.map_err(io_error("moving", &from))?,
        }
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(io_error("flushing", &folder))
    }

    /// Removes the records of a run. New ones may be started meanwhile.
    pub fn remove(&self, run: &str) -> Result<(), RecordsError> {
        let folder = self.folder.join(run);
        let temporary = self.folder.join(format!("{REMOVAL_PREFIX}{run}"));
        dir_permissions::rename(&folder, &temporary).map_err(io_error("removing", &folder))?;
        dir_permissions::remove_all(&temporary).map_err(io_error("removing", &temporary))
    }

    /// Removes what interrupted removals have left.
    pub fn remove_leftovers(&self) -> Result<(), RecordsError> {
        for name in list_names(&self.folder)?.into_iter().filter(|name| name.starts_with(REMOVAL_PREFIX)) {
            let path = self.folder.join(name);
            dir_permissions::remove_all(&path).map_err(io_error("removing", &path))?;
        }
        Ok(())
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Lists the names in a folder that are valid text, sorted.
fn list_names(folder: &Path) -> Result<Vec<String>, RecordsError> {
    let entries = fs::read_dir(folder).map_err(io_error("listing", folder))?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Creates a folder, or checks that an existing one is empty.
fn create_empty_folder(folder: &Path) -> Result<(), RecordsError> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            if is_empty { Ok(()) } else { Err(io_error("writing into", folder)(error)) }
        }
        result => result.map_err(io_error("making", folder)),
    }
}

/// Copies the files of a folder, and of its subfolders down to `depth`.
fn copy_folder(from: &Path, to: &Path, depth: usize, copied: &mut CopyReport) -> Result<(), RecordsError> {
    for name in list_names(from)? {
        let source = from.join(&name);
        let target = to.join(&name);
        let Ok(found) = fs::symlink_metadata(&source) else { continue };
        if found.is_file() {
            copied.bytes = copied.bytes.saturating_add(copy_file(&source, &target)?);
            copied.files += 1;
        } else if found.is_dir() && depth > 0 {
            fs::create_dir(&target).map_err(io_error("making", &target))?;
            copy_folder(&source, &target, depth - 1, copied)?;
        } else if !found.is_dir() {
            copied.skipped.push(source);
        }
    }
    Ok(())
}

/// Copies the current content of a file: one still being written may grow meanwhile.
fn copy_file(from: &Path, to: &Path) -> Result<u64, RecordsError> {
    let source = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(from);
    let source = source.map_err(io_error("reading", from))?;
    let length = source.metadata().map_err(io_error("reading", from))?.len();
    let mut target = File::create_new(to).map_err(io_error("making", to))?;
    io::copy(&mut source.take(length), &mut target).map_err(io_error("writing", to))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct RecordsFixture {
        folder: tempfile::TempDir,
    }

    impl RecordsFixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join(".runner/iterations")).unwrap();
            Self { folder }
        }

        fn write_file(&self, path: &str, text: &str) -> PathBuf {
            let path = self.folder.path().join(".runner/iterations").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn records(&self) -> RecordsDir {
            RecordsDir::find(&Layout::new(self.folder.path())).expect("the folder is there")
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_records_is_not_followed() {
        let stage = RecordsFixture::new();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(elsewhere.path().join("precious")).unwrap();
        let records = stage.folder.path().join(".runner/iterations");
        symlink(elsewhere.path().join("precious"), records.join("run-1")).unwrap();
        assert_eq!(stage.records().list_runs().unwrap(), [], "a run's folder is not a link");
        fs::remove_dir_all(&records).unwrap();
        symlink(elsewhere.path(), &records).unwrap();
        assert!(RecordsDir::find(&Layout::new(stage.folder.path())).is_none());
    }

    #[test]
    fn what_is_no_file_is_left_out_of_a_copy_and_named() {
        let stage = RecordsFixture::new();
        let file = stage.write_file("run-1/0001/meta.json", "{}");
        let link = file.with_file_name("executor.log");
        symlink("/etc/passwd", &link).unwrap();
        stage.write_file("run-1/0001/reverted/a", "abc");
        let to = stage.folder.path().join("copy");
        let copied = stage.records().copy_record("run-1", Some("0001"), &to).unwrap();
        assert_eq!(copied, CopyReport { files: 2, bytes: 5, skipped: vec![link] });
        assert_eq!(fs::read_to_string(to.join("reverted/a")).unwrap(), "abc");
    }

    #[test]
    fn a_copy_overwrites_nothing() {
        let stage = RecordsFixture::new();
        stage.write_file("run-1/events.jsonl", "{}\n");
        let to = stage.folder.path().join("copy");
        fs::create_dir(&to).unwrap();
        assert_eq!(stage.records().copy_record("run-1", None, &to).unwrap().files, 1, "an empty folder may be there");
        let refused = stage.records().copy_record("run-1", None, &to).unwrap_err();
        assert_eq!(refused.source.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn records_that_were_moved_are_whole_and_not_moved_again() {
        let stage = RecordsFixture::new();
        let to = tempfile::tempdir().unwrap();
        stage.write_file("run-1/0001/meta.json", "{}");
        let target = Layout::new(to.path());
        stage.records().move_records("run-1", &target).unwrap();
        assert_eq!(fs::read_to_string(target.iteration("run-1", 1).join("meta.json")).unwrap(), "{}");
        assert_eq!(stage.records().describe_run("run-1"), None);
        stage.write_file("run-1/0002/meta.json", "{}");
        stage.records().move_records("run-1", &target).unwrap();
        assert!(!target.iteration("run-1", 2).exists(), "what is there stays as it is");
    }

    #[test]
    fn a_removal_that_was_interrupted_is_finished_and_is_no_run() {
        let stage = RecordsFixture::new();
        stage.write_file("run-1/0001/meta.json", "{}");
        stage.write_file(".gc-run-0/0001/meta.json", "{}");
        assert_eq!(stage.records().list_runs().unwrap().len(), 1);
        stage.records().remove_leftovers().unwrap();
        stage.records().remove("run-1").unwrap();
        assert_eq!(list_names(&stage.records().folder).unwrap(), [""; 0]);
    }
}
