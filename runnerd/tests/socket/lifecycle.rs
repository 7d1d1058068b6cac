//! The life of the socket: locks, stale sockets, modes, and removal.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use protocol::startup::EXIT_OCCUPIED;
use runnerd::rpc::{BoundSocket, DaemonLocks, LockError, SocketError};
use tokio::time::timeout;

use crate::fixture::{self, SocketServer};
use crate::raw::RawSocket;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn socket_and_locks_are_for_their_owner_alone() {
    let server = SocketServer::start();
    assert_eq!(mode(server.socket()), 0o600);
    assert_eq!(mode(server.socket().parent().unwrap()), 0o700);
    assert_eq!(mode(&server.paths.socket_lock()), 0o600);
    assert_eq!(mode(&server.paths.state), 0o700);
    assert_eq!(mode(&server.paths.state_lock()), 0o600);
}

#[tokio::test]
async fn a_folder_that_others_may_enter_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let paths = fixture::paths_in(dir.path());
    fs::create_dir(paths.socket.parent().unwrap()).unwrap();
    fs::set_permissions(paths.socket.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    let error = DaemonLocks::acquire(&paths).unwrap_err();
    assert!(matches!(error, LockError::Folder(_)), "{error}");
}

#[tokio::test]
async fn a_second_daemon_is_refused_and_told_of_the_first() {
    let server = SocketServer::start();
    let error = DaemonLocks::acquire(&server.paths).unwrap_err();
    assert_eq!(error.exit_code(), EXIT_OCCUPIED);
    assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
    server.connect().await;
}

#[tokio::test]
async fn a_socket_left_by_a_dead_daemon_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let paths = fixture::paths_in(dir.path());
    protocol::private_dir::create_private_dir(paths.socket.parent().unwrap()).unwrap();
    drop(UnixListener::bind(&paths.socket).unwrap());
    assert!(paths.socket.exists());
    SocketServer::start_at(dir, paths).connect().await;
}

#[tokio::test]
async fn a_socket_that_somebody_listens_on_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let paths = fixture::paths_in(dir.path());
    let locks = DaemonLocks::acquire(&paths).unwrap();
    let _listener = UnixListener::bind(&paths.socket).unwrap();
    let error = BoundSocket::new(&paths, &locks).unwrap_err();
    assert!(matches!(error, SocketError::InUse { .. }), "{error}");
    assert_eq!(error.exit_code(), EXIT_OCCUPIED);
    assert!(paths.socket.exists());
}

#[tokio::test]
async fn a_file_in_place_of_the_socket_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let paths = fixture::paths_in(dir.path());
    let locks = DaemonLocks::acquire(&paths).unwrap();
    fs::write(&paths.socket, "precious").unwrap();
    let error = BoundSocket::new(&paths, &locks).unwrap_err();
    assert!(matches!(error, SocketError::NotASocket { .. }), "{error}");
    assert_eq!(fs::read(&paths.socket).unwrap(), b"precious");
}

#[tokio::test]
async fn the_socket_is_gone_after_the_end_and_the_locks_stay() {
    let server = SocketServer::start();
    let paths = server.paths.clone();
    let _dir = server.stopped().await;
    assert!(!paths.socket.exists());
    assert!(paths.socket_lock().exists() && paths.state_lock().exists());
}

#[tokio::test]
async fn a_socket_that_is_another_ones_by_then_is_not_removed() {
    let server = SocketServer::start();
    let paths = server.paths.clone();
    fs::rename(&paths.socket, paths.socket.with_extension("moved")).unwrap();
    let _other = UnixListener::bind(&paths.socket).unwrap();
    let _dir = server.stopped().await;
    assert!(paths.socket.exists());
}

#[tokio::test]
async fn at_the_end_running_calls_are_answered_and_nothing_new_is_accepted() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.call("test.slow").await;
    server.told.begun.notified().await;
    server.begin_to_stop();
    server.told.go_on.notify_one();
    assert_eq!(client.receive().await.unwrap()["result"], "slow");
    let paths = server.paths.clone();
    let _dir = server.stopped().await;
    assert!(fixture::connect(&paths).await.is_err());
}

#[tokio::test]
async fn at_the_end_subscriptions_are_closed() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.call("events.subscribe").await;
    client.receive().await.unwrap();
    let state = std::sync::Arc::clone(&server.told);
    let reading = tokio::spawn(async move { while client.receive().await.is_some() {} });
    let _dir = server.stopped().await;
    state.unsubscribed.notified().await;
    reading.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_ever_for_a_call() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.call("test.slow").await;
    server.told.begun.notified().await;
    timeout(Duration::from_secs(11), server.stopped()).await.unwrap();
}
