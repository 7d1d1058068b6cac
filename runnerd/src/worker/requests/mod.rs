//! What people ask of a repository's queue: found, handed to the rules, written down, answered.
//!
//! Which request is legal in which state, and what a refusal says, is `runner_core::run`'s. What a request means for the
//! live run is handed to whoever drives.

mod ask;
mod branch_tip;
pub(crate) mod changes;
mod review;
pub(crate) mod setting;
mod steer;

use runner_core::run::RunRequest;
use runner_core::verdict::StopCause;

pub(crate) use self::steer::answer_rechecked_request;
use crate::worker::WorkerMessage;
use crate::worker::publication::refresh_publish_state;
use crate::worker::queue::RepoQueue;

/// Answers a request; returns what it means for the live run.
pub(crate) fn handle_message(queue: &mut RepoQueue, message: WorkerMessage) -> Option<StopCause> {
    match message {
        WorkerMessage::Start(order, reply) => {
            let _ = reply.send(steer::start_run(queue, *order));
        }
        WorkerMessage::Step { run, reply } => steer::step_run(queue, run.as_deref(), reply),
        WorkerMessage::Pause { run, now, reply } => {
            return steer::control_run(queue, run.as_deref(), RunRequest::Pause { now }, reply);
        }
        WorkerMessage::Resume { run, now, more, reply } if queue.held.is_some() => {
            queue.recheck_request = Some(WorkerMessage::Resume { run, now, more, reply });
        }
        WorkerMessage::Resume { run, now, more, reply } => {
            return steer::control_run(queue, run.as_deref(), RunRequest::Resume { now, more, rechecked: false }, reply);
        }
        WorkerMessage::Cancel { run, reply } => return steer::control_run(queue, run.as_deref(), RunRequest::Cancel, reply),
        WorkerMessage::Change(order, reply) => {
            let _ = reply.send(changes::take_change(queue, *order));
        }
        WorkerMessage::Review { run, decision, signature, reply } => {
            let _ = reply.send(review::take_review(queue, run.as_deref(), (decision, signature)));
        }
        WorkerMessage::PendingReview { run, reply } => {
            let _ = reply.send(review::find_pending_review(queue, run.as_deref()));
        }
        WorkerMessage::RunExclusive(work, reply) => {
            let _ = reply.send(work.run());
        }
        WorkerMessage::HookEnded { event, failure } => queue.finish_hook(&event, failure),
        WorkerMessage::Confirm { digest, reply } => {
            let _ = reply.send(queue.confirm_commands(digest));
        }
        WorkerMessage::Describe { run, reply } => {
            refresh_publish_state(queue);
            let _ = reply.send(queue.describe_run(&run));
        }
        WorkerMessage::List { reply } => {
            let runs = queue.file.runs.iter().map(|run| queue.run_summary(run)).collect();
            let _ = reply.send((runs, queue.file.confirmed.clone()));
        }
    }
    None
}
