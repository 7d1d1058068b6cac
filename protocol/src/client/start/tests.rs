//! The daemon in these tests is a shell script that follows [`crate::startup`], and a socket that the test binds when
//! the script reports that it runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use nix::sys::stat::Mode;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use super::*;
use crate::error::ExitStatus;

/// Records the start, notifies the test, and reports readiness when the test listens.
const DAEMON: &str = "echo start >> starts; echo > begun; read -r line < bound; echo READY";

/// A folder with a script in place of the daemon.
struct FakeDaemon {
    dir: TempDir,
    paths: Paths,
}

impl FakeDaemon {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("runnerd"), format!("#!/bin/sh\ncd '{}' || exit\n{script}\n", dir.path().display())).unwrap();
        fs::set_permissions(at("runnerd"), Permissions::from_mode(0o700)).unwrap();
        for pipe in ["begun", "bound"] {
            nix::unistd::mkfifo(&at(pipe), Mode::S_IRWXU).unwrap();
        }
        let paths =
            Paths { socket: at("run/runnerd.sock"), socket_named: true, state: at("state"), config: at("config.toml") };
        Self { dir, paths }
    }

    async fn start(&self) -> Result<UnixStream, ConnectError> {
        start_with_lock(&self.paths, Some(&self.dir.path().join("runnerd"))).await
    }

    /// Waits until the script runs.
    async fn wait_until_started(&self) {
        let mut begun = pipe::OpenOptions::new().read_write(true).open_receiver(self.dir.path().join("begun")).unwrap();
        begun.read_u8().await.unwrap();
    }

    /// Listens, and lets the script report it.
    async fn listen(&self) -> (UnixListener, pipe::Sender) {
        let listener = UnixListener::bind(&self.paths.socket).unwrap();
        let mut bound = pipe::OpenOptions::new().read_write(true).open_sender(self.dir.path().join("bound")).unwrap();
        bound.write_all(b"\n").await.unwrap();
        (listener, bound)
    }

    fn start_count(&self) -> usize {
        fs::read_to_string(self.dir.path().join("starts")).unwrap().lines().count()
    }
}

fn start_error(outcome: Result<UnixStream, ConnectError>) -> StartError {
    match outcome.unwrap_err() {
        ConnectError::Start(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_daemon_is_started_and_connected_to() {
    let place = FakeDaemon::new(DAEMON);
    let (outcome, _listening) = tokio::join!(place.start(), async {
        place.wait_until_started().await;
        place.listen().await
    });
    outcome.unwrap();
    let startup_log = fs::metadata(place.paths.startup_log()).unwrap();
    assert_eq!(startup_log.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn twenty_clients_start_one_daemon() {
    let place = std::sync::Arc::new(FakeDaemon::new(DAEMON));
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let place = std::sync::Arc::clone(&place);
            tokio::spawn(async move { place.start().await.map(drop) })
        })
        .collect();
    place.wait_until_started().await;
    let _listening = place.listen().await;
    for client in clients {
        client.await.unwrap().unwrap();
    }
    assert_eq!(place.start_count(), 1);
}

#[tokio::test]
async fn the_daemon_has_no_input_and_knows_its_socket() {
    let place = FakeDaemon::new("{ pwd; cat; echo \"$1 $RUNNERD_SOCKET\"; } > seen 2>&1; exit 3");
    start_error(place.start().await);
    let env = fs::read_to_string(place.dir.path().join("seen")).unwrap();
    let flag_and_socket = format!("{} {}\n", startup::FLAG, place.paths.socket.display());
    assert!(env.ends_with(&flag_and_socket), "{env}");
    assert_eq!(env.lines().count(), 2, "something came from its input: {env}");
}

#[tokio::test]
async fn a_daemon_that_dies_is_shown_with_its_last_words() {
    let place = FakeDaemon::new("echo 'the disk is on fire' >&2; exit 3");
    let error = start_error(place.start().await);
    let text = error.to_string();
    assert!(text.contains("exit status: 3") && text.ends_with("the disk is on fire"), "{text}");
    assert_eq!(ConnectError::from(error).exit_status(), ExitStatus::NoDaemon);
}

#[tokio::test]
async fn a_reason_that_the_daemon_gives_is_passed_on() {
    let place = FakeDaemon::new("echo 'FAILED cannot read the state'; exit 1");
    let error = start_error(place.start().await);
    assert!(error.to_string().ends_with("did not start: cannot read the state"), "{error}");
}

#[tokio::test]
async fn a_daemon_that_finds_another_one_ending_is_started_again() {
    let occupied = "[ -e starts ] || { echo start > starts; echo 'FAILED occupied'; exit 75; }";
    let place = FakeDaemon::new(&format!("{occupied}\n{DAEMON}"));
    let (outcome, _listening) = tokio::join!(place.start(), async {
        place.wait_until_started().await;
        place.listen().await
    });
    outcome.unwrap();
    assert_eq!(place.start_count(), 2);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let place = FakeDaemon::new("");
    fs::remove_file(place.dir.path().join("runnerd")).unwrap();
    let error = start_error(place.start().await);
    assert!(matches!(&error, StartError::Spawn { program, .. } if program.ends_with("runnerd")), "{error}");
    assert!(ConnectError::from(error).hint().is_some());
}
