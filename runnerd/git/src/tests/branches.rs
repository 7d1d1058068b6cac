//! Finding repositories, HEAD, branches, references and locks.

use std::fs;

use runner_os::retryable::Retryable as _;

use super::fixture::{ENGINES, Fixture};
use crate::repository::engine::GitEngine;
use crate::repository::handle::ConfigSources;
use crate::{BranchUseKind, GitError, Head, Operation, RefChange, Repository};

fn branch_head(name: &str, fixture: &Fixture) -> Head {
    Head::Branch { name: name.to_owned(), commit: Some(fixture.head()) }
}

#[test]
fn repository_is_found_from_any_folder_below() {
    let fixture = Fixture::new();
    let found = Repository::discover_with(&fixture.path("dir/sub"), ConfigSources::RepositoryOnly).unwrap();
    assert_eq!(found.work_dir(), fixture.path("").canonicalize().unwrap());
    assert_eq!(found.git_dir(), found.common_dir());
}

#[test]
fn linked_work_tree_has_a_git_folder_of_its_own() {
    let fixture = Fixture::new();
    fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
    let main = fixture.repository();
    let tree = fixture.folder().join("linked");
    let linked = fixture.at(tree).repository();
    assert_eq!(linked.common_dir(), main.common_dir());
    assert_eq!(linked.git_dir(), main.common_dir().join("worktrees/linked"));
}

#[test]
fn bare_repositories_and_plain_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = Repository::discover_with(folder.path(), ConfigSources::RepositoryOnly).unwrap_err();
    assert!(matches!(error, GitError::NoRepository { .. }), "{error}");
    let fixture = Fixture::new();
    fixture.git(&["clone", "--quiet", "--bare", ".", "../bare"]);
    let error = Repository::discover_with(&fixture.folder().join("bare"), ConfigSources::RepositoryOnly).unwrap_err();
    assert!(matches!(error, GitError::BareRepository { .. }), "{error}");
}

#[test]
fn repository_of_another_user_is_refused() {
    let fixture = Fixture::new();
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for path in ["", ".git"] {
        std::os::unix::fs::chown(fixture.path(path), Some(12_345), None).unwrap();
    }
    let error = Repository::discover_with(&fixture.path(""), ConfigSources::RepositoryOnly).unwrap_err();
    let GitError::ForeignOwner { path } = error else { panic!("{error}") };
    assert_eq!(path, fixture.path("").canonicalize().unwrap(), "git expects the path of the working tree");
}

#[test]
fn redirected_common_folder_is_refused() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    fixture.git(&["clone", "--quiet", ".", "../other"]);
    let other = fixture.folder().join("other/.git");
    fixture.write(".git/commondir", other.to_str().unwrap());
    let error = repository.head().unwrap_err();
    assert!(matches!(error, GitError::GitLinkChanged { .. }), "{error}");
}

#[test]
fn head_is_a_branch_unborn_or_detached() {
    for engine in ENGINES {
        let unborn = Fixture::unborn();
        assert_eq!(unborn.with_engine(engine).head().unwrap(), Head::Branch { name: "main".to_owned(), commit: None });
        let fixture = Fixture::new();
        assert_eq!(fixture.with_engine(engine).head().unwrap(), branch_head("main", &fixture));
        fixture.git(&["checkout", "--quiet", "--detach"]);
        let commit = fixture.head();
        assert_eq!(fixture.with_engine(engine).head().unwrap(), Head::Detached { commit });
    }
}

#[test]
fn branch_starts_at_head_with_changes_carried_along() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.write("a.txt", "changed\n");
        fixture.write("new", "x");
        let head = fixture.head();
        fixture.with_engine(engine).start_branch("runner/x", &head).unwrap();
        assert_eq!(fixture.with_engine(engine).head().unwrap(), branch_head("runner/x", &fixture));
        assert_eq!(fixture.head(), head);
        assert_eq!(fixture.status(), "M a.txt\n?? new".replace("M a", " M a"));
        assert_eq!(fixture.git(&["reflog", "-1", "--format=%gs"]), "checkout: moving from main to runner/x");
        fixture.git(&["stash", "--quiet", "-u"]);
        fixture.git(&["checkout", "--quiet", "-"]);
        assert_eq!(fixture.git(&["branch", "--show-current"]), "main");
    }
}

