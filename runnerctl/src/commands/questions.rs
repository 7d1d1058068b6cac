//! `questions`: lists the questions of agents, over all repositories.

use std::path::PathBuf;

use clap::Args;
use protocol::api::QuestionApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::QuestionsParams;
use protocol::view::QuestionView;
use serde::Serialize;

use crate::args::RepoTarget;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::multi_host;
use crate::remote_status::{self, FetchDepth, RemoteArgs, RemoteQuery};
use crate::text::paint::{DIM, HEADING, paint};
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl questions          open questions of all repositories
  runnerctl questions --all    answered ones too
  runnerctl questions .        this repository
  runnerctl questions --remote origin    runs that were pushed there";

/// List the questions that agents ask
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QuestionsArgs {
    /// Any path in a repository [default: all repositories]
    #[command(flatten)]
    repo: RepoTarget,
    /// Include answered questions, after the open ones
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    from: RemoteArgs,
}

#[derive(Serialize)]
struct QuestionList {
    questions: Vec<QuestionView>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, mut args: QuestionsArgs) -> Result<ExitStatus, Failure> {
    let Some(remote) = args.from.remote.take() else { return list_questions(invocation, args).await };
    let path = args.repo.path.take();
    let query = RemoteQuery { remote: &remote, path: path.as_deref(), run: None, depth: FetchDepth::Tip };
    remote_status::with_remote(invocation, query, async |inside| {
        let repo = RepoTarget { path: Some(PathBuf::from(".")) };
        list_questions(inside, QuestionsArgs { repo, ..args }).await
    })
    .await
}

async fn list_questions(invocation: &Invocation<'_>, args: QuestionsArgs) -> Result<ExitStatus, Failure> {
    if !invocation.hosts.is_empty() {
        if args.repo.path.is_some() {
            return Err(Failure::usage("a path is one machine's").hint("name one machine for it"));
        }
        let ask_host = async |inside: &Invocation<'_>| fetch_questions(inside, &args).await;
        return multi_host::ask_hosts(invocation, "questions-of-hosts", ask_host, |answer, _| answer.render()).await;
    }
    let answer = fetch_questions(invocation, &args).await?;
    invocation.ui.print_answer("questions", &answer, |_| answer.render())?;
    if answer.questions.is_empty() {
        invocation.ui.print_note("No questions.\n");
    }
    Ok(ExitStatus::Success)
}

async fn fetch_questions(invocation: &Invocation<'_>, args: &QuestionsArgs) -> Result<QuestionList, Failure> {
    args.repo.check_path(invocation)?;
    let path = args.repo.path().map(|path| invocation.daemon_path(Some(path))).transpose()?;
    let params = QuestionsParams { path, all: args.all };
    Ok(QuestionList { questions: invocation.connect().await?.client().questions(params).await? })
}

impl QuestionList {
    fn render(&self) -> String {
        let rendered = |question: &QuestionView| render(question, is_ambiguous(&self.questions, question));
        self.questions.iter().map(rendered).collect()
    }
}

/// Whether another run has a question with the same id, so that the id alone is ambiguous.
fn is_ambiguous(all: &[QuestionView], question: &QuestionView) -> bool {
    all.iter().any(|other| other.id == question.id && other.path != question.path)
}

fn render(question: &QuestionView, with_run: bool) -> String {
    let QuestionView { id, text, answer, path, run } = question;
    let id = if with_run { format!("{run}/{id}") } else { id.clone() };
    let id = &id;
    let mut lines =
        format!("{}  {}\n", paint(HEADING, &sanitize(id)), paint(DIM, &sanitize(&format!("{path}  run {run}"))));
    lines.extend(text.lines().map(|line| format!("  {}\n", sanitize(line))));
    let answer = answer.iter().flat_map(|answer| answer.lines());
    lines.extend(answer.enumerate().map(|(index, line)| {
        let prefix = if index == 0 { "answer: " } else { "        " };
        format!("  {prefix}{}\n", sanitize(line))
    }));
    lines
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn a_question_stands_with_its_place_and_its_answer() {
        let question = QuestionView {
            id: "1a2b3c4d".into(),
            text: "Which database?\nIt matters.".into(),
            answer: Some("Postgres,\nversion 16".into()),
            path: protocol::path::WirePath("/home/me/proj".into()),
            run: "port".into(),
        };
        insta::assert_snapshot!(strip_str(&render(&question, false)), @r"
        1a2b3c4d  /home/me/proj  run port
          Which database?
          It matters.
          answer: Postgres,
                  version 16
        ");
        assert!(strip_str(&render(&question, true)).to_string().starts_with("port/1a2b3c4d  /home/me/proj"));
        let other = QuestionView { path: protocol::path::WirePath("/home/me/other".into()), ..question.clone() };
        assert!(is_ambiguous(&[question.clone(), other], &question));
        assert!(!is_ambiguous(std::slice::from_ref(&question), &question));
    }
}
