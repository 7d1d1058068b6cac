//! A file of an iteration's record, read in pieces as it grows, and kept within a bound.

use std::collections::VecDeque;

use protocol::view::TextView;

use super::capabilities::TermCapabilities;
use super::message::{LogKey, LogPosition, Request, RequestError};
use super::single_flight::SingleFlight;

/// Most bytes of one line that are kept.
const LONGEST_LINE: usize = 64 * 1024;
/// A piece of this size is followed by another at once.
const LARGE_PIECE: u64 = 64 * 1024;

/// Which lines are kept where there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepPolicy {
    /// The last ones, for a pane.
    Newest,
    /// The first ones, for a reader.
    Oldest,
}

/// What is known of the file; lines are safe to draw.
#[derive(Debug)]
pub(crate) struct LogTail {
    key: Option<LogKey>,
    offset: u64,
    flight: SingleFlight,
    is_complete: bool,
    lines: VecDeque<String>,
    forgotten: usize,
    bytes: usize,
    /// The last line has no end yet.
    is_open: bool,
    trouble: Option<RequestError>,
    budget: usize,
    keep: KeepPolicy,
}

impl LogTail {
    /// Makes one that keeps at most `budget` bytes.
    pub(crate) fn of(budget: usize, keep: KeepPolicy) -> Self {
        Self {
            key: None,
            offset: 0,
            flight: SingleFlight::default(),
            is_complete: false,
            lines: VecDeque::new(),
            forgotten: 0,
            bytes: 0,
            is_open: false,
            trouble: None,
            budget,
            keep,
        }
    }

    /// Turns to a file; what was read of another is forgotten.
    pub(crate) fn aim(&mut self, key: Option<LogKey>) {
        if self.key != key {
            *self = Self { key, ..Self::of(self.budget, self.keep) };
        }
    }

    /// Returns the file.
    pub(crate) fn key(&self) -> Option<&LogKey> {
        self.key.as_ref()
    }

    /// Returns the lines that are kept.
    pub(crate) fn lines(&self) -> &VecDeque<String> {
        &self.lines
    }

    /// Returns the number of the first line that is kept and that of the next one to come.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.forgotten, self.forgotten + self.lines.len())
    }

    /// Returns why it could not be read.
    pub(crate) fn trouble(&self) -> Option<&RequestError> {
        self.trouble.as_ref()
    }

    /// Whether there is more of it than is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.keep == KeepPolicy::Oldest && self.bytes >= self.budget
    }

    /// Whether nothing more is to come.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Notes that there may be more, and returns the request for it.
    pub(crate) fn more(&mut self) -> Option<Request> {
        if self.is_complete || self.is_full() {
            return None;
        }
        let place = LogPosition { key: self.key.clone()?, offset: self.offset };
        self.flight.want().then_some(Request::Piece(place))
    }

    /// Forgets that an answer is awaited: the connection that was to bring it is gone.
    pub(crate) fn lost(&mut self) {
        self.flight = SingleFlight::default();
    }

    /// Takes the next piece of this file, and returns the request for the one after it where there may be one.
    ///
    /// A piece of another file or place is for somebody else, or was asked for before this turned to its file.
    pub(crate) fn take(
        &mut self,
        at: &LogPosition,
        piece: Result<TextView, RequestError>,
        look: TermCapabilities,
    ) -> Option<Request> {
        if self.key.as_ref() != Some(&at.key) || self.offset != at.offset {
            return None;
        }
        let mut is_more = self.flight.arrived();
        self.flight = SingleFlight::default();
        match piece {
            Ok(piece) => {
                is_more |= piece.next_offset.saturating_sub(self.offset) >= LARGE_PIECE;
                self.offset = piece.next_offset;
                self.is_complete = piece.complete;
                self.trouble = None;
                self.append(&piece.text, look);
            }
            Err(trouble) => (self.is_complete, self.trouble) = (true, Some(trouble)),
        }
        if is_more { self.more() } else { None }
    }

    fn append(&mut self, text: &str, look: TermCapabilities) {
        for part in text.split_inclusive('\n') {
            let line = look.line(part.trim_end_matches(['\n', '\r']));
            if !self.is_open {
                self.lines.push_back(String::new());
            }
            if let Some(last) = self.lines.back_mut() {
                extend(last, &line, &mut self.bytes);
            }
            self.is_open = !part.ends_with('\n');
        }
        while self.keep == KeepPolicy::Newest && self.bytes > self.budget && self.lines.len() > 1 {
            let gone = self.lines.pop_front().unwrap_or_default();
            self.bytes -= gone.len();
            self.forgotten += 1;
        }
    }
}

