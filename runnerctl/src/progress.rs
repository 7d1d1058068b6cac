//! Turns events and states of a watched run into progress lines: pure.
//!
//! A line is either transient (the live line of a terminal) or permanent. Without a terminal, all are permanent.

use jiff::Timestamp;
use protocol::event::{Event, EventKind};
use protocol::meta::SecretFinding;
use protocol::view::{IterationView, QuestionView, RunView};
use protocol::words::{GuardOutcome, PhaseName, RunStatus, VerdictName};

use crate::text::measure::{format_duration, format_until, millis_between};
use crate::text::paint::{DIM, WARN, guard_style, paint, verdict_style};
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;

/// A line of progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgressLine {
    /// Current activity; the next one replaces it if it can be drawn in place.
    Transient {
        /// Iteration, phase and node.
        text: String,
        /// Time since the iteration began, in milliseconds.
        elapsed_ms: u64,
    },
    /// Something that has happened.
    Permanent(String),
}

/// What has been shown of a run so far.
#[derive(Debug, Default)]
pub(crate) struct RunProgress {
    run: String,
    /// The live iteration, and when it was first seen.
    live: Option<(u32, Timestamp)>,
    /// The last phase shown.
    phase: Option<(u32, PhaseName)>,
    /// The last iteration shown, or already finished at the start.
    last_shown: Option<u32>,
    state: Option<RunStatus>,
    obstacle: Option<String>,
}

impl RunProgress {
    /// Creates it with nothing shown yet.
    pub(crate) fn for_run(run: &str) -> Self {
        Self { run: run.to_owned(), ..Self::default() }
    }

    /// Returns the id of the run.
    pub(crate) fn into_run(self) -> String {
        self.run
    }

    /// Returns the lines for an event.
    pub(crate) fn event_lines(&mut self, event: &Event) -> Vec<ProgressLine> {
        if event.run.as_deref().is_some_and(|run| run != self.run) {
            return Vec::new();
        }
        match &event.kind {
            EventKind::Phase { phase, node } => self.phase_lines(event, *phase, node.as_deref()),
            EventKind::Iteration { node, verdict, guard, .. } => {
                let Some(iter) = event.iter else { return Vec::new() };
                self.iteration_lines(&FinishedIteration {
                    iter,
                    node,
                    verdict: *verdict,
                    guard: *guard,
                    ms: self.elapsed_ms(event),
                })
            }
            EventKind::Obstacle { message } => self.obstacle_lines(message),
            EventKind::Reverted { paths } => vec![notice_line(&format!("put back: {}", paths.join(", ")))],
            EventKind::Refs { moved } => vec![notice_line(&format!("moved: {}", moved.join(", ")))],
            EventKind::Refused { method, pid } => vec![notice_line(&describe_refusal(method, *pid))],
            EventKind::Secrets { files } => vec![notice_line(&describe_secrets(files))],
            EventKind::Questions { questions } => {
                let line = |new: &QuestionView| {
                    notice_line(&format!("asked: {} (runnerctl answer {} TEXT)", new.text, new.id))
                };
                questions.iter().map(line).collect()
            }
            EventKind::Warning { message } => vec![notice_line(message)],
            EventKind::Stopping => {
                vec![notice_line("the daemon is shutting down; the run continues when it starts again")]
            }
            EventKind::Outage { agent, why, .. } => vec![notice_line(&format!("{agent} is not available: {why}"))],
            EventKind::RunState { .. }
            | EventKind::Tree { .. }
            | EventKind::Commit { .. }
            | EventKind::Output { .. }
            | EventKind::Activity(_)
            | EventKind::Workspace { .. }
            | EventKind::Lagged => Vec::new(),
        }
    }

    /// Returns the lines for a state: iterations that no event reported, and what the run waits for.
    pub(crate) fn status_lines(&mut self, run: &RunView, screen: &Screen) -> Vec<ProgressLine> {
        // It may have got another id at its first turn.
        run.summary.id.clone_into(&mut self.run);
        let newest = run.recent.first().map_or(0, |iteration| iteration.iter);
        let last_shown = *self.last_shown.get_or_insert(newest);
        let mut lines: Vec<ProgressLine> = Vec::new();
        for iteration in run.recent.iter().rev().filter(|iteration| iteration.iter > last_shown) {
            lines.extend(self.iteration_lines(&FinishedIteration::from(iteration)));
        }
        let state = run.summary.state;
        if self.state.replace(state) != Some(state) && matches!(state, RunStatus::Queued | RunStatus::Waiting) {
            lines.push(notice_line(&describe_wait(run, screen)));
        }
        if let Some(phase) = run.phase.as_ref().filter(|phase| self.phase != Some((run.iteration, phase.name))) {
            self.phase = Some((run.iteration, phase.name));
            self.live = Some((run.iteration, phase.iteration_since));
            let node = run.node.as_ref().map(|node| node.id.as_str());
            let elapsed_ms = millis_between(phase.iteration_since, screen.now);
            lines.push(if phase.baseline {
                ProgressLine::Transient { text: "the guard on the base".to_owned(), elapsed_ms }
            } else {
                transient_line(run.iteration, phase.name, node, elapsed_ms)
            });
        }
        lines
    }

