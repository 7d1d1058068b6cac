//! Builds the text of a `config.toml` for tests. Nothing is validated: a test may want it wrong.

use std::fmt::Write as _;

/// A configuration: agent and guard are commands; everything else is lines of TOML in their sections.
#[derive(Debug, Clone, Default)]
pub struct Config {
    kind: Option<String>,
    agent: Vec<String>,
    guard_command: Vec<String>,
    top: Vec<String>,
    executor: Vec<String>,
    guard: Vec<String>,
    rest: Vec<String>,
}

impl Config {
    /// Creates a configuration with an agent and a guard, each a program and its arguments.
    pub fn new(agent: &[&str], guard: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self { agent: owned(agent), guard_command: owned(guard), ..Self::default() }
    }

    /// Replaces the agent's command with a built-in kind of agent.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.kind = Some(kind.to_owned());
        self
    }

    /// Replaces the guard's command.
    #[must_use]
    pub fn guard_command(mut self, guard: &[&str]) -> Self {
        self.guard_command = guard.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Adds a line before all sections, like `stall_after = 3`.
    #[must_use]
    pub fn top(mut self, line: &str) -> Self {
        self.top.push(line.to_owned());
        self
    }

    /// Adds a line to `[executor]`.
    #[must_use]
    pub fn executor(mut self, line: &str) -> Self {
        self.executor.push(line.to_owned());
        self
    }

    /// Adds a line to `[guard]`.
    #[must_use]
    pub fn guard(mut self, line: &str) -> Self {
        self.guard.push(line.to_owned());
        self
    }

    /// Adds lines after all sections; they must begin with a section header.
    #[must_use]
    pub fn section(mut self, lines: &str) -> Self {
        self.rest.push(lines.to_owned());
        self
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut section = |head: &str, lines: &[String]| {
            let _ = writeln!(text, "{head}");
            for line in lines {
                let _ = writeln!(text, "{line}");
            }
        };
        section("# of a test", &self.top);
        let agent = match &self.kind {
            Some(kind) => format!("[executor]\nkind = {kind:?}"),
            None => format!("[executor]\nkind = \"command\"\ncommand = {:?}", self.agent),
        };
        section(&agent, &self.executor);
        // A guard program of the test reads nothing from the repository, unless the test says otherwise.
        let is_named = self.guard.iter().any(|line| line.starts_with("definition"));
        let watched = if is_named { "" } else { "\ndefinition = []" };
        // A red guard of a test is meant to be red: tests of flaky guards say otherwise.
        let says_flakes = self.guard.iter().any(|line| line.starts_with("flakes"));
        let flakes = if says_flakes { "" } else { "\nflakes = false" };
        section(&format!("[guard]\ncommand = {:?}{watched}{flakes}", self.guard_command), &self.guard);
        section("", &self.rest);
        text
    }
}
