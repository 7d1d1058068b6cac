//! Peers from inside an iteration can read, but not steer.
//!
//! The peers are this test's own program, started as [`peer_process`] in several ways; a server in this process takes
//! the daemon's place.

use std::env;
use std::ffi::OsString;
use std::process::Stdio;

use protocol::event::EventKind;
use protocol::startup::MARK_VARIABLE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::fixture::SocketServer;
use crate::raw;

const SOCKET: &str = "TEST_PEER_SOCKET";
const READ: &str = "read: fine";
const STEERED: &str = "steered";
const REFUSED: &str = "refused: inside_iteration";

/// Starts a peer directly. `"$@"` is the peer's command line.
const CHILD: &str = r#"exec "$@""#;
/// Starts a peer that is orphaned before it connects: it waits for a line, which is sent when the shell that started it
/// is gone.
const ORPHAN: &str = r#"exec 3<&0; "$@" <&3 &"#;
/// The same, with a shell in between that carries the mark, and a peer without it.
const ORPHAN_OF_MARKED: &str = r#"exec 3<&0; RUNNERD_MARK=run sh -c 'env -u RUNNERD_MARK "$@"; exit $?' sh "$@" <&3 &"#;

/// An orphan with the limit that every process of an iteration has.
const ORPHAN_WITH_LIMIT: &str = r#"exec 3<&0; prlimit --locks=4096 "$@" <&3 &"#;
/// An orphan that cannot gain privileges, which can also be true of a person's shell.
const ORPHAN_WITHOUT_PRIVILEGES: &str = r#"exec 3<&0; setpriv --no-new-privs "$@" <&3 &"#;
/// An orphan in its own PID namespace.
const ORPHAN_IN_NAMESPACE: &str =
    r#"exec 3<&0; unshare --user --map-current-user --pid --fork --kill-child "$@" <&3 &"#;

/// Starts a peer from a shell script and returns its output.
async fn peer(server: &SocketServer, script: &str, mark: bool) -> Vec<String> {
    let program = env::current_exe().unwrap();
    let arguments = ["--exact", "peers::peer_process", "--include-ignored", "--nocapture", "--quiet"];
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(program).args(arguments).env(SOCKET, server.socket());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove(MARK_VARIABLE);
    if mark {
        command.env(MARK_VARIABLE, OsString::from("run"));
    }
    let mut shell = command.spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    let mut output = shell.stdout.take().unwrap();
    if script != CHILD {
        shell.wait().await.unwrap();
    }
    input.write_all(b"go\n").await.unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    text.lines().filter_map(|line| line.strip_prefix("peer ")).map(str::to_owned).collect()
}

/// The peer: reads, tries to steer, and reports the results.
#[tokio::test]
#[ignore = "the other process of the tests of this file"]
#[expect(clippy::print_stdout, reason = "the other process listens")]
async fn peer_process() {
    let Some(socket) = env::var_os(SOCKET) else { return };
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let answer = raw::post(socket.as_ref(), raw::request("run.status").as_bytes()).await;
    assert!(answer.contains(r#""result":"fine""#), "{answer}");
    println!("\npeer {READ}");
    let steer = br#"{"jsonrpc":"2.0","id":1,"method":"run.pause","params":[7]}"#;
    let answer = raw::post(socket.as_ref(), steer).await;
    let refused = answer.contains(r#""kind":"inside_iteration""#);
    assert!(refused || answer.contains(r#""result":7"#), "{answer}");
    println!("peer {}", if refused { REFUSED } else { STEERED });
}

#[tokio::test]
async fn a_child_of_the_daemon_reads_and_does_not_steer() {
    let server = SocketServer::start();
    assert_eq!(peer(&server, CHILD, false).await, [READ, REFUSED]);
    let events = server.events.subscribe(Some(1)).backlog;
    let [EventKind::Refused { method, pid }] = events.iter().map(|event| &event.kind).collect::<Vec<_>>()[..] else {
        panic!("{events:#?}");
    };
    assert!(method == "run.pause" && pid.is_some(), "{events:#?}");
}

#[tokio::test]
async fn an_orphan_with_the_mark_reads_and_does_not_steer() {
    let server = SocketServer::start();
    assert_eq!(peer(&server, ORPHAN, true).await, [READ, REFUSED]);
}

#[tokio::test]
async fn a_mark_on_an_ancestor_is_enough() {
    let server = SocketServer::start();
    assert_eq!(peer(&server, ORPHAN_OF_MARKED, false).await, [READ, REFUSED]);
}

#[tokio::test]
async fn an_orphan_with_the_limit_of_an_iteration_reads_and_does_not_steer() {
    let server = SocketServer::start();
    assert_eq!(peer(&server, ORPHAN_WITH_LIMIT, false).await, [READ, REFUSED]);
}

#[tokio::test]
async fn a_process_of_another_namespace_reads_and_does_not_steer() {
    let can_be_made =
        Command::new("unshare").args(["--user", "--map-current-user", "--pid", "--fork", "true"]).status();
    if !can_be_made.await.unwrap().success() {
        return;
    }
    let server = SocketServer::start();
    assert_eq!(peer(&server, ORPHAN_IN_NAMESPACE, false).await, [READ, REFUSED]);
}

#[tokio::test]
async fn a_process_that_can_gain_no_privileges_steers() {
    if env::var_os(MARK_VARIABLE).is_some() {
        // These tests themselves run inside an iteration: no process is from outside.
        return;
    }
    let server = SocketServer::start();
    assert_eq!(peer(&server, ORPHAN_WITHOUT_PRIVILEGES, false).await, [READ, STEERED]);
}

#[tokio::test]
async fn a_process_from_elsewhere_steers() {
    if env::var_os(MARK_VARIABLE).is_some() {
        // These tests themselves run inside an iteration: no process is from outside.
        return;
    }
    let server = SocketServer::start();
    assert_eq!(peer(&server, ORPHAN, false).await, [READ, STEERED]);
}
