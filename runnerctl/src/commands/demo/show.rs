//! Shows the progress of the demo's run: each iteration, why a guard failed, and the tree as it grows.

use protocol::api::IterationApiClient as _;
use protocol::client::Connection;
use protocol::event::Event;
use protocol::request::{AtIteration, AtRun, LogParams, LogStream};
use protocol::view::{IterationView, RunView};
use protocol::words::GuardOutcome;

use crate::commands::{run_exit_status, tree};
use crate::events::{EventFeed, FeedUpdate};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::progress::{ProgressLine, RunProgress};
use crate::text::iteration::render_line;
use crate::text::paint::{BAD, paint};
use crate::text::sanitize::sanitize;
use crate::text::tree::render_tree;
use crate::ui::Ui;
use crate::wait::ProgressLines;

/// Number of output lines shown for a failed guard.
const FAILED_CHECK_LINES: usize = 3;
const INDENT: &str = "      ";

/// Follows the run until it stops, and returns its last state.
pub(super) async fn follow_run(invocation: &Invocation<'_>, at: AtRun) -> Result<RunView, Failure> {
    let mut presenter = RunPresenter::new(invocation.ui, at.clone());
    let mut feed = EventFeed::open(invocation, at).await?;
    loop {
        match feed.next().await? {
            FeedUpdate::Event(event) => presenter.show_event(&event),
            FeedUpdate::Lost => {}
            FeedUpdate::Status(status) => {
                let Some(run) = status.run else { continue };
                if let Some(connection) = feed.connection() {
                    presenter.show_state(connection, &run).await?;
                }
                if run_exit_status(run.summary.state).is_some() {
                    presenter.lines.finish();
                    return Ok(run);
                }
            }
        }
    }
}

struct RunPresenter<'a> {
    ui: &'a Ui,
    at: AtRun,
    progress: RunProgress,
    lines: ProgressLines<'a>,
    /// Number of the last iteration shown.
    last_iteration: u32,
    /// The tree as last shown.
    last_tree: String,
}

impl<'a> RunPresenter<'a> {
    fn new(ui: &'a Ui, at: AtRun) -> Self {
        let progress = RunProgress::for_run(at.run.as_deref().unwrap_or_default());
        Self { ui, at, progress, lines: ProgressLines::new(ui), last_iteration: 0, last_tree: String::new() }
    }

    /// Shows current activity, if it can be drawn in place.
    fn show_event(&mut self, event: &Event) {
        let mut lines = self.progress.event_lines(event);
        lines.retain(|line| self.ui.can_draw_progress() && matches!(line, ProgressLine::Transient { .. }));
        self.lines.show(lines);
    }

    /// Shows the iterations that have ended since the last call, and the tree if they changed it.
    async fn show_state(&mut self, connection: &Connection, run: &RunView) -> Result<(), Failure> {
        let mut text = String::new();
        for iteration in run.recent.iter().rev().filter(|iteration| iteration.iter > self.last_iteration) {
            text += "\n";
            text += &self.render_iteration(connection, iteration).await?;
        }
        if text.is_empty() {
            return Ok(());
        }
        self.last_iteration = run.recent.first().map_or(self.last_iteration, |iteration| iteration.iter);
        let reply = tree::fetch_tree(connection.client(), self.at.clone()).await?;
        let tree = render_tree(&reply, &self.ui.screen());
        if tree != self.last_tree {
            text += &indent_lines(tree.lines());
            self.last_tree = tree;
        }
        self.print_text(&text)
    }

    async fn render_iteration(&self, connection: &Connection, iteration: &IterationView) -> Result<String, Failure> {
        let mut text = render_line(iteration, &self.ui.screen());
        if iteration.guard == GuardOutcome::Fail {
            let at = AtIteration {
                path: self.at.path.clone(),
                run: self.at.run.clone(),
                iter: Some(iteration.iter),
                wait: None,
            };
            let params = LogParams { at, stream: LogStream::Guard, offset: 0, raw: false };
            text += &render_failed_checks(&connection.client().log(params).await?.text);
        }
        Ok(text)
    }

    fn print_text(&self, text: &str) -> Result<(), Failure> {
        if self.ui.is_terse() { Ok(()) } else { self.lines.suspend_for(|| self.ui.print_text(text)) }
    }
}

/// Returns the lines of a guard's output that report a failed check.
fn render_failed_checks(guard: &str) -> String {
    let failed = guard.lines().filter(|line| line.starts_with("FAIL")).take(FAILED_CHECK_LINES);
    indent_lines(failed.map(|line| paint(BAD, &sanitize(line))))
}

fn indent_lines(lines: impl Iterator<Item = impl AsRef<str>>) -> String {
    lines.flat_map(|line| [INDENT.to_owned(), line.as_ref().to_owned(), "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn of_a_red_guard_the_checks_that_failed_are_shown() {
        let guard = "sh ci.sh\nFAIL decode IV: expected 4, got 6\n8 checks, 1 failed\n";
        assert_eq!(strip_str(&render_failed_checks(guard)).to_string(), "      FAIL decode IV: expected 4, got 6\n");
    }
}
