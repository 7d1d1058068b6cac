//! Controls an iteration on behalf of the queue, and shows its progress.

use std::time::Duration;

use protocol::event::EventKind;
use protocol::view::{PhaseView, RunView};
use runner_core::iteration::Phase;
use runner_core::run::blocker::Blocker;
use runner_core::verdict::StopCause;
use runner_os::clock;

use super::mailbox;
use crate::worker::iteration::world::DriveControl;
use crate::worker::queue::RepoQueue;

/// Controls one iteration.
pub(crate) struct IterationControl<'a> {
    queue: &'a mut RepoQueue,
    run: String,
    iter: Option<u32>,
}

impl<'a> IterationControl<'a> {
    /// Creates the control for the iterations of a run.
    pub(crate) fn new(queue: &'a mut RepoQueue, run: &str) -> Self {
        Self { queue, run: run.to_owned(), iter: None }
    }
}

impl DriveControl for IterationControl<'_> {
    async fn wait_for_stop(&mut self) -> StopCause {
        mailbox::wait_for_stop(self.queue).await
    }

    fn is_shutting_down(&self) -> bool {
        self.queue.is_shutting_down()
    }

    fn is_cancelled(&self) -> bool {
        self.queue.is_cancelled(&self.run)
    }

    fn on_phase_entered(&mut self, phase: &Phase) {
        let now = clock::now();
        if let Some(task) = phase.task() {
            self.iter = Some(task.iter);
        }
        let budget_ms = self.queue.budget_ms;
        if let Some(view) = &mut self.queue.view {
            let phase_start =
                view.phase.as_ref().filter(|_| !matches!(phase, Phase::Open)).map(|phase| phase.iteration_since);
            view.phase = Some(PhaseView {
                name: phase.name(),
                since: now,
                iteration_since: phase_start.unwrap_or(now),
                budget_ms,
                agent: phase.task().and_then(|task| task.kind.clone()),
                obstacle: None,
                baseline: false,
            });
            update_task_view(view, phase);
        }
        self.queue.blocker = None;
        self.queue.publish_view();
        let node = phase.task().map(|task| task.node.clone());
        self.queue.publish_event(&self.run, self.iter, EventKind::Phase { phase: phase.name(), node });
    }

    fn on_blocked(&mut self, obstruction: &Blocker) {
        self.queue.show_blocker(&self.run, self.iter, obstruction);
    }

    async fn wait_for_retry(&mut self, pause: Duration) -> Option<StopCause> {
        mailbox::wait_for_retry(self.queue, pause).await
    }
}

fn update_task_view(view: &mut RunView, phase: &Phase) {
    let Some(task) = phase.task() else { return };
    view.iteration = task.iter;
    if let Some(node) = &mut view.node {
        node.role = Some(task.role);
    }
}
