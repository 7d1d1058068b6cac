//! Turns the model's requests into requests to the daemon, and the replies into messages.

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

/// Changes within this time lead to a single request.
const COALESCE_TIME: Duration = Duration::from_millis(50);

/// Carries out the model's request to the daemon; `None` for other commands.
pub(super) async fn perform_request(connection: &Connection, request: Request) -> Option<Message> {
    let client = connection.client();
    Some(match request {
        Request::Statuses => {
            sleep(COALESCE_TIME).await;
            Message::Statuses(client.status_all().await.map_err(RequestError::from))
        }
        Request::Tree(target) => {
            let reply = fetch_tree(client, to_at_run(&target)).await;
            Message::Tree(target, reply.map(Box::new).map_err(RequestError::from))
        }
        Request::Iterations(target) => {
            let reply = IterationApiClient::list(client, to_at_run(&target)).await;
            Message::Iterations(target, reply.map_err(RequestError::from))
        }
        Request::LogChunk(position) => {
            if position.offset > 0 {
                sleep(COALESCE_TIME).await;
            }
            let reply = client.log(to_log_params(&position)).await;
            Message::LogChunk(position, reply.map_err(RequestError::from))
        }
        Request::Questions(target) => {
            let reply = client.questions(QuestionsParams { path: Some(target.path.clone()), all: false }).await;
            Message::Questions(target, reply.map_err(RequestError::from))
        }
        Request::Steer(steer) => {
            let result = send_steer(connection, &steer).await;
            Message::Steered(steer, result.map_err(RequestError::from))
        }
        Request::Follow(_) | Request::SwitchMachine(_) | Request::Redraw | Request::Suspend | Request::Quit => {
            return None;
        }
    })
}

fn to_at_run(target: &RunKey) -> AtRun {
    AtRun { path: target.path.clone(), run: target.run.clone() }
}

fn to_log_params(LogPosition { key, offset }: &LogPosition) -> LogParams {
    let RunKey { path, run, .. } = key.target.clone();
    let at = AtIteration { path, run, iter: Some(key.iter), wait: key.wait };
    LogParams { at, stream: key.stream, offset: *offset, raw: false }
}

/// Steers a run and returns the result.
async fn send_steer(connection: &Connection, request: &SteerRequest) -> Result<String, Error> {
    let client = connection.client();
    let (AtRun { path, run }, confirmed) = (to_at_run(&request.target), request.confirmed);
    match &request.action {
        SteerAction::Pause { now } => {
            let reply = client.pause(PauseParams { path, run, now: *now }).await?;
            Ok(describe_control(
                &reply,
                if *now { "pauses when its session has ended" } else { "pauses after this iteration" },
            ))
        }
        SteerAction::Resume { now } => {
            let env = caller_env::collect(connection, &path).await;
            let reply = client.resume(ResumeParams { path, run, now: *now, more: None, confirmed, env }).await?;
            Ok(describe_control(&reply, "continues when its session has ended"))
        }
        SteerAction::Step => {
            let env = caller_env::collect(connection, &path).await;
            Ok(describe_step(&client.step(StepParams { path, run, confirmed, env }).await?))
        }
        SteerAction::Cancel => {
            Ok(describe_control(&client.cancel(to_at_run(&request.target)).await?, "ends when its session has ended"))
        }
        SteerAction::Note(text) => {
            let reply = client.add_note(NoteParams { at: to_at_run(&request.target), text: text.clone() }).await?;
            Ok(describe_note(&reply))
        }
        SteerAction::Answer { id, text } => {
            let params = AnswerParams { path: Some(path), id: id.clone(), text: text.clone() };
            Ok(describe_answer(&client.answer(params).await?))
        }
        SteerAction::Approve { iter } => {
            let params = ApproveParams { at: to_at_run(&request.target), iteration: *iter, signature: None };
            Ok(describe_review(&client.approve(params).await?))
        }
        SteerAction::Reject { iter, reason } => {
            let at = to_at_run(&request.target);
            let reason = reason.clone();
            let params = RejectParams { at, iteration: *iter, reason, signature: None };
            Ok(describe_review(&client.reject(params).await?))
        }
    }
}

fn describe_control(reply: &ControlReply, pending: &str) -> String {
    let suffix = if reply.pending { format!(", {pending}") } else { String::new() };
    format!("run {} {}{suffix}", reply.run.id, reply.run.state)
}

fn describe_step(reply: &StepReply) -> String {
    let iteration = reply.iteration.as_ref();
    let prefix =
        iteration.map(|view| format!("{:04} {} {}, ", view.iter, view.verdict.label(), view.node)).unwrap_or_default();
    format!("{prefix}run {} {}", reply.run.id, reply.run.state)
}

fn describe_note(reply: &ChangeReply) -> String {
    let id = reply.id.as_deref().unwrap_or_default();
    format!("note {id}: the next session that answers reads it{}", describe_wait(reply))
}

fn describe_answer(reply: &ChangeReply) -> String {
    format!("question {} is answered{}", reply.id.as_deref().unwrap_or_default(), describe_wait(reply))
}

fn describe_wait(reply: &ChangeReply) -> String {
    reply.waits_for.as_ref().map(|what| format!(" (waits: {what})")).unwrap_or_default()
}

fn describe_review(reply: &ReviewReply) -> String {
    let decision = if reply.verdict == ReviewVerdict::Accept { "approved" } else { "rejected" };
    format!("task {} of iteration {:04} is {decision}", reply.node, reply.iteration)
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
