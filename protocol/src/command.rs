//! Commands that are suggested to a person: their words, their purposes, and the sentences that contain them.
//!
//! A sentence is for reading; only a command's words, quoted for a shell, are for pasting. What a command does is not
//! known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::shell;

/// A command to type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// Its purpose, in a few words.
    pub label: String,
    /// The program and its arguments, unquoted: quote them to show them for a shell.
    pub argv: Vec<String>,
}

/// Commands without parameters: the purpose and the command line of each.
pub const KNOWN_COMMANDS: &[(&str, &str)] = &[
    ("Continue the run", "runnerctl resume"),
    ("Try again now", "runnerctl resume --now"),
    ("Grant 20 more iterations", "runnerctl resume --more 20"),
    ("Show status", "runnerctl status"),
    ("List repositories", "runnerctl repos"),
    ("List ended runs", "runnerctl queue --ended"),
    ("Start a run", "runnerctl start"),
    ("End the run", "runnerctl cancel"),
    ("Pause after this iteration", "runnerctl pause"),
    ("Pause now", "runnerctl pause --now"),
    ("Edit the task tree", "runnerctl edit"),
    ("Show the task tree", "runnerctl tree"),
    ("Validate .runner/", "runnerctl validate"),
    ("Show open questions", "runnerctl questions"),
    ("Show all questions", "runnerctl questions --all"),
    ("Show the log", "runnerctl log"),
    ("Show the settings", "runnerctl config get"),
    ("Show the prices", "runnerctl config get prices"),
    ("Edit the settings", "runnerctl config edit"),
    ("Remove the cost limit", "runnerctl config set max_cost_usd --default"),
    ("Accept the changed guard files", "runnerctl guard accept"),
    ("Show daemon status", "runnerctl daemon status"),
    ("Run the daemon here", "runnerctl daemon run"),
    ("Run doctor", "runnerctl doctor"),
    ("Create .runner/", "runnerctl init"),
    ("Open the page", "runnerctl ui"),
    ("Commit", "git commit"),
    ("Create a first commit", "git commit --allow-empty -m Begin"),
    ("Show uncommitted changes", "git status"),
    ("Show the history", "git log --oneline"),
    ("Show the branch's history", "git log --oneline --first-parent"),
    ("Show your git configuration", "git config --global --list"),
    ("Show your git configuration", "git config --global --list --show-origin"),
    ("Check the objects", "git fsck"),
    ("Check for missing objects", "git fsck --connectivity-only"),
    ("Fetch missing objects", "git fetch --refetch --no-filter"),
    ("Create a repository", "git init"),
];

/// The commands of `runnerctl` that are about one run, and take `--run`.
const RUN_COMMANDS: [&str; 20] = [
    "add",
    "answer",
    "approve",
    "cancel",
    "config edit",
    "config set",
    "deliver",
    "edit",
    "explain",
    "guard accept",
    "land",
    "log",
    "note",
    "pause",
    "reject",
    "resume",
    "retry",
    "status",
    "step",
    "tree",
];

