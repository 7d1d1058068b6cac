//! Redacts input that arrives in parts: a secret that is split between parts is still found.
//!
//! Bytes that may begin a secret are held until more input arrives, never more than the longest secret.

use std::sync::Arc;

use super::{SecretMatcher, SecretSpan};

/// A text that is being redacted.
#[derive(Debug, Default)]
pub struct RedactStream {
    known: Option<Arc<SecretMatcher>>,
    /// The end of the input so far, which may be the beginning of a secret.
    held: Vec<u8>,
    /// How many of the held bytes belong to a secret whose marker has already been returned.
    hidden: usize,
}

impl RedactStream {
    pub(super) fn new(known: Option<Arc<SecretMatcher>>) -> Self {
        Self { known, held: Vec::new(), hidden: 0 }
    }

    /// Takes a part, and appends to `out` what is certain by now.
    pub fn push(&mut self, part: &[u8], out: &mut Vec<u8>) {
        let Some(known) = self.known.clone() else { return out.extend_from_slice(part) };
        self.held.extend_from_slice(part);
        let mut spans = self.spans(&known);
        let open = known.partial_secret_start(&self.held);
        // A secret in which another one may begin is complete as far as it goes: only its marker has yet to be written.
        let covered = spans.iter().find(|span| span.start < open && open < span.end).map_or(0, |span| span.end - open);
        spans.retain(|span| span.start < open);
        if let Some(last) = spans.last_mut() {
            last.end = last.end.min(open);
        }
        known.write_masked(&self.held[..open], &spans, out);
        self.held.drain(..open);
        self.hidden = covered.max(self.hidden.saturating_sub(open));
    }

    /// Returns how many bytes are held back.
    pub fn held_len(&self) -> usize {
        self.held.len()
    }

    /// Appends the rest at the end of the input.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if let Some(known) = self.known.clone() {
            known.write_masked(&self.held, &self.spans(&known), out);
            self.held.clear();
        }
    }

    /// Drops what is held back, because the next part does not continue it.
    ///
    /// The first bytes after a gap may be the end of a secret, so the caller, which knows of the gap, must omit them.
    pub fn discard_held(&mut self) {
        self.held.clear();
        self.hidden = 0;
    }

    fn spans(&self, known: &SecretMatcher) -> Vec<SecretSpan> {
        let shown = SecretSpan { start: 0, end: self.hidden, name: None, spelling_len: 0 };
        let mut spans: Vec<SecretSpan> = (self.hidden > 0).then_some(shown).into_iter().collect();
        known.add_spans(&self.held, &mut spans);
        spans
    }
}
