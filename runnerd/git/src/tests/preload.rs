//! A preload sees what git sees, whatever is in the place of an indexed folder or file.

use std::fs::File;
use std::time::SystemTime;

use super::fixture::{ENGINES, Fixture, settle_files};
use crate::worktree::preload::IndexPreload;
use crate::worktree::stat_cache::TrackedFiles;

/// A repository, a change to it, and git's expected output.
struct PreloadCase {
    what: &'static str,
    prepare: fn(&Fixture),
    paths: &'static [&'static str],
}

const CASES: [PreloadCase; 14] = [
    PreloadCase { what: "nothing", prepare: |_| {}, paths: &[] },
    PreloadCase {
        what: "a folder became a link to its copy",
        prepare: |fixture| {
            fixture.git(&["mv", "dir", "there"]);
            fixture.git(&["reset", "-q"]);
            fixture.link("there", "dir");
        },
        paths: &[
            "dir",
            "dir/c.txt",
            "dir/sub/d.txt",
            "dir/sub/e.txt",
            "there/c.txt",
            "there/sub/d.txt",
            "there/sub/e.txt",
        ],
    },
    PreloadCase {
        what: "a folder became a file",
        prepare: |fixture| {
            fixture.remove("dir");
            fixture.write("dir", "file\n");
        },
        paths: &["dir", "dir/c.txt", "dir/sub/d.txt", "dir/sub/e.txt"],
    },
    PreloadCase {
        what: "a file became a folder",
        prepare: |fixture| {
            fixture.remove("a.txt");
            fixture.write("a.txt/inside", "file\n");
        },
        paths: &["a.txt", "a.txt/inside"],
    },
    PreloadCase { what: "a folder is gone", prepare: |fixture| fixture.remove("other"), paths: &["other/f.txt"] },
    PreloadCase {
        what: "one file is gone and another is new",
        prepare: |fixture| {
            fixture.remove("dir/c.txt");
            fixture.write("dir/new.txt", "file\n");
        },
        paths: &["dir/c.txt", "dir/new.txt"],
    },
    PreloadCase {
        what: "names that mean something to a pattern",
        prepare: |fixture| {
            for name in ["*", ":(glob)**", "dir/?.txt", "dir/[c].txt", "!a.txt", "a\nb", " ", "#x"] {
                fixture.write(name, "file\n");
            }
        },
        paths: &[" ", "!a.txt", "#x", "*", ":(glob)**", "a\nb", "dir/?.txt", "dir/[c].txt"],
    },
    PreloadCase {
        what: "more new files than are looked for one by one",
        prepare: |fixture| (0..100).for_each(|number| fixture.write(format!("dir/ignored{number}"), "")),
        paths: &[],
    },
    PreloadCase {
        what: "ignored files and folders beside a new one",
        prepare: |fixture| {
            fixture.write("ignored/deep/file", "");
            fixture.write("dir/sub/ignored", "");
            fixture.write("deep/down/new", "");
            fixture.write("deep/down/ignored", "");
        },
        paths: &["deep/down/new"],
    },
    PreloadCase {
        what: "repositories",
        prepare: |fixture| {
            fixture.nested("dir/nested");
            fixture.nested("beside");
        },
        paths: &["beside/", "dir/nested/"],
    },
    PreloadCase {
        what: "an empty folder and one with nothing but ignored files",
        prepare: |fixture| {
            std::fs::create_dir(fixture.path("dir/empty")).unwrap();
            fixture.write("only/ignored", "");
        },
        paths: &[],
    },
    PreloadCase { what: "an executable file", prepare: |fixture| fixture.chmod("a.txt", 0o755), paths: &["a.txt"] },
    PreloadCase {
        what: "a file of the same length and time",
        prepare: |fixture| {
            let path = fixture.path("b.txt");
            let time = path.metadata().unwrap().modified().unwrap();
            fixture.write("b.txt", "CONTENT of b.txt\n");
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        },
        paths: &["b.txt"],
    },
    PreloadCase {
        what: "a conflict",
        prepare: |fixture| {
            fixture.git(&["checkout", "-q", "-b", "side"]);
            fixture.write("dir/c.txt", "side\n");
            fixture.commit_by_git("side");
            fixture.git(&["checkout", "-q", "main"]);
            fixture.write("dir/c.txt", "main\n");
            fixture.commit_by_git("main");
            fixture.try_git(&fixture.path(""), &["merge", "-q", "side"]);
        },
        paths: &["dir/c.txt"],
    },
];

#[test]
fn a_look_sees_what_git_sees() {
    for PreloadCase { what, prepare: done, paths } in CASES {
        let fixture = Fixture::new();
        fixture.write(".gitignore", "ignored*\n");
        fixture.commit_by_git("rules");
        done(&fixture);
        let [ours, theirs] = ENGINES.map(|engine| fixture.list_changes(engine));
        assert_eq!(ours, theirs, "{what}");
        assert_eq!(ours.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), paths, "{what}");
    }
}

/// Returns what remains to be checked after everything was checked and settled.
fn run_preload(fixture: &Fixture) -> IndexPreload {
    let repository = fixture.repository();
    settle_files(&repository);
    repository.list_changes().unwrap();
    let repo = repository.open().unwrap();
    let mut tracked = TrackedFiles::load(&repo, &repository, Some(fixture.head())).unwrap();
    IndexPreload::run(&repo, &repository, &mut tracked.state)
}

#[test]
fn nothing_is_left_to_look_at_where_all_is_plainly_as_recorded() {
    let left = run_preload(&Fixture::new());
    assert_eq!(left.unverified.len(), 0);
    assert_eq!(left.untracked, Some(vec![]));
}

#[test]
fn touched_file_is_no_change_and_is_read_once() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    settle_files(&repository);
    assert_eq!(repository.list_changes().unwrap(), vec![]);
    File::open(fixture.path("a.txt")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let repo = repository.open().unwrap();
    let doubts = || {
        let mut tracked = TrackedFiles::load(&repo, &repository, Some(fixture.head())).unwrap();
        let doubts = IndexPreload::run(&repo, &repository, &mut tracked.state).unverified.len();
        tracked.store_in_cache();
        doubts
    };
    assert_eq!(doubts(), 1);
    assert_eq!(repository.list_changes().unwrap(), vec![]);
    assert_eq!(doubts(), 0);
}

#[test]
fn what_has_no_entry_is_looked_for_by_name_unless_it_is_much() {
    let fixture = Fixture::new();
    fixture.write("dir/sub/new", "");
    fixture.write("new/deep", "");
    assert_eq!(run_preload(&fixture).untracked, Some(vec!["new".into(), "dir/sub/new".into()]));
    (0..100).for_each(|number| fixture.write(format!("dir/{number}"), ""));
    assert_eq!(run_preload(&fixture).untracked, None);
}
