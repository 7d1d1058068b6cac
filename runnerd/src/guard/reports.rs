//! The reports of test runners that a guard writes into the working tree.
//!
//! Only what was written while the guard ran is read: a file that is as it stood before may be a session's. Links are
//! never followed. One report that is not read makes all tests unknown, since those that it names would count as lost.

use std::collections::BTreeMap;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use runner_config::{PatternRoot, Patterns};
use runner_core::feedback::read_test_reports;
use runner_core::guard::test_results::TestResults;
use runner_core::text::fence::one_line;

/// Most files and directories that are looked at for reports.
const MAX_ENTRIES: usize = 200_000;
/// Most bytes of all reports of a guard.
const MAX_BYTES: u64 = 64 << 20;
/// Most bytes of a path in messages.
const MAX_PATH: usize = 200;
/// Directories in which no report is looked for.
const FOREIGN: [&str; 2] = [".git", ".runner"];

/// Identifies what was last written to a file: device, inode, size, time in seconds and nanoseconds.
type WriteStamp = (u64, u64, u64, i64, i64);

/// The reports in a working tree before a guard runs.
#[derive(Debug)]
pub(super) struct ReportWatch {
    root: PathBuf,
    globs: Patterns,
    before: Result<BTreeMap<String, WriteStamp>, String>,
}

impl ReportWatch {
    /// Lists the reports before the guard; `None` if the configuration names none.
    pub(super) fn begin(root: &Path, globs: &Patterns) -> Option<Self> {
        let watch = || Self { root: root.to_owned(), globs: globs.clone(), before: list_reports(root, globs) };
        (!globs.as_slice().is_empty()).then(watch)
    }

    /// Reads the reports that were written since; the error says why the tests are unknown.
    pub(super) fn read_results(&self) -> Result<TestResults, String> {
        let before = self.before.as_ref().map_err(Clone::clone)?;
        let mut reports = list_reports(&self.root, &self.globs)?;
        reports.retain(|path, stamp| before.get(path) != Some(stamp));
        if reports.is_empty() {
            return Err(match before.keys().next() {
                Some(path) => format!("the guard has not written {}", one_line(path, MAX_PATH)),
                None => "the guard has written no report".to_owned(),
            });
        }
        let mut rest = MAX_BYTES;
        let mut contents = Vec::new();
        for path in reports.into_keys() {
            let bytes = read_report(&self.root.join(&path), rest)
                .map_err(|error| format!("{}: {error}", one_line(&path, MAX_PATH)))?;
            rest = rest.saturating_sub(bytes.len() as u64);
            contents.push((path, bytes));
        }
        read_test_reports(contents.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))
    }
}

