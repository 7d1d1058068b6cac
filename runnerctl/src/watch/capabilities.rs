//! Rendering for this terminal: available characters, colours if wanted, and sanitized text.
//!
//! Every text that was not written in this program goes through [`TermCapabilities::safe_text`] or
//! [`TermCapabilities::safe_line`] before it is drawn.

use protocol::words::RunStatus;
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::{border, line};
use ratatui::text::Span;

use crate::text::paint::state_style;
use crate::text::sanitize::{sanitize, sanitize_lines};
use crate::text::screen::Screen;

/// Width of a tab.
const TAB: &str = "    ";

/// What the terminal can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermCapabilities {
    /// Whether colours are wanted.
    pub(crate) color: bool,
    /// The character set, and the reader's clock.
    pub(crate) screen: Screen,
}

const ASCII_BORDER: border::Set<'_> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

impl TermCapabilities {
    /// Returns the character if it can be shown, otherwise its replacement.
    pub(crate) fn pick_symbol(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        self.screen.pick_symbol(unicode, ascii)
    }

    /// Returns text as one line without terminal sequences.
    pub(crate) fn safe_text(self, text: &str) -> String {
        self.to_displayable(&sanitize(text))
    }

    /// Does the same for a line of a log; tabs become spaces.
    pub(crate) fn safe_line(self, line: &str) -> String {
        self.to_displayable(&sanitize_lines(line).replace('\n', " ").replace('\t', TAB))
    }

    fn to_displayable(self, safe: &str) -> String {
        if self.screen.unicode { safe.to_owned() } else { safe.chars().map(ascii_fallback).collect() }
    }

    /// Returns a text in one of the client's styles.
    pub(crate) fn styled_span(self, style: anstyle::Style, text: &str) -> Span<'static> {
        Span::styled(self.safe_text(text), self.to_style(style))
    }

    /// Converts one of the client's styles for the screen.
    pub(crate) fn to_style(self, style: anstyle::Style) -> Style {
        let effects = style.get_effects();
        let mut converted = Style::new();
        if effects.contains(anstyle::Effects::BOLD) {
            converted = converted.add_modifier(Modifier::BOLD);
        }
        if effects.contains(anstyle::Effects::DIMMED) {
            converted = converted.add_modifier(Modifier::DIM);
        }
        match style.get_fg_color() {
            Some(anstyle::Color::Ansi(color)) if self.color => converted.fg(to_color(color)),
            _ => converted,
        }
    }

    /// Returns a state of a run as icon and word.
    pub(crate) fn state_span(self, state: RunStatus) -> Span<'static> {
        let (icon, ascii) = state_icon(state);
        Span::styled(format!("{} {state}", self.pick_symbol(icon, ascii)), self.to_style(state_style(state)))
    }

    /// Returns the border of a pane; the focused one has a thicker border.
    pub(crate) fn border_set(self, has_keys: bool) -> border::Set<'static> {
        match (self.screen.unicode, has_keys) {
            (true, true) => border::THICK,
            (true, false) => border::PLAIN,
            (false, true) => border::Set { horizontal_top: "=", horizontal_bottom: "=", ..ASCII_BORDER },
            (false, false) => ASCII_BORDER,
        }
    }

    /// Returns a partly filled bar of `width` columns.
    pub(crate) fn split_bar(self, width: usize, part: u64, whole: u64) -> (String, String) {
        let whole = whole.max(1);
        let filled = usize::try_from(part.min(whole) * width as u64 / whole).unwrap_or(width);
        let full = self.pick_symbol("█", "#");
        let empty = self.pick_symbol(line::HORIZONTAL, "-");
        (full.repeat(filled), empty.repeat(width - filled))
    }
}

/// Replacements for characters that a terminal without Unicode cannot show.
fn ascii_fallback(c: char) -> char {
    match c {
        c if c.is_ascii() => c,
        '…' => '.',
        '─' | '–' | '—' => '-',
        '│' => '|',
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        _ => '?',
    }
}

fn state_icon(state: RunStatus) -> (&'static str, &'static str) {
    match state {
        RunStatus::Running => ("●", ">"),
        RunStatus::Queued => ("○", "."),
        RunStatus::Paused => ("‖", "="),
        RunStatus::Waiting => ("◔", "~"),
        RunStatus::Held => ("▲", "!"),
        RunStatus::Completed => ("✔", "+"),
        RunStatus::Stuck | RunStatus::Failed => ("✖", "x"),
        RunStatus::Limit | RunStatus::TimedOut => ("■", "#"),
        RunStatus::Cancelled => ("–", "-"),
    }
}

fn to_color(color: anstyle::AnsiColor) -> Color {
    match color {
        anstyle::AnsiColor::Green => Color::Green,
        anstyle::AnsiColor::Red => Color::Red,
        anstyle::AnsiColor::Yellow => Color::Yellow,
        anstyle::AnsiColor::Cyan => Color::Cyan,
        _ => Color::Reset,
    }
}

#[cfg(test)]
impl TermCapabilities {
    /// A terminal with all capabilities, at a fixed time.
    pub(crate) fn fixed() -> Self {
        Self { color: true, screen: Screen::fixed() }
    }

    /// A terminal in the C locale without colours.
    pub(crate) fn plain() -> Self {
        Self { color: false, screen: Screen { unicode: false, ..Screen::fixed() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::paint::BAD;

    #[test]
    fn nothing_beyond_ascii_is_drawn_where_it_cannot_be() {
        assert_eq!(TermCapabilities::plain().safe_line("größer\u{1b}[2J\t✔"), "gr??er?[2J    ?");
        for state in RunStatus::ALL {
            assert!(TermCapabilities::plain().state_span(*state).content.is_ascii(), "{state}");
        }
    }

    #[test]
    fn every_state_has_an_icon_and_its_word() {
        for state in RunStatus::ALL {
            assert!(TermCapabilities::fixed().state_span(*state).content.ends_with(&format!(" {state}")));
        }
    }

    #[test]
    fn without_colours_a_style_keeps_its_weight() {
        assert_eq!(TermCapabilities::plain().to_style(BAD), Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(TermCapabilities::fixed().to_style(BAD).fg, Some(Color::Red));
    }

    #[test]
    fn a_bar_never_overflows() {
        let (full, empty) = TermCapabilities::plain().split_bar(10, 700, 100);
        assert_eq!((full.len(), empty.len()), (10, 0));
        assert_eq!(TermCapabilities::plain().split_bar(10, 1, 0).0.len(), 10, "nothing of nothing is all");
    }
}
