//! Requests of people to a repository's queue: the run is looked up, the rules decide, the result is stored and sent
//! back.
//!
//! Which request is legal in which state, and what a refusal says, is decided by `runner_core::run`. A request that
//! affects the live run is passed on to the loop that drives it.

mod branch_tip;
pub(crate) mod changes;
pub(crate) mod config_change;
mod decide;
mod review;
mod steer;

use runner_core::run::RunRequest;
use runner_core::verdict::StopCause;

pub(crate) use self::steer::answer_rechecked_request;
use crate::worker::WorkerMessage;
use crate::worker::publication::refresh_publish_state;
use crate::worker::queue::RepoQueue;

/// Answers a request; returns the stop that it requests of the live run, if any.
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
            return steer::control_run(
                queue,
                run.as_deref(),
                RunRequest::Resume { now, more, rechecked: false },
                reply,
            );
        }
        WorkerMessage::Cancel { run, reply } => {
            return steer::control_run(queue, run.as_deref(), RunRequest::Cancel, reply);
        }
        WorkerMessage::Change(order, reply) => {
            let _ = reply.send(changes::take_change(queue, *order));
        }
        WorkerMessage::Review { run, decision, iter, signature, reply } => {
            let _ = reply.send(review::take_review(queue, run.as_deref(), decision, iter, signature));
        }
        WorkerMessage::PendingReview { run, reply } => {
            let _ = reply.send(review::find_pending_review(queue, run.as_deref()));
        }
        WorkerMessage::Adopt(run, reply) => {
            let _ = reply.send(steer::adopt_run(queue, *run));
        }
        WorkerMessage::RunExclusive(work, reply) => {
            let _ = reply.send(work.run());
        }
        WorkerMessage::HookEnded { event, failure } => queue.finish_hook(&event, failure),
        WorkerMessage::Confirm { digest, moved, reply } => {
            let _ = reply.send(queue.confirm_commands(digest, moved));
        }
        WorkerMessage::Describe { run, reply } => {
            refresh_publish_state(queue);
            let _ = reply.send(queue.describe_run(&run));
        }
        WorkerMessage::List { reply } => {
            let _ = reply.send(queue.list_runs());
        }
    }
    None
}
