//! The full-screen reader for a record's files: scrolling, following, searching.

use std::ops::Range;

use protocol::request::LogStream;
use protocol::view::TextView;

use super::capabilities::TermCapabilities;
use super::message::{Key, LogKey, LogPosition, Request, RequestError, RunKey};
use super::tail::{KeepPolicy, LogTail};
use super::wrap;

/// Maximum number of bytes of a file to store.
const BYTE_BUDGET: usize = 16 << 20;
/// Rows of the screen that are not for the file.
pub(crate) const RESERVED_ROWS: u16 = 3;

/// The files, in the order of their tabs.
pub(crate) const STREAMS: [(LogStream, &str); 9] = [
    (LogStream::Agent, "agent"),
    (LogStream::Guard, "guard"),
    (LogStream::Prompt, "prompt"),
    (LogStream::Diff, "diff"),
    (LogStream::Output, "answer"),
    (LogStream::Review, "review"),
    (LogStream::GuardAccepted, "accepted"),
    (LogStream::GuardRerun, "rerun"),
    (LogStream::Baseline, "base"),
];

/// A row of the screen: a part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextRow {
    /// Number of the line.
    pub(crate) line: usize,
    /// Its part.
    pub(crate) part: Range<usize>,
}

/// The state of the reader.
#[derive(Debug)]
pub(crate) struct LogViewer {
    key: LogKey,
    tail: LogTail,
    rows: Vec<TextRow>,
    size: (u16, u16),
    top: usize,
    is_following: bool,
    needle: String,
    is_typing: bool,
    not_found: bool,
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ViewerAction {
    /// A command, or nothing.
    Stay(Option<Request>),
    /// The reader was closed.
    Close,
    /// Another iteration is requested, this many places further.
    Iteration(isize),
}

impl LogViewer {
    /// Opens a file.
    pub(crate) fn open(key: LogKey, size: (u16, u16)) -> (Self, Option<Request>) {
        let is_following = !matches!(key.stream, LogStream::Prompt | LogStream::Diff | LogStream::Output);
        let mut reader = Self {
            tail: LogTail::with_budget(BYTE_BUDGET, KeepPolicy::Oldest),
            rows: Vec::new(),
            size,
            top: 0,
            is_following,
            needle: String::new(),
            is_typing: false,
            not_found: false,
            key,
        };
        let request = reader.load();
        (reader, request)
    }

    /// Switches to the selected file.
    fn load(&mut self) -> Option<Request> {
        self.rows.clear();
        self.top = 0;
        self.tail.set_file(Some(self.key.clone()));
        self.tail.request_more()
    }

    /// Switches to another iteration.
    pub(crate) fn open_iteration(&mut self, iter: u32, wait: Option<u32>) -> Option<Request> {
        (self.key.iter, self.key.wait) = (iter, wait);
        self.load()
    }

    /// Returns the file.
    pub(crate) fn key(&self) -> &LogKey {
        &self.key
    }

    /// Returns the run.
    pub(crate) fn target(&self) -> &RunKey {
        &self.key.target
    }

    /// Returns the loaded part of the file.
    pub(crate) fn tail(&self) -> &LogTail {
        &self.tail
    }

    /// Returns the file's part of [`LogTail::request_more`].
    pub(crate) fn request_more(&mut self) -> Option<Request> {
        self.tail.request_more()
    }

    /// Forgets a request in flight.
    pub(crate) fn reset_pending(&mut self) {
        self.tail.reset_pending();
    }

    /// Whether the view follows the end.
    pub(crate) fn is_following(&self) -> bool {
        self.is_following
    }

    /// Returns the search text, and whether it is being typed.
    pub(crate) fn search(&self) -> (&str, bool) {
        (&self.needle, self.is_typing)
    }

    /// Whether the search text was not found.
    pub(crate) fn is_not_found(&self) -> bool {
        self.not_found
    }

    /// Returns the visible rows, the number of the first, and the total number.
    pub(crate) fn view(&self) -> (&[TextRow], usize, usize) {
        let top = self.top.min(self.rows.len());
        let end = (top + self.height()).min(self.rows.len());
        (&self.rows[top..end], top, self.rows.len())
    }

    /// Adds a loaded part of the file.
    pub(crate) fn append_chunk(
        &mut self,
        position: &LogPosition,
        chunk: Result<TextView, RequestError>,
        look: TermCapabilities,
    ) -> Option<Request> {
        let request = self.tail.append_chunk(position, chunk, look);
        self.layout();
        request
    }

