//! `commit_all` and `changes`: the same trees and names as the git program.

use std::fs;

use runner_os::retryable::Retryable as _;

use super::fixture::{ENGINES, Fixture, commit, request};
use crate::{ChangeKind, CommitRequest, GitError, HoldBackRule};

/// Commits the work tree that `prepare` leaves, once with git and once with each engine.
fn same_as_git(base: impl Fn() -> Fixture, prepare: impl Fn(&Fixture)) {
    let expected = base();
    prepare(&expected);
    let names = names_in_status(&expected);
    expected.git(&["add", "-A"]);
    let tree = expected.git(&["write-tree"]);
    let files = expected.git(&["ls-files", "-s"]);

    for engine in ENGINES {
        let fixture = base();
        prepare(&fixture);
        let changes: Vec<String> = fixture.list_changes(engine).into_iter().map(|(path, _)| path).collect();
        assert_eq!(changes, names, "{engine:?}: names of what changed");
        let parent = fixture.repository().head().unwrap().commit();
        let committed = commit(&fixture.with_engine(engine)).unwrap();
        assert_eq!(committed.tree.to_string(), tree, "{engine:?}: tree");
        assert_eq!(fixture.git(&["ls-files", "-s"]), files, "{engine:?}: index");
        assert_eq!(fixture.head(), committed.commit);
        let parents = fixture.repository().first_parents(&committed.commit, 1).unwrap().remove(0).parents;
        assert_eq!(parents, Vec::from_iter(parent));
        assert_eq!((committed.held_back, committed.unstorable), (vec![], vec![]));
        fixture.assert_sound();
        assert_eq!(fixture.list_changes(engine), vec![], "{engine:?}: nothing is left");
    }
}

