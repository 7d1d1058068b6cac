//! Forwards a process's output to subscribers as it is printed: sanitized and without secrets.
//!
//! For display only. Slow subscribers miss parts and are never waited for; the log has what is missing here.

use protocol::event::{Activity, EventKind};
use protocol::words::PhaseName;
use runner_core::text::fence::clean;
use runner_core::text::redact::{RedactStream, Secrets};
use runner_process::OutputPiece;
use tokio::sync::mpsc;

use crate::events::{EventStream, EventSubject};
use crate::worker::context::RunContext;

/// Pieces of output that may be queued.
const CHANNEL_CAPACITY: usize = 128;

/// Size limit in bytes of the text in an event.
const MAX_TEXT: usize = 8 * 1024;

/// Returns the channel to which a process of an iteration, or one before the first, sends its output.
pub(crate) fn relay_output(
    context: &RunContext,
    iter: impl Into<Option<u32>>,
    phase: PhaseName,
) -> mpsc::Sender<OutputPiece> {
    let (sender, mut receiver) = mpsc::channel::<OutputPiece>(CHANNEL_CAPACITY);
    let scope =
        EventSubject { repo: Some(context.store.id().to_owned()), run: Some(context.run.clone()), iter: iter.into() };
    let mut relay = OutputRelay::new(&context.secrets);
    let events = context.events.clone();
    tokio::spawn(async move {
        while let Some(piece) = receiver.recv().await {
            let text = if events.has_output_readers() { relay.redact_piece(&piece) } else { relay.mark_gap() };
            publish_output(&events, &scope, phase, &text);
        }
        publish_output(&events, &scope, phase, &relay.finish_output());
    });
    sender
}

/// Returns the channel to which a session's steps are sent.
pub(crate) fn relay_activity(context: &RunContext, iter: u32) -> mpsc::Sender<Activity> {
    let (sender, mut receiver) = mpsc::channel::<Activity>(CHANNEL_CAPACITY);
    let scope =
        EventSubject { repo: Some(context.store.id().to_owned()), run: Some(context.run.clone()), iter: Some(iter) };
    let secrets = context.secrets.clone();
    let events = context.events.clone();
    tokio::spawn(async move {
        while let Some(Activity { what, text }) = receiver.recv().await {
            let step = runner_agents::bound_step(&Activity { what, text: secrets.redact(&text).into_owned() });
            events.publish_output(scope.clone(), EventKind::Activity(step));
        }
    });
    sender
}

fn publish_output(events: &EventStream, about: &EventSubject, phase: PhaseName, bytes: &[u8]) {
    // Sanitizing escapes characters: a piece may have grown.
    let text = clean(&String::from_utf8_lossy(bytes));
    for text in split_text(&text) {
        events.publish_output(about.clone(), EventKind::Output { phase, text: text.to_owned() });
    }
}

/// Splits a text into parts of bounded size: events for many subscribers are held in memory.
fn split_text(text: &str) -> impl Iterator<Item = &str> {
    let mut remaining = text;
    std::iter::from_fn(move || {
        let (part, after) = remaining.split_at(remaining.floor_char_boundary(MAX_TEXT));
        remaining = after;
        (!part.is_empty()).then_some(part)
    })
}

/// The output being forwarded, redacted.
struct OutputRelay {
    redactor: RedactStream,
    /// Most bytes after a gap that may be the end of a secret.
    max_partial_secret: usize,
    /// How many of those bytes are still to come.
    uncertain_bytes: usize,
}

impl OutputRelay {
    fn new(secrets: &Secrets) -> Self {
        Self {
            redactor: secrets.stream(),
            max_partial_secret: secrets.max_spelling_len().saturating_sub(1),
            uncertain_bytes: 0,
        }
    }

    fn redact_piece(&mut self, piece: &OutputPiece) -> Vec<u8> {
        if piece.after_gap {
            self.mark_gap();
        }
        let (uncertain, certain) = piece.bytes.split_at(self.uncertain_bytes.min(piece.bytes.len()));
        self.uncertain_bytes -= uncertain.len();
        let mut out = Vec::new();
        self.redactor.push(certain, &mut out);
        out
    }

    /// Records that output was left out.
    fn mark_gap(&mut self) -> Vec<u8> {
        self.redactor.discard_held();
        self.uncertain_bytes = self.max_partial_secret;
        Vec::new()
    }

    fn finish_output(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.redactor.finish(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-abcdefgh12345678";

    fn sample_relay() -> OutputRelay {
        OutputRelay::new(&Secrets::from_variables([("API_KEY", KEY)]).unwrap())
    }

    fn sample_piece(text: &str, after_gap: bool) -> OutputPiece {
        OutputPiece { bytes: text.as_bytes().to_vec(), after_gap }
    }

    #[test]
    fn secret_that_pieces_cut_is_not_sent_on() {
        let mut relay = sample_relay();
        let mut output = relay.redact_piece(&sample_piece("key sk-abcdef", false));
        output.extend(relay.redact_piece(&sample_piece("gh12345678 end", false)));
        output.extend(relay.finish_output());
        assert_eq!(String::from_utf8(output).unwrap(), "key [redacted: API_KEY] end");
    }

    #[test]
    fn neither_end_of_a_secret_around_a_gap_is_sent_on() {
        let mut relay = sample_relay();
        let mut output = relay.redact_piece(&sample_piece("key sk-abcdef", false));
        output.extend(relay.redact_piece(&sample_piece("78 end", true)));
        output.extend(relay.redact_piece(&sample_piece(&format!("{} and {KEY}", "x".repeat(KEY.len() * 2)), false)));
        output.extend(relay.finish_output());
        let output = String::from_utf8(output).unwrap();
        assert!(output.starts_with("key x") && output.ends_with("x and [redacted: API_KEY]"), "{output}");
    }

    #[test]
    fn text_that_grew_is_cut_between_characters() {
        let text = "ä".repeat(MAX_TEXT);
        let parts: Vec<&str> = split_text(&text).collect();
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= MAX_TEXT));
        assert_eq!(parts.concat(), text);
    }

    #[test]
    fn without_secrets_a_gap_costs_nothing_more() {
        let mut relay = OutputRelay::new(&Secrets::default());
        assert_eq!(relay.redact_piece(&sample_piece("after", true)), b"after");
    }
}