impl Command {
    /// Makes one of its words.
    fn new<'a>(label: &str, argv: impl IntoIterator<Item = &'a str>) -> Self {
        Self { label: label.to_owned(), argv: argv.into_iter().map(str::to_owned).collect() }
    }

    /// Returns the known command with this command line.
    pub fn from_known_line(line: &str) -> Option<Self> {
        KNOWN_COMMANDS.iter().find(|(_, known)| *known == line).map(|(label, line)| Self::new(label, line.split(' ')))
    }

    /// Gives a task another set of attempts, and continues the run.
    pub fn retry(node: &str) -> Self {
        Self::new("Retry the task", ["runnerctl", "retry", node, "--resume"])
    }

    /// Starts a run that was started under this id before.
    pub fn start_again(id: &str) -> Self {
        Self::new("Start it again", ["runnerctl", "start", "--id", id])
    }

    /// Approves the task that an iteration has finished.
    pub fn approve(run: &str, iter: u32) -> Self {
        Self::new("Approve", ["runnerctl", "approve", "--run", run, "--iter", &iter.to_string()])
    }

    /// Lists the iterations of a run.
    pub fn list_iterations(run: &str) -> Self {
        Self::new("List its iterations", ["runnerctl", "log", "--run", run])
    }

    /// Checks whether the rules made a run.
    pub fn verify(run: &str) -> Self {
        Self::new("Verify this run", ["runnerctl", "verify", "--run", run])
    }

    /// Shows the changes of an iteration.
    pub fn show_diff(run: &str, iter: u32) -> Self {
        Self::new("Show the diff", ["runnerctl", "log", &iter.to_string(), "--diff", "--run", run])
    }

    /// Sets a key of a run's configuration.
    pub fn set_config(key: &str, value: &str, run: &str) -> Self {
        Self::new(&format!("Set {key} to {value}"), ["runnerctl", "config", "set", key, value, "--run", run])
    }

    /// Continues a run.
    pub fn resume(run: &str) -> Self {
        Self::new("Continue the run", ["runnerctl", "resume", "--run", run])
    }

    /// Shows a run.
    pub fn show_run(run: &str) -> Self {
        Self::new("Show the run", ["runnerctl", "status", "--run", run])
    }

    /// Fetches from `origin`.
    pub fn fetch(refspec: &str) -> Self {
        Self::new("Fetch it", ["git", "fetch", "origin", refspec])
    }

    /// Trusts a repository of another owner.
    pub fn trust(path: &str) -> Self {
        Self::new("Trust this repository", ["git", "config", "--global", "--add", "safe.directory", path])
    }

    /// Checks out a branch.
    pub fn switch(branch: &str) -> Self {
        Self::new("Check out the branch", ["git", "switch", branch])
    }

    /// Restores the committed version of a file.
    pub fn restore_file(path: &str) -> Self {
        Self::new("Restore the file", ["git", "restore", path])
    }

    /// Shows which files a commit has changed.
    pub fn show_files(revision: &str) -> Self {
        Self::new("Show the saved files", ["git", "show", "--stat", revision])
    }

    /// Shows the uncommitted changes.
    pub fn show_changes() -> Self {
        Self::new("Show uncommitted changes", ["git", "status"])
    }

    /// Stages files by their names.
    pub fn stage<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new("Stage these files", ["git", "add", "--"].into_iter().chain(paths))
    }

    /// Stashes files by their names.
    pub fn stash<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new("Stash these files", ["git", "stash", "push", "-u", "--"].into_iter().chain(paths))
    }

    /// Returns it as it is typed into a shell.
    pub fn to_shell(&self) -> String {
        shell::join_args(self.argv.iter().map(String::as_str))
    }

    /// Returns it for a person whose shell is not in `directory`; programs without such an option stay as they are.
    #[must_use]
    pub fn in_directory(&self, directory: &str) -> Self {
        let mut command = self.clone();
        if matches!(self.argv.first().map(String::as_str), Some("runnerctl" | "git")) {
            command.argv.splice(1..1, ["-C".to_owned(), directory.to_owned()]);
        }
        command
    }

    /// Returns it with the name of the run that it is about, if it takes one and has none.
    fn about_run(&self, run: &str) -> Self {
        let words = self.argv.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join(" ");
        let is_about_run = RUN_COMMANDS.iter().any(|name| words.strip_prefix(name).is_some_and(is_word_end));
        let mut command = self.clone();
        if self.argv.first().is_some_and(|program| program == "runnerctl")
            && is_about_run
            && !self.argv.iter().any(|word| word == "--run")
        {
            command.argv.extend(["--run".to_owned(), run.to_owned()]);
        }
        command
    }

    /// Returns it for a person on another machine than `host`: `runnerctl` asks there, other programs start there.
    #[must_use]
    pub fn on_host(&self, host: &Host) -> Self {
        let mut command = self.clone();
        if self.argv.first().is_some_and(|program| program == "runnerctl") {
            command.argv.splice(1..1, ["--host".to_owned(), host.to_string()]);
        } else {
            command.argv = host.ssh_argv(&self.to_shell());
        }
        command
    }
}

/// Whether a word ends before this text.
fn is_word_end(rest: &str) -> bool {
    !rest.starts_with(|next: char| next.is_alphanumeric() || "-_".contains(next))
}

