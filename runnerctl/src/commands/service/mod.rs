//! `service`: the daemon under the service manager of this user, installed, upgraded, looked at and removed.

mod files;
mod install;
mod logs;
mod manager;
mod units;
mod view;

use clap::{Args, Subcommand};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::startup::MARK_VARIABLE;

use self::install::Service;
use crate::failure::Failure;
use crate::invocation::Invocation;

const EXAMPLES: &str = "Examples:
  runnerctl service install      units for this user; upgrades them, too
  runnerctl service status
  runnerctl service logs -f
  runnerctl service uninstall    ends the daemon, removes the units";

/// Have the daemon run by systemd, or by launchd under macOS
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    verb: ServiceVerb,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum ServiceVerb {
    /// Write the units and start the service; a daemon that runs ends after its current iterations
    Install {
        /// Write the units, and start nothing
        #[arg(long)]
        no_start: bool,
    },
    /// End the daemon and remove what `install` has written
    Uninstall,
    /// Tell how it is, and start nothing; exit code 5 where it does not run
    Status,
    /// Show the daemon's log
    Logs {
        /// Go on with what is logged from now on
        #[arg(short, long)]
        follow: bool,
        /// Lines of what was logged before
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        lines: u32,
    },
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ServiceArgs) -> Result<ExitStatus, Failure> {
    let service = Service::of(invocation)?;
    match args.verb {
        ServiceVerb::Install { no_start } => {
            refuse_inside_iteration()?;
            service.install(invocation, no_start).await
        }
        ServiceVerb::Uninstall => {
            refuse_inside_iteration()?;
            service.uninstall(invocation).await
        }
        ServiceVerb::Status => service.status(invocation).await,
        ServiceVerb::Logs { follow, lines } => logs::show(invocation, service.has_journal(), lines, follow).await,
    }
}

/// A daemon that an iteration has installed would live in the agent's surroundings.
fn refuse_inside_iteration() -> Result<(), Failure> {
    if std::env::var_os(MARK_VARIABLE).is_none() {
        return Ok(());
    }
    let kind = ErrorKind::InsideIteration;
    Err(Failure::new(
        kind.into(),
        kind.as_str(),
        "the service is neither installed nor removed from inside an iteration",
    ))
}
