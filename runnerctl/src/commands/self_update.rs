//! `self-update`: updates an installation made by `install.sh`, through that script, which verifies checksums and
//! restores everything on failure.

use clap::Args;
use protocol::client::ConnectError;
use protocol::error::ExitStatus;
use semver::Version;
use serde::Serialize;

use super::version::own_version;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::invocation::Invocation;
use crate::text::sanitize::sanitize_lines;

const EXAMPLES: &str = "Examples:
  runnerctl self-update              the newest, from the same source
  runnerctl self-update --dry-run    only show the changes
  runnerctl self-update --to 0.2.0 --from ~/Downloads/runner";

/// Replace these programs with a newer version
///
/// Works only if install.sh installed them. The checksum of the archive is checked before it is unpacked, and a failure
/// changes nothing. Runs continue: the running daemon stays the old version until it stops.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SelfUpdateArgs {
    /// The version to install, which may be older [default: the newest, if it is newer]
    #[arg(long, value_name = "VERSION")]
    to: Option<Version>,
    /// Directory or http(s) URL with the archives and SHA256SUMS [default: the source of this installation]
    #[arg(long, value_name = "FROM")]
    from: Option<String>,
    /// Check everything and show the changes, but make none
    #[arg(long)]
    dry_run: bool,
}

/// The result of an update.
#[derive(Debug, Serialize)]
struct UpdateReport {
    before: Version,
    /// The version that is now installed, or would be; null if there is nothing newer.
    to: Option<Version>,
    dry_run: bool,
}

/// Runs the command. It neither queries nor starts a daemon.
pub(crate) async fn run(invocation: &Invocation<'_>, args: SelfUpdateArgs) -> Result<ExitStatus, Failure> {
    let SelfUpdateArgs { to, from, dry_run } = args;
    let installed = Installation::find()?;
    let before = own_version();
    let from = installed.update_source(from)?;
    let to = match to {
        Some(to) => Some(to),
        None => super::version::find_newer(&before, &installed.list_versions(&from).await?),
    };
    if let Some(to) = &to {
        let version = to.to_string();
        let mut args = vec!["--version", version.as_str(), from.as_str()];
        args.extend(dry_run.then_some("--dry-run"));
        let output = installed.run_script(&args, "installing another version").await?;
        invocation.ui.print_note(&sanitize_lines(&output));
    }
    let is_running = !matches!(invocation.connect_running().await, Err(ConnectError::NoDaemon { .. }));
    let report = UpdateReport { before, to, dry_run };
    invocation.ui.print_answer("self-update", &report, |_| render(&report))?;
    if report.to.is_some() && !dry_run && is_running {
        invocation.ui.print_note("the old daemon is still running; to start the new one: runnerctl daemon drain\n");
    }
    Ok(ExitStatus::Success)
}

fn render(UpdateReport { before, to, dry_run }: &UpdateReport) -> String {
    match to {
        None => format!("{before} is the newest there is\n"),
        Some(to) if *dry_run => format!("{before} would be replaced by {to}\n"),
        Some(to) => format!("{before} was replaced by {to}\n"),
    }
}