#[test]
fn branch_starts_from_a_detached_head_and_in_a_linked_work_tree() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["worktree", "add", "--quiet", "--detach", "../linked"]);
        let tree = fixture.folder().join("linked");
        let linked = fixture.at(tree);
        linked.with_engine(engine).start_branch("runner/x", &linked.head()).unwrap();
        assert_eq!(linked.with_engine(engine).head().unwrap(), branch_head("runner/x", &linked));
        let main = linked.folder().join("tree");
        assert_eq!(linked.git_in(&main, &["branch", "--show-current"]), "main");
    }
}

#[test]
fn branch_starts_at_another_commit_with_its_files() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let base = fixture.head();
        fixture.write("a.txt", "later\n");
        fixture.commit_by_git("later");
        fixture.with_engine(engine).start_branch("runner/x", &base).unwrap();
        assert_eq!(fixture.head(), base);
        assert_eq!(fixture.read("a.txt"), "content of a.txt\n");
        fixture.assert_sound();
    }
}

#[test]
fn branch_that_exists_is_not_started_again() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["branch", "runner/x"]);
        let error = fixture.with_engine(engine).start_branch("runner/x", &fixture.head()).unwrap_err();
        assert!(matches!(error, GitError::BranchExists { .. }), "{error}");
    }
}

#[test]
fn switch_refuses_to_overwrite_changes_and_ignored_files() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["checkout", "--quiet", "-b", "side"]);
        fixture.write("a.txt", "side\n");
        fixture.write("precious.log", "from side\n");
        fixture.commit_by_git("side");
        fixture.git(&["checkout", "--quiet", "main"]);
        let repository = fixture.with_engine(engine);

        fixture.write("a.txt", "uncommitted\n");
        assert!(repository.switch_branch("side").is_err());
        fixture.write("a.txt", "content of a.txt\n");
        fixture.write(".git/info/exclude", "*.log\n");
        fixture.write("precious.log", "mine\n");
        assert!(repository.switch_branch("side").is_err());
        assert_eq!(fixture.read("precious.log"), "mine\n");

        fixture.remove("precious.log");
        repository.switch_branch("side").unwrap();
        assert_eq!(fixture.read("a.txt"), "side\n");
        repository.switch_branch("side").unwrap();
        let error = repository.switch_branch("nowhere").unwrap_err();
        assert!(matches!(error, GitError::MissingBranch { .. }), "{error}");
    }
}

#[test]
fn switch_to_a_branch_at_the_same_commit_keeps_changes() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["branch", "runner/x"]);
        fixture.write("a.txt", "changed\n");
        fixture.with_engine(engine).switch_branch("runner/x").unwrap();
        assert_eq!(fixture.with_engine(engine).head().unwrap(), branch_head("runner/x", &fixture));
        assert_eq!(fixture.status(), " M a.txt");
    }
}

#[test]
fn branch_of_another_work_tree_is_not_taken_from_it() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["worktree", "add", "--quiet", "-b", "runner/x", "../linked"]);
        assert!(fixture.with_engine(engine).switch_branch("runner/x").is_err());
        assert_eq!(fixture.with_engine(engine).head().unwrap(), branch_head("main", &fixture));
    }
}

