//! `log`: records of iterations, live while one runs.

use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use jsonrpsee::core::client::Subscription as Stream;
use protocol::api::{EventApiClient as _, IterationApiClient as _};
use protocol::client::Connection;
use protocol::error::ExitStatus;
use protocol::event::Event;
use protocol::meta::{ReviewFacts, SessionFailure};
use protocol::path::WirePath;
use protocol::reply::IterationReply;
use protocol::request::{AtIteration, AtRun, LogParams, LogStream, Subscription};
use protocol::view::{IterationView, TextView};
use protocol::words::{FailureClass, ReviewVerdict, Role};
use serde::Serialize;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::iteration::{line, table};
use crate::text::measure::span;
use crate::text::paint::DIM;
use crate::text::safe::safe_lines;
use crate::text::screen::Screen;
use crate::text::table::{Cell, Table};
use crate::text::usage;
use crate::ui::Ui;

/// New text is looked for at the latest after this time, should no event tell of it.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "Examples:
  runnerctl log               the iterations of the run
  runnerctl log 3             the facts of iteration 3
  runnerctl log 3.w1 --agent  what its first try printed, which found no service and left no commit
  runnerctl log 3 --guard     what its guard printed
  runnerctl log 3 --review    what its reviewer printed
  runnerctl log -f            what the agent prints, live
  runnerctl log 3 --diff --run tidy-1";

/// Show records of iterations
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogArgs {
    /// Number of the iteration, `7.w2` for its second wait [default with a stream: the live one, else the last]
    #[arg(value_name = "ITER")]
    pub(crate) iter: Option<Iter>,
    #[command(flatten)]
    streams: Streams,
    /// Go on until nothing more is written; the agent's output by default
    #[arg(short, long)]
    follow: bool,
    /// Id of the run, or its unambiguous beginning [default: the first in the queue, else the last]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

/// An iteration, or a wait under its number that left no commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Iter {
    number: u32,
    wait: Option<u32>,
}

impl FromStr for Iter {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (number, wait) = text.split_once(".w").map_or((text, None), |(number, wait)| (number, Some(wait)));
        Ok(Self { number: number.parse()?, wait: wait.map(str::parse).transpose()? })
    }
}

#[derive(Debug, Args)]
#[group(multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct Streams {
    /// What the agent printed
    #[arg(long)]
    agent: bool,
    /// What the guard printed
    #[arg(long)]
    guard: bool,
    /// What the reviewer printed
    #[arg(long)]
    review: bool,
    /// The prompt
    #[arg(long)]
    prompt: bool,
    /// What the iteration changed
    #[arg(long)]
    diff: bool,
    /// The answer
    #[arg(long)]
    output: bool,
}

impl Streams {
    fn chosen(&self) -> Option<LogStream> {
        [
            (self.agent, LogStream::Agent),
            (self.guard, LogStream::Guard),
            (self.review, LogStream::Review),
            (self.prompt, LogStream::Prompt),
            (self.diff, LogStream::Diff),
            (self.output, LogStream::Output),
        ]
        .into_iter()
        .find_map(|(chosen, stream)| chosen.then_some(stream))
    }
}

#[derive(Serialize)]
struct Iterations<'a> {
    iterations: &'a [IterationView],
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: LogArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.place(None)?;
    let connection = invocation.connect().await?;
    let stream = args.streams.chosen().or(args.follow.then_some(LogStream::Agent));
    match (stream, args.iter) {
        (Some(stream), iter) => {
            let at = at_iteration(path, args.run, iter);
            let reader = Reader {
                ui: invocation.ui,
                connection: &connection,
                at: LogParams { at, stream, offset: 0, raw: false },
            };
            if args.follow { reader.follow().await? } else { reader.whole().await? }
        }
        (None, Some(iter)) => {
            let at = at_iteration(path, args.run, Some(iter));
            let reply = connection.client().get(at).await?;
            invocation.ui.answer("iteration", &reply, |screen| summary(&reply, screen))?;
        }
        (None, None) => {
            let iterations = connection.client().list(AtRun { path, run: args.run }).await?;
            let answer = Iterations { iterations: &iterations };
            invocation.ui.answer("iterations", &answer, |screen| list(&iterations, screen))?;
        }
    }
    Ok(ExitStatus::Fine)
}

fn at_iteration(path: WirePath, run: Option<String>, iter: Option<Iter>) -> AtIteration {
    AtIteration { path, run, iter: iter.map(|iter| iter.number), wait: iter.and_then(|iter| iter.wait) }
}

fn list(iterations: &[IterationView], screen: &Screen) -> String {
    if iterations.is_empty() { String::new() } else { table(iterations, screen) }
}

fn summary(reply: &IterationReply, screen: &Screen) -> String {
    let mut facts = Table::bare();
    let mut fact = |name, value: Cell| facts.row([Cell::styled(DIM, name), value]);
    if let Some(meta) = &reply.meta {
        fact("node", meta.node_path.join("/").into());
        let is_session = meta.role != Role::Human;
        if is_session {
            fact("session", format!("{} as {}, {}", meta.agent, meta.role, meta.mode).into());
        }
        if let Some(detail) = &meta.detail {
            fact("detail", detail.into());
        }
        if let Some(failure) = &meta.failure {
            failure_facts(failure, &mut fact);
        }
        if let Some(review) = &meta.review {
            review_facts(review, &mut fact);
        }
        let phases: Vec<String> =
            meta.phases.iter().map(|time| format!("{} {}", time.phase, span(time.duration_ms))).collect();
        fact("phases", phases.join(", ").into());
        for seen in &meta.secrets {
            fact("secret", format!("the value of {} is in {}", seen.variable, seen.path).into());
        }
        for moved in &meta.moved_refs {
            fact("moved", moved.into());
        }
        for fault in &meta.log_faults {
            fact("incomplete", fault.into());
        }
        if is_session {
            fact("usage", usage::session(&meta.usage).into());
            fact("output", format!("{} bytes kept, {} dropped", meta.captured_bytes, meta.dropped_bytes).into());
        }
    }
    if let Some(commit) = &reply.iteration.commit {
        fact("commit", commit.into());
    }
    fact("record", reply.record.to_string().into());
    line(&reply.iteration, screen) + &facts.render(screen, 2)
}

