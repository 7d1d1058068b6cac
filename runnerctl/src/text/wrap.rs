//! Wraps long text to the terminal's width, at its spaces.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr as _;

use super::paint::{HINT, paint};

/// Wraps a text at its spaces into lines of at most `width` columns, with a margin before all but the first.
///
/// A word stays whole even if it is longer than a line, so that a path can still be copied.
pub(crate) fn wrap_text(text: &str, width: usize, margin: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("BUG: no line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join(&format!("\n{}", " ".repeat(margin)))
}

/// Wraps a text into lines of less than `width` columns, indented by `indent` spaces, and by two more after the first
/// line.
pub(crate) fn wrap_indented(indent: usize, width: usize, text: &str) -> String {
    let margin = indent + 2;
    format!("{}{}\n", " ".repeat(indent), wrap_text(text, width.saturating_sub(margin + 1), margin))
}

/// Wraps what to do: each command stays whole, on a line of its own, so that it can be copied. What fits on one line
/// stays there.
pub(crate) fn wrap_commands(text: &str, width: usize, margin: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let wrap_part = |part: String| if is_command(&part) { part } else { wrap_text(&part, width, margin) };
    split_commands(text).into_iter().map(wrap_part).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(margin)))
}

/// Wraps the lines that are wider than the screen, if it has a width. Their commands stay whole, and their words keep
/// their styles; the other lines stay as they are.
pub(crate) fn fit_lines(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width else { return Cow::Borrowed(text) };
    let plain = |line: &str| strip_str(line).to_string();
    if text.lines().all(|line| plain(line).width() <= width) {
        return Cow::Borrowed(text);
    }
    let fit = |line: &str| {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        let words = plain(line.trim_end_matches('\n'));
        if words.width() <= width { line.to_owned() } else { fit_line(line, &words, width) + end }
    };
    Cow::Owned(text.split_inclusive('\n').map(fit).collect())
}

/// Wraps a line; `line` is what it says without its styles.
fn fit_line(painted: &str, line: &str, width: usize) -> String {
    let words = line.trim_start_matches(' ');
    let margin = line.len() - words.len() + 2;
    let wrapped = wrap_commands(words, width.saturating_sub(margin).max(1), 0);
    let styles = list_styles(painted);
    let mut styles = styles.iter().map(|(char, style)| (*char, style.as_str()));
    let mut lines = wrapped.lines().map(|line| {
        let fitted = paint_again(line, &mut styles);
        if fitted == line && is_command(line) { paint(HINT, line) } else { fitted }
    });
    let first = lines.next().unwrap_or_default();
    let rest = lines.flat_map(|line| ["\n".to_owned(), " ".repeat(margin), line]).collect::<String>();
    " ".repeat(margin - 2) + &first + &rest
}

/// Returns the characters of a text, except spaces, each with the escape sequences in force there.
fn list_styles(painted: &str) -> Vec<(char, String)> {
    let mut styles = Vec::new();
    let mut style = String::new();
    let mut rest = painted;
    while let Some(char) = rest.chars().next() {
        let sequence = rest.strip_prefix("\x1b[").and_then(|sequence| sequence.split_once('m'));
        if let Some((codes, after)) = sequence {
            if codes == "0" {
                style.clear();
            } else {
                let _ = write!(style, "\x1b[{codes}m");
            }
            rest = after;
            continue;
        }
        if char != ' ' {
            styles.push((char, style.clone()));
        }
        rest = &rest[char.len_utf8()..];
    }
    styles
}

/// Gives a line of a wrapped text its styles again, which end with it; wrapping leaves out characters, and adds none but
/// spaces.
fn paint_again<'a>(line: &str, styles: &mut impl Iterator<Item = (char, &'a str)>) -> String {
    let mut text = String::new();
    let mut open = "";
    for char in line.chars() {
        let style = if char == ' ' { None } else { styles.find(|(next, _)| *next == char) };
        if let Some((_, style)) = style.filter(|(_, style)| *style != open) {
            text += if open.is_empty() { "" } else { "\x1b[0m" };
            text += style;
            open = style;
        }
        text.push(char);
    }
    text + if open.is_empty() { "" } else { "\x1b[0m" }
}

/// Splits what to do into commands and the words between them, at the punctuation outside quotes.
fn split_commands(text: &str) -> Vec<String> {
    let mut is_quoted = false;
    let ends = text.char_indices().filter(|(at, char)| {
        is_quoted ^= *char == '\'';
        !is_quoted && matches!(char, ',' | ';' | ':') && text[at + 1..].starts_with(' ')
    });
    let mut parts: Vec<String> = Vec::new();
    let mut start = 0;
    for end in ends.map(|(at, _)| at + 1).chain([text.len()]).collect::<Vec<_>>() {
        let part = text[start..end].trim_start();
        start = end;
        match parts.last_mut() {
            Some(words) if !is_command(words) && !is_command(part) => *words = format!("{words} {part}"),
            _ if is_command(part) => parts.push(part.trim_end_matches([',', ';']).to_owned()),
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Whether a text is a command, by its first word.
pub(crate) fn is_command(text: &str) -> bool {
    const PROGRAMS: [&str; 14] = [
        "chmod",
        "codex",
        "df",
        "export",
        "git",
        "kill",
        "loginctl",
        "mv",
        "npm",
        "rm",
        "runnerctl",
        "sudo",
        "systemd-run",
        "timedatectl",
    ];
    text.split_once(' ').is_some_and(|(word, _)| PROGRAMS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::paint::WARN;

    #[test]
    fn a_command_is_on_a_line_of_its_own_and_whole() {
        let text = "install just; or: runnerctl init && runnerctl config set guard.command 'a, b' x; or kill 3, and then: rm y";
        assert_eq!(
            wrap_commands(text, 20, 2),
            "install just; or:\n  runnerctl init && runnerctl config set guard.command 'a, b' x\n  or kill 3, and then:\n  rm y"
        );
        assert_eq!(wrap_commands("git --version, to see why", 80, 2), "git --version, to see why");
    }

    #[test]
    fn lines_that_are_too_wide_are_wrapped_and_the_others_stay() {
        let styled = paint(HINT, "runnerctl resume");
        let text = format!("{styled}\n  a sentence of some words: {styled}\nshort");
        assert_eq!(fit_lines(&text, None), text);
        assert_eq!(fit_lines(&text, Some(80)), text);
        let fitted = format!("{styled}\n  a sentence of\n    some words:\n    {styled}\nshort");
        assert_eq!(fit_lines(&text, Some(20)), fitted);
        let warn = |words: &str| paint(WARN, words);
        let warned = format!("a {}", warn("warning of some words"));
        let fitted = format!("a {}\n  {}\n  {}", warn("warning"), warn("of some"), warn("words"));
        assert_eq!(fit_lines(&warned, Some(12)), fitted, "each line has the style of its words");
    }

    #[test]
    fn a_text_is_broken_at_its_spaces_and_nowhere_else() {
        assert_eq!(wrap_text("one two three", 7, 2), "one two\n  three");
        assert_eq!(wrap_text("a /long/path/that/is/copied b", 6, 1), "a\n /long/path/that/is/copied\n b");
        assert_eq!(wrap_text("two  spaces", 40, 0), "two  spaces", "what fits is as it was");
    }
}
