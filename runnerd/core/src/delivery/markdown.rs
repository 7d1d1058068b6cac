//! Renders foreign text as Markdown that shows it unchanged: nothing in it formats, links, mentions, closes an issue or
//! gives a command.
//!
//! Forges look for mentions and references in the rendered text: escaping does not prevent that, but a zero-width
//! character in the middle does.

use crate::landing::sanitize_message::ends_with_ticket;
use crate::text::fence::{clean, one_line};

/// A zero-width character, as a Markdown entity.
const ZERO_WIDTH: &str = "&#8203;";
/// Signs after which a forge looks for a name or a number.
const REFERENCE_SIGNS: &str = "@#!%~^$&";
/// Room for the mark of a cut, including its line, in bytes.
const MARK_ROOM: usize = 50;
/// Fewest bytes for which the beginning of a line is shown.
const WORTH_SHOWING: usize = 20;

/// Returns text as Markdown on one line of at most `limit` bytes.
pub(super) fn escape_line(text: &str, limit: usize) -> String {
    let mut room = limit;
    loop {
        let shown = escape_text(&one_line(text, room));
        if shown.len() <= limit {
            return shown;
        }
        room = room * 3 / 4;
    }
}

/// Returns text as code on one line, from at most `limit` bytes of it.
pub(super) fn escape_code(text: &str, limit: usize) -> String {
    let text = one_line(text, limit);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.is_empty() || text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Returns text as a quote of at most `limit` bytes, whose lines begin with `indent`; the mark of a cut says what is
/// missing.
pub(super) fn quote_text(text: &str, indent: &str, limit: usize) -> String {
    let text = text.trim_end();
    let head = &text[..text.floor_char_boundary(limit)];
    let unseen = text.len() - head.len();
    let text = clean(head);
    let lines: Vec<&str> = text.lines().skip_while(|line| line.trim().is_empty()).collect();
    let mut quoted = String::new();
    for (at, line) in lines.iter().map(|line| line.trim_end()).enumerate() {
        let is_followed = lines.get(at + 1).is_some_and(|next| !next.trim().is_empty());
        // A hard line break in every Markdown dialect.
        let end = if is_followed && !line.is_empty() { "\\\n" } else { "\n" };
        let room = limit.saturating_sub(quoted.len() + indent.len() + "> \\\n".len() + indent.len() + MARK_ROOM);
        let shown = escape_quoted_line(line);
        if shown.len() <= room {
            let space = if shown.is_empty() { "" } else { " " };
            quoted.extend([indent, ">", space, &shown, end]);
            continue;
        }
        let head = fitting_head(line, room);
        if !head.is_empty() {
            quoted.extend([indent, "> ", &escape_quoted_line(head), "\n"]);
        }
        let left = lines[at..].iter().map(|line| line.len() + 1).sum::<usize>() - 1 - head.len() + unseen;
        quoted.extend([indent, "> *(… ", &left.to_string(), " more bytes)*\n"]);
        return quoted;
    }
    quoted
}

/// Returns the beginning of a line that fits when escaped; empty if it is too short to be worth showing.
fn fitting_head(line: &str, room: usize) -> &str {
    let mut head = &line[..line.floor_char_boundary(room)];
    while escape_quoted_line(head).len() > room {
        head = &line[..line.floor_char_boundary(head.len() / 2)];
    }
    if head.len() < WORTH_SHOWING { "" } else { head }
}

/// Returns a line of a quote: characters that are only special at the beginning of a line are escaped too, and its
/// indentation is kept.
fn escape_quoted_line(line: &str) -> String {
    let text = line.trim_start();
    let indentation = line[..line.len() - text.len()].chars().map(|c| if c == '\t' { 4 } else { 1 }).sum::<usize>();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut shown = "&nbsp;".repeat(indentation.min(40));
    match text[digits..].chars().next() {
        Some(mark @ ('-' | '+' | '=' | '/' | ':')) if digits == 0 => {
            shown.extend(['\\', mark]);
            shown.push_str(&escape_text(&text[1..]));
        }
        Some('.' | ')') if digits > 0 => {
            let (number, rest) = text.split_at(digits);
            shown.extend([number, "\\"]);
            shown.push_str(&escape_text(rest));
        }
        _ => shown.push_str(&escape_text(text)),
    }
    shown
}

/// Escapes what Markdown, HTML or a forge would interpret in one line of text.
fn escape_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '&' => shown.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~' | '$' | '^' => {
                shown.extend(['\\', c]);
            }
            _ => shown.push(c),
        }
        let is_near = after.starts_with(|next: char| !next.is_whitespace());
        if (REFERENCE_SIGNS.contains(c) && is_near) || begins_link(c, after, &shown) || begins_issue(rest, &shown) {
            shown.push_str(ZERO_WIDTH);
        }
        rest = after;
    }
    shown
}

