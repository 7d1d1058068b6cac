//! Replaces task ids with titles in sentences for people; output for programs keeps the ids.
//!
//! The web page does the same (`web/src/model/titles.ts`). Quotation marks are ASCII here, for every terminal.

use std::fmt::Write as _;

use protocol::view::{RunView, StopReason};

/// Returns the title of a task, if a run contains it without its tree.
pub(crate) fn task_title<'r>(run: &'r RunView, id: &str) -> Option<&'r str> {
    let current = run.node.as_ref().filter(|node| node.id == id).map(|node| node.title.as_str());
    let recent = || run.recent.iter().find(|view| view.node == id)?.title.as_deref();
    current.or_else(recent)
}

/// Returns why a run has stopped.
pub(crate) fn titled_reason(run: &RunView) -> Option<StopReason> {
    let reason = run.summary.reason.clone()?;
    Some(StopReason { message: replace_ids(&reason.message, |id| task_title(run, id)), ..reason })
}

/// Returns why a run has stopped, for a narrow column: if the sentence begins with a task, the title comes last.
pub(crate) fn reason_before_title(run: &RunView) -> Option<String> {
    let message = &run.summary.reason.as_ref()?.message;
    let title = |id: &str| task_title(run, id);
    let (id, rest) = message.strip_prefix("task ").unwrap_or(message).split_once(' ').unwrap_or_default();
    Some(match title(id) {
        Some(task) => format!("{}: \"{}\"", replace_ids(rest, title), task.trim()),
        None => replace_ids(message, title),
    })
}

/// Replaces ids with titles: ids after the word "task", and ids that cannot be mistaken for other words.
pub(crate) fn replace_ids<'t>(sentence: &str, title: impl Fn(&str) -> Option<&'t str>) -> String {
    let mut text = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while !rest.is_empty() {
        let start = rest.find(is_id_char).unwrap_or(rest.len());
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|char| !is_id_char(char)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let id = word.trim_end_matches('.');
        // A path, or text to be typed.
        let is_quoted = text.ends_with(['/', '`']) || after.starts_with(['/', '`']);
        let before = text.strip_suffix("task ").map(str::len);
        match title(id).filter(|_| !is_quoted && (before.is_some() || looks_like_id(id))) {
            Some(title) => {
                text.truncate(before.unwrap_or(text.len()));
                let _ = write!(text, "\"{}\"{}", title.trim(), &word[id.len()..]);
            }
            None => text.push_str(word),
        }
    }
    text
}

fn is_id_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || "._-".contains(char)
}

/// Whether a word cannot be an ordinary word of a sentence.
fn looks_like_id(word: &str) -> bool {
    let is_numbered = |pair: &[u8]| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit();
    word.contains(['.', '_', '-']) || word.as_bytes().windows(2).any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::samples;

    fn with_sample_titles(sentence: &str) -> String {
        let titles = [("parser.lex", "Cut the text"), ("all", "Everything"), ("n2", " The second "), ("x", "<b>")];
        replace_ids(sentence, |id| titles.iter().find(|(known, _)| *known == id).map(|(_, title)| *title))
    }

    #[test]
    fn a_task_is_called_by_its_title() {
        assert_eq!(
            with_sample_titles("parser.lex has used all of its 3 attempts"),
            "\"Cut the text\" has used all of its 3 attempts"
        );
        assert_eq!(with_sample_titles("task all waits, then n2."), "\"Everything\" waits, then \"The second\".");
        assert_eq!(with_sample_titles("task x"), "\"<b>\"");
    }

    #[test]
    fn what_is_a_word_a_path_or_a_command_stays() {
        for sentence in [
            "all of it",
            "see src/parser.lex and parser.lex/x",
            "`parser.lex`",
            "parser.lexer",
            "unknown-id",
            "",
            "… ü",
        ] {
            assert_eq!(with_sample_titles(sentence), sentence);
        }
    }

    #[test]
    fn a_reason_is_told_with_what_the_run_knows() {
        let run = samples::stuck();
        let message = titled_reason(&run).expect("a reason").message;
        assert_eq!(message, "\"Cut the text into tokens\" has used all of its 3 attempts");
    }
}
