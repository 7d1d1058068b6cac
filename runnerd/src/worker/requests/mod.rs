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

use runner_core::run::Request;
use runner_core::verdict::StopCause;

pub(crate) use self::steer::answer_rechecked;
use crate::worker::Message;
use crate::worker::publication::look_again;
use crate::worker::queue::RepoQueue;

/// Answers a request; returns what it means for the live run.
pub(crate) fn handle(queue: &mut RepoQueue, message: Message) -> Option<StopCause> {
    match message {
        Message::Start(order, reply) => {
            let _ = reply.send(steer::start(queue, *order));
        }
        Message::Step { run, reply } => steer::step(queue, run.as_deref(), reply),
        Message::Pause { run, now, reply } => {
            return steer::control(queue, run.as_deref(), Request::Pause { now }, reply);
        }
        Message::Resume { run, now, more, reply } if queue.held.is_some() => {
            queue.recheck = Some(Message::Resume { run, now, more, reply });
        }
        Message::Resume { run, now, more, reply } => {
            return steer::control(queue, run.as_deref(), Request::Resume { now, more, looked: false }, reply);
        }
        Message::Cancel { run, reply } => return steer::control(queue, run.as_deref(), Request::Cancel, reply),
        Message::Change(order, reply) => {
            let _ = reply.send(changes::take(queue, *order));
        }
        Message::Review { run, decision, signature, reply } => {
            let _ = reply.send(review::take(queue, run.as_deref(), (decision, signature)));
        }
        Message::PendingReview { run, reply } => {
            let _ = reply.send(review::pending(queue, run.as_deref()));
        }
        Message::Within(work, reply) => {
            let _ = reply.send(work.run());
        }
        Message::HookEnded { event, failure } => queue.hook_ended(&event, failure),
        Message::Confirm { digest, reply } => {
            let _ = reply.send(queue.confirm(digest));
        }
        Message::Describe { run, reply } => {
            look_again(queue);
            let _ = reply.send(queue.describe(&run));
        }
        Message::List { reply } => {
            let runs = queue.file.runs.iter().map(|run| queue.summary(run)).collect();
            let _ = reply.send((runs, queue.file.confirmed.clone()));
        }
    }
    None
}
