//! The error that ends a command: message, causes, hint and exit code.
//!
//! Converts errors of the daemon or the connection for a person; `ui` prints them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::io;

use protocol::client::{CallError, ConnectError};
use protocol::command::{Command, NextSteps};
use protocol::error::{ErrorData, ErrorKind, ExitStatus, RunChoice};
use protocol::host::Host;
use protocol::shell;
use serde::Serialize;

use crate::text::paint::{BAD, HINT, paint};
use crate::text::sanitize::{escape_json, sanitize};
use crate::text::wrap::wrap_commands;

/// Number of runs for which a command is suggested.
const CHOICES_SHOWN: usize = 5;

/// Why a command ended without an answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error to report.
    Report(Box<FailureReport>),
    /// The reader of the output has gone: there is no one to report to.
    BrokenPipe,
}

/// What is reported about a failure.
#[derive(Debug)]
pub(crate) struct FailureReport {
    /// The exit code.
    pub(crate) status: ExitStatus,
    /// A code for scripts.
    pub(crate) kind: &'static str,
    /// What went wrong.
    pub(crate) message: String,
    /// What led to it, outermost first.
    pub(crate) causes: Vec<String>,
    /// What to do next, as a sentence.
    pub(crate) hint: Option<String>,
    /// The commands in that sentence.
    pub(crate) commands: Vec<Command>,
    /// The runs that the command could be about.
    pub(crate) choice: Option<RunChoice>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    error: ErrorFields<'a>,
}

#[derive(Serialize)]
struct ErrorFields<'a> {
    kind: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Command]>::is_empty")]
    commands: &'a [Command],
    causes: &'a [String],
}

impl Failure {
    /// Kind of failures about another machine; their hints already say where each command is to be typed.
    pub(crate) const HOST_KIND: &str = "host";

    /// Creates a failure from its exit code, kind and message.
    pub(crate) fn new(status: ExitStatus, kind: &'static str, message: impl Into<String>) -> Self {
        let report = FailureReport {
            status,
            kind,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            commands: Vec::new(),
            choice: None,
        };
        Self::Report(Box::new(report))
    }

    /// Creates the failure of a command line that parses but makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitStatus::Usage, "usage", message)
    }

    /// Creates the failure of a system operation; `doing` says what was being done to which path.
    pub(crate) fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::BrokenPipe;
        }
        Self::new(ExitStatus::Error, "io", doing).caused_by(error.to_string())
    }

    /// Creates the failure of a temporary file or folder.
    pub(crate) fn temp_file(error: &io::Error) -> Self {
        let folder = std::env::temp_dir();
        Self::io(format!("creating a temporary file in {}", folder.display()), error)
            .hint("name another directory with TMPDIR, or create that one")
    }

    /// Appends a cause below the existing ones.
    #[must_use]
    pub(crate) fn caused_by(mut self, cause: impl Into<String>) -> Self {
        if let Self::Report(report) = &mut self {
            report.causes.push(cause.into());
        }
        self
    }

    /// Appends a chain of causes.
    #[must_use]
    fn caused_by_chain(mut self, first: Option<&(dyn Error + 'static)>) -> Self {
        let mut next = first;
        while let Some(cause) = next {
            self = self.caused_by(cause.to_string());
            next = cause.source();
        }
        self
    }

    /// Sets what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, ways: impl Into<NextSteps>) -> Self {
        if let Self::Report(report) = &mut self {
            (report.hint, report.commands) = ways.into().into_parts();
        }
        self
    }

    /// Sets what to do next, unless already set.
    #[must_use]
    pub(crate) fn or_hint(self, ways: impl Into<NextSteps>) -> Self {
        if matches!(&self, Self::Report(report) if report.hint.is_none()) { self.hint(ways) } else { self }
    }

    /// Suggests the command that was typed, for each run that it could be about; `words` are its arguments.
    #[must_use]
    pub(crate) fn with_choice(self, words: &[String]) -> Self {
        let Self::Report(report) = &self else { return self };
        let Some(choice) = report.choice.clone().filter(|choice| !choice.ids.is_empty()) else { return self };
        let command = |id: &String| {
            let again = repeat_for_run(words, choice.named.as_deref(), id);
            shell::join_args(again.iter().map(AsRef::as_ref))
        };
        let commands: Vec<String> = choice.ids.iter().take(CHOICES_SHOWN).map(command).collect();
        let more = choice.ids.len().saturating_sub(commands.len());
        let more = if more > 0 {
            format!("; or {}: runnerctl queue --ended", if more == 1 { "another one" } else { "another" })
        } else {
            String::new()
        };
        self.hint(commands.join("; or: ") + &more)
    }

    /// Adds the name of the queried machine to suggested commands.
    #[must_use]
    pub(crate) fn with_host(mut self, host: &Host) -> Self {
        if let Self::Report(report) = &mut self
            && report.kind != Self::HOST_KIND
        {
            report.hint = report.hint.take().map(|hint| hint_for_host(host, hint, &report.commands));
            report.commands.iter_mut().for_each(|command| *command = command.on_host(host));
        }
        self
    }

    /// Returns the exit code.
    pub(crate) fn status(&self) -> ExitStatus {
        match self {
            Self::Report(report) => report.status,
            Self::BrokenPipe => ExitStatus::Success,
        }
    }
}

