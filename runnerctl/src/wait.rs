//! `--wait`: shows a run's progress until it ends, is paused or held, then does what `[deliver] on_complete` asks for.
//!
//! Ctrl-C ends the watching, never the run.

use std::pin::pin;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use protocol::api::RunApiClient;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;
use protocol::view::{PendingControl, RunView, StatusView};
use protocol::words::RunStatus;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::commands::deliver::deliver_on_complete;
use crate::commands::run_exit_status;
use crate::events::{DAEMON_AWAY, EventFeed, FeedUpdate};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::progress::{ProgressLine, RunProgress};
use crate::text::measure::{format_duration, format_seconds};
use crate::text::run::{render_headline, render_stop_reason};
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::text::titles;
use crate::ui::Ui;

const TICK: Duration = Duration::from_millis(120);
/// Time in which a start that waits for nothing is answered.
const START_GRACE: Duration = Duration::from_millis(300);

/// Follows a run and returns the exit code of its final state, and the run's id: it may have got another one at its
/// first turn. A completed run is delivered if configured.
pub(crate) async fn wait_for_run(
    invocation: &Invocation<'_>,
    path: WirePath,
    run: String,
) -> Result<(ExitStatus, String), Failure> {
    let (status, run) = follow_run(invocation, path.clone(), run).await?;
    if status == ExitStatus::Success {
        deliver_on_complete(invocation, path, run.clone()).await?;
    }
    Ok((status, run))
}

/// Awaits the reply to the start of a run. If it does not come at once because another run is being cancelled, says so.
pub(crate) async fn wait_for_start<C: RunApiClient + Sync, T>(
    ui: &Ui,
    client: &C,
    path: &WirePath,
    reply: impl Future<Output = T>,
) -> T {
    let mut reply = pin!(reply);
    if let Ok(reply) = timeout(START_GRACE, reply.as_mut()).await {
        return reply;
    }
    // A status that cannot be read explains nothing, and the reply says why.
    let status = client.status(AtRun { path: path.clone(), run: None }).await.ok();
    let run = status.and_then(|status| status.run).filter(|run| run.pending == Some(PendingControl::Cancel));
    if let Some(run) = run {
        ui.print_note(&format!("waiting for run {} to end: it is being cancelled\n", sanitize(&run.summary.id)));
    }
    reply.await
}

/// Returns the exit code and the run's id.
async fn follow_run(invocation: &Invocation<'_>, path: WirePath, run: String) -> Result<(ExitStatus, String), Failure> {
    // Installed now, so that Ctrl-C has this meaning no matter what is being awaited.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::io("listening for Ctrl-C", &error))?;
    let mut watcher = RunWatcher::new(invocation.ui, &run);
    let mut feed = EventFeed::open(invocation, AtRun { path, run: Some(run) }).await?;
    loop {
        tokio::select! {
            update = feed.next() => if let Some(status) = watcher.handle_update(update?)? {
                return Ok((status, watcher.progress.into_run()));
            },
            _ = interrupt.recv() => {
                watcher.lines.finish();
                invocation.ui.print_note("\nNo longer watching; the run continues. To pause it: runnerctl pause\n");
                return Ok((ExitStatus::Interrupted, watcher.progress.into_run()));
            }
        }
    }
}

struct RunWatcher<'a> {
    ui: &'a Ui,
    /// The last message about the run that this one waits for.
    blocker: String,
    progress: RunProgress,
    lines: ProgressLines<'a>,
}

impl<'a> RunWatcher<'a> {
    fn new(ui: &'a Ui, run: &str) -> Self {
        Self { ui, blocker: String::new(), progress: RunProgress::for_run(run), lines: ProgressLines::new(ui) }
    }

    /// Shows an update; returns the exit code if it was the last one.
    fn handle_update(&mut self, update: FeedUpdate<StatusView>) -> Result<Option<ExitStatus>, Failure> {
        match update {
            FeedUpdate::Event(event) => {
                if self.ui.json {
                    Ui::print_object("event", &event)?;
                }
                let lines = self.progress.event_lines(&event);
                self.lines.show(lines);
                Ok(None)
            }
            FeedUpdate::Lost => {
                self.lines.show(vec![ProgressLine::Permanent(DAEMON_AWAY.to_owned())]);
                Ok(None)
            }
            FeedUpdate::Status(status) => self.handle_status(&status),
        }
    }

    /// Shows what holds up the run, once.
    fn show_blocker(&mut self, run: &RunView, status: &StatusView) {
        let blocker = describe_blocker(run, status, &self.ui.screen()).unwrap_or_default();
        if !blocker.is_empty() && blocker != self.blocker {
            self.lines.show(vec![ProgressLine::Permanent(blocker.clone())]);
        }
        self.blocker = blocker;
    }

    fn handle_status(&mut self, status: &StatusView) -> Result<Option<ExitStatus>, Failure> {
        let Some(run) = &status.run else { return Ok(None) };
        let run = &with_repo_hold(run, status);
        self.show_blocker(run, status);
        let lines = self.progress.status_lines(run, &self.ui.screen());
        self.lines.show(lines);
        let Some(code) = run_exit_status(run.summary.state) else { return Ok(None) };
        self.lines.finish();
        self.ui.print_answer("status", status, |screen| render_ending(run, screen))?;
        Ok(Some(code))
    }
}

