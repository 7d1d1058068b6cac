//! The phases of an iteration over time, assembled from events and states.

use jiff::Timestamp;
use protocol::view::RunView;
use protocol::words::PhaseName;

use crate::text::measure::millis_between;

/// The phases that every iteration can have, in order; the review is shown only if there was one.
const SHOWN_PHASES: [PhaseName; 7] = [
    PhaseName::Open,
    PhaseName::Brief,
    PhaseName::Work,
    PhaseName::Inspect,
    PhaseName::Guard,
    PhaseName::Review,
    PhaseName::Settle,
];

/// The phases of the live iteration, or of the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PhaseTimeline {
    iter: u32,
    started_at: Option<Timestamp>,
    entered: Vec<(PhaseName, Timestamp)>,
    /// When an iteration started to open whose number is not known yet.
    opened_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

/// The state of a phase; times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseState {
    /// It is over; with its duration, if that was observed.
    Done(Option<u64>),
    /// It is running.
    Active(u64),
    /// It has not started, or is skipped.
    Pending,
}

impl PhaseTimeline {
    /// Records that an iteration entered a phase; while it is being opened, its number may be unknown.
    pub(crate) fn enter_phase(&mut self, iter: Option<u32>, phase: PhaseName, time: Timestamp) {
        let Some(iter) = iter else {
            self.opened_at = Some(time).filter(|_| phase == PhaseName::Open);
            return;
        };
        if phase == PhaseName::Over && (iter != self.iter || self.ended_at.is_some()) {
            return;
        }
        if iter != self.iter || self.ended_at.is_some() || (phase == PhaseName::Open && self.entered.len() > 1) {
            let opened = self.opened_at.map(|time| (PhaseName::Open, time));
            let began = self.opened_at.or(Some(time));
            *self = Self { iter, started_at: began, entered: opened.into_iter().collect(), ..Self::default() };
        }
        if phase == PhaseName::Over {
            self.ended_at = Some(time);
        } else if self.entered.last().is_none_or(|(last, _)| *last != phase) {
            // A repetition by a new daemon replaces what the old one did.
            self.entered.retain(|(earlier, _)| *earlier < phase);
            self.entered.push((phase, time));
        }
    }

    /// Adds what a state contains and no event reported.
    pub(crate) fn reconcile(&mut self, run: &RunView) {
        // Before the first iteration there are no phases.
        let Some(phase) = run.phase.as_ref().filter(|phase| !phase.baseline) else {
            let last = run.recent.iter().find(|view| view.iter == self.iter);
            self.ended_at = self.ended_at.or_else(|| last?.ended_at);
            return;
        };
        let is_known = self.iter == run.iteration && self.entered.last().is_some_and(|(last, _)| *last >= phase.name);
        if !is_known {
            self.enter_phase(Some(run.iteration), phase.name, phase.since);
        }
        self.started_at = Some(phase.iteration_since);
        self.ended_at = None;
    }

    /// Returns the number of the iteration.
    pub(crate) fn iteration(&self) -> u32 {
        self.iter
    }

    /// Returns the duration of the iteration so far.
    pub(crate) fn elapsed_ms(&self, now: Timestamp) -> Option<u64> {
        Some(millis_between(self.started_at?, self.ended_at.unwrap_or(now)))
    }

    /// Returns every phase and its state; `None` if no iteration was observed.
    pub(crate) fn phase_states(&self, now: Timestamp) -> Vec<(PhaseName, PhaseState)> {
        if self.iter == 0 {
            return Vec::new();
        }
        let phases = SHOWN_PHASES
            .into_iter()
            .filter(|phase| *phase != PhaseName::Review || self.entered_index(*phase).is_some());
        phases.map(|phase| (phase, self.phase_state(phase, now))).collect()
    }

    fn entered_index(&self, phase: PhaseName) -> Option<usize> {
        self.entered.iter().position(|(entered, _)| *entered == phase)
    }

    fn phase_state(&self, phase: PhaseName, now: Timestamp) -> PhaseState {
        let Some(index) = self.entered_index(phase) else {
            let is_passed = self.entered.last().is_some_and(|(last, _)| *last > phase);
            return if is_passed { PhaseState::Done(None) } else { PhaseState::Pending };
        };
        let since = self.entered[index].1;
        match self.entered.get(index + 1).map(|(_, next)| *next).or(self.ended_at) {
            Some(end) => PhaseState::Done(Some(millis_between(since, end))),
            None => PhaseState::Active(millis_between(since, now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::samples;

    fn time_at(second: u32) -> Timestamp {
        format!("2026-01-01T12:00:{second:02}Z").parse().expect("a time")
    }

    #[test]
    fn each_phase_takes_as_long_as_until_the_next() {
        let mut timeline = PhaseTimeline::default();
        for (phase, second) in
            [(PhaseName::Open, 0), (PhaseName::Brief, 1), (PhaseName::Work, 2), (PhaseName::Settle, 12)]
        {
            // An iteration is opened before it gets its number.
            timeline.enter_phase((phase != PhaseName::Open).then_some(1), phase, time_at(second));
        }
        let stages = timeline.phase_states(time_at(15));
        assert_eq!(stages[0], (PhaseName::Open, PhaseState::Done(Some(1_000))));
        assert_eq!(stages[2], (PhaseName::Work, PhaseState::Done(Some(10_000))));
        assert_eq!(stages[4], (PhaseName::Guard, PhaseState::Done(None)), "there was no guard");
        assert_eq!(stages[5], (PhaseName::Settle, PhaseState::Active(3_000)));
        timeline.enter_phase(Some(1), PhaseName::Over, time_at(16));
        assert_eq!(timeline.elapsed_ms(time_at(50)), Some(16_000), "an iteration that is over takes no longer");
    }

    #[test]
    fn a_state_tells_the_phase_that_no_event_told() {
        let mut timeline = PhaseTimeline::default();
        timeline.reconcile(&samples::run());
        let stages = timeline.phase_states(time_at(0));
        assert_eq!(stages[2], (PhaseName::Work, PhaseState::Done(None)));
        assert_eq!(stages[4], (PhaseName::Guard, PhaseState::Active(2_000)));
        assert_eq!((timeline.iteration(), timeline.elapsed_ms(time_at(0))), (4, Some(12_000)));
    }

    #[test]
    fn an_effect_that_is_done_again_keeps_its_time() {
        let mut timeline = PhaseTimeline::default();
        timeline.enter_phase(Some(1), PhaseName::Guard, time_at(0));
        timeline.enter_phase(Some(1), PhaseName::Guard, time_at(5));
        assert_eq!(timeline.phase_states(time_at(9))[4].1, PhaseState::Active(9_000));
    }
}
