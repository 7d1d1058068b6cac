//! What a single browser, real or not, can consume: bounded heads, bodies and connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::kit::UiStage;

#[test]
fn a_head_that_is_too_large_is_refused() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let large = "x".repeat(64 * 1024);
    for (path, headers) in [
        ("/api/repos", vec![("X-Large", large.as_str())]),
        (&format!("/{large}"), Vec::new()),
        (&format!("/api/tree?run={large}"), Vec::new()),
    ] {
        let reply = ui.ask("GET", path, &headers);
        // A peer that is still sending may find the connection closed before it reads the reply.
        assert!(reply.status == 0 || (400..500).contains(&reply.status), "{reply:?}");
    }
    let many = "X-Many: y\r\n".repeat(500);
    let reply = ui.raw(&format!("{}{many}Connection: close\r\n\r\n", ui.request_head("GET", "/api/repos", &[])));
    assert!((400..500).contains(&reply.status), "{reply:?}");
    assert_eq!(ui.get("/api/repos").status, 200);
}

#[test]
fn a_head_of_32_kib_is_the_largest() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let end = "Connection: close\r\n\r\n";
    let around = ui.request_head("GET", "/api/health", &[("X-Large", "")]).len() + end.len();
    let status = |size: usize| {
        let large = "x".repeat(size - around);
        ui.raw(&format!("{}{end}", ui.request_head("GET", "/api/health", &[("X-Large", &large)]))).status
    };
    assert_eq!(status(32 * 1024), 200);
    assert_eq!(status(32 * 1024 + 1), 431);
    assert_eq!(status(39 * 1024), 431);
}

#[test]
fn open_connections_without_requests_lock_no_client_out() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let answered = |stream: &mut TcpStream| {
        let asks = ui.request_head("GET", "/api/health", &[]) + "\r\n";
        stream.write_all(asks.as_bytes()).expect("it reads");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).expect("it answers");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let size = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a size");
        let mut body = vec![0; size.parse().expect("a number")];
        stream.read_exact(&mut body).expect("its body");
    };
    let mut known = ui.connect();
    answered(&mut known);
    let half_open: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = ui.connect();
            // One that had to make room is already closed.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
            stream
        })
        .collect();
    // Both while all of them are open: for a new connection, and for one accepted earlier.
    answered(&mut ui.connect());
    answered(&mut known);
    drop(half_open);
}

#[test]
fn a_body_is_not_read() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    for method in ["GET", "POST"] {
        let mut stream = ui.connect();
        let head = ui.request_head(method, "/api/repos", &[("Content-Length", "1000000000000")]) + "\r\n";
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("it answers before the body");
        assert_eq!(&status, if method == "GET" { b"HTTP/1.1 200" } else { b"HTTP/1.1 405" });
    }
}

#[test]
fn what_is_no_request_is_refused() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let host = format!("Host: 127.0.0.1:{}\r\n", ui.port);
    let odd = [
        "\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}".to_owned() + "\r\n\r\n",
        format!("GET / HTTP/9.9\r\n{host}\r\n"),
        format!("GET /a b HTTP/1.1\r\n{host}\r\n"),
        "GET http://evil.example/api/repos HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}Bad Header\r\n\r\n"),
    ];
    for request in odd {
        let reply = ui.raw_and_close(&request);
        assert!(reply.status == 0 || (400..500).contains(&reply.status), "{request:?}: {reply:?}");
    }
    assert_eq!(ui.get("/api/repos").status, 200);
}

#[test]
fn connections_that_are_closed_make_room_for_others() {
    let stage = UiStage::with_played_run();
    let ui = stage.ui();
    let idle: Vec<_> = (0..128).map(|_| ui.connect()).collect();
    let mut waiting = ui.connect();
    let request = ui.request_head("GET", "/api/health", &[]) + "Connection: close\r\n\r\n";
    waiting.write_all(request.as_bytes()).expect("the system takes it");
    drop(idle);
    let mut reply = String::new();
    waiting.read_to_string(&mut reply).expect("it is answered");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}
