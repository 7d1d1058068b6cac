//! `queue`: lists the unfinished runs, in order.

use clap::Args;
use protocol::api::{RepoApiClient, RunApiClient};
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::request::AtPath;
use protocol::view::RunSummary;
use serde::Serialize;

use crate::args::RepoTarget;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::text::paint::HEADING;
use crate::text::run::{reason_text, state_cell};
use crate::text::screen::Screen;
use crate::text::table::{Table, TableCell};

const EXAMPLES: &str = "Examples:
  runnerctl queue            this repository; outside of one, all
  runnerctl queue --all      all repositories
  runnerctl queue --ended    this repository, ended runs too";

/// List queued and active runs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    repo: RepoTarget,
    /// List runs of all repositories
    #[arg(long, conflicts_with_all = ["path", "ended"])]
    all: bool,
    /// Include ended runs
    #[arg(long)]
    ended: bool,
}

#[derive(Serialize)]
struct RunList {
    runs: Vec<RunSummary>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: QueueArgs) -> Result<ExitStatus, Failure> {
    args.repo.check_path(invocation)?;
    let connection = invocation.connect().await?;
    let runs = if args.all {
        list_all_runs(&connection).await?
    } else {
        list_repo_runs(invocation, &connection, &args).await?
    };
    invocation.ui.print_answer("queue", &RunList { runs: runs.clone() }, |screen| render(&runs, screen))?;
    if runs.is_empty() {
        invocation.ui.print_note("No runs.\n");
    }
    Ok(ExitStatus::Success)
}

async fn list_repo_runs(
    invocation: &Invocation<'_>,
    connection: &Connection,
    args: &QueueArgs,
) -> Result<Vec<RunSummary>, Failure> {
    let at = AtPath { path: invocation.daemon_path(args.repo.path())? };
    let client = connection.client();
    let reply = if args.ended { RunApiClient::list(client, at).await } else { client.queue(at).await };
    match reply.map_err(CallError::from) {
        Err(error) if args.repo.path.is_none() && !args.ended && is_refusal(&error, ErrorKind::NotARepository) => {
            list_all_runs(connection).await
        }
        reply => Ok(reply?),
    }
}

async fn list_all_runs(connection: &Connection) -> Result<Vec<RunSummary>, Failure> {
    let repos = RepoApiClient::list(connection.client()).await?;
    Ok(repos.into_iter().flat_map(|repo| repo.queue).collect())
}

fn render(runs: &[RunSummary], screen: &Screen) -> String {
    let mut table = Table::with_heading(["RUN", "STATE", "PATH", "WHY", "GOAL"]).shrinking(2);
    for run in runs {
        let goal = TableCell::styled(HEADING, run.goal.as_deref().unwrap_or_default());
        table.add_row([
            TableCell::from(&run.id),
            state_cell(run),
            run.path.to_string().into(),
            reason_text(run).into(),
            goal,
        ]);
    }
    if runs.is_empty() { String::new() } else { table.render(screen, 0) }
}
