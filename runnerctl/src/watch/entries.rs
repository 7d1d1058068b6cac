//! Events as lines for a reader: the history of a repository, oldest first, bounded.

use std::collections::VecDeque;

use anstyle::Style;
use jiff::Timestamp;
use protocol::event::{Event, EventKind};
use protocol::words::{PhaseName, VerdictName};

use crate::progress::{describe_refusal, describe_secrets};
use crate::text::measure::{format_dollars, short_id};
use crate::text::paint::{DIM, HINT, LIVE, PLAIN, WARN, state_style, verdict_style};
use crate::text::titles::replace_ids;

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventEntry {
    /// Its time.
    pub(crate) time: Timestamp,
    /// Its iteration.
    pub(crate) iter: Option<u32>,
    /// Its style.
    pub(crate) style: Style,
    /// Its text, not yet sanitized.
    pub(crate) text: String,
}

impl EventEntry {
    /// Returns the line for an event, if it is worth one; tasks are named by their titles, if known.
    pub(crate) fn from_event<'t>(event: &Event, title: impl Fn(&str) -> Option<&'t str>) -> Option<Self> {
        let (style, text) = render_event(&event.kind, &title)?;
        Some(Self { time: event.time, iter: event.iter, style, text })
    }
}

fn render_event<'t>(kind: &EventKind, title: &impl Fn(&str) -> Option<&'t str>) -> Option<(Style, String)> {
    let task_name = |node: &str| title(node).map_or_else(|| node.to_owned(), |title| format!("\"{}\"", title.trim()));
    Some(match kind {
        EventKind::RunState { state, reason, .. } => {
            let why =
                reason.as_ref().map(|reason| format!(": {}", replace_ids(&reason.message, title))).unwrap_or_default();
            (state_style(*state), format!("run {state}{why}"))
        }
        EventKind::Phase { phase: PhaseName::Work, node } => {
            (LIVE, format!("work on {}", node.as_deref().map_or_else(|| "a task".to_owned(), task_name)))
        }
        EventKind::Phase { phase: PhaseName::Guard, node: None } => (LIVE, "the guard runs on the base".to_owned()),
        EventKind::Iteration { node, verdict, guard, attempts, max_attempts, usage, .. } => {
            let cost = usage.cost_micro_usd.map(|cost| format!(", {}", format_dollars(cost))).unwrap_or_default();
            let attempts_text = if *verdict == VerdictName::Accepted {
                String::new()
            } else {
                format!(", attempts {attempts}/{max_attempts}")
            };
            (
                verdict_style(*verdict),
                format!("{} {}, guard={guard}{attempts_text}{cost}", verdict.label(), task_name(node)),
            )
        }
        EventKind::Tree { leaves_passed, leaves_total } => {
            (PLAIN, format!("{leaves_passed}/{leaves_total} tasks pass"))
        }
        EventKind::Commit { commit, subject } => (DIM, format!("commit {} {subject}", short_id(commit))),
        EventKind::Questions { questions } => {
            let questions: Vec<String> = questions.iter().map(|new| format!("{} ({})", new.text, new.id)).collect();
            (HINT, format!("asked: {}", questions.join(", ")))
        }
        other => (WARN, render_notice(other)?),
    })
}

/// Returns the text of an event that needs attention; `None` for other events.
fn render_notice(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Outage { agent, why, .. } => format!("{agent} is not available: {why}"),
        EventKind::Obstacle { message } => format!("waits: {message}"),
        EventKind::Reverted { paths } => format!("put back: {}", paths.join(", ")),
        EventKind::Refs { moved } => format!("moved: {}", moved.join(", ")),
        EventKind::Refused { method, pid } => describe_refusal(method, *pid),
        EventKind::Secrets { files } => describe_secrets(files),
        EventKind::Warning { message } => message.clone(),
        EventKind::Lagged => "some events were missed; state reloaded".to_owned(),
        EventKind::Stopping => "the daemon is shutting down; runs continue when it starts again".to_owned(),
        _ => return None,
    })
}

/// A queue that drops its oldest elements, and numbers all elements it ever had.
#[derive(Debug, Clone)]
pub(crate) struct RingBuffer<T> {
    items: VecDeque<T>,
    limit: usize,
    dropped: usize,
}

impl<T> RingBuffer<T> {
    /// Creates a queue of this capacity.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { items: VecDeque::new(), limit, dropped: 0 }
    }

    /// Adds an element.
    pub(crate) fn push(&mut self, element: T) {
        self.items.push_back(element);
        if self.items.len() > self.limit {
            self.items.pop_front();
            self.dropped += 1;
        }
    }

    /// Returns the elements.
    pub(crate) fn items(&self) -> &VecDeque<T> {
        &self.items
    }

    /// Returns the number of the first element, and that of the next one to be added.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.dropped, self.dropped + self.items.len())
    }
}

#[cfg(test)]
mod tests {
    use protocol::words::RunStatus;

    use super::*;

    fn entry_for(kind: EventKind) -> Option<EventEntry> {
        let time = "2026-01-01T12:00:00Z".parse().expect("a time");
        let title = |id: &str| (id == "parser.lex").then_some("Cut the text");
        EventEntry::from_event(&Event { seq: 1, time, repo: None, run: None, iter: Some(4), kind }, title)
    }

    #[test]
    fn a_stop_is_told_with_its_reason() {
        let reason = protocol::view::StopReason::new("the disk is full", "");
        let entry = entry_for(EventKind::RunState { state: RunStatus::Waiting, reason: Some(reason), until: None });
        assert_eq!(entry.map(|entry| entry.text).as_deref(), Some("run waiting: the disk is full"));
    }

    #[test]
    fn a_task_is_called_by_its_title_where_that_is_known() {
        let work = |node: &str| entry_for(EventKind::Phase { phase: PhaseName::Work, node: Some(node.into()) });
        let text_of = |node| work(node).map(|entry| entry.text);
        assert_eq!(text_of("parser.lex").as_deref(), Some("work on \"Cut the text\""));
        let reason = protocol::view::StopReason::new("parser.lex has used all of its 3 attempts", "");
        let stop = entry_for(EventKind::RunState { state: RunStatus::Stuck, reason: Some(reason), until: None });
        let stop = stop.map(|entry| entry.text);
        assert_eq!(stop.as_deref(), Some("run stuck: \"Cut the text\" has used all of its 3 attempts"));
    }

    #[test]
    fn phases_are_for_the_timeline_and_only_the_work_is_told() {
        let phase = |phase| entry_for(EventKind::Phase { phase, node: Some("a".into()) }).map(|entry| entry.text);
        assert_eq!((phase(PhaseName::Guard), phase(PhaseName::Work).as_deref()), (None, Some("work on a")));
    }

    #[test]
    fn a_ring_drops_the_oldest_entry_and_keeps_counting() {
        let mut ring = RingBuffer::with_limit(2);
        (0..5).for_each(|n| ring.push(n));
        assert_eq!((ring.items().iter().copied().collect::<Vec<_>>(), ring.range()), (vec![3, 4], (3, 5)));
    }
}