impl FailureReport {
    /// Returns the object that `--json` prints, on one line.
    pub(crate) fn to_json(&self) -> String {
        let Self { kind, message, hint, commands, causes, .. } = self;
        let error = ErrorFields { kind, message, hint: hint.as_deref(), commands, causes };
        escape_json(&serde_json::to_string(&ErrorObject { error }).expect("BUG: an error is not an object")) + "\n"
    }

    /// Returns the lines for a person: `error:`, `caused by:`, and after a blank line `hint:`; within `width` if there is
    /// one.
    pub(crate) fn to_text(&self, width: Option<usize>) -> String {
        let wrap =
            |label: &str, text: &str| indent_lines(text, width.map(|width| width.saturating_sub(label.len() + 1)));
        let mut text = format!("{} {}\n", paint(BAD, "error:"), wrap("error:", &self.message));
        for cause in &self.causes {
            let _ = writeln!(text, "{} {}", paint(BAD, "caused by:"), wrap("caused by:", cause));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "\n{} {}", paint(HINT, "hint:"), wrap("hint:", hint));
        }
        text
    }
}

/// Returns the arguments of this program.
pub(crate) fn typed_words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the command line with these words, and further options.
pub(crate) fn repeat_command<'a>(words: &'a [String], options: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut again = vec![Cow::Borrowed("runnerctl")];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        // The machine is added to every suggested command.
        if word == "--host" {
            words.next();
        } else if !word.starts_with("--host=") {
            again.push(Cow::Borrowed(word));
        }
    }
    let end = again.iter().position(|word| word == "--").unwrap_or(again.len());
    again.splice(end..end, options.iter().copied().map(Cow::Borrowed));
    again
}

/// Returns a command line that names a run, in the place of what it named before, or else with `--run`.
fn repeat_for_run<'a>(words: &'a [String], named: Option<&str>, id: &'a str) -> Vec<Cow<'a, str>> {
    let Some(named) = named else { return repeat_command(words, &["--run", id]) };
    let mut again = repeat_command(words, &[]);
    let option = format!("--run={named}");
    for word in &mut again {
        if *word == named {
            *word = Cow::Borrowed(id);
        } else if *word == option {
            *word = Cow::Owned(format!("--run={id}"));
        }
    }
    again
}

/// Adds the name of another machine to each command in a sentence.
fn hint_for_host(host: &Host, hint: String, commands: &[Command]) -> String {
    let foreign = commands.iter().filter(|command| command.argv.first().is_some_and(|program| program != "runnerctl"));
    let hint = foreign.fold(hint, |hint, command| hint.replace(&command.to_shell(), &command.on_host(host).to_shell()));
    host.with_host_in_text(&hint)
}

fn indent_lines(text: &str, width: Option<usize>) -> String {
    let line = |line: &str| wrap_commands(&sanitize(line), width.unwrap_or(usize::MAX), 2);
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n  ")
}

impl From<ErrorData> for Failure {
    fn from(error: ErrorData) -> Self {
        Self::Report(Box::new(FailureReport {
            status: error.kind.into(),
            kind: error.kind.as_str(),
            message: error.message,
            causes: error.causes,
            hint: error.hint,
            commands: error.commands,
            choice: error.choice,
        }))
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let failure = |kind| Self::new(error.exit_status(), kind, error.to_string());
        match error {
            CallError::Refused(data) => data.into(),
            CallError::Gone => failure("no_daemon").hint("runnerctl daemon status"),
            CallError::Timeout => failure("timeout").hint("runnerctl daemon status"),
            CallError::Protocol(_) => failure("protocol"),
        }
    }
}

