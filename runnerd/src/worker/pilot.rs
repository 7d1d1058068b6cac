//! Steers an iteration from the desk, and shows where it is.

use std::time::Duration;

use protocol::event::EventKind;
use protocol::view::{PhaseView, RunView};
use runner_core::iteration::Phase;
use runner_core::obstacle::Obstruction;
use runner_core::verdict::StopCause;

use super::desk::Desk;
use super::world::Control;
use crate::clock;

/// Whoever steers one iteration.
pub(super) struct Pilot<'a> {
    desk: &'a mut Desk,
    run: String,
    iter: Option<u32>,
}

impl<'a> Pilot<'a> {
    /// Sits down at the desk for a run.
    pub(super) fn new(desk: &'a mut Desk, run: &str) -> Self {
        Self { desk, run: run.to_owned(), iter: None }
    }
}

impl Control for Pilot<'_> {
    async fn stop(&mut self) -> StopCause {
        self.desk.stop().await
    }

    fn is_leaving(&self) -> bool {
        self.desk.is_shutting_down()
    }

    fn entered(&mut self, phase: &Phase) {
        let now = clock::now();
        if let Some(task) = phase.task() {
            self.iter = Some(task.iter);
        }
        let budget_ms = self.desk.budget_ms;
        if let Some(view) = &mut self.desk.view {
            let began =
                view.phase.as_ref().filter(|_| !matches!(phase, Phase::Open)).map(|phase| phase.iteration_since);
            view.phase = Some(PhaseView {
                name: phase.name(),
                since: now,
                iteration_since: began.unwrap_or(now),
                budget_ms,
                agent: phase.task().and_then(|task| task.kind.clone()),
                obstacle: None,
                baseline: false,
            });
            show_task(view, phase);
        }
        self.desk.obstacle = None;
        self.desk.show();
        let node = phase.task().map(|task| task.node.clone());
        self.desk.tell(&self.run, self.iter, EventKind::Phase { phase: phase.name(), node });
    }

    fn obstructed(&mut self, obstruction: &Obstruction) {
        self.desk.obstructed(&self.run, self.iter, obstruction);
    }

    async fn wait(&mut self, pause: Duration) -> Option<StopCause> {
        self.desk.wait_out(pause).await
    }
}

fn show_task(view: &mut RunView, phase: &Phase) {
    let Some(task) = phase.task() else { return };
    view.iteration = task.iter;
    if let Some(node) = &mut view.node {
        node.role = Some(task.role);
    }
}
