//! `add`: adds a node to the open part of the task tree.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::AddParams;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl add root --title Docs --goal \"Written docs\"        the last child
  runnerctl add root.2 --title Lexer --goal Tokens            splits a task
  runnerctl add root --title First --goal Ready --order 0     before the others";

/// Add a task to the tree
///
/// The new task gets the next free id under its parent. Sessions work on the subtasks of a task, never on the task
/// itself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Id of the parent task, or a unique prefix
    #[arg(value_name = "TASK")]
    parent: String,
    #[command(flatten)]
    target: RunTarget,
    /// Title of the task
    #[arg(long, value_name = "TEXT")]
    title: String,
    /// What must be true when the task is done
    #[arg(long, value_name = "TEXT")]
    goal: String,
    /// An acceptance criterion that can be tested; may be repeated
    #[arg(long, value_name = "TEXT")]
    acceptance: Vec<String>,
    /// Insert the task after this sibling
    #[arg(long, value_name = "ID", conflicts_with = "order")]
    after: Option<String>,
    /// Position among the siblings, counted from 0 [default: last]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    order: Option<i64>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: AddArgs) -> Result<ExitStatus, Failure> {
    let AddArgs { parent, target, title, goal, acceptance, after, order } = args;
    let connection = invocation.connect().await?;
    let at = target.resolve_one(invocation, connection.client()).await?;
    let params = AddParams { at, parent, title, goal, acceptance, after, order };
    let reply = connection.client().add_node(params).await;
    let reply = reply.map_err(|error| Failure::from(error).or_hint("runnerctl tree"))?;
    invocation.ui.print_answer("add", &reply, |_| render_change(&reply))?;
    Ok(ExitStatus::Success)
}
