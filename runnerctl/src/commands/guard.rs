//! `guard`: approves changes to the guard's files.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use protocol::api::GuardApiClient as _;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::{AcceptParams, AtRun};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl guard accept             all changed files
  runnerctl guard accept justfile    only this one";

/// Approve changes to the guard's files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    action: GuardAction,
}

#[derive(Debug, Subcommand)]
enum GuardAction {
    /// Approve the guard's files as committed now
    ///
    /// Until you approve a changed file, `status`, receipts and prompts list it, and `[guard] on_change` decides the
    /// effect. You also approve a file when you commit it yourself.
    #[command(after_help = EXAMPLES)]
    Accept(AcceptArgs),
}

#[derive(Debug, Args)]
struct AcceptArgs {
    /// A file, which may be deleted, or any directory of the repository for all changed files [default: current directory]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Run id or a unique prefix [default: the one run here that has not ended, else the last]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: GuardArgs) -> Result<ExitStatus, Failure> {
    let GuardAction::Accept(AcceptArgs { path, run }) = args.action;
    let (repository, file) = resolve_guard_file(invocation, path.as_deref())?;
    let at = AtRun { path: repository, run };
    let reply = invocation.connect().await?.client().accept_definition(AcceptParams { at, file }).await;
    let reply = reply.map_err(|error| Failure::from(error).or_hint("runnerctl config get guard.definition"))?;
    invocation.ui.print_answer("guard-accept", &reply, |_| render_change(&reply))?;
    Ok(ExitStatus::Success)
}

/// Returns a path in the repository, and the file in it that was named.
fn resolve_guard_file(
    invocation: &Invocation<'_>,
    path: Option<&Path>,
) -> Result<(WirePath, Option<WirePath>), Failure> {
    let path = if invocation.host.is_some() {
        // Whether a path on another machine is a folder is unknown here: `-C` names the repository, the path a file in
        // it.
        let repository = invocation.daemon_path(None)?;
        let file = path.map(|path| invocation.daemon_path(Some(path))).transpose()?;
        return Ok((repository, file));
    } else {
        invocation.resolve_local(path)?
    };
    // The folder of a deleted file may be gone, too.
    let folder = path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let file = (folder != path).then(|| path.as_path().into());
    Ok((invocation.daemon_path(Some(folder))?, file))
}
