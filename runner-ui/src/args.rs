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
    /// A path in the only repository that is shown; its records are shown where no daemon runs
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// The port to listen on [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// A machine whose daemon is shown, instead of this one's; of several, each has a page
    #[arg(long, value_name = "URL", conflicts_with_all = ["socket", "from_records", "steer"])]
    pub host: Vec<Host>,
    /// Ask no daemon: show the records at PATH
    #[arg(long = "static", requires = "path")]
    pub from_records: bool,
    /// Let the page steer, too
    #[arg(long, conflicts_with = "from_records")]
    pub steer: bool,
    /// Print one JSON object instead of the address
    #[arg(long)]
    pub json: bool,
    /// End when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// Serve nothing: write a run to this file, which shows it without a server
    #[arg(long, value_name = "FILE", requires = "path", conflicts_with_all = ["steer", "until_eof"])]
    pub export: Option<PathBuf>,
    /// The run that is written, or a unique beginning of its id [default: the current one]
    #[arg(long, value_name = "RUN", requires = "export")]
    pub run: Option<String>,
    /// Replace the file if there is one
    #[arg(long, requires = "export")]
    pub force: bool,
}
