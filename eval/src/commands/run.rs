//! `run`: runs cases and tells how they came out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use protocol::error::ExitStatus;
use protocol::safe::safe;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::answer;
use crate::args::{Global, RunArgs};
use crate::batch::{self, Budget, Kind, counted};
use crate::case::Case;
use crate::case::find::Places;
use crate::digest;
use crate::fault::Fault;
use crate::lab::{Lab, Programs, Surroundings};
use crate::plan::{Changes, Plan, plan};
use crate::rehearsal::Rehearsal;
use crate::report::text::table;
use crate::results::{Digests, Meta, Store};
use crate::trial::{Bench, Trial};

/// The answer of `run`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalRuns")]
pub(crate) struct Ran {
    /// `runner/eval-runs.v1`.
    pub(crate) schema: &'static str,
    /// The folder of results.
    pub(crate) folder: String,
    /// What has been run, in the order in which it was wanted.
    pub(crate) runs: Vec<Meta>,
    /// Runs that were there already, with `--continue`.
    pub(crate) there: u64,
    /// Whether somebody interrupted.
    pub(crate) interrupted: bool,
    /// Why runs did not begin, where the budget was spent before; null where all did.
    pub(crate) over_budget: Option<String>,
}

/// Runs the command.
pub(super) async fn run(global: &Global, places: &Places, args: RunArgs) -> Result<ExitStatus, Fault> {
    let around = Surroundings::read();
    let cases = cases(places, &args)?;
    if args.ui && (cases.len() > 1 || args.runs > 1 || args.variants.len() > 1) {
        return Err(Fault::usage("the web view is for one run: name one case, without --runs"));
    }
    let variants = variants(&args)?;
    let mut planned = Vec::new();
    for case in cases.into_iter().map(Arc::new) {
        for changes in &variants {
            planned.push((Arc::clone(&case), Arc::new(plan(&case, changes, &around)?)));
        }
    }
    let bench = Arc::new(bench(global, places, &args, around)?);
    Lab::sweep();
    watch_signals(&bench.stop)?;
    refuse_configurations(&bench, &planned).await?;
    bench.store.bury_lost()?;
    let (trials, there) = trials(&bench, &planned, &args)?;
    let (wanted, budget) = (trials.len(), Arc::new(Budget::of(args.max_cost_usd)));
    let runs = batch::run(Arc::clone(&bench), trials, (args.jobs.into(), Arc::clone(&budget))).await?;
    let interrupted = bench.stop.is_cancelled() && !args.ui;
    let over_budget = budget.is_spent().filter(|_| !interrupted && runs.len() < wanted);
    let over_budget = over_budget.map(|why| format!("{why}: {} of {wanted} runs did not begin", wanted - runs.len()));
    let folder = places.results.display().to_string();
    let runs = Ran { schema: "runner/eval-runs.v1", folder, runs, there, interrupted, over_budget };
    answer(global, &runs, || text(&runs))?;
    Ok(match (interrupted, runs.runs.iter().all(is_fine), &runs.over_budget) {
        (true, ..) => ExitStatus::Interrupted,
        (false, false, _) => ExitStatus::RunEnded,
        (false, true, Some(_)) => ExitStatus::Limit,
        (false, true, None) => ExitStatus::Fine,
    })
}

/// What was skipped is told, and is no failure.
fn is_fine(meta: &Meta) -> bool {
    meta.met || meta.outcome == crate::outcome::Outcome::Skipped
}

/// Returns what the command line makes of each case: one run each, in the place of one.
fn variants(args: &RunArgs) -> Result<Vec<Changes>, Fault> {
    if args.variants.is_empty() {
        let [executor, model, label] = [&args.executor, &args.model, &args.label].map(Option::clone);
        return Ok(vec![Changes { executor, model, label }]);
    }
    let mut labels = BTreeSet::new();
    match args.variants.iter().find(|variant| !labels.insert(&variant.label)) {
        Some(again) => {
            let label = again.label.as_deref().unwrap_or_default();
            Err(Fault::usage(format!("two variants are called `{label}`: give one of them another LABEL=")))
        }
        None => Ok(args.variants.clone()),
    }
}

fn cases(places: &Places, args: &RunArgs) -> Result<Vec<Case>, Fault> {
    if args.all {
        return places.all()?.into_values().collect();
    }
    args.cases.iter().map(|named| places.one(named)).collect()
}