#[test]
fn references_are_listed_and_found() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let head = fixture.head();
        fixture.git(&["branch", "runner/b"]);
        fixture.git(&["branch", "runner/a"]);
        fixture.git(&["update-ref", "refs/remotes/origin/runner/c", "HEAD"]);
        fixture.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/runner/c"]);
        fixture.git(&["pack-refs", "--all"]);
        let repository = fixture.with_engine(engine);
        repository.set_runner_ref("refs/runner/kept", &head).unwrap();

        let branches = repository.list_branches("runner/").unwrap();
        assert_eq!(branches, [("runner/a".to_owned(), head), ("runner/b".to_owned(), head)]);
        assert_eq!(repository.find_branch_tip("runner/a").unwrap(), Some(head));
        assert_eq!(repository.find_branch_tip("runner/none").unwrap(), None);
        assert_eq!(repository.find_branch_tip("not..a name").unwrap(), None);
        assert_eq!(repository.find_remote_branch("origin", "runner/c").unwrap(), Some(head));
        let refs = repository.list_refs().unwrap();
        let names: Vec<&str> = refs.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "HEAD",
                "refs/heads/main",
                "refs/heads/runner/a",
                "refs/heads/runner/b",
                "refs/remotes/origin/HEAD",
                "refs/remotes/origin/runner/c",
                "refs/runner/kept"
            ]
        );
        assert_eq!(refs["HEAD"], "ref: refs/heads/main");
        assert_eq!(refs["refs/remotes/origin/HEAD"], "ref: refs/remotes/origin/runner/c");
        assert_eq!(refs["refs/runner/kept"], head.to_string());
    }
}

#[test]
fn operations_under_way_are_told_apart() {
    let fixture = Fixture::new();
    let base = fixture.head();
    fixture.git(&["checkout", "--quiet", "-b", "side"]);
    fixture.write("a.txt", "side\n");
    fixture.commit_by_git("side");
    fixture.git(&["checkout", "--quiet", "main"]);
    fixture.write("a.txt", "main\n");
    fixture.commit_by_git("main");
    let repository = fixture.repository();
    assert_eq!(repository.operation(), None);
    let side = ["merge", "rebase", "cherry-pick"];
    let operations = [Operation::Merge, Operation::Rebase, Operation::CherryPick];
    for (command, operation) in side.into_iter().zip(operations) {
        fixture.try_git(&fixture.path(""), &[command, "side"]);
        assert_eq!(repository.operation(), Some(operation));
        fixture.git(&[command, "--abort"]);
        assert_eq!(repository.operation(), None);
    }
    fixture.git(&["bisect", "start", "HEAD", &base.to_string()]);
    assert_eq!(repository.operation(), Some(Operation::Bisect));
}

