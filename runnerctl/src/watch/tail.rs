//! A file of an iteration's record, read in parts as it grows, and stored within a limit.

use std::collections::VecDeque;

use protocol::view::TextView;

use super::capabilities::TermCapabilities;
use super::message::{LogKey, LogPosition, Request, RequestError};
use super::single_flight::SingleFlight;

/// Maximum number of bytes stored of one line.
const LONGEST_LINE: usize = 64 * 1024;
/// After a part of this size, the next one is requested at once.
const LARGE_PIECE: u64 = 64 * 1024;

/// Which lines to keep if there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepPolicy {
    /// The last ones, for a pane.
    Newest,
    /// The first ones, for a reader.
    Oldest,
}

/// The loaded part of the file; lines are sanitized.
#[derive(Debug)]
pub(crate) struct LogTail {
    key: Option<LogKey>,
    offset: u64,
    request_state: SingleFlight,
    is_complete: bool,
    lines: VecDeque<String>,
    dropped_lines: usize,
    bytes: usize,
    /// The last line is incomplete.
    is_open: bool,
    error: Option<RequestError>,
    budget: usize,
    policy: KeepPolicy,
}

impl LogTail {
    /// Creates one that stores at most `budget` bytes.
    pub(crate) fn with_budget(budget: usize, policy: KeepPolicy) -> Self {
        Self {
            key: None,
            offset: 0,
            request_state: SingleFlight::default(),
            is_complete: false,
            lines: VecDeque::new(),
            dropped_lines: 0,
            bytes: 0,
            is_open: false,
            error: None,
            budget,
            policy,
        }
    }

    /// Switches to a file, dropping what was read of another.
    pub(crate) fn set_file(&mut self, key: Option<LogKey>) {
        if self.key != key {
            *self = Self { key, ..Self::with_budget(self.budget, self.policy) };
        }
    }

    /// Returns the file.
    pub(crate) fn key(&self) -> Option<&LogKey> {
        self.key.as_ref()
    }

    /// Returns the stored lines.
    pub(crate) fn lines(&self) -> &VecDeque<String> {
        &self.lines
    }

    /// Returns the number of the first stored line, and that of the next one.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.dropped_lines, self.dropped_lines + self.lines.len())
    }

    /// Returns why it could not be read.
    pub(crate) fn error(&self) -> Option<&RequestError> {
        self.error.as_ref()
    }

    /// Whether the file has more than is stored.
    pub(crate) fn is_full(&self) -> bool {
        self.policy == KeepPolicy::Oldest && self.bytes >= self.budget
    }

    /// Whether nothing more will come.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Records that there may be more, and returns the request for it.
    pub(crate) fn request_more(&mut self) -> Option<Request> {
        if self.is_complete || self.is_full() {
            return None;
        }
        let position = LogPosition { key: self.key.clone()?, offset: self.offset };
        self.request_state.request().then_some(Request::LogChunk(position))
    }

    /// Forgets a request in flight: its connection was lost.
    pub(crate) fn reset_pending(&mut self) {
        self.request_state = SingleFlight::default();
    }

    /// Adds the next part of this file, and returns the request for the one after it if there may be one.
    ///
    /// Ignores a part of another file or position: it is for another receiver, or was requested before the switch to
    /// this file.
    pub(crate) fn append_chunk(
        &mut self,
        position: &LogPosition,
        chunk: Result<TextView, RequestError>,
        look: TermCapabilities,
    ) -> Option<Request> {
        if self.key.as_ref() != Some(&position.key) || self.offset != position.offset {
            return None;
        }
        let mut may_have_more = self.request_state.complete();
        self.request_state = SingleFlight::default();
        match chunk {
            Ok(piece) => {
                may_have_more |= piece.next_offset.saturating_sub(self.offset) >= LARGE_PIECE;
                self.offset = piece.next_offset;
                self.is_complete = piece.complete;
                self.error = None;
                self.append_text(&piece.text, look);
            }
            Err(trouble) => (self.is_complete, self.error) = (true, Some(trouble)),
        }
        if may_have_more { self.request_more() } else { None }
    }

    fn append_text(&mut self, text: &str, look: TermCapabilities) {
        for part in text.split_inclusive('\n') {
            let line = look.safe_line(part.trim_end_matches(['\n', '\r']));
            if !self.is_open {
                self.lines.push_back(String::new());
            }
            if let Some(last) = self.lines.back_mut() {
                extend_line(last, &line, &mut self.bytes);
            }
            self.is_open = !part.ends_with('\n');
        }
        while self.policy == KeepPolicy::Newest && self.bytes > self.budget && self.lines.len() > 1 {
            let dropped = self.lines.pop_front().unwrap_or_default();
            self.bytes -= dropped.len();
            self.dropped_lines += 1;
        }
    }
}

