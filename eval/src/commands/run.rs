//! `run`: runs cases and reports their outcomes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use protocol::error::ExitStatus;
use protocol::sanitize::sanitize;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::print_answer;
use crate::args::{GlobalOptions, RunArgs};
use crate::batch::{self, CostBudget, RunKind, count_results};
use crate::case::Case;
use crate::case::find::EvalDirs;
use crate::digest;
use crate::dry_run::DryRun;
use crate::error::EvalError;
use crate::plan::{CaseOverrides, RunPlan, plan_run};
use crate::report::text::format_table;
use crate::results::{Digests, ResultMeta, ResultStore};
use crate::sandbox::{HostEnv, Sandbox, TestedPrograms};
use crate::trial::{CaseTrial, RunnerContext};

/// The answer of `run`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalRuns")]
pub(crate) struct RunReply {
    /// `runner/eval-runs.v1`.
    pub(crate) schema: &'static str,
    /// The folder of results.
    pub(crate) folder: String,
    /// What has been run, in the order in which it was wanted.
    pub(crate) runs: Vec<ResultMeta>,
    /// Runs that were there already, with `--continue`.
    pub(crate) there: u64,
    /// Whether the user interrupted it.
    pub(crate) interrupted: bool,
    /// Why runs did not begin, where the budget was spent before; null where all did.
    pub(crate) over_budget: Option<String>,
}

/// Runs the command.
pub(super) async fn run(global: &GlobalOptions, places: &EvalDirs, args: RunArgs) -> Result<ExitStatus, EvalError> {
    let host_env = HostEnv::from_env();
    let cases = load_cases(places, &args)?;
    if args.ui && (cases.len() > 1 || args.runs > 1 || args.variants.len() > 1) {
        return Err(EvalError::usage("the web view is for one run: name one case, without --runs"));
    }
    let variants = list_variants(&args)?;
    let mut planned = Vec::new();
    for case in cases.into_iter().map(Arc::new) {
        for changes in &variants {
            planned.push((Arc::clone(&case), Arc::new(plan_run(&case, changes, &host_env)?)));
        }
    }
    let context = Arc::new(build_context(global, places, &args, host_env)?);
    Sandbox::sweep_dead();
    watch_signals(&context.stop)?;
    refuse_configurations(&context, &planned).await?;
    context.store.record_lost()?;
    let (trials, existing) = plan_trials(&context, &planned, &args)?;
    let planned_count = trials.len();
    let budget = Arc::new(CostBudget::new(args.max_cost_usd));
    let runs = batch::run_trials(Arc::clone(&context), trials, args.jobs.into(), Arc::clone(&budget)).await?;
    let interrupted = context.stop.is_cancelled() && !args.ui;
    let over_budget = budget.stop_reason().filter(|_| !interrupted && runs.len() < planned_count);
    let over_budget =
        over_budget.map(|why| format!("{why}: {} of {planned_count} runs did not begin", planned_count - runs.len()));
    let folder = places.results.display().to_string();
    let runs = RunReply { schema: "runner/eval-runs.v1", folder, runs, there: existing, interrupted, over_budget };
    print_answer(global, &runs, || render_text(&runs))?;
    Ok(match (interrupted, runs.runs.iter().all(is_fine), &runs.over_budget) {
        (true, ..) => ExitStatus::Interrupted,
        (false, false, _) => ExitStatus::RunEnded,
        (false, true, Some(_)) => ExitStatus::Limit,
        (false, true, None) => ExitStatus::Success,
    })
}

/// Whether a result counts as expected. A skipped run is reported and is not a failure.
fn is_fine(meta: &ResultMeta) -> bool {
    meta.met || meta.outcome == crate::outcome::Outcome::Skipped
}

/// Returns the variants requested on the command line: each case runs once per variant.
fn list_variants(args: &RunArgs) -> Result<Vec<CaseOverrides>, EvalError> {
    if args.variants.is_empty() {
        let [executor, model, label] = [&args.executor, &args.model, &args.label].map(Option::clone);
        return Ok(vec![CaseOverrides { executor, model, label }]);
    }
    let mut labels = BTreeSet::new();
    match args.variants.iter().find(|variant| !labels.insert(&variant.label)) {
        Some(duplicate) => {
            let label = duplicate.label.as_deref().unwrap_or_default();
            Err(EvalError::usage(format!("two variants are called `{label}`: give one of them another LABEL=")))
        }
        None => Ok(args.variants.clone()),
    }
}

fn load_cases(places: &EvalDirs, args: &RunArgs) -> Result<Vec<Case>, EvalError> {
    if args.all {
        return places.load_all()?.into_values().collect();
    }
    args.cases.iter().map(|named| places.load_one(named)).collect()
}

/// Refuses the first case whose configuration the daemon would reject.
async fn refuse_configurations(bench: &RunnerContext, planned: &[(Arc<Case>, Arc<RunPlan>)]) -> Result<(), EvalError> {
    let cases = planned.iter().map(|(case, plan)| (&**case, &**plan)).collect::<Vec<_>>();
    let rehearsal = DryRun { programs: &bench.programs, host_env: &bench.host_env, stop: &bench.stop };
    rehearsal.check_all(&cases).await?.into_iter().collect()
}

