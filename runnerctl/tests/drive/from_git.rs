//! Runs of a remote, read only from git: without the person's daemon, without leftovers, and with few requests to the
//! remote.

use std::fs;
use std::process::Command;

use runner_testkit::ProgramOutput;

use crate::kit::{GATED, TestRemote, WRITES};

/// Queries the runs of a remote; the command starts its own daemon, of which nothing is left.
#[track_caller]
fn run_ctl(remote: &TestRemote, args: &[&str]) -> ProgramOutput {
    let url = remote.url();
    let output = remote.home.ctl(&[args, &["--remote", &url]].concat());
    let tmp = fs::read_dir(remote.home.path().join("tmp")).expect("the folder is there").flatten();
    let left: Vec<_> = tmp.map(|entry| entry.path()).filter(|path| is_runner_path(&path.to_string_lossy())).collect();
    assert!(left.is_empty(), "{args:?} has left {left:?}");
    output
}

fn is_runner_path(path: &str) -> bool {
    path.contains("/runnerd-") && !path.contains("runnerd-jobs-")
}

#[test]
fn a_run_is_seen_while_a_driver_has_it_and_when_it_is_done() {
    for parts in ["true", "false"] {
        let remote = TestRemote::new();
        remote.git(&["config", "uploadpack.allowFilter", parts]);
        let gate = remote.repo.script().gate("work");
        let split = "echo '- Which colour?' >> .runner/state/questions.md; decompose 'Two parts.' One Two";
        remote.repo.script().step(1, split).step(2, GATED).always(WRITES);
        let driver = remote.start(("4711", 0));
        gate.wait_reached();

        let all = run_ctl(&remote, &["status", "--json"]).exits(0).json();
        let [run] = &all["runs"].as_array().expect("it is a list")[..] else { panic!("{all}") };
        assert_eq!(
            (&run["run"], &run["leaves_total"], &run["questions"]),
            (&"x".into(), &2.into(), &1.into()),
            "{all}"
        );
        let one = run_ctl(&remote, &["status", "--run", "x"]).exits(0).stdout.clone();
        assert!(one.contains("run x claimed") && one.contains("slurm/4711.0@") && one.contains("0/2 passed"), "{one}");
        assert!(run_ctl(&remote, &["questions"]).exits(0).stdout.contains("Which colour?"));
        assert!(run_ctl(&remote, &["tree"]).exits(0).stdout.contains("Two"));
        assert!(run_ctl(&remote, &["log", "1"]).exits(0).stdout.contains("Two parts."));
        run_ctl(&remote, &["verify"]).exits(0);

        gate.open();
        driver.assert_exits(0);
        assert!(run_ctl(&remote, &["status"]).exits(0).stdout.contains("completed"));
        assert_eq!(
            run_ctl(&remote, &["log", "--json"]).exits(0).json()["iterations"].as_array().map(Vec::len),
            Some(3)
        );
        run_ctl(&remote, &["verify", "--strict"]).exits(0);
    }
}

#[test]
fn what_is_not_there_or_not_told_is_said() {
    let remote = TestRemote::new();
    assert!(run_ctl(&remote, &["status"]).exits(1).stderr.contains("has no run"));
    remote.repo.script().always(WRITES);
    remote.start(("1", 0)).assert_exits(0);
    remote.git(&["branch", "runner/xylophone", "runner/x"]);
    remote.git(&["branch", "runner/broken", "main"]);
    assert!(run_ctl(&remote, &["status", "--run", "nope"]).exits(1).stderr.contains("has no run nope"));
    assert!(run_ctl(&remote, &["tree"]).exits(2).stderr.contains("3 runs are there"));
    assert!(run_ctl(&remote, &["tree", "--run", "xyl"]).exits(0).stdout.contains("passed"));
    assert!(run_ctl(&remote, &["status"]).exits(0).stdout.contains("unreadable"));
    assert!(run_ctl(&remote, &["log", "--run", "x", "1", "--guard"]).exits(2).stderr.contains("not in its branch"));
    let named = ["status", "--remote", "upstream"];
    assert!(remote.home.ctl_in(&remote.repo, &named).exits(1).stderr.contains("git remote -v"));
    remote.repo.git(&["remote", "add", "upstream", &remote.url()]);
    assert!(remote.home.ctl_in(&remote.repo, &named).exits(0).stdout.contains("completed"));
    let away = remote.home.ctl(&["status", "--remote", "file:///nowhere/x.git"]);
    assert!(away.exits(1).stderr.contains("fetching the runs of file:///nowhere/x.git"), "{away:?}");
}

#[test]
fn an_interrupted_look_leaves_nothing() {
    let remote = TestRemote::new();
    // A remote that never replies.
    let hang = remote.home.path().join("hang");
    fs::write(&hang, "#!/bin/sh\nexec sleep 60\n").expect("it can be written");
    Command::new("chmod").arg("+x").arg(&hang).status().expect("it can be made a program");
    let mut command = remote.home.command("runnerctl");
    command.args(["status", "--remote", "ssh://example.invalid/x.git"]).env("GIT_SSH_COMMAND", &hang);
    let looking = crate::kit::DriverProcess::spawn(command);
    let tmp = remote.home.path().join("tmp");
    let has_temp_folder = || {
        fs::read_dir(&tmp).into_iter().flatten().flatten().any(|entry| is_runner_path(&entry.path().to_string_lossy()))
    };
    while !has_temp_folder() {
        std::thread::yield_now();
    }
    looking.signal(nix::sys::signal::Signal::SIGINT);
    assert!(looking.assert_exits(130).contains("interrupted"));
    assert!(!has_temp_folder());
}
