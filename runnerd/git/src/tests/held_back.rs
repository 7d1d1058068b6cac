//! What stays out of commits: by the rule, because it is a repository, or because git cannot store it.

use std::fs;

use runner_os::retryable::Retryable as _;

use super::fixture::{ENGINES, Fixture, commit, commit_with, request};
use crate::repository::engine::GitEngine;
use crate::{ChangeKind, CommitOutcome, CommitRequest, GitError, HeldBackFiles, HoldBackRule, Repository};

fn hold_back_rule() -> HoldBackRule {
    HoldBackRule {
        names: [".env", ".env.*", "!*.example"].map(str::to_owned).to_vec(),
        max_file_bytes: 100,
        ..HoldBackRule::nested_only()
    }
}

fn held_back_paths(committed: &CommitOutcome) -> Vec<&str> {
    committed.held_back.iter().map(String::as_str).collect()
}

#[test]
fn secrets_large_files_and_nested_repositories_stay_in_the_work_tree_only() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".env", "secret");
        fixture.write("dir/.env.local", "secret");
        fixture.write(".env.example", "no secret");
        fixture.write("large file", "x".repeat(101));
        fixture.write("fits", "x".repeat(100));
        fixture.nested("vendor/lib");
        let committed = commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap();
        assert_eq!(held_back_paths(&committed), [".env", "dir/.env.local", "large file", "vendor/lib/"]);
        let listed = fixture.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(listed, ".env.example\nfits");
        assert!(fixture.has(".env") && fixture.has("vendor/lib/inner.txt"));
        fixture.assert_sound();
        assert_eq!(fixture.list_changes(engine), vec![]);
    }
}

#[test]
fn rule_holds_for_what_was_staged_and_not_for_what_is_tracked() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("tracked", "small");
        fixture.commit_by_git("tracked");
        fixture.write("tracked", "x".repeat(500));
        fixture.write("dir/.env", "secret");
        fixture.nested("nested");
        fixture.git(&["add", "-A"]);
        let committed = commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap();
        assert_eq!(held_back_paths(&committed), ["dir/.env", "nested/"]);
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "tracked");
        fixture.assert_sound();
    }
}

#[test]
fn held_back_files_are_named_until_they_are_gone_or_fit() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("one", "x".repeat(101));
        fixture.write("two", "x".repeat(101));
        fixture.write("three", "x".repeat(101));
        fixture.write("a.txt", "1");
        let repository = fixture.with_engine(engine);
        assert_eq!(held_back_paths(&commit_with(&repository, &hold_back_rule()).unwrap()), ["one", "three", "two"]);

        fixture.remove("one");
        fixture.write("two", "small now");
        fixture.write("a.txt", "2");
        let committed = commit_with(&repository, &hold_back_rule()).unwrap();
        assert_eq!(held_back_paths(&committed), ["three"]);
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "a.txt\ntwo");
        fixture.assert_sound();
    }
}

#[test]
fn lines_of_others_in_info_exclude_are_kept() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".git/info/exclude", "# mine\n*.mine\nno line end");
        fixture.write("x.mine", "ignored");
        fixture.write("a [b]*?\\ ", "x".repeat(101));
        fixture.write("a b", "in");
        commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap();
        fixture.assert_sound();
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "a b");

        fixture.remove("a [b]*?\\ ");
        fixture.write("a b", "changed");
        commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap();
        assert_eq!(fixture.read(".git/info/exclude"), "# mine\n*.mine\nno line end\n");
    }
}

#[test]
fn linked_work_trees_do_not_forget_each_others_files() {
    let fixture = Fixture::new();
    fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
    fixture.write("main-only", "x".repeat(101));
    fixture.write("a.txt", "1");
    commit_with(&fixture.repository(), &hold_back_rule()).unwrap();

    let tree = fixture.folder().join("linked");
    let linked = fixture.at(&tree);
    linked.write("linked-only", "x".repeat(101));
    linked.write("a.txt", "2");
    commit_with(&linked.repository(), &hold_back_rule()).unwrap();
    linked.assert_sound();
    let main = linked.folder().join("tree");
    linked.at(main).assert_sound();
}

