//! `queue`: the runs that are not over, in order.

use clap::Args;
use protocol::api::{RepoApiClient, RunApiClient};
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::request::AtPath;
use protocol::view::RunSummary;
use serde::Serialize;

use crate::args::Place;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::text::paint::{HEAD, of_state};
use crate::text::run::why;
use crate::text::screen::Screen;
use crate::text::table::{Cell, Table};

const EXAMPLES: &str = "Examples:
  runnerctl queue            of this repository; outside of one, of all
  runnerctl queue --all      of all repositories
  runnerctl queue --ended    of this repository, ended runs too";

/// List queued and active runs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    place: Place,
    /// List runs of all repositories
    #[arg(long, conflicts_with_all = ["path", "ended"])]
    all: bool,
    /// Include ended runs
    #[arg(long)]
    ended: bool,
}

#[derive(Serialize)]
struct Runs {
    runs: Vec<RunSummary>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: QueueArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let runs = if args.all { everywhere(&connection).await? } else { here(invocation, &connection, &args).await? };
    invocation.ui.answer("queue", &Runs { runs: runs.clone() }, |screen| render(&runs, screen))?;
    if runs.is_empty() {
        invocation.ui.note("No runs.\n");
    }
    Ok(ExitStatus::Fine)
}

async fn here(
    invocation: &Invocation<'_>,
    connection: &Connection,
    args: &QueueArgs,
) -> Result<Vec<RunSummary>, Failure> {
    let at = AtPath { path: invocation.place(args.place.path())? };
    let client = connection.client();
    let reply = if args.ended { RunApiClient::list(client, at).await } else { client.queue(at).await };
    match reply.map_err(CallError::from) {
        Err(error) if args.place.path.is_none() && !args.ended && is_refusal(&error, ErrorKind::NotARepository) => {
            everywhere(connection).await
        }
        reply => Ok(reply?),
    }
}

async fn everywhere(connection: &Connection) -> Result<Vec<RunSummary>, Failure> {
    let repos = RepoApiClient::list(connection.client()).await?;
    Ok(repos.into_iter().flat_map(|repo| repo.queue).collect())
}

fn render(runs: &[RunSummary], screen: &Screen) -> String {
    let mut table = Table::headed(["RUN", "STATE", "GOAL", "PATH", "WHY"]).yielding(2);
    for run in runs {
        let state = Cell::styled(of_state(run.state), run.state.as_str());
        let goal = Cell::styled(HEAD, run.goal.as_deref().unwrap_or_default());
        table.row([Cell::from(&run.id), state, goal, run.path.to_string().into(), why(run).into()]);
    }
    if runs.is_empty() { String::new() } else { table.render(screen, 0) }
}