/// Adds to a line as far as it is kept.
fn extend(line: &mut String, text: &str, bytes: &mut usize) {
    let room = LONGEST_LINE.saturating_sub(line.len());
    let part = &text[..text.floor_char_boundary(room)];
    line.push_str(part);
    *bytes += part.len();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use protocol::request::LogStream;

    use super::*;
    use crate::watch::message::RunKey;

    fn key(iter: u32) -> LogKey {
        let target = RunKey { repo: "r".into(), path: Path::new("/p").into(), run: None };
        LogKey { target, iter, wait: None, stream: LogStream::Agent }
    }

    fn at(iter: u32, offset: u64) -> LogPosition {
        LogPosition { key: key(iter), offset }
    }

    fn piece(text: &str, next_offset: u64) -> TextView {
        TextView { text: text.to_owned(), next_offset, complete: false, size: None }
    }

    fn aimed(budget: usize, keep: KeepPolicy) -> LogTail {
        let mut tail = LogTail::of(budget, keep);
        tail.aim(Some(key(1)));
        assert_eq!(tail.more(), Some(Request::Piece(at(1, 0))));
        tail
    }

    #[test]
    fn a_line_that_pieces_cut_is_one_line() {
        let mut tail = aimed(1000, KeepPolicy::Newest);
        tail.take(&at(1, 0), Ok(piece("one\ntw", 6)), TermCapabilities::fixed());
        tail.take(&at(1, 6), Ok(piece("o\nthree\n", 14)), TermCapabilities::fixed());
        tail.take(&at(1, 6), Ok(piece("o\nthree\n", 14)), TermCapabilities::fixed());
        assert_eq!(tail.lines().iter().collect::<Vec<_>>(), ["one", "two", "three"]);
        assert_eq!(tail.more(), Some(Request::Piece(at(1, 14))));
    }

    #[test]
    fn a_pane_keeps_the_end_and_a_reader_the_beginning() {
        let mut pane = aimed(9, KeepPolicy::Newest);
        pane.take(&at(1, 0), Ok(piece("1234\n5678\nabcd\n", 15)), TermCapabilities::fixed());
        assert_eq!((pane.lines().front().map(String::as_str), pane.range()), (Some("5678"), (1, 3)));
        let mut reader = aimed(9, KeepPolicy::Oldest);
        reader.take(&at(1, 0), Ok(piece("1234\n5678\nabcd\n", 15)), TermCapabilities::fixed());
        assert!(reader.is_full() && reader.more().is_none());
        assert_eq!(reader.lines().front().map(String::as_str), Some("1234"));
    }

    #[test]
    fn what_was_asked_for_another_iteration_is_not_shown() {
        let mut tail = aimed(1000, KeepPolicy::Newest);
        tail.aim(Some(key(2)));
        tail.take(&at(1, 0), Ok(piece("old\n", 4)), TermCapabilities::fixed());
        assert!(tail.lines().is_empty());
    }

    #[test]
    fn an_escape_sequence_of_an_agent_is_text() {
        let mut tail = aimed(1000, KeepPolicy::Newest);
        tail.take(&at(1, 0), Ok(piece("\u{1b}]0;title\u{7}\n", 10)), TermCapabilities::fixed());
        assert_eq!(tail.lines()[0], "␛]0;title␇");
    }
}