#[test]
fn gitignore_that_readmits_a_secret_does_not_commit_it() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".gitignore", "!.env\n");
        fixture.write(".env", "secret");
        let committed = commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap();
        assert_eq!(held_back_paths(&committed), [".env"]);
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), ".gitignore");
    }
}

#[test]
fn what_git_cannot_store_is_named_and_the_rest_is_committed() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".GIT/config", "[core]\n");
        fixture.write("git~1", "x");
        fixture.write("dir/.Git", "x");
        fixture.fifo("pipe");
        fixture.write("fine", "x");
        let committed = commit(&fixture.with_engine(engine)).unwrap();
        assert_eq!(committed.unstorable, [".GIT/config", "dir/.Git", "git~1", "pipe"], "{engine:?}");
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "fine");
        fixture.assert_sound();
        assert_eq!(fixture.list_changes(engine), vec![]);
    }
}

#[test]
fn names_that_gits_check_refuses_anywhere_are_in_no_commit() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let names = [".g\u{200c}it", "dir/x\\.git", "x\\git~1"];
        for name in names {
            fixture.write(name, "x");
        }
        let links = [".gitmodules\u{feff}", "GITMOD~1", "dir/x\\.gitmodules"];
        for name in links {
            fixture.link("elsewhere", name);
        }
        fixture.write("fine", "x");
        let committed = commit(&fixture.with_engine(engine)).unwrap();
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "fine", "{engine:?}");
        assert_eq!(committed.unstorable.len(), names.len() + links.len(), "{engine:?}: {:?}", committed.unstorable);
        fixture.git(&["-c", "core.protectHFS=false", "fsck", "--strict", "--no-dangling"]);
        assert_eq!(fixture.list_changes(engine), vec![]);
    }
}

#[test]
fn names_that_some_file_system_takes_for_the_runners_folder_are_in_no_commit() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        for name in [".RUNNER/state/config.toml", ".runner\u{200c}/x", "runner~1", "sub/.Runner/fine"] {
            fixture.write(name, "x");
        }
        let committed = commit(&fixture.with_engine(engine)).unwrap();
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "sub/.Runner/fine", "{engine:?}");
        assert_eq!(committed.held_back.len(), 3, "{engine:?}: {:?}", committed.held_back);
        assert_eq!(fixture.list_changes(engine), vec![]);
    }
}

#[test]
fn a_folder_that_cannot_be_listed_is_named_where_git_is_concerned_with_it() {
    let fixture = Fixture::new();
    for name in [".gitignore", "kept/file", "ignored/forced"] {
        fixture.write(name, "ignored*/\n");
    }
    fixture.git(&["add", "-f", "."]);
    fixture.git(&["commit", "-q", "-m", "Keep files"]);
    let repository = fixture.with_engine(ENGINES[0]);
    let check = |name: &str| {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        repository.check_unlisted(&repository.work_dir().join(name), &denied)
    };
    check("ignored-data").unwrap();
    for name in ["kept", "new", "ignored"] {
        let refused = check(name).unwrap_err();
        assert_eq!(refused.to_string(), format!("the change of {name} cannot be stored: permission denied"));
        assert!(refused.remedy().is_some_and(|remedy| remedy.contains(&format!("/{name}"))), "{refused:?}");
    }
}

#[test]
fn unstorable_files_are_named_again_by_the_next_commit() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".GIT/config", "[core]\n");
        for content in ["1", "2"] {
            fixture.write("a.txt", content);
            let committed = commit(&fixture.with_engine(engine)).unwrap();
            assert_eq!(committed.unstorable, [".GIT/config"]);
        }
    }
}

/// Commits although the change of a tracked file is left out, as when a run is cancelled.
fn commit_without_refused(repository: &Repository, fixture: &Fixture) -> CommitOutcome {
    let nothing = HoldBackRule::nested_only();
    repository.commit_all(&CommitRequest { keeps_unstorable: true, ..request(fixture, &nothing) }).unwrap()
}

