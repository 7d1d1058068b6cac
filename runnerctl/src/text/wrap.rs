//! Wraps long text to the terminal's width, at its spaces.

use unicode_width::UnicodeWidthStr as _;

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
    fn a_text_is_broken_at_its_spaces_and_nowhere_else() {
        assert_eq!(wrap_text("one two three", 7, 2), "one two\n  three");
        assert_eq!(wrap_text("a /long/path/that/is/copied b", 6, 1), "a\n /long/path/that/is/copied\n b");
        assert_eq!(wrap_text("two  spaces", 40, 0), "two  spaces", "what fits is as it was");
    }
}
