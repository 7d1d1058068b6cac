//! Output: facts go to stdout, everything else to stderr, styles only to a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use protocol::error::ExitStatus;
use protocol::host::Host;
use serde::Serialize;

use crate::args::{ColorWhen, GlobalArgs};
use crate::failure::Failure;
use crate::text::sanitize::{ascii_symbols, escape_json};
use crate::text::screen::{Screen, is_plain_requested};
use crate::text::wrap::fit_lines;

/// Output settings.
#[derive(Debug)]
pub(crate) struct Ui {
    /// Whether answers are JSON.
    pub(crate) json: bool,
    quiet: bool,
    screen: Screen,
}

/// An answer prefixed with its schema name.
#[derive(Serialize)]
struct TaggedBody<'a, T> {
    schema: String,
    #[serde(flatten)]
    body: &'a T,
}

impl Ui {
    /// Determines the settings from options and terminal.
    pub(crate) fn from_terminal(global: &GlobalArgs) -> Self {
        let is_plain = global.plain || is_plain_requested(|name| std::env::var(name).ok());
        match global.color {
            ColorWhen::Auto if is_plain => anstream::ColorChoice::Never,
            ColorWhen::Auto => anstream::ColorChoice::Auto,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        Self { json: global.json, quiet: global.quiet, screen: Screen::from_stdout(is_plain) }
    }

    /// The same output settings, with `--host` added to suggested commands.
    pub(crate) fn for_host(self, host: Option<&Host>) -> Self {
        let screen = host.map_or(self.screen, |host| self.screen.for_host(host));
        Self { screen, ..self }
    }

    /// Returns the current rendering parameters.
    pub(crate) fn screen(&self) -> Screen {
        self.screen.refreshed()
    }

    /// Whether progress can be drawn in place.
    pub(crate) fn can_draw_progress(&self) -> bool {
        !self.is_terse() && !self.screen.is_plain && io::stderr().is_terminal()
    }

    /// Whether only the final answer is wanted.
    pub(crate) fn is_terse(&self) -> bool {
        self.json || self.quiet
    }

    /// Whether the user can be asked a question.
    pub(crate) fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Prints an answer: one JSON object named `runner/<name>.v1`, or text.
    pub(crate) fn print_answer<T: Serialize>(
        &self,
        name: &str,
        body: &T,
        text: impl FnOnce(&Screen) -> String,
    ) -> Result<(), Failure> {
        if self.json { Self::print_object(name, body) } else { self.print_text(&text(&self.screen())) }
    }

    /// Prints one JSON object named `runner/<name>.v1` on one line.
    pub(crate) fn print_object<T: Serialize>(name: &str, body: &T) -> Result<(), Failure> {
        let tagged = TaggedBody { schema: format!("runner/{name}.v1"), body };
        let line = serde_json::to_string(&tagged).expect("BUG: an answer is not an object");
        print_stdout(&(escape_json(&line) + "\n"))
    }

    /// Prints a JSON document in a third-party format.
    pub(crate) fn print_document<T: Serialize>(body: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(body).expect("BUG: a document is not JSON");
        print_stdout(&(escape_json(&text) + "\n"))
    }

    /// Prints facts to stdout.
    pub(crate) fn print_text(&self, text: &str) -> Result<(), Failure> {
        print_stdout(&self.to_displayable(&fit_lines(text, self.screen().width)))
    }

    /// Prints text for a program, unchanged.
    pub(crate) fn print_verbatim(text: &str) -> Result<(), Failure> {
        print_stdout(text)
    }

    /// Returns text in characters that the terminal can display.
    pub(crate) fn to_displayable<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.screen.unicode { Cow::Borrowed(text) } else { Cow::Owned(ascii_symbols(text)) }
    }

    /// Prints a note to stderr, unless `--quiet` or `--json` is given.
    pub(crate) fn print_note(&self, text: &str) {
        if !self.is_terse() {
            // A lost note does no harm, and there is no one to tell that stderr is closed.
            let text = self.screen.with_host_in_text(text);
            let text = fit_lines(&text, self.error_width());
            let _ = anstream::stderr().lock().write_all(self.to_displayable(&text).as_bytes());
        }
    }

    /// Returns the width of stderr, if that is a terminal and meant for eyes.
    fn error_width(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stderr()).filter(|_| !self.screen.is_plain);
        size.map(|(width, _)| usize::from(width.0))
    }

    /// Reports a failure on stderr and returns its exit code.
    pub(crate) fn report_failure(&self, failure: &Failure) -> ExitStatus {
        if let Failure::Report(report) = failure {
            let text = if self.json { report.to_json() } else { report.to_text(self.error_width()) };
            let _ = anstream::stderr().lock().write_all(self.to_displayable(&text).as_bytes());
        }
        failure.status()
    }
}

/// Prints text unchanged.
pub(crate) fn print_stdout(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::io("writing output", &error))
}