/// Fails to commit, and returns the file, the reason and the remedy.
fn cannot_store(repository: &Repository) -> (String, String, String) {
    match commit(repository).unwrap_err() {
        GitError::UnstorableChange { file, why, remedy } => (file, why, remedy),
        error => panic!("{error}"),
    }
}

#[test]
fn tracked_file_that_became_a_pipe_is_in_the_way_of_a_commit() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.remove("a.txt");
        fixture.fifo("a.txt");
        fixture.write("b.txt", "changed\n");
        let before = fixture.head();
        let (file, why, remedy) = cannot_store(&fixture.with_engine(engine));
        assert_eq!((file.as_str(), why.as_str()), ("a.txt", "it is neither a file nor a link"), "{engine:?}");
        assert_eq!(remedy, format!("move away what is in the place of {}", fixture.path("a.txt").display()));
        assert_eq!(fixture.head(), before);
        let committed = commit_without_refused(&fixture.with_engine(engine), &fixture);
        assert_eq!(committed.unstorable, ["a.txt"], "{engine:?}");
        assert_eq!(fixture.git(&["show", "HEAD:a.txt"]), "content of a.txt");
        assert_eq!(fixture.git(&["show", "HEAD:b.txt"]), "changed");
    }
}

#[test]
fn file_whose_required_filter_fails_is_named() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["config", "filter.broken.clean", "false"]);
        fixture.git(&["config", "filter.broken.required", "true"]);
        fixture.write(".gitattributes", "*.f filter=broken\n");
        fixture.write("x.f", "x");
        let repository = fixture.with_engine(engine);
        let held_back =
            repository.apply_hold_back(&HoldBackRule::nested_only(), &mut repository.list_changes().unwrap()).unwrap();
        assert_eq!((held_back.paths, held_back.unstorable), (vec!["x.f".to_owned()], vec![]), "{engine:?}");
        let committed = commit(&repository).unwrap();
        assert_eq!(committed.unstorable, ["x.f"], "{engine:?}");
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), ".gitattributes");
        fixture.git(&["config", "filter.broken.clean", "cat"]);
        let repository = fixture.with_engine(engine);
        let mut changes = repository.list_changes().unwrap();
        assert_eq!(
            repository.apply_hold_back(&HoldBackRule::nested_only(), &mut changes).unwrap(),
            HeldBackFiles::default()
        );
        assert_eq!(commit(&repository).unwrap().unstorable, Vec::<String>::new(), "{engine:?}");
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "x.f");
    }
}

#[test]
fn tracked_file_whose_change_a_required_filter_refuses_is_in_the_way_of_a_commit_until_it_is_mended() {
    for (engine, key) in ENGINES.into_iter().flat_map(|engine| [(engine, "clean"), (engine, "process")]) {
        let fixture = Fixture::new();
        fixture.write("dir/.gitattributes", "*.f filter=broken\n");
        for name in ["dir/w.f", "dir/x.f", "dir/y.f"] {
            fixture.write(name, "old\n");
        }
        fixture.commit_by_git("tracked");
        fixture.git(&["config", &format!("filter.broken.{key}"), "no-such-program"]);
        fixture.git(&["config", "filter.broken.required", "true"]);
        fixture.write("dir/x.f", "changed\n");
        fixture.write("b.txt", "changed too\n");
        fixture.remove("dir/y.f");
        let expected = [
            ("b.txt".to_owned(), ChangeKind::Modified),
            ("dir/x.f".to_owned(), ChangeKind::Modified),
            ("dir/y.f".to_owned(), ChangeKind::Deleted),
        ];
        assert_eq!(fixture.list_changes(engine), expected, "{engine:?}, {key}");
        let before = fixture.head();
        let (file, why, remedy) = cannot_store(&fixture.with_engine(engine));
        assert_eq!(file, "dir/x.f", "{engine:?}, {key}");
        assert!(why.contains("clean filter 'broken' failed"), "{why}");
        assert_eq!(remedy, "make the filter broken of git's configuration work (`no-such-program`)");
        assert_eq!((fixture.head(), fixture.read("dir/x.f")), (before, "changed\n".to_owned()));

        let committed = commit_without_refused(&fixture.with_engine(engine), &fixture);
        assert_eq!(committed.unstorable, ["dir/x.f"], "{engine:?}, {key}");
        assert_eq!(fixture.git(&["show", "HEAD:dir/x.f", "HEAD:b.txt"]), "old\nchanged too");

        fixture.git(&["config", "--unset", &format!("filter.broken.{key}")]);
        fixture.git(&["config", "filter.broken.clean", "cat"]);
        assert_eq!(commit(&fixture.with_engine(engine)).unwrap().unstorable, Vec::<String>::new(), "{engine:?}, {key}");
        assert_eq!(fixture.git(&["show", "HEAD:dir/x.f"]), "changed", "{engine:?}, {key}");
        fixture.assert_sound();
    }
}