fn names_in_status(fixture: &Fixture) -> Vec<String> {
    let folder = fixture.path("");
    let listing = fixture
        .try_git(&folder, &["status", "--porcelain", "-z", "-uall", "--no-renames", "--ignore-submodules=dirty"]);
    let records = listing.stdout.split(|byte| *byte == 0).filter(|record| record.len() > 3);
    let mut names: Vec<Vec<u8>> = records.map(|record| record[3..].to_vec()).collect();
    names.sort();
    names.dedup();
    names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

macro_rules! same_as_git {
    ($($(#[$note:meta])* $name:ident: $base:expr, $prepare:expr;)*) => {
        $($(#[$note])* #[test] fn $name() { same_as_git($base, $prepare) })*
    };
}

same_as_git! {
    modified_added_and_removed_files_are_committed: Fixture::new, |f| {
        f.write("a.txt", "changed\n");
        f.write("new/deep/file.txt", "new\n");
        f.remove("b.txt");
    };
    change_of_the_same_size_at_once_is_seen: Fixture::new, |f| f.write("a.txt", "CONTENT OF A.TXT\n".to_lowercase().to_uppercase());
    removed_folder_is_committed: Fixture::new, |f| f.remove("dir");
    everything_removed_leaves_the_empty_tree: Fixture::new, |f| {
        for name in ["a.txt", "b.txt", "dir", "other"] { f.remove(name); }
    };
    rename_is_committed: Fixture::new, |f| fs::rename(f.path("dir/sub"), f.path("moved")).unwrap();
    owner_executable_bit_is_committed: Fixture::new, |f| f.chmod("a.txt", 0o755);
    executable_bit_of_others_is_no_change: Fixture::new, |f| { f.chmod("a.txt", 0o655); f.write("b.txt", "x"); };
    executable_bit_is_left_alone_without_file_mode: Fixture::new, |f| {
        f.git(&["config", "core.fileMode", "false"]);
        f.chmod("a.txt", 0o755);
        f.write("a.txt", "x");
        f.write("n", "x");
        f.chmod("n", 0o755);
    };
    symbolic_links_are_committed: Fixture::new, |f| {
        f.link("a.txt", "to-file");
        f.link("dir", "to-folder");
        f.link("nowhere", "dangling");
        f.link("../..", "dir/up");
    };
    file_becomes_link: Fixture::new, |f| { f.remove("a.txt"); f.link("b.txt", "a.txt"); };
    link_becomes_file: || { let f = Fixture::new(); f.link("a.txt", "l"); f.commit_by_git("l"); f },
        |f| { f.remove("l"); f.write("l", "now a file\n"); };
    file_becomes_folder: Fixture::new, |f| { f.remove("a.txt"); f.write("a.txt/inside", "x\n"); };
    folder_becomes_file: Fixture::new, |f| { f.remove("dir"); f.write("dir", "x\n"); };
    folder_becomes_link: Fixture::new, |f| { f.remove("dir"); f.link("other", "dir"); };
    link_becomes_folder: || { let f = Fixture::new(); f.link("dir", "l"); f.commit_by_git("l"); f },
        |f| { f.remove("l"); f.write("l/inside", "x\n"); };
    names_that_sort_oddly_are_committed: Fixture::new, |f| {
        for name in ["x", "x.y/z", "x-y", "x0", "y/a", "y.a", "y-a/b"] { f.write(name, name); }
    };
    odd_names_are_committed: Fixture::new, |f| {
        for name in ["with space", " lead", "trail ", "quote\"", "back\\slash", "tab\t", "new\nline", "*?[a]", "#hash",
            "!bang", "-dash", "--", "ünï/ćödé", "~", "$(x)", "a:b", ":(top)x", ".gitx", "git~2", "con", "dir/.git_x"] {
            f.write(name, name);
        }
    };
    names_that_are_no_utf8_are_committed: Fixture::new, |f| {
        f.write(b"\xff\xfe", "x");
        f.write(b"dir/\xc3(", "y");
    };
    names_that_differ_in_case_are_two_files: Fixture::new, |f| { f.write("A.TXT", "upper\n"); f.write("Dir/c.txt", "x\n"); };
    long_names_are_committed: Fixture::new, |f| f.write(format!("{0}/{0}/{0}", "n".repeat(250)), "x");
    empty_folders_and_files_are_handled: Fixture::new, |f| {
        fs::create_dir_all(f.path("empty/er")).unwrap();
        f.write("void", "");
    };
    ignored_files_stay_out: Fixture::new, |f| {
        f.write(".gitignore", "*.log\n/build/\n!keep.log\ndir/*\n!dir/c.txt\n");
        for name in ["x.log", "keep.log", "build/o", "dir/new", "dir/c.txt", "sub/y.log"] { f.write(name, "x"); }
    };
    tracked_files_count_even_if_ignored: Fixture::new, |f| {
        f.write(".gitignore", "a.txt\nother/\n");
        f.write("a.txt", "changed\n");
        f.write("other/f.txt", "changed\n");
        f.write("other/new", "ignored\n");
    };
    info_exclude_counts: Fixture::new, |f| { f.write(".git/info/exclude", "secret\n"); f.write("secret", "x"); f.write("open", "x"); };
    excludes_file_of_the_configuration_counts: Fixture::new, |f| {
        let path = f.folder().join("ignore");
        fs::write(&path, "*.tmp\n").unwrap();
        f.git(&["config", "core.excludesFile", path.to_str().unwrap()]);
        f.write("x.tmp", "x");
        f.write("y", "x");
    };
    line_ends_are_converted_by_attributes: Fixture::new, |f| {
        f.write(".gitattributes", "*.txt text\n*.bat text eol=crlf\n*.bin -text\n");
        for name in ["n.txt", "n.bat", "n.bin", "a.txt"] { f.write(name, "one\r\ntwo\r\n"); }
    };
    line_ends_are_converted_by_configuration: Fixture::new, |f| {
        f.git(&["config", "core.autocrlf", "input"]);
        f.write("n.txt", "one\r\ntwo\r\n");
        f.write("binary", b"\0\r\n");
    };
    line_ends_that_do_not_round_trip_are_stored: Fixture::new, |f| {
        f.write(".gitattributes", "* text=auto\n");
        f.write("mixed", "one\r\ntwo\nthree\r\n");
    };
    filters_run_on_what_is_committed: Fixture::new, |f| {
        f.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
        f.git(&["config", "filter.upper.smudge", "cat"]);
        f.write(".gitattributes", "*.up filter=upper\n*.id ident\n");
        f.write("x.up", "shout\n");
        f.write("x.id", "$Id: something $\n");
    };
    attributes_in_folders_count: Fixture::new, |f| {
        f.write("dir/.gitattributes", "*.txt text\n");
        f.write("dir/n.txt", "one\r\n");
        f.write("n.txt", "one\r\n");
    };
    staged_and_unstaged_changes_are_one_commit: Fixture::new, |f| {
        f.write("a.txt", "staged\n");
        f.write("staged-new", "staged\n");
        f.git(&["add", "-A"]);
        f.write("a.txt", "then changed\n");
        f.write("b.txt", "only changed\n");
        f.git(&["rm", "--quiet", "--cached", "dir/c.txt"]);
    };
    staged_file_that_is_gone_is_not_committed: Fixture::new, |f| {
        f.write("passing", "x");
        f.write("b.txt", "changed\n");
        f.git(&["add", "-A"]);
        f.remove("passing");
    };
    announced_file_is_committed: Fixture::new, |f| { f.write("announced", "x"); f.git(&["add", "--intent-to-add", "announced"]); };
    announced_file_that_is_gone_is_not_committed: Fixture::new, |f| {
        f.write("announced", "x");
        f.git(&["add", "--intent-to-add", "announced"]);
        f.remove("announced");
        f.write("b.txt", "x");
    };
    conflict_without_a_merge_is_settled_by_the_work_tree: conflict_fixture, |f| f.write("a.txt", "settled\n");
    submodule_at_a_new_commit_is_committed: with_submodule, |f| { f.write("sm/more", "x"); f.commit_in("sm"); };
    submodule_that_is_removed_is_committed: with_submodule, |f| { f.remove("sm"); f.write("b.txt", "x"); };
    submodule_that_becomes_a_file_is_committed: with_submodule, |f| { f.remove("sm"); f.write("sm", "file\n"); };
    what_is_dirty_inside_a_submodule_is_not_a_change: with_submodule, |f| { f.write("sm/inner.txt", "dirty"); f.write("b.txt", "x"); };
    submodule_that_is_staged_is_committed: Fixture::new, |f| {
        f.nested("sm");
        f.write(".gitmodules", "[submodule \"sm\"]\n\tpath = sm\n\turl = ./sm\n");
        f.git(&["add", "sm", ".gitmodules"]);
    };
    gitlink_that_no_gitmodules_names_is_followed: with_plain_gitlink, |f| { f.write("link/more", "x"); f.commit_in("link"); };
    first_commit_is_made: Fixture::unborn, |f| { f.write("a", "x"); f.write("b/c", "y"); };
    first_commit_takes_what_is_staged: Fixture::unborn, |f| { f.write("a", "x"); f.git(&["add", "a"]); f.write("b", "x"); };
    detached_head_is_advanced: || { let f = Fixture::new(); f.git(&["checkout", "--quiet", "--detach"]); f },
        |f| f.write("a.txt", "x");
    linked_work_tree_is_committed: linked_fixture, |f| { f.write("a.txt", "x"); f.write("new", "x"); };
    repository_with_its_git_folder_elsewhere_is_committed: || {
        let f = Fixture::with_init(&["--separate-git-dir=../elsewhere"]); f.write("a", "x"); f.commit_by_git("base"); f
    }, |f| { f.write("a", "changed"); f.write("n", "new"); };
    work_tree_of_a_submodule_is_committed: || {
        let f = with_submodule();
        let tree = f.path("sm");
        f.at(tree)
    }, |f| { f.write("inner.txt", "changed"); f.write("n", "new"); };
    packed_repository_is_committed: || { let f = Fixture::new(); f.git(&["gc", "--quiet"]); f.git(&["pack-refs", "--all"]); f },
        |f| { f.write("a.txt", "x"); f.write("new", "x"); };
    sha256_repository_is_committed: || {
        let f = Fixture::with_init(&["--object-format=sha256"]); f.write("a", "x"); f.write("d/b", "x"); f.commit_by_git("base"); f
    }, |f| { f.write("a", "changed"); f.write("n", "new"); };
    reftable_repository_is_committed: || {
        let f = Fixture::with_init(&["--ref-format=reftable"]); f.write("a", "x"); f.commit_by_git("base"); f
    }, |f| f.write("a", "changed");
    sparse_checkout_keeps_what_is_outside: || {
        let f = Fixture::new(); f.git(&["sparse-checkout", "set", "other"]); f
    }, |f| { f.write("other/f.txt", "changed\n"); f.write("other/new", "x"); };
    index_of_another_format_is_read: || {
        let f = Fixture::new();
        f.git(&["config", "feature.manyFiles", "true"]);
        f.git(&["update-index", "--index-version", "4", "--untracked-cache"]);
        f
    }, |f| { f.write("a.txt", "x"); f.write("new", "x"); };
    split_index_is_read: || {
        let f = Fixture::new();
        f.git(&["config", "core.splitIndex", "true"]);
        f.git(&["update-index", "--split-index"]);
        f
    }, |f| { f.write("a.txt", "x"); f.write("new", "x"); };
    missing_index_is_made_anew: || { let f = Fixture::new(); f.remove(".git/index"); f }, |f| f.write("a.txt", "x");
    shared_repository_is_committed: || { let f = Fixture::new(); f.git(&["config", "core.sharedRepository", "group"]); f },
        |f| f.write("a.txt", "x");
}

fn with_submodule() -> Fixture {
    let fixture = Fixture::new();
    fixture.nested("../origin");
    fixture.git(&["submodule", "--quiet", "add", "../origin", "sm"]);
    fixture.commit_by_git("submodule");
    fixture
}

fn with_plain_gitlink() -> Fixture {
    let fixture = Fixture::new();
    fixture.nested("link");
    fixture.git(&["add", "link"]);
    fixture.commit_by_git("gitlink");
    fixture
}

fn linked_fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
    let tree = fixture.folder().join("linked");
    fixture.at(tree)
}

fn conflict_fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "--quiet", "-b", "side"]);
    fixture.write("a.txt", "theirs\n");
    fixture.commit_by_git("theirs");
    fixture.git(&["checkout", "--quiet", "main"]);
    fixture.write("a.txt", "ours\n");
    fixture.commit_by_git("ours");
    fixture.try_git(&fixture.path(""), &["merge", "side"]);
    fixture.remove(".git/MERGE_HEAD");
    fixture
}

#[test]
fn nothing_to_commit_is_told_apart() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let before = fixture.head();
        assert!(matches!(commit(&fixture.with_engine(engine)), Err(GitError::NothingToCommit { .. })));
        assert_eq!(fixture.head(), before);
    }
}

