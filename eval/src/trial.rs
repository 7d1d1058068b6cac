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
    pub(crate) host_env: HostEnv,
    /// Folder of prompt templates, and its digest.
    pub(crate) templates: Option<(std::path::PathBuf, String)>,
    /// Digests of the programs; each trial adds that of its case.
    pub(crate) digests: Digests,
    /// Whether to keep the sandboxes.
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
    pub(crate) async fn run(&self, context: &RunnerContext) -> Result<ResultMeta, EvalError> {
        let slot = context.store.create_slot(&self.case.id)?;
        let started = self.started_file(context, &slot);
        slot.write_started(&started)?;
        let progress = RunProgress::new(&self.name, context.is_quiet);
        let (meta, checks) = if let Some(why) = find_missing(&self.case, &self.plan, &context.host_env) {
            (ResultMeta::from_started(&started, Outcome::Skipped, Some(why), Timestamp::now()), Vec::new())
        } else {
            let mut active = ActiveTrial {
                case: &self.case,
                plan: &self.plan,
                context,
                slot: &slot,
                progress: &progress,
                observed: TrialObservations::default(),
            };
            active.run().await;
            active.observed.into_result(&started)
        };
        slot.write_result(&meta, &ChecksFile { schema: "runner/eval-checks.v1".into(), checks })?;
        let reason = meta.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        progress.print_line(&format!("{}{reason}", meta.outcome));
        Ok(meta)
    }

    fn started_file(&self, context: &RunnerContext, slot: &ResultSlot) -> StartedFile {
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
                templates: context.templates.as_ref().map(|(_, digest)| digest.clone()),
                ..context.digests.clone()
            },
            pid: std::process::id(),
        }
    }
}

/// A trial in progress, and what is known about it.
struct ActiveTrial<'a> {
    case: &'a Case,
    plan: &'a RunPlan,
    context: &'a RunnerContext,
    slot: &'a ResultSlot,
    progress: &'a RunProgress,
    observed: TrialObservations,
}