/// Refuses the first case whose configuration the daemon would refuse.
async fn refuse_configurations(bench: &Bench, planned: &[(Arc<Case>, Arc<Plan>)]) -> Result<(), Fault> {
    let cases = planned.iter().map(|(case, plan)| (&**case, &**plan)).collect::<Vec<_>>();
    let rehearsal = Rehearsal { programs: &bench.programs, around: &bench.around, stop: &bench.stop };
    rehearsal.check(&cases).await?.into_iter().collect()
}

fn bench(global: &Global, places: &Places, args: &RunArgs, around: Surroundings) -> Result<Bench, Fault> {
    let programs = Programs::find(global.bin_dir.as_deref(), &around)?;
    let templates = args.templates.as_deref().map(templates).transpose()?;
    Ok(Bench {
        store: Store::at(&places.results),
        digests: digests(&programs)?,
        programs,
        around,
        templates,
        keep: args.keep,
        ui: args.ui.then_some(args.port),
        is_quiet: global.quiet,
        stop: CancellationToken::new(),
    })
}

/// Digests the programs, which are the same for all runs of a command.
pub(crate) fn digests(programs: &Programs) -> Result<Digests, Fault> {
    let own = std::env::current_exe().map_err(|error| Fault::new("finding this program").caused_by(&error))?;
    Ok(Digests {
        runner_eval: Some(digest::of_file(&own)?),
        runnerd: Some(digest::of_file(&programs.daemon)?),
        runnerctl: Some(digest::of_file(&programs.client)?),
        ..Digests::default()
    })
}

fn templates(folder: &Path) -> Result<(std::path::PathBuf, String), Fault> {
    let folder = folder.canonicalize().map_err(|error| Fault::file("finding the templates", folder, &error))?;
    let digest = digest::of_folder(&folder)?;
    Ok((folder, digest))
}

/// Returns what is to be run, round by round, and how many results are there already.
fn trials(bench: &Bench, planned: &[(Arc<Case>, Arc<Plan>)], args: &RunArgs) -> Result<(Vec<Trial>, u64), Fault> {
    let (mut trials, mut there) = (Vec::new(), 0);
    let mut missing = Vec::new();
    for (case, plan) in planned {
        let kind = Kind {
            digest: &case.digest,
            executor: &plan.executor,
            model: plan.model.as_deref(),
            templates: bench.templates.as_ref().map(|(_, digest)| digest.as_str()),
            label: plan.label.as_deref(),
        };
        let count = if args.continues { counted(&kind, &bench.store.read(&case.id)?) } else { 0 };
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(args.runs);
        there += u64::from(count);
        missing.push(count);
    }
    for round in 1..=args.runs {
        for ((case, plan), there) in planned.iter().zip(&missing) {
            if round > *there {
                let mut name = case.id.clone();
                if let Some(label) = plan.label.as_ref().filter(|_| args.variants.len() > 1) {
                    name = format!("{name} {}", safe(label));
                }
                if args.runs > 1 {
                    name = format!("{name} {round}/{}", args.runs);
                }
                trials.push(Trial { case: Arc::clone(case), plan: Arc::clone(plan), name });
            }
        }
    }
    Ok((trials, there))
}

/// The first signal ends what is under way, in order. After the second one nothing is waited for: what lives has a keeper,
/// which ends it when this process is gone, and the next command finds the result lost.
pub(crate) fn watch_signals(stop: &CancellationToken) -> Result<(), Fault> {
    let listen = |kind| signal(kind).map_err(|error| Fault::new("listening for signals").caused_by(&error));
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
                leave();
            }
            let _ = writeln!(anstream::stderr().lock(), "ending what is under way; once more to leave at once");
            stop.cancel();
        }
    });
    Ok(())
}

#[expect(clippy::exit, reason = "a person who asks twice does not want to wait for anything")]
fn leave() -> ! {
    std::process::exit(ExitStatus::Interrupted.code().into())
}

fn text(runs: &Ran) -> String {
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
            crate::report::text::seconds(crate::report::real(meta.duration_ms) / 1e3),
            format!("{}/{}", meta.case, meta.result),
        ]);
    }
    let mut text = if runs.runs.is_empty() { String::new() } else { table(&lines) };
    for meta in runs.runs.iter().filter(|meta| !meta.met) {
        if let Some(reason) = &meta.reason {
            let _ = writeln!(text, "{}: {}", meta.case, safe(reason));
        }
    }
    if let Some(why) = &runs.over_budget {
        let _ = writeln!(text, "{why}; --continue makes up for them");
    }
    if runs.there > 0 {
        let _ = writeln!(text, "{} results were there already", runs.there);
    }
    text + &format!("results in {}\n", safe(&runs.folder))
}
