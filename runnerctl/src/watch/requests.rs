//! The model's requests as requests to the daemon, and the answers as messages.

use std::time::Duration;

use jsonrpsee::core::client::Error;
use protocol::api::{
    IterationApiClient, NoteApiClient as _, QuestionApiClient as _, ReviewApiClient as _, RunApiClient,
};
use protocol::client::{CallError, Connection, caller_env};
use protocol::error::ErrorKind;
use protocol::reply::{ChangeReply, ControlReply, ReviewReply, StepReply};
use protocol::request::{
    AnswerParams, AtIteration, AtRun, LogParams, NoteParams, PauseParams, QuestionsParams, ResumeParams, StepParams,
};
use protocol::review::{ApproveParams, RejectParams};
use protocol::words::ReviewVerdict;
use tokio::time::sleep;

use super::message::{LogPosition, Message, Request, RequestError, RunKey, SteerAction, SteerRequest};
use crate::commands::tree::fetch_tree;
use crate::failure::{Failure, is_refusal};

/// What happens within this time is one request.
const TOGETHER: Duration = Duration::from_millis(50);

/// Does what the model asks of the daemon; none for what is not the daemon's.
pub(super) async fn answer(connection: &Connection, request: Request) -> Option<Message> {
    let client = connection.client();
    Some(match request {
        Request::Statuses => {
            sleep(TOGETHER).await;
            Message::Statuses(client.status_all().await.map_err(RequestError::from))
        }
        Request::Tree(target) => {
            let reply = fetch_tree(client, at(&target)).await;
            Message::Tree(target, reply.map(Box::new).map_err(RequestError::from))
        }
        Request::Iterations(target) => {
            let reply = IterationApiClient::list(client, at(&target)).await;
            Message::Iterations(target, reply.map_err(RequestError::from))
        }
        Request::Piece(place) => {
            if place.offset > 0 {
                sleep(TOGETHER).await;
            }
            let reply = client.log(params(&place)).await;
            Message::Piece(place, reply.map_err(RequestError::from))
        }
        Request::Questions(target) => {
            let reply = client.questions(QuestionsParams { path: Some(target.path.clone()), all: false }).await;
            Message::Questions(target, reply.map_err(RequestError::from))
        }
        Request::Steer(steer) => {
            let result = steered(connection, &steer).await;
            Message::Steered(steer, result.map_err(RequestError::from))
        }
        Request::Follow(_) | Request::Machine(_) | Request::Redraw | Request::Suspend | Request::Quit => return None,
    })
}

fn at(target: &RunKey) -> AtRun {
    AtRun { path: target.path.clone(), run: target.run.clone() }
}

fn params(LogPosition { key, offset }: &LogPosition) -> LogParams {
    let RunKey { path, run, .. } = key.target.clone();
    let at = AtIteration { path, run, iter: Some(key.iter), wait: key.wait };
    LogParams { at, stream: key.stream, offset: *offset, raw: false }
}

/// Steers a run and returns what came of it.
async fn steered(connection: &Connection, steer: &SteerRequest) -> Result<String, Error> {
    let client = connection.client();
    let (AtRun { path, run }, confirmed) = (at(&steer.target), steer.confirmed);
    match &steer.what {
        SteerAction::Pause { now } => {
            let reply = client.pause(PauseParams { path, run, now: *now }).await?;
            Ok(controlled(
                &reply,
                if *now { "pauses when its session has ended" } else { "pauses after this iteration" },
            ))
        }
        SteerAction::Resume { now } => {
            let env = caller_env::collect(connection, &path).await;
            let reply = client.resume(ResumeParams { path, run, now: *now, more: None, confirmed, env }).await?;
            Ok(controlled(&reply, "continues when its session has ended"))
        }
        SteerAction::Step => {
            let env = caller_env::collect(connection, &path).await;
            Ok(stepped(&client.step(StepParams { path, run, confirmed, env }).await?))
        }
        SteerAction::Cancel => {
            Ok(controlled(&client.cancel(at(&steer.target)).await?, "ends when its session has ended"))
        }
        SteerAction::Note(text) => {
            let reply = client.add_note(NoteParams { at: at(&steer.target), text: text.clone() }).await?;
            Ok(noted(&reply))
        }
        SteerAction::Answer { id, text } => {
            let params = AnswerParams { path: Some(path), id: id.clone(), text: text.clone() };
            Ok(answered(&client.answer(params).await?))
        }
        SteerAction::Approve => {
            Ok(reviewed(&client.approve(ApproveParams { at: at(&steer.target), signature: None }).await?))
        }
        SteerAction::Reject(reason) => {
            let params = RejectParams { at: at(&steer.target), reason: reason.clone(), signature: None };
            Ok(reviewed(&client.reject(params).await?))
        }
    }
}

fn controlled(reply: &ControlReply, pending: &str) -> String {
    let then = if reply.pending { format!(", {pending}") } else { String::new() };
    format!("run {} {}{then}", reply.run.id, reply.run.state)
}

fn stepped(reply: &StepReply) -> String {
    let iteration = reply.iteration.as_ref();
    let ran =
        iteration.map(|view| format!("{:04} {} {}, ", view.iter, view.verdict.plain(), view.node)).unwrap_or_default();
    format!("{ran}run {} {}", reply.run.id, reply.run.state)
}

fn noted(reply: &ChangeReply) -> String {
    let id = reply.id.as_deref().unwrap_or_default();
    format!("note {id}: the next session that answers reads it{}", waits(reply))
}

fn answered(reply: &ChangeReply) -> String {
    format!("question {} is answered{}", reply.id.as_deref().unwrap_or_default(), waits(reply))
}

fn waits(reply: &ChangeReply) -> String {
    reply.waits_for.as_ref().map(|what| format!(" (waits: {what})")).unwrap_or_default()
}

fn reviewed(reply: &ReviewReply) -> String {
    let word = if reply.verdict == ReviewVerdict::Accept { "approved" } else { "rejected" };
    format!("node {} of iteration {:04} is {word}", reply.node, reply.iteration)
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        let error = CallError::from(error);
        let is_unconfirmed = is_refusal(&error, ErrorKind::Unconfirmed);
        Self { is_unconfirmed, ..Failure::from(error).into() }
    }
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Report(report) => Self { message: report.message, hint: report.hint, is_unconfirmed: false },
            Failure::BrokenPipe => Self { message: "the connection broke".into(), hint: None, is_unconfirmed: false },
        }
    }
}
