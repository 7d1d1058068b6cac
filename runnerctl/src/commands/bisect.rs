//! `bisect`: finds the task whose commit broke a command, and reads receipts before it runs anything.

use std::mem;
use std::time::Instant;

use clap::Args;
use protocol::api::BisectApiClient as _;
use protocol::bisect::{BisectPoint, PointsParams, PointsReply, TryParams, TryReply};
use protocol::client::{Connection, caller_env};
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::request::{AtRun, CallerEnv};
use serde::Serialize;

use crate::bisect::{BisectSearch, BisectVerdict, SearchStep};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::progress::ProgressLine;
use crate::run_target::RunTarget;
use crate::text::bisect::{describe_point, render_outcome};
use crate::text::sanitize::{sanitize, sanitize_lines};
use crate::wait::ProgressLines;

const EXAMPLES: &str = "Examples:
  runnerctl bisect -- cargo test --test parser
  runnerctl bisect port-to-postgres -- sh -c 'make && ./smoke'
  runnerctl bisect --json -- just ci      the guard: results come from receipts

COMMAND runs in a temporary directory with the files of a commit and the
variables of a guard, without a git directory. Its exit code:
  0        works
  125      cannot be tested; the search tries another commit
  1 - 127  broken
  others   the search stops, as it does after a signal";

/// Find the task whose commit broke a command
///
/// Bisects the commits of iterations and of people that changed files outside .runner/. If COMMAND is the guard's,
/// receipts already have its results; otherwise COMMAND runs, and each result halves the search. Your working tree is
/// not touched.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BisectArgs {
    #[command(flatten)]
    target: RunTarget,
    /// Let git use your own configuration even though a session has changed it
    #[arg(long)]
    yes: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Outcome of a search.
#[derive(Debug, Serialize)]
pub(crate) struct BisectOutcome<'a> {
    /// The run.
    pub(crate) run: &'a str,
    /// The states that may have broken the command, oldest first: one, unless others cannot be tested.
    pub(crate) broken_by: Vec<&'a BisectPoint>,
    /// Number of states.
    pub(crate) points: usize,
    /// The states that were tried, in order.
    pub(crate) tried: Vec<TrialResult<'a>>,
    /// The end of the command's output in the last of the suspected states, if it was run there.
    pub(crate) output: Option<String>,
}

/// A state in which the command was run.
#[derive(Debug, Serialize)]
pub(crate) struct TrialResult<'a> {
    commit: &'a str,
    exit: i32,
    elapsed_ms: u64,
    #[serde(skip)]
    output: String,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: BisectArgs) -> Result<ExitStatus, Failure> {
    let connection = invocation.connect().await?;
    let AtRun { path, run } = args.target.resolve(invocation, connection.client()).await?;
    let params = PointsParams { path: path.clone(), run, command: args.command.clone() };
    let PointsReply { run, points } = connection.client().bisect_points(params).await?;
    let env = caller_env::collect(&connection, &path).await;
    let runner = TrialRunner {
        invocation,
        connection: &connection,
        path,
        run: &run,
        command: args.command,
        confirmed: args.yes,
        env,
    };
    let (broken_by, mut tried) = runner.run_search(&points).await?;
    let last = broken_by.last().and_then(|point| tried.iter_mut().find(|tried| tried.commit == point.commit));
    let output = last.map(|last| mem::take(&mut last.output));
    let outcome = BisectOutcome { run: &run, broken_by, points: points.len(), tried, output };
    invocation.ui.print_answer("bisect", &outcome, |screen| render_outcome(&outcome, screen))?;
    Ok(ExitStatus::Success)
}

/// What is needed to run the command.
struct TrialRunner<'a> {
    invocation: &'a Invocation<'a>,
    connection: &'a Connection,
    path: WirePath,
    run: &'a str,
    command: Vec<String>,
    confirmed: bool,
    env: CallerEnv,
}

impl TrialRunner<'_> {
    async fn run_search<'p>(
        &self,
        points: &'p [BisectPoint],
    ) -> Result<(Vec<&'p BisectPoint>, Vec<TrialResult<'p>>), Failure> {
        let mut search = BisectSearch::new(points);
        let mut tried = Vec::new();
        let lines = ProgressLines::new(self.invocation.ui);
        let started = Instant::now();
        loop {
            let index = match search.next_step() {
                SearchStep::Try(at) => at,
                SearchStep::Found(at) => break Ok((vec![&points[at]], tried)),
                SearchStep::OneOf(all) => break Ok((all.into_iter().map(|at| &points[at]).collect(), tried)),
                step => break Err(nothing_found_error(&step, points)),
            };
            let point = &points[index];
            let text = format!(
                "{} of {} states left: trying {}",
                search.candidates_left(),
                points.len(),
                describe_point(point)
            );
            let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            lines.show(vec![ProgressLine::Transient { text, elapsed_ms }]);
            let (verdict, trial) = self.try_point(point).await?;
            tried.push(trial);
            search.record_verdict(index, verdict);
        }
        .inspect(|_| lines.finish())
    }

    /// Runs the command on the files of a state.
    async fn try_point<'p>(&self, point: &'p BisectPoint) -> Result<(BisectVerdict, TrialResult<'p>), Failure> {
        let path = self.path.clone();
        let run = self.run.to_owned();
        let commit = point.commit.clone();
        let command = self.command.clone();
        let env = self.env.clone();
        let params = TryParams { path, run, commit, command, confirmed: self.confirmed, env };
        let reply = self.connection.client().bisect_try(params).await?;
        let Some((verdict, exit)) = reply.exit.and_then(BisectVerdict::from_exit_code).zip(reply.exit) else {
            return Err(aborted_error(point, &reply));
        };
        let TryReply { elapsed_ms, output, .. } = reply;
        Ok((verdict, TrialResult { commit: &point.commit, exit, elapsed_ms, output }))
    }
}

fn aborted_error(point: &BisectPoint, reply: &TryReply) -> Failure {
    let message = format!("the search ended at {}: {}", describe_point(point), sanitize(&reply.ended));
    let failure = Failure::new(ExitStatus::Error, "fault", message);
    if reply.output.trim().is_empty() { failure } else { failure.caused_by(sanitize_lines(reply.output.trim_end())) }
}

/// Explains why a search found nothing.
fn nothing_found_error(step: &SearchStep, points: &[BisectPoint]) -> Failure {
    let refused = |message: String| Failure::new(ExitStatus::Error, "not_found", message);
    match step {
        SearchStep::NeverWorked => {
            let first = points.first().map(describe_point).unwrap_or_default();
            refused(format!("the command did not work before the run either: it fails at {first}"))
        }
        SearchStep::Untestable(at) => {
            refused(format!("the command cannot tell (exit code 125) at {}", describe_point(&points[*at])))
        }
        SearchStep::NotBroken | SearchStep::Try(_) | SearchStep::Found(_) | SearchStep::OneOf(_) => {
            let last = points.last().map(describe_point).unwrap_or_default();
            refused(format!("nothing is broken: the command works at the end of the branch, {last}"))
        }
    }
}
