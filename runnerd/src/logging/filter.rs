//! Which events are logged: directives in the syntax of `RUST_LOG`, parsed so that a mistake is located.

use tracing_subscriber::Registry;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::reload::{self, Handle};

/// Prepended to every filter: the libraries behind the socket log each connection.
const QUIET_TARGETS: &str = "jsonrpsee-server=warn,jsonrpsee-client=warn";

/// Why a filter is not applied.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// A directive cannot be parsed.
    #[error("cannot read `{directive}`, at character {position} of the log filter `{filter}` ({origin})")]
    Directive {
        /// The directive.
        directive: String,
        /// Its position, counted from 1.
        position: usize,
        /// All directives.
        filter: String,
        /// Where the directives come from.
        origin: &'static str,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The log no longer exists, as at the end of the process.
    #[error("cannot change the log filter")]
    Reload(#[from] reload::Error),
}

/// Changes which events are logged.
#[derive(Debug, Clone)]
pub struct FilterHandle {
    pub(super) handle: Handle<EnvFilter, Registry>,
}

impl FilterHandle {
    /// Applies other directives, in the syntax of `RUST_LOG`.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be parsed; then the current ones remain.
    pub fn set(&self, directives: &str) -> Result<(), FilterError> {
        Ok(self.handle.reload(parse_filter(directives, "daemon.log_filter")?)?)
    }

    /// Returns the current directives.
    pub fn current(&self) -> String {
        self.handle.with_current(ToString::to_string).unwrap_or_default()
    }
}

/// Parses directives; `origin` says where they come from.
pub(super) fn parse_filter(directives: &str, origin: &'static str) -> Result<EnvFilter, FilterError> {
    let mut position = 1;
    for directive in directives.split(',') {
        EnvFilter::builder().parse(directive).map_err(|source| FilterError::Directive {
            directive: directive.to_owned(),
            position,
            filter: directives.to_owned(),
            origin,
            source,
        })?;
        position += directive.chars().count() + 1;
    }
    let combined = EnvFilter::builder().parse(format!("{QUIET_TARGETS},{directives}"));
    combined.map_err(|source| FilterError::Directive {
        directive: directives.to_owned(),
        position: 1,
        filter: directives.to_owned(),
        origin,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_that_cannot_be_read_is_pointed_at() {
        let error = parse_filter("info,runner_git=loud,warn", "test").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read `runner_git=loud`, at character 6 of the log filter `info,runner_git=loud,warn` (test)"
        );
    }

    #[test]
    fn levels_targets_and_spans_are_read() {
        for directives in ["", "off", "info", "info,runner_git=debug", "runnerd[session{iter=3}]=trace"] {
            parse_filter(directives, "test").unwrap();
        }
    }
}
