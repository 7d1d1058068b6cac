//! Changes to the repository during a run: locks, rewritten history, missing refs, configuration that runs programs,
//! names and files that git rejects. Rows 71 to 85.

use std::fs;
use std::path::Path;

use protocol::view::RunView;
use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_kept, list_verdicts, print_figure};
use runner_testkit::{Home, Repo, SessionGate};

use crate::checks::{assert_explains, assert_survived};

mod canary;
mod gone;
mod kept;
mod order;

/// Runs one iteration whose session leaves work and then does `deed`.
fn run_one(home: &Home, repo: &Repo, deed: &str) {
    repo.script().step(1, &format!("echo mine > mine.txt\n{deed}\nanswer done 'Done.'"));
    home.run(repo, &["--id", "x", "-m", "Do it"]);
}

/// A home with a daemon, and a repository in which a run stops after its first iteration.
fn prepare() -> (Home, Repo) {
    let home = Home::new();
    let repo = home.repo("one");
    repo.commit_config(&repo.config().top("max_iterations = 1"));
    (home, repo)
}

/// Starts one iteration whose session leaves work, and returns the gate at which it waits.
fn start_working(home: &Home, repo: &Repo) -> SessionGate {
    let gate = repo.script().gate("working");
    repo.script().step(1, "echo mine > mine.txt\ngate working\nanswer done 'Done.'");
    home.ctl_in(repo, &["start", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    gate
}

fn reverted_paths(repo: &Repo) -> Vec<String> {
    repo.run_state("HEAD").reverted
}

#[test]
fn row_71_locks_that_nobody_holds_do_not_stop_the_run() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    run_one(
        &home,
        &repo,
        "for lock in index HEAD packed-refs refs/heads/runner/x config; do : > .git/$lock.lock; done",
    );
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_71_lock_that_a_living_process_has_is_named_and_waited_for() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let gate = start_working(&home, &repo);
    let lock = fs::File::create(repo.path().join(".git/index.lock")).expect("a lock can be made");
    gate.open();
    let is_named = |run: &RunView| {
        let obstacle = run.phase.as_ref().and_then(|phase| phase.obstacle.clone());
        obstacle.is_some_and(|obstacle| obstacle.contains(".git/index.lock"))
    };
    home.client().wait_until(repo.path(), is_named);
    drop(lock);
    home.client().wait_for(repo.path(), RunStatus::Completed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_72_commits_of_the_agent_stay() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    run_one(&home, &repo, "git config user.name Agent; git add -A; git commit -q -m 'By the agent'");
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_eq!(repo.git(&["log", "-1", "--format=%s", "HEAD^"]), "By the agent");
    assert_eq!(reverted_paths(&repo), [".git/config"], "restored and reported, without a breach");
    assert_eq!(repo.git(&["config", "user.name"]), "Kit");
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_73_history_that_was_rewritten_comes_back_and_the_agents_commits_are_kept() {
    for deed in ["git reset -q --hard HEAD~1", "git commit -q --amend -am Mine", "git checkout -q --detach"] {
        let (home, repo) = prepare();
        let _daemon = home.daemon();
        run_one(&home, &repo, &format!("git add -A; git commit -qm Mine; {deed}"));
        assert_eq!(repo.git(&["branch", "--show-current"]), "runner/x");
        assert_survived(&home, &repo, &[]);
    }
}

/// Runs one iteration whose session commits and then corrupts references; the run's branch is created again.
fn assert_restored(deed: &str) {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    run_one(&home, &repo, &format!("git add -A; git commit -qm Mine; echo more > more.txt; {deed}"));
    assert_eq!(list_verdicts(&repo), ["Broken"], "{deed}");
    assert_eq!(repo.git(&["branch", "--show-current"]), "runner/x");
    assert_survived(&home, &repo, &["mine\n", "more\n"]);
}

#[test]
fn row_75_refs_that_are_gone_are_made_again() {
    assert_restored("rm -rf .git/refs");
}

#[test]
fn row_75_head_that_is_garbled_is_made_again() {
    assert_restored("echo garbage > .git/HEAD");
}

#[test]
fn row_75_refs_that_are_emptied_are_made_again() {
    assert_restored("find .git/refs -type f | while read f; do : > $f; done");
}

#[test]
fn row_76_garbage_collection_takes_nothing_that_the_runner_keeps() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let prune = "git reflog expire --expire=now --all; git gc -q --prune=now";
    repo.script().guard_always(prune);
    run_one(
        &home,
        &repo,
        &format!("git add -A; git commit -qm Mine; git reset -q --hard HEAD~1; {prune}; echo more > more.txt"),
    );
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_survived(&home, &repo, &["more\n"]);
}

#[test]
fn row_77_what_leads_git_elsewhere_is_put_back() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let deed = "mkdir -p $kit/other; git init -q $kit/other; head=$(git rev-parse HEAD)
        echo $kit/other/.git/objects > .git/objects/info/alternates
        git replace $head $(git rev-parse HEAD~1)
        git config extensions.worktreeConfig true; git config --worktree core.bare true
        echo $kit/other/.git > .git/commondir";
    run_one(&home, &repo, deed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    let expected =
        [".git/commondir", ".git/config", ".git/config.worktree", ".git/objects/info/alternates"].map(str::to_owned);
    assert!(expected.iter().all(|name| reverted_paths(&repo).contains(name)), "{:?}", reverted_paths(&repo));
    assert!(reverted_paths(&repo).iter().any(|name| name.starts_with("refs/replace/")), "{:?}", reverted_paths(&repo));
    assert_eq!(repo.refs("refs/replace"), Vec::<String>::new());
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_79_nothing_is_hidden_from_the_runner() {
    let (home, repo) = prepare();
    repo.write("tracked.txt", "old\n").write("assumed.txt", "old\n").commit("Files");
    let _daemon = home.daemon();
    let deed = "git update-index --skip-worktree tracked.txt; git update-index --assume-unchanged assumed.txt
        echo new1 > tracked.txt; echo new2 > assumed.txt; echo '*' > .git/info/exclude
        mkdir -p ~/config/git; echo '*' > ~/config/git/ignore; git config core.excludesFile ~/config/git/ignore";
    run_one(&home, &repo, deed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_eq!(repo.show("HEAD", "mine.txt"), "mine");
    assert_eq!(repo.show("HEAD", "tracked.txt"), "new1");
    assert_eq!(repo.show("HEAD", "assumed.txt"), "new2");
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_80_nested_repository_is_no_silent_link() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    run_one(
        &home,
        &repo,
        "git init -q nested; echo inner > nested/inner.txt; git -C nested add -A; git -C nested commit -qm Inner",
    );
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert!(!repo.git(&["ls-tree", "-r", "HEAD"]).contains("commit "), "no link");
    assert_eq!(repo.run_state("HEAD").held_back, ["nested/"]);
    assert_survived(&home, &repo, &["mine\n", "inner\n"]);
}

#[test]
fn row_81_what_a_person_commits_meanwhile_is_kept_beside_the_agents_work() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let gate = start_working(&home, &repo);
    repo.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "By a person"]);
    gate.open();
    home.run(&repo, &["--id", "x"]);
    assert_eq!(repo.show("HEAD", "theirs.txt"), "theirs");
    assert_eq!(repo.show("HEAD", "mine.txt"), "mine");
    assert_survived(&home, &repo, &["mine\n", "theirs\n"]);
}

#[test]
fn row_83_names_that_git_does_not_take_do_not_keep_the_rest_out() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let deed = r#"mkdir -p .GIT 'sp ace'; echo evil > .GIT/config; echo line > "$(printf 'new\nline')"; echo q > 'quo"te'
        echo t > "$(printf 'tab\there')"; echo dash > ./-dash; echo colon > ':(exclude)x'; echo uni > 'sp ace/ünï'
        echo bytes > "$(printf 'by\377te')"; echo star > '*'"#;
    run_one(&home, &repo, deed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    home.ctl_in(&repo, &["status"]).exits(0);
    assert_survived(&home, &repo, &["mine\n", "line\n", "bytes\n", "star\n", "colon\n", "dash\n", "evil\n"]);
}

#[test]
fn row_84_special_files_and_loops_neither_hang_nor_keep_the_rest_out() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let deed = "mkfifo pipe; ln -s loop loop; ln -s . here; mkdir -p deep; ln -s .. deep/up; ln -s /dev/zero zero
        mkfifo .git/info/pipe; rm -f .git/info/exclude; mkfifo .git/info/exclude; mkfifo .git/hooks/pre-commit";
    run_one(&home, &repo, deed);
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    fs::remove_file(repo.path().join("pipe")).expect("the pipe is still there");
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_84_special_files_in_the_place_of_committed_ones_count_as_their_removal() {
    let (home, repo) = prepare();
    for name in ["watched.sh", "pipe.txt", "socket.txt"] {
        repo.write(name, "text\n");
    }
    repo.commit("files");
    let _daemon = home.daemon();
    repo.script().guard_always("rm -f pipe.txt; mkfifo pipe.txt");
    let socket = "import socket; socket.socket(socket.AF_UNIX).bind('socket.txt')";
    run_one(&home, &repo, &format!("rm watched.sh socket.txt; mkfifo watched.sh; python3 -c \"{socket}\""));
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    let files = repo.git(&["ls-tree", "--name-only", "HEAD"]);
    for name in ["watched.sh", "pipe.txt", "socket.txt"] {
        assert!(!files.contains(name) && !repo.path().join(name).exists(), "{name}: {files}");
    }
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_85_size_is_looked_at_before_content() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    run_one(&home, &repo, "truncate -s 50G huge.bin; mkdir many; (cd many; seq 1 500 | xargs touch)");
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    assert_eq!(repo.run_state("HEAD").held_back, ["huge.bin"]);
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", "HEAD", "many"]).lines().count(), 500);
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_84_pipes_where_git_reads_a_file_are_waited_for_by_nobody() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    let deed =
        "mkdir sub; mkfifo .gitignore .gitattributes .gitmodules sub/.gitignore; ln -s /dev/zero sub/.gitattributes
        rm -f .git/packed-refs .git/index; mkfifo .git/packed-refs .git/index .git/refs/heads/pipe .git/commondir
        git init -q nested; rm nested/.git/HEAD nested/.git/config; mkfifo nested/.git/HEAD nested/.git/config";
    run_one(&home, &repo, deed);
    assert_eq!(list_verdicts(&repo).len(), 1);
    for name in [".gitignore", "sub/.gitattributes", ".git/index", ".git/commondir"] {
        assert!(reverted_paths(&repo).iter().any(|reverted| reverted == name), "{name}: {:?}", reverted_paths(&repo));
    }
    assert_kept(&repo, b"mine\n");
    home.assert_no_survivors();
}

#[test]
fn row_85_file_of_git_that_is_too_large_is_kept_aside_without_being_read() {
    let (home, repo) = prepare();
    repo.git(&["tag", "theirs"]);
    repo.git(&["pack-refs", "--all"]);
    let large = ["index", "packed-refs", "shallow", "commondir", "ORIG_HEAD", "refs/heads/new"];
    let daemon = home.daemon();
    run_one(&home, &repo, &large.map(|name| format!("truncate -s 3G .git/{name}\n")).concat());
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    let reverted = reverted_paths(&repo);
    for name in large.map(|name| format!(".git/{name}")) {
        assert!(reverted.contains(&name), "{name}: {reverted:?}");
    }
    for name in ["index", "packed-refs"] {
        let aside = repo.path().join(format!(".runner/iterations/x/0001/reverted/.git__{name}"));
        assert_eq!(fs::metadata(&aside).expect("it is kept aside").len(), 3 << 30, "{name}");
    }
    assert_eq!(repo.git(&["tag"]), "theirs");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let peak = daemon.peak_memory_kib();
    assert!(peak < 512 * 1024, "{peak} KiB of memory were used");
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_84_pipes_that_a_guard_leaves_are_waited_for_by_nobody() {
    let (home, repo) = prepare();
    let _daemon = home.daemon();
    repo.script()
        .guard_always("mkfifo .gitignore; rm -f .git/packed-refs .git/index; mkfifo .git/packed-refs .git/index");
    run_one(&home, &repo, "true");
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    for name in [".gitignore", ".git/index", ".git/packed-refs"] {
        assert!(reverted_paths(&repo).iter().any(|reverted| reverted == name), "{name}: {:?}", reverted_paths(&repo));
    }
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_75_head_and_branch_that_a_guard_garbles_are_made_again() {
    for deed in
        ["rm .git/HEAD; mkfifo .git/HEAD", ": > .git/HEAD", "truncate -s 3G .git/refs/heads/runner/x .git/index"]
    {
        let (home, repo) = prepare();
        let _daemon = home.daemon();
        repo.script().guard_always(deed);
        run_one(&home, &repo, "true");
        assert_eq!(list_verdicts(&repo).len(), 1, "{deed}");
        assert_survived(&home, &repo, &["mine\n"]);
    }
}

#[test]
fn row_85_rule_file_that_is_too_large_is_kept_aside_without_being_read() {
    let (home, repo) = prepare();
    repo.write("sub/.gitignore", "out\n").commit("Ignore");
    let _daemon = home.daemon();
    let guard = "truncate -s 3G .gitmodules";
    repo.script().guard_always(guard);
    run_one(&home, &repo, "truncate -s 3G .gitattributes sub/.gitignore");
    assert_eq!(list_verdicts(&repo), ["Accepted"]);
    for name in [".gitattributes", ".gitmodules", "sub/.gitignore"] {
        assert!(reverted_paths(&repo).iter().any(|reverted| reverted == name), "{name}: {:?}", reverted_paths(&repo));
        let aside = format!(".runner/iterations/x/0001/reverted/{}", name.replace('/', "__"));
        assert_eq!(fs::metadata(repo.path().join(aside)).expect("it is kept aside").len(), 3 << 30, "{name}");
    }
    assert_survived(&home, &repo, &["mine\n"]);
}

#[test]
fn row_84_head_that_became_a_pipe_is_made_again() {
    assert_restored("rm .git/HEAD; mkfifo .git/HEAD");
}

/// Whether a file exists.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn row_82_repositories_of_every_kind_work_or_are_refused_at_the_start() {
    for kind in ["detached", "reftable", "sha256", "shallow"] {
        let home = Home::new();
        let repo = home.repo("one");
        let git = repo.path().join(".git");
        if kind == "sha256" {
            fs::remove_dir_all(&git).expect("a folder can be removed");
            repo.git(&["init", "-q", "--object-format=sha256"]);
        }
        repo.commit_config(&repo.config().top("max_iterations = 1"));
        match kind {
            "detached" => drop(repo.git(&["checkout", "-q", "--detach"])),
            "shallow" => {
                fs::write(git.join("shallow"), format!("{}\n", repo.head())).expect("a file can be written");
            }
            "reftable" => {
                fs::remove_dir_all(git.join("logs")).expect("logs are not migrated");
                repo.git(&["refs", "migrate", "--ref-format=reftable"]);
            }
            _ => {}
        }
        let _daemon = home.daemon();
        run_one(&home, &repo, "true");
        assert_eq!(list_verdicts(&repo), ["Accepted"], "{kind}");
        home.assert_no_survivors();
        assert_kept(&repo, b"mine\n");
    }
}

#[test]
fn row_82_linked_work_tree_is_protected_as_the_first_one_is() {
    let (home, repo) = prepare();
    let linked = home.path().join("repos/linked");
    let place = linked.display().to_string();
    repo.git(&["worktree", "add", "-q", "--detach", &place]);
    repo.script().step(
        1,
        "echo mine > mine.txt; git config filter.x.clean false; git config extensions.worktreeConfig true
        git config --worktree core.bare true; echo 'gitdir: /nowhere' > .git; answer done 'Done.'",
    );
    let _daemon = home.daemon();
    home.ctl(&["start", &place, "--wait", "--yes", "--id", "x", "-m", "Do it"]).exits(0);
    assert_eq!(repo.show("runner/x", "mine.txt"), "mine");
    let state: Vec<String> = repo.run_state("runner/x").reverted;
    for name in [".git", ".git/config", ".git/worktrees/linked/config.worktree"] {
        assert!(state.iter().any(|reverted| reverted == name), "{name}: {state:?}");
    }
    let git = fs::read_to_string(linked.join(".git")).expect("the link is there");
    assert!(git.contains("worktrees/linked"), "{git}");
    home.assert_no_survivors();
}

#[test]
fn row_82_repositories_without_commit_or_work_tree_are_refused_at_the_start() {
    let home = Home::new();
    let repo = home.repo("one");
    let _daemon = home.daemon();
    let bare = home.path().join("repos/bare");
    repo.git(&["clone", "-q", "--bare", ".", &bare.display().to_string()]);
    let refused = home.ctl(&["start", &bare.display().to_string(), "--yes", "-m", "Do it"]);
    assert_explains(&refused, &["bare", "hint:"]);
    let unborn = home.path().join("repos/unborn");
    repo.git(&["init", "-q", &unborn.display().to_string()]);
    let refused = home.ctl(&["start", &unborn.display().to_string(), "--yes", "-m", "Do it"]);
    assert_explains(&refused, &["no commit yet", "git commit"]);
    assert!(!exists(&unborn.join(".runner")));
}

mod slow {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The git program, under strace if the file `fault` next to it contains options for it.
    const AFFLICTED_GIT: &str = r#"#!/bin/sh
PATH=${PATH#*:}
fault=$(cat "$0.fault" 2> /dev/null) || exec git "$@"
exec strace -f -qq -o /dev/null $fault git "$@"
"#;

    #[test]
    fn row_56_git_program_whose_calls_are_refused_is_waited_for() {
        let refusals = [
            ("openat", "error=EMFILE:when=20+1"),
            ("rename,renameat,renameat2,link,linkat", "error=ENOSPC"),
            ("fsync,fdatasync", "error=EIO"),
            ("read,pread64", "error=EIO:when=10+1"),
        ];
        for (calls, what) in refusals {
            let (home, repo) = prepare();
            // The library leaves such a repository to the git program.
            repo.git(&["config", "core.ignoreCase", "true"]);
            let git = home.path().join("bin/git");
            fs::write(&git, AFFLICTED_GIT).expect("a program can be written");
            fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
            let fault = home.path().join("bin/git.fault");
            let _daemon = home.daemon();
            let gate = start_working(&home, &repo);
            fs::write(&fault, format!("-e trace={calls} -e inject={calls}:{what}")).expect("a fault can be written");
            gate.open();
            let run = home.client().wait_until(repo.path(), |run| run.summary.state != RunStatus::Running);
            fs::remove_file(&fault).expect("the fault was there");
            print_figure(&format!("{calls}, {what}: {:?}", run.summary.reason));
            home.client().wait_until(repo.path(), |run| run.summary.state.is_terminal());
            assert_eq!(list_verdicts(&repo), ["Accepted"], "{calls}, {what}: {:#?}", repo.receipts());
            assert_survived(&home, &repo, &["mine\n"]);
        }
    }

    #[test]
    fn row_85_twenty_thousand_files_are_committed() {
        let (home, repo) = prepare();
        let _daemon = home.daemon();
        run_one(&home, &repo, "mkdir many; (cd many; seq 1 20000 | xargs touch); truncate -s 50G many/huge.bin");
        assert_eq!(list_verdicts(&repo), ["Accepted"]);
        assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", "HEAD", "many"]).lines().count(), 20_000);
        assert_eq!(repo.run_state("HEAD").held_back, ["many/huge.bin"]);
        assert_survived(&home, &repo, &["mine\n"]);
    }

    #[test]
    fn row_75_refs_that_are_garbled_in_other_ways_are_made_again() {
        let deeds = [
            ": > .git/HEAD",
            "rm .git/HEAD",
            "printf '%040d\\n' 0 > .git/refs/heads/runner/x",
            "echo 1111111111111111111111111111111111111111 > .git/refs/heads/runner/x",
            "rm .git/refs/heads/runner/x; mkdir .git/refs/heads/runner/x",
            "git pack-refs --all; : > .git/packed-refs",
            "git pack-refs --all; echo garbage > .git/packed-refs",
        ];
        for deed in deeds {
            assert_restored(deed);
        }
    }
}
