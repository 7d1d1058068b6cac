//! `fork`: starts a new run from an iteration's commit.

use std::str::FromStr;

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::client::caller_env;
use protocol::error::ExitStatus;
use protocol::request::{AtRun, ForkParams};

use super::start::render_start;
use crate::confirm::with_confirmation;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record_selector::RecordSelector;
use crate::run_target::RunTarget;
use crate::text::paint::{HINT, paint};
use crate::wait::{wait_for_run, wait_for_start};

const EXAMPLES: &str = "Examples:
  runnerctl fork --from 7                       from the current run
  runnerctl fork --from port/7 --id port-again  from another run, with a new id
  runnerctl fork --from 7 --queue-only          queued, but paused
  runnerctl fork --from 7 --wait ~/proj         wait until the new run ends";

/// Start a new run from an iteration's commit
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Number of the iteration; `RUN/ITER` for one of another run
    #[arg(long, value_name = "[RUN/]ITER", value_parser = parse_iteration)]
    from: RecordSelector,
    /// Id of the new run [default: the first words of the goal, and `-fork`]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Queue the new run paused
    #[arg(long, conflicts_with = "wait")]
    queue_only: bool,
    /// Show progress until the run ends, pauses or is held
    #[arg(long)]
    wait: bool,
    /// Confirm the commands in the commit's configuration
    #[arg(short, long)]
    yes: bool,
}

fn parse_iteration(text: &str) -> Result<RecordSelector, String> {
    let record = RecordSelector::from_str(text)?;
    match record.wait {
        None => Ok(record),
        Some(_) => Err("a wait has no commit to fork from".into()),
    }
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ForkArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let AtRun { path, run } = args.target.resolve_one(invocation, connection.client()).await?;
    let params = ForkParams {
        env: caller_env::collect(&connection, &path).await,
        path: path.clone(),
        run: args.from.run.or(run),
        iter: args.from.iter,
        id: args.id,
        queue_only: args.queue_only,
        confirmed: false,
    };
    let client = connection.client();
    let request = async |confirmed| {
        let start = client.fork(ForkParams { confirmed, ..params.clone() });
        wait_for_start(invocation.ui, client, &path, start).await
    };
    let reply = with_confirmation(invocation.ui, args.yes, request).await?;
    invocation.ui.print_answer("fork", &reply, |screen| render_start(&reply, screen))?;
    if args.wait {
        return Ok(wait_for_run(invocation, path, reply.run.id).await?.0);
    }
    invocation.ui.print_note(&format!("\nCheck progress: {}\n", paint(HINT, "runnerctl status")));
    Ok(ExitStatus::Success)
}
