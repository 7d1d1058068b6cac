//! Clients that send garbage, do not read, or want too much.
//!
//! If a test waits for a limit, the clock is paused and advances to it as soon as no task can continue.

use std::sync::atomic::Ordering;
use std::time::Duration;

use runnerd::rpc::connection_limit;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use crate::fixture::{CONNECTIONS, SocketServer};
use crate::raw::{self, RawSocket};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const NO_BATCHES: i64 = -32005;
const TOO_MANY_SUBSCRIPTIONS: i64 = -32006;
const TOO_LARGE: i64 = -32007;

const BUSY_SUBSCRIPTION: &str = r#"{"jsonrpc":"2.0","id":"s","method":"events.subscribe","params":[true]}"#;

#[tokio::test]
async fn rubbish_gets_its_error_and_the_connection_lives() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    let nested = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"run.status","params":{}"#, "[".repeat(100_000));
    let cases: [(&[u8], i64); 10] = [
        (b"", PARSE_ERROR),
        (b"   ", PARSE_ERROR),
        (b"rubbish", PARSE_ERROR),
        (b"{", PARSE_ERROR),
        (nested.as_bytes(), PARSE_ERROR),
        (br#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"1.0","id":1,"method":"run.status"}"#, INVALID_REQUEST),
        (br#"{"jsonrpc":"2.0","id":1,"method":"run.fly"}"#, UNKNOWN_METHOD),
        (br#"{"jsonrpc":"2.0","id":1,"method":"run.pause","params":["one"]}"#, INVALID_PARAMS),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"run.status"}]"#, NO_BATCHES),
    ];
    for (text, code) in cases {
        client.send(text).await;
        assert_eq!(client.receive_error().await, code, "{}", String::from_utf8_lossy(&text[..text.len().min(80)]));
    }
    client.call("run.status").await;
    assert_eq!(client.receive().await.unwrap()["result"], "fine");
}

#[tokio::test]
async fn bytes_that_are_not_text_get_an_error_and_harm_nobody_else() {
    let server = SocketServer::start();
    let mut other = RawSocket::open(server.socket()).await;
    let mut client = RawSocket::open(server.socket()).await;
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}").await;
    assert_eq!(client.receive_error().await, INVALID_REQUEST);
    let answer = raw::post(server.socket(), b"\xff\xfe").await;
    assert!(answer.contains("-32700"), "{answer}");
    other.call("run.status").await;
    assert_eq!(other.receive().await.unwrap()["result"], "fine");
}

#[tokio::test]
async fn a_hundred_thousand_open_brackets_do_not_exhaust_the_stack() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.send("[".repeat(100_000)).await;
    assert_eq!(client.receive_error().await, NO_BATCHES);
    let answer = raw::post(server.socket(), "[".repeat(100_000).as_bytes()).await;
    assert!(answer.contains("error"), "{answer}");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_the_connection_lives() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"run.status","params":["{}"]}}"#, "x".repeat(2 << 20));
    client.send(&text).await;
    assert_eq!(client.receive_error().await, TOO_LARGE);
    client.call("run.status").await;
    assert_eq!(client.receive().await.unwrap()["result"], "fine");
    let answer = raw::post(server.socket(), text.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn subscriptions_of_a_connection_are_counted() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    let mut refused = 0;
    for id in 0..17 {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"events.subscribe"}}"#)).await;
        refused += loop {
            let message = client.receive().await.unwrap();
            if message["id"] == id {
                break i32::from(message["error"]["code"] == TOO_MANY_SUBSCRIPTIONS);
            }
        };
    }
    assert_eq!(refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_never_reads_is_cut_off() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.send(BUSY_SUBSCRIPTION).await;
    timeout(Duration::from_secs(11), server.told.unsubscribed.notified()).await.unwrap();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(1), client.stream.read_to_end(&mut rest)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_busy_subscription_does_not_keep_requests_out() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.send(BUSY_SUBSCRIPTION).await;
    client.receive().await.unwrap();
    client.call("run.status").await;
    while client.receive().await.unwrap()["result"] != "fine" {}
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_client_that_does_not_read_are_not_taken_in_without_end() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    let call = raw::frame(raw::request("run.status").as_bytes()).repeat(100);
    let mut taken = 0;
    while let Ok(Ok(())) = timeout(Duration::from_secs(1), client.stream.write_all(&call)).await {
        taken += call.len();
        assert!(taken < 16 << 20, "the server took {taken} bytes");
    }
    let mut other = RawSocket::open(server.socket()).await;
    other.call("run.status").await;
    assert_eq!(other.receive().await.unwrap()["result"], "fine");
}