/// Appends to a line, up to the maximum length.
fn extend_line(line: &mut String, text: &str, bytes: &mut usize) {
    let available = LONGEST_LINE.saturating_sub(line.len());
    let part = &text[..text.floor_char_boundary(available)];
    line.push_str(part);
    *bytes += part.len();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::request::LogStream;

    use super::*;
    use crate::watch::message::RunKey;

    fn sample_key(iter: u32) -> LogKey {
        let target = RunKey { repo: "r".into(), path: Path::new("/p").into(), run: None };
        LogKey { target, iter, wait: None, stream: LogStream::Agent }
    }

    fn position_at(iter: u32, offset: u64) -> LogPosition {
        LogPosition { key: sample_key(iter), offset }
    }

    fn sample_chunk(text: &str, next_offset: u64) -> TextView {
        TextView { text: text.to_owned(), next_offset, complete: false, size: None }
    }

    fn tail_of_first(budget: usize, keep: KeepPolicy) -> LogTail {
        let mut tail = LogTail::with_budget(budget, keep);
        tail.set_file(Some(sample_key(1)));
        assert_eq!(tail.request_more(), Some(Request::LogChunk(position_at(1, 0))));
        tail
    }

    #[test]
    fn a_line_that_pieces_cut_is_one_line() {
        let mut tail = tail_of_first(1000, KeepPolicy::Newest);
        tail.append_chunk(&position_at(1, 0), Ok(sample_chunk("one\ntw", 6)), TermCapabilities::fixed());
        tail.append_chunk(&position_at(1, 6), Ok(sample_chunk("o\nthree\n", 14)), TermCapabilities::fixed());
        tail.append_chunk(&position_at(1, 6), Ok(sample_chunk("o\nthree\n", 14)), TermCapabilities::fixed());
        assert_eq!(tail.lines().iter().collect::<Vec<_>>(), ["one", "two", "three"]);
        assert_eq!(tail.request_more(), Some(Request::LogChunk(position_at(1, 14))));
    }

    #[test]
    fn a_pane_keeps_the_end_and_a_reader_the_beginning() {
        let mut pane = tail_of_first(9, KeepPolicy::Newest);
        pane.append_chunk(&position_at(1, 0), Ok(sample_chunk("1234\n5678\nabcd\n", 15)), TermCapabilities::fixed());
        assert_eq!((pane.lines().front().map(String::as_str), pane.range()), (Some("5678"), (1, 3)));
        let mut reader = tail_of_first(9, KeepPolicy::Oldest);
        reader.append_chunk(&position_at(1, 0), Ok(sample_chunk("1234\n5678\nabcd\n", 15)), TermCapabilities::fixed());
        assert!(reader.is_full() && reader.request_more().is_none());
        assert_eq!(reader.lines().front().map(String::as_str), Some("1234"));
    }

    #[test]
    fn what_was_asked_for_another_iteration_is_not_shown() {
        let mut tail = tail_of_first(1000, KeepPolicy::Newest);
        tail.set_file(Some(sample_key(2)));
        tail.append_chunk(&position_at(1, 0), Ok(sample_chunk("old\n", 4)), TermCapabilities::fixed());
        assert!(tail.lines().is_empty());
    }

    #[test]
    fn an_escape_sequence_of_an_agent_is_text() {
        let mut tail = tail_of_first(1000, KeepPolicy::Newest);
        tail.append_chunk(&position_at(1, 0), Ok(sample_chunk("\u{1b}]0;title\u{7}\n", 10)), TermCapabilities::fixed());
        assert_eq!(tail.lines()[0], "␛]0;title␇");
    }
}
