//! The command line.

use std::path::PathBuf;

use clap::Parser;
use protocol::host::Host;

/// Serves the web view of runnerd on loopback
///
/// `runnerctl ui` starts it and opens the page.
#[derive(Debug, Clone, Default, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[command(name = "runner-ui", version)]
pub struct Args {
    /// Show only the repository at this path; without a daemon, from its records
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// The port to listen on [default: a free port]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Show the daemon of this machine instead of the local one; may be repeated, for one page each
    #[arg(long, value_name = "URL", conflicts_with_all = ["socket", "from_records", "steer"])]
    pub host: Vec<Host>,
    /// Show the records at PATH without a daemon
    #[arg(long = "static", requires = "path")]
    pub from_records: bool,
    /// Let the page steer runs
    #[arg(long, conflicts_with = "from_records")]
    pub steer: bool,
    /// Print one JSON object instead of the address
    #[arg(long)]
    pub json: bool,
    /// Exit when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// Write a run to this file, which needs no server, and exit
    #[arg(long, value_name = "FILE", requires = "path", conflicts_with_all = ["steer", "until_eof"])]
    pub export: Option<PathBuf>,
    /// Id of the run to write, or a unique prefix [default: the current run]
    #[arg(long, value_name = "RUN", requires = "export")]
    pub run: Option<String>,
    /// Replace an existing file
    #[arg(long, requires = "export")]
    pub force: bool,
}