/// Returns the command about a run that a text begins with, if its arguments are for a person to fill in, like
/// `runnerctl note TEXT`.
fn find_template(text: &str) -> Option<&str> {
    let words = text.strip_prefix("runnerctl ")?;
    let name = RUN_COMMANDS.iter().find(|name| words.strip_prefix(**name).is_some_and(is_word_end))?;
    let mut end = "runnerctl ".len() + name.len();
    while let Some(rest) = text[end..].strip_prefix(' ') {
        let length = rest.find(|next: char| !next.is_ascii_uppercase()).unwrap_or(rest.len());
        if length < 2 || !is_word_end(&rest[length..]) {
            break;
        }
        end += 1 + length;
    }
    let is_named = text[end..].starts_with(" --run ");
    (end > "runnerctl ".len() + name.len() && !is_named).then_some(&text[..end])
}

/// What a person can do next: a sentence, and the commands in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextSteps {
    pub(crate) text: String,
    pub(crate) commands: Vec<Command>,
}

impl NextSteps {
    /// Joins another way to it.
    #[must_use]
    pub fn join(mut self, separator: &str, next: impl Into<Self>) -> Self {
        let Self { text, commands } = next.into();
        self.text += separator;
        self.text += &text;
        for command in commands {
            self.add_command(command);
        }
        self
    }

    /// Joins what comes after it.
    #[must_use]
    pub fn then(self, next: impl Into<Self>) -> Self {
        self.join(", then: ", next)
    }

    /// Adds a command that the sentence does not name.
    #[must_use]
    pub fn with_command(mut self, command: Command) -> Self {
        self.add_command(command);
        self
    }

    /// Returns them with the name of the run that they are about, in the sentence too.
    #[must_use]
    pub fn about_run(self, run: &str) -> Self {
        let commands: Vec<Command> = self.commands.iter().map(|command| command.about_run(run)).collect();
        let lines = self.commands.iter().map(Command::to_shell).zip(commands.iter().map(Command::to_shell));
        // Of two lines of which one begins like the other, the longer one is looked for first.
        let mut lines: Vec<(String, String)> = lines.collect();
        lines.sort_by_key(|(line, _)| std::cmp::Reverse(line.len()));
        let mut text = String::new();
        let mut rest = self.text.as_str();
        while let Some(at) = rest.find("runnerctl ") {
            text += &rest[..at];
            rest = &rest[at..];
            let known = lines.iter().find(|(line, _)| rest.strip_prefix(line.as_str()).is_some_and(is_word_end));
            let (line, named) = match (known, find_template(rest)) {
                (Some((line, named)), _) => (line.as_str(), named.clone()),
                (None, Some(line)) => (line, format!("{line} --run {run}")),
                (None, None) => ("runnerctl ", "runnerctl ".to_owned()),
            };
            text += &named;
            rest = &rest[line.len()..];
        }
        Self { text: text + rest, commands }
    }

    /// Returns the sentence.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the sentence, where there is one, and the commands.
    pub fn into_parts(self) -> (Option<String>, Vec<Command>) {
        ((!self.text.is_empty()).then_some(self.text), self.commands)
    }

    fn add_command(&mut self, command: Command) {
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }
}

impl From<Command> for NextSteps {
    fn from(command: Command) -> Self {
        Self { text: command.to_shell(), commands: vec![command] }
    }
}

/// A part of a sentence that is a known command as a whole is that command; anything else is for people alone. Only what
/// was written with the program is looked through: a name of the case could read like a command.
impl From<&'static str> for NextSteps {
    fn from(text: &'static str) -> Self {
        let mut ways = Self { text: text.to_owned(), commands: Vec::new() };
        let parts = text.split([';', ',', ':', '&']).map(str::trim);
        let parts = parts.map(|part| part.strip_prefix("or ").or(part.strip_prefix("and ")).unwrap_or(part));
        parts.filter_map(Command::from_known_line).for_each(|command| ways.add_command(command));
        ways
    }
}

impl From<String> for NextSteps {
    fn from(text: String) -> Self {
        Self { text, commands: Vec::new() }
    }
}

