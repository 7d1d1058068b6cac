//! A commit of the runner as the git program parses it.

use crate::repo::Repo;

/// What git prints of a commit: its id, its message, and the trailers it finds in the message.
const FORMAT: &str = "--format=tformat:%H%x1f%B%x1f%(trailers:only,unfold)%x1e";
const FIELD_SEPARATOR: char = '\u{1f}';
const RECORD_SEPARATOR: char = '\u{1e}';

/// A commit message, parsed by git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptCommit {
    /// Id of the commit.
    pub commit: String,
    /// First line.
    pub subject: String,
    /// Text between the first line and the trailers, after the headline with which an iteration's message begins.
    pub body: String,
    /// Title of the task and how it ended, if the message is an iteration's.
    pub headline: Option<String>,
    /// Trailers, in order.
    pub trailers: Vec<(String, String)>,
}

impl ReceiptCommit {
    /// Reads a commit.
    ///
    /// # Panics
    ///
    /// Panics if git cannot read it.
    pub fn read(repo: &Repo, revision: &str) -> Self {
        let mut all = Self::read_all(repo, &["-1", revision]);
        all.pop().unwrap_or_else(|| panic!("{revision} is not a commit"))
    }

    /// Reads the commits that `git log` shows for these arguments, in one call.
    ///
    /// # Panics
    ///
    /// Panics if git cannot read them.
    pub fn read_all(repo: &Repo, args: &[&str]) -> Vec<Self> {
        let log = repo.git(&[&["log", FORMAT], args].concat());
        log.split_terminator(RECORD_SEPARATOR)
            .map(|record| Self::parse_record(record.trim_start_matches('\n')))
            .collect()
    }

    fn parse_record(record: &str) -> Self {
        let mut parts = record.split(FIELD_SEPARATOR);
        let mut part = || parts.next().expect("git shows id, message and trailers");
        let commit = part().to_owned();
        let message = part().trim_end();
        let trailers = part();
        let trailers: Vec<(String, String)> = trailers
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut paragraphs: Vec<&str> = message.split("\n\n").collect();
        if !trailers.is_empty() {
            paragraphs.pop();
        }
        let is_iteration = trailers.iter().any(|(name, value)| name == "Runner-Commit" && value == "iteration");
        let headline = (is_iteration && paragraphs.len() > 1).then(|| paragraphs.remove(1).to_owned());
        Self {
            headline,
            commit,
            subject: paragraphs.first().copied().unwrap_or_default().to_owned(),
            body: paragraphs.get(1..).unwrap_or_default().join("\n\n"),
            trailers,
        }
    }

    /// Returns the value of a trailer.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the name of the verdict, without its detail.
    pub fn verdict(&self) -> &str {
        let line = self.trailer("Runner-Verdict").unwrap_or_default();
        line.split(':').next().unwrap_or_default()
    }
}
