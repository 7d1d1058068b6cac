//! `answer`: answers a question that an agent has asked.

use clap::Args;
use protocol::api::QuestionApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::{AnswerParams, AtRun};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::run_target::RunTarget;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl answer 1a2b3c4d \"Postgres 16\"    the id shown by `questions`
  runnerctl answer 1a Postgres               a unique prefix is enough
  runnerctl answer tidy/1a2b3c4d Postgres    if several runs ask the same";

/// Answer an agent's question
///
/// The answer is written below the question in `questions.md` and committed, immediately or when the current session
/// ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnswerArgs {
    /// Id of the question, or a unique prefix; `RUN/ID` if several runs ask the same question
    #[arg(value_name = "ID")]
    id: String,
    /// The answer, at most 8 KiB
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    target: RunTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: AnswerArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    args.target.refuse_run_as_text(invocation, connection.client(), &args.text).await?;
    // Without a target, it is the run that has the question.
    let (path, id) = if args.target.is_empty() {
        (None, args.id)
    } else {
        match args.target.resolve(invocation, connection.client()).await? {
            AtRun { path, run: Some(run) } => (Some(path), format!("{run}/{}", args.id)),
            AtRun { path, run: None } => (Some(path), args.id),
        }
    };
    let reply = connection.client().answer(AnswerParams { path, id, text: args.text }).await?;
    invocation.ui.print_answer("answer", &reply, |_| render_change(&reply))?;
    Ok(ExitStatus::Success)
}
