//! `tree`: draws the task tree.

use clap::Args;
use jsonrpsee::core::client::{Client, ClientT as _};
use protocol::api::IterationApiClient;
use protocol::error::ExitStatus;
use protocol::reply::TreeReply;
use protocol::request::AtRun;
use serde::Deserialize as _;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::pager::Pager;
use crate::remote_status::{self, FetchDepth, RemoteArgs, RemoteQuery};
use crate::run_target::RunTarget;
use crate::text::tree::{NodeCosts, TreeOptions, render_tree_with};
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  runnerctl tree
  runnerctl tree --open           without passed tasks
  runnerctl tree --depth 2        two levels below the root
  runnerctl tree ~/proj --json    as the daemon reads it
  runnerctl tree --remote origin tidy-1    as it was pushed";

/// Show the task tree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Hide tasks that have passed
    #[arg(long, conflicts_with = "all")]
    open: bool,
    /// Show the subtasks of tasks that have passed
    #[arg(long)]
    all: bool,
    /// Show at most N levels below the root
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    #[command(flatten)]
    from: RemoteArgs,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, mut args: TreeArgs) -> Result<ExitStatus, Failure> {
    let Some(remote) = args.from.remote.take() else { return print_tree(invocation, args).await };
    let (path, run) = args.target.clone().split(invocation)?;
    let query = RemoteQuery { remote: &remote, path: path.as_deref(), run: run.as_deref(), depth: FetchDepth::Commits };
    remote_status::with_remote(invocation, query, async |inside| {
        let target = RunTarget::from_id(remote_status::find_single_run(inside, run.clone()).await?);
        print_tree(inside, TreeArgs { target, ..args }).await
    })
    .await
}

async fn print_tree(invocation: &Invocation<'_>, args: TreeArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let reply = fetch_tree(connection.client(), at.clone()).await?;
    if invocation.ui.json {
        Ui::print_object("tree", &reply)?;
        return Ok(ExitStatus::Success);
    }
    // The tree at HEAD may belong to no run, and has cost nothing then.
    let costs = if reply.state.is_some() || at.run.is_some() {
        NodeCosts::from_iterations(&IterationApiClient::list(connection.client(), at).await.unwrap_or_default())
    } else {
        NodeCosts::default()
    };
    let options = TreeOptions { depth: args.depth, open: args.open, folded: !args.all };
    let mut pager = Pager::open(invocation.ui);
    pager.write(&render_tree_with(&reply, options, &costs, &invocation.ui.screen()))?;
    pager.close()?;
    Ok(ExitStatus::Success)
}

/// Reads the tree of a run.
///
/// Bypasses the generated method: a tree of the maximum allowed depth nests deeper than `serde_json` accepts by
/// default.
pub(crate) async fn fetch_tree(client: &Client, at: AtRun) -> Result<TreeReply, Failure> {
    let raw: Box<RawValue> = client.request("tree.get", [at]).await?;
    let mut reader = serde_json::Deserializer::from_str(raw.get());
    reader.disable_recursion_limit();
    TreeReply::deserialize(&mut reader).map_err(|error| {
        Failure::new(ExitStatus::Error, "protocol", "cannot read the daemon's tree").caused_by(error.to_string())
    })
}
