//! The daemon's own settings, one file per user.

use std::path::{Path, PathBuf};

use protocol::words::Containment;
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::parse::{self, ConfigSource};
use super::table;
use super::value_enums::LogLevel;

/// The settings of one user's daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonConfig {
    /// Repositories that are worked on at the same time.
    pub max_repositories: u32,
    /// Isolated runs of one repository that are worked on at the same time.
    pub max_runs_per_repository: u32,
    /// The lowest level of logged messages.
    pub log_level: LogLevel,
    /// Where clients connect, if not at the usual place.
    pub socket: Option<PathBuf>,
    /// Where workspaces are, if not in the state folder.
    pub workspaces: Option<PathBuf>,
    /// Whether the machine is kept awake while a session runs.
    pub inhibit_sleep: bool,
    /// The strongest containment to use if the system offers it.
    pub containment: Containment,
}

impl DaemonConfig {
    /// Parses the settings; `file` is the name used in messages.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        parse::parse_typed(table::DAEMON, &parse::default_table(table::DAEMON), ConfigSource { text, file })
    }
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self::parse("", Path::new("")).expect("BUG: the defaults in the table of keys do not fit the types")
    }
}
