//! Objects, history and differences, compared with git's output.

use gix::objs::tree;
use runner_os::retryable::Retryable as _;

use super::fixture::{ENGINES, Fixture};
use crate::objects::diff::compare_trees_limited;
use crate::{EntryKind, GitError, Id};

#[test]
fn file_of_a_commit_is_read_whatever_the_work_tree_has() {
    let fixture = Fixture::new();
    fixture.link("a.txt", "link");
    let commit = fixture.commit_by_git("link");
    fixture.write("a.txt", "changed\n");
    let repository = fixture.repository();
    let read = |path| repository.read_file(&commit, path).unwrap();
    assert_eq!(read("a.txt").unwrap(), b"content of a.txt\n");
    assert_eq!(read("dir/sub/d.txt").unwrap(), b"content of dir/sub/d.txt\n");
    assert_eq!(read("link").unwrap(), b"a.txt");
    assert_eq!(read("none"), None);
    assert_eq!(read("dir"), None);
    assert_eq!(read("a.txt/none"), None);
}

#[test]
fn entries_of_a_folder_have_full_paths_and_kinds() {
    let fixture = Fixture::new();
    fixture.chmod("dir/c.txt", 0o755);
    fixture.link("c.txt", "dir/link");
    fixture.nested("dir/module");
    let commit = fixture.commit_by_git("kinds");
    let repository = fixture.repository();
    let entries = repository.list_entries(&commit, "dir").unwrap();
    let found: Vec<(&str, EntryKind)> =
        entries.iter().map(|entry| (std::str::from_utf8(&entry.path).unwrap(), entry.kind)).collect();
    assert_eq!(
        found,
        [
            ("dir/c.txt", EntryKind::Executable),
            ("dir/link", EntryKind::Symlink),
            ("dir/module", EntryKind::Submodule),
            ("dir/sub/d.txt", EntryKind::File),
            ("dir/sub/e.txt", EntryKind::File),
        ]
    );
    assert_eq!(entries[3].id.to_string(), fixture.git(&["rev-parse", "HEAD:dir/sub/d.txt"]));
    assert_eq!(repository.list_entries(&commit, "").unwrap().len(), 8);
    assert_eq!(repository.list_entries(&commit, "none").unwrap(), vec![]);
    assert_eq!(repository.list_entries(&commit, "a.txt").unwrap(), vec![]);
}

#[test]
fn blobs_are_stored_and_hashed_as_git_does() {
    for format in ["sha1", "sha256"] {
        let fixture = Fixture::with_init(&[&format!("--object-format={format}")]);
        let repository = fixture.repository();
        let id = repository.hash_blob(b"bytes\n").unwrap();
        assert!(repository.read_blob(&id).is_err());
        assert_eq!(repository.write_blob(b"bytes\n").unwrap(), id);
        assert_eq!(repository.read_blob(&id).unwrap(), b"bytes\n");
        assert_eq!(fixture.git(&["cat-file", "-p", &id.to_string()]), "bytes");
    }
}

#[test]
fn revisions_resolve_to_commits() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let base = fixture.head();
        fixture.git(&["tag", "-a", "-m", "x", "v1"]);
        fixture.write("a.txt", "x");
        let tip = fixture.commit_by_git("second");
        let repository = fixture.with_engine(engine);
        let resolve = |revision: &str| repository.resolve_revision(revision).unwrap();
        assert_eq!(resolve("HEAD"), Some(tip));
        assert_eq!(resolve("main"), Some(tip));
        assert_eq!(resolve("HEAD~1"), Some(base));
        assert_eq!(resolve("v1"), Some(base));
        assert_eq!(resolve(&tip.short(10)), Some(tip));
        for nothing in ["none", "HEAD~7", "", "-x", "--help", "HEAD:a.txt", "HEAD^{tree}", "..", "a b"] {
            assert_eq!(resolve(nothing), None, "{nothing:?}");
        }
    }
}

#[test]
fn descent_is_told_across_branches() {
    let fixture = Fixture::new();
    let base = fixture.head();
    let ours = fixture.commit_by_git("ours");
    fixture.git(&["checkout", "--quiet", "-b", "side", &base.to_string()]);
    let theirs = fixture.commit_by_git("theirs");
    let repository = fixture.repository();
    let is_ancestor = |a: &Id, b: &Id| repository.is_ancestor(a, b).unwrap();
    assert!(is_ancestor(&base, &ours) && is_ancestor(&base, &theirs) && is_ancestor(&ours, &ours));
    assert!(!is_ancestor(&ours, &theirs) && !is_ancestor(&ours, &base));
    fixture.git(&["checkout", "--quiet", "--orphan", "apart"]);
    let apart = fixture.commit_by_git("apart");
    assert!(!is_ancestor(&base, &apart) && !is_ancestor(&apart, &base));
}

