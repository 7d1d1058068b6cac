//! A text that is shown in one place of the terminal and painted over when it changes: not a full screen.
//!
//! Nothing is taken from the terminal that would have to be given back, so that it may be left at any moment.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use console::truncate_str;
use crossterm::cursor::{MoveTo, MoveToColumn, MoveUp};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, size};

use crate::failure::Failure;
use crate::ui::Ui;

/// The place of a text.
#[derive(Debug)]
pub(crate) struct Repaint<'a> {
    ui: &'a Ui,
    has_color: bool,
    /// Rows of it that were painted.
    rows: u16,
}

impl<'a> Repaint<'a> {
    /// Begins below the cursor; none where the terminal, or who reads it, wants a line after the other.
    pub(crate) fn begin(ui: &'a Ui) -> Option<Self> {
        let can_move = io::stdout().is_terminal() && !ui.screen().is_plain && !ui.json;
        let has_color = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        can_move.then_some(Self { ui, has_color, rows: 0 })
    }

    /// Paints a text over the one before it.
    pub(crate) fn paint(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.ui.shown(text);
        let text = if self.has_color { text.into_owned() } else { strip_str(&text).to_string() };
        self.frame(&text).map_err(|error| Failure::io("drawing on the terminal", &error))
    }

    /// Begins anew at the top: the terminal has another size, and what was painted is not where it was.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.rows = 0;
        let mut frame = Vec::new();
        let cleared = queue!(frame, Clear(ClearType::All), MoveTo(0, 0)).and_then(|()| write(&frame));
        cleared.map_err(|error| Failure::io("drawing on the terminal", &error))
    }

    fn frame(&mut self, text: &str) -> io::Result<()> {
        let lines = fitted(text, size()?, self.ui.screen().pick("…", "..."));
        let mut frame = Vec::new();
        queue!(frame, BeginSynchronizedUpdate, MoveToColumn(0))?;
        if self.rows > 0 {
            queue!(frame, MoveUp(self.rows))?;
        }
        for line in &lines {
            frame.extend_from_slice(line.as_bytes());
            queue!(frame, Clear(ClearType::UntilNewLine))?;
            frame.extend_from_slice(b"\r\n");
        }
        queue!(frame, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        self.rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        write(&frame)
    }
}

fn write(frame: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(frame)?;
    out.flush()
}

/// Returns the lines that a terminal of this size shows without scrolling; the last one says how many are left out.
fn fitted(text: &str, (columns, rows): (u16, u16), mark: &str) -> Vec<String> {
    let room = usize::from(rows.saturating_sub(1)).max(1);
    let mut lines: Vec<String> =
        text.lines().map(|line| truncate_str(line, columns.into(), mark).into_owned()).collect();
    if lines.len() > room {
        let left_out = lines.len() + 1 - room;
        lines.truncate(room - 1);
        lines.push(truncate_str(&format!("and {left_out} more lines"), columns.into(), mark).into_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::paint::{BAD, paint};

    #[test]
    fn what_does_not_fit_is_cut_and_counted() {
        assert_eq!(fitted("one\ntwo\nthree\n", (80, 4), "…"), ["one", "two", "three"]);
        assert_eq!(fitted("one\ntwo\nthree\nfour\n", (80, 4), "…"), ["one", "two", "and 2 more lines"]);
        assert_eq!(fitted("漢字漢字\n", (6, 4), "…"), ["漢字…"]);
    }

    #[test]
    fn a_style_ends_where_its_text_is_cut() {
        let [line] = &fitted(&paint(BAD, "no attempts left"), (10, 4), "…")[..] else { panic!("one line") };
        assert!(line.ends_with(&format!("{BAD:#}")) && strip_str(line).to_string() == "no attemp…", "{line:?}");
    }
}
