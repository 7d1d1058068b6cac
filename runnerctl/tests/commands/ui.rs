//! `ui`: the server exists as long as the command, and if it fails, so does the command.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use runner_testkit::{Home, PATIENCE, Repo, Tty, binary};
use serde_json::Value;

/// A command that prints the address in its first line.
fn spawn_ui(mut command: Command) -> (Child, String) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the command can be started");
    let out = child.stdout.take().expect("BUG: standard output is a pipe");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("an address");
    (child, line.trim_end().to_owned())
}

/// Opens the page as a browser does, with the token of an address; returns the reply's first line and its body.
fn health(url: &str) -> (String, String) {
    http_get(url, "/api/session")
}

/// Requests a path with the token of an address.
fn http_get(url: &str, path: &str) -> (String, String) {
    let (host, token) = url
        .trim_start_matches("http://")
        .split_once("/#token=")
        .unwrap_or_else(|| panic!("`{url}` is not an address with a token"));
    let mut stream = TcpStream::connect(host).expect("the server listens");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

fn ui_command(home: &Home, repo: &Repo, args: &[&str]) -> Command {
    let mut command = home.ctl_command(repo, args);
    command.stderr(Stdio::piped());
    command
}

#[test]
fn ctrl_c_ends_the_command_and_its_server() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let (mut child, line) = spawn_ui(ui_command(&home, &repo, &["--json", "ui"]));
    let answer: Value = serde_json::from_str(&line).expect("one object");
    assert_eq!(answer["schema"], "runner/ui.v1");
    let url = answer["url"].as_str().expect("an address");
    assert_eq!(health(url).0, "HTTP/1.1 200 OK");
    assert_eq!(health(url).0, "HTTP/1.1 401 Unauthorized", "a browser's history keeps what it has opened");
    let pid = i32::try_from(child.id()).expect("a process id");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("it can be signalled");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let server = answer["pid"].as_i64().expect("a process id");
    assert!(!fs::exists(format!("/proc/{server}")).expect("/proc is there"), "the server lives on");
}

#[test]
fn the_server_does_not_outlive_a_command_that_is_killed() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let daemon = home.daemon();
    let (mut child, url) = spawn_ui(ui_command(&home, &repo, &["ui"]));
    assert_eq!(health(&url).0, "HTTP/1.1 200 OK");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    daemon.stop();
    home.wait_all_gone(PATIENCE);
}

#[test]
fn the_command_ends_with_its_server_and_says_how() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let (child, line) = spawn_ui(ui_command(&home, &repo, &["--json", "ui"]));
    let answer: Value = serde_json::from_str(&line).expect("one object");
    let server = answer["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a process id");
    kill(Pid::from_raw(server), Signal::SIGKILL).expect("it can be killed");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("runner-ui ended (signal: 9"), "{ended:?}");
}

#[test]
fn without_a_daemon_the_records_of_a_repository_are_shown() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    repo.write(".runner/GOAL.md", "# Goal\n").commit("Set a goal");
    repo.script().always("answer retry 'Not yet.'");
    let daemon = home.daemon();
    home.run(&repo, &["--id", "left"]);
    daemon.stop();
    let path = repo.path().display().to_string();
    for args in [&["ui"][..], &["ui", &path]] {
        let (mut child, url) = spawn_ui(ui_command(&home, &repo, args));
        assert!(health(&url).1.contains("\"static\":true"));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    home.wait_all_gone(PATIENCE);
    let nowhere = home.ctl(&["ui"]);
    assert!(nowhere.exits(5).stderr.contains("no daemon listens"), "{}", nowhere.stderr);
}

#[test]
fn what_keeps_the_server_from_beginning_is_told() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = home.ctl_in(&repo, &["ui", "--port", &port]);
    let message = format!("listening on port {port} of this machine: Address already in use");
    assert!(output.exits(1).stderr.contains(&message), "{}", output.stderr);
    assert!(output.stderr.contains("hint: runnerctl ui"), "{}", output.stderr);
    let elsewhere = home.path().display().to_string();
    let output = home.ctl_in(&repo, &["ui", &elsewhere]);
    assert!(output.exits(1).stderr.contains("no usable git working tree"), "{}", output.stderr);
    let alone = home.path().join("bin/alone");
    fs::copy(binary("runnerctl"), &alone).expect("a copy");
    let output = home.run_program(&alone, &["--no-spawn", "ui"]);
    assert!(output.exits(1).stderr.contains("hint: install runner-ui beside runnerctl"), "{}", output.stderr);
}

#[test]
fn a_browser_is_opened_for_a_terminal_with_a_screen_and_for_nobody_else() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    let called = home.path().join("called");
    let address = home.path().join("address");
    mkfifo(&address, Mode::S_IRWXU).expect("a pipe can be made");
    let browser = format!("#!/bin/sh\n: > {}\nprintf '%s' \"$1\" > {}\n", called.display(), address.display());
    home.install("xdg-open", &browser);
    let seen = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = home.ctl_command(&repo, args);
        let mut tty = Tty::start(command.envs(env.iter().copied()), (120, 40));
        tty.wait_for_text("Ctrl-C ends it");
        tty
    };
    let mut bare = seen(&["ui"], &[]);
    bare.wait_for_text("open the address yourself");
    let mut quiet = seen(&["ui", "--no-open"], &[("DISPLAY", ":0")]);
    for tty in [&mut bare, &mut quiet] {
        tty.signal(Signal::SIGINT);
        assert_eq!(tty.wait_exit(), 0);
    }
    assert!(!called.exists());
    let mut tty = seen(&["ui"], &[("DISPLAY", ":0")]);
    let once = fs::read_to_string(&address).expect("it is opened");
    assert_eq!(
        http_get(&once, "/api/health").0,
        "HTTP/1.1 401 Unauthorized",
        "others see what a browser is started with"
    );
    let (_, ticket) = once.split_once("#token=").expect("a ticket");
    assert!(!tty.wait_for_text("#token=").contains(ticket));
    tty.signal(Signal::SIGINT);
    assert_eq!(tty.wait_exit(), 0);
}
