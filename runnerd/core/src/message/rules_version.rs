//! The number of the rules under which a commit was made, which every commit of the runner names.
//!
//! There is only one number so far. A message that names another one, or none, is refused before anything else in it is
//! parsed. The rules themselves are not defined here.

use super::{KIND, VERSION};

/// How a message names the rules of this runner.
pub(super) const CURRENT: &str = "rules=1";

/// Why a commit of the runner is not parsed here: it was made under other rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// The commit names no rules.
    #[error("it names no rules: it was made by a development build, whose branches this runner does not read")]
    Unnamed,
    /// The commit names other rules.
    #[error(
        "it was made by runner {version} under {rules}, and this runner, {}, knows {CURRENT} alone",
        env!("CARGO_PKG_VERSION")
    )]
    Unknown {
        /// The version that the commit names.
        version: String,
        /// Its rules, as it names them.
        rules: String,
    },
}

impl RulesError {
    /// Returns the remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unnamed => "begin a new run: runnerctl start --id NEW",
            Self::Unknown { .. } => "use the version that made it, or begin a new run: runnerctl start --id NEW",
        }
    }
}

/// Refuses trailers of the runner that do not name the rules of this one, regardless of other faults.
pub(super) fn check(trailers: &str) -> Result<(), RulesError> {
    let value = |name| trailers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (Some(_), Some(version)) = (value(KIND), value(VERSION)) else { return Ok(()) };
    let mut words = version.split(' ');
    let version = words.next().unwrap_or_default().to_owned();
    match words.find(|word| word.starts_with("rules=")) {
        Some(CURRENT) => Ok(()),
        Some(rules) => Err(RulesError::Unknown { version, rules: rules.to_owned() }),
        None => Err(RulesError::Unnamed),
    }
}
