//! A program that git waits for and that never returns: it is named, and ending the run or the daemon kills it.

use std::fs;
use std::time::{Duration, Instant};

use protocol::view::GitWaitView;
use protocol::words::RunStatus;
use runner_testkit::{Daemon, Home, PATIENCE, Repo};

/// Signs, unless there is a file that makes it wait forever.
const GPG: &str = "#!/bin/sh
cat > /dev/null
[ ! -e \"$HOME/no-answer\" ] || sleep 600
echo '[GNUPG:] SIG_CREATED ' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
";
/// Maximum time for a cancel and for the daemon's shutdown.
const SOON: Duration = Duration::from_secs(8);

/// Starts a run whose first commit, or the commit of its first iteration, hangs in signing; returns the reported wait.
fn hang_commit(home: &Home, is_first: bool) -> (Repo, Daemon, GitWaitView) {
    let repo = home.scripted_repo("one");
    repo.commit_config(&repo.config().section("[git]\nsign = true\n"));
    home.install("gpg", GPG);
    let program = home.path().join("bin/gpg").display().to_string();
    repo.git(&["config", "--global", "gpg.program", &program]);
    let marker = home.path().join("no-answer");
    let hang = format!("touch '{}'", marker.display());
    repo.script().always(&format!("echo done > done.txt; {hang}; answer done 'It is done.'"));
    if is_first {
        fs::write(&marker, "").expect("a file can be written");
    }
    let (daemon, wait) = start_and_wait(home, &repo, &[]);
    (repo, daemon, wait)
}

/// Starts a run that hangs, and returns the reported wait.
fn start_and_wait(home: &Home, repo: &Repo, args: &[&str]) -> (Daemon, GitWaitView) {
    let daemon = home.daemon();
    home.ctl_in(repo, &[&["start", "--yes", "--id", "it", "-m", "Do it"], args].concat()).exits(0);
    let client = home.client();
    let began = Instant::now();
    // There are no events during the wait.
    loop {
        match client.run(repo.path()).git_wait {
            Some(wait) => return (daemon, wait),
            None => assert!(began.elapsed() < 2 * PATIENCE, "nothing is waited for"),
        }
    }
}

/// Starts a run in which a filter hangs: when the work of its session is stored, or when its base is checked out.
fn unanswered_filter(home: &Home, way: &str) -> (Repo, Daemon, GitWaitView) {
    let repo = home.scripted_repo("one");
    home.install("hangs", "#!/bin/sh\n[ ! -e \"$HOME/no-answer\" ] || sleep 600\ncat\n");
    repo.git(&["config", &format!("filter.hangs.{way}"), &home.path().join("bin/hangs").display().to_string()]);
    repo.write(".gitattributes", "*.f filter=hangs\n").write("old.f", "old\n").commit("Filter");
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.write("old.f", "new\n").commit("Later");
    let marker = home.path().join("no-answer");
    let work = "echo done > done.f; answer done 'It is done.'";
    repo.script().always(work);
    if way == "clean" {
        repo.script().step(1, &format!("touch '{}'; {work}", marker.display()));
    } else {
        fs::write(&marker, "").expect("a file can be written");
    }
    let (daemon, wait) = start_and_wait(home, &repo, &["--base", &base]);
    (repo, daemon, wait)
}

mod slow {
    use super::*;

    #[test]
    fn a_program_that_gives_no_answer_is_named_and_ends_with_the_run() {
        for is_first in [true, false] {
            let mut home = Home::new();
            if is_first {
                // A run that was cancelled before its first commit has a branch without commits.
                home.expect_forgery();
            }
            let (repo, _daemon, wait) = hang_commit(&home, is_first);
            assert_eq!((wait.command.as_str(), wait.program.as_deref()), ("commit-tree", Some("gpg")));
            let stdout = home.ctl_in(&repo, &["status"]).exits(0).stdout.clone();
            assert!(stdout.contains("waits for") && stdout.contains("gpg (git commit-tree), 1"), "{stdout}");
            let paused = home.ctl_in(&repo, &["pause"]).exits(1).stderr.clone();
            assert!(paused.contains("the run waits for git commit-tree, which waits for gpg"), "{paused}");
            let began = Instant::now();
            home.ctl_in(&repo, &["cancel"]).exits(0);
            home.client().wait_for(repo.path(), RunStatus::Cancelled);
            assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        }
    }

    #[test]
    fn a_filter_that_gives_no_answer_is_named_and_ends_with_the_run() {
        for way in ["clean", "smudge"] {
            let home = Home::new();
            let (repo, daemon, wait) = unanswered_filter(&home, way);
            assert_eq!(wait.program.as_deref(), Some("hangs"), "{way}");
            let told = home.ctl_in(&repo, &["status"]).exits(0).stdout.clone();
            assert!(told.contains("waits for") && told.contains("hangs (git "), "{way}: {told}");
            let began = Instant::now();
            home.ctl_in(&repo, &["cancel"]).exits(0);
            home.client().wait_for(repo.path(), RunStatus::Cancelled);
            assert!(began.elapsed() < SOON, "{way}: {:?}", began.elapsed());
            fs::remove_file(home.path().join("no-answer")).expect("it is there");
            assert_eq!(repo.git(&["status", "--porcelain", "--", ".runner"]), "", "{way}");
            repo.git(&["clean", "-qfd"]);
            // Git removes a file before it writes the new one; the next start writes the old one again.
            home.ctl_in(&repo, &["start", "--yes", "--id", "it", "--wait"]).exits(0);
            assert_eq!(repo.show("HEAD", "done.f"), "done", "{way}");
            drop(daemon);
        }
    }

    #[test]
    fn a_filter_without_an_answer_ends_with_the_daemon_and_the_run_continues_at_the_next_start() {
        for way in ["clean", "smudge"] {
            let home = Home::new();
            let (repo, daemon, _) = unanswered_filter(&home, way);
            let began = Instant::now();
            assert!(daemon.stop().success());
            assert!(began.elapsed() < SOON, "{way}: {:?}", began.elapsed());
            fs::remove_file(home.path().join("no-answer")).expect("it is there");
            let _daemon = home.daemon();
            home.client().wait_for(repo.path(), RunStatus::Completed);
            assert_eq!(
                (repo.show("HEAD", "old.f"), repo.show("HEAD", "done.f")),
                ("old".into(), "done".into()),
                "{way}"
            );
        }
    }

    #[test]
    fn a_program_without_an_answer_ends_with_the_daemon_and_the_run_continues_at_the_next_start() {
        let home = Home::new();
        let (repo, daemon, _) = hang_commit(&home, false);
        let began = Instant::now();
        assert!(daemon.stop().success());
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        fs::remove_file(home.path().join("no-answer")).expect("it is there");
        let _daemon = home.daemon();
        home.client().wait_for(repo.path(), RunStatus::Completed);
        assert_eq!(repo.show("HEAD", "done.txt"), "done");
    }
}