/// Reads a regular file of at most this size.
fn read_report(file: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    opened.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("the reports have more than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

/// Returns the regular files that match, each with what was last written to it.
fn list_reports(root: &Path, globs: &Patterns) -> Result<BTreeMap<String, WriteStamp>, String> {
    let mut reports = BTreeMap::new();
    let mut pending: Vec<String> = Vec::new();
    for place in globs.roots() {
        let (PatternRoot::File(path) | PatternRoot::Folder(path)) = place;
        if !has_link(root, &path) {
            pending.push(path);
        }
    }
    let mut count = 0;
    while let Some(path) = pending.pop() {
        count += 1;
        if count > MAX_ENTRIES {
            return Err(format!("there are more than {MAX_ENTRIES} files to look at; name the directory in the glob"));
        }
        let absolute = root.join(&path);
        match std::fs::symlink_metadata(&absolute) {
            Ok(found) if found.is_file() && globs.matches_path(&path) => {
                reports.insert(path, write_stamp(&found));
            }
            Ok(found) if found.is_dir() && !FOREIGN.contains(&path.as_str()) => {
                let names = list_names(&absolute).map_err(|error| format!("{}: {error}", one_line(&path, MAX_PATH)))?;
                pending.extend(names.map(|name| if path.is_empty() { name } else { format!("{path}/{name}") }));
            }
            _ => {}
        }
    }
    Ok(reports)
}

/// Whether a directory above a path is a link or missing.
fn has_link(root: &Path, path: &str) -> bool {
    let above = Path::new(path).ancestors().skip(1);
    let is_directory = |folder: &Path| std::fs::symlink_metadata(root.join(folder)).is_ok_and(|found| found.is_dir());
    above.filter(|folder| !folder.as_os_str().is_empty()).any(|folder| !is_directory(folder))
}

/// Returns the names in a directory that are text.
fn list_names(folder: &Path) -> io::Result<impl Iterator<Item = String>> {
    let names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
        .collect::<io::Result<_>>()?;
    Ok(names.into_iter())
}

fn write_stamp(found: &Metadata) -> WriteStamp {
    (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    use runner_core::guard::test_results::TestOutcome;

    use super::*;

    fn junit(name: &str) -> String {
        format!("<testsuite name='s'><testcase name='{name}'/></testsuite>")
    }

    /// The names that passed after a guard did this.
    fn names_after(root: &Path, globs: &[&str], guard: impl FnOnce()) -> Result<Vec<String>, String> {
        let watch = ReportWatch::begin(root, &Patterns::new(globs.iter().copied())).expect("globs");
        guard();
        let results = watch.read_results()?;
        Ok(results.names(TestOutcome::Passed).into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn only_reports_that_the_guard_writes_are_read() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path();
        let reports = home.path().join("out/reports");
        fs::create_dir_all(&reports).expect("reports");
        fs::write(reports.join("old.xml"), junit("old")).expect("old");
        let future = SystemTime::now() + Duration::from_hours(24);
        fs::File::open(reports.join("old.xml")).and_then(|file| file.set_modified(future)).expect("a time");
        let globs = ["/out/reports/*.xml"];
        let write = |name: &str| fs::write(reports.join(name), junit(name)).expect("written");
        assert_eq!(names_after(root, &globs, || write("new.xml")), Ok(vec!["s new.xml".to_owned()]));
        assert_eq!(names_after(root, &globs, || write("old.xml")), Ok(vec!["s old.xml".to_owned()]));
        let stale = names_after(root, &globs, || ()).expect_err("nothing is new");
        assert_eq!(stale, "the guard has not written out/reports/new.xml");
        assert_eq!(names_after(root, &["none.xml"], || ()), Err("the guard has written no report".to_owned()));
        assert!(ReportWatch::begin(root, &Patterns::default()).is_none());
    }

    #[test]
    fn links_pipes_and_reports_of_git_and_the_runner_are_not_read() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().join("tree");
        let other = home.path().join("other");
        for folder in [&other, &root.join(".git"), &root.join(".runner"), &root.join("in")] {
            fs::create_dir_all(folder).expect("a directory");
        }
        let write_all = || {
            for file in
                [other.join("a.xml"), root.join(".git/a.xml"), root.join(".runner/a.xml"), root.join("in/b.xml")]
            {
                fs::write(&file, junit("x")).expect("written");
            }
            symlink(other.join("a.xml"), root.join("a.xml")).expect("a link");
            symlink(&other, root.join("linked")).expect("a link");
            nix::unistd::mkfifo(&root.join("in/a.xml"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        };
        let globs = Patterns::new(["a.xml", "/linked/*.xml", "/linked/a.xml"]);
        let watch = ReportWatch::begin(&root, &globs).expect("globs");
        write_all();
        assert_eq!(watch.read_results(), Err("the guard has written no report".to_owned()));
    }

    #[test]
    fn reports_that_are_too_large_or_broken_make_the_tests_unknown() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path();
        let huge = names_after(root, &["*.xml"], || {
            fs::write(root.join("a.xml"), junit("a")).expect("written");
            fs::File::create(root.join("b.xml")).and_then(|file| file.set_len(200 << 20)).expect("a large file");
        });
        assert_eq!(huge, Err("b.xml: the reports have more than 64 MiB".to_owned()));
        fs::remove_file(root.join("b.xml")).expect("gone");
        let broken = names_after(root, &["*.xml"], || {
            fs::write(root.join("a.xml"), junit("changed")).expect("written");
            fs::write(root.join("c.xml"), "<testsuite>").expect("written");
        });
        assert_eq!(broken, Err("c.xml: it ends within an element".to_owned()));
    }
}