#[test]
fn empty_commit_is_made_if_allowed() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let hold_back = HoldBackRule::nested_only();
        let request = CommitRequest { message: "empty", allow_empty: true, ..request(&fixture, &hold_back) };
        let committed = fixture.with_engine(engine).commit_all(&request).unwrap();
        assert_eq!(fixture.head(), committed.commit);
        assert_eq!(
            fixture.git(&["log", "-1", "--format=%B%an <%ae> %cn <%ce>"]),
            "empty\nRun Ner <runner@example.com> Run Ner <runner@example.com>"
        );
        fixture.assert_sound();
    }
}

#[test]
fn head_that_moved_is_not_committed_on() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let stale = fixture.head();
        fixture.write("a.txt", "theirs\n");
        let theirs = fixture.commit_by_git("theirs");
        fixture.write("a.txt", "ours\n");
        let hold_back = HoldBackRule::nested_only();
        let request = CommitRequest { parent: Some(stale), ..request(&fixture, &hold_back) };
        let error = fixture.with_engine(engine).commit_all(&request).unwrap_err();
        assert!(matches!(error, GitError::RefMoved { found, .. } if found == Some(theirs)), "{error}");
        assert_eq!(fixture.head(), theirs);
        assert_eq!(fixture.status(), " M a.txt");
    }
}