#[test]
fn first_parents_skip_merged_branches() {
    let fixture = Fixture::new();
    let base = fixture.head();
    fixture.git(&["checkout", "--quiet", "-b", "side"]);
    let side = fixture.commit_by_git("side");
    fixture.git(&["checkout", "--quiet", "main"]);
    let ours = fixture.commit_by_git("ours\n\nBody\nTrailer: x");
    fixture.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    let merge = fixture.head();
    let history = fixture.repository().first_parents(&merge, 10).unwrap();
    let ids: Vec<Id> = history.iter().map(|commit| commit.id).collect();
    assert_eq!(ids, [merge, ours, base]);
    assert_eq!(history[0].parents, [ours, side]);
    assert_eq!(history[1].message, "ours\n\nBody\nTrailer: x\n");
    assert_eq!(history[1].author.email, "author@example.com");
    assert_eq!(history[1].time, 1_700_000_000);
    assert_eq!(history[1].tree.to_string(), fixture.git(&["rev-parse", "HEAD^1^{tree}"]));
    assert_eq!(fixture.repository().first_parents(&merge, 2).unwrap().len(), 2);
}

#[test]
fn history_ends_where_a_shallow_clone_ends() {
    let fixture = Fixture::new();
    fixture.commit_by_git("second");
    let url = format!("file://{}", fixture.path("").display());
    fixture.git(&["clone", "--quiet", "--depth=1", &url, "../shallow"]);
    let tree = fixture.folder().join("shallow");
    let shallow = fixture.at(tree);
    assert_eq!(shallow.repository().first_parents(&shallow.head(), 10).unwrap().len(), 1);
}

#[test]
fn replaced_objects_do_not_change_history() {
    let fixture = Fixture::new();
    let base = fixture.head();
    let tip = fixture.commit_by_git("honest");
    fixture.git(&["replace", &tip.to_string(), &base.to_string()]);
    for engine in ENGINES {
        let history = fixture.with_engine(engine).first_parents(&tip, 10).unwrap();
        assert_eq!(history[0].message, "honest\n");
    }
}

#[test]
fn changed_paths_and_patch_are_those_of_git() {
    let fixture = Fixture::new();
    let lines = |changed: &[u32]| {
        let line = |i| format!("{} {i}", if changed.contains(&i) { "LINE" } else { "line" });
        (0..40).map(line).collect::<Vec<_>>().join("\n") + "\n"
    };
    fixture.write("long", lines(&[]));
    fixture.write("no-end", "one\ntwo");
    fixture.write("binary", b"\0\x01");
    fixture.write("to-empty", "x\n");
    fixture.link("a.txt", "link");
    let from = fixture.commit_by_git("from");
    fixture.write("long", lines(&[3, 30]));
    fixture.write("no-end", "one\nTWO");
    fixture.write("binary", b"\0\x02");
    fixture.write("to-empty", "");
    fixture.write("new/file", "new\n");
    fixture.write("new/void", "");
    fixture.write("öd\"d\t", "x\n");
    fixture.remove("b.txt");
    fixture.chmod("a.txt", 0o755);
    fixture.remove("link");
    fixture.write("link", "a file now\n");
    let to = fixture.commit_by_git("to");

    let repository = fixture.repository();
    let a = from.to_string();
    let b = to.to_string();
    let names = fixture.try_git(&fixture.path(""), &["diff-tree", "-r", "-z", "--no-renames", "--name-only", &a, &b]);
    let names: Vec<Vec<u8>> =
        names.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    assert_eq!(repository.changed_paths(&from, &to).unwrap(), names);

    let patch = String::from_utf8(repository.diff(&from, &to, usize::MAX).unwrap()).unwrap();
    let options = ["diff-tree", "-p", "-r", "--no-renames", "--full-index", "--no-indent-heuristic"];
    let expected = fixture.git(&[&options[..], &[&a, &b]].concat());
    assert_eq!(without_what_git_adds(&patch), without_what_git_adds(&expected));
}

