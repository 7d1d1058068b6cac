//! Aligned columns that fit the terminal: the last column gives way, nothing wraps.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::paint::{DIM, PLAIN, paint};
use super::safe::safe;
use super::screen::Screen;

/// The last column is never cut below this, whatever the terminal's width.
const LAST_AT_LEAST: usize = 12;
const GAP: usize = 2;

/// One cell: text made safe, in a style.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Makes a cell in a style.
    pub(crate) fn styled(style: Style, text: &str) -> Self {
        Self { text: safe(text), style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(PLAIN, text.as_ref())
    }
}

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    head: Option<[&'static str; N]>,
    rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    /// Makes a table with a heading.
    pub(crate) fn headed(head: [&'static str; N]) -> Self {
        Self { head: Some(head), rows: Vec::new() }
    }

    /// Makes a table without a heading.
    pub(crate) fn bare() -> Self {
        Self { head: None, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: [Cell; N]) {
        self.rows.push(row);
    }

    /// Returns the lines, each behind `indent` spaces.
    pub(crate) fn render(mut self, screen: &Screen, indent: usize) -> String {
        if let Some(head) = self.head {
            self.rows.insert(0, head.map(|text| Cell::styled(DIM, text)));
        }
        let widths: [usize; N] =
            std::array::from_fn(|at| self.rows.iter().map(|row| row[at].text.width()).max().unwrap_or(0));
        let before_last: usize = indent + widths[..N - 1].iter().map(|width| width + GAP).sum::<usize>();
        let last = screen.width.map(|width| width.saturating_sub(before_last).max(LAST_AT_LEAST));
        self.rows.iter().map(|row| line(row, &widths, Frame { indent, last, screen })).collect()
    }
}

#[derive(Clone, Copy)]
struct Frame<'a> {
    indent: usize,
    last: Option<usize>,
    screen: &'a Screen,
}

fn line<const N: usize>(row: &[Cell; N], widths: &[usize; N], frame: Frame<'_>) -> String {
    let mut line = " ".repeat(frame.indent);
    let filled = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |at| at + 1);
    for (at, cell) in row[..filled].iter().enumerate() {
        let text = match frame.last {
            Some(last) if at == N - 1 => cut(&cell.text, last, frame.screen),
            _ => cell.text.clone(),
        };
        let pad = if at + 1 == filled { 0 } else { widths[at] - cell.text.width() + GAP };
        line += &paint(cell.style, &text);
        line += &" ".repeat(pad);
    }
    line + "\n"
}

/// Returns `text` in at most `width` columns, with a mark where it was cut.
pub(crate) fn cut(text: &str, width: usize, screen: &Screen) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mark = screen.pick("…", "...");
    let room = width.saturating_sub(mark.width());
    let mut used = 0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect();
    kept + mark
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn table(width: Option<usize>) -> String {
        let mut table = Table::headed(["PATH", "STATE", "WHY"]);
        table.row(["/a/größer".into(), Cell::styled(PLAIN, "held"), "a sentence that is long".into()]);
        table.row(["/b".into(), "running".into(), "".into()]);
        strip_str(&table.render(&Screen { width, ..Screen::fixed() }, 0)).to_string()
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        insta::assert_snapshot!(table(None), @r"
        PATH       STATE    WHY
        /a/größer  held     a sentence that is long
        /b         running
        ");
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        insta::assert_snapshot!(table(Some(36)), @r"
        PATH       STATE    WHY
        /a/größer  held     a sentence that…
        /b         running
        ");
    }

    #[test]
    fn a_wide_character_is_not_cut_in_half() {
        assert_eq!(cut("漢字漢字", 6, &Screen::fixed()), "漢字…");
    }
}