#[test]
fn stale_locks_are_removed_and_named() {
    let fixture = Fixture::new();
    let locks = [
        "HEAD.lock",
        "index.lock",
        "packed-refs.lock",
        "refs/heads/main.lock",
        "refs/heads/runner/other.lock",
        "refs/runner/rescue/other/0001.lock",
    ];
    for lock in locks {
        fixture.write(format!(".git/{lock}"), "");
    }
    let repository = fixture.repository();
    let mut cleared = repository.clear_leftovers(&[]).unwrap();
    cleared.sort();
    assert_eq!(cleared, locks.map(|lock| repository.git_dir().join(lock)));
    assert_eq!(repository.clear_leftovers(&[]).unwrap(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn lock_that_a_process_has_open_stays() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let path = repository.git_dir().join("index.lock");
    let open = fs::File::create(&path).unwrap();
    let error = repository.clear_leftovers(&[]).unwrap_err();
    assert!(matches!(&error, GitError::Locked { path: named } if *named == path), "{error}");
    assert!(error.is_transient());
    drop(open);
    assert_eq!(repository.clear_leftovers(&[]).unwrap(), [path]);
}

#[test]
fn identity_is_the_configured_one_or_none() {
    let fixture = Fixture::new();
    let identity = fixture.repository().identity().unwrap();
    assert_eq!((identity.name.as_str(), identity.email.as_str()), ("A U Thor", "author@example.com"));
    fixture.git(&["config", "--unset", "user.email"]);
    assert_eq!(fixture.repository().identity(), None);
}

#[test]
fn repository_that_is_gone_is_named() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    fixture.remove(".git");
    let error = repository.list_changes().unwrap_err();
    assert!(matches!(&error, GitError::GitDirMissing { work_dir, .. } if work_dir == repository.work_dir()), "{error}");
    assert!(fixture.has("a.txt"));
}

#[test]
fn program_works_where_the_library_differs_from_git() {
    let plain = Fixture::new();
    let chosen = |fixture: &Fixture| {
        let repository = fixture.repository();
        repository.choose_engine(&repository.open().unwrap())
    };
    assert_eq!(chosen(&plain), GitEngine::Gix);
    for setting in ["core.sparseCheckout", "core.ignoreCase", "core.sharedRepository"] {
        let fixture = Fixture::new();
        fixture.git(&["config", setting, "true"]);
        assert_eq!(chosen(&fixture), GitEngine::Git, "{setting}");
    }
    plain.write(".gitattributes", "*.txt working-tree-encoding=UTF-16\n");
    assert_eq!(chosen(&plain), GitEngine::Git);
}

#[test]
fn lock_that_a_killed_process_has_left_keeps_no_reference_from_being_moved() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let head = repository.head().unwrap().commit().unwrap();
    for name in ["refs/runner/review/x/0001", "refs/runner/moved/x/0001/heads/a/b/c"] {
        fixture.write(format!(".git/{name}.lock"), "");
        repository.set_runner_ref(name, &head).unwrap();
        assert_eq!(repository.list_refs().unwrap()[name], head.to_string());
    }
    for lock in ["HEAD.lock", "index.lock"] {
        fixture.write(format!(".git/{lock}"), "");
    }
    repository.start_branch("runner/x", &head).unwrap();
    repository.sync_index_with_head().unwrap();
    assert_eq!(repository.list_locks(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn temporary_files_that_nobody_has_open_are_removed() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let dead = [".git/.HEAD.abc123.runnerd-tmp", ".git/objects/.tmpAbC123", ".git/info/.exclude.a.runnerd-tmp"];
    for file in dead {
        fixture.write(file, "");
    }
    let others = [".git/objects/.tmp", ".git/tmp_obj_abc", ".git/.hidden"];
    for file in others {
        fixture.write(file, "");
    }
    let open = fs::File::create(fixture.path(".git/objects/.tmpXyZ789")).unwrap();
    let mut cleared = repository.clear_leftovers(&[]).unwrap();
    cleared.sort();
    let mut expected = dead.map(|file| fixture.path(file));
    expected.sort();
    assert_eq!(cleared, expected);
    drop(open);
    assert_eq!(repository.clear_leftovers(&[]).unwrap(), [fixture.path(".git/objects/.tmpXyZ789")]);
    assert!(others.iter().all(|file| fixture.path(file).exists()));
}

#[test]
fn references_are_all_there_while_somebody_packs_them() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let head = repository.head().unwrap().commit().unwrap();
    let before = repository.snapshot_git_dir(repository.work_dir()).unwrap();
    let names: Vec<String> = (0..200).map(|number| format!("refs/runner/many/{number}")).collect();
    let unpack = || {
        for name in &names {
            fixture.write(".git/new-reference", format!("{head}\n"));
            fs::create_dir_all(fixture.path(".git/refs/runner/many")).unwrap();
            fs::rename(fixture.path(".git/new-reference"), fixture.path(format!(".git/{name}"))).unwrap();
        }
    };
    unpack();
    std::thread::scope(|scope| {
        let packing = scope.spawn(|| {
            for _ in 0..5 {
                fixture.git(&["pack-refs", "--all", "--prune"]);
                unpack();
            }
        });
        while !packing.is_finished() {
            let refs = repository.list_refs().unwrap();
            let missing: Vec<&String> = names.iter().filter(|name| !refs.contains_key(*name)).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    });
    assert_eq!(repository.find_moved_refs(&before).unwrap(), []);
}

#[test]
fn reference_is_not_made_where_another_leaves_no_room_be_it_packed_or_not() {
    for (existing, branch) in [("runner", "runner/x"), ("runner/x/y", "runner/x")] {
        for (is_packed, engine) in [(false, ENGINES[0]), (false, ENGINES[1]), (true, ENGINES[0]), (true, ENGINES[1])] {
            let fixture = Fixture::new();
            fixture.git(&["branch", existing]);
            if is_packed {
                fixture.git(&["pack-refs", "--all"]);
            }
            let repository = fixture.with_engine(engine);
            let before = fixture.git(&["for-each-ref"]);
            let head = fixture.head();
            let change = RefChange { name: format!("refs/heads/{branch}"), from: None, to: head };
            let refusals = [
                repository.start_branch(branch, &head),
                repository.set_runner_ref(&change.name, &head),
                repository.update_refs("test", std::slice::from_ref(&change)),
            ];
            for refusal in refusals {
                let error = refusal.unwrap_err();
                let message = format!("the branch `{existing}` is in the way of `{branch}`: git cannot hold both");
                assert_eq!(error.to_string(), message, "{engine:?}, packed: {is_packed}");
                assert!(!error.is_transient());
                let other = format!("{}-old", existing.replace('/', "-"));
                let place = fixture.path("").canonicalize().unwrap();
                let remedy = format!("rename it: git -C {} branch -m {existing} {other}", place.display());
                assert_eq!(error.remedy(), Some(remedy));
            }
            assert_eq!(fixture.git(&["for-each-ref"]), before);
            fixture.git(&["branch", "-m", existing, "aside"]);
            repository.start_branch(branch, &head).unwrap();
            fixture.assert_sound();
        }
    }
}

#[test]
fn branch_in_the_way_is_given_a_name_that_is_free() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "runner"]);
    fixture.git(&["branch", "runner-old/x"]);
    fixture.git(&["branch", "runner-old-2"]);
    let error = fixture.repository().check_ref_conflict("refs/heads/runner/x").unwrap_err();
    assert!(error.remedy().unwrap().ends_with(" branch -m runner runner-old-3"), "{error}");
    fixture.repository().check_ref_conflict("refs/heads/runners/x").unwrap();
}

