//! The order in which several runs land: a run comes after the one on which it begins, otherwise in the order given.

/// A run, and the runs on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRun {
    /// Id of the run.
    pub run: String,
    /// Ids of the runs whose commits are on its branch.
    pub base_runs: Vec<String>,
}

/// Returns the indices of the runs in the order in which they land.
pub fn merge_order(runs: &[QueuedRun]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < runs.len() {
        let waits = |at: usize| {
            let behind = |other: usize| other != at && runs[at].base_runs.contains(&runs[other].run);
            (0..runs.len()).any(|other| behind(other) && !order.contains(&other))
        };
        let left = || (0..runs.len()).filter(|at| !order.contains(at));
        // Branches that contain each other have no order: the first one given goes first.
        let Some(next) = left().find(|at| !waits(*at)).or_else(|| left().next()) else { break };
        order.push(next);
    }
    order
}
