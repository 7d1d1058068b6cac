//! `verify`: proves from git alone that the rules made a branch, or names what they did not make.

use clap::Args;
use protocol::api::VerifyApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::VerifyParams;

use crate::args::Place;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::audit;

const EXAMPLES: &str = "Examples:
  runnerctl verify                        the branch that is checked out, or the only one
  runnerctl verify --run port-to-postgres
  runnerctl verify ../clone.git --json    a bare clone; exit code 10: a violation was found";

/// Prove from git alone that the rules made a branch
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    place: Place,
    /// Id of the run, or its unambiguous beginning [default: the branch that is checked out, or the only one]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: VerifyArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.place(args.place.path())?;
    let report = invocation.connect().await?.client().verify(VerifyParams { path, run: args.run }).await?;
    invocation.ui.answer("verify", &report, |paint| audit::report(&report, paint))?;
    Ok(if audit::is_sound(&report) { ExitStatus::Fine } else { ExitStatus::Violation })
}
