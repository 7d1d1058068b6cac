//! `path`: prints the folder in which a run works.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::AtRun;
use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  runnerctl path                    of the run that goes on
  cd \"$(runnerctl path tidy)\"       into the workspace of run tidy
  runnerctl -C ~/proj path tidy     of a run of another repository";

/// Print the folder in which a run works
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PathArgs {
    /// Run id, or a unique prefix [default: the one that goes on, else the latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
}

#[derive(Serialize)]
struct RunDirectory<'a> {
    run: &'a str,
    path: &'a WirePath,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: PathArgs) -> Result<ExitStatus, Failure> {
    let at = AtRun { path: invocation.daemon_path(None)?, run: args.run };
    let run = invocation.connect().await?.client().locate(at).await?;
    if invocation.ui.json {
        Ui::print_object("path", &RunDirectory { run: &run.id, path: &run.path })?;
    } else {
        Ui::print_verbatim(&format!("{}\n", run.path))?;
    }
    Ok(ExitStatus::Success)
}
