//! A commit of the runner as the git program reads it.

use std::io::Write as _;
use std::process::Stdio;

use crate::repo::Repo;

/// A commit's message, taken apart by git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Id of the commit.
    pub commit: String,
    /// First line.
    pub subject: String,
    /// What stands between the first line and the trailers, behind the title that an iteration's message begins with.
    pub body: String,
    /// The title of the task and how it ended, where the message is of an iteration.
    pub headline: Option<String>,
    /// Trailers in order.
    pub trailers: Vec<(String, String)>,
}

impl Receipt {
    /// Reads a commit.
    ///
    /// # Panics
    ///
    /// Panics if git cannot.
    pub fn read(repo: &Repo, revision: &str) -> Self {
        let message = repo.git(&["log", "-1", "--format=%B", revision]);
        let parsed = parse(repo, &message);
        let trailers: Vec<(String, String)> = parsed
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
            commit: repo.git(&["rev-parse", revision]),
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

fn parse(repo: &Repo, message: &str) -> String {
    let mut command = repo.command("git");
    command.args(["interpret-trailers", "--parse"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("git can be started");
    let mut input = child.stdin.take().expect("BUG: standard input is a pipe");
    input.write_all(message.as_bytes()).expect("git reads the message");
    drop(input);
    let output = child.wait_with_output().expect("git ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
