//! Output: facts go to stdout, everything else to stderr, styles only to a terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use protocol::error::ExitStatus;
use protocol::host::Host;
use serde::Serialize;

use crate::args::{ColorWhen, GlobalArgs};
use crate::failure::Failure;
use crate::text::sanitize::{ascii_marks, safe_json};
use crate::text::screen::{Screen, is_plain_wanted};

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
        let is_plain = global.plain || is_plain_wanted(|name| std::env::var(name).ok());
        match global.color {
            ColorWhen::Auto if is_plain => anstream::ColorChoice::Never,
            ColorWhen::Auto => anstream::ColorChoice::Auto,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        Self { json: global.json, quiet: global.quiet, screen: Screen::of_stdout(is_plain) }
    }

    /// The same output settings, with `--host` added to suggested commands.
    pub(crate) fn about(self, host: Option<&Host>) -> Self {
        let screen = host.map_or(self.screen, |host| self.screen.about(host));
        Self { screen, ..self }
    }

    /// Returns the current rendering parameters.
    pub(crate) fn screen(&self) -> Screen {
        self.screen.anew()
    }

    /// Whether progress can be drawn in place.
    pub(crate) fn is_live(&self) -> bool {
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
    pub(crate) fn answer<T: Serialize>(
        &self,
        name: &str,
        body: &T,
        text: impl FnOnce(&Screen) -> String,
    ) -> Result<(), Failure> {
        if self.json { Self::object(name, body) } else { self.text(&text(&self.screen())) }
    }

    /// Prints one JSON object named `runner/<name>.v1` on one line.
    pub(crate) fn object<T: Serialize>(name: &str, body: &T) -> Result<(), Failure> {
        let tagged = TaggedBody { schema: format!("runner/{name}.v1"), body };
        let line = serde_json::to_string(&tagged).expect("BUG: an answer is not an object");
        print(&(safe_json(&line) + "\n"))
    }

    /// Prints a JSON document in a third-party format.
    pub(crate) fn document<T: Serialize>(body: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(body).expect("BUG: a document is not JSON");
        print(&(safe_json(&text) + "\n"))
    }

    /// Prints facts to stdout.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        print(&self.shown(text))
    }

    /// Prints text for a program, unchanged.
    pub(crate) fn verbatim(text: &str) -> Result<(), Failure> {
        print(text)
    }

    /// Returns text in characters that the terminal can display.
    pub(crate) fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.screen.unicode { Cow::Borrowed(text) } else { Cow::Owned(ascii_marks(text)) }
    }

    /// Prints a note to stderr, unless `--quiet` or `--json` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_terse() {
            // A lost note does no harm, and there is no one to tell that stderr is closed.
            let text = self.screen.told(text);
            let _ = anstream::stderr().lock().write_all(self.shown(&text).as_bytes());
        }
    }

    /// Reports a failure on stderr and returns its exit code.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitStatus {
        if let Failure::Report(report) = failure {
            let text = if self.json { report.to_json() } else { report.to_text() };
            let _ = anstream::stderr().lock().write_all(self.shown(&text).as_bytes());
        }
        failure.status()
    }
}

/// Prints text unchanged.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::io("writing output", &error))
}
