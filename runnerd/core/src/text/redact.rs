//! Keeps values that are known to be secret out of what the runner writes.
//!
//! Pure: bytes in, bytes out, in linear time and with memory bounded by the longest value. A variable's name decides
//! whether it is secret; a value is found verbatim and in the spellings of [`secret_spellings`], not after any other
//! transformation.

mod secret_names;
mod secret_spellings;
mod stream;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

pub use self::secret_names::is_secret;
pub use self::stream::RedactStream;

/// Length of the shortest value that is treated as a secret, in bytes: a shorter one is part of too many words.
pub const MIN_SECRET: usize = 8;
/// Length of the longest value that is searched for, in bytes.
pub const MAX_SECRET: usize = 32 * 1024;

/// The secrets of a run, ready to be searched for. A clone is cheap.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Option<Arc<SecretMatcher>>);

struct SecretMatcher {
    /// Names of the variables, as the markers show them.
    names: Vec<String>,
    patterns: Vec<SecretPattern>,
    automaton: AhoCorasick,
    longest: usize,
}

/// One spelling of a value.
struct SecretPattern {
    bytes: Vec<u8>,
    /// For each proper prefix of the pattern, the length of its longest border.
    borders: Vec<usize>,
    /// Index of the variable's name.
    name: usize,
}

/// A part of a text to redact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SecretSpan {
    start: usize,
    end: usize,
    /// Index of the name that the marker shows; `None` if the marker has already been written.
    name: Option<usize>,
    /// Length of the spelling that supplied the name.
    spelling_len: usize,
}

impl std::fmt::Debug for SecretMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownSecrets").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Takes the variables whose names mark them as secret, and the passwords in URLs.
    ///
    /// # Errors
    ///
    /// Fails if there are more values than an automaton can hold.
    pub fn from_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, BuildError> {
        let mut spellings: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for (name, value) in variables {
            for secret in secret_names::find_secrets(name, value) {
                for spelling in secret_spellings::all_spellings(secret) {
                    spellings.entry(spelling).or_insert_with(|| secret_names::marker_name(name));
                }
            }
        }
        if spellings.is_empty() {
            return Ok(Self::default());
        }
        SecretMatcher::new(spellings).map(|known| Self(Some(Arc::new(known))))
    }

    /// Returns whether there is nothing to redact.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the length of the longest spelling, in bytes; 0 without secrets.
    pub fn max_spelling_len(&self) -> usize {
        self.0.as_ref().map_or(0, |known| known.longest)
    }

    /// Replaces each secret in a text by `[redacted: NAME]`.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Secrets are text, so removing one leaves valid text.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Replaces each secret in bytes by `[redacted: NAME]`.
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(known) = &self.0 else { return Cow::Borrowed(bytes) };
        let spans = known.spans(bytes);
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = Vec::with_capacity(bytes.len());
        known.write_masked(bytes, &spans, &mut out);
        Cow::Owned(out)
    }

    /// Returns the end of the secret that covers the bytes before and after `at`, or `at` if there is none.
    pub fn end_of_secret_at(&self, bytes: &[u8], at: usize) -> usize {
        let spans = self.0.as_ref().map(|known| known.spans(bytes)).unwrap_or_default();
        spans.iter().find(|span| span.start < at && at < span.end).map_or(at, |span| span.end)
    }

    /// Returns the names of the variables whose values occur in the bytes.
    pub fn names_in(&self, bytes: &[u8]) -> BTreeSet<String> {
        let Some(known) = &self.0 else { return BTreeSet::new() };
        known.spans(bytes).iter().filter_map(|span| Some(known.names[span.name?].clone())).collect()
    }

    /// Starts redaction of input that arrives in parts.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.0.clone())
    }
}

impl SecretMatcher {
    fn new(spellings: BTreeMap<Vec<u8>, String>) -> Result<Self, BuildError> {
        let names: BTreeSet<String> = spellings.values().cloned().collect();
        let names: Vec<String> = names.into_iter().collect();
        let patterns: Vec<SecretPattern> = spellings
            .into_iter()
            .filter_map(|(bytes, name)| Some(SecretPattern::new(bytes, names.binary_search(&name).ok()?)))
            .collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(patterns.iter().map(|pattern| pattern.bytes.as_slice()))?;
        let longest = patterns.iter().map(|pattern| pattern.bytes.len()).max().unwrap_or(0);
        Ok(Self { names, patterns, automaton, longest })
    }

    /// Returns the spans to redact, in order and without overlaps.
    fn spans(&self, bytes: &[u8]) -> Vec<SecretSpan> {
        let mut spans = Vec::new();
        if self.automaton.is_match(bytes) {
            self.add_spans(bytes, &mut spans);
        }
        spans
    }

    /// Adds to existing spans, which must start no later than any new one.
    fn add_spans(&self, bytes: &[u8], spans: &mut Vec<SecretSpan>) {
        for found in self.automaton.find_overlapping_iter(bytes) {
            let name = Some(self.patterns[found.pattern()].name);
            let mut span = SecretSpan { start: found.start(), end: found.end(), name, spelling_len: found.len() };
            while let Some(last) = spans.pop_if(|last| last.end > span.start) {
                span = span.merged_with(last);
            }
            spans.push(span);
        }
    }

    /// Copies the bytes with a marker in place of each span.
    fn write_masked(&self, bytes: &[u8], spans: &[SecretSpan], out: &mut Vec<u8>) {
        let mut at = 0;
        for span in spans {
            out.extend_from_slice(&bytes[at..span.start]);
            if let Some(name) = span.name {
                out.extend_from_slice(b"[redacted: ");
                out.extend_from_slice(self.names[name].as_bytes());
                out.push(b']');
            }
            at = span.end;
        }
        out.extend_from_slice(&bytes[at..]);
    }

    /// Returns the start of the longest suffix of the bytes that may be the beginning of a secret.
    fn partial_secret_start(&self, bytes: &[u8]) -> usize {
        let open = self.patterns.iter().map(|pattern| pattern.prefix_len_at_end(bytes)).max();
        bytes.len() - open.unwrap_or(0)
    }
}

impl SecretSpan {
    /// Merges another span into this one.
    fn merged_with(self, other: Self) -> Self {
        // The span that starts first supplies the name, and among several the longest. After a marker that was already
        // written there is no second one.
        let rank = |span: &Self| (span.start, span.name.is_some(), Reverse(span.spelling_len));
        let namer = if rank(&other) < rank(&self) { other } else { self };
        Self { start: self.start.min(other.start), end: self.end.max(other.end), ..namer }
    }
}

impl SecretPattern {
    fn new(bytes: Vec<u8>, name: usize) -> Self {
        let mut borders = vec![0; bytes.len()];
        let mut length = 0;
        for at in 1..bytes.len() {
            while length > 0 && bytes[at] != bytes[length] {
                length = borders[length - 1];
            }
            length += usize::from(bytes[at] == bytes[length]);
            borders[at] = length;
        }
        Self { bytes, borders, name }
    }

    /// Returns how many of the last bytes are a proper prefix of the pattern (Knuth, Morris and Pratt).
    fn prefix_len_at_end(&self, text: &[u8]) -> usize {
        let end = &text[text.len().saturating_sub(self.bytes.len() - 1)..];
        end.iter().fold(0, |mut length, byte| {
            while length > 0 && *byte != self.bytes[length] {
                length = self.borders[length - 1];
            }
            length + usize::from(*byte == self.bytes[length])
        })
    }
}

#[cfg(test)]
#[path = "redact/tests.rs"]
mod tests;
