//! `questions`: what agents ask, over all repositories.

use std::path::PathBuf;

use clap::Args;
use protocol::api::QuestionApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::QuestionsParams;
use protocol::view::QuestionView;
use serde::Serialize;

use crate::args::Place;
use crate::failure::Failure;
use crate::fleet;
use crate::invocation::Invocation;
use crate::mirror::{self, Depth, FromRemote, Wanted};
use crate::text::paint::{DIM, HEAD, paint};
use crate::text::safe::safe;

const EXAMPLES: &str = "Examples:
  runnerctl questions          open ones, in all repositories
  runnerctl questions --all    answered ones too
  runnerctl questions .        of this repository
  runnerctl questions --remote origin    of runs that were pushed there";

/// List the questions that agents ask
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QuestionsArgs {
    /// Any path in a repository [default: all repositories]
    #[command(flatten)]
    place: Place,
    /// Include answered questions, after the open ones
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    from: FromRemote,
}

#[derive(Serialize)]
struct Questions {
    questions: Vec<QuestionView>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, mut args: QuestionsArgs) -> Result<ExitStatus, Failure> {
    let Some(remote) = args.from.remote.take() else { return list(invocation, args).await };
    let place = args.place.path.take();
    let wanted = Wanted { remote: &remote, place: place.as_deref(), run: None, depth: Depth::Tip };
    mirror::within(invocation, wanted, async |inside| {
        let place = Place { path: Some(PathBuf::from(".")) };
        list(inside, QuestionsArgs { place, ..args }).await
    })
    .await
}

async fn list(invocation: &Invocation<'_>, args: QuestionsArgs) -> Result<ExitStatus, Failure> {
    if !invocation.hosts.is_empty() {
        if args.place.path.is_some() {
            return Err(Failure::usage("a path is one machine's").hint("name one machine for it"));
        }
        let question = async |inside: &Invocation<'_>| asked(inside, &args).await;
        return fleet::ask(invocation, "questions-of-hosts", question, |answer, _| answer.text()).await;
    }
    let answer = asked(invocation, &args).await?;
    invocation.ui.answer("questions", &answer, |_| answer.text())?;
    if answer.questions.is_empty() {
        invocation.ui.note("No questions.\n");
    }
    Ok(ExitStatus::Fine)
}

async fn asked(invocation: &Invocation<'_>, args: &QuestionsArgs) -> Result<Questions, Failure> {
    let path = args.place.path().map(|path| invocation.place(Some(path))).transpose()?;
    let params = QuestionsParams { path, all: args.all };
    Ok(Questions { questions: invocation.connect().await?.client().questions(params).await? })
}

impl Questions {
    fn text(&self) -> String {
        let rendered = |question: &QuestionView| render(question, is_asked_twice(&self.questions, question));
        self.questions.iter().map(rendered).collect()
    }
}

/// Whether another run asks the same: then the id alone says too little.
fn is_asked_twice(all: &[QuestionView], question: &QuestionView) -> bool {
    all.iter().any(|other| other.id == question.id && other.path != question.path)
}

fn render(question: &QuestionView, with_run: bool) -> String {
    let QuestionView { id, text, answer, path, run } = question;
    let id = if with_run { format!("{run}/{id}") } else { id.clone() };
    let id = &id;
    let mut lines = format!("{}  {}\n", paint(HEAD, &safe(id)), paint(DIM, &safe(&format!("{path}  run {run}"))));
    lines.extend(text.lines().map(|line| format!("  {}\n", safe(line))));
    let answer = answer.iter().flat_map(|answer| answer.lines());
    lines.extend(answer.enumerate().map(|(at, line)| {
        let mark = if at == 0 { "answer: " } else { "        " };
        format!("  {mark}{}\n", safe(line))
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
        assert!(is_asked_twice(&[question.clone(), other], &question));
        assert!(!is_asked_twice(std::slice::from_ref(&question), &question));
    }
}
