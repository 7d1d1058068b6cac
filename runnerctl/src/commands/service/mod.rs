//! `service`: installs, upgrades, inspects and removes the daemon as a service of this user's service manager.

mod files;
mod install;
mod logs;
mod manager;
mod units;
mod view;

use clap::{Args, Subcommand};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::startup::MARK_VARIABLE;

use self::install::ServiceInstallation;
use crate::failure::Failure;
use crate::invocation::Invocation;

const EXAMPLES: &str = "Examples:
  runnerctl service install      for this user; also upgrades it
  runnerctl service status
  runnerctl service logs -f
  runnerctl service uninstall    stops the daemon, removes the units";

/// Run the daemon as a service, under systemd or launchd
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    action: ServiceAction,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum ServiceAction {
    /// Install or upgrade the service and start it; a running daemon finishes its iterations first
    Install {
        /// Write the units, but start nothing
        #[arg(long)]
        no_start: bool,
    },
    /// Stop the daemon and remove the service
    Uninstall,
    /// Show the service's state; exit code 5 if it is not running
    Status,
    /// Show the daemon's log
    Logs {
        /// Follow the log
        #[arg(short, long)]
        follow: bool,
        /// Number of earlier lines to show
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        lines: u32,
    },
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ServiceArgs) -> Result<ExitStatus, Failure> {
    let installation = ServiceInstallation::from_invocation(invocation)?;
    match args.action {
        ServiceAction::Install { no_start } => {
            refuse_inside_iteration()?;
            installation.install(invocation, no_start).await
        }
        ServiceAction::Uninstall => {
            refuse_inside_iteration()?;
            installation.uninstall(invocation).await
        }
        ServiceAction::Status => installation.status(invocation).await,
        ServiceAction::Logs { follow, lines } => {
            logs::print_log(invocation, installation.has_journal(), lines, follow).await
        }
    }
}

/// Refuses inside an iteration: a daemon installed from there would inherit the agent's environment.
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
