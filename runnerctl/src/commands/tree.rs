//! `tree`: the task tree as a picture.

use clap::Args;
use jsonrpsee::core::client::{Client, ClientT as _};
use protocol::error::ExitStatus;
use protocol::reply::TreeReply;
use protocol::request::AtRun;
use serde::Deserialize as _;
use serde_json::value::RawValue;

use crate::args::Target;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::tree::picture;

const EXAMPLES: &str = "Examples:
  runnerctl tree
  runnerctl tree ~/proj --json    the tree as the daemon reads it";

/// Show the task tree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    target: Target,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: TreeArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.place(args.target.place.path())?;
    let connection = invocation.connect().await?;
    let reply = fetch(connection.client(), AtRun { path, run: args.target.run }).await?;
    invocation.ui.answer("tree", &reply, |screen| picture(&reply, screen))?;
    Ok(ExitStatus::Fine)
}

/// Reads the tree of a run.
///
/// Past the generated method: a tree of the depth that is allowed nests deeper than `serde_json` reads by default.
pub(crate) async fn fetch(client: &Client, at: AtRun) -> Result<TreeReply, Failure> {
    let raw: Box<RawValue> = client.request("tree.get", [at]).await?;
    let mut reader = serde_json::Deserializer::from_str(raw.get());
    reader.disable_recursion_limit();
    TreeReply::deserialize(&mut reader).map_err(|error| {
        Failure::new(ExitStatus::Error, "protocol", "cannot read the daemon's tree").caused_by(error.to_string())
    })
}
