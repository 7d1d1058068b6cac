//! `GOAL.md`: Markdown with optional YAML front matter, of which only `id` is interpreted here.
//!
//! Every other byte of the file is the author's and is preserved.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The goal written if none was given: it asks for one, and does not count as one.
pub const TEMPLATE: &str = "\
# Goal

Say here what is to be reached, and how it can be seen that it is reached.
";

/// Maximum size of a goal in bytes.
pub const LIMIT: usize = 64 << 10;

/// Maximum length in bytes of a title taken from a heading.
const TITLE_LIMIT: usize = 200;

const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Maximum length of an id in bytes.
const LONGEST_ID: usize = 200;

/// Why a goal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GoalError {
    /// The file is too large.
    #[error("{} has {size} bytes; a goal may have {LIMIT}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: usize,
    },
    /// The file is not UTF-8.
    #[error("{}:{line}: the goal is not UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line of the first invalid byte, counted from 1.
        line: usize,
    },
    /// Front matter without an end.
    #[error("{}:1: front matter is opened with `---` and never closed", path.display())]
    Unclosed {
        /// The file.
        path: PathBuf,
    },
    /// Front matter that is not a YAML mapping, or whose `id` is not a string.
    #[error("{}:{line}: unusable front matter: {message}", path.display())]
    FrontMatter {
        /// The file.
        path: PathBuf,
        /// The line of the error, counted from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// An id that cannot name a run.
    #[error("{}:{line}: `id` {fault}", path.display())]
    Id {
        /// The file.
        path: PathBuf,
        /// The line of the id, counted from 1.
        line: usize,
        /// What is wrong with the id.
        fault: IdFault,
    },
    /// Front matter in which the id cannot be set without touching other bytes.
    #[error("{}: cannot set `id` in this front matter; write the line `id: \"{id}\"` into it", path.display())]
    Uneditable {
        /// The file.
        path: PathBuf,
        /// The id to be set.
        id: String,
    },
}

/// What is wrong with an id: the end of a sentence that starts with `id`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdFault {
    /// It is too long.
    #[error("has {0} bytes, at most {LONGEST_ID} are allowed")]
    TooLong(usize),
    /// It starts with a punctuation mark, or is empty.
    #[error("must begin with a letter or digit: {0:?}")]
    InvalidStart(String),
    /// It contains a character that is not allowed.
    #[error("may contain only letters, digits, `.`, `_` and `-`: {0:?}")]
    InvalidCharacter(String),
    /// It would name a range of commits.
    #[error("must not contain `..`: {0:?}")]
    DoubleDot(String),
    /// No branch may end in this.
    #[error("must not end in `{ending}`: {id:?}")]
    ForbiddenSuffix {
        /// The forbidden ending.
        ending: &'static str,
        /// The id.
        id: String,
    },
}

/// The text of a goal, split into front matter and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    file: PathBuf,
    text: String,
    /// The range between the `---` lines, if there are any.
    front: Option<Range<usize>>,
    body: usize,
    id: Option<String>,
}

#[derive(Deserialize)]
struct FrontMatter {
    #[serde(default)]
    id: Option<String>,
}

/// Returns a line without control characters, truncated to the limit for a node's title.
fn format_title(line: &str) -> String {
    let line: String = line.trim().chars().filter(|c| !c.is_control()).collect();
    line[..line.floor_char_boundary(TITLE_LIMIT)].trim_end().to_owned()
}

/// Whether a line names a goal: it has a word, and is not just the heading of the template.
fn says_something(line: &str) -> bool {
    let words = line.trim_matches(|char: char| !char.is_alphanumeric());
    !words.is_empty() && !words.eq_ignore_ascii_case("goal")
}

/// Removes the full stop of a sentence, unless it is part of an ellipsis.
fn trim_full_stop(sentence: &str) -> &str {
    sentence.strip_suffix('.').filter(|rest| !rest.ends_with('.')).unwrap_or(sentence)
}

/// Returns a line up to the end of its first sentence.
fn first_sentence(line: &str) -> &str {
    let is_end = |(at, mark): &(usize, &str)| {
        let mut rest = line[at + mark.len()..].chars();
        rest.next() == Some(' ') && rest.next().is_some_and(char::is_uppercase)
    };
    line.match_indices(['.', '!', '?']).find(is_end).map_or(line, |(at, mark)| &line[..at + mark.len()])
}

