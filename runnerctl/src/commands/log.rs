//! `log`: shows the records of iterations, live while one runs.

mod reader;

use std::fmt::Write as _;

use clap::Args;
use protocol::api::IterationApiClient as _;
use protocol::error::{ErrorKind, ExitStatus};
use protocol::meta::{IterationMeta, ReviewFacts, SessionFailure};
use protocol::reply::IterationReply;
use protocol::request::{AtIteration, AtRun, LogParams, LogStream};
use protocol::view::IterationView;
use protocol::words::{FailureClass, GuardOutcome, ReviewVerdict, Role};
use serde::Serialize;

use self::reader::LogReader;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::pager::Pager;
use crate::record_selector::{RecordSelector, RecordTarget};
use crate::remote_status::{self, FetchDepth, RemoteArgs, RemoteQuery};
use crate::run_target::RunTarget;
use crate::text::iteration::{render_line, render_table};
use crate::text::measure::{format_duration, short_id};
use crate::text::paint::DIM;
use crate::text::screen::Screen;
use crate::text::table::{Table, TableCell};
use crate::text::usage;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  runnerctl log               the iterations of the run
  runnerctl log 3             iteration 3 in detail
  runnerctl log 3.w1 --agent  its first wait for a service
  runnerctl log 3 --guard     what its guard printed
  runnerctl log 3 --guard-accepted    with its approved files
  runnerctl log --baseline    what the guard printed on the base commit
  runnerctl log 3 --review    what its reviewer printed
  runnerctl log -f            what the agent prints, live
  runnerctl log tidy-1/3 --diff
  runnerctl log --node parser.lex            every attempt at a task
  runnerctl log --node parser.lex --guard    its latest guard
  runnerctl log 3 --raw                      unprocessed, for a pipe
  runnerctl log --remote origin tidy-1";

/// Show iterations, and what their agents and guards printed
///
/// On a terminal, long text goes through `$PAGER`, or `less`; `PAGER=cat` turns that off.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogArgs {
    /// An iteration (`7`, `7.w2`, `RUN/7`), a run, or any path in its repository [default with a stream: the live one, else the last]
    #[arg(value_name = "ITER|RUN|PATH")]
    pub(crate) what: Option<RecordTarget>,
    #[command(flatten)]
    streams: StreamFlags,
    /// Follow until nothing more is written [default: the agent's output]
    #[arg(short, long)]
    follow: bool,
    /// Unprocessed bytes, for a file or a pipe [default: the agent's output]
    #[arg(long, conflicts_with = "follow")]
    raw: bool,
    /// Only iterations on this task: its id or a prefix
    #[arg(long, value_name = "ID")]
    node: Option<String>,
    /// Run id or a unique prefix [default: the one run here that has not ended, else the last]
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    #[command(flatten)]
    from: RemoteArgs,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct StreamFlags {
    /// What the agent printed
    #[arg(long)]
    agent: bool,
    /// What the guard printed
    #[arg(long)]
    guard: bool,
    /// What the guard printed with its approved files, where it ran with both
    #[arg(long)]
    guard_accepted: bool,
    /// What the guard printed the second time, where it failed and ran once more
    #[arg(long)]
    guard_rerun: bool,
    /// What the guard printed on the base commit, before the first iteration
    #[arg(long, conflicts_with = "node")]
    baseline: bool,
    /// What the reviewer printed
    #[arg(long)]
    review: bool,
    /// The prompt
    #[arg(long)]
    prompt: bool,
    /// The diff of the iteration
    #[arg(long)]
    diff: bool,
    /// The agent's answer
    #[arg(long)]
    output: bool,
}

