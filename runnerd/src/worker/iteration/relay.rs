//! Sends what a process prints on to those who asked to see it, as it comes: clean, and without secrets.
//!
//! For eyes only. Whoever is too slow misses a part, and nobody waits for them; the log has what this leaves out.

use protocol::event::{Activity, EventKind};
use protocol::words::PhaseName;
use runner_core::fence::clean;
use runner_core::redact::{Secrets, Stream};
use tokio::sync::mpsc;

use crate::agent;
use crate::events::{About, Events};
use crate::process::Piece;
use crate::worker::context::RunContext;

/// Pieces of output that may wait to be sent on.
const PIECES: usize = 128;

/// Most bytes of text in an event.
const MAX_TEXT: usize = 8 * 1024;

/// Returns where a process of an iteration, or one before the first, sends what it prints.
pub(crate) fn begin(context: &RunContext, iter: impl Into<Option<u32>>, phase: PhaseName) -> mpsc::Sender<Piece> {
    let (sender, mut pieces) = mpsc::channel::<Piece>(PIECES);
    let about = About { repo: Some(context.store.id().to_owned()), run: Some(context.run.clone()), iter: iter.into() };
    let (mut relay, events) = (Relay::new(&context.secrets), context.events.clone());
    tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            let text = if events.has_output_readers() { relay.take(&piece) } else { relay.skip() };
            publish(&events, &about, phase, &text);
        }
        publish(&events, &about, phase, &relay.finish());
    });
    sender
}

/// Returns where a session's steps are sent to.
pub(crate) fn activity(context: &RunContext, iter: u32) -> mpsc::Sender<Activity> {
    let (sender, mut steps) = mpsc::channel::<Activity>(PIECES);
    let about = About { repo: Some(context.store.id().to_owned()), run: Some(context.run.clone()), iter: Some(iter) };
    let (secrets, events) = (context.secrets.clone(), context.events.clone());
    tokio::spawn(async move {
        while let Some(Activity { what, text }) = steps.recv().await {
            let step = agent::bounded(&Activity { what, text: secrets.redact(&text).into_owned() });
            events.publish_output(about.clone(), EventKind::Activity(step));
        }
    });
    sender
}

fn publish(events: &Events, about: &About, phase: PhaseName, bytes: &[u8]) {
    // Cleaning spells characters out: a piece may have grown.
    let text = clean(&String::from_utf8_lossy(bytes));
    for text in parts(&text) {
        events.publish_output(about.clone(), EventKind::Output { phase, text: text.to_owned() });
    }
}

/// Cuts a text into parts of bounded size: events of many subscribers wait in memory.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// The output on its way, redacted.
struct Relay {
    redacted: Stream,
    /// Most bytes after a gap that may be the end of a secret.
    blind: usize,
    /// How many of them are still to come.
    unsure: usize,
}

impl Relay {
    fn new(secrets: &Secrets) -> Self {
        Self { redacted: secrets.stream(), blind: secrets.longest().saturating_sub(1), unsure: 0 }
    }

    fn take(&mut self, piece: &Piece) -> Vec<u8> {
        if piece.after_gap {
            self.skip();
        }
        let (unsure, sure) = piece.bytes.split_at(self.unsure.min(piece.bytes.len()));
        self.unsure -= unsure.len();
        let mut out = Vec::new();
        self.redacted.push(sure, &mut out);
        out
    }

    /// Notes that something was left out.
    fn skip(&mut self) -> Vec<u8> {
        self.redacted.forget();
        self.unsure = self.blind;
        Vec::new()
    }

    fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.redacted.finish(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-abcdefgh12345678";

    fn relay() -> Relay {
        Relay::new(&Secrets::of([("API_KEY", KEY)]).unwrap())
    }

    fn piece(text: &str, after_gap: bool) -> Piece {
        Piece { bytes: text.as_bytes().to_vec(), after_gap }
    }

    #[test]
    fn secret_that_pieces_cut_is_not_sent_on() {
        let mut relay = relay();
        let mut seen = relay.take(&piece("key sk-abcdef", false));
        seen.extend(relay.take(&piece("gh12345678 end", false)));
        seen.extend(relay.finish());
        assert_eq!(String::from_utf8(seen).unwrap(), "key [redacted: API_KEY] end");
    }

    #[test]
    fn neither_end_of_a_secret_around_a_gap_is_sent_on() {
        let mut relay = relay();
        let mut seen = relay.take(&piece("key sk-abcdef", false));
        seen.extend(relay.take(&piece("78 end", true)));
        seen.extend(relay.take(&piece(&format!("{} and {KEY}", "x".repeat(KEY.len() * 2)), false)));
        seen.extend(relay.finish());
        let seen = String::from_utf8(seen).unwrap();
        assert!(seen.starts_with("key x") && seen.ends_with("x and [redacted: API_KEY]"), "{seen}");
    }

    #[test]
    fn text_that_grew_is_cut_between_characters() {
        let text = "ä".repeat(MAX_TEXT);
        let parts: Vec<&str> = parts(&text).collect();
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= MAX_TEXT));
        assert_eq!(parts.concat(), text);
    }

    #[test]
    fn without_secrets_a_gap_costs_nothing_more() {
        let mut relay = Relay::new(&Secrets::default());
        assert_eq!(relay.take(&piece("after", true)), b"after");
    }
}
