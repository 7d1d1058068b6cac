//! `questions.md`: what agents ask a person. A question is a list item; its id is a prefix of its hash, and its answer
//! is indented below it.
//!
//! Text only: agents append to the file, and what they write is read unchanged.

use std::fmt::Write as _;

use crate::text::digest::sha256_hex;
use crate::text::fence::clean;

/// Longest answer, in bytes.
pub const MAX_ANSWER_BYTES: usize = 8 * 1024;
/// Digits of an id.
const ID_DIGITS: usize = 8;
/// Beginning of an answer's first line, after the indentation.
const ANSWER_PREFIX: &str = "Answer:";

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQuestion {
    /// A prefix of the hash of its text.
    pub id: String,
    /// Text of the question.
    pub text: String,
    /// A person's answer, if there is one.
    pub answer: Option<String>,
}

/// A list item of the file.
struct QuestionItem<'a> {
    question: Vec<&'a str>,
    answer: Option<Vec<&'a str>>,
    /// Number of lines up to the last one that is not blank.
    end: usize,
}

/// Returns the questions of the file, oldest first.
pub fn parse_questions(text: &str) -> Vec<AgentQuestion> {
    parse_items(text).iter().map(QuestionItem::to_question).collect()
}

/// Returns the number of questions without an answer.
pub fn count_open(text: &str) -> usize {
    parse_items(text).iter().filter(|item| item.answer.is_none()).count()
}

/// Returns the questions that are in `after` but not in `before`, except for answered ones.
pub fn new_questions(before: &str, after: &str) -> Vec<AgentQuestion> {
    let known: Vec<String> = parse_questions(before).into_iter().map(|question| question.id).collect();
    parse_questions(after).into_iter().filter(|new| new.answer.is_none() && !known.contains(&new.id)).collect()
}

/// Returns the file with an answer below each open question with this id; `None` if there is no such question.
pub fn add_answer(text: &str, id: &str, answer: &str) -> Option<String> {
    let ends: Vec<usize> = parse_items(text)
        .iter()
        .filter(|item| item.answer.is_none() && item.to_question().id == id)
        .map(|item| item.end)
        .collect();
    if ends.is_empty() {
        return None;
    }
    let mut after = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        let _ = writeln!(after, "{line}");
        if ends.contains(&number) {
            after.push_str(&indent_answer(answer));
        }
    }
    Some(after)
}

/// Returns the lines of an answer in their form below a question.
fn indent_answer(answer: &str) -> String {
    let body = clean(answer);
    let mut lines = body.trim().lines();
    let mut text = format!("  {ANSWER_PREFIX} {}\n", lines.next().unwrap_or_default().trim_end());
    for line in lines {
        let indent = if line.trim().is_empty() { "" } else { "  " };
        let _ = writeln!(text, "{indent}{}", line.trim_end());
    }
    text
}

fn parse_items(text: &str) -> Vec<QuestionItem<'_>> {
    let mut items: Vec<QuestionItem<'_>> = Vec::new();
    let mut is_within = false;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(first) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            items.push(QuestionItem { question: vec![first], answer: None, end: number });
            is_within = true;
            continue;
        }
        let belongs = line.trim().is_empty() || line.starts_with(' ') || line.starts_with('\t');
        is_within &= belongs;
        if let (true, Some(item)) = (is_within, items.last_mut()) {
            item.add(line, number);
        }
    }
    items
}

impl<'a> QuestionItem<'a> {
    fn add(&mut self, line: &'a str, number: usize) {
        let line = line.strip_prefix("  ").unwrap_or_else(|| line.trim_start());
        match (&mut self.answer, line.strip_prefix(ANSWER_PREFIX)) {
            (None, Some(first)) => self.answer = Some(vec![first.trim_start()]),
            (None, None) => self.question.push(line),
            (Some(answer), _) => answer.push(line),
        }
        if !line.trim().is_empty() {
            self.end = number;
        }
    }

    fn to_question(&self) -> AgentQuestion {
        let joined = |lines: &[&str]| lines.join("\n").trim().to_owned();
        let text = joined(&self.question);
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut id = sha256_hex(words.join(" ").as_bytes());
        id.truncate(ID_DIGITS);
        AgentQuestion { id, text, answer: self.answer.as_deref().map(joined) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Questions\n\n- Which database?\n  It matters for node b.\n\n- May the API change?\n";

    fn id_of(text: &str, at: usize) -> String {
        parse_questions(text)[at].id.clone()
    }

    #[test]
    fn an_answer_stands_under_its_question_and_the_id_stays() {
        let id = id_of(FILE, 0);
        let after = add_answer(FILE, &id, "Postgres.\nVersion 16.").expect("is there");
        insta::assert_snapshot!(after, @r"
        # Questions

        - Which database?
          It matters for node b.
          Answer: Postgres.
          Version 16.

        - May the API change?
        ");
        assert_eq!(id_of(&after, 0), id);
        assert_eq!(parse_questions(&after)[0].answer.as_deref(), Some("Postgres.\nVersion 16."));
        assert_eq!((count_open(FILE), count_open(&after)), (2, 1));
    }

    #[test]
    fn an_answered_question_is_not_answered_again() {
        let id = id_of(FILE, 1);
        let after = add_answer(FILE, &id, "No.").expect("is there");
        assert_eq!(add_answer(&after, &id, "Yes."), None);
        assert_eq!(add_answer(FILE, "00000000", "Yes."), None);
    }

    #[test]
    fn an_answer_cannot_ask() {
        let after = add_answer(FILE, &id_of(FILE, 1), "See:\n- this\n# that").expect("is there");
        assert_eq!(parse_questions(&after).len(), 2);
        assert_eq!(parse_questions(&after)[1].answer.as_deref(), Some("See:\n- this\n# that"));
    }

    #[test]
    fn only_what_is_new_and_open_is_asked() {
        let after = format!("{FILE}* A new one?\n- And one that is answered\n  Answer: yes\n");
        let new: Vec<String> = new_questions(FILE, &after).into_iter().map(|question| question.text).collect();
        assert_eq!(new, ["A new one?"]);
    }

    #[test]
    fn prose_is_no_question() {
        assert_eq!(parse_questions("# Questions\n\nNone so far.\n  - nested under prose\n"), []);
    }
}