impl StreamFlags {
    fn selected(&self) -> Option<LogStream> {
        [
            (self.agent, LogStream::Agent),
            (self.guard, LogStream::Guard),
            (self.guard_accepted, LogStream::GuardAccepted),
            (self.guard_rerun, LogStream::GuardRerun),
            (self.baseline, LogStream::Baseline),
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
struct IterationList<'a> {
    iterations: &'a [IterationView],
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: LogArgs) -> Result<ExitStatus, Failure> {
    let LogArgs { what, run, from, .. } = &args;
    let (target, record) = what.clone().map_or_else(Default::default, RecordTarget::into_parts);
    if record.is_some() && (args.node.is_some() || args.streams.baseline) {
        return Err(Failure::usage("an iteration is named, and --node or --baseline too").hint("runnerctl log --help"));
    }
    let target = RunTarget { run: run.clone().or(target.run), ..target };
    let Some(remote) = from.remote.clone() else { return print_log(invocation, target, record, args).await };
    if args.follow || args.raw || args.streams.selected().is_some() {
        let message = "prompts, diffs, and what agents and guards print are on the machine that drove the run, and not \
                       in its branch";
        return Err(Failure::usage(message).hint("without such an option the commits are listed: git show COMMIT"));
    }
    let (path, run) = target.split(invocation)?;
    let query = RemoteQuery { remote: &remote, path: path.as_deref(), run: run.as_deref(), depth: FetchDepth::Commits };
    remote_status::with_remote(invocation, query, async |inside| {
        let target = RunTarget::from_id(remote_status::find_single_run(inside, run.clone()).await?);
        print_log(inside, target, record, args).await
    })
    .await
}

async fn print_log(
    invocation: &Invocation<'_>,
    target: RunTarget,
    record: Option<RecordSelector>,
    args: LogArgs,
) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let at = target.resolve_one(invocation, connection.client()).await?;
    let stream = args.streams.selected().or((args.follow || args.raw).then_some(LogStream::Agent));
    let node_iterations = match &args.node {
        Some(node) => Some(filter_by_node(connection.client().list(at.clone()).await?, node)?),
        None => None,
    };
    let last = node_iterations.as_deref().and_then(<[_]>::last).map(|view| (view.iter, view.wait));
    match (stream, record.map(|record| (record.iter, record.wait))) {
        (Some(stream), iter) => {
            let at = to_iteration_target(at, iter.or(last));
            let params = LogParams { at, stream, offset: 0, raw: false };
            let reader = LogReader { invocation, connection: connection.into(), params };
            match (args.follow, args.raw) {
                (true, _) => reader.follow().await?,
                (false, true) => reader.write_raw().await?,
                (false, false) => reader.print_whole().await?,
            }
        }
        (None, Some(iter)) => {
            let reply = connection.client().get(to_iteration_target(at, Some(iter))).await?;
            // A clone has only the commit.
            let has_record = invocation.host.is_some() || reply.record.as_path().is_dir();
            print_paged(invocation.ui, "iteration", &reply, |screen| render_summary(&reply, has_record, screen))?;
        }
        (None, None) => {
            let iterations = match node_iterations {
                Some(iterations) => iterations,
                None => connection.client().list(at).await?,
            };
            let answer = IterationList { iterations: &iterations };
            print_paged(invocation.ui, "iterations", &answer, |screen| render_list(&iterations, screen))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Prints the answer like [`Ui::print_answer`], through the pager if there is a terminal.
fn print_paged<T: Serialize>(
    ui: &Ui,
    name: &str,
    body: &T,
    text: impl FnOnce(&Screen) -> String,
) -> Result<(), Failure> {
    if ui.json {
        return Ui::print_object(name, body);
    }
    let mut pager = Pager::open(ui);
    pager.write(&text(&ui.screen()))?;
    pager.close()
}

/// Keeps the iterations on a node, which is named by its id or a unique prefix.
fn filter_by_node(all: Vec<IterationView>, node: &str) -> Result<Vec<IterationView>, Failure> {
    let failed = |message: String| {
        let hint = "runnerctl tree";
        Failure::new(ExitStatus::from(ErrorKind::NotFound), ErrorKind::NotFound.as_str(), message).hint(hint)
    };
    let mut ids: Vec<&str> = all.iter().map(|view| view.node.as_str()).filter(|id| id.starts_with(node)).collect();
    ids.sort_unstable();
    ids.dedup();
    let id = match ids[..] {
        [] => return Err(failed(format!("no iteration has worked on task {node} yet"))),
        [one] => one.to_owned(),
        _ if ids.contains(&node) => node.to_owned(),
        _ => return Err(failed(format!("`{node}` matches more than one task: {}", ids.join(", ")))),
    };
    Ok(all.into_iter().filter(|view| view.node == id).collect())
}

fn to_iteration_target(AtRun { path, run }: AtRun, record: Option<(u32, Option<u32>)>) -> AtIteration {
    AtIteration { path, run, iter: record.map(|(iter, _)| iter), wait: record.and_then(|(_, wait)| wait) }
}

fn render_list(iterations: &[IterationView], screen: &Screen) -> String {
    if iterations.is_empty() {
        return "No iteration has ended yet.\n".to_owned();
    }
    let mut text = render_table(iterations, screen);
    let unrecorded: Vec<String> = iterations.iter().filter_map(describe_unrecorded).collect();
    if let [first, ..] = iterations
        && !unrecorded.is_empty()
    {
        let _ = writeln!(text, "\nnot in the records of this machine: {}", unrecorded.join(", "));
        let _ = writeln!(text, "to check who made them: runnerctl verify {}", first.run);
    }
    text
}

/// Names an iteration whose commit the machine's records do not have: another machine made it, or somebody forged it.
fn describe_unrecorded(iteration: &IterationView) -> Option<String> {
    let commit = iteration.commit.as_deref().filter(|_| iteration.recorded == Some(false))?;
    Some(format!("{:04} {}", iteration.iter, short_id(commit)))
}

fn render_summary(reply: &IterationReply, has_record: bool, screen: &Screen) -> String {
    let mut facts = Table::without_names();
    let mut fact = |name, value: TableCell| facts.add_row([TableCell::styled(DIM, name), value]);
    // The line above would truncate these.
    let headline = IterationView { title: None, summary: None, ..reply.iteration.clone() };
    if let Some(title) = &reply.iteration.title {
        fact("title", title.into());
    }
    if let Some(summary) = &reply.iteration.summary {
        fact("summary", summary.into());
    }
    if describe_unrecorded(&reply.iteration).is_some() {
        let text = format!("not on this machine; to check who made it: runnerctl verify {}", reply.iteration.run);
        fact("recorded", text.as_str().into());
    }
    if let Some(meta) = &reply.meta {
        fact("task", meta.node_path.join("/").into());
        let is_session = meta.role != Role::Human;
        if is_session {
            fact("session", format!("{} as {}, {}", meta.agent, meta.role, meta.mode).into());
        }
        if let Some(detail) = &meta.detail {
            fact("detail", detail.into());
        }
        if let Some(failure) = &meta.failure {
            add_failure_facts(failure, &mut fact);
        }
        if let Some(review) = &meta.review {
            add_review_facts(review, &mut fact);
        }
        if let Some(guard_text) = describe_guard_run(meta) {
            fact("guard", guard_text.into());
        }
        let phases: Vec<String> =
            meta.phases.iter().map(|time| format!("{} {}", time.phase, format_duration(time.duration_ms))).collect();
        fact("phases", phases.join(", ").into());
        for file in &meta.secrets {
            fact("secret", format!("the value of {} is in {}", file.variable, file.path).into());
        }
        for path in &meta.held_back {
            fact("held back", path.into());
        }
        for path in &meta.reverted {
            fact("put back", path.into());
        }
        for path in &meta.hidden {
            fact("hidden", format!("{path}, while an agent ran").into());
        }
        for path in &meta.dirty_submodules {
            fact("uncommitted", format!("work in the submodule {path}").into());
        }
        for moved in &meta.moved_refs {
            fact("moved", moved.into());
        }
        for fault in &meta.log_faults {
            fact("incomplete", fault.into());
        }
        if is_session {
            fact("usage", usage::render_session(&meta.usage).into());
            fact("output", format!("{} bytes kept, {} dropped", meta.captured_bytes, meta.dropped_bytes).into());
        }
    }
    if let Some(tests) = &reply.iteration.tests {
        fact("tests", tests.to_string().into());
    }
    if let Some(flaky) = &reply.iteration.flaky {
        fact("flaky", flaky.to_string().into());
    }
    if let Some(commit) = &reply.iteration.commit {
        fact("commit", commit.into());
    }
    if has_record {
        fact("record", reply.record.to_string().into());
    }
    render_line(&headline, screen) + &facts.render(screen, 2)
}

/// Describes how the guard ran if its definition was not the approved one: once, or with both definitions.
fn describe_guard_run(meta: &IterationMeta) -> Option<String> {
    let exit = meta.guard_exit.map(|exit| format!(" (exit {exit})")).unwrap_or_default();
    let changed = meta.guard_changed.join(", ");
    if meta.guard_with_accepted {
        let accepted = if meta.guard == GuardOutcome::Pass { "green" } else { "not green" };
        return Some(format!(
            "ran twice: green as the session left it (--guard), and {accepted}{exit} with the accepted definition \
             (--guard-accepted); changed: {changed}"
        ));
    }
    let ran_once = meta.guard != GuardOutcome::Skipped && !meta.guard_changed.is_empty();
    ran_once.then(|| format!("ran once{exit}; changed in its definition: {changed}"))
}

/// Adds why the agent gave no answer, and the evidence.
fn add_failure_facts(failure: &SessionFailure, fact: &mut impl FnMut(&'static str, TableCell)) {
    let class = failure.class.map_or("unknown", FailureClass::as_str);
    let until = failure.until.map_or_else(String::new, |until| format!(" until {until}"));
    let by = failure.signature.as_ref().map_or_else(String::new, |line| format!(" ({line})"));
    fact("failure", format!("{class}{until}{by}").into());
    for line in &failure.evidence {
        fact("evidence", line.into());
    }
}

/// Adds a review's decision, and which of its changes were undone.
fn add_review_facts(review: &ReviewFacts, fact: &mut impl FnMut(&'static str, TableCell)) {
    let verdict = review.verdict.map_or("no verdict", ReviewVerdict::as_str);
    let by = if review.by == Role::Human.as_str() { "a person" } else { review.by.as_str() };
    let tries = if review.tries > 1 { format!(", asked {} times", review.tries) } else { String::new() };
    fact("review", format!("{verdict} by {by}{tries}").into());
    if let Some(failure) = &review.failure {
        add_failure_facts(failure, fact);
    }
    for path in &review.wrote {
        fact("undone", path.into());
    }
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
        insta::assert_snapshot!(strip_str(&render_list(&run.recent, &Screen::fixed())), @r"
        ITER  VERDICT       GUARD       TASK        TIME    COST   COMMIT    SUMMARY
        0003  guard failed  guard=fail  parser.lex  14s     $0.42  01234567  The lexer: the lexer knows num…
        0002  finished      guard=pass  parser.ast  1m 01s  $?     01234567  The syntax tree
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
        let rendered = |review: &ReviewFacts| {
            let mut facts = Table::without_names();
            add_review_facts(review, &mut |name, value| facts.add_row([TableCell::styled(DIM, name), value]));
            strip_str(&facts.render(&Screen::fixed(), 2)).to_string()
        };
        insta::assert_snapshot!(rendered(&review), @r"
        review  reject by codex 0.169.0, asked 2 times
        undone  junk.txt
        ");
        let person = ReviewFacts { by: "human".into(), tries: 0, wrote: Vec::new(), ..review };
        insta::assert_snapshot!(rendered(&person), @"review  reject by a person");
    }

    #[test]
    fn a_node_is_named_by_a_beginning_that_is_no_other_ones() {
        let count_on = |named: &str| {
            let nodes = ["parser.lex", "parser", "parser.ast", "parser"];
            let all = nodes.map(|node| IterationView { node: node.into(), ..samples::iteration() });
            filter_by_node(all.into(), named).map(|found| found.len()).map_err(|failure| failure.status())
        };
        assert_eq!((count_on("parser"), count_on("parser.l")), (Ok(2), Ok(1)));
        assert_eq!((count_on("pars"), count_on("x")), (Err(ExitStatus::Error), Err(ExitStatus::Error)));
    }

    #[test]
    fn an_iteration_without_facts_still_names_its_record() {
        let reply = IterationReply {
            failures: Vec::new(),
            iteration: samples::iteration(),
            record: Path::new("/home/me/proj/.runner/iterations/run-1a2b3c4d/0003").into(),
            meta: None,
        };
        insta::assert_snapshot!(strip_str(&render_summary(&reply, true, &Screen::fixed())), @r"
        0003  guard failed  guard=fail  parser.lex  14s  $0.42  01234567
          title    The lexer
          summary  the lexer knows numbers
          commit   0123456789abcdef0123456789abcdef01234567
          record   /home/me/proj/.runner/iterations/run-1a2b3c4d/0003
        ");
    }
}