/// Whether a URL would begin here: `https:` before `//`, `www` before its dot.
fn begins_link(c: char, after: &str, shown: &str) -> bool {
    let is_host = || after.starts_with('.') && shown.to_ascii_lowercase().ends_with("www");
    (c == ':' && after.starts_with("//")) || (c.eq_ignore_ascii_case(&'w') && is_host())
}

/// Whether this is the dash of `GH-12`, another way to write `#12`, or of a ticket's name after a word that closes it.
fn begins_issue(rest: &str, shown: &str) -> bool {
    let is_number = rest.strip_prefix('-').is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()));
    is_number && ends_with_ticket(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_forge_would_obey_is_text() {
        let table = [
            ("@alice please", "@&#8203;alice please"),
            ("Fixes #12, GH-7, o/r#3 and !4", "Fixes \\#&#8203;12, GH-&#8203;7, o/r\\#&#8203;3 and \\!&#8203;4"),
            ("Closes STORE-12, see STORE-13", "Closes STORE-&#8203;12, see STORE-13"),
            ("<img src=x> & <!-- a -->", "\\<img src=x\\> &amp; \\<\\!&#8203;-- a --\\>"),
            ("[a](https://x.org) www.x.org", "\\[a\\](https:&#8203;//x.org) www&#8203;.x.org"),
            ("a@b.org costs 5 $", "a@&#8203;b.org costs 5 \\$"),
            ("**b** `c` _d_", "\\*\\*b\\*\\* \\`c\\` \\_d\\_"),
            ("a\u{202e}b\u{1b}[2J\nc", "a\\<U+202E\\>b c"),
        ];
        for (given, expected) in table {
            assert_eq!(escape_line(given, 500), expected, "{given:?}");
        }
    }

    #[test]
    fn a_quote_keeps_lines_and_indentation_and_begins_no_block() {
        let text = "# Goal\n\n- one\n    code\n2. two\n/close\n===\n```sh\nrm\n```";
        insta::assert_snapshot!(quote_text(text, "", 1000), @r"
        > \# Goal
        >
        > \- one\
        > &nbsp;&nbsp;&nbsp;&nbsp;code\
        > 2\. two\
        > \/close\
        > \===\
        > \`\`\`sh\
        > rm\
        > \`\`\`
        ");
    }

    #[test]
    fn a_quote_that_is_cut_says_so() {
        let quoted = quote_text(&"line of text\n".repeat(100), "  ", 200);
        assert!(quoted.len() <= 200 && quoted.ends_with(" more bytes)*\n"), "{quoted}");
        let quoted = quote_text(&"long ".repeat(100), "", 200);
        assert!(
            quoted.len() <= 200 && quoted.starts_with("> long long") && quoted.ends_with("\n> *(… 353 more bytes)*\n"),
            "{quoted}"
        );
        assert_eq!(quote_text(" \n\n", "", 100), "");
    }

    #[test]
    fn code_may_hold_the_signs_of_code() {
        assert_eq!(escape_code("a `` b", 100), "```a `` b```");
        assert_eq!(escape_code("`a`", 100), "`` `a` ``");
        assert_eq!(escape_code("", 100), "`  `");
    }

    proptest! {
        #[test]
        fn every_line_of_a_quote_is_one_and_within_its_limit(text in any::<String>(), limit in 100usize..2000) {
            let quoted = quote_text(&text, "", limit);
            prop_assert!(quoted.len() <= limit, "{}", quoted.len());
            prop_assert!(quoted.lines().all(|line| line.starts_with('>')), "{quoted}");
        }

        #[test]
        fn no_sign_stands_before_a_name(text in "[@#!~ &$a1\\\\<w.:/GH-]{0,30}") {
            let shown = escape_line(&text, 500);
            let plain = shown.replace("&#8203;", "\u{0}").replace("&amp;", "&");
            // A backslash that is shown, as opposed to one that escapes.
            let plain = plain.replace("\\\\", "\u{1}").replace('\\', "");
            for sign in ['@', '#', '~'] {
                prop_assert!(!plain.contains(&format!("{sign}a")) && !plain.contains(&format!("{sign}1")), "{shown}");
            }
            prop_assert!(!plain.contains("://") && !plain.contains("www."), "{shown}");
        }
    }
}
