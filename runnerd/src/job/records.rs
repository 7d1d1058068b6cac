//! Copies the records of a run to where they outlive the job, as `--records` asks for: each when its iteration is over, and
//! what is left when the driver ends.
//!
//! They are for people. That one cannot be copied is said, and keeps the run from nothing.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use runner_core::driver::Driver;

use super::note;
use crate::causes::in_one_line;
use crate::repo::layout::Layout;
use crate::repo::records::Records;

/// Where the records of a job go, and which are there.
#[derive(Debug)]
pub(super) struct Keeper {
    layout: Layout,
    run: String,
    folder: PathBuf,
    kept: BTreeSet<String>,
    has_failed: bool,
}

impl Keeper {
    /// Makes the folder of a driver, for this user alone. One of the same job and attempt, which an engine that does not count
    /// them starts, has another.
    pub(super) fn new(work: &Path, run: &str, (records, driver): (&Path, &Driver)) -> io::Result<Self> {
        let of_run = std::path::absolute(records)?.join(run);
        DirBuilder::new().recursive(true).mode(0o700).create(&of_run)?;
        let mut folder = of_run.join(driver.name());
        if folder.exists() {
            folder = of_run.join(format!("{}-{}", driver.name(), driver.nonce));
        }
        DirBuilder::new().mode(0o700).create(&folder)?;
        let layout = Layout::new(work);
        Ok(Self { layout, run: run.to_owned(), folder, kept: BTreeSet::new(), has_failed: false })
    }

    /// Copies what is over: everything but the iteration that goes on.
    pub(super) fn keep(&mut self, going_on: Option<u32>) {
        let Some(records) = Records::of(&self.layout) else { return };
        let Some(of_run) = records.of_run(&self.run) else { return };
        let is_over = |name: &&String| going_on.is_none_or(|iter| !is_of(name, iter));
        for name in of_run.records.iter().filter(is_over) {
            if self.kept.contains(name) {
                continue;
            }
            match records.copy(&self.run, Some(name), &self.folder.join(name)) {
                Ok(_) => drop(self.kept.insert(name.clone())),
                Err(error) if !self.has_failed => {
                    self.has_failed = true;
                    note(&format!("a record is not kept, and it is not said again: {}", in_one_line(&error)));
                }
                Err(_) => {}
            }
        }
    }
}

/// Tells whether a record is of an iteration: its own, or of a wait under it.
fn is_of(name: &str, iter: u32) -> bool {
    name.split('.').next().and_then(|number| number.parse().ok()) == Some(iter)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_record_is_copied_once_it_is_over_and_what_is_left_at_the_end() {
        let [work, to] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let at = |name: &str| work.path().join(".runner/iterations/x").join(name);
        for name in ["0001", "0002", "0002.w1"] {
            fs::create_dir_all(at(name)).expect("a folder");
            fs::write(at(name).join("agent.log"), name).expect("a file");
        }
        let driver = Driver::new("slurm", ("7", 0), "n1", "0a");
        let mut keeper = Keeper::new(work.path(), "x", (to.path(), &driver)).expect("it can be made");
        let there = || {
            let names = fs::read_dir(to.path().join("x/7.0")).expect("it is there").flatten();
            names.filter_map(|entry| entry.file_name().into_string().ok()).collect::<BTreeSet<_>>()
        };
        keeper.keep(Some(2));
        assert_eq!(there(), BTreeSet::from(["0001".to_owned()]));
        keeper.keep(None);
        keeper.keep(None);
        assert_eq!(there().len(), 3);
        assert!(!keeper.has_failed);
        let again = Keeper::new(work.path(), "x", (to.path(), &driver)).expect("it can be made");
        assert_eq!(again.folder, to.path().join("x/7.0-0a"));
        let log = to.path().join("x/7.0/0002.w1/agent.log");
        assert_eq!(fs::read_to_string(log).expect("it is there"), "0002.w1");
    }
}
