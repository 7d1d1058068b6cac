//! Why something failed: message, causes, the next command, and the exit code.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;

use protocol::client::{CallError, ConnectError};
use protocol::error::ExitStatus;
use protocol::sanitize::{escape_json, sanitize};
use serde_json::json;

/// The error that ends a command or a run.
#[derive(Debug)]
pub(crate) struct EvalError {
    status: ExitStatus,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl EvalError {
    /// Creates a fault of the environment.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { status: ExitStatus::Error, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// Creates the fault of a command line that parses but makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { status: ExitStatus::Usage, ..Self::new(message) }
    }

    /// Creates the fault of an operation that the user interrupted.
    pub(crate) fn interrupted() -> Self {
        Self { status: ExitStatus::Interrupted, ..Self::new("interrupted") }
    }

    /// Creates the fault of an operation on a file; `doing` is a phrase that the path completes.
    pub(crate) fn file(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(format!("{doing} {}", path.display())).caused_by(error)
    }

    /// Adds an error and its sources as causes.
    #[must_use]
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Self {
        self.causes.push(error.to_string());
        let mut source = error.source();
        while let Some(cause) = source {
            self.causes.push(cause.to_string());
            source = cause.source();
        }
        self
    }

    /// Adds a suggestion of what to type next.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns the exit code.
    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }

    /// Returns the message for a person.
    pub(crate) fn to_text(&self) -> String {
        let indented = |text: &str| text.trim_end().lines().map(sanitize).collect::<Vec<_>>().join("\n  ");
        let mut text = format!("error: {}\n", indented(&self.message));
        for cause in &self.causes {
            let _ = writeln!(text, "caused by: {}", indented(cause));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "\nhint: {}", indented(hint));
        }
        text
    }

    /// Returns the JSON object for a script.
    pub(crate) fn to_json(&self) -> String {
        let Self { message, causes, hint, .. } = self;
        escape_json(&json!({"error": {"message": message, "causes": causes, "hint": hint}}).to_string()) + "\n"
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl From<ConnectError> for EvalError {
    fn from(error: ConnectError) -> Self {
        Self::new("reaching the daemon of the run").caused_by(&error)
    }
}

impl From<jsonrpsee::core::client::Error> for EvalError {
    fn from(error: jsonrpsee::core::client::Error) -> Self {
        Self::new("asking the daemon of the run").caused_by(&CallError::from(error))
    }
}
