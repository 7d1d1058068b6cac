//! Several machines, one of which is shown at a time: the summary of each, above its panes. Pure.

use protocol::view::StatusView;
use protocol::words::RunStatus;

use super::model::Model;

/// The summary of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MachineSummary {
    /// Its name.
    pub(crate) name: String,
    /// Its runs by state, those that need attention first; `None` if it has not responded yet.
    pub(crate) runs: Option<Vec<(RunStatus, usize)>>,
    /// Whether its daemon does not respond.
    pub(crate) is_lost: bool,
    /// Whether it is shown.
    pub(crate) is_shown: bool,
}

/// States in the order in which they are shown: runs that need attention, active runs, finished runs.
const STATE_ORDER: [RunStatus; 11] = [
    RunStatus::Held,
    RunStatus::Stuck,
    RunStatus::Failed,
    RunStatus::Limit,
    RunStatus::TimedOut,
    RunStatus::Paused,
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::Queued,
    RunStatus::Completed,
    RunStatus::Cancelled,
];

impl MachineSummary {
    /// Summarizes what a model knows about its machine.
    pub(super) fn from_model(name: &str, model: &Model, is_shown: bool) -> Self {
        let states: Vec<RunStatus> = model.repos.iter().filter_map(repo_state).collect();
        let count = |state: &RunStatus| states.iter().filter(|found| *found == state).count();
        let counts =
            || STATE_ORDER.into_iter().map(|state| (state, count(&state))).filter(|(_, count)| *count > 0).collect();
        Self { name: name.to_owned(), runs: model.read_at.map(|_| counts()), is_lost: model.lost.is_some(), is_shown }
    }
}

/// Returns the state of a repository's run, or that it is held.
pub(super) fn repo_state(status: &StatusView) -> Option<RunStatus> {
    match &status.repo.held {
        Some(_) => Some(RunStatus::Held),
        None => status.run.as_ref().map(|run| run.summary.state),
    }
}

/// Returns the index of the machine that is `by` places further, wrapping around.
pub(super) fn rotate_index(current: usize, by: isize, count: usize) -> usize {
    let count = isize::try_from(count.max(1)).unwrap_or(isize::MAX);
    let at = isize::try_from(current).unwrap_or(0).saturating_add(by).rem_euclid(count);
    usize::try_from(at).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::capabilities::TermCapabilities;
    use crate::watch::fixtures::{fixed_now, populated_model};
    use crate::watch::message::Message;

    #[test]
    fn a_machine_is_told_by_what_needs_somebody_first() {
        let mut model = populated_model(TermCapabilities::fixed(), (80, 24));
        let summary = MachineSummary::from_model("gpu", &model, true);
        assert_eq!(summary.runs, Some(vec![(RunStatus::Stuck, 1), (RunStatus::Running, 1)]));
        assert!(!summary.is_lost);
        model.update(fixed_now(), Message::Lost("gone".into()));
        assert!(MachineSummary::from_model("gpu", &model, true).is_lost);
        let unread = Model::new(TermCapabilities::fixed(), (80, 24), None);
        assert_eq!(MachineSummary::from_model("slow", &unread, false).runs, None);
    }

    #[test]
    fn every_state_is_told() {
        assert!(RunStatus::ALL.iter().all(|state| STATE_ORDER.contains(state)));
    }

    #[test]
    fn the_last_machine_is_before_the_first() {
        assert_eq!(
            [rotate_index(0, -1, 3), rotate_index(2, 1, 3), rotate_index(0, 1, 3), rotate_index(0, 1, 1)],
            [2, 0, 1, 0]
        );
    }
}
