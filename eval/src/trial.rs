//! A trial: one run of a case, from an empty folder to a stored result.
//!
//! Any failure along the way becomes the outcome `error` with the evidence: a result is never lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::case::{Case, CheckRule};
use crate::checks::{self, CheckContext};
use crate::drive::{self, RunRequest, RunResult};
use crate::error::EvalError;
use crate::outcome::{Outcome, RunEnd, RunJudgement, is_met, judge_run};
use crate::plan::{RunPlan, find_missing};
use crate::progress::RunProgress;
use crate::record;
use crate::results::{
    CheckResult, ChecksFile, Digests, ResultMeta, ResultSlot, ResultStore, RunFacts, StartedFile, Versions,
};
use crate::sandbox::{
    HostEnv, RepositoryAccess, RepositorySeed, Sandbox, SandboxDaemon, SandboxRepository, TestedPrograms,
};

/// State shared by all trials of a command.
#[derive(Debug)]
pub(crate) struct RunnerContext {
    pub(crate) store: ResultStore,
    pub(crate) programs: TestedPrograms,
    pub(crate) around: HostEnv,
    /// Folder of prompt templates, and its digest.
    pub(crate) templates: Option<(std::path::PathBuf, String)>,
    /// Digests of the programs; each trial adds that of its case.
    pub(crate) digests: Digests,
    /// Whether to keep the labs.
    pub(crate) keep: bool,
    /// Port of the web view, if the run is to be shown in a browser.
    pub(crate) ui: Option<u16>,
    pub(crate) is_quiet: bool,
    pub(crate) stop: CancellationToken,
}

/// One run to perform.
#[derive(Debug, Clone)]
pub(crate) struct CaseTrial {
    pub(crate) case: Arc<Case>,
    pub(crate) plan: Arc<RunPlan>,
    /// Prefix of its progress lines.
    pub(crate) name: String,
}

/// Everything known about a run so far.
#[derive(Default)]
struct TrialObservations {
    end: Option<RunEnd>,
    facts: Option<RunFacts>,
    checks: Vec<CheckResult>,
    makers: record::MakerVersions,
    daemon_version: Option<String>,
    evidence: Vec<String>,
}

impl CaseTrial {
    /// Runs the trial and returns the stored metadata; a fault means that nothing could be stored.
    pub(crate) async fn run(&self, bench: &RunnerContext) -> Result<ResultMeta, EvalError> {
        let slot = bench.store.begin(&self.case.id)?;
        let started = self.started(bench, &slot);
        slot.start(&started)?;
        let progress = RunProgress::new(&self.name, bench.is_quiet);
        let (meta, checks) = if let Some(why) = find_missing(&self.case, &self.plan, &bench.around) {
            (ResultMeta::of(&started, Outcome::Skipped, Some(why), Timestamp::now()), Vec::new())
        } else {
            let mut stage = ActiveTrial {
                case: &self.case,
                plan: &self.plan,
                bench,
                slot: &slot,
                progress: &progress,
                seen: TrialObservations::default(),
            };
            stage.play().await;
            stage.seen.judged(&started)
        };
        slot.finish(&meta, &ChecksFile { schema: "runner/eval-checks.v1".into(), checks })?;
        let reason = meta.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        progress.print_line(&format!("{}{reason}", meta.outcome));
        Ok(meta)
    }

    fn started(&self, bench: &RunnerContext, slot: &ResultSlot) -> StartedFile {
        StartedFile {
            schema: "runner/eval-started.v1".into(),
            case: self.case.id.clone(),
            result: slot.name.clone(),
            expected: self.case.expect,
            label: self.plan.label.clone(),
            started_at: Timestamp::now(),
            executor: self.plan.executor.clone(),
            model: self.plan.model.clone(),
            versions: Versions { runner_eval: env!("CARGO_PKG_VERSION").into(), ..Versions::default() },
            digests: Digests {
                case: self.case.digest.clone(),
                templates: bench.templates.as_ref().map(|(_, digest)| digest.clone()),
                ..bench.digests.clone()
            },
            pid: std::process::id(),
        }
    }
}

/// A trial in progress, and what is known about it.
struct ActiveTrial<'a> {
    case: &'a Case,
    plan: &'a RunPlan,
    bench: &'a RunnerContext,
    slot: &'a ResultSlot,
    progress: &'a RunProgress,
    seen: TrialObservations,
}

