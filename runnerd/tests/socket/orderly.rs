//! Well-behaved clients.

use jsonrpsee::core::client::ClientT as _;
use jsonrpsee::rpc_params;
use protocol::api::API_VERSION;
use protocol::client::{self, CallError, ConnectError, OneShotClient};
use protocol::error::{ErrorKind, ExitStatus};

use crate::fixture::{self, SocketServer};
use crate::raw;

#[tokio::test]
async fn a_client_learns_who_the_daemon_is() {
    let server = SocketServer::start();
    let connection = server.connect().await;
    assert_eq!(connection.daemon().pid, std::process::id());
    assert_eq!(connection.address().socket(), Some(server.socket()));
}

#[tokio::test]
async fn twenty_clients_at_once_are_all_answered() {
    let server = SocketServer::start();
    let clients = (0..20).map(|_| {
        let paths = server.paths.clone();
        tokio::spawn(async move {
            let connection = fixture::connect(&paths).await.unwrap();
            for number in 0..50 {
                let reply: u32 = connection.client().request("run.pause", rpc_params![number]).await.unwrap();
                assert_eq!(reply, number);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn questions_at_the_same_time_have_each_their_own_answer() {
    let server = SocketServer::start();
    let options = fixture::options(&server.paths);
    let reply = client::query(&options, async |client: &OneShotClient| {
        let slow = client.request::<String, _>("test.slow", rpc_params![]);
        let others = async {
            server.told.begun.notified().await;
            let number = client.request::<u32, _>("run.pause", rpc_params![7]).await.unwrap();
            let refused = client.request::<(), _>("test.panic", rpc_params![]).await.unwrap_err();
            server.told.go_on.notify_one();
            (number, CallError::from(refused).exit_status())
        };
        let (slow, others) = tokio::join!(slow, others);
        (slow.unwrap(), others)
    });
    assert_eq!(reply.await.unwrap(), ("slow".to_owned(), (7, ExitStatus::Error)));
}

#[tokio::test]
async fn daemon_of_another_version_is_told_before_what_it_answers() {
    let server = SocketServer::of_api_version(API_VERSION + 1);
    let options = fixture::options(&server.paths);
    let reply = client::query(&options, async |client: &OneShotClient| {
        client.request::<String, _>("test.slow", rpc_params![]).await
    });
    assert!(matches!(reply.await, Err(ConnectError::ProtocolMismatch { .. })));
}

#[tokio::test]
async fn daemon_of_a_development_build_is_named_with_its_process() {
    let server = SocketServer::of_a_development_build();
    let mine = std::process::id();
    let is_named = |error| matches!(error, ConnectError::DevelopmentBuild { pid: Some(pid), .. } if pid == mine);
    assert!(is_named(fixture::connect(&server.paths).await.unwrap_err()));
    let options = fixture::options(&server.paths);
    let reply = client::query(&options, async |client: &OneShotClient| {
        client.request::<String, _>("run.status", rpc_params![]).await
    });
    assert!(is_named(reply.await.unwrap_err()));
}

#[tokio::test]
async fn plain_http_is_answered_too() {
    let server = SocketServer::start();
    let answer = raw::post(server.socket(), raw::request("run.status").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(r#"{"jsonrpc":"2.0","id":1,"result":"fine"}"#), "{answer}");
}

#[tokio::test]
async fn a_method_that_the_daemon_lacks_says_to_update_it() {
    let server = SocketServer::start();
    let connection = server.connect().await;
    let error = connection.client().request::<(), _>("run.fly", rpc_params![]).await.unwrap_err();
    assert_eq!(CallError::from(error).exit_status(), ExitStatus::ProtocolMismatch);
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_connection_lives() {
    let server = SocketServer::start();
    let connection = server.connect().await;
    for method in ["test.panic", "test.panic_later"] {
        let error = connection.client().request::<(), _>(method, rpc_params![]).await.unwrap_err();
        let CallError::Refused(refusal) = error.into() else { panic!("not a refusal") };
        assert_eq!(refusal.kind, ErrorKind::Bug, "{refusal}");
        assert!(refusal.message.contains(method), "{refusal}");
    }
    let status: String = connection.client().request("run.status", rpc_params![]).await.unwrap();
    assert_eq!(status, "fine");
}

#[tokio::test]
async fn a_call_continues_when_its_client_disconnects() {
    let server = SocketServer::start();
    let mut client = raw::RawSocket::open(server.socket()).await;
    client.call("test.slow").await;
    server.told.begun.notified().await;
    drop(client);
    // Another connection is served before the call continues: by then the first one's end has been noticed.
    server.connect().await;
    server.told.go_on.notify_one();
    server.told.finished.notified().await;
}

#[tokio::test]
async fn a_step_that_nobody_waits_for_any_more_is_no_longer_waited_for() {
    let server = SocketServer::start();
    let mut client = raw::RawSocket::open(server.socket()).await;
    client.call("run.step").await;
    server.told.begun.notified().await;
    drop(client);
    server.told.dropped.notified().await;
}

#[tokio::test]
async fn without_a_daemon_the_client_says_so_with_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let error = fixture::connect(&fixture::paths_in(dir.path())).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoDaemon { .. }), "{error}");
    assert_eq!(error.exit_status(), ExitStatus::NoDaemon);
}
