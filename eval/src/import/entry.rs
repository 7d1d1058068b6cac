//! One line of a task list: repository, commit, goal, and the tests that decide. Pure.
//!
//! It accepts the keys of SWE-bench in addition to shorter ones, and ignores others, including the solution.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

/// A line as written.
#[derive(Debug, Deserialize)]
pub(super) struct TaskEntry {
    /// Task id; [`Self::case_id`] makes it a valid case id.
    #[serde(alias = "instance_id")]
    pub(super) id: String,
    /// A repository: a path, or `owner/name` below the folder of repositories.
    pub(super) repo: String,
    /// The commit that the case starts from.
    #[serde(alias = "base_commit")]
    pub(super) base: String,
    #[serde(alias = "problem_statement")]
    pub(super) goal: String,
    /// Patch that adds the deciding tests; it is not shown to the agent before the run is over.
    #[serde(default)]
    pub(super) test_patch: String,
    /// Shell commands, each of which must succeed.
    #[serde(default, deserialize_with = "one_or_many")]
    pub(super) tests: Vec<String>,
    /// Names of tests that fail at the base commit and must pass.
    #[serde(default, rename = "FAIL_TO_PASS", deserialize_with = "one_or_many")]
    pub(super) fail_to_pass: Vec<String>,
    /// Names of tests that pass at the base commit and must still pass.
    #[serde(default, rename = "PASS_TO_PASS", deserialize_with = "one_or_many")]
    pub(super) pass_to_pass: Vec<String>,
    /// A shell command: the project's own checks, which the agent may know.
    #[serde(default)]
    pub(super) guard: Option<String>,
}

impl TaskEntry {
    /// Returns the case id: SWE-bench ids contain upper case and dots.
    pub(super) fn case_id(&self) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
        self.id.chars().map(letter).collect()
    }

    /// Returns the checks, each as a name and an argv; `with` is the shell line that runs the tests named in `{tests}`.
    pub(super) fn checks(&self, test_line: Option<&str>) -> Result<Vec<(String, Vec<String>)>, String> {
        let lines = self.tests.iter().map(|line| (line.clone(), shell_argv(line, &[])));
        let mut checks: Vec<_> = lines.collect();
        for (name, tests) in [("FAIL_TO_PASS", &self.fail_to_pass), ("PASS_TO_PASS", &self.pass_to_pass)] {
            if tests.is_empty() {
                continue;
            }
            let line = test_line.ok_or(format!("`{name}` names tests, and --test does not say how they are run"))?;
            if !line.contains(TESTS_PLACEHOLDER) {
                return Err(format!("--test has no {TESTS_PLACEHOLDER} for the names of tests"));
            }
            checks.push((name.to_owned(), shell_argv(&line.replace(TESTS_PLACEHOLDER, "\"$@\""), tests)));
        }
        if checks.is_empty() { Err("it has neither `tests` nor `FAIL_TO_PASS`".to_owned()) } else { Ok(checks) }
    }
}

/// Placeholder for the test names in the line that runs them.
const TESTS_PLACEHOLDER: &str = "{tests}";

fn shell_argv(line: &str, words: &[String]) -> Vec<String> {
    ["sh", "-c", line, "tests"].into_iter().map(str::to_owned).chain(words.iter().cloned()).collect()
}

/// Deserializes one string, a list of strings, or such a list encoded as a JSON string, as in SWE-bench.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    match OneOrMany::deserialize(from)? {
        OneOrMany::Many(many) => Ok(many),
        OneOrMany::One(text) if text.trim_start().starts_with('[') => {
            serde_json::from_str(&text).map_err(D::Error::custom)
        }
        OneOrMany::One(text) => Ok(if text.trim().is_empty() { Vec::new() } else { vec![text] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_entry(more: &str) -> TaskEntry {
        let text = format!(
            r#"{{"instance_id":"Acme__tool-1.2","repo":"acme/tool","base_commit":"b","problem_statement":"p"{more}}}"#
        );
        serde_json::from_str(&text).expect("a line")
    }

    #[test]
    fn a_line_of_swe_bench_is_read_and_its_tests_are_words_of_their_own() {
        let line = r#","patch":"the solution","FAIL_TO_PASS":"[\"t::a b\"]","PASS_TO_PASS":["t::c"],"version":"1""#;
        let entry = parse_entry(line);
        assert_eq!(entry.case_id(), "acme__tool-1-2");
        let checks = entry.checks(Some("pytest {tests}")).expect("checks");
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(checks[0], ("FAIL_TO_PASS".into(), words(&["sh", "-c", "pytest \"$@\"", "tests", "t::a b"])));
        assert_eq!(checks[1].1.last().map(String::as_str), Some("t::c"));
    }

    #[test]
    fn what_cannot_be_checked_is_refused() {
        assert!(parse_entry("").checks(None).expect_err("nothing").contains("neither"));
        let named = parse_entry(r#","FAIL_TO_PASS":["t"]"#);
        assert!(named.checks(None).expect_err("unknown").contains("--test"));
        assert!(named.checks(Some("pytest")).expect_err("no place").contains("{tests}"));
        assert_eq!(parse_entry(r#","tests":"make check""#).checks(None).map(|checks| checks.len()), Ok(1));
    }
}
