//! `step`: runs one iteration and waits for it.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::client::caller_env;
use protocol::error::ExitStatus;
use protocol::reply::StepReply;
use protocol::request::{AtRun, StepParams};
use protocol::words::RunStatus;

use super::run_exit_status;
use crate::confirm::with_confirmation;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::iteration::render_line;
use crate::text::run::{render_headline, render_stop_reason};
use crate::text::screen::Screen;

const EXAMPLES: &str = "Examples:
  runnerctl step         of the one run that has not ended
  runnerctl step tidy    of the run whose id starts with `tidy`";

/// Run exactly one iteration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StepArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Confirm the commands in the repository's configuration
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: StepArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let AtRun { path, run } = args.target.resolve_one(invocation, connection.client()).await?;
    let env = caller_env::collect(&connection, &path).await;
    let params = StepParams { path, run, confirmed: false, env };
    let request = async |confirmed| connection.client().step(StepParams { confirmed, ..params.clone() }).await;
    let reply = with_confirmation(invocation.ui, args.yes, request).await?;
    invocation.ui.print_answer("step", &reply, |screen| render(&reply, screen))?;
    Ok(exit_status(&reply))
}

/// Returns the exit code: a run that is paused after its iteration did what was asked.
fn exit_status(reply: &StepReply) -> ExitStatus {
    match reply.run.state {
        RunStatus::Paused if reply.iteration.is_some() => ExitStatus::Success,
        state => run_exit_status(state).unwrap_or(ExitStatus::Success),
    }
}

fn render(reply: &StepReply, screen: &Screen) -> String {
    let iteration = reply.iteration.as_ref().map(|iteration| render_line(iteration, screen)).unwrap_or_default();
    iteration
        + &render_headline(&reply.run, screen)
        + &render_stop_reason(reply.run.reason.as_ref(), &reply.run.path, screen)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::text::samples;

    #[test]
    fn a_run_that_is_paused_after_its_step_is_fine() {
        let mut reply = StepReply { run: samples::summary(), iteration: Some(samples::iteration()) };
        reply.run.state = RunStatus::Paused;
        assert_eq!(exit_status(&reply), ExitStatus::Success);
        reply.iteration = None;
        assert_eq!(exit_status(&reply), ExitStatus::Refused);
    }

    #[test]
    fn the_iteration_comes_before_the_state() {
        let reply = StepReply { run: samples::summary(), iteration: Some(samples::iteration()) };
        insta::assert_snapshot!(strip_str(&render(&reply, &Screen::fixed())), @r"
        0003  guard failed  guard=fail  parser.lex  14s  $0.42  01234567  The lexer: the lexer knows numbers
        run run-1a2b3c4d running on branch runner/run-1a2b3c4d
        ");
    }
}
