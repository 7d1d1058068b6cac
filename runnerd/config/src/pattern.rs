//! Names and globs of a configuration file, as a list in which the last match decides.
//!
//! `*` and `?` match within one path component, `**` across components, `[a-z]` and `[!a-z]` are classes, and a leading
//! `!` excludes what an earlier pattern included. No file is accessed.

use crate::environment;
use serde::{Deserialize, Serialize};

/// An ordered list of globs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patterns(Vec<String>);

impl Patterns {
    /// Creates a list from its patterns.
    pub fn new<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        Self(patterns.into_iter().map(Into::into).collect())
    }

    /// Returns the patterns as they were written.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// Whether a whole name (a variable, a branch) matches.
    pub fn matches_name(&self, name: &str) -> bool {
        self.last_match(|pattern| glob_matches(pattern, name)).unwrap_or(false)
    }

    /// Whether a program with this list of variables gets the variable: what every program gets, what is named in full,
    /// and what a glob matches.
    pub fn passes_variable(&self, name: &str) -> bool {
        let is_named = self.0.iter().any(|pattern| pattern == name) && !environment::is_runner_variable(name);
        environment::is_always_passed(name)
            || is_named
            || self.matches_name(name) && environment::may_match_pattern(name)
    }

    /// Whether a path matches: a pattern with `/` is relative to the root of the repository, one without matches files
    /// in any folder.
    pub fn matches_path(&self, path: &str) -> bool {
        self.match_path(path).unwrap_or(false)
    }

    /// Whether a path is included or excluded by [`Self::matches_path`]; `None` if no pattern matches it.
    pub fn match_path(&self, path: &str) -> Option<bool> {
        self.last_match(|pattern| matches_glob_path(pattern, path))
    }

    /// Whether a pattern matches a path or a folder on the way to it, by git's rules for ignore files: a pattern that ends
    /// in `/` matches folders only, and one with another `/` is relative to the root of the repository.
    pub fn covers_path(&self, path: &str) -> bool {
        let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        self.0.iter().any(|pattern| match pattern.strip_suffix('/') {
            Some(folder) => folders.clone().any(|above| matches_glob_path(folder, above)),
            None => matches_glob_path(pattern, path) || folders.clone().any(|above| matches_glob_path(pattern, above)),
        })
    }

    /// Returns where matching paths can be.
    pub fn roots(&self) -> Vec<PatternRoot> {
        let places = self.0.iter().filter(|pattern| !pattern.starts_with('!'));
        places.map(|pattern| PatternRoot::from_pattern(pattern)).collect()
    }

    fn last_match(&self, is_match: impl Fn(&str) -> bool) -> Option<bool> {
        let verdict = |pattern: &String| match pattern.strip_prefix('!') {
            Some(exception) => is_match(exception).then_some(false),
            None => is_match(pattern).then_some(true),
        };
        self.0.iter().rev().find_map(verdict)
    }
}

/// Whether a pattern matches a path, or its last component if the pattern has no `/`.
fn matches_glob_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_prefix('/') {
        Some(rooted) => glob_matches(rooted, path),
        None if pattern.contains('/') => glob_matches(pattern, path),
        None => glob_matches(pattern, path.rsplit('/').next().unwrap_or(path)),
    }
}

/// Where the paths that a pattern can match are, relative to the root of the repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternRoot {
    /// Exactly this path.
    File(String),
    /// Anywhere in this folder; the empty name is the root.
    Folder(String),
}