/// Returns why a queued run does not get its turn: what the run before it waits for, if it has a reason.
fn describe_blocker(run: &RunView, status: &StatusView, screen: &Screen) -> Option<String> {
    let first = status.repo.queue.first().filter(|_| run.summary.state == RunStatus::Queued)?;
    let reason = first.reason.as_ref().filter(|_| first.id != run.summary.id)?;
    let why = render_stop_reason(Some(reason), &first.path, screen);
    Some(format!("run {} is before it, and {}\n{}", first.id, first.state.predicate(), why.trim_end()))
}

/// Returns the run as held if its repository is: for example by a bug of the daemon, which the run's own state does not
/// show.
fn with_repo_hold(run: &RunView, status: &StatusView) -> RunView {
    let mut run = run.clone();
    if let Some(why) = status.repo.held.as_ref().filter(|_| !run.summary.state.is_terminal()) {
        (run.summary.state, run.summary.reason) = (RunStatus::Held, Some(why.clone()));
    }
    run
}

/// Returns the closing message about a run.
pub(crate) fn render_ending(run: &RunView, screen: &Screen) -> String {
    let leaves = format!(
        "  {}/{} tasks passed, {} in sessions and guards\n",
        run.leaves_passed,
        run.leaves_total,
        format_duration(run.elapsed_ms)
    );
    render_headline(&run.summary, screen)
        + &render_stop_reason(titles::titled_reason(run).as_ref(), &run.summary.path, screen)
        + &leaves
}

/// Destination of progress lines: one place on a terminal, or one line each.
pub(crate) struct ProgressLines<'a> {
    ui: &'a Ui,
    bar: Option<ProgressBar>,
}

impl<'a> ProgressLines<'a> {
    /// Starts showing progress.
    pub(crate) fn new(ui: &'a Ui) -> Self {
        Self { ui, bar: ui.can_draw_progress().then(|| new_progress_bar(ui)) }
    }

    /// Shows lines.
    pub(crate) fn show(&self, lines: Vec<ProgressLine>) {
        for line in lines {
            match (&self.bar, line) {
                (Some(bar), ProgressLine::Transient { text, elapsed_ms }) => {
                    bar.set_message(text);
                    bar.set_elapsed(Duration::from_millis(elapsed_ms));
                }
                (None, ProgressLine::Transient { text, elapsed_ms }) => {
                    self.ui.print_note(&format!("{text}  {}\n", format_seconds(elapsed_ms)));
                }
                (_, ProgressLine::Permanent(text)) => self.suspend_for(|| self.ui.print_note(&(text + "\n"))),
            }
        }
    }

    /// Calls a function that prints, with the live line hidden meanwhile.
    pub(crate) fn suspend_for<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the live line.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Returns a line that indicates activity.
pub(crate) fn new_progress_bar(ui: &Ui) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(spinner_style(ui));
    bar.enable_steady_tick(TICK);
    bar
}

/// Returns the style of the line if the total is unknown.
pub(crate) fn spinner_style(ui: &Ui) -> ProgressStyle {
    progress_style(ui, "{spinner} {elapsed:>4}  {wide_msg}")
}

/// Returns the style of the bar if the total is known.
pub(crate) fn bar_style(ui: &Ui) -> ProgressStyle {
    progress_style(ui, "{spinner} {elapsed:>4}  {bar:24} {percent:>3}%  {wide_msg}")
}

fn progress_style(ui: &Ui, template: &str) -> ProgressStyle {
    let screen = ui.screen();
    let style = ProgressStyle::with_template(template).expect("BUG: the template is wrong");
    style.tick_chars(screen.pick_symbol("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ", "|/-\\ ")).progress_chars(screen.pick_symbol("━╸─", "=>-"))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use protocol::view::StopReason;

    use super::*;
    use crate::text::samples;

    #[test]
    fn a_run_whose_repository_is_held_is_held_unless_it_is_over() {
        let mut status = samples::status();
        let run = samples::run();
        assert_eq!(with_repo_hold(&run, &status).summary.state, run.summary.state);
        let why = StopReason::new("a bug of the daemon", "");
        status.repo.held = Some(why.clone());
        assert_eq!(with_repo_hold(&run, &status).summary.state, RunStatus::Held);
        assert_eq!(with_repo_hold(&run, &status).summary.reason, Some(why));
        assert_eq!(with_repo_hold(&samples::stuck(), &status).summary.state, RunStatus::Stuck);
    }

    #[test]
    fn a_queued_run_says_why_the_one_before_it_is_held() {
        let mut status = samples::status();
        let mut run = samples::run();
        let mut first = samples::stuck().summary;
        (first.id, first.state) = ("before".to_owned(), RunStatus::Held);
        status.repo.queue = vec![first];
        assert_eq!(describe_blocker(&run, &status, &Screen::fixed()), None, "it has its turn");
        run.summary.state = RunStatus::Queued;
        let text = describe_blocker(&run, &status, &Screen::fixed()).expect("something is before it");
        assert!(text.starts_with("run before is before it, and is held\n  "), "{text}");
        assert!(text.contains("to continue: "), "{text}");
        status.repo.queue[0].id = run.summary.id.clone();
        assert_eq!(describe_blocker(&run, &status, &Screen::fixed()), None, "it is the first");
    }

    #[test]
    fn the_last_line_says_how_to_continue() {
        insta::assert_snapshot!(strip_str(&render_ending(&samples::stuck(), &Screen::fixed())), @r#"
        run run-1a2b3c4d stuck on branch runner/run-1a2b3c4d
          "Cut the text into tokens" has used all of its 3 attempts
          to continue: runnerctl resume
          4/9 tasks passed, 1h 05m in sessions and guards
        "#);
    }
}