#[test]
fn text_that_is_not_in_its_declared_encoding_is_named_or_in_the_way() {
    for (engine, place) in ENGINES.into_iter().flat_map(|engine| [(engine, ""), (engine, "dir/")]) {
        let fixture = Fixture::new();
        let attributes = format!("{place}.gitattributes");
        let old = format!("{place}old.u");
        let new = format!("{place}new.u");
        fixture.write(&attributes, "*.u working-tree-encoding=UTF-16\n");
        fixture.write(&old, b"\xff\xfea\0\n\0");
        fixture.commit_by_git("tracked");
        fixture.write(&new, "no UTF-16\n");
        fixture.write("fine", "x");
        assert_eq!(commit(&fixture.with_engine(engine)).unwrap().unstorable, [new.as_str()], "{engine:?}");
        fixture.write(&old, "no UTF-16 either\n");
        let (file, why, _) = cannot_store(&fixture.with_engine(engine));
        assert_eq!(file, old, "{engine:?}");
        assert!(why.contains("UTF-16"), "{why}");
        fixture.write(&old, b"\xff\xfeb\0\n\0");
        commit(&fixture.with_engine(engine)).unwrap();
        assert_eq!(fixture.git(&["show", &format!("HEAD:{old}")]), "b", "{engine:?}");
    }
}

#[test]
fn file_that_the_object_database_does_not_take_is_an_obstacle_and_not_unstorable() {
    for (engine, content) in ENGINES.into_iter().flat_map(|engine| [(engine, "work"), (engine, "nowhere")]) {
        let fixture = Fixture::new();
        fixture.write("new", "work");
        fixture.link("nowhere", "link");
        fixture.block_object(content);
        commit(&fixture.with_engine(engine)).unwrap_err();
        assert_eq!(fixture.git(&["log", "-1", "--format=%s"]), "base", "{engine:?}");
    }
}

#[test]
fn what_the_object_database_did_not_take_is_committed_once_it_takes_it() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("new", "work");
        fixture.link("nowhere", "link");
        let blocked = ["work", "nowhere"].map(|content| fixture.block_object(content));
        let repository = fixture.with_engine(engine);
        commit(&repository).unwrap_err();
        for file in blocked {
            commit(&repository).unwrap_err();
            fs::remove_file(file).unwrap();
        }
        assert_eq!(commit(&repository).unwrap().unstorable, Vec::<String>::new());
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "link\nnew");
        fixture.assert_sound();
    }
}

#[test]
fn index_that_cannot_be_locked_for_the_program_is_an_obstacle_and_nothing_is_unstorable() {
    let fixture = Fixture::new();
    fixture.write("new", "work");
    fixture.write(".git/index.lock", "");
    let held = std::fs::File::open(fixture.path(".git/index.lock")).unwrap();
    let error = commit(&fixture.with_engine(GitEngine::Git)).unwrap_err();
    assert!(error.is_transient(), "{error}");
    drop(held);
    assert_eq!(commit(&fixture.with_engine(GitEngine::Git)).unwrap().unstorable, Vec::<String>::new());
    assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "new");
}

