//! `notes.md`: what a person tells future sessions. Each note is a list item that begins with its id in brackets; lines
//! that belong to it are indented.
//!
//! Text only. Which notes a session has answered is recorded in the run state.

use std::fmt::Write as _;

use crate::text::fence::clean;

/// Longest note, in bytes.
pub const MAX_NOTE_BYTES: usize = 8 * 1024;
/// Beginning of the file.
const HEADING: &str = "# Notes\n";

/// A person's note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonNote {
    /// Id of the note.
    pub id: String,
    /// What the person wrote.
    pub text: String,
}

/// Returns the notes of the file, oldest first. Other text belongs to no note.
pub fn parse_notes(text: &str) -> Vec<PersonNote> {
    let mut notes: Vec<PersonNote> = Vec::new();
    let mut is_within = false;
    for line in text.lines() {
        if let Some((id, rest)) = parse_heading(line) {
            notes.push(PersonNote { id: id.to_owned(), text: rest.to_owned() });
            is_within = true;
        } else if let (true, Some(last)) = (is_within && (line.starts_with("  ") || line.is_empty()), notes.last_mut())
        {
            last.text.push('\n');
            last.text.push_str(line.strip_prefix("  ").unwrap_or(line));
        } else {
            is_within = false;
        }
    }
    for note in &mut notes {
        note.text.truncate(note.text.trim_end().len());
    }
    notes
}

/// Returns the notes that no session has answered yet, oldest first.
pub fn unused_notes(text: &str, used: &[String]) -> Vec<PersonNote> {
    parse_notes(text).into_iter().filter(|note| !used.contains(&note.id)).collect()
}

/// Returns the id of the next note: one more than the highest that the file has.
pub fn next_id(text: &str) -> String {
    let numbers = parse_notes(text).into_iter().filter_map(|note| note.id.strip_prefix('n')?.parse::<u64>().ok());
    format!("n{}", numbers.max().unwrap_or(0).saturating_add(1))
}

/// Returns the file with one more note at the end.
pub fn append_note(text: &str, note: &PersonNote) -> String {
    let before = if text.trim().is_empty() { HEADING } else { text.trim_end() };
    let body = clean(&note.text);
    let mut lines = body.trim().lines();
    let mut after = format!("{}\n\n- [{}] {}\n", before.trim_end(), note.id, lines.next().unwrap_or_default());
    for line in lines {
        let indent = if line.trim().is_empty() { "" } else { "  " };
        let _ = writeln!(after, "{indent}{}", line.trim_end());
    }
    after
}

/// Splits the first line of a note into id and text.
fn parse_heading(line: &str) -> Option<(&str, &str)> {
    let (id, rest) = line.strip_prefix("- [")?.split_once(']')?;
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_id.then_some((id, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(id: &str, text: &str) -> PersonNote {
        PersonNote { id: id.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_note_comes_back_as_it_was_given_whatever_it_looks_like() {
        let first = note("n1", "Use sqlx, not diesel.");
        let second = note("n2", "Mind this:\n\n- [n1] is old\n# Heading\n    indented");
        let text = append_note(&append_note("", &first), &second);
        assert_eq!(parse_notes(&text), [first, second]);
        assert_eq!(next_id(&text), "n3");
    }

    #[test]
    fn the_file_of_a_fresh_run_has_no_note() {
        assert_eq!((parse_notes("# Notes\n"), next_id("# Notes\n")), (Vec::new(), "n1".to_owned()));
        assert_eq!(append_note("# Notes\n", &note("n1", "a")), append_note("", &note("n1", "a")));
    }

    #[test]
    fn what_was_answered_to_is_used() {
        let text = append_note(&append_note("", &note("n1", "a")), &note("n2", "b"));
        assert_eq!(unused_notes(&text, &["n1".to_owned()]), [note("n2", "b")]);
    }

    #[test]
    fn lines_of_a_person_around_the_notes_stay_and_are_no_notes() {
        let text = "# Notes\n\n- [n4] a\n  b\n\nSome prose.\n  indented prose\n- no id\n";
        assert_eq!(parse_notes(text), [note("n4", "a\nb")]);
        assert!(append_note(text, &note("n5", "c")).starts_with(text.trim_end()));
    }
}
