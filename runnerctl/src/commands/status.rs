//! `status`: shows the state of a repository's run, or one line per repository; once, or on every change.

mod branches;
mod live;
mod snapshot;

use clap::Args;
use protocol::api::{RepoApiClient as _, RunApiClient as _};
use protocol::client::{CallError, OneShotClient};
use protocol::error::{ErrorKind, ExitStatus};
use protocol::request::AtRun;

use self::snapshot::StatusSnapshot;
use crate::args::RunTarget;
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::multi_host;
use crate::remote_status::RemoteArgs;

const EXAMPLES: &str = "Examples:
  runnerctl status              this repository; outside of one, all
  runnerctl status ~/proj --json
  runnerctl status --all        one line per repository
  runnerctl status --remote origin    runs that were pushed there
  runnerctl status --all-hosts  all machines in the client's settings
  runnerctl status --watch      again, whenever something changes
  runnerctl status --all --watch --json    one JSON line per change";

/// Show how far a run is, and why it stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    target: RunTarget,
    /// One line per repository
    #[arg(long, conflicts_with_all = ["path", "run"])]
    all: bool,
    /// Show it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    from: RemoteArgs,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: StatusArgs) -> Result<ExitStatus, Failure> {
    if let Some(remote) = &args.from.remote {
        return branches::print_branches(invocation, (remote, &args.target), args.watch).await;
    }
    if !invocation.hosts.is_empty() {
        return print_hosts_status(invocation, &args).await;
    }
    let anywhere = args.target.place.path.is_none() && args.target.run.is_none();
    let path = args.target.place.path();
    let place = match &args.target.run {
        _ if args.all => None,
        Some(_) => Some(invocation.place(path)?),
        None => invocation.place_if_any(path)?,
    };
    let at = place.map(|path| AtRun { path, run: args.target.run });
    let shown =
        invocation.ask(async |client: &OneShotClient| read_status(client, at.as_ref(), anywhere).await).await??;
    if args.watch {
        let at = at.filter(|_| matches!(shown, StatusSnapshot::One(_)));
        return live::follow_status(invocation, at).await;
    }
    snapshot::print_once(invocation.ui, &shown)
}

/// Shows all repositories of several machines: a path would only be valid on one.
async fn print_hosts_status(invocation: &Invocation<'_>, args: &StatusArgs) -> Result<ExitStatus, Failure> {
    if args.target.place.path.is_some() || args.target.run.is_some() || args.watch {
        let message = "of several machines all repositories are shown, once";
        return Err(Failure::usage(message).hint("name one machine for a path, --run or --watch"));
    }
    let question = async |inside: &Invocation<'_>| {
        Ok(inside.ask(async |client: &OneShotClient| read_status(client, None, true).await).await??)
    };
    multi_host::ask(invocation, "statuses-of-hosts", question, StatusSnapshot::render).await
}

/// Reads the state of a run; of all repositories if none is named, or if the current directory is in none and none is
/// required.
async fn read_status(client: &OneShotClient, at: Option<&AtRun>, anywhere: bool) -> Result<StatusSnapshot, CallError> {
    if let Some(at) = at {
        match client.status(at.clone()).await.map_err(CallError::from) {
            Ok(status) => return Ok(StatusSnapshot::One(Box::new(status))),
            Err(error) if anywhere && is_refusal(&error, ErrorKind::NotARepository) => {}
            Err(error) => return Err(error),
        }
    }
    let all = client.status_all().await?;
    let has_workspaces = all.iter().any(|status| status.repo.source.is_some());
    let disk = if has_workspaces { Some(client.disk().await?) } else { None };
    Ok(StatusSnapshot::All(all, disk))
}
