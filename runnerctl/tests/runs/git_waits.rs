//! A filter that never answers: it is named, requests are answered meanwhile, and a cancel ends it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant};

use protocol::words::RunStatus;

use crate::play::{RUN, RunPlay, sample};

/// Longest time to wait for an answer.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_filter_that_never_answers_is_named_and_keeps_nobody_waiting() {
    let play = RunPlay::with_tree(&sample(), |config| config.top("max_iterations = 1"));
    let filter = play.home.path().join("hangs");
    let hang = play.home.path().join("hang");
    fs::write(&filter, format!("#!/bin/sh\n[ ! -e '{}' ] || sleep 1000\ncat\n", hang.display())).expect("a program");
    fs::set_permissions(&filter, fs::Permissions::from_mode(0o755)).expect("it can be run");
    play.repo.git(&["config", "filter.hangs.clean", &filter.display().to_string()]);
    play.repo.write(".gitattributes", "*.f filter=hangs\n").commit("Filter");
    play.script().step(1, &format!(": > '{}'; echo x > new.f; answer retry 'Not yet.'", hang.display()));
    play.home.ctl_in(&play.repo, &["start", "--yes", "--id", RUN]).exits(0);
    // No event tells of it: that nothing happens is what is waited for.
    let began = Instant::now();
    let wait = loop {
        if let Some(wait) = play.client().run(play.repo.path()).git_wait {
            break wait;
        }
        assert!(began.elapsed() < 3 * SOON, "no wait is reported");
        thread::sleep(Duration::from_millis(500));
    };
    assert_eq!(wait.program.as_deref(), Some("hangs"), "{wait:?}");
    let answered = |args: &[&str]| {
        let began = Instant::now();
        let output = play.home.ctl_in(&play.repo, args);
        assert!(began.elapsed() < SOON, "{args:?} took {:?}", began.elapsed());
        output
    };
    assert!(answered(&["status", "--run", RUN]).exits(0).stdout.contains("hangs (git "));
    assert!(answered(&["queue", "--ended"]).exits(0).stdout.contains(RUN));
    for command in [&["note", "hello"][..], &["step"], &["resume"]] {
        let stderr = answered(command).stderr.clone();
        assert!(stderr.contains("which waits for hangs"), "{command:?}: {stderr}");
    }
    answered(&["cancel"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Cancelled);
    fs::remove_file(&hang).expect("it can be removed");
    assert_eq!(play.repo.read("new.f"), "x\n", "the work is where it was");
}
