//! `watch`: shows the live view of all repositories, after checks that precede taking over the terminal.

use std::io::IsTerminal as _;

use clap::Args;
use jsonrpsee::core::client::Client;
use protocol::api::RunApiClient as _;
use protocol::client::{CallError, Connection};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::host::Host;
use protocol::path::WirePath;
use protocol::request::AtRun;
use protocol::view::StatusView;

use crate::args::RepoTarget;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::watch::{self, WatchedDaemon};

const EXAMPLES: &str = "Examples:
  runnerctl watch           all repositories, this one first
  runnerctl watch ~/proj    that one first
  runnerctl watch --all-hosts    all machines in the client's settings";

/// Watch and steer runs, full screen
///
/// Shows repositories, the task tree, phases, the agent's activity and the guard's output. `?` explains the keys.
/// Quitting stops no run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    repo: RepoTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: WatchArgs) -> Result<ExitStatus, Failure> {
    check_terminal(invocation)?;
    if !invocation.hosts.is_empty() {
        return watch_hosts(invocation, &args).await;
    }
    let path = invocation.daemon_path_if_any(args.repo.path())?;
    let connection = invocation.connect().await?;
    let selected = match path {
        Some(path) => find_selected(&connection, path, args.repo.path.is_none()).await?,
        None => None,
    };
    let options = invocation.connect_options(false);
    let caps = watch::look(invocation.ui.screen());
    watch::run(vec![WatchedDaemon { name: String::new(), options, connection: Some(connection), selected, caps }]).await
}

/// Shows one of several machines, with a summary of the others above it. None is waited for.
async fn watch_hosts(invocation: &Invocation<'_>, args: &WatchArgs) -> Result<ExitStatus, Failure> {
    if args.repo.path.is_some() {
        let message = "of several machines all repositories are shown";
        return Err(Failure::usage(message).hint("name one machine for a path"));
    }
    let to_daemon = |host: &Host| {
        let caps = watch::look(invocation.ui.screen().for_host(host));
        let options = invocation.for_host(host).default_options();
        WatchedDaemon { name: host.to_string(), options, connection: None, selected: None, caps }
    };
    watch::run(invocation.hosts.iter().map(to_daemon).collect()).await
}

/// Returns the id of the repository to start with; `None` if the current directory merely happens to be in none.
async fn find_selected(
    connection: &Connection,
    path: WirePath,
    is_current_dir: bool,
) -> Result<Option<String>, CallError> {
    match connection.client().status(AtRun { path, run: None }).await.map_err(CallError::from) {
        Ok(status) => find_first_repo(connection.client(), status).await.map(Some),
        Err(error) if is_current_dir && is_unknown_path(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the id of the repository to start with: the workspace of the only active run, if that is isolated.
async fn find_first_repo(client: &Client, status: StatusView) -> Result<String, CallError> {
    let run_path = status.run.as_ref().map(|run| &run.summary.path);
    if !status.isolated.iter().any(|isolated| run_path == Some(&isolated.path)) {
        return Ok(status.repo.id);
    }
    let all = client.status_all().await?;
    let workspace = all.into_iter().find(|other| run_path == Some(&other.repo.path));
    Ok(workspace.map_or(status.repo.id, |workspace| workspace.repo.id))
}

/// Fails if there is no terminal to draw on, before anything is started.
fn check_terminal(invocation: &Invocation<'_>) -> Result<(), Failure> {
    if invocation.ui.json {
        let message = "watch draws on a terminal and has no JSON";
        return Err(Failure::usage(message).hint("runnerctl status --watch --json"));
    }
    let why = if invocation.ui.screen().is_plain {
        "a view of the whole screen cannot be read line by line (--plain, RUNNER_PLAIN or TERM=dumb)"
    } else if !std::io::stdout().is_terminal() {
        "standard output is no terminal"
    } else {
        return Ok(());
    };
    let hint = "runnerctl status --watch, or runnerctl log -f";
    Err(Failure::new(ExitStatus::Usage, "no_terminal", why).hint(hint))
}

/// Whether the error only says that the current directory is in none of the repositories.
fn is_unknown_path(error: &CallError) -> bool {
    is_refusal(error, ErrorKind::NotARepository) || is_refusal(error, ErrorKind::NotFound)
}