fn build_context(
    global: &GlobalOptions,
    places: &EvalDirs,
    args: &RunArgs,
    host_env: HostEnv,
) -> Result<RunnerContext, EvalError> {
    let programs = TestedPrograms::find(global.bin_dir.as_deref(), &host_env)?;
    let templates = args.templates.as_deref().map(digest_templates).transpose()?;
    Ok(RunnerContext {
        store: ResultStore::new(&places.results),
        digests: digest_programs(&programs)?,
        programs,
        host_env,
        templates,
        keep: args.keep,
        ui: args.ui.then_some(args.port),
        is_quiet: global.quiet,
        stop: CancellationToken::new(),
    })
}

/// Hashes the programs once; they are the same for all runs of a command.
pub(crate) fn digest_programs(programs: &TestedPrograms) -> Result<Digests, EvalError> {
    let own = std::env::current_exe().map_err(|error| EvalError::new("finding this program").caused_by(&error))?;
    Ok(Digests {
        runner_eval: Some(digest::digest_file(&own)?),
        runnerd: Some(digest::digest_file(&programs.daemon)?),
        runnerctl: Some(digest::digest_file(&programs.client)?),
        ..Digests::default()
    })
}

fn digest_templates(folder: &Path) -> Result<(std::path::PathBuf, String), EvalError> {
    let folder = folder.canonicalize().map_err(|error| EvalError::file("finding the templates", folder, &error))?;
    let digest = digest::digest_folder(&folder)?;
    Ok((folder, digest))
}

/// Returns the trials to run, round by round, and how many results exist already.
fn plan_trials(
    bench: &RunnerContext,
    planned: &[(Arc<Case>, Arc<RunPlan>)],
    args: &RunArgs,
) -> Result<(Vec<CaseTrial>, u64), EvalError> {
    let mut trials = Vec::new();
    let mut existing = 0;
    let mut existing_counts = Vec::new();
    for (case, plan) in planned {
        let kind = RunKind {
            digest: &case.digest,
            executor: &plan.executor,
            model: plan.model.as_deref(),
            templates: bench.templates.as_ref().map(|(_, digest)| digest.as_str()),
            label: plan.label.as_deref(),
        };
        let count = if args.continues { count_results(&kind, &bench.store.read_results(&case.id)?) } else { 0 };
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(args.runs);
        existing += u64::from(count);
        existing_counts.push(count);
    }
    for round in 1..=args.runs {
        for ((case, plan), existing) in planned.iter().zip(&existing_counts) {
            if round > *existing {
                let mut name = case.id.clone();
                if let Some(label) = plan.label.as_ref().filter(|_| args.variants.len() > 1) {
                    name = format!("{name} {}", sanitize(label));
                }
                if args.runs > 1 {
                    name = format!("{name} {round}/{}", args.runs);
                }
                trials.push(CaseTrial { case: Arc::clone(case), plan: Arc::clone(plan), name });
            }
        }
    }
    Ok((trials, existing))
}

/// The first signal ends running trials in order. After the second one nothing is waited for: remaining processes have
/// a keeper, which ends them when this process is gone, and the next command marks the result as lost.
pub(crate) fn watch_signals(stop: &CancellationToken) -> Result<(), EvalError> {
    let listen = |kind| signal(kind).map_err(|error| EvalError::new("listening for signals").caused_by(&error));
    let mut int = listen(SignalKind::interrupt())?;
    let mut term = listen(SignalKind::terminate())?;
    let mut hup = listen(SignalKind::hangup())?;
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
            }
            if stop.is_cancelled() {
                exit_now();
            }
            let _ = writeln!(anstream::stderr().lock(), "ending what is under way; once more to leave at once");
            stop.cancel();
        }
    });
    Ok(())
}

#[expect(clippy::exit, reason = "a person who asks twice does not want to wait for anything")]
fn exit_now() -> ! {
    std::process::exit(ExitStatus::Interrupted.code().into())
}

fn render_text(runs: &RunReply) -> String {
    let head = ["CASE", "OUTCOME", "EXPECTED", "CHECKS", "ITERATIONS", "TIME", "RESULT"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for meta in &runs.runs {
        let expected = if meta.met { "as expected".to_owned() } else { format!("not {}", meta.expected) };
        let run = meta.run.as_ref();
        lines.push(vec![
            meta.case.clone(),
            meta.outcome.to_string(),
            expected,
            format!("{}/{}", meta.checks_passed, meta.checks_passed + meta.checks_failed),
            run.map_or_else(|| "-".into(), |run| run.iterations.to_string()),
            crate::report::text::format_seconds(crate::report::to_f64(meta.duration_ms) / 1e3),
            format!("{}/{}", meta.case, meta.result),
        ]);
    }
    let mut text = if runs.runs.is_empty() { String::new() } else { format_table(&lines) };
    for meta in runs.runs.iter().filter(|meta| !meta.met) {
        if let Some(reason) = &meta.reason {
            let _ = writeln!(text, "{}: {}", meta.case, sanitize(reason));
        }
    }
    if let Some(why) = &runs.over_budget {
        let _ = writeln!(text, "{why}; --continue makes up for them");
    }
    if runs.there > 0 {
        let _ = writeln!(text, "{} results were there already", runs.there);
    }
    text + &format!("results in {}\n", sanitize(&runs.folder))
}