    fn phase_lines(&mut self, event: &Event, phase: PhaseName, node: Option<&str>) -> Vec<ProgressLine> {
        let Some(iter) = event.iter else { return Vec::new() };
        if self.live.is_none_or(|(live, _)| live != iter) {
            self.live = Some((iter, event.time));
        }
        self.obstacle = None;
        let is_repeated = self.phase.replace((iter, phase)) == Some((iter, phase));
        if is_repeated || phase == PhaseName::Over {
            return Vec::new();
        }
        vec![transient_line(iter, phase, node, self.elapsed_ms(event).unwrap_or_default())]
    }

    fn elapsed_ms(&self, event: &Event) -> Option<u64> {
        let (live, since) = self.live?;
        (Some(live) == event.iter).then(|| millis_between(since, event.time))
    }

    fn iteration_lines(&mut self, iteration: &FinishedIteration<'_>) -> Vec<ProgressLine> {
        if self.last_shown.is_some_and(|last| iteration.iter <= last) {
            return Vec::new();
        }
        self.last_shown = Some(iteration.iter);
        vec![ProgressLine::Permanent(iteration.render())]
    }

    fn obstacle_lines(&mut self, message: &str) -> Vec<ProgressLine> {
        if self.obstacle.as_deref() == Some(message) {
            return Vec::new();
        }
        self.obstacle = Some(message.to_owned());
        vec![notice_line(&format!("waits: {message}"))]
    }
}

/// A finished iteration, from an event or a state.
struct FinishedIteration<'a> {
    iter: u32,
    node: &'a str,
    verdict: VerdictName,
    guard: GuardOutcome,
    ms: Option<u64>,
}

impl<'a> From<&'a IterationView> for FinishedIteration<'a> {
    fn from(view: &'a IterationView) -> Self {
        Self { iter: view.iter, node: &view.node, verdict: view.verdict, guard: view.guard, ms: view.duration_ms }
    }
}

impl FinishedIteration<'_> {
    fn render(&self) -> String {
        let verdict = paint(verdict_style(self.verdict), self.verdict.label());
        let guard = paint(guard_style(self.guard), &format!("guard={}", self.guard));
        let time = self.ms.map(|ms| format!("  {}", paint(DIM, &format_duration(ms)))).unwrap_or_default();
        format!("{:04} {verdict}  {}  {guard}{time}", self.iter, sanitize(self.node))
    }
}

fn transient_line(iter: u32, phase: PhaseName, node: Option<&str>, elapsed_ms: u64) -> ProgressLine {
    let text = format!("{iter:04} {:<7}  {}", phase.as_str(), sanitize(node.unwrap_or_default()));
    ProgressLine::Transient { text: text.trim_end().to_owned(), elapsed_ms }
}

/// Returns a sentence about files that contain secrets.
pub(crate) fn describe_secrets(files: &[SecretFinding]) -> String {
    let files: Vec<String> = files.iter().map(|file| format!("{} ({})", file.path, file.variable)).collect();
    format!("secrets were committed: {}", files.join(", "))
}

/// Returns a sentence about a refused call.
pub(crate) fn describe_refusal(method: &str, pid: Option<i32>) -> String {
    let process = pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
    format!("{process} inside an iteration called `{method}`; it was refused")
}

fn notice_line(message: &str) -> ProgressLine {
    ProgressLine::Permanent(paint(WARN, &sanitize(message)))
}