/// git repeats the mode after the ids, and the function around a hunk after its numbers.
fn without_what_git_adds(patch: &str) -> String {
    let line = |line: &str| match line {
        ids if ids.starts_with("index ") => ids.split(' ').take(2).collect::<Vec<_>>().join(" "),
        hunk if hunk.starts_with("@@ ") => hunk.split(' ').take(4).collect::<Vec<_>>().join(" "),
        other => other.to_owned(),
    };
    patch.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn patch_is_bounded() {
    let fixture = Fixture::new();
    let from = fixture.head();
    for name in ["one", "two", "three"] {
        fixture.write(name, "line\n".repeat(1000));
    }
    let to = fixture.commit_by_git("to");
    let repository = fixture.repository();
    let whole = repository.diff(&from, &to, usize::MAX).unwrap();
    let bounded = repository.diff(&from, &to, 777).unwrap();
    assert_eq!(bounded, &whole[..777]);
}

#[test]
fn missing_object_is_no_obstacle() {
    let fixture = Fixture::new();
    let absent = "1".repeat(40).parse().unwrap();
    let error = fixture.repository().first_parents(&absent, 1).unwrap_err();
    assert!(matches!(error, GitError::Corrupt { .. }), "{error}");
    assert!(!error.is_transient());
}

#[test]
fn what_a_clone_brought_was_not_written_here() {
    let fixture = Fixture::new();
    fixture.git(&["clone", "--quiet", ".", "../clone"]);
    let tree = fixture.folder().join("clone");
    let clone = fixture.at(tree);
    let was_written_here = |path: &str| clone.repository().was_written_here(path).unwrap();
    assert!(!was_written_here("a.txt"));
    assert!(was_written_here("none"));
    let commit = |path: &str| {
        clone.write(path, "edited\n");
        assert!(was_written_here(path));
        clone.git(&["-c", "user.name=N", "-c", "user.email=n@x", "commit", "--quiet", "-a", "-m", "edited"]);
        assert!(was_written_here(path));
    };
    commit("a.txt");
    assert!(!was_written_here("b.txt"));
    clone.git(&["checkout", "--quiet", "-b", "aside"]);
    commit("b.txt");
    clone.git(&["checkout", "--quiet", "-"]);
    assert!(!was_written_here("b.txt"), "a commit of another branch says nothing");
    assert!(was_written_here("a.txt"));
}

#[test]
fn clone_is_partial_as_long_as_a_remote_promises_objects() {
    let fixture = Fixture::new();
    let is_partial = || fixture.repository().is_partial().unwrap();
    assert!(!is_partial());
    for (value, expected) in [("true", true), ("false", false), ("on", true), ("0", false)] {
        fixture.git(&["config", "remote.origin.promisor", value]);
        assert_eq!(is_partial(), expected, "{value}");
    }
}

#[test]
fn trees_that_name_each_other_make_no_more_paths_than_there_is_room_for() {
    let fixture = Fixture::new();
    let repo = fixture.repository().open().unwrap();
    let mut named = (repo.write_blob(b"x").unwrap().detach(), tree::EntryKind::Blob);
    // Sixteen million paths in total.
    for _ in 0..12 {
        let entry = |name: &str| tree::Entry { mode: named.1.into(), filename: name.into(), oid: named.0 };
        let entries = ["a", "b", "c", "d"].map(entry).to_vec();
        named = (repo.write_object(&gix::objs::Tree { entries }).unwrap().detach(), tree::EntryKind::Tree);
    }
    let old = repo.empty_tree();
    let new = repo.find_tree(named.0).unwrap();
    assert!(compare_trees_limited(&repo, &old, &new, 1024 * 1024).is_err(), "it ends");
    assert_eq!(compare_trees_limited(&repo, &new, &new, 0).unwrap().len(), 0);
}

#[test]
fn folders_deeper_than_any_that_somebody_works_with_are_an_error_and_no_end_of_the_daemon() {
    let fixture = Fixture::new();
    let repo = fixture.repository().open().unwrap();
    let nested = |depth: usize| {
        let mut named = (repo.write_blob(b"x").unwrap().detach(), tree::EntryKind::Blob);
        for _ in 0..depth {
            let entry = tree::Entry { mode: named.1.into(), filename: "a".into(), oid: named.0 };
            named =
                (repo.write_object(&gix::objs::Tree { entries: vec![entry] }).unwrap().detach(), tree::EntryKind::Tree);
        }
        fixture.git(&["commit-tree", "-m", "Nest", &named.0.to_string()])
    };
    let listed =
        |commit: &str| fixture.repository().list_entries(&commit.parse().unwrap(), "").map(|files| files.len());
    assert_eq!(listed(&nested(200)).unwrap(), 1);
    let deep = nested(1_000);
    assert!(listed(&deep).unwrap_err().to_string().contains("listing a commit"));
    fixture.git(&["update-ref", "HEAD", &deep]);
    assert!(fixture.repository().list_changes().is_err());
}
