//! `answer`: answers a question that an agent has asked.

use clap::Args;
use protocol::api::QuestionApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::AnswerParams;

use crate::args::RepoTarget;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::change::render_change;

const EXAMPLES: &str = "Examples:
  runnerctl answer 1a2b3c4d \"Postgres 16\"    the id shown by `questions`
  runnerctl answer 1a Postgres               a unique prefix is enough
  runnerctl answer tidy/1a2b3c4d Postgres    where several runs ask the same";

/// Answer an agent's question
///
/// The answer is written below the question in `questions.md` and committed, immediately or when the current session
/// ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AnswerArgs {
    /// Id of the question, or a unique prefix; `RUN/ID` where runs ask the same
    #[arg(value_name = "ID")]
    id: String,
    /// The answer, at most 8 KiB
    #[arg(value_name = "TEXT")]
    text: String,
    /// Any path in the repository [default: the one that asked]
    #[command(flatten)]
    repo: RepoTarget,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: AnswerArgs) -> Result<ExitStatus, Failure> {
    let path = args.repo.path().map(|path| invocation.daemon_path(Some(path))).transpose()?;
    let params = AnswerParams { path, id: args.id, text: args.text };
    let reply = invocation.connect().await?.client().answer(params).await?;
    invocation.ui.print_answer("answer", &reply, |_| render_change(&reply))?;
    Ok(ExitStatus::Success)
}