impl ActiveTrial<'_> {
    /// Creates a sandbox, performs the run in it, and removes the sandbox.
    async fn run(&mut self) {
        let result = match Sandbox::create() {
            Ok(sandbox) => {
                let result = self.run_in(&sandbox).await;
                self.remove_sandbox(sandbox);
                result
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = result {
            let is_stopped = self.context.stop.is_cancelled();
            self.observed.end = Some(if is_stopped { RunEnd::Interrupted } else { RunEnd::Failed(fault.to_string()) });
        }
    }

    fn remove_sandbox(&mut self, sandbox: Sandbox) {
        if let Err(fault) = sandbox.copy_logs(&self.slot.folder.join("logs")) {
            self.observed.evidence.push(fault.to_string());
        }
        if self.context.keep {
            self.progress.print_line(&format!("the sandbox stays: {}", sandbox.folder().display()));
        } else {
            self.slot.unlink_sandbox();
        }
        let disposed = if self.context.keep { sandbox.keep() } else { sandbox.remove() };
        if let Err(fault) = disposed {
            self.observed.evidence.push(fault.to_string());
        }
    }

    /// Performs the run itself: with a daemon up to the record, without one for the checks.
    async fn run_in(&mut self, sandbox: &Sandbox) -> Result<(), EvalError> {
        self.slot.link_sandbox(sandbox.folder())?;
        let access = self.repository_access(sandbox);
        let env = access.env.clone();
        if !self.case.daemon.is_empty() {
            let text = toml::to_string(&self.case.daemon);
            let text = text.map_err(|error| EvalError::new("writing the daemon's configuration").caused_by(&error))?;
            sandbox.write("config/runnerd/config.toml", &text)?;
        }
        let mut daemon = SandboxDaemon::start(sandbox, &self.context.programs, &env).await?;
        self.observed.daemon_version = Some(daemon.connection().daemon().version.clone());
        let driven = match SandboxRepository::create(sandbox, &self.repository_seed(), access).await {
            Ok(repository) => self.drive_run(&repository, &mut daemon).await.map(|audit| (repository, audit)),
            Err(fault) => Err(fault),
        };
        daemon.stop().await;
        let (repository, audit) = driven?;
        if let (Some(facts), Some(RunEnd::Run(..) | RunEnd::OutOfTime(_))) = (&self.observed.facts, &self.observed.end)
        {
            // The signal that closes the view does not interrupt a run that is over.
            let stop = if self.context.ui.is_some() { CancellationToken::new() } else { self.context.stop.clone() };
            let check_context =
                CheckContext { folder: repository.folder(), env: &env, facts, audit: &audit, stop: &stop };
            self.observed.checks = checks::perform_checks(&self.case.checks, &check_context).await?;
        }
        Ok(())
    }

    /// Performs the part that needs the daemon; returns the audit result, if a check requires it.
    async fn drive_run(
        &mut self,
        repository: &SandboxRepository,
        daemon: &mut SandboxDaemon,
    ) -> Result<Result<(), String>, EvalError> {
        let _view = self.context.ui.map(|port| repository.open_web_view(port)).transpose()?;
        let request = RunRequest {
            repository,
            run: &self.case.id,
            goal: repository.goal(),
            keep_tree: self.plan.tree.is_some(),
            limit: self.case.limit,
            progress: self.progress,
            stop: &self.context.stop,
        };
        let result = drive::drive_run(daemon, &request).await;
        self.observed.end = Some(result.end.clone());
        if matches!(result.end, RunEnd::Interrupted) {
            return Err(EvalError::interrupted());
        }
        self.record_run(repository, &result).await;
        let is_wanted = self.case.checks.iter().any(|check| check.rule == CheckRule::BranchVerifies);
        let audit = if is_wanted { record::audit_branch(daemon, repository, &self.case.id).await } else { Ok(()) };
        if self.context.ui.is_some() {
            self.progress.print_line("the view stays until Ctrl-C");
            self.context.stop.cancelled().await;
        }
        Ok(audit)
    }

    async fn record_run(&mut self, repository: &SandboxRepository, result: &RunResult) {
        let Some(view) = &result.view else { return };
        let run = self.case.id.as_str();
        let tree = record::read_tree(repository, run).await;
        let tip = record::find_tip(repository, run).await;
        self.observed.facts = Some(record::collect_facts(view, result, tree.as_ref(), tip));
        self.observed.makers = record::read_makers(repository, run).await;
        self.observed.evidence.append(&mut record::save_run(repository, run, &self.slot.folder).await);
    }

    fn repository_access(&self, sandbox: &Sandbox) -> RepositoryAccess {
        let with_case = |mut env: BTreeMap<String, String>| {
            env.extend(self.case.env.clone());
            env
        };
        RepositoryAccess {
            programs: self.context.programs.clone(),
            env: with_case(sandbox.env(&self.context.host_env)),
            client_env: with_case(self.context.host_env.client_env(sandbox)),
            view_env: self.context.host_env.view_env(sandbox),
            stop: self.context.stop.clone(),
        }
    }

    fn repository_seed(&self) -> RepositorySeed<'_> {
        RepositorySeed {
            name: &self.case.id,
            goal: &self.case.goal,
            template: self.case.template.as_deref(),
            files: &self.case.files,
            justfile: self.plan.justfile.clone(),
            config: &self.plan.config,
            tree: self.plan.tree.as_ref(),
            prompts: self.context.templates.as_ref().map(|(folder, _)| folder.as_path()),
            script: self.case.script.as_deref(),
        }
    }
}

impl TrialObservations {
    /// Judges the run.
    fn into_result(self, started: &StartedFile) -> (ResultMeta, Vec<CheckResult>) {
        let failed: Vec<&str> =
            self.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect();
        let end = self.end.unwrap_or_else(|| RunEnd::Failed("nothing was run".into()));
        let RunJudgement { outcome, reason } = judge_run(&end, &failed);
        let mut meta = ResultMeta::from_started(started, outcome, reason, Timestamp::now());
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
