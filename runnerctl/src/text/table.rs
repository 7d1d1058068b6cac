//! Aligned columns that fit the terminal: the last column is cut, and nothing wraps. In plain output, one fact per
//! line.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::paint::{DIM, PLAIN, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::wrap::wrap_text;

/// Minimum width of the last column, whatever the terminal's width.
const MIN_LAST_WIDTH: usize = 12;
/// The shrinking column keeps its width only if the last column has this much space.
const PREFERRED_LAST_WIDTH: usize = 28;
/// Minimum width of the shrinking column.
const MIN_SHRUNK_WIDTH: usize = 12;
const GAP: usize = 2;

/// One cell: sanitized text, in a style.
#[derive(Debug, Clone)]
pub(crate) struct TableCell {
    text: String,
    style: Style,
}

impl TableCell {
    /// Creates a cell in a style.
    pub(crate) fn styled(style: Style, text: &str) -> Self {
        Self { text: sanitize(text), style }
    }
}

impl<T: AsRef<str>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::styled(PLAIN, text.as_ref())
    }
}

/// Rows with named columns; the names are shown as a heading, or only in plain output.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    names: Option<[&'static str; N]>,
    has_head: bool,
    shrinking: Option<usize>,
    rows: Vec<[TableCell; N]>,
}

impl<const N: usize> Table<N> {
    /// Creates a table with a heading.
    pub(crate) fn with_heading(names: [&'static str; N]) -> Self {
        Self { names: Some(names), has_head: true, shrinking: None, rows: Vec::new() }
    }

    /// Creates a table whose columns need no heading.
    pub(crate) fn with_names(names: [&'static str; N]) -> Self {
        Self { has_head: false, ..Self::with_heading(names) }
    }

    /// Creates a table whose first column names the values in the others.
    pub(crate) fn without_names() -> Self {
        Self { names: None, has_head: false, shrinking: None, rows: Vec::new() }
    }

    /// Lets a column of paths or ids shrink, from its start, before the last one becomes too short to read.
    #[must_use]
    pub(crate) fn shrinking(self, column: usize) -> Self {
        Self { shrinking: Some(column), ..self }
    }

    /// Adds a row.
    pub(crate) fn add_row(&mut self, row: [TableCell; N]) {
        self.rows.push(row);
    }

    /// Returns the lines, each indented by `indent` spaces.
    pub(crate) fn render(mut self, screen: &Screen, indent: usize) -> String {
        if screen.is_plain {
            return self.render_plain();
        }
        if let Some(names) = self.names.filter(|_| self.has_head) {
            self.rows.insert(0, names.map(|text| TableCell::styled(DIM, text)));
        }
        let widths = self.column_widths(screen.width.map(|width| width.saturating_sub(indent)));
        let lines = self.rows.iter().map(|row| self.render_line(row, &widths, screen, indent));
        lines.flat_map(|line| [" ".repeat(indent), line, "\n".into()]).collect()
    }

    /// Returns the width of each column for this total width.
    fn column_widths(&self, available: Option<usize>) -> [usize; N] {
        let mut widths: [usize; N] =
            std::array::from_fn(|at| self.rows.iter().map(|row| row[at].text.width()).max().unwrap_or(0));
        let Some(available) = available else { return widths };
        if let Some(at) = self.shrinking.filter(|at| *at + 1 < N) {
            let preferred = width_before(&widths, N - 1) + widths[N - 1].min(PREFERRED_LAST_WIDTH);
            widths[at] =
                widths[at].saturating_sub(preferred.saturating_sub(available)).max(widths[at].min(MIN_SHRUNK_WIDTH));
        }
        self.shrink_widest(&mut widths, available);
        widths[N - 1] = widths[N - 1].min(available.saturating_sub(width_before(&widths, N - 1)).max(MIN_LAST_WIDTH));
        widths
    }

    /// Narrows the widest columns until the last one has its minimum, so that no row wraps. Facts keep their names. The
    /// first column has what a person types next, and is narrowed last.
    fn shrink_widest(&self, widths: &mut [usize; N], available: usize) {
        while self.names.is_some() && width_before(widths, N - 1) + widths[N - 1].min(MIN_LAST_WIDTH) > available {
            let can_shrink = |width: &&mut usize| **width > MIN_SHRUNK_WIDTH;
            let (first, others) = widths[..N - 1].split_at_mut(1);
            let others = others.iter_mut().filter(can_shrink).max();
            match others.or_else(|| first.iter_mut().find(can_shrink)) {
                Some(widest) => *widest -= 1,
                None => return,
            }
        }
    }

    fn render_line(&self, row: &[TableCell; N], widths: &[usize; N], screen: &Screen, indent: usize) -> String {
        let mut line = String::new();
        let filled = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |at| at + 1);
        for (at, cell) in row[..filled].iter().enumerate() {
            let text = match (self.names, self.shrinking) {
                // If there is only one row, everything is shown.
                (None, _) if at == N - 1 => wrap_text(&cell.text, widths[at], indent + width_before(widths, at)),
                (_, shrinking) if shrinking == Some(at) => truncate_start(&cell.text, widths[at], screen),
                _ => truncate(&cell.text, widths[at], screen),
            };
            let pad = if at + 1 == filled { 0 } else { widths[at].saturating_sub(text.width()) + GAP };
            line += &paint(cell.style, &text);
            line += &" ".repeat(pad);
        }
        line
    }

    /// Returns one fact per line, in words, with an empty line between rows if there are several.
    fn render_plain(&self) -> String {
        let Some(names) = self.names else {
            return self.rows.iter().map(|row| render_fact(row)).collect();
        };
        let row = |row: &[TableCell; N]| -> String {
            let facts = names.iter().zip(row).filter(|(_, cell)| !cell.text.is_empty());
            facts.flat_map(|(name, cell)| [name.to_lowercase(), ": ".into(), cell.text.clone(), "\n".into()]).collect()
        };
        self.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the terminal column at which a column of the table starts.
fn width_before(widths: &[usize], at: usize) -> usize {
    widths[..at].iter().map(|width| width + GAP).sum()
}

/// Returns a row as `name: value`, with further values after commas.
fn render_fact(row: &[TableCell]) -> String {
    let (name, values) = row.split_first().expect("BUG: a table without columns");
    let values: Vec<&str> = values.iter().map(|cell| cell.text.as_str()).filter(|text| !text.is_empty()).collect();
    let name = if name.text.is_empty() || values.is_empty() { name.text.clone() } else { format!("{}: ", name.text) };
    format!("{name}{}\n", values.join(", "))
}

/// Returns `text` in at most `width` columns, with a mark if it was cut.
pub(crate) fn truncate(text: &str, width: usize, screen: &Screen) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let ellipsis = screen.pick_symbol("…", "...");
    take_width(text.chars(), width.saturating_sub(ellipsis.width())).collect::<String>() + ellipsis
}

/// Returns the end of `text` in at most `width` columns, with a mark if it was cut.
fn truncate_start(text: &str, width: usize, screen: &Screen) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let ellipsis = screen.pick_symbol("…", "...");
    let end: Vec<char> = take_width(text.chars().rev(), width.saturating_sub(ellipsis.width())).collect();
    ellipsis.chars().chain(end.into_iter().rev()).collect()
}

/// Returns as many characters as fit.
fn take_width(chars: impl Iterator<Item = char>, available: usize) -> impl Iterator<Item = char> {
    chars
        .scan(0, move |used, c| {
            *used += c.width().unwrap_or(0);
            Some((*used <= available).then_some(c))
        })
        .map_while(|c| c)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn sample_table(width: Option<usize>) -> String {
        let mut table = Table::with_heading(["PATH", "STATE", "WHY"]);
        table.add_row(["/a/größer".into(), TableCell::styled(PLAIN, "held"), "a sentence that is long".into()]);
        table.add_row(["/b".into(), "running".into(), "".into()]);
        strip_str(&table.render(&Screen { width, ..Screen::fixed() }, 0)).to_string()
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        insta::assert_snapshot!(sample_table(None), @r"
        PATH       STATE    WHY
        /a/größer  held     a sentence that is long
        /b         running
        ");
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        insta::assert_snapshot!(sample_table(Some(36)), @r"
        PATH       STATE    WHY
        /a/größer  held     a sentence that…
        /b         running
        ");
    }

    #[test]
    fn a_wide_character_is_not_cut_in_half() {
        assert_eq!(truncate("漢字漢字", 6, &Screen::fixed()), "漢字…");
        assert_eq!(truncate_start("漢字漢字", 6, &Screen::fixed()), "…漢字");
    }

    #[test]
    fn a_column_that_yields_keeps_its_end_and_leaves_room_for_the_last() {
        let mut table = Table::with_heading(["PATH", "STATE", "WHY"]).shrinking(0);
        table.add_row(["/home/me/all/my/projects/漢字".into(), "held".into(), "a sentence that is long".into()]);
        table.add_row(["/b".into(), "running".into(), "".into()]);
        insta::assert_snapshot!(strip_str(&table.render(&Screen { width: Some(50), ..Screen::fixed() }, 0)), @r"
        PATH              STATE    WHY
        …y/projects/漢字  held     a sentence that is long
        /b                running
        ");
    }

    #[test]
    fn no_row_is_wider_than_the_terminal_if_several_columns_are_long() {
        let mut table = Table::with_heading(["RUN", "PATH", "WHY", "GOAL"]).shrinking(1);
        let long = "a-long-word-of-forty-columns-or-even-more";
        table.add_row([long.into(), long.into(), long.into(), long.into()]);
        let text = strip_str(&table.render(&Screen { width: Some(80), ..Screen::fixed() }, 0)).to_string();
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.contains("…r-even-more") && text.contains("a-long-word-of-forty-columns-or-even-…"), "{text}");
    }

    #[test]
    fn a_plain_reading_has_a_fact_on_each_line() {
        let plain = Screen { is_plain: true, ..Screen::fixed() };
        let mut table = Table::with_heading(["PATH", "STATE", "WHY"]);
        table.add_row(["/a".into(), TableCell::styled(DIM, "held"), "broken".into()]);
        table.add_row(["/b".into(), "running".into(), "".into()]);
        insta::assert_snapshot!(table.render(&plain, 2), @r"
        path: /a
        state: held
        why: broken

        path: /b
        state: running
        ");
        let mut facts = Table::without_names();
        facts.add_row([TableCell::styled(DIM, "node"), "root/a".into()]);
        assert_eq!(facts.render(&plain, 2), "node: root/a\n");
    }
}
