//! Attributes that a person's own git would apply to the runner's files, whose bytes it has to leave alone.
//! `.runner/.gitattributes` turns them off, but `info/attributes` outranks it.

use std::path::PathBuf;

use gix::bstr::ByteSlice as _;
use runner_core::files::layout;

use super::pinned_config::ATTRIBUTES_FILE;
pub use super::pinned_config::RUNNER_ATTRIBUTES_LINE;
use super::program::GitCommand;
use crate::durable::read_regular_file;
use crate::{GitError, Repository};

/// Files that have to be stored as they are.
const RUNNER_FILES: [&str; 7] =
    [layout::GOAL, layout::CONFIG, layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::TESTS, layout::NOTES];
/// Attributes by which git changes what it stores or checks out.
const CONVERSIONS: [&str; 4] = ["filter", "working-tree-encoding", "ident", "eol"];

/// A rule that changes the runner's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerAttribute {
    /// The file that has the rule.
    pub file: PathBuf,
    /// The line in it, from 1.
    pub line: usize,
    /// The attribute, as written in such a file.
    pub attribute: String,
    /// The first file of the runner that it concerns.
    pub path: String,
}

impl Repository {
    /// Finds a rule by which git, outside of the runner's own operations, would change the runner's files.
    pub fn find_runner_attribute(&self) -> Result<Option<RunnerAttribute>, GitError> {
        let file = self.common_dir.join(ATTRIBUTES_FILE);
        // Whatever else has rules is outranked by the runner's own file.
        let Ok(rules) = read_regular_file(&file) else { return Ok(None) };
        let current = self.with_pin(None);
        let git = GitCommand::new(&current, "check-attr").arg("-z").args(CONVERSIONS).arg("--").args(RUNNER_FILES);
        let listing = git.run()?;
        let mut words = listing.split(|byte| *byte == 0).map(|word| word.to_str_lossy().into_owned());
        while let (Some(path), Some(name), Some(value)) = (words.next(), words.next(), words.next()) {
            let attribute = if value == "set" { name.clone() } else { format!("{name}={value}") };
            let has_rule = |line: &[u8]| line.fields().skip(1).any(|word| word == attribute.as_bytes());
            let line = rules
                .lines()
                .collect::<Vec<_>>()
                .into_iter()
                .rposition(has_rule)
                .filter(|_| current.changes_content(&name, &value));
            if let Some(line) = line {
                return Ok(Some(RunnerAttribute { file, line: line + 1, attribute, path }));
            }
        }
        Ok(None)
    }

    /// Whether git changes a file with this attribute. A filter without a program changes nothing.
    fn changes_content(&self, name: &str, value: &str) -> bool {
        let has_program = || {
            let repo = self.open().ok();
            let keys = ["clean", "smudge", "process"].map(|key| format!("filter.{value}.{key}"));
            repo.is_none_or(|repo| keys.iter().any(|key| repo.config_snapshot().string(key).is_some()))
        };
        match (name, value) {
            (_, "unspecified" | "unset") => false,
            ("ident", value) => value == "set",
            ("eol", value) => value == "crlf",
            ("filter", _) => has_program(),
            _ => true,
        }
    }
}
