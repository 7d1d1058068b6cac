//! The HTTP side of the service: parses requests, and sends, withholds, truncates or stalls replies.

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

use super::reply::{Delivery, ModelReply};
use super::request::{ModelProtocol, ModelRequest};
use super::server::SharedState;
use super::wire::{HttpReply, ReplyBody};
use super::{generate, messages, responses};

/// Aborts the connection at this point.
#[derive(Debug)]
struct ConnectionClosed;

impl fmt::Display for ConnectionClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed by the script")
    }
}

impl std::error::Error for ConnectionClosed {}

type ResponseBody = BoxBody<Bytes, ConnectionClosed>;

/// Serves connections until it is dropped.
pub(super) async fn accept_connections(listener: TcpListener, state: Arc<SharedState>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve_connection(stream, Arc::clone(&state)));
    }
}

async fn serve_connection(stream: TcpStream, state: Arc<SharedState>) {
    let service = service_fn(move |request| handle_request(request, Arc::clone(&state)));
    // Connections that end badly are the point of many scripts.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle_request(
    request: hyper::Request<Incoming>,
    state: Arc<SharedState>,
) -> Result<Response<ResponseBody>, ConnectionClosed> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| ConnectionClosed)?.to_bytes();
    let protocol = match head.uri.path() {
        path if head.method != Method::POST => return Ok(answer_other(&state, &head.method, path)),
        path if path.ends_with("/responses") => ModelProtocol::Responses,
        path if path.ends_with("/messages") => ModelProtocol::Messages,
        path if path.ends_with("enerateContent") => ModelProtocol::Generate,
        path => return Ok(answer_other(&state, &head.method, path)),
    };
    let request = ModelRequest {
        protocol,
        path: head.uri.to_string(),
        headers: header_texts(&head.headers),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let (reply, number) = state.record_request(request.clone());
    match reply.delivery {
        Delivery::NeverSent => return Err(ConnectionClosed),
        Delivery::Withheld => std::future::pending().await,
        Delivery::Complete | Delivery::Dropped | Delivery::Stalled | Delivery::Unfinished => {}
    }
    let rendered = match protocol {
        ModelProtocol::Responses => responses::render(&request, &reply, number),
        ModelProtocol::Messages => messages::render(&request, &reply, number),
        ModelProtocol::Generate => generate::render(&request, &reply),
    };
    Ok(build_response(rendered, &reply))
}

/// Answers requests other than those to a model. WebSocket upgrades are refused, so that clients use plain HTTP.
fn answer_other(state: &SharedState, method: &Method, path: &str) -> Response<ResponseBody> {
    state.record_other(format!("{method} {path}"));
    let rendered = if path.ends_with("/count_tokens") {
        HttpReply::json(200, &json!({"input_tokens": 1_000}))
    } else if path.ends_with("/responses") {
        HttpReply::json(426, &json!({"error": {"message": "POST only", "type": "invalid_request_error"}}))
    } else if method == Method::HEAD || path == "/" {
        HttpReply::json(200, &json!({}))
    } else {
        HttpReply::json(404, &json!({"error": {"message": "not found", "type": "invalid_request_error"}}))
    };
    build_response(rendered, &ModelReply::empty())
}

fn build_response(sent: HttpReply, reply: &ModelReply) -> Response<ResponseBody> {
    let mut response = Response::builder().status(StatusCode::from_u16(sent.code).expect("BUG: no status"));
    for (name, value) in sent.headers.iter().chain(&reply.headers) {
        response = response.header(name, value);
    }
    let body = match sent.body {
        ReplyBody::Complete(body) if reply.delivery == Delivery::Complete => {
            Full::from(body).map_err(from_infallible).boxed()
        }
        ReplyBody::Complete(body) => stream_part(first_half(&body).to_owned(), reply.delivery),
        ReplyBody::Events(events) => stream_part(events.into_text(reply.delivery), reply.delivery),
    };
    response.body(body).expect("a script's headers are headers")
}

/// Sends a part of the body, and once it is sent does what the course requires.
fn stream_part(part: String, delivery: Delivery) -> ResponseBody {
    let (mut sender, body) = channel::Channel::new(1);
    tokio::spawn(async move {
        if sender.send_data(Bytes::from(part)).await.is_err() || delivery == Delivery::Complete {
            return;
        }
        // The connection's own task writes while this one yields.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        match delivery {
            Delivery::Dropped => sender.abort(ConnectionClosed),
            _ => std::future::pending().await,
        }
    });
    body.boxed()
}

fn first_half(text: &str) -> &str {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    &text[..middle]
}

fn from_infallible(error: Infallible) -> ConnectionClosed {
    match error {}
}

fn header_texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