impl From<&String> for NextSteps {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ways: impl Into<NextSteps>) -> Vec<String> {
        ways.into().into_parts().1.iter().map(Command::to_shell).collect()
    }

    #[test]
    fn a_part_of_a_sentence_is_a_command_only_as_a_whole() {
        assert_eq!(lines("runnerctl status"), ["runnerctl status"]);
        assert_eq!(lines("fix the file, commit it, then: runnerctl resume"), ["runnerctl resume"]);
        assert_eq!(
            lines("put it back, then: runnerctl resume; or: runnerctl cancel"),
            ["runnerctl resume", "runnerctl cancel"]
        );
        assert_eq!(lines("runnerctl validate, or runnerctl start"), ["runnerctl validate", "runnerctl start"]);
        assert_eq!(lines("runnerctl config set max_cost_usd --default && runnerctl resume").len(), 2);
        for prose in [
            "runnerctl status says what is held, and the daemon's log why",
            "runnerctl start shows them, and asks",
            "runnerctl start -m 'What is to be true'",
            "runnerctl reject REASON",
            "",
        ] {
            assert_eq!(lines(prose), <[&str; 0]>::default(), "{prose}");
        }
    }

    #[test]
    fn commands_about_a_run_name_it_where_they_can() {
        let ways = NextSteps::from("runnerctl resume --more 20")
            .join("; or ", Command::retry("parser"))
            .join(", or ", Command::approve("port", 3))
            .then("runnerctl resume")
            .join(" && ", Command::switch("main"))
            .join("; see: ", Command::from_known_line("runnerctl repos").expect("it is known"));
        let (text, commands) = ways.about_run("lint").into_parts();
        let expected = [
            "runnerctl resume --more 20 --run lint",
            "runnerctl retry parser --resume --run lint",
            "runnerctl approve --run port --iter 3",
            "runnerctl resume --run lint",
            "git switch main",
            "runnerctl repos",
        ];
        assert_eq!(commands.iter().map(Command::to_shell).collect::<Vec<_>>(), expected);
        let [more, retry, approve, resume, switch, repos] = expected;
        assert_eq!(text, Some(format!("{more}; or {retry}, or {approve}, then: {resume} && {switch}; see: {repos}")));
    }

    #[test]
    fn a_command_to_fill_in_names_the_run_too() {
        let named = |text: &'static str| NextSteps::from(text).about_run("lint").text().to_owned();
        assert_eq!(named("runnerctl note TEXT, or wait"), "runnerctl note TEXT --run lint, or wait");
        assert_eq!(named("runnerctl config set KEY VALUE; x"), "runnerctl config set KEY VALUE --run lint; x");
        for other in ["runnerctl note text", "runnerctl reject REASON --run a", "runnerctl start -m TEXT"] {
            assert_eq!(named(other), other);
        }
    }

    #[test]
    fn a_name_of_the_case_is_no_command_though_it_reads_like_one() {
        let named = "x; runnerctl cancel".to_owned();
        assert_eq!(lines(NextSteps::from(&named).then("runnerctl resume")), ["runnerctl resume"]);
        assert_eq!(lines(format!("commit {named}")), <[&str; 0]>::default());
    }

    #[test]
    fn a_sentence_that_is_joined_reads_as_one() {
        let ways =
            NextSteps::from(Command::retry("a.b")).join(", or ", "runnerctl edit").join("; then: ", "runnerctl resume");
        assert_eq!(ways.text(), "runnerctl retry a.b --resume, or runnerctl edit; then: runnerctl resume");
        assert_eq!(lines(ways), ["runnerctl retry a.b --resume", "runnerctl edit", "runnerctl resume"]);
        assert_eq!(NextSteps::from("").into_parts(), (None, Vec::new()));
    }

    #[test]
    fn a_command_for_elsewhere_names_the_place_and_only_where_the_program_knows_one() {
        let at = |command: Command| command.in_directory("/srv/it's here").to_shell();
        assert_eq!(at(Command::retry("a")), r"runnerctl -C '/srv/it'\''s here' retry a --resume");
        assert_eq!(at(Command::stage(["a b"])), r"git -C '/srv/it'\''s here' add -- 'a b'");
        assert_eq!(at(Command::new("Remove it", ["rm", "/tmp/x"])), "rm /tmp/x");
    }

    #[test]
    fn a_command_for_another_machine_names_it() {
        let host: Host = "ssh://me@gpu".parse().unwrap();
        assert_eq!(Command::retry("a").on_host(&host).to_shell(), "runnerctl --host ssh://me@gpu retry a --resume");
        assert_eq!(
            Command::switch("b").in_directory("/p").on_host(&host).to_shell(),
            "ssh -t -l me gpu 'git -C /p switch b'"
        );
    }
}