/// Shows why the agent gave no answer, and what was seen of it.
fn failure_facts(failure: &SessionFailure, fact: &mut impl FnMut(&'static str, Cell)) {
    let class = failure.class.map_or("unknown", FailureClass::as_str);
    let until = failure.until.map_or_else(String::new, |until| format!(" until {until}"));
    let by = failure.signature.as_ref().map_or_else(String::new, |line| format!(" ({line})"));
    fact("failure", format!("{class}{until}{by}").into());
    for seen in &failure.evidence {
        fact("evidence", seen.into());
    }
}

/// Shows what a review decided, and what of it was undone.
fn review_facts(review: &ReviewFacts, fact: &mut impl FnMut(&'static str, Cell)) {
    let verdict = review.verdict.map_or("nothing was decided", ReviewVerdict::as_str);
    let by = if review.by == Role::Human.as_str() { "a person" } else { review.by.as_str() };
    let tries = if review.tries > 1 { format!(", asked {} times", review.tries) } else { String::new() };
    fact("review", format!("{verdict} by {by}{tries}").into());
    if let Some(failure) = &review.failure {
        failure_facts(failure, fact);
    }
    for wrote in &review.wrote {
        fact("undone", wrote.into());
    }
}

/// Reads one file of a record.
struct Reader<'a> {
    ui: &'a Ui,
    connection: &'a Connection,
    at: LogParams,
}

impl Reader<'_> {
    /// Prints what is there.
    async fn whole(mut self) -> Result<(), Failure> {
        let mut all = TextView { text: String::new(), next_offset: 0, complete: false };
        loop {
            let part = self.read().await?;
            let end = part.complete || part.text.is_empty();
            if self.ui.json {
                all.text += &part.text;
            } else {
                Ui::text(&safe_lines(&part.text))?;
            }
            (all.next_offset, all.complete) = (part.next_offset, part.complete);
            if end {
                return if self.ui.json { Ui::object("log", &all) } else { Ok(()) };
            }
        }
    }

    /// Prints what is there and what comes, until nobody writes any more.
    async fn follow(mut self) -> Result<(), Failure> {
        let wanted = Subscription { path: Some(self.at.at.path.clone()), since: None, output: true };
        let mut events = self.connection.client().subscribe_events(wanted).await?;
        loop {
            let part = self.read().await?;
            if self.ui.json && !part.text.is_empty() {
                Ui::object("log", &part)?;
            } else if !self.ui.json {
                Ui::text(&safe_lines(&part.text))?;
            }
            if part.complete {
                return Ok(());
            }
            if part.text.is_empty() {
                wait_for_more(&mut events).await;
            }
        }
    }

    async fn read(&mut self) -> Result<TextView, Failure> {
        let part = self.connection.client().log(self.at.clone()).await?;
        self.at.offset = part.next_offset;
        Ok(part)
    }
}

/// Returns when something happened in the repository, or after a while.
async fn wait_for_more(events: &mut Stream<Event>) {
    let _ = tokio::time::timeout(LONGEST_WAIT, events.next()).await;
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anstream::adapter::strip_str;

    use super::*;
    use crate::text::samples;

    #[test]
    fn iterations_are_listed_with_what_they_came_to() {
        let run = samples::run();
        insta::assert_snapshot!(strip_str(&list(&run.recent, &Screen::fixed())), @r"
        ITER  VERDICT   GUARD       NODE        TIME    COST   COMMIT    SUMMARY
        0003  RedGuard  guard=fail  parser.lex  14s     $0.42  01234567  the lexer knows numbers
        0002  Accepted  guard=pass  parser.ast  1m 01s  $?     01234567
        ");
    }

    #[test]
    fn a_review_says_who_decided_what_and_what_was_undone() {
        let review = ReviewFacts {
            by: "codex 0.169.0".into(),
            verdict: Some(ReviewVerdict::Reject),
            session_id: None,
            tries: 2,
            failure: None,
            usage: protocol::state::UsageTotal::default(),
            wrote: vec!["junk.txt".into()],
        };
        let shown = |review: &ReviewFacts| {
            let mut facts = Table::bare();
            review_facts(review, &mut |name, value| facts.row([Cell::styled(DIM, name), value]));
            strip_str(&facts.render(&Screen::fixed(), 2)).to_string()
        };
        insta::assert_snapshot!(shown(&review), @r"
        review  reject by codex 0.169.0, asked 2 times
        undone  junk.txt
        ");
        let person = ReviewFacts { by: "human".into(), tries: 0, wrote: Vec::new(), ..review };
        insta::assert_snapshot!(shown(&person), @"review  reject by a person");
    }

    #[test]
    fn an_iteration_without_facts_still_names_its_record() {
        let reply = IterationReply {
            iteration: samples::iteration(),
            record: Path::new("/home/me/proj/.runner/iterations/run-1a2b3c4d/0003").into(),
            meta: None,
        };
        insta::assert_snapshot!(strip_str(&summary(&reply, &Screen::fixed())), @r"
        0003  RedGuard  guard=fail  parser.lex  14s  $0.42  01234567  the lexer knows numbers
          commit  0123456789abcdef0123456789abcdef01234567
          record  /home/me/proj/.runner/iterations/run-1a2b3c4d/0003
        ");
    }
}
