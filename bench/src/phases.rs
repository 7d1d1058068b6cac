//! How long each phase of an iteration took, read from the journaled events of a run.

use std::time::Duration;

use protocol::event::{Event, EventKind};
use protocol::words::PhaseName;
use runner_testkit::Repo;

use crate::report::FigureGroup;
use crate::samples::Samples;

/// The time after the last named phase: from the end of an iteration until the next one is opened.
const AFTER: &str = "after";

/// The times of one iteration, in the order of its phases.
#[derive(Debug, Clone, Default)]
pub(crate) struct IterationPhases {
    phases: Vec<(String, Duration)>,
}

impl IterationPhases {
    /// Returns the time of a phase; zero if it was not entered.
    pub(crate) fn phase_time(&self, name: &str) -> Duration {
        self.phases.iter().filter(|(phase, _)| phase == name).map(|(_, time)| *time).sum()
    }

    /// Returns the total time of all phases in which no agent, guard or reviewer runs.
    pub(crate) fn overhead(&self) -> Duration {
        let external = ["work", "guard", "review"];
        self.phases.iter().filter(|(phase, _)| !external.contains(&phase.as_str())).map(|(_, time)| *time).sum()
    }

    /// Returns the total time of all phases.
    pub(crate) fn total(&self) -> Duration {
        self.phases.iter().map(|(_, time)| *time).sum()
    }
}

/// Adds the time of each phase in which no agent, guard or reviewer runs.
pub(crate) fn report_phases(iterations: &[IterationPhases], group: &mut FigureGroup<'_>) {
    let of = |phase: &str| iterations.iter().map(|iteration| iteration.phase_time(phase)).collect::<Samples>();
    for phase in [PhaseName::Open, PhaseName::Brief, PhaseName::Inspect, PhaseName::Settle] {
        let phase = phase.to_string();
        group.add_times(format!("of it: {phase}"), &of(&phase));
    }
    group.add_times("of it: from its end to the next", &of(AFTER));
}

/// Reads the iterations of a run, oldest first.
///
/// # Panics
///
/// Panics if the run has no events.
pub(crate) fn read_iterations(repo: &Repo, run: &str) -> Vec<IterationPhases> {
    let text = repo.read(&format!(".runner/iterations/{run}/events.jsonl"));
    let events = text.lines().map(|line| serde_json::from_str::<Event>(line).expect("the run's events can be read"));
    let mut all = Vec::new();
    let mut current = IterationPhases::default();
    let mut since = None;
    for event in events {
        let next = match &event.kind {
            EventKind::Phase { phase, .. } => Some(phase.to_string()),
            EventKind::Iteration { .. } => Some(AFTER.to_owned()),
            EventKind::RunState { .. } => None,
            _ => continue,
        };
        if let Some((phase, began)) = since.take() {
            let time = event.time.duration_since(began);
            current.phases.push((phase, time.try_into().unwrap_or_default()));
        }
        let is_over = next.is_none() || next.as_deref() == Some(&PhaseName::Open.to_string());
        if is_over && !current.phases.is_empty() {
            all.push(std::mem::take(&mut current));
        }
        since = next.map(|phase| (phase, event.time));
    }
    all
}