impl PatternRoot {
    fn from_pattern(pattern: &str) -> Self {
        if !pattern.contains('/') {
            return Self::Folder(String::new());
        }
        let rooted = pattern.strip_prefix('/').unwrap_or(pattern);
        let is_literal = |name: &&str| !name.contains(['*', '?', '[']);
        let literal: Vec<&str> = rooted.split('/').take_while(is_literal).collect();
        let path = literal.join("/");
        if path.len() == rooted.len() { Self::File(path) } else { Self::Folder(path) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    Literal(char),
    AnyChar,
    /// Any characters of one path component.
    Star,
    /// Any characters.
    DoubleStar,
    /// Zero or more folders, including the last `/`.
    Folders,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Follows all readings of the pattern at once, so that no pattern takes more than `pattern × text` steps.
fn glob_matches(pattern: &str, text: &str) -> bool {
    let Some(literal) = pattern.find(['*', '?', '[']) else { return pattern == text };
    if !text.starts_with(&pattern[..literal]) {
        return false;
    }
    // A wildcard for folders is recognized by what precedes it.
    let start = pattern[..literal].rfind('/').map_or(0, |slash| slash + 1);
    let pattern = &pattern[start..];
    let text = &text[start..];
    let tokens = tokenize(pattern);
    let mut states = vec![false; tokens.len() + 1];
    enter_state(&tokens, &mut states, 0);
    for c in text.chars() {
        let mut next = vec![false; states.len()];
        for (index, token) in tokens.iter().enumerate().filter(|(index, _)| states[*index]) {
            advance_state(&tokens, token, index, c, &mut next);
        }
        states = next;
    }
    states[tokens.len()]
}

/// Marks a state and those that can be reached from it without consuming a character.
fn enter_state(tokens: &[GlobToken], states: &mut [bool], index: usize) {
    let mut index = index;
    loop {
        states[index] = true;
        match tokens.get(index) {
            Some(GlobToken::Star | GlobToken::DoubleStar | GlobToken::Folders) => index += 1,
            _ => return,
        }
    }
}

fn advance_state(tokens: &[GlobToken], token: &GlobToken, index: usize, c: char, next: &mut [bool]) {
    match token {
        GlobToken::Literal(literal) if *literal == c => enter_state(tokens, next, index + 1),
        GlobToken::AnyChar if c != '/' => enter_state(tokens, next, index + 1),
        GlobToken::Class { negated, ranges } if c != '/' && in_ranges(ranges, c) != *negated => {
            enter_state(tokens, next, index + 1);
        }
        GlobToken::Star if c != '/' => enter_state(tokens, next, index),
        GlobToken::DoubleStar => enter_state(tokens, next, index),
        GlobToken::Folders if c == '/' => enter_state(tokens, next, index),
        GlobToken::Folders => next[index] = true,
        GlobToken::Literal(_) | GlobToken::AnyChar | GlobToken::Star | GlobToken::Class { .. } => {}
    }
}

fn in_ranges(ranges: &[(char, char)], c: char) -> bool {
    ranges.iter().any(|(low, high)| (*low..=*high).contains(&c))
}

fn tokenize(pattern: &str) -> Vec<GlobToken> {
    let mut rest = pattern;
    let mut tokens = Vec::new();
    while let Some(c) = rest.chars().next() {
        let (token, length) = read_token(rest, c, tokens.last());
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn read_token(rest: &str, c: char, before: Option<&GlobToken>) -> (GlobToken, usize) {
    let at_component = matches!(before, None | Some(GlobToken::Literal('/')));
    match c {
        '*' if rest.starts_with("**/") && at_component => (GlobToken::Folders, 3),
        '*' if rest.starts_with("**") => (GlobToken::DoubleStar, 2),
        '*' => (GlobToken::Star, 1),
        '?' => (GlobToken::AnyChar, 1),
        '[' => read_class(rest).unwrap_or((GlobToken::Literal('['), 1)),
        literal => (GlobToken::Literal(literal), literal.len_utf8()),
    }
}

/// Parses `[...]`; without a closing bracket the opening one is an ordinary character.
fn read_class(rest: &str) -> Option<(GlobToken, usize)> {
    let inner = &rest[1..];
    let negated = inner.starts_with(['!', '^']);
    let inner = if negated { &inner[1..] } else { inner };
    // A `]` in the first position belongs to the class.
    let first = inner.chars().next()?.len_utf8();
    let end = first + inner.get(first..)?.find(']')?;
    let chars: Vec<char> = inner[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut index = 0;
    while let Some(&low) = chars.get(index) {
        let is_range = chars.get(index + 1) == Some(&'-');
        let high = chars.get(index + 2).filter(|_| is_range);
        ranges.push((low, *high.unwrap_or(&low)));
        index += if high.is_some() { 3 } else { 1 };
    }
    let length = 1 + usize::from(negated) + end + 1;
    Some((GlobToken::Class { negated, ranges }, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn globs_match_as_documented() {
        let cases = [
            ("justfile", "justfile", true),
            ("justfile", "sub/justfile", true),
            ("/justfile", "sub/justfile", false),
            ("/justfile", "justfile", true),
            ("ci/*.sh", "ci/test.sh", true),
            ("ci/*.sh", "ci/deep/test.sh", false),
            ("ci/*.sh", "sub/ci/test.sh", false),
            ("ci/**", "ci/deep/test.sh", true),
            ("ci/**/test.sh", "ci/test.sh", true),
            ("ci/**/test.sh", "ci/a/b/test.sh", true),
            ("ci/**/test.sh", "ci/atest.sh", false),
            ("**/x", "x", true),
            ("**/x", "a/x", true),
            ("**/x", "ax", false),
            (".env.*", ".env.local", true),
            (".env.*", ".env", false),
            ("?.c", "a.c", true),
            ("?.c", "ab.c", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[abc", "[abc", true),
            ("*é", "caf\u{e9}", true),
            ("*", "", true),
        ];
        for (pattern, path, expected) in cases {
            let patterns = Patterns::new([pattern]);
            assert_eq!(patterns.matches_path(path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn a_folder_stands_for_all_that_is_in_it() {
        let cases = [
            ("src", "src/a/b.rs", true),
            ("src", "lib/src/b.rs", true),
            ("src/", "lib/src/b.rs", true),
            ("src/", "src", false),
            ("/src", "lib/src/b.rs", false),
            ("/src/", "src/b.rs", true),
            ("lib/src", "x/lib/src/b.rs", false),
            ("src/*", "src/a/b.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**", "src", false),
            ("**", "a", true),
            ("*.rs", "src/a/b.rs", true),
            ("a.rs", "b.rs", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(Patterns::new([pattern]).covers_path(path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn the_last_match_counts() {
        let patterns = Patterns::new([".env.*", "!*.example", ".env.secret.example"]);
        assert!(patterns.matches_path(".env.local"));
        assert!(!patterns.matches_path("app/.env.example"));
        assert!(patterns.matches_path(".env.secret.example"));
        assert!(!patterns.matches_path("readme"));
    }

    #[test]
    fn a_name_is_matched_as_a_whole() {
        let patterns = Patterns::new(["release/*", "MY_*"]);
        assert!(patterns.matches_name("release/1.0"));
        assert!(patterns.matches_name("MY_TOKEN"));
        assert!(!patterns.matches_name("NOT_MY_TOKEN"));
    }

    #[test]
    fn a_program_is_given_what_is_named_and_what_every_one_gets() {
        let patterns = Patterns::new(["ACME_*", "LD_PRELOAD", "RUNNER_OUTPUT"]);
        for name in ["PATH", "ACME_KEY", "LD_PRELOAD"] {
            assert!(patterns.passes_variable(name), "{name}");
        }
        for name in ["OTHER", "RUNNER_OUTPUT"] {
            assert!(!patterns.passes_variable(name), "{name}");
        }
        assert!(!Patterns::new(["*"]).passes_variable("LD_PRELOAD"));
    }

    #[test]
    fn a_pattern_made_to_backtrack_is_answered_at_once() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!Patterns::new([pattern]).matches_name(&"a".repeat(5000)));
    }

    proptest! {
        #[test]
        fn text_without_glob_characters_matches_only_itself(a in "[a-z./]{1,12}", b in "[a-z./]{1,12}") {
            prop_assert!(glob_matches(&a, &a));
            prop_assert_eq!(glob_matches(&a, &b), a == b);
        }

        #[test]
        fn no_pattern_panics(pattern in "[*?!^a/\\[\\]é-]{0,12}", text in "[a/é\\]-]{0,12}") {
            glob_matches(&pattern, &text);
        }
    }

    #[test]
    fn a_pattern_is_looked_for_where_it_can_match_and_nowhere_else() {
        let file = |path: &str| PatternRoot::File(path.to_owned());
        let folder = |path: &str| PatternRoot::Folder(path.to_owned());
        for (pattern, place) in [
            ("/justfile", file("justfile")),
            ("ci/run.sh", file("ci/run.sh")),
            ("justfile", folder("")),
            ("*.sh", folder("")),
            ("ci/**", folder("ci")),
            ("/ci/lib/*.sh", folder("ci/lib")),
            ("**/run.sh", folder("")),
            ("ci/[ab]/run.sh", folder("ci")),
        ] {
            assert_eq!(Patterns::new([pattern, "!/ci/not"]).roots(), [place], "{pattern}");
        }
    }
}
