//! Copies the records of a run to a place that outlives the job, as `--records` requests: each when its iteration is
//! over, and the rest when the driver ends.
//!
//! They are for people. A failed copy is reported, and does not affect the run.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use runner_core::driver::Driver;
use runner_os::error_chain::display_chain;

use super::print_note;
use crate::repo::layout::Layout;
use crate::repo::records::{RecordsDir, RecordsError};

/// The target folder for the records of a job, and which of them have been copied.
#[derive(Debug)]
pub(super) struct RecordArchive {
    layout: Layout,
    run: String,
    folder: PathBuf,
    archived: BTreeSet<String>,
    has_failed: bool,
}

impl RecordArchive {
    /// Creates the folder of a driver, for this user only. If it exists, because an engine does not count attempts,
    /// another name is used.
    pub(super) fn new(work: &Path, run: &str, records: &Path, driver: &Driver) -> io::Result<Self> {
        let run_dir = std::path::absolute(records)?.join(run);
        DirBuilder::new().recursive(true).mode(0o700).create(&run_dir)?;
        let mut folder = run_dir.join(driver.name());
        if folder.exists() {
            folder = run_dir.join(format!("{}-{}", driver.name(), driver.nonce));
        }
        DirBuilder::new().mode(0o700).create(&folder)?;
        let layout = Layout::new(work);
        Ok(Self { layout, run: run.to_owned(), folder, archived: BTreeSet::new(), has_failed: false })
    }

    /// Copies the records of iterations before the current one, or all if there is none. A session can create folders
    /// there, and one created in advance would be mistaken for a future record.
    pub(super) fn archive_finished(&mut self, active_iteration: Option<u32>) {
        let Some(records) = RecordsDir::find(&self.layout) else { return };
        let names = match records.list_records(&self.run) {
            Ok(names) => names,
            Err(error) => return self.report_failure(&error),
        };
        let is_finished =
            |name: &str| record_iteration(name).is_some_and(|iter| active_iteration.is_none_or(|live| iter < live));
        for name in names.into_iter().filter(|name| is_finished(name)) {
            if self.archived.contains(&name) {
                continue;
            }
            if let Err(error) = records.copy_record(&self.run, Some(&name), &self.folder.join(&name)) {
                self.report_failure(&error);
            }
            // As much as possible was copied: it is not tried again.
            self.archived.insert(name);
        }
    }

    fn report_failure(&mut self, error: &RecordsError) {
        if !std::mem::replace(&mut self.has_failed, true) {
            print_note(&format!("a record is not kept whole, and it is not said again: {}", display_chain(error)));
        }
    }
}

/// Returns the iteration that a record belongs to, possibly as one of its waits.
fn record_iteration(name: &str) -> Option<u32> {
    name.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_record_is_copied_once_it_is_over_and_what_is_left_at_the_end() {
        let [work, to] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let record_path = |name: &str| work.path().join(".runner/iterations/x").join(name);
        for name in ["0001", "0002", "0002.w1", "0003", "other"] {
            fs::create_dir_all(record_path(name)).expect("a folder");
            fs::write(record_path(name).join("agent.log"), name).expect("a file");
        }
        let driver = Driver::new("slurm", "7", 0, "n1", "0a");
        let mut archive = RecordArchive::new(work.path(), "x", to.path(), &driver).expect("it can be made");
        let archived_names = || {
            let names = fs::read_dir(to.path().join("x/7.0")).expect("it is there").flatten();
            names.filter_map(|entry| entry.file_name().into_string().ok()).collect::<BTreeSet<_>>()
        };
        archive.archive_finished(Some(2));
        assert_eq!(
            archived_names(),
            BTreeSet::from(["0001".to_owned()]),
            "a session has made the third before its time"
        );
        fs::write(record_path("0003").join("agent.log"), "told by the runner").expect("a file");
        archive.archive_finished(None);
        archive.archive_finished(None);
        assert_eq!(archived_names(), ["0001", "0002", "0002.w1", "0003"].map(str::to_owned).into());
        let third = fs::read_to_string(to.path().join("x/7.0/0003/agent.log")).expect("it is there");
        assert_eq!(third, "told by the runner");
        assert!(!archive.has_failed);
        fs::remove_dir_all(work.path().join(".runner/iterations/x")).expect("it can be removed");
        symlink(to.path().join("x"), work.path().join(".runner/iterations/x")).expect("a link");
        archive.archive_finished(None);
        assert_eq!(archived_names().len(), 4, "a link is not followed");
        let again = RecordArchive::new(work.path(), "x", to.path(), &driver).expect("it can be made");
        assert_eq!(again.folder, to.path().join("x/7.0-0a"));
        let log = to.path().join("x/7.0/0002.w1/agent.log");
        assert_eq!(fs::read_to_string(log).expect("it is there"), "0002.w1");
    }
}