#[test]
fn merge_under_way_is_not_committed() {
    let fixture = conflict_fixture();
    fixture.write(".git/MERGE_HEAD", fixture.git(&["rev-parse", "side"]));
    let error = commit(&fixture.repository()).unwrap_err();
    assert!(matches!(error, GitError::OperationInProgress { .. }), "{error}");
}

#[test]
fn index_lock_is_an_obstacle_that_is_named() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "x");
        fixture.write(".git/index.lock", "");
        let _held = std::fs::File::open(fixture.path(".git/index.lock")).unwrap();
        let error = commit(&fixture.with_engine(engine)).unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(matches!(&error, GitError::Locked { path } if path.ends_with(".git/index.lock")), "{error}");
    }
}

#[test]
fn branch_lock_leaves_the_index_as_it_was() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "x");
    fixture.write(".git/refs/heads/main.lock", "");
    let held = std::fs::File::open(fixture.path(".git/refs/heads/main.lock")).unwrap();
    let error = commit(&fixture.repository()).unwrap_err();
    assert!(matches!(&error, GitError::Locked { path } if path.ends_with("refs/heads/main.lock")), "{error}");
    assert_eq!(fixture.status(), " M a.txt");
    drop(held);
    commit(&fixture.repository()).unwrap();
    fixture.assert_sound();
}

