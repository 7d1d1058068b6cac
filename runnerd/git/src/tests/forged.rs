//! An index that a session has written to hide a change to a file: both engines see and commit the file's content,
//! whether or not its files were known before, and repeatedly.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};

use super::fixture::{ENGINES, Fixture, commit, settle_files};
use crate::index;
use crate::worktree::stat_cache::TrackedFiles;
use crate::{ChangeKind, Repository};

/// The file that is changed.
const PATH: &str = "dir/c.txt";

/// What is forged in the index so that nothing seems changed, and how.
type IndexForgery = (&'static str, fn(&Fixture, &mut State));

const FORGERIES: [IndexForgery; 8] = [
    ("the entry has the times and length of the file", |fixture, state| {
        let stat = read_stat(fixture);
        entry(state).stat = stat;
    }),
    ("the file is assumed to be unchanged", |_, state| entry(state).flags.insert(Flags::ASSUME_VALID)),
    ("the file is not looked at", |_, state| entry(state).flags.insert(Flags::SKIP_WORKTREE | Flags::EXTENDED)),
    ("the entry has the object of another file", |fixture, state| {
        let stat = read_stat(fixture);
        let other = state.entry_by_path("a.txt".into()).unwrap().id;
        let entry = entry(state);
        (entry.stat, entry.id) = (stat, other);
    }),
    ("the entry has an object that is not there", |fixture, state| {
        let stat = read_stat(fixture);
        let entry = entry(state);
        entry.stat = stat;
        entry.id = gix::ObjectId::from_hex(b"1111111111111111111111111111111111111111").unwrap();
    }),
    ("the trees that are remembered are those of HEAD", |fixture, state| {
        let content = fixture.git(&["hash-object", "-w", PATH]);
        entry(state).id = gix::ObjectId::from_hex(content.as_bytes()).unwrap();
        entry(state).stat = read_stat(fixture);
        assert!(state.tree().is_some_and(|tree| tree.num_entries.is_some()));
    }),
    ("the folder is one entry, as where it is not checked out", |fixture, state| {
        let tree = fixture.git(&["rev-parse", "HEAD:dir"]);
        let tree = gix::ObjectId::from_hex(tree.as_bytes()).unwrap();
        state.remove_entries(|_, path, _| path.starts_with(b"dir/"));
        let flags = Flags::SKIP_WORKTREE | Flags::EXTENDED;
        state.dangerously_push_entry(Stat::default(), tree, flags, Mode::DIR, "dir/".into());
        state.sort_entries();
    }),
    ("the times of the file are the earlier ones", |fixture, _| {
        let other = fixture.path("a.txt").metadata().unwrap().modified().unwrap();
        File::options().write(true).open(fixture.path(PATH)).unwrap().set_modified(other).unwrap();
    }),
];

fn entry(state: &mut State) -> &mut gix::index::Entry {
    let at = state.entry_index_by_path(PATH.into()).unwrap();
    &mut state.entries_mut()[at]
}

fn read_stat(fixture: &Fixture) -> Stat {
    let found = gix::index::fs::Metadata::from_path_no_follow(&fixture.path(PATH)).unwrap();
    Stat::from_fs(&found).unwrap()
}

fn write_index(fixture: &Fixture, forge: fn(&Fixture, &mut State)) {
    let file = fixture.path(".git/index");
    let options = gix::index::decode::Options::default();
    let mut state = State::from(gix::index::File::at(&file, gix::hash::Kind::Sha1, false, options).unwrap());
    forge(fixture, &mut state);
    // Without a checksum: git does not ask for one.
    index::write_index_to(File::create(&file).unwrap(), &file, &state, true).unwrap();
}

/// Changes the file and the index, and checks that the change is seen and committed.
fn try_once(fixture: &Fixture, repository: &Repository, (content, (what, forge)): (&str, IndexForgery)) {
    fixture.write(PATH, content);
    write_index(fixture, forge);
    let seen = repository.list_changes().unwrap();
    let seen: Vec<_> = seen.iter().map(|change| (change.display_path(), change.kind)).collect();
    assert_eq!(seen, [(PATH.to_owned(), ChangeKind::Modified)], "{what}, then {content}");
    commit(repository).unwrap();
    assert_eq!(fixture.git(&["show", &format!("HEAD:{PATH}")]), content);
    fixture.assert_sound();
}

#[test]
fn a_change_that_a_forged_index_hides_is_seen_and_committed() {
    let mut tried = Vec::new();
    for (what, forge) in FORGERIES {
        for engine in ENGINES {
            let fixture = Fixture::new();
            let repository = fixture.with_engine(engine);
            // Has the same length as the old content.
            settle_files(&repository);
            assert_eq!(repository.list_changes().unwrap(), []);
            for content in ["CONTENT of dir/c.txt", "content of dir/C.TXT", "longer than it was before"] {
                try_once(&fixture, &repository, (content, (what, forge)));
            }
            tried.push((what, engine));
        }
    }
    assert_eq!(tried.len(), 16);
}

#[test]
fn a_life_that_knows_nothing_reads_every_file_that_is_not_hidden() {
    let hides = |what: &str| what.contains("assumed") || what.contains("not looked at") || what.contains("one entry");
    for forgery in FORGERIES.into_iter().filter(|(what, _)| !hides(what)) {
        for engine in ENGINES {
            let fixture = Fixture::new();
            try_once(&fixture, &fixture.with_engine(engine), ("CONTENT of dir/c.txt", forgery));
        }
    }
}

#[test]
fn a_checkout_overwrites_no_change_that_a_forged_index_hides() {
    let fixture = Fixture::new();
    fixture.git(&["switch", "--quiet", "-c", "other"]);
    fixture.write(PATH, "of the other branch");
    fixture.commit_by_git("other");
    fixture.git(&["switch", "--quiet", "-"]);
    fixture.write(PATH, "CONTENT of dir/c.txt");
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(fixture.path(PATH)).unwrap().set_modified(long_ago).unwrap();
    write_index(&fixture, FORGERIES[0].1);
    assert_eq!(fixture.git(&["diff", "--name-only"]), "", "git believes the index");
    fixture.repository().switch_branch("other").unwrap_err();
    assert_eq!(fixture.read(PATH), "CONTENT of dir/c.txt");
    fixture.git(&["checkout", "--quiet", "--", PATH]);
    fixture.repository().switch_branch("other").unwrap();
    assert_eq!((fixture.read(PATH), fixture.status()), ("of the other branch".to_owned(), String::new()));
}

#[test]
fn what_a_person_has_hidden_stays_hidden() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["update-index", "--skip-worktree", PATH]);
        fixture.remove(PATH);
        fixture.write("a.txt", "changed");
        let repository = fixture.with_engine(engine);
        commit(&repository).unwrap();
        assert_eq!(fixture.git(&["ls-files", "-v", PATH]), format!("S {PATH}"));
        assert_eq!(fixture.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "a.txt");
        assert_eq!(repository.list_changes().unwrap(), [], "{engine:?}");
    }
}