#[test]
fn what_is_no_branch_is_in_the_way_by_its_whole_name() {
    let fixture = Fixture::new();
    fixture.git(&["update-ref", "refs/notes/raw", "HEAD"]);
    let error = fixture.repository().check_ref_conflict("refs/notes/raw/x/0001").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the reference `refs/notes/raw` is in the way of `refs/notes/raw/x/0001`: git cannot hold both"
    );
    assert!(error.remedy().unwrap().ends_with(" for-each-ref refs/notes/raw"));
}

#[test]
fn what_is_in_the_way_of_a_reference_of_the_runner_is_renamed() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        let head = fixture.head();
        let name = "refs/runner/raw/x/0001";
        fixture.git(&["update-ref", "refs/runner/raw", "HEAD"]);
        fixture.git(&["symbolic-ref", "refs/runner/raw2", "refs/heads/main"]);
        fixture.git(&["pack-refs", "--all"]);
        let repository = fixture.repository().with_engine(engine);
        repository.set_runner_ref(name, &head).unwrap();
        repository.set_runner_ref("refs/runner/raw2/x", &head).unwrap();
        let kept = fixture.git(&["for-each-ref", "--format=%(refname)", "refs/runner", "refs/moved"]);
        let moved = |ending: &str| format!("refs/moved/runner/{ending}-{head}");
        let expected = [moved("raw"), moved("raw2"), name.to_owned(), "refs/runner/raw2/x".to_owned()];
        assert_eq!(kept.trim(), expected.join("\n"), "{engine:?}");
    }
}

