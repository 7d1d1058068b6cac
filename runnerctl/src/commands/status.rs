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
use crate::failure::{Failure, is_refusal};
use crate::invocation::Invocation;
use crate::multi_host;
use crate::remote_status::RemoteArgs;
use crate::run_target::RunTarget;

const EXAMPLES: &str = "Examples:
  runnerctl status              this repository; outside of one, all
  runnerctl status ~/proj --json
  runnerctl status --all        one line per repository
  runnerctl status --remote origin    runs that were pushed there
  runnerctl status --all-hosts  all machines in the client's settings
  runnerctl status --watch      again at each change
  runnerctl status --all --watch --json    one JSON line per change";

/// Show a run's progress, and why it stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Show one line per repository
    #[arg(long, conflicts_with_all = ["target", "run"])]
    all: bool,
    /// Show the state again at each change, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    from: RemoteArgs,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: StatusArgs) -> Result<ExitStatus, Failure> {
    if let Some(remote) = &args.from.remote {
        return branches::print_branches(invocation, remote, &args.target, args.watch).await;
    }
    if !invocation.hosts.is_empty() {
        return print_hosts_status(invocation, &args).await;
    }
    let anywhere = args.target.is_empty();
    let is_about_all = args.all || (anywhere && invocation.daemon_path_if_any(None)?.is_none());
    let (at, snapshot) = invocation
        .ask(async |client: &OneShotClient| {
            let at = if is_about_all { None } else { Some(args.target.resolve(invocation, client).await?) };
            let snapshot = read_status(client, at.as_ref(), anywhere).await?;
            Ok::<_, Failure>((at, snapshot))
        })
        .await??;
    if args.watch {
        let at = at.filter(|_| matches!(snapshot, StatusSnapshot::One(_)));
        return live::follow_status(invocation, at).await;
    }
    snapshot::print_once(invocation.ui, &snapshot)
}

/// Shows all repositories of several machines: a path would only be valid on one.
async fn print_hosts_status(invocation: &Invocation<'_>, args: &StatusArgs) -> Result<ExitStatus, Failure> {
    if !args.target.is_empty() || args.watch {
        let message = "of several machines all repositories are shown, once";
        return Err(Failure::usage(message).hint("name one machine for a path, --run or --watch"));
    }
    let ask_host = async |inside: &Invocation<'_>| {
        Ok(inside.ask(async |client: &OneShotClient| read_status(client, None, true).await).await??)
    };
    multi_host::ask_hosts(invocation, "statuses-of-hosts", ask_host, StatusSnapshot::render).await
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