    /// Adapts to another size of the screen.
    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        let line = self.rows.get(self.top).map_or(0, |row| row.line);
        self.size = size;
        self.rows.clear();
        self.layout();
        self.scroll_to(line);
    }

    /// Lays out new lines; also the last one again, because it may have grown.
    fn layout(&mut self) {
        let last = self.rows.last().map_or(0, |row| row.line);
        self.rows.truncate(self.rows.partition_point(|row| row.line < last));
        let width = usize::from(self.size.0);
        for (line, text) in self.tail.lines().iter().enumerate().skip(last) {
            self.rows.extend(wrap::wrap_ranges(text, width).into_iter().map(|part| TextRow { line, part }));
        }
        self.scroll_by(0);
    }

    fn height(&self) -> usize {
        usize::from(self.size.1.saturating_sub(RESERVED_ROWS))
    }

    fn bottom(&self) -> usize {
        self.rows.len().saturating_sub(self.height())
    }

    fn scroll_by(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.bottom());
        self.is_following &= by >= 0;
        if self.is_following {
            self.top = self.bottom();
        }
    }

    /// Scrolls a line to the top, or as far as the end allows.
    fn scroll_to(&mut self, line: usize) {
        self.top = self.rows.partition_point(|row| row.line < line);
        self.scroll_by(0);
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: Key) -> ViewerAction {
        if self.is_typing {
            self.type_needle(key);
            return ViewerAction::Stay(None);
        }
        let page = isize::try_from(self.height()).unwrap_or(isize::MAX).max(1);
        match key {
            Key::Char('q' | 'l') | Key::Escape => return ViewerAction::Close,
            Key::Char('[') | Key::Left => return ViewerAction::Iteration(-1),
            Key::Char(']') | Key::Right => return ViewerAction::Iteration(1),
            Key::Up | Key::Char('k') => self.scroll_by(-1),
            Key::Down | Key::Char('j') => self.scroll_by(1),
            Key::PageUp | Key::Char('b') => self.scroll_by(-page),
            Key::PageDown | Key::Char(' ') => self.scroll_by(page),
            Key::Home | Key::Char('g') => self.scroll_by(isize::MIN),
            Key::End | Key::Char('G') => self.scroll_by(isize::MAX),
            Key::Char('f') => {
                self.is_following = !self.is_following;
                self.scroll_by(0);
            }
            Key::Char('/') => (self.is_typing, self.needle) = (true, String::new()),
            Key::Char('n') => self.find_next(false),
            Key::Char('N') => self.find_next(true),
            Key::Tab => return ViewerAction::Stay(self.cycle_stream(1)),
            Key::BackTab => return ViewerAction::Stay(self.cycle_stream(STREAMS.len() - 1)),
            Key::Char(c @ '1'..='6') => return ViewerAction::Stay(self.open_stream(c as usize - '1' as usize)),
            _ => {}
        }
        ViewerAction::Stay(None)
    }

    fn cycle_stream(&mut self, by: usize) -> Option<Request> {
        let at = STREAMS.iter().position(|(stream, _)| *stream == self.key.stream).unwrap_or(0);
        self.open_stream((at + by) % STREAMS.len())
    }

    fn open_stream(&mut self, at: usize) -> Option<Request> {
        self.key.stream = STREAMS[at].0;
        self.is_following = false;
        self.load()
    }

    fn type_needle(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.needle.push(c),
            Key::Backspace => drop(self.needle.pop()),
            Key::Ctrl('u') => self.needle.clear(),
            Key::Escape => (self.is_typing, self.needle) = (false, String::new()),
            Key::Enter => {
                self.is_typing = false;
                self.find_next(false);
            }
            _ => {}
        }
    }

    /// Adds to the search text.
    pub(crate) fn paste(&mut self, text: &str) {
        if self.is_typing {
            self.needle.push_str(text.lines().next().unwrap_or_default());
        }
    }

    /// Goes to the next or previous line that contains the search text, wrapping around.
    fn find_next(&mut self, backwards: bool) {
        if self.needle.is_empty() {
            return;
        }
        let current = self.rows.get(self.top).map_or(0, |row| row.line);
        let count = self.tail.lines().len();
        let is_match = |at: &usize| !find_matches(&self.tail.lines()[*at], &self.needle).is_empty();
        // The line at the top is tried last, because the previous search found it.
        let found = if backwards {
            (1..=count).map(|by| (current + count - by) % count).find(is_match)
        } else {
            (1..=count).map(|by| (current + by) % count).find(is_match)
        };
        self.not_found = found.is_none();
        if let Some(line) = found {
            self.is_following = false;
            self.top = self.rows.partition_point(|row| row.line < line);
        }
    }
}

