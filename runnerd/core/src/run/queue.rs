//! The queue of a repository: which run has its turn, and which one is current.

use std::path::Path;

use jiff::Timestamp;
use protocol::command::{Command, NextSteps};
use protocol::path::WirePath;
use protocol::view::StopReason;

use super::record::{RecordState, RunRecord};
use crate::run::wait::WaitPeriod;

/// The next step for a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueTurn {
    /// Drive this run.
    Run(String),
    /// Drive one iteration of this run.
    Step(String),
    /// Rest until a time, or until the next request.
    Idle(Option<WaitPeriod>),
}

/// What decides whose turn it is, in addition to the runs themselves.
#[derive(Debug, Clone, Copy)]
pub struct QueueInput<'a> {
    /// Runs for which a step was requested, in that order.
    pub steps: &'a [String],
    /// The run whose iteration was begun by a previous daemon process.
    pub unfinished: Option<&'a str>,
}

/// Decides whose turn it is: the run in progress continues, then a requested step, then the first run that is not over.
pub fn choose_turn(runs: &[RunRecord], input: QueueInput<'_>, now: Timestamp) -> QueueTurn {
    let mut queue = runs.iter().filter(|run| !run.state.is_over());
    if let Some(run) = queue.clone().find(|run| run.state == RecordState::Running) {
        return QueueTurn::Run(run.id.clone());
    }
    let may_step = |run: &&String| input.unfinished.is_none_or(|unfinished| unfinished == **run);
    if let Some(run) = input.steps.iter().find(may_step) {
        return QueueTurn::Step(run.clone());
    }
    let Some(run) = queue.next() else { return QueueTurn::Idle(None) };
    match run.state {
        RecordState::Queued | RecordState::Running => QueueTurn::Run(run.id.clone()),
        RecordState::WaitsForService(wait) if wait.is_over(now) => QueueTurn::Run(run.id.clone()),
        RecordState::WaitsForService(wait) => QueueTurn::Idle(Some(wait)),
        RecordState::Paused | RecordState::WaitsForPerson | RecordState::Held | RecordState::Over { .. } => {
            QueueTurn::Idle(None)
        }
    }
}

/// Returns the run at the head of the queue, otherwise the one that ended last.
pub fn current_run(runs: &[RunRecord]) -> Option<&RunRecord> {
    let head = runs.iter().find(|run| !run.state.is_over());
    head.or_else(|| runs.iter().max_by_key(|run| run.state.ended_at()))
}

/// Returns why a queued run is not running: the run that has its turn before it, and how that one continues if it does
/// not on its own.
pub fn queue_reason(runs: &[RunRecord], run: &RunRecord) -> Option<StopReason> {
    let first = runs.iter().find(|known| !known.state.is_over()).filter(|first| first.id != run.id)?;
    if run.state != RecordState::Queued {
        return None;
    }
    let message = format!("run {} is before it, and {}", first.id, first.state.status().predicate());
    let ways = match first.state {
        RecordState::Paused | RecordState::Held => Command::resume(&first.id).into(),
        RecordState::WaitsForPerson => NextSteps::from(Command::show_run(&first.id)),
        RecordState::Queued | RecordState::Running | RecordState::WaitsForService(_) | RecordState::Over { .. } => {
            NextSteps::default()
        }
    };
    Some(StopReason::new(message, ways))
}

/// Returns the files that are left out of commits while runs have not ended: those that the goals of these were read from.
pub fn pending_goal_files(runs: &[RunRecord]) -> Vec<&Path> {
    runs.iter().filter(|run| !run.state.is_over()).filter_map(goal_file).collect()
}

/// Returns the files that git is not to see: those of all goals, until no run is left in the queue.
pub fn hidden_goal_files(runs: &[RunRecord]) -> Vec<&Path> {
    let is_idle = runs.iter().all(|run| run.state.is_over());
    runs.iter().filter(|_| !is_idle).filter_map(goal_file).collect()
}

fn goal_file(run: &RunRecord) -> Option<&Path> {
    run.goal_file.as_ref().map(WirePath::as_path)
}

/// Puts an updated run back into the list, in its old place or at the end. It may have got another id.
pub fn put_record(runs: &mut Vec<RunRecord>, record: RunRecord, is_last: bool) {
    let place = |id: &str| runs.iter().position(|run| run.id == id);
    match place(&record.id).or_else(|| place(record.queued_as.as_deref()?)) {
        Some(at) if !is_last => runs[at] = record,
        at => {
            at.map(|at| runs.remove(at));
            runs.push(record);
        }
    }
}

/// Returns `stem`, or the first of `stem-2`, `stem-3`… that is free.
pub fn free_id(stem: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(stem) {
        return stem.to_owned();
    }
    (2..=u64::MAX).map(|number| format!("{stem}-{number}")).find(|id| !is_taken(id)).unwrap_or_else(|| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunEnd;

    #[test]
    fn a_queued_run_names_the_one_before_it_and_how_that_one_continues() {
        let run = |id: &str, state: RecordState| RunRecord {
            state,
            ..RunRecord::queued(id, WirePath("/work".into()), Timestamp::UNIX_EPOCH)
        };
        let reason = |state: RecordState| {
            let runs = [run("first", state), run("next", RecordState::Queued)];
            assert_eq!(queue_reason(&runs, &runs[0]), None);
            queue_reason(&runs, &runs[1]).map(|why| (why.message, why.command))
        };
        let before = |state: &str| format!("run first is before it, and is {state}");
        let resume = Some("runnerctl resume --run first".to_owned());
        assert_eq!(reason(RecordState::Paused), Some((before("paused"), resume)));
        assert_eq!(reason(RecordState::Running), Some((before("running"), None)));
        let over = RecordState::Over { end: RunEnd::Completed, at: Timestamp::UNIX_EPOCH };
        assert_eq!(reason(over), None);
    }

    #[test]
    fn the_files_of_goals_are_hidden_until_no_run_is_left() {
        let run = |id: &str, is_over: bool| RunRecord {
            goal_file: Some(WirePath(format!("/work/{id}.md").into())),
            state: if is_over {
                RecordState::Over { end: RunEnd::Completed, at: Timestamp::UNIX_EPOCH }
            } else {
                RecordState::Queued
            },
            ..RunRecord::queued(id, WirePath("/work".into()), Timestamp::UNIX_EPOCH)
        };
        let [a, b] = ["/work/a.md", "/work/b.md"].map(Path::new);
        let runs = [run("a", true), run("b", false)];
        assert_eq!((pending_goal_files(&runs), hidden_goal_files(&runs)), (vec![b], vec![a, b]));
        let runs = [run("a", true), run("b", true)];
        assert!(pending_goal_files(&runs).is_empty() && hidden_goal_files(&runs).is_empty());
    }
}