#[test]
fn hooks_are_not_run() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        for hook in ["pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"] {
            fixture.write(format!(".git/hooks/{hook}"), "#!/bin/sh\ntouch hook-ran\nexit 1\n");
            fixture.chmod(&format!(".git/hooks/{hook}"), 0o755);
        }
        fixture.write("a.txt", "x");
        commit(&fixture.with_engine(engine)).unwrap();
        assert!(!fixture.has("hook-ran"));
    }
}

#[test]
fn reflogs_tell_of_the_commit_as_git_does() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "x");
        commit(&fixture.with_engine(engine)).unwrap();
        for name in ["HEAD", "main"] {
            assert_eq!(fixture.git(&["reflog", "-1", "--format=%gs", name]), "commit: chore(loop): work");
        }
    }
}

#[test]
fn remembered_trees_stay_true_over_many_commits() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    for round in 0..6 {
        fixture.write("dir/sub/d.txt", format!("round {round}\n"));
        fixture.write(format!("round-{round}/x/y"), "new\n");
        if round > 1 {
            fixture.remove(&format!("round-{}", round - 2));
        }
        commit(&repository).unwrap();
        fixture.assert_sound();
    }
}

#[test]
fn kinds_of_changes_are_told_apart() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "changed\n");
        fixture.remove("b.txt");
        fixture.write("staged", "x");
        fixture.git(&["add", "staged"]);
        fixture.write("untracked", "x");
        fixture.remove("dir/c.txt");
        fixture.link("x", "dir/c.txt");
        let expected = [
            ("a.txt", ChangeKind::Modified),
            ("b.txt", ChangeKind::Deleted),
            ("dir/c.txt", ChangeKind::Retyped),
            ("staged", ChangeKind::Added),
            ("untracked", ChangeKind::Untracked),
        ];
        assert_eq!(fixture.list_changes(engine), expected.map(|(path, kind)| (path.to_owned(), kind)));
    }
}