/// Returns the positions of `needle`; ignores case unless it contains a capital letter.
pub(crate) fn find_matches(text: &str, needle: &str) -> Vec<Range<usize>> {
    if needle.is_empty() {
        return Vec::new();
    }
    let text = if needle.chars().any(char::is_uppercase) { text.to_owned() } else { text.to_ascii_lowercase() };
    text.match_indices(needle).map(|(at, found)| at..at + found.len()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn open_sample(text: &str) -> LogViewer {
        let target = RunKey { repo: "r".into(), path: Path::new("/p").into(), run: None };
        let key = LogKey { target, iter: 3, wait: None, stream: LogStream::Agent };
        let (mut reader, request) = LogViewer::open(key.clone(), (10, RESERVED_ROWS + 4));
        let at = LogPosition { key, offset: 0 };
        assert_eq!(request, Some(Request::LogChunk(at.clone())));
        let piece = TextView { text: text.to_owned(), next_offset: text.len() as u64, complete: false, size: None };
        reader.append_chunk(&at, Ok(piece), TermCapabilities::fixed());
        reader
    }

    fn visible_lines(reader: &LogViewer) -> Vec<&str> {
        let (rows, ..) = reader.view();
        rows.iter().map(|row| &reader.tail().lines()[row.line][row.part.clone()]).collect()
    }

    fn press_keys(reader: &mut LogViewer, keys: &str) {
        for c in keys.chars() {
            reader.handle_key(if c == '\n' { Key::Enter } else { Key::Char(c) });
        }
    }

    const TEN: &str = "l0\nl1\nl2\nl3\nl4\nl5 Error\nl6\nl7\nl8\nl9\n";

    #[test]
    fn the_end_is_followed_until_somebody_scrolls_back() {
        let mut reader = open_sample(TEN);
        assert_eq!(visible_lines(&reader), ["l6", "l7", "l8", "l9"]);
        press_keys(&mut reader, "k");
        let at = LogPosition { key: reader.key().clone(), offset: TEN.len() as u64 };
        let more = TextView { text: "l10\n".into(), next_offset: 99, complete: false, size: None };
        reader.append_chunk(&at, Ok(more), TermCapabilities::fixed());
        assert_eq!(visible_lines(&reader)[0], "l5 Error");
        press_keys(&mut reader, "f");
        assert_eq!(visible_lines(&reader)[3], "l10");
    }

    #[test]
    fn a_search_goes_to_the_line_and_round_the_end() {
        let mut reader = open_sample(TEN);
        press_keys(&mut reader, "g/error\n");
        assert_eq!(visible_lines(&reader)[0], "l5 Error");
        press_keys(&mut reader, "n");
        assert_eq!(visible_lines(&reader)[0], "l5 Error", "it is the only one");
        press_keys(&mut reader, "/nowhere\n");
        assert!(reader.is_not_found());
        press_keys(&mut reader, "/l9\n");
        assert_eq!(visible_lines(&reader)[0], "l9");
        press_keys(&mut reader, "/l\nN");
        assert_eq!(visible_lines(&reader)[0], "l9", "forth and back");
    }

    #[test]
    fn a_new_width_lays_the_lines_out_again() {
        let mut reader = open_sample("0123456789abcdef\nshort\n");
        assert_eq!(visible_lines(&reader), ["0123456789", "abcdef", "short"]);
        reader.resize((20, RESERVED_ROWS + 4));
        assert_eq!(visible_lines(&reader), ["0123456789abcdef", "short"]);
    }

    #[test]
    fn a_line_that_grows_is_laid_out_again() {
        let mut reader = open_sample("one\ntwo");
        let at = LogPosition { key: reader.key().clone(), offset: 7 };
        let more = TextView { text: " and more\n".into(), next_offset: 17, complete: false, size: None };
        reader.append_chunk(&at, Ok(more), TermCapabilities::fixed());
        assert_eq!(visible_lines(&reader), ["one", "two and mo", "re"]);
    }

    #[test]
    fn another_file_is_read_from_its_beginning() {
        let mut reader = open_sample(TEN);
        let ViewerAction::Stay(Some(Request::LogChunk(LogPosition { key, offset: 0 }))) =
            reader.handle_key(Key::Char('4'))
        else {
            panic!("a request")
        };
        assert_eq!((key.stream, reader.view().2), (LogStream::Diff, 0));
        assert_eq!(reader.handle_key(Key::Char('q')), ViewerAction::Close);
    }
}
