//! Steering: the one kind of request that changes something. It is only answered if the server was started for it.
//!
//! Five things are required: the page's own origin, the cookie, an additional token that only a URL of this server
//! yields, a body in a format that no foreign page can send, and a client program that was not started by an iteration.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, StatusCode};
use protocol::api::{DaemonApiClient as _, NoteApiClient as _, QuestionApiClient as _, ReviewApiClient as _};
use protocol::api::{RunApiClient, TreeApiClient as _};
use protocol::client::{Connection, caller_env};
use protocol::reply::{ChangeReply, ControlReply, ReviewReply};
use protocol::request::{AnswerParams, AtRun, NoteParams, PauseParams, ResumeParams, RetryParams, VouchParams};
use protocol::review::{ApproveParams, RejectParams};
use protocol::words::ReviewVerdict;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::app::App;
use crate::body::JsonReply;
use crate::caller::ConnectionEnds;
use crate::problem::ApiProblem;
use crate::target::RequestTarget;
use crate::wire::{Steer, Steered};

/// Header that carries the token.
pub(crate) const STEER_TOKEN: HeaderName = HeaderName::from_static("x-runner-steer");
/// Maximum size of a body: a text of 8 KiB, with each of its bytes escaped.
const BODY_BYTES: usize = 64 * 1024;
/// Time limit for receiving the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of the handler besides the body.
type SteerContext = (State<App>, RequestTarget, Extension<ConnectionEnds>, HeaderMap);

/// Handles a request that changes something.
pub(crate) async fn steer(
    (State(app), target, Extension(ends), headers): SteerContext,
    body: Body,
) -> Result<Response, ApiProblem> {
    if !app.keys.may_steer(&headers) {
        let message = "this page may only look: the token for steering is missing or another one";
        return Err(ApiProblem::new(StatusCode::FORBIDDEN, "may_not_steer", message)
            .hint("open the address that `runnerctl ui --steer` has printed last"));
    }
    let order = read_order(&headers, body).await?;
    let located = app.locate(target).await?;
    let connection = located.connection()?;
    check_caller(&connection, ends, order.method()).await?;
    let outcome = perform_order(&connection, located.into_at_run(), order).await?;
    Ok(JsonReply(outcome).into_response())
}

/// Replies that a path requires another method.
pub(crate) async fn reject_get() -> ApiProblem {
    ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "only POST is answered here")
}

async fn read_order(headers: &HeaderMap, body: Body) -> Result<Steer, ApiProblem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request", "the body is not JSON"));
    }
    let bytes = timeout(BODY_TIMEOUT, axum::body::to_bytes(body, BODY_BYTES)).await;
    let late = |_| ApiProblem::new(StatusCode::REQUEST_TIMEOUT, "invalid_request", "the body did not come in time");
    let large = |_| {
        let message = "the body is larger than 64 KiB, or broke off";
        ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request", message)
    };
    let bytes = bytes.map_err(late)?.map_err(large)?;
    serde_json::from_slice(&bytes).map_err(|error| ApiProblem::invalid(format!("the body cannot be read: {error}")))
}

/// Asks the daemon whether the program at the other end may steer. The program is looked up twice, since a connection
/// may change hands and a process id may be reused.
async fn check_caller(connection: &Connection, ends: ConnectionEnds, method: &str) -> Result<(), ApiProblem> {
    let holders = async || spawn_blocking(move || ends.peer_pids()).await.unwrap_or_default();
    let pids = holders().await;
    if pids.is_empty() {
        return Err(unknown_caller_problem());
    }
    let params = VouchParams { pids: pids.clone(), method: method.to_owned() };
    connection.client().vouch(params).await?;
    if holders().await == pids { Ok(()) } else { Err(unknown_caller_problem()) }
}

fn unknown_caller_problem() -> ApiProblem {
    let message = "it cannot be told which program asks, as behind a tunnel: nothing was done";
    ApiProblem::new(StatusCode::FORBIDDEN, "inside_iteration", message)
        .hint("type the command on the machine where the daemon runs")
}

async fn perform_order(connection: &Arc<Connection>, at: AtRun, order: Steer) -> Result<Steered, ApiProblem> {
    let client = connection.client();
    let AtRun { path, run } = at.clone();
    Ok(match order {
        Steer::Answer { question, text } => {
            from_change(client.answer(AnswerParams { path: Some(path), id: question, text }).await?)
        }
        Steer::Note { text } => from_change(client.add_note(NoteParams { at, text }).await?),
        Steer::Retry { node } => from_change(client.retry(RetryParams { at, node }).await?),
        Steer::Approve { iter } => {
            from_review(&client.approve(ApproveParams { at, iteration: iter, signature: None }).await?)
        }
        Steer::Reject { iter, reason } => {
            from_review(&client.reject(RejectParams { at, iteration: iter, reason, signature: None }).await?)
        }
        Steer::Pause { now } => {
            let reply = RunApiClient::pause(client, PauseParams { path, run, now }).await?;
            from_control(&reply, "pauses", if now { "when its session has ended" } else { "after this iteration" })
        }
        Steer::Resume { now, more } => {
            // Commands not confirmed yet must be confirmed where they can be read in full.
            let env = caller_env::collect(connection, &path).await;
            let params = ResumeParams { path, run, now, more, confirmed: false, env };
            from_control(&RunApiClient::resume(client, params).await?, "continues", "when its session has ended")
        }
    })
}

fn from_change(reply: ChangeReply) -> Steered {
    Steered { summary: reply.summary, pending: reply.pending, waits_for: reply.waits_for }
}

fn from_review(reply: &ReviewReply) -> Steered {
    let decision = match reply.verdict {
        ReviewVerdict::Accept => "approved",
        ReviewVerdict::Reject => "rejected",
    };
    Steered { summary: format!("{decision}: {}", reply.node), pending: false, waits_for: None }
}

fn from_control(reply: &ControlReply, what: &str, when: &str) -> Steered {
    let waits_for = reply.pending.then(|| when.to_owned());
    Steered { summary: format!("{what}: {}", reply.run.id), pending: reply.pending, waits_for }
}