#[test]
fn signed_commit_carries_the_signature() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let signer = fixture.folder().join("signer");
        let script = "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho 'a signature'\n";
        fixture.write("../signer", script);
        fixture.chmod("../signer", 0o755);
        fixture.git(&["config", "gpg.program", signer.to_str().unwrap()]);
        fixture.write("a.txt", "x");
        let commit_signed = |fixture: &Fixture| {
            let hold_back = HoldBackRule::nested_only();
            let request = CommitRequest { sign: true, ..request(fixture, &hold_back) };
            fixture.with_engine(engine).commit_all(&request)
        };
        let committed = commit_signed(&fixture).unwrap();
        let raw = fixture.git(&["cat-file", "-p", &committed.commit.to_string()]);
        assert!(raw.contains("gpgsig a signature"), "{raw}");
        assert!(raw.contains("author Run Ner <runner@example.com>"), "{raw}");
        assert!(raw.ends_with("\n\nchore(loop): work"), "{raw}");

        fixture.write("../signer", "#!/bin/sh\nexit 1\n");
        fixture.write("a.txt", "y");
        let error = commit_signed(&fixture).unwrap_err();
        assert!(matches!(error, GitError::CommandFailed { .. }), "{error}");
        assert_eq!(fixture.head(), committed.commit);
    }
}

#[test]
fn index_that_a_death_left_behind_head_is_brought_up_and_one_with_work_in_the_tree_is_not() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    let index = fs::read(fixture.path(".git/index")).unwrap();
    fixture.write("a.txt", "two\n");
    fixture.git(&["commit", "-q", "-a", "-m", "two"]);
    fs::write(fixture.path(".git/index"), index).unwrap();
    let repository = fixture.repository();
    assert!(!repository.list_changes().unwrap().is_empty());
    fixture.write("new.txt", "a person's\n");
    assert!(!repository.sync_index_with_head().unwrap());
    fs::remove_file(fixture.path("new.txt")).unwrap();
    assert!(repository.sync_index_with_head().unwrap());
    assert_eq!(repository.list_changes().unwrap(), []);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn index_is_brought_up_where_a_file_has_an_encoding_that_git_alone_knows() {
    for place in [".gitattributes", "dir/.gitattributes"] {
        let fixture = Fixture::new();
        fixture.write(place, "*.u text working-tree-encoding=UTF-16LE-BOM\n");
        fixture.write("dir/a.u", b"\xff\xfea\0\n\0");
        fixture.commit_by_git("Text");
        assert!(fixture.repository().sync_index_with_head().unwrap(), "{place}");
        fixture.write("dir/a.u", b"\xff\xfeb\0\n\0");
        assert!(!fixture.repository().sync_index_with_head().unwrap(), "{place}");
    }
}

#[test]
fn the_runners_own_key_signs_whatever_git_signs_with() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let key = fixture.folder().join("key");
        let mut keygen = std::process::Command::new("ssh-keygen");
        let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
        assert!(made.unwrap().success());
        for (name, value) in [("gpg.format", "openpgp"), ("user.signingKey", "nobody"), ("gpg.program", "false")] {
            fixture.git(&["config", name, value]);
        }
        fixture.git(&["config", "runner.signingKey", key.to_str().unwrap()]);
        fixture.write("a.txt", "x");
        let hold_back = HoldBackRule::nested_only();
        let request = CommitRequest { sign: true, ..request(&fixture, &hold_back) };
        let committed = fixture.with_engine(engine).commit_all(&request).unwrap();
        let raw = fixture.git(&["cat-file", "-p", &committed.commit.to_string()]);
        assert!(raw.contains("gpgsig -----BEGIN SSH SIGNATURE-----"), "{raw}");
    }
}
