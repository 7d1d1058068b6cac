//! The web's side of the service: requests are taken apart, replies sent, withheld, cut or left hanging.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, channel};
use hyper::body::Incoming;
use hyper::http::HeaderMap;
use hyper::http::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::reply::{Course, Reply};
use super::request::{Protocol, Request};
use super::server::Stage;
use super::wire::{Body, Sent};
use super::{messages, responses};

/// The connection is to be closed where it is.
#[derive(Debug)]
struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed by the script")
    }
}

impl std::error::Error for Closed {}

type Sending = BoxBody<Bytes, Closed>;

/// Serves connections until it is dropped.
pub(super) async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&stage)));
    }
}

async fn serve(stream: TcpStream, stage: Arc<Stage>) {
    let service = service_fn(move |request| answer(request, Arc::clone(&stage)));
    // A connection that ends badly is what many scripts are about.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: hyper::Request<Incoming>, stage: Arc<Stage>) -> Result<Response<Sending>, Closed> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    let protocol = match head.uri.path() {
        path if head.method != Method::POST => return Ok(aside(&stage, &head.method, path)),
        path if path.ends_with("/responses") => Protocol::Responses,
        path if path.ends_with("/messages") => Protocol::Messages,
        path => return Ok(aside(&stage, &head.method, path)),
    };
    let request = Request {
        protocol,
        path: head.uri.to_string(),
        headers: readable(&head.headers),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let (reply, number) = stage.take(request.clone());
    match reply.course {
        Course::NeverSent => return Err(Closed),
        Course::Withheld => std::future::pending().await,
        Course::Whole | Course::Dropped | Course::Stalled | Course::Unfinished => {}
    }
    let sent = match protocol {
        Protocol::Responses => responses::render(&request, &reply, number),
        Protocol::Messages => messages::render(&request, &reply, number),
    };
    Ok(send(sent, &reply))
}

/// Answers what is no request for the model's word. A connection for other ways of speaking is refused, so that
/// clients take the ordinary one.
fn aside(stage: &Stage, method: &Method, path: &str) -> Response<Sending> {
    stage.note(format!("{method} {path}"));
    let sent = if path.ends_with("/count_tokens") {
        Sent::json(200, &json!({"input_tokens": 1_000}))
    } else if path.ends_with("/responses") {
        Sent::json(426, &json!({"error": {"message": "POST only", "type": "invalid_request_error"}}))
    } else if method == Method::HEAD || path == "/" {
        Sent::json(200, &json!({}))
    } else {
        Sent::json(404, &json!({"error": {"message": "not found", "type": "invalid_request_error"}}))
    };
    send(sent, &Reply::nothing())
}

fn send(sent: Sent, reply: &Reply) -> Response<Sending> {
    let mut response = Response::builder().status(StatusCode::from_u16(sent.code).expect("BUG: no status"));
    for (name, value) in sent.headers.iter().chain(&reply.headers) {
        response = response.header(name, value);
    }
    let body = match sent.body {
        Body::Whole(body) if reply.course == Course::Whole => Full::from(body).map_err(never).boxed(),
        Body::Whole(body) => piecewise(half(&body).to_owned(), reply.course),
        Body::Events(events) => piecewise(events.sent(reply.course), reply.course),
    };
    response.body(body).expect("a script's headers are headers")
}

/// Sends a part of the body and then does what the course says, after the part has been sent.
fn piecewise(part: String, course: Course) -> Sending {
    let (mut sender, body) = channel::Channel::new(1);
    tokio::spawn(async move {
        if sender.send_data(Bytes::from(part)).await.is_err() || course == Course::Whole {
            return;
        }
        // The connection's own task writes while this one steps back.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        match course {
            Course::Dropped => sender.abort(Closed),
            _ => std::future::pending().await,
        }
    });
    body.boxed()
}

fn half(text: &str) -> &str {
    let mut at = text.len() / 2;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    &text[..at]
}

fn never(error: Infallible) -> Closed {
    match error {}
}

fn readable(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
