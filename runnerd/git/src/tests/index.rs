//! An index that is not what git wrote: it is a cache, and the files matter.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::SystemTime;

use super::fixture::{Fixture, commit};

#[test]
fn corrupt_index_is_written_again() {
    let fixture = Fixture::new();
    fixture.write(".git/index", "rubbish");
    fixture.write("a.txt", "x");
    commit(&fixture.repository()).unwrap();
    fixture.assert_sound();
}

/// Corrupts the first entry's object id in the index, as a disk fault may: length and times stay the same.
fn damage(index: &Path) {
    const OBJECT: u64 = 12 + 40;
    let file = OpenOptions::new().read(true).write(true).open(index).unwrap();
    let found = file.metadata().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, OBJECT).unwrap();
    file.write_all_at(&[!byte[0]], OBJECT).unwrap();
    file.set_modified(found.modified().unwrap()).unwrap();
}

#[test]
fn index_that_was_damaged_after_its_check_is_written_again() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let index = fixture.path(".git/index");
    // A file as new as the index would be read.
    File::open(fixture.path("a.txt")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    fixture.git(&["update-index", "--refresh"]);
    fixture.write("z/new", "x");
    assert_eq!(repository.list_changes().unwrap().len(), 1);
    let changed = || index.metadata().map(|found| (found.ctime(), found.ctime_nsec())).unwrap();
    let before = changed();
    while changed() == before {
        damage(&index);
        damage(&index);
    }
    damage(&index);
    commit(&repository).unwrap();
    fixture.assert_sound();
}
