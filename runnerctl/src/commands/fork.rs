//! `fork`: a new run that begins from an iteration's commit.

use std::str::FromStr;

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::ForkParams;

use super::start::render;
use crate::args::Place;
use crate::caller_env;
use crate::confirm::confirmed;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::text::paint::{HINT, paint};
use crate::wait::wait;

const EXAMPLES: &str = "Examples:
  runnerctl fork --from 7                       of the current run
  runnerctl fork --from port/7 --id port-again  of run port, with your own id
  runnerctl fork --from 7 --queue-only          paused in the queue
  runnerctl fork --from 7 --wait ~/proj         stay until the new run ends";

/// Begin a new run from an iteration's commit, with its tree and attempts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    place: Place,
    /// The iteration: its number, with its run in front where that is not the current one
    #[arg(long, value_name = "[RUN/]ITER", value_parser = committed)]
    from: Record,
    /// Id of the new run [default: made from the commit]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Leave the new run paused in the queue
    #[arg(long, conflicts_with = "wait")]
    queue_only: bool,
    /// Show progress until the new run ends, is paused or held
    #[arg(long)]
    wait: bool,
    /// Confirm the commands in the commit's configuration
    #[arg(short, long)]
    yes: bool,
}

fn committed(text: &str) -> Result<Record, String> {
    let record = Record::from_str(text)?;
    match record.wait {
        None => Ok(record),
        Some(_) => Err("a wait left no commit to begin from".into()),
    }
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ForkArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.place(args.place.path())?;
    let connection = invocation.connect().await?;
    let params = ForkParams {
        env: caller_env::collect(connection.client(), &path).await,
        path: path.clone(),
        run: args.from.run,
        iter: args.from.iter,
        id: args.id,
        queue_only: args.queue_only,
        confirmed: false,
    };
    let request = async |confirmed| connection.client().fork(ForkParams { confirmed, ..params.clone() }).await;
    let reply = confirmed(invocation.ui, args.yes, request).await?;
    invocation.ui.answer("fork", &reply, |_| render(&reply))?;
    if args.wait {
        return wait(invocation, path, reply.run.id).await;
    }
    invocation.ui.note(&format!("\nSee how far it is: {}\n", paint(HINT, "runnerctl status")));
    Ok(ExitStatus::Fine)
}
