//! `select`: prints the next leaf.

use clap::Args;
use protocol::api::TreeApiClient as _;
use protocol::error::ExitStatus;
use protocol::view::{NodeRef, SelectView};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl select           its id, attempts and path
  runnerctl select --json    with title and role

Exit codes:
  0  a task is next
  3  it has no attempts left
  7  the tree is complete";

/// Print the next task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: SelectArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = args.target.resolve_one(invocation, connection.client()).await?;
    let view = connection.client().select(at).await?;
    invocation.ui.print_answer("select", &view, |_| render(&view))?;
    Ok(match view {
        SelectView::Open { .. } => ExitStatus::Success,
        SelectView::Stuck { .. } => ExitStatus::Stuck,
        SelectView::Complete => ExitStatus::Complete,
    })
}

fn render(view: &SelectView) -> String {
    match view {
        SelectView::Open { node } => render_leaf("open", node),
        SelectView::Stuck { node } => render_leaf("stuck", node),
        SelectView::Complete => "complete\n".into(),
    }
}

fn render_leaf(state: &str, node: &NodeRef) -> String {
    let NodeRef { id, attempts, max_attempts, path, .. } = node;
    format!("{state} {} attempts={attempts}/{max_attempts} path={}\n", sanitize(id), sanitize(&path.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::samples;

    #[test]
    fn the_next_leaf_is_told_with_its_place_and_attempts() {
        let node = samples::node();
        insta::assert_snapshot!(render(&SelectView::Open { node: node.clone() }), @"open parser.lex attempts=1/3 path=root/parser/parser.lex");
        insta::assert_snapshot!(render(&SelectView::Stuck { node }), @"stuck parser.lex attempts=1/3 path=root/parser/parser.lex");
        insta::assert_snapshot!(render(&SelectView::Complete), @"complete");
    }
}