#[test]
fn unreadable_files_are_named_and_the_rest_is_committed() {
    if nix::unistd::geteuid().is_root() {
        return;
    }
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("shut/inside", "x");
        for (path, mode) in [("new", 0o000), ("a.txt", 0o000), ("shut", 0o000)] {
            if !fixture.has(path) {
                fixture.write(path, "x");
            }
            fixture.chmod(path, mode);
        }
        fixture.write("fine", "x");
        assert_eq!(cannot_store(&fixture.with_engine(engine)).0, "a.txt", "{engine:?}");
        let committed = commit_without_refused(&fixture.with_engine(engine), &fixture);
        assert_eq!(committed.unstorable, ["a.txt", "new"], "{engine:?}");
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), "fine");
        fixture.chmod("shut", 0o755);
    }
}

#[test]
fn repository_that_becomes_a_submodule_is_held_back_no_longer() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.nested("lib");
        fixture.write("a.txt", "x");
        assert_eq!(held_back_paths(&commit(&fixture.with_engine(engine)).unwrap()), ["lib/"]);
        fixture.write(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = ./lib\n");
        fixture.git(&["add", "--force", "lib"]);
        assert_eq!(held_back_paths(&commit(&fixture.with_engine(engine)).unwrap()), Vec::<&str>::new());
        assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), ".gitmodules\nlib");
        fixture.assert_sound();
    }
}

#[test]
fn files_in_the_place_of_a_submodule_are_stored_as_files() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let head = fixture.git(&["rev-parse", "HEAD"]);
        // It was a folder of files whose repository has been removed.
        for name in ["dir", "vendored"] {
            fixture.git(&["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", name]);
            fixture.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},{name}")]);
        }
        fixture.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},empty")]);
        fixture.git(&["commit", "--quiet", "-m", "submodules"]);
        fixture.write("vendored/lib.txt", "theirs");
        fs::create_dir(fixture.path("empty")).unwrap();
        assert_eq!(held_back_paths(&commit(&fixture.with_engine(engine)).unwrap()), Vec::<&str>::new(), "{engine:?}");
        let tree = fixture.git(&["ls-tree", "-r", "--name-only", "HEAD", "dir", "vendored", "empty"]);
        assert_eq!(tree, "dir/c.txt\ndir/sub/d.txt\ndir/sub/e.txt\nempty\nvendored/lib.txt", "{engine:?}");
        fixture.assert_sound();
    }
}

#[test]
fn file_that_somebody_committed_is_held_back_no_longer() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".env", "secret");
        fixture.write("a.txt", "x");
        assert_eq!(held_back_paths(&commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap()), [".env"]);
        fixture.git(&["add", "--force", ".env"]);
        fixture.git(&["commit", "--quiet", "-m", "a person's"]);
        fixture.write("a.txt", "y");
        assert_eq!(
            held_back_paths(&commit_with(&fixture.with_engine(engine), &hold_back_rule()).unwrap()),
            Vec::<&str>::new()
        );
        fixture.assert_sound();
    }
}

#[test]
fn files_are_hidden_before_anything_is_committed() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write(".env", "secret");
        fixture.write("large", "x".repeat(101));
        fixture.nested("lib");
        fixture.write("fine", "x");
        let repository = fixture.with_engine(engine);
        assert_eq!(
            repository.apply_hold_back(&hold_back_rule(), &mut repository.list_changes().unwrap()).unwrap().paths,
            [".env", "large", "lib/"]
        );
        assert_eq!(fixture.status(), "?? fine");
        fixture.remove("large");
        assert_eq!(
            repository.apply_hold_back(&hold_back_rule(), &mut repository.list_changes().unwrap()).unwrap().paths,
            [".env", "lib/"]
        );
    }
}