#[test]
fn head_of_a_bare_repository_uses_no_branch() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["branch", "side"]);
        fixture.git(&["clone", "--quiet", "--bare", ".", "../x/.bare"]);
        let bare = fixture.folder().join("x/.bare");
        fixture.git_in(&bare, &["worktree", "add", "--quiet", "../side", "side"]);
        let tree = fixture.folder().join("x/side");
        let fixture = fixture.at(tree);
        let repository = fixture.with_engine(engine);
        assert_eq!(repository.find_branch_use("main").unwrap(), None, "{engine:?}");
        assert_eq!(repository.find_branch_use("side").unwrap().unwrap().kind, BranchUseKind::CheckedOut, "{engine:?}");
        repository.switch_branch("main").unwrap();
        assert_eq!(
            repository.find_branch_use("main").unwrap().unwrap().work_tree,
            fixture.path("").canonicalize().unwrap()
        );
        // A person works in it nevertheless.
        fs::write(bare.join("index"), "").unwrap();
        assert_eq!(repository.find_branch_users("main").unwrap().len(), 2);
    }
}

#[test]
fn work_tree_that_was_removed_uses_its_branch_only_where_it_is_locked() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
        let repository = fixture.with_engine(engine);
        let linked = fixture.folder().join("linked");
        let is_used = || repository.find_branch_use("side").unwrap().is_some();
        assert!(is_used());
        fixture.git(&["worktree", "lock", "../linked"]);
        fs::remove_dir_all(&linked).unwrap();
        assert!(is_used());
        let error = repository.switch_branch("side").unwrap_err();
        let message = format!("branch side is in use in {}, which is locked and not there", linked.display());
        assert_eq!(error.to_string(), message);
        let place = fixture.path("").canonicalize().unwrap();
        let place = place.display();
        let linked = linked.display();
        let remedy = format!("git -C {place} worktree unlock {linked} && git -C {place} worktree prune");
        assert_eq!(error.remedy().as_ref(), Some(&remedy));
        fixture.git(&["worktree", "unlock", "../linked"]);
        assert!(!is_used());
        repository.switch_branch("side").unwrap();
        assert_eq!(repository.head().unwrap(), branch_head("side", &fixture));
        fixture.assert_sound();
    }
}

#[test]
fn branch_that_another_work_tree_has_is_not_switched_to() {
    for engine in ENGINES {
        let fixture = Fixture::new();
        fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
        let error = fixture.with_engine(engine).switch_branch("side").unwrap_err();
        let linked = fixture.folder().join("linked");
        assert_eq!(error.to_string(), format!("branch side is in use in {}", linked.display()));
        assert_eq!(error.remedy(), Some(format!("git -C {} switch --detach", linked.display())));
        assert_eq!(fixture.repository().head().unwrap(), branch_head("main", &fixture));
    }
}

#[test]
fn work_tree_that_was_moved_is_told_with_the_command_that_moves_it_back() {
    let fixture = Fixture::new();
    fixture.git(&["worktree", "add", "--quiet", "-b", "side", "../linked"]);
    let common = fixture.path(".git").canonicalize().unwrap();
    let from = fixture.folder().join("linked");
    let to = fixture.folder().join("moved");
    let main = fixture.path("");
    let fixture = fixture.at(&from);
    let repository = fixture.repository();
    fixture.git_in(&main, &["worktree", "move", "../linked", "../moved"]);
    let error = repository.head().unwrap_err();
    assert_eq!(error.to_string(), format!("the working tree {} was moved to {}", from.display(), to.display()));
    let command = format!("git -C {} worktree move {} {}", common.display(), to.display(), from.display());
    assert_eq!(error.remedy(), Some(format!("cd {}, or move it back: {command}", to.display())));
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    fixture.git_in(&main, &words);
    assert_eq!(repository.head().unwrap(), branch_head("side", &fixture));
}
