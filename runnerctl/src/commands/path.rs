//! `path`: prints the path of the repository in which a run works.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  runnerctl path                    the active run's
  cd \"$(runnerctl path tidy)\"       go to the workspace of run tidy
  runnerctl -C ~/proj path tidy     a run of another repository";

/// Print the path of the repository in which a run works
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PathArgs {
    #[command(flatten)]
    target: RunTarget,
}

#[derive(Serialize)]
struct RunDirectory<'a> {
    run: &'a str,
    path: &'a WirePath,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: PathArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let run = connection.client().locate(at).await?;
    if invocation.ui.json {
        Ui::print_object("path", &RunDirectory { run: &run.id, path: &run.path })?;
    } else {
        Ui::print_verbatim(&format!("{}\n", run.path))?;
    }
    Ok(ExitStatus::Success)
}
