//! `add`: adds a node to the open part of the task tree.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::{AddParams, AtRun};

use crate::args::Target;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::change::changed;

const EXAMPLES: &str = "Examples:
  runnerctl add root --title Docs --goal \"Written docs\"        the last child
  runnerctl add root.2 --title Lexer --goal Tokens            splits a leaf
  runnerctl add root --title First --goal Ready --order 0     before others";

/// Add a node to the task tree
///
/// Its id is the next free one under its parent. A leaf that gets a child is worked on through its children.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Id of the parent, or its unambiguous beginning
    #[arg(value_name = "NODE")]
    parent: String,
    #[command(flatten)]
    target: Target,
    /// What it is called
    #[arg(long, value_name = "TEXT")]
    title: String,
    /// What is to be true when it is done
    #[arg(long, value_name = "TEXT")]
    goal: String,
    /// A statement that can be tested; may be given several times
    #[arg(long, value_name = "TEXT")]
    acceptance: Vec<String>,
    /// Put it behind this sibling
    #[arg(long, value_name = "ID", conflicts_with = "order")]
    after: Option<String>,
    /// Its place among its siblings [default: the last]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    order: Option<i64>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: AddArgs) -> Result<ExitStatus, Failure> {
    let AddArgs { parent, target, title, goal, acceptance, after, order } = args;
    let at = AtRun { path: invocation.place(target.place.path())?, run: target.run };
    let params = AddParams { at, parent, title, goal, acceptance, after, order };
    let reply = invocation.connect().await?.client().add_node(params).await;
    let reply = reply.map_err(|error| Failure::from(error).or_hint("runnerctl tree"))?;
    invocation.ui.answer("add", &reply, |_| changed(&reply))?;
    Ok(ExitStatus::Fine)
}
