//! `resume`: resumes a stopped run.

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::client::caller_env;
use protocol::error::ExitStatus;
use protocol::request::{AtRun, ResumeParams};

use crate::confirm::with_confirmation;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::run::render_control;
use crate::wait::wait_for_run;

const EXAMPLES: &str = "Examples:
  runnerctl resume              a paused, held or failed run
  runnerctl resume --more 20    20 iterations more than `max_iterations`
  runnerctl resume --now        a waiting run, now";

/// Resume a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Do not wait any longer, for example for a usage limit to reset
    #[arg(long)]
    now: bool,
    /// Allow N iterations more than `max_iterations`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    more: Option<u32>,
    /// Show progress until the run ends, pauses or is held
    #[arg(long)]
    wait: bool,
    /// Confirm the commands in the repository's configuration
    #[arg(short, long)]
    yes: bool,
}

impl ResumeArgs {
    /// Returns arguments that resume a run unchanged.
    pub(crate) fn for_target(target: RunTarget, yes: bool) -> Self {
        Self { target, now: false, more: None, wait: false, yes }
    }
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: ResumeArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let AtRun { path, run } = args.target.resolve_one(invocation, connection.client()).await?;
    let params = ResumeParams {
        env: caller_env::collect(&connection, &path).await,
        path: path.clone(),
        run,
        now: args.now,
        more: args.more,
        confirmed: false,
    };
    let request = async |confirmed| connection.client().resume(ResumeParams { confirmed, ..params.clone() }).await;
    let reply = with_confirmation(invocation.ui, args.yes, request).await?;
    invocation.ui.print_answer("resume", &reply, |screen| {
        render_control(&reply, "continues when its session has ended", screen)
    })?;
    if args.wait { Ok(wait_for_run(invocation, path, reply.run.id).await?.0) } else { Ok(ExitStatus::Success) }
}
