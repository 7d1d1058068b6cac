//! A remote whose programs never answer: what git waits for is named, and the end of the job or of the run ends it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use protocol::words::RunStatus;

use crate::kit::{DriverProcess, TestRemote};

/// Maximum time until a job or a run has ended.
const SOON: Duration = Duration::from_secs(8);

/// A remote that is reached by a program that never answers, if a file says so.
fn unanswering_remote() -> (TestRemote, String) {
    let remote = TestRemote::new();
    let script = "#!/bin/sh\nfor last; do :; done\ncase $last in\n\
                  git-receive-pack*) [ ! -e \"$HOME/no-push\" ] || sleep 600 ;;\n\
                  *) [ ! -e \"$HOME/no-answer\" ] || sleep 600 ;;\nesac\nexec sh -c \"$last\"\n";
    remote.home.install("hangs", script);
    let program = remote.home.path().join("bin/hangs").display().to_string();
    remote.repo.git(&["config", "--global", "core.sshCommand", &program]);
    let url = format!("ssh://example.invalid{}", remote.bare.display());
    (remote, url)
}

/// Returns the address of a server on loopback that asks for a password.
fn asking_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    format!("http://{address}/x.git")
}

fn work_tree(remote: &TestRemote) -> String {
    remote.home.path().join("kept").display().to_string()
}

fn start_driver(remote: &TestRemote, url: &str) -> DriverProcess {
    let mut command = remote.home.command("runnerd");
    command.args(["drive", url, "--run", "x", "-m", "Do it.", "--yes", "--work", &work_tree(remote)]);
    DriverProcess::spawn(command)
}

/// Ends a driver, and asserts that it says who has ended git.
fn end_driver(driver: DriverProcess, git: &str) {
    let began = Instant::now();
    driver.signal(Signal::SIGTERM);
    let output = driver.assert_exits(75);
    assert!(began.elapsed() < SOON, "{:?}: {output}", began.elapsed());
    assert!(output.contains(&format!("git {git} was ended after")), "{output}");
    assert!(output.contains("s of waiting for hangs: runnerd was told to end"), "{output}");
}

mod slow {
    use super::*;

    #[test]
    fn a_program_for_a_remote_that_never_answers_is_named_and_ends_with_the_job() {
        for is_ssh in [true, false] {
            let (remote, mut url) = unanswering_remote();
            std::fs::write(remote.home.path().join("no-answer"), "").expect("a file can be written");
            if !is_ssh {
                url = asking_server();
                let program = remote.home.path().join("bin/hangs").display().to_string();
                remote.repo.git(&["config", "--global", "credential.helper", &program]);
            }
            let mut driver = start_driver(&remote, &url);
            driver.wait_for_note("git ls-remote waits for hangs, 1");
            end_driver(driver, "ls-remote");
            remote.home.wait_all_gone(SOON);
        }
    }

    #[test]
    fn a_push_that_is_never_answered_is_named_and_ends_with_the_run_and_with_the_job() {
        for is_cancelled in [true, false] {
            let (remote, url) = unanswering_remote();
            let hang = format!("touch '{}'", remote.home.path().join("no-push").display());
            remote.repo.script().always(&format!("{hang}; echo work > work.txt; answer retry 'Not yet.'"));
            let mut driver = start_driver(&remote, &url);
            let notes = driver.wait_for_note("git push waits for hangs, 1");
            if is_cancelled {
                let socket = notes.lines().find_map(|line| line.rsplit_once("--socket ")).expect("it is told").1;
                let status =
                    remote.home.ctl(&["--socket", socket, "-C", &work_tree(&remote), "status"]).exits(0).stdout.clone();
                assert!(status.contains("hangs (git push), 1"), "{status}");
                let began = Instant::now();
                remote.home.ctl(&["--socket", socket, "-C", &work_tree(&remote), "cancel"]).exits(0);
                let status = || {
                    remote.home.ctl(&["--socket", socket, "-C", &work_tree(&remote), "status", "--json"]).stdout.clone()
                };
                while !status().contains(&format!("\"{}\"", RunStatus::Cancelled)) {
                    assert!(began.elapsed() < SOON, "{}", status());
                }
            }
            end_driver(driver, "push");
            remote.home.wait_all_gone(SOON);
        }
    }
}