#[tokio::test]
async fn pipelined_calls_wait_in_the_socket_and_all_are_answered() {
    const CALLS: usize = 1000;
    let server = SocketServer::start();
    let mut flood = RawSocket::open(server.socket()).await;
    let call = raw::frame(raw::request("test.slow").as_bytes());
    flood.stream.write_all(&call.repeat(CALLS)).await.unwrap();
    let mut other = RawSocket::open(server.socket()).await;
    for _ in 0..100 {
        other.call("run.status").await;
        assert_eq!(other.receive().await.unwrap()["result"], "fine");
    }
    let begun = server.told.slow.load(Ordering::SeqCst);
    let most = 32 + (8 << 10) / u32::try_from(call.len()).unwrap();
    assert!((32..=most).contains(&begun), "{begun} calls are under way: 32, and what one read of 8 KiB holds");
    for _ in 0..CALLS {
        server.told.go_on.notify_one();
        assert_eq!(flood.receive().await.unwrap()["result"], "slow");
    }
}

#[tokio::test]
async fn large_replies_are_counted_as_written() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.stream.write_all(&raw::frame(raw::request("test.large").as_bytes()).repeat(4)).await.unwrap();
    for _ in 0..4 {
        assert_eq!(client.receive().await.unwrap()["result"].as_str().map(str::len), Some(8 << 20));
    }
    client.call("run.status").await;
    assert_eq!(client.receive().await.unwrap()["result"], "fine", "what was written is not under way any more");
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_all_of_a_large_reply() {
    let server = SocketServer::start();
    let mut client = RawSocket::open(server.socket()).await;
    client.call("test.large").await;
    let mut read = 0;
    let mut buffer = vec![0; 256 << 10];
    while read < 8 << 20 {
        sleep(Duration::from_secs(5)).await;
        let bytes = client.stream.read(&mut buffer).await.unwrap();
        assert_ne!(bytes, 0, "closed after {read} bytes");
        read += bytes;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_calls_nothing_is_closed_after_ten_seconds() {
    let server = SocketServer::start();
    let mut silent = UnixStream::connect(server.socket()).await.unwrap();
    let mut half = UnixStream::connect(server.socket()).await.unwrap();
    half.write_all(b"GET / HT").await.unwrap();
    let mut upgraded = RawSocket::open(server.socket()).await;
    let mut called = RawSocket::open(server.socket()).await;
    called.call("run.status").await;
    called.receive().await.unwrap();
    let mut rest = Vec::new();
    for stream in [&mut silent, &mut half, &mut upgraded.stream] {
        timeout(Duration::from_secs(11), stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    }
    called.call("run.status").await;
    assert_eq!(called.receive().await.unwrap()["result"], "fine", "one that has called may be silent");
}

#[test]
fn half_of_the_descriptors_are_for_connections_and_more_than_agents_may_have() {
    let served = [1 << 20, 2048, 300, 90].map(connection_limit);
    assert_eq!(served, [1024, 1024, 150, 65]);
}

#[tokio::test]
async fn a_connection_too_many_takes_the_place_of_the_most_silent_one() {
    let server = SocketServer::start();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(RawSocket::open(server.socket()).await);
    }
    clients[0].call("run.status").await;
    clients[0].receive().await.unwrap();
    let mut late = RawSocket::open(server.socket()).await;
    late.call("run.status").await;
    assert_eq!(late.receive().await.unwrap()["result"], "fine");
    assert!(clients[1].receive().await.is_none(), "the first that never called gives way");
    clients[0].call("run.status").await;
    assert_eq!(clients[0].receive().await.unwrap()["result"], "fine");
}

#[tokio::test]
async fn a_connection_too_many_waits_while_all_others_are_waited_for() {
    let server = SocketServer::start();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = RawSocket::open(server.socket()).await;
        client.call("events.subscribe").await;
        client.receive().await.unwrap();
        clients.push(client);
    }
    let waiting = RawSocket::open(server.socket());
    tokio::pin!(waiting);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("one connection too many is served"),
        () = async { clients[0].call("run.status").await; while clients[0].receive().await.unwrap()["id"] != 1 {} } => {}
    }
    clients.pop();
    waiting.await;
}