impl Goal {
    /// Parses a goal; `file` is its name in messages.
    pub fn parse(bytes: &[u8], file: &Path) -> Result<Self, GoalError> {
        let path = || file.to_owned();
        if bytes.len() > LIMIT {
            return Err(GoalError::TooLarge { path: path(), size: bytes.len() });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = before.split(|byte| *byte == b'\n').count();
            GoalError::NotUtf8 { path: path(), line }
        })?;
        let (front, body) = split_front_matter(text).ok_or_else(|| GoalError::Unclosed { path: path() })?;
        let mut goal = Self { file: path(), text: text.to_owned(), front, body, id: None };
        goal.id = goal.read_id()?;
        Ok(goal)
    }

    /// Returns the run id set in the file, if any.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns everything after the front matter.
    pub fn body(&self) -> &str {
        &self.text[self.body..]
    }

    /// Whether there is no goal yet: the text is empty, or still the template.
    pub fn is_template(&self) -> bool {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let body = words(self.body());
        body.is_empty() || body == words(TEMPLATE)
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first heading of the body that says more than "Goal", truncated to the limit for a node's title.
    pub fn title(&self) -> Option<String> {
        let mut fence = None;
        let heading = self.body().lines().find_map(|line| {
            let line = line.trim();
            let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
            fence = match (fence, mark) {
                (Some(opened), Some(mark)) if opened == mark => None,
                (opened, mark) => opened.or(mark),
            };
            let marks = line.bytes().take_while(|byte| *byte == b'#').count();
            let rest = line[marks..].strip_prefix([' ', '\t'])?;
            let heading = rest.trim_end_matches('#').trim();
            ((1..=6).contains(&marks) && fence.is_none() && says_something(heading)).then_some(heading)
        })?;
        Some(format_title(heading))
    }

    /// Returns the goal's name: its first heading, or else the first sentence on its first line that says something;
    /// `None` if there is neither.
    pub fn headline(&self) -> Option<String> {
        let first_line = || self.body().lines().find(|line| says_something(line));
        self.title().or_else(|| first_line().map(|line| format_title(trim_full_stop(first_sentence(line.trim())))))
    }

    /// Returns the text with this id in its front matter and every other byte unchanged.
    pub fn with_id(&self, id: &str) -> Result<String, GoalError> {
        self.check_id(id)?;
        let uneditable = || GoalError::Uneditable { path: self.file.clone(), id: id.to_owned() };
        let text = match (&self.front, self.id_value()) {
            (Some(_), Some(value)) => self.replace_value(&value, id),
            (Some(front), None) => self.insert_text(front.start, &format!("id: \"{id}\"{}", self.line_end())),
            (None, _) => {
                let end = self.line_end();
                self.insert_text(self.text_start(), &format!("---{end}id: \"{id}\"{end}---{end}{end}"))
            }
        };
        // Parsing the result detects forms that a line edit does not handle.
        match Self::parse(text.as_bytes(), &self.file) {
            Ok(goal) if goal.id() == Some(id) && goal.body().ends_with(self.body()) => Ok(text),
            Err(error @ GoalError::TooLarge { .. }) => Err(error),
            _ => Err(uneditable()),
        }
    }

    fn read_id(&self) -> Result<Option<String>, GoalError> {
        let Some(front) = self.front.clone() else {
            return Ok(None);
        };
        let yaml = &self.text[front];
        let has_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        if !yaml.lines().any(has_content) {
            return Ok(None);
        }
        let matter: FrontMatter = serde_saphyr::from_str(yaml).map_err(|error| self.yaml_error(&error))?;
        matter.id.as_deref().map_or(Ok(()), |id| self.check_id(id))?;
        Ok(matter.id)
    }

    fn check_id(&self, id: &str) -> Result<(), GoalError> {
        check_goal_id(id).map_err(|fault| {
            let line = self.id_value().map_or(1, |value| self.line_number(value.start));
            GoalError::Id { path: self.file.clone(), line, fault }
        })
    }

    fn yaml_error(&self, error: &serde_saphyr::Error) -> GoalError {
        let line = error.location().and_then(|location| usize::try_from(location.line()).ok()).unwrap_or(0);
        let error = error.without_snippet();
        let message = if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = error {
            format!("`{key}` is a duplicate key")
        } else {
            // The location at the end counts lines from the start of the front matter.
            error.to_string().split(" at line ").next().unwrap_or_default().to_owned()
        };
        GoalError::FrontMatter { path: self.file.clone(), line: line + 1, message }
    }

    /// Finds the bytes of `id`'s value on its line; empty if it has no value.
    fn id_value(&self) -> Option<Range<usize>> {
        let front = self.front.clone()?;
        let mut start = front.start;
        self.text[front].split_inclusive('\n').find_map(|line| {
            let offset = start;
            start += line.len();
            let value = find_id_value(line.trim_end_matches(['\n', '\r']))?;
            Some(offset + value.start..offset + value.end)
        })
    }

    fn replace_value(&self, value: &Range<usize>, id: &str) -> String {
        let before = &self.text[..value.start];
        let after = &self.text[value.end..];
        let gap_before = if before.ends_with(':') { " " } else { "" };
        let gap_after = if after.starts_with('#') { " " } else { "" };
        format!("{before}{gap_before}\"{id}\"{gap_after}{after}")
    }

    fn insert_text(&self, at: usize, addition: &str) -> String {
        format!("{}{addition}{}", &self.text[..at], &self.text[at..])
    }

    fn text_start(&self) -> usize {
        if self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }

    /// Returns the line ending of the first line.
    fn line_end(&self) -> &'static str {
        let first = self.text.split_inclusive('\n').next();
        if first.is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" }
    }

    fn line_number(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

/// Finds front matter and the start of the body; `None` if front matter is not closed.
fn split_front_matter(text: &str) -> Option<(Option<Range<usize>>, usize)> {
    let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut lines = text[start..].split_inclusive('\n');
    let Some(opening) = lines.next().filter(|line| is_delimiter(line)) else {
        return Some((None, start));
    };
    let front = start + opening.len();
    let mut end = front;
    for line in lines {
        if is_delimiter(line) {
            return Some((Some(front..end), end + line.len()));
        }
        end += line.len();
    }
    None
}

fn is_delimiter(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Finds the value in a line `id: value # comment`; an empty range if there is none.
fn find_id_value(line: &str) -> Option<Range<usize>> {
    let name = ["id", "\"id\"", "'id'"].into_iter().find(|name| {
        let rest = line.strip_prefix(name);
        let value = rest.and_then(|rest| rest.trim_start().strip_prefix(':'));
        value.is_some_and(|value| value.is_empty() || value.starts_with([' ', '\t']))
    })?;
    let colon = name.len() + line[name.len()..].find(':')? + 1;
    let rest = &line[colon..];
    let start = colon + (rest.len() - rest.trim_start().len());
    let value = &line[start..];
    let length = match value.chars().next() {
        None | Some('#') => 0,
        Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.len(), |end| end + 2),
        Some(_) => value.find(" #").unwrap_or(value.len()),
    };
    Some(start..start + value[..length].trim_end().len())
}

/// Checks that an id can name a node, a run, a branch and a folder.
pub fn check_goal_id(id: &str) -> Result<(), IdFault> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if id.len() > LONGEST_ID {
        return Err(IdFault::TooLong(id.len()));
    }
    if !id.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric()) {
        return Err(IdFault::InvalidStart(id.to_owned()));
    }
    if !id.bytes().all(is_allowed) {
        return Err(IdFault::InvalidCharacter(id.to_owned()));
    }
    if id.contains("..") {
        return Err(IdFault::DoubleDot(id.to_owned()));
    }
    let ending = [".", ".lock"].into_iter().find(|ending| id.ends_with(ending));
    ending.map_or(Ok(()), |ending| Err(IdFault::ForbiddenSuffix { ending, id: id.to_owned() }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_goal(text: &str) -> Goal {
        Goal::parse(text.as_bytes(), Path::new("GOAL.md")).unwrap()
    }

    fn parse_error(bytes: &[u8]) -> String {
        Goal::parse(bytes, Path::new("GOAL.md")).unwrap_err().to_string()
    }

    #[test]
    fn a_goal_is_called_by_its_first_heading_or_else_its_first_line() {
        let called = |text: &str| parse_goal(text).headline();
        assert_eq!(called("Some words.\n\n# Port it #\n").as_deref(), Some("Port it"));
        assert_eq!(
            called("---\nid: x\n---\n\n***\nMake `a` faster\u{1b}[2J\nand b\n").as_deref(),
            Some("Make `a` faster[2J")
        );
        assert_eq!(called("\n---\n\n"), None);
        for heading in ["# Goal", "## GOAL:", "Goal\n====", "**Goal**"] {
            let text = format!("{heading}\n\nPort v1.2 to Postgres. All tests pass.\n");
            assert_eq!(called(&text).as_deref(), Some("Port v1.2 to Postgres"), "{heading}");
        }
        for (text, title) in [("Do it.", "Do it"), ("Go on...", "Go on..."), ("Does it run?", "Does it run?")] {
            assert_eq!(called(text).as_deref(), Some(title));
        }
        assert_eq!(called("# Goal\n\n## Port it\n").as_deref(), Some("Port it"));
        assert_eq!(called("# Goal\n"), None);
        assert!(called(&"ü".repeat(4_000)).is_some_and(|line| line.len() <= TITLE_LIMIT));
    }

    #[test]
    fn the_id_is_read_from_front_matter_alone() {
        let cases = [
            ("# Port it\n", None),
            ("id: x\n", None),
            ("---\nid: run-1\n---\nbody", Some("run-1")),
            ("---\nid: \"run-1\"\n---\n", Some("run-1")),
            ("---\nid: null\n---\n", None),
            ("---\nid: ~\n---\n", None),
            ("---\nid:\n---\n", None),
            ("---\n---\n", None),
            ("---\n# only a comment\n---\n", None),
            ("---\nid: 2024\n---\n", Some("2024")),
            ("---\r\nid: run-1 # set by hand\r\n---\r\nbody", Some("run-1")),
            ("\u{feff}---\nid: run-1\n---\n", Some("run-1")),
            ("---\nlabels: [a, b]\nowner:\n  id: nested\n1: x\n---\n", None),
            ("---\nid: run-1\n---", Some("run-1")),
        ];
        for (text, id) in cases {
            assert_eq!(parse_goal(text).id(), id, "{text:?}");
        }
    }

    #[test]
    fn the_body_is_all_after_the_front_matter() {
        assert_eq!(parse_goal("---\nid: a\n---\n\n# T\n---\nmore\n").body(), "\n# T\n---\nmore\n");
        assert_eq!(parse_goal("# T\n").body(), "# T\n");
        assert_eq!(parse_goal("").body(), "");
    }

    #[test]
    fn setting_the_id_touches_nothing_else() {
        let cases = [
            ("# T\n", "---\nid: \"x\"\n---\n\n# T\n"),
            ("", "---\nid: \"x\"\n---\n\n"),
            ("# T\r\n", "---\r\nid: \"x\"\r\n---\r\n\r\n# T\r\n"),
            ("---\n---\n# T", "---\nid: \"x\"\n---\n# T"),
            ("---\nowner:  me # or you\n---\n", "---\nid: \"x\"\nowner:  me # or you\n---\n"),
            ("---\nid: old\nb: 1\n---\n", "---\nid: \"x\"\nb: 1\n---\n"),
            ("---\nb: 1\nid:   'old'   # why\n---\n", "---\nb: 1\nid:   \"x\"   # why\n---\n"),
            ("---\nid:\n---\n", "---\nid: \"x\"\n---\n"),
            ("---\nid: # comment\n---\n", "---\nid: \"x\" # comment\n---\n"),
            ("---\r\n\"id\" : null\r\n---\r\n", "---\r\n\"id\" : \"x\"\r\n---\r\n"),
            ("\u{feff}# T", "\u{feff}---\nid: \"x\"\n---\n\n# T"),
        ];
        for (before, after) in cases {
            assert_eq!(parse_goal(before).with_id("x").unwrap(), after, "{before:?}");
        }
    }

    #[test]
    fn front_matter_that_a_line_edit_would_break_is_left_alone() {
        for text in [
            "---\n{id: old, b: 1}\n---\n",
            "---\nid: &a old\nb: *a\n---\n",
            "---\nid: >\n  old\n---\n",
            "---\nid: old\n  er\n---\n",
        ] {
            let parsed = Goal::parse(text.as_bytes(), Path::new("GOAL.md"));
            let error = parsed.and_then(|goal| goal.with_id("x")).unwrap_err();
            assert!(matches!(error, GoalError::Uneditable { .. } | GoalError::Id { .. }), "{text:?}: {error}");
        }
    }

    #[test]
    fn messages_name_the_line() {
        let messages = [
            parse_error(b"---\nid: x\n"),
            parse_error(b"---\na: 1\nid: a b\n---\n"),
            parse_error(b"---\nid: ''\n---\n"),
            parse_error(b"---\na: 1\nb: [\n---\n"),
            parse_error(b"---\n- a\n---\n"),
            parse_error(b"---\nid: [a]\n---\n"),
            parse_error(b"---\nid: a\nid: b\n---\n"),
            parse_error(b"a\nb\xff\n"),
            parse_error(&b"x".repeat(LIMIT + 1)),
            parse_goal("---\n{a: 1}\n---\n").with_id("x").unwrap_err().to_string(),
            parse_goal("# T").with_id("a/b").unwrap_err().to_string(),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r#"
        GOAL.md:1: front matter is opened with `---` and never closed
        GOAL.md:3: `id` may contain only letters, digits, `.`, `_` and `-`: "a b"
        GOAL.md:2: `id` must begin with a letter or digit: ""
        GOAL.md:3: unusable front matter: unclosed bracket '['
        GOAL.md:2: unusable front matter: expected mapping start
        GOAL.md:2: unusable front matter: expected string scalar
        GOAL.md:3: unusable front matter: `id` is a duplicate key
        GOAL.md:2: the goal is not UTF-8
        GOAL.md has 65537 bytes; a goal may have 65536
        GOAL.md: cannot set `id` in this front matter; write the line `id: "x"` into it
        GOAL.md:1: `id` may contain only letters, digits, `.`, `_` and `-`: "a/b"
        "#);
    }

    #[test]
    fn the_title_is_the_first_heading() {
        let cases = [
            ("text\n## Port to Postgres ##\n# Later", Some("Port to Postgres")),
            ("```\n# not this\n```\n# This", Some("This")),
            ("```\n~~~\n# not this\n~~~\n```\n# This", Some("This")),
            ("#no heading\n", None),
            ("####### seven", None),
            ("# ", None),
            ("---\nid: a\n# comment\n---\n# T\n", Some("T")),
        ];
        for (text, title) in cases {
            assert_eq!(parse_goal(text).title().as_deref(), title, "{text:?}");
        }
        let long = parse_goal(&format!("# {}", "é".repeat(150))).title().unwrap();
        assert_eq!(long.len(), 200);
    }

    #[test]
    fn ids_follow_their_grammar() {
        for id in ["a", "root.1", "run-1a2b3c4d-2", "A_b.C", "0", &"x".repeat(200)] {
            assert_eq!(check_goal_id(id), Ok(()), "{id}");
        }
        for id in ["", ".a", "-a", "a..b", "a.", "a.lock", "a/b", "a b", "é", "a\n", &"x".repeat(201)] {
            assert!(check_goal_id(id).is_err(), "{id:?}");
        }
    }

    proptest! {
        #[test]
        fn setting_an_id_keeps_every_other_byte(
            keys in proptest::collection::vec("[a-h]{2,6}: [A-Za-z0-9 ]{0,8}[a-z]\n", 0..4),
            body in "[#a-z \n\r`é-]{0,40}",
            old in proptest::option::of("[a-z0-9]{1,8}"),
            id in "[A-Za-z0-9][A-Za-z0-9_-]{0,20}",
        ) {
            let keys: std::collections::BTreeMap<_, _> =
                keys.iter().filter_map(|line| Some((line.split(':').next()?, line))).collect();
            let keys: String = keys.into_values().map(String::as_str).collect();
            let line = old.map_or_else(String::new, |old| format!("id: {old}\n"));
            let before = parse_goal(&format!("---\n{keys}{line}---\n{body}"));
            let after = parse_goal(&before.with_id(&id).unwrap());
            prop_assert_eq!(after.id(), Some(id.as_str()));
            prop_assert_eq!(after.body(), before.body());
            let without = |goal: &Goal| {
                let front = &goal.text()[..goal.text().len() - goal.body().len()];
                front.lines().filter(|line| !line.starts_with("id:")).collect::<Vec<_>>().join("\n")
            };
            prop_assert_eq!(without(&after), without(&before));
            prop_assert_eq!(&after.with_id(&id).unwrap(), after.text());
        }

        #[test]
        fn no_text_panics(text in "[-a-z:#'\"\\[{\n\r &*é|>]{0,60}") {
            if let Ok(goal) = Goal::parse(text.as_bytes(), Path::new("GOAL.md")) {
                let _ = goal.title();
                let _ = goal.with_id("x");
            }
        }
    }
}