#[test]
fn a_file_that_is_always_read_is_read_whatever_its_times_say() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    repository.set_always_read([PATH.to_owned(), "other/".to_owned()]);
    settle_files(&repository);
    assert_eq!(repository.list_changes().unwrap(), []);
    // As after a clock change.
    for path in [PATH, "other/f.txt", "a.txt"] {
        fixture.write(path, "changed");
    }
    let repo = repository.open().unwrap();
    let mut tracked = TrackedFiles::load(&repo, &repository, Some(fixture.head())).unwrap();
    for path in [PATH, "other/f.txt", "a.txt"] {
        let at = tracked.state.entry_index_by_path(path.into()).unwrap();
        let found = gix::index::fs::Metadata::from_path_no_follow(&fixture.path(path)).unwrap();
        tracked.state.entries_mut()[at].stat = Stat::from_fs(&found).unwrap();
    }
    tracked.store_in_cache();
    let seen: Vec<_> = repository.list_changes().unwrap().iter().map(crate::WorktreeChange::display_path).collect();
    assert_eq!(seen, [PATH, "other/f.txt"]);
}

#[test]
fn file_whose_bytes_are_those_of_the_commit_is_unchanged_under_younger_rules() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "one\r\ntwo\r\n");
        fixture.commit_by_git("line ends");
        fixture.write(".gitattributes", "a.txt text\n");
        fixture.git(&["add", ".gitattributes"]);
        fixture.git(&["commit", "--quiet", "-m", "rules"]);
        // The program rereads a file that may have been written after its index.
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::open(fixture.path("a.txt")).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(fixture.list_changes(engine), [], "{engine:?}");
        fixture.write("a.txt", "one\r\nTWO\r\n");
        assert_eq!(fixture.list_changes(engine), [("a.txt".to_owned(), ChangeKind::Modified)], "{engine:?}");
    }
}

#[test]
fn nothing_counts_that_was_known_before_the_clock_was_set_back() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let known = || {
        let tracked = TrackedFiles::load(&repository.open().unwrap(), &repository, Some(fixture.head())).unwrap();
        let known = tracked.state.entries().iter().filter(|entry| entry.flags.contains(Flags::UPTODATE)).count();
        tracked.store_in_cache();
        known
    };
    settle_files(&repository);
    assert_eq!(repository.list_changes().unwrap(), []);
    assert!(known() > 0);
    repository.cache.set_clock_back();
    assert_eq!(known(), 0);
}