impl ActiveTrial<'_> {
    /// Creates a lab, performs the run in it, and removes the lab.
    async fn play(&mut self) {
        let played = match Sandbox::create() {
            Ok(lab) => {
                let played = self.play_in(&lab).await;
                self.take_away(lab);
                played
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = played {
            let is_stopped = self.bench.stop.is_cancelled();
            self.seen.end = Some(if is_stopped { RunEnd::Interrupted } else { RunEnd::Broken(fault.to_string()) });
        }
    }

    fn take_away(&mut self, lab: Sandbox) {
        if let Err(fault) = lab.copy_logs(&self.slot.folder.join("logs")) {
            self.seen.evidence.push(fault.to_string());
        }
        if self.bench.keep {
            self.progress.print_line(&format!("the lab stays: {}", lab.folder().display()));
        } else {
            self.slot.hide_lab();
        }
        let left = if self.bench.keep { lab.keep() } else { lab.remove() };
        if let Err(fault) = left {
            self.seen.evidence.push(fault.to_string());
        }
    }

    /// Performs the run itself: with a daemon up to the record, without one for the checks.
    async fn play_in(&mut self, lab: &Sandbox) -> Result<(), EvalError> {
        self.slot.show_lab(lab.folder())?;
        let access = self.access(lab);
        let env = access.env.clone();
        if !self.case.daemon.is_empty() {
            let text = toml::to_string(&self.case.daemon);
            let text = text.map_err(|error| EvalError::new("writing the daemon's configuration").caused_by(&error))?;
            lab.write("config/runnerd/config.toml", &text)?;
        }
        let mut daemon = SandboxDaemon::start(lab, &self.bench.programs, &env).await?;
        self.seen.daemon_version = Some(daemon.connection().daemon().version.clone());
        let ran = match SandboxRepository::create(lab, &self.seed(), access).await {
            Ok(repository) => self.drive(&repository, &mut daemon).await.map(|audit| (repository, audit)),
            Err(fault) => Err(fault),
        };
        daemon.stop().await;
        let (repository, audit) = ran?;
        if let (Some(facts), Some(RunEnd::Run(..) | RunEnd::OutOfTime(_))) = (&self.seen.facts, &self.seen.end) {
            // The signal that closes the view does not interrupt a run that is over.
            let stop = if self.bench.ui.is_some() { CancellationToken::new() } else { self.bench.stop.clone() };
            let scene = CheckContext { folder: repository.folder(), env: &env, facts, audit: &audit, stop: &stop };
            self.seen.checks = checks::perform_checks(&self.case.checks, &scene).await?;
        }
        Ok(())
    }

    /// Performs the part that needs the daemon; returns the audit result, if a check requires it.
    async fn drive(
        &mut self,
        repository: &SandboxRepository,
        daemon: &mut SandboxDaemon,
    ) -> Result<Result<(), String>, EvalError> {
        let _view = self.bench.ui.map(|port| repository.open_web_view(port)).transpose()?;
        let order = RunRequest {
            repository,
            run: &self.case.id,
            goal: repository.goal(),
            keep_tree: self.plan.tree.is_some(),
            limit: self.case.limit,
            progress: self.progress,
            stop: &self.bench.stop,
        };
        let driven = drive::drive_run(daemon, &order).await;
        self.seen.end = Some(driven.end.clone());
        if matches!(driven.end, RunEnd::Interrupted) {
            return Err(EvalError::interrupted());
        }
        self.take(repository, &driven).await;
        let is_wanted = self.case.checks.iter().any(|check| check.rule == CheckRule::BranchVerifies);
        let audit = if is_wanted { record::audit(daemon, repository, &self.case.id).await } else { Ok(()) };
        if self.bench.ui.is_some() {
            self.progress.print_line("the view stays until Ctrl-C");
            self.bench.stop.cancelled().await;
        }
        Ok(audit)
    }

    async fn take(&mut self, repository: &SandboxRepository, driven: &RunResult) {
        let Some(view) = &driven.view else { return };
        let run = self.case.id.as_str();
        let tree = record::tree(repository, run).await;
        let tip = record::tip(repository, run).await;
        self.seen.facts = Some(record::facts(view, driven, tree.as_ref(), tip));
        self.seen.makers = record::makers(repository, run).await;
        self.seen.evidence.append(&mut record::keep(repository, run, &self.slot.folder).await);
    }

    fn access(&self, lab: &Sandbox) -> RepositoryAccess {
        let with_case = |mut env: BTreeMap<String, String>| {
            env.extend(self.case.env.clone());
            env
        };
        RepositoryAccess {
            programs: self.bench.programs.clone(),
            env: with_case(lab.env(&self.bench.around)),
            client_env: with_case(self.bench.around.client_env(lab)),
            view_env: self.bench.around.view_env(lab),
            stop: self.bench.stop.clone(),
        }
    }

    fn seed(&self) -> RepositorySeed<'_> {
        RepositorySeed {
            name: &self.case.id,
            goal: &self.case.goal,
            template: self.case.template.as_deref(),
            files: &self.case.files,
            justfile: self.plan.justfile.clone(),
            config: &self.plan.config,
            tree: self.plan.tree.as_ref(),
            prompts: self.bench.templates.as_ref().map(|(folder, _)| folder.as_path()),
            script: self.case.script.as_deref(),
        }
    }
}

impl TrialObservations {
    /// Judges the run.
    fn judged(self, started: &StartedFile) -> (ResultMeta, Vec<CheckResult>) {
        let failed: Vec<&str> =
            self.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect();
        let end = self.end.unwrap_or_else(|| RunEnd::Broken("nothing was run".into()));
        let RunJudgement { outcome, reason } = judge_run(&end, &failed);
        let mut meta = ResultMeta::of(started, outcome, reason, Timestamp::now());
        meta.met = is_met(outcome, started.expected, failed.len());
        meta.checks_failed = u32::try_from(failed.len()).unwrap_or(u32::MAX);
        meta.checks_passed = u32::try_from(self.checks.len()).unwrap_or(u32::MAX) - meta.checks_failed;
        meta.agent = self.makers.agent;
        meta.versions.prompts = self.makers.prompts;
        meta.versions.runnerd = self.daemon_version;
        meta.run = self.facts;
        meta.evidence = self.evidence;
        (meta, self.checks)
    }
}