fn describe_wait(run: &RunView, screen: &Screen) -> String {
    let until = run.wait_until.map(|time| format!(" until {}", format_until(time, screen))).unwrap_or_default();
    let reason = run.summary.reason.as_ref().map(|reason| format!(": {}", reason.message)).unwrap_or_default();
    format!("{}{until}{reason}", run.summary.state)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use protocol::answer::SessionUsage;
    use protocol::words::IterationStatus;

    use super::*;
    use crate::text::measure::format_seconds;
    use crate::text::samples;

    fn event_at(iter: u32, second: u32, kind: EventKind) -> Event {
        let time = format!("2026-01-01T12:00:{second:02}Z").parse().expect("a time");
        Event { seq: 1, time, repo: None, run: Some("run-1a2b3c4d".into()), iter: Some(iter), kind }
    }

    fn phase_kind(phase: PhaseName) -> EventKind {
        EventKind::Phase { phase, node: Some("parser.lex".into()) }
    }

    fn ended_kind(verdict: VerdictName, guard: GuardOutcome) -> EventKind {
        let status = IterationStatus::Done;
        let usage = SessionUsage::default();
        EventKind::Iteration {
            node: "parser.lex".into(),
            verdict,
            status,
            guard,
            attempts: 1,
            max_attempts: 3,
            agent: None,
            usage,
        }
    }

    fn render_lines(lines: &[ProgressLine]) -> String {
        let line = |line: &ProgressLine| match line {
            ProgressLine::Transient { text, elapsed_ms } => format!("~ {text}  {}\n", format_seconds(*elapsed_ms)),
            ProgressLine::Permanent(text) => format!("{}\n", strip_str(text)),
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn an_iteration_is_a_line_per_phase_and_one_that_stays() {
        let mut progress = RunProgress::for_run("run-1a2b3c4d");
        let events = [
            event_at(3, 0, phase_kind(PhaseName::Work)),
            event_at(3, 12, phase_kind(PhaseName::Guard)),
            event_at(3, 14, phase_kind(PhaseName::Settle)),
            event_at(3, 14, ended_kind(VerdictName::RedGuard, GuardOutcome::Fail)),
            event_at(3, 14, phase_kind(PhaseName::Over)),
        ];
        let lines: Vec<ProgressLine> = events.iter().flat_map(|event| progress.event_lines(event)).collect();
        insta::assert_snapshot!(render_lines(&lines), @r"
        ~ 0003 work     parser.lex  0s
        ~ 0003 guard    parser.lex  12s
        ~ 0003 settle   parser.lex  14s
        0003 guard failed  parser.lex  guard=fail  14s
        ");
    }

    #[test]
    fn another_run_of_the_repository_is_not_shown() {
        let mut progress = RunProgress::for_run("run-other");
        assert_eq!(progress.event_lines(&event_at(3, 0, phase_kind(PhaseName::Work))), []);
    }

    #[test]
    fn iterations_that_ended_before_are_not_told() {
        let mut progress = RunProgress::for_run("run-1a2b3c4d");
        let lines = progress.status_lines(&samples::run(), &Screen::fixed());
        insta::assert_snapshot!(render_lines(&lines), @"~ 0004 guard    parser.lex  12s");
    }

    #[test]
    fn an_iteration_that_no_event_told_of_is_caught_up_once() {
        let mut progress = RunProgress::for_run("run-1a2b3c4d");
        let mut run = samples::run();
        run.recent.remove(0);
        progress.status_lines(&run, &Screen::fixed());
        let lines = progress.status_lines(&samples::run(), &Screen::fixed());
        assert!(render_lines(&lines).starts_with("0003 guard failed  parser.lex  guard=fail  14s\n"), "{lines:?}");
        assert_eq!(progress.event_lines(&event_at(3, 14, ended_kind(VerdictName::RedGuard, GuardOutcome::Fail))), []);
    }

    #[test]
    fn a_wait_is_told_once_with_its_end() {
        let mut progress = RunProgress::for_run("run-1a2b3c4d");
        let mut run = samples::run();
        run.summary.state = RunStatus::Waiting;
        run.phase = None;
        run.wait_until = Some("2026-01-01T12:05:00Z".parse().expect("a time"));
        let lines = progress.status_lines(&run, &Screen::fixed());
        insta::assert_snapshot!(render_lines(&lines), @"waiting until 12:05 (in 5m 00s)");
        assert_eq!(progress.status_lines(&run, &Screen::fixed()), []);
    }

    #[test]
    fn an_obstacle_that_stays_is_told_once() {
        let mut progress = RunProgress::for_run("run-1a2b3c4d");
        let obstacle = || event_at(3, 0, EventKind::Obstacle { message: "no space left on the disk".into() });
        assert_eq!(progress.event_lines(&obstacle()).len(), 1);
        assert_eq!(progress.event_lines(&obstacle()), []);
    }
}