impl From<jsonrpsee::core::client::Error> for Failure {
    fn from(error: jsonrpsee::core::client::Error) -> Self {
        CallError::from(error).into()
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let kind = match error {
            ConnectError::Refused(data) => return data.into(),
            ConnectError::Paths(_) => "usage",
            ConnectError::InsideIteration { .. } => ErrorKind::InsideIteration.as_str(),
            ConnectError::Thread(_) => "io",
            ConnectError::Foreign { .. } => "foreign_daemon",
            ConnectError::ProtocolMismatch { .. } | ConnectError::DevelopmentBuild { .. } => {
                ErrorKind::ProtocolMismatch.as_str()
            }
            ConnectError::Ssh(_) => Self::HOST_KIND,
            ConnectError::NoDaemon { .. }
            | ConnectError::Unreachable { .. }
            | ConnectError::Handshake { .. }
            | ConnectError::Start(_) => "no_daemon",
        };
        let failure = Self::new(error.exit_status(), kind, error.to_string()).caused_by_chain(error.source());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Returns whether the daemon refused with this error kind.
pub(crate) fn is_refusal(error: &CallError, kind: ErrorKind) -> bool {
    matches!(error, CallError::Refused(data) if data.kind == kind)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn sample_report() -> FailureReport {
        let mut data = ErrorData::new(ErrorKind::DirtyTree, "the working tree of /p has changes\na.txt\nb.txt");
        data.causes.push("a cause\u{1b}[2J".into());
        match Failure::from(data.hint("git stash")) {
            Failure::Report(report) => *report,
            Failure::BrokenPipe => panic!("a refusal is reported"),
        }
    }

    #[test]
    fn an_error_names_its_causes_and_the_next_command() {
        insta::assert_snapshot!(strip_str(&sample_report().to_text(None)), @r"
        error: the working tree of /p has changes
          a.txt
          b.txt
        caused by: a cause␛[2J

        hint: git stash
        ");
    }

    #[test]
    fn an_error_is_within_the_terminal_and_its_commands_are_whole() {
        let data =
            ErrorData::new(ErrorKind::NotFound, "`nonsense` is neither a run of this repository nor a path there");
        let hint =
            "name one of its runs with --run: a, b; a goal is given with: runnerctl start -m 'What is to be true'";
        let Failure::Report(report) = Failure::from(data.hint(hint)) else { panic!("a refusal is reported") };
        insta::assert_snapshot!(strip_str(&report.to_text(Some(50))), @r"
        error: `nonsense` is neither a run of this
          repository nor a path there

        hint: name one of its runs with --run: a, b; a
          goal is given with:
          runnerctl start -m 'What is to be true'
        ");
    }

    #[test]
    fn an_error_as_json_has_the_kind_that_scripts_act_on() {
        insta::assert_snapshot!(sample_report().to_json(), @r#"{"error":{"kind":"dirty_tree","message":"the working tree of /p has changes\na.txt\nb.txt","hint":"git stash","causes":["a cause\u001b[2J"]}}"#);
    }

    #[test]
    fn a_hint_for_another_machine_says_where_each_command_is_typed() {
        let ways = NextSteps::from(Command::show_changes()).join(", or ", "runnerctl resume");
        let host: Host = "ssh://gpu".parse().expect("a host");
        let refusal = Failure::from(ErrorData::new(ErrorKind::DirtyTree, "m").hint(ways));
        let Failure::Report(report) = refusal.with_host(&host) else { panic!("a refusal is reported") };
        let lines: Vec<_> = report.commands.iter().map(Command::to_shell).collect();
        assert_eq!(report.hint.as_deref(), Some("ssh -t gpu 'git status', or runnerctl --host ssh://gpu resume"));
        assert_eq!(lines, ["ssh -t gpu 'git status'", "runnerctl --host ssh://gpu resume"]);
    }

    #[test]
    fn a_command_is_suggested_again_with_all_its_words_and_a_run() {
        let again = |named: Option<&str>, line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let data = ErrorData::new(ErrorKind::InvalidRequest, "m").hint("runnerctl queue");
            let failure = Failure::from(data.choice(named, ["tidy-1", "tidy-2"])).with_choice(&words);
            let Failure::Report(report) = failure else { panic!("a refusal is reported") };
            report.hint.unwrap_or_default()
        };
        let hints = [
            again(None, "pause --now"),
            again(None, "--host ssh://gpu -C ~/p bisect -- true"),
            again(Some("ti"), "log --run=ti -f"),
            again(Some("ti"), "retry root ti"),
        ];
        insta::assert_snapshot!(hints.join("\n"), @r"
        runnerctl pause --now --run tidy-1; or: runnerctl pause --now --run tidy-2
        runnerctl -C '~/p' bisect --run tidy-1 -- true; or: runnerctl -C '~/p' bisect --run tidy-2 -- true
        runnerctl log --run=tidy-1 -f; or: runnerctl log --run=tidy-2 -f
        runnerctl retry root tidy-1; or: runnerctl retry root tidy-2
        ");
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let failure = Failure::io("writing", &io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.status(), ExitStatus::Success);
    }
}
