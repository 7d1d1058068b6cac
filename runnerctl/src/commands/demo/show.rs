//! What the demo shows while the run goes on: each iteration, why a guard was red, the tree as it grows.

use protocol::api::IterationApiClient as _;
use protocol::client::Connection;
use protocol::event::Event;
use protocol::request::{AtIteration, AtRun, LogParams, LogStream};
use protocol::view::{IterationView, RunView};
use protocol::words::GuardOutcome;

use crate::commands::{outcome, tree};
use crate::failure::Failure;
use crate::feed::{Feed, News};
use crate::invocation::Invocation;
use crate::progress::{Line, Progress};
use crate::text::iteration::line;
use crate::text::paint::{BAD, paint};
use crate::text::safe::safe;
use crate::text::tree::picture;
use crate::ui::Ui;
use crate::wait::Lines;

/// Lines of a red guard that are shown.
const EVIDENCE_LINES: usize = 3;
const INDENT: &str = "      ";

/// Follows the run until it stops, and returns its last state.
pub(super) async fn show(invocation: &Invocation<'_>, at: AtRun) -> Result<RunView, Failure> {
    let mut show = Show::new(invocation.ui, at.clone());
    let mut feed = Feed::open(invocation, at).await?;
    loop {
        match feed.next().await? {
            News::Event(event) => show.event(&event),
            News::Lost => {}
            News::Status(status) => {
                let Some(run) = status.run else { continue };
                if let Some(connection) = feed.connection() {
                    show.state(connection, &run).await?;
                }
                if outcome(run.summary.state).is_some() {
                    show.lines.end();
                    return Ok(run);
                }
            }
        }
    }
}

struct Show<'a> {
    ui: &'a Ui,
    at: AtRun,
    progress: Progress,
    lines: Lines<'a>,
    /// The last iteration that was shown.
    shown: u32,
    /// The tree that was shown last.
    picture: String,
}

impl<'a> Show<'a> {
    fn new(ui: &'a Ui, at: AtRun) -> Self {
        let progress = Progress::of(at.run.as_deref().unwrap_or_default());
        Self { ui, at, progress, lines: Lines::new(ui), shown: 0, picture: String::new() }
    }

    /// Shows what is going on, where that can be done in place.
    fn event(&mut self, event: &Event) {
        let mut lines = self.progress.event(event);
        lines.retain(|line| self.ui.is_live() && matches!(line, Line::Passing { .. }));
        self.lines.show(lines);
    }

    /// Shows the iterations that ended since the last state, and the tree where they changed it.
    async fn state(&mut self, connection: &Connection, run: &RunView) -> Result<(), Failure> {
        let mut text = String::new();
        for iteration in run.recent.iter().rev().filter(|iteration| iteration.iter > self.shown) {
            text += "\n";
            text += &self.iteration(connection, iteration).await?;
        }
        if text.is_empty() {
            return Ok(());
        }
        self.shown = run.recent.first().map_or(self.shown, |iteration| iteration.iter);
        let reply = tree::fetch(connection.client(), self.at.clone()).await?;
        let picture = picture(&reply, &self.ui.screen());
        if picture != self.picture {
            text += &indented(picture.lines());
            self.picture = picture;
        }
        self.print(&text)
    }

    async fn iteration(&self, connection: &Connection, iteration: &IterationView) -> Result<String, Failure> {
        let mut text = line(iteration, &self.ui.screen());
        if iteration.guard == GuardOutcome::Fail {
            let at = AtIteration {
                path: self.at.path.clone(),
                run: self.at.run.clone(),
                iter: Some(iteration.iter),
                wait: None,
            };
            let params = LogParams { at, stream: LogStream::Guard, offset: 0, raw: false };
            text += &evidence(&connection.client().log(params).await?.text);
        }
        Ok(text)
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        if self.ui.is_terse() { Ok(()) } else { self.lines.apart(|| self.ui.text(text)) }
    }
}

/// Returns the lines of a guard's output that tell of a check which did not hold.
fn evidence(guard: &str) -> String {
    let failed = guard.lines().filter(|line| line.starts_with("FAIL")).take(EVIDENCE_LINES);
    indented(failed.map(|line| paint(BAD, &safe(line))))
}

fn indented(lines: impl Iterator<Item = impl AsRef<str>>) -> String {
    lines.flat_map(|line| [INDENT.to_owned(), line.as_ref().to_owned(), "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn of_a_red_guard_the_checks_that_failed_are_shown() {
        let guard = "sh ci.sh\nFAIL decode IV: expected 4, got 6\n8 checks, 1 failed\n";
        assert_eq!(strip_str(&evidence(guard)).to_string(), "      FAIL decode IV: expected 4, got 6\n");
    }
}
