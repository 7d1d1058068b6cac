//! `run.*`: starting, controlling and watching runs.

use std::path::Path;
use std::sync::Arc;

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::RunApiServer;
use protocol::branch::BranchView;
use protocol::doctor::GuardFiles;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::{ControlReply, InitReply, StartReply, StepReply};
use protocol::request::{
    AtIteration, AtPath, AtRun, CallerEnv, ForkParams, InitParams, PauseParams, ResumeParams, StartParams, StepParams,
};
use protocol::view::{RunSummary, StatusView};
use protocol::words::RunStatus;
use runner_agents::AgentCandidates;
use runner_git::{Head, Repository};

use super::run_selector::refresh_published;
use super::{Api, branches, config as config_methods, draining_error, isolated, repo_order, run_blocking};
use crate::admit::{self, StartCommands, StartConfig, StartPreconditions, git_error, no_run_error};
use crate::call_context::ClientDisconnected;
use crate::repo::layout::Layout;
use crate::store::{RepoStore, repo_id};
use crate::worker::{
    IdChoice, PinnedRepo, StartOrder, WorkerHandle, WorkerMessage, create_layout, guard_files_at,
    is_claimed_by_another, known_goal_files, propose_workspace, read_committed_layout,
};

/// Number of digits by which a commit is named.
const SHORT_ID_DIGITS: usize = 12;

#[async_trait]
impl RunApiServer for Api {
    async fn init(&self, params: InitParams) -> RpcResult<InitReply> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let store = self.settings_store(&repository);
        Ok(run_blocking(move || init_layout(&repository, &store, &params)).await?)
    }

    async fn start(&self, extensions: &Extensions, params: StartParams) -> RpcResult<StartReply> {
        if self.drain.is_cancelled() || self.shutdown.is_cancelled() {
            return Err(draining_error().into());
        }
        let params = self.recall_goal(self.redirect_to_isolated(params).await?).await;
        let repository = self.find_repository(params.path.as_path()).await?;
        let head_config = params.base.is_none() && has_only_head_config(&repository).await?;
        let repo = repository.clone();
        let head = read_head(&repository).await;
        let start_branch = head.as_ref().and_then(|head| head.branch().map(str::to_owned));
        let detached = head.filter(|head| head.branch().is_none()).and_then(|head| head.commit());
        let detached = detached.map(|commit| commit.short(SHORT_ID_DIGITS));
        let from = params.base.clone().or_else(|| start_branch.clone()).or_else(|| detached.clone());
        let onto = params.onto.clone().or(start_branch);
        let start_config = self.choose_start_config(&repository, &params).await?;
        let settings = start_config.as_ref().map(|taken| taken.settings.clone());
        let reply = if self.is_isolated(&repository, &params, start_config.as_ref()).await? {
            let ClientDisconnected(left) = extensions.get().cloned().unwrap_or_default();
            self.start_isolated(repository, params, start_config, left).await?
        } else {
            let asker = StartCaller { confirmed: params.confirmed, env: params.env.clone() };
            let check = move |repository: &Repository, ground: StartPreconditions<'_>| {
                admit::check_start(repository, &params, ground, start_config.as_ref())
            };
            self.enqueue_run(repository, asker, check).await?
        };
        self.try_save_target(&repo, &reply, onto);
        let back = self.find_target(&repo, &reply.run.id);
        if reply.resumed {
            return Ok(StartReply { back, ..reply });
        }
        Ok(StartReply { from, back, detached, settings, head_config, ..reply })
    }

    async fn fork(&self, params: ForkParams) -> RpcResult<StartReply> {
        if self.drain.is_cancelled() || self.shutdown.is_cancelled() {
            return Err(draining_error().into());
        }
        let path = params.path.clone();
        let run = params.run.clone();
        let iter = Some(params.iter);
        let run = self.locate_iteration(AtIteration { path, run, iter, wait: None }).await?.run;
        let path = self.resolve_run_path(&params.path, Some(&run), "fork").await?;
        let repository = self.find_repository(path.as_path()).await?;
        let asker = StartCaller { confirmed: params.confirmed, env: params.env.clone() };
        let repo = repository.clone();
        let start_branch = Some(format!("runner/{run}"));
        let check = move |repository: &Repository, ground: StartPreconditions<'_>| {
            admit::check_fork(repository, &run, &params, ground)
        };
        let reply = self.enqueue_run(repository, asker, check).await?;
        self.try_save_target(&repo, &reply, start_branch);
        Ok(reply)
    }

    async fn step(&self, params: StepParams) -> RpcResult<StepReply> {
        let AtRun { path, run } = self.resolve_exact_run(AtRun { path: params.path, run: params.run }, "step").await?;
        let (repository, worker) = self.find_worker(path.as_path()).await?;
        let caller = ResumeCaller { run: run.clone(), confirmed: params.confirmed, env: params.env };
        self.check_resume(repository, &worker, caller).await?;
        Ok(worker.ask_or_tell(|reply| WorkerMessage::Step { run, reply }).await?)
    }

    async fn pause(&self, params: PauseParams) -> RpcResult<ControlReply> {
        let AtRun { path, run } = self.resolve_exact_run(AtRun { path: params.path, run: params.run }, "pause").await?;
        let (_, worker) = self.find_worker(path.as_path()).await?;
        Ok(worker.ask_or_tell(|reply| WorkerMessage::Pause { run, now: params.now, reply }).await?)
    }

    async fn resume(&self, params: ResumeParams) -> RpcResult<ControlReply> {
        let AtRun { path, run } =
            self.resolve_exact_run(AtRun { path: params.path, run: params.run }, "resume").await?;
        let (repository, worker) = self.find_worker(path.as_path()).await?;
        self.recreate_workspace(&worker).await?;
        let caller = ResumeCaller { run: run.clone(), confirmed: params.confirmed, env: params.env };
        self.check_resume(repository, &worker, caller).await?;
        let now = params.now;
        let more = params.more;
        Ok(worker.ask_or_tell(|reply| WorkerMessage::Resume { run, now, more, reply }).await?)
    }

    async fn cancel(&self, params: AtRun) -> RpcResult<ControlReply> {
        let params = self.resolve_exact_run(params, "cancel").await?;
        let (_, worker) = self.find_worker(params.path.as_path()).await?;
        Ok(worker.cancel(params.run).await?)
    }

    async fn status(&self, params: AtRun) -> RpcResult<StatusView> {
        let params = if params.run.is_some() { self.resolve_exact_run(params, "status").await? } else { params };
        let path = params.path.clone();
        let is_unnamed = params.run.is_none();
        let (repository, worker) = self.find_worker(params.path.as_path()).await?;
        let mut view = match params.run {
            None => {
                refresh_published(&worker).await;
                (*worker.status()).clone()
            }
            Some(run) => worker.describe_run(&run).await?,
        };
        // If its record cannot be read, the requested path identifies it.
        if view.repo.path.as_path().as_os_str().is_empty() {
            view.repo.path = WirePath::from(repository.work_dir());
        }
        self.show_move(&repository, &worker, &mut view).await;
        view.on_run = self.find_run_checkout(&repository, &view).await;
        Ok(if is_unnamed { self.add_isolated_runs(path.as_path(), view).await } else { view })
    }

    async fn status_all(&self) -> RpcResult<Vec<StatusView>> {
        let workers = self.registry.list().await;
        let mut views: Vec<StatusView> = workers.iter().map(|worker| (*worker.status()).clone()).collect();
        repo_order::sort_statuses(&mut views);
        Ok(views)
    }

    async fn list(&self, params: AtPath) -> RpcResult<Vec<RunSummary>> {
        let (_, worker) = self.find_worker(params.path.as_path()).await?;
        let mut runs = worker.list_runs().await.0;
        runs.extend(self.list_isolated_runs(&params).await);
        Ok(runs)
    }

    async fn branches(&self, params: AtRun) -> RpcResult<Vec<BranchView>> {
        let repository = self.find_repository(params.path.as_path()).await?;
        Ok(run_blocking(move || branches::list_branch_views(&repository, &params)).await?)
    }

    async fn locate(&self, params: AtRun) -> RpcResult<RunSummary> {
        let AtRun { path, run } = self.resolve_exact_run(params, "path").await?;
        let (_, worker) = self.find_worker(path.as_path()).await?;
        let view = match run {
            None => (*worker.status()).clone(),
            Some(run) => worker.describe_run(&run).await?,
        };
        let run = view.run.as_ref().map(|run| run.summary.clone());
        Ok(run.ok_or_else(|| no_run_error(view.repo.path.as_path()))?)
    }

    async fn queue(&self, params: AtPath) -> RpcResult<Vec<RunSummary>> {
        let (_, worker) = self.find_worker(params.path.as_path()).await?;
        let isolated = self.list_isolated_runs(&params).await;
        let live = isolated.into_iter().filter(|run| !run.state.is_terminal());
        Ok(worker.status().repo.queue.iter().cloned().chain(live).collect())
    }
}

/// What the caller of a new run passes on, and whether they have confirmed its commands.
struct StartCaller {
    confirmed: bool,
    env: CallerEnv,
}

/// The caller that wants a run to continue, and what they pass on.
struct ResumeCaller {
    run: Option<String>,
    confirmed: bool,
    env: CallerEnv,
}

/// The result of checking a run that may continue.
pub(super) struct AdmittedRun {
    pub(super) repository: Repository,
    pub(super) commands: StartCommands,
    pub(super) env: CallerEnv,
}

impl Api {
    /// Returns the configuration that a new run takes over, because its base has none.
    async fn choose_start_config(
        &self,
        repository: &Repository,
        params: &StartParams,
    ) -> Result<Option<StartConfig>, ErrorData> {
        let worker = self.registry.find(repository.common_dir()).await;
        let is_active =
            worker.as_ref().is_some_and(|worker| is_session_active(&worker.status(), repository.work_dir()))
                || is_driven_elsewhere(worker.as_ref(), repository.common_dir());
        let store = self.settings_store(repository);
        let repository = repository.clone();
        let params = params.clone();
        run_blocking(move || {
            admit::choose_start_config(&repository, &params, is_active, || config_methods::read_settings(&store))
        })
        .await
    }

    /// Remembers the branch from which a new run was started; without it, the target must be named when landing.
    fn try_save_target(&self, repository: &Repository, reply: &StartReply, start_branch: Option<String>) {
        let Some(start_branch) = start_branch.filter(|_| !reply.resumed) else { return };
        if let Err(error) = self.save_target(repository, &reply.run.id, &start_branch) {
            tracing::warn!(run = reply.run.id, %error, "failed to save the branch that the run was started from");
        }
    }

    /// Checks a new run and its caller, stores what was passed on, and queues the run.
    async fn enqueue_run(
        &self,
        repository: Repository,
        asker: StartCaller,
        check: impl FnOnce(&Repository, StartPreconditions<'_>) -> Result<(StartOrder, StartCommands), ErrorData>
        + Send
        + 'static,
    ) -> Result<StartReply, ErrorData> {
        let StartCaller { confirmed, env } = asker;
        let common_dir = repository.common_dir().to_owned();
        let path = repository.work_dir().to_owned();
        let known = self.registry.find(&common_dir).await;
        if let Some(worker) = &known {
            worker.wait_until_none_cancelling().await;
        }
        let repository = self.pin_config(repository, known.as_ref(), confirmed).await?;
        self.revert_checkout(&repository).await?;
        let admitted = repository.clone();
        let source = known.as_ref().and_then(|worker| worker.source.clone());
        let is_session_active = known.as_ref().is_some_and(|worker| is_session_active(&worker.status(), &path))
            || is_driven_elsewhere(known.as_ref(), &common_dir);
        let (order, commands, guard) = run_blocking({
            let offer = (!self.is_start_only).then(|| Arc::clone(&self.capabilities));
            let store = RepoStore::new(&self.state_dir, &repo_id(&common_dir));
            move || {
                let goal_files = known_goal_files(&store, repository.work_dir())?;
                let capabilities = offer.as_deref();
                let ground = StartPreconditions { is_session_active, capabilities, goal_files: &goal_files };
                let (order, commands) = check(&repository, ground)?;
                let guard = read_guard_files(&repository, &order, &commands);
                Ok((order, commands, guard))
            }
        })
        .await?;
        if let Some(source) = source.filter(|source| order.id != IdChoice::Given(source.run.clone())) {
            return Err(isolated::single_run_error(&source));
        }
        self.refuse_unconfirmed(&commands, confirmed, known.as_ref()).await?;
        self.check_agents(&commands, &env, &path).await?;
        let worker = self.registry.register(&common_dir, &path).await?;
        self.exclude_folders(&worker, &admitted).await?;
        self.save_confirmation(&worker, AdmittedRun { repository: admitted, commands, env }).await?;
        let reply: StartReply = worker.ask_or_tell(|reply| WorkerMessage::Start(Box::new(order), reply)).await?;
        Ok(StartReply { guard: guard.filter(|_| !reply.resumed), ..reply })
    }

    /// Hides the runner's folders from git, unless a session is at work: then git's folder is compared with what it was.
    async fn exclude_folders(&self, worker: &WorkerHandle, repository: &Repository) -> Result<(), ErrorData> {
        if self.is_unsettled(worker) || is_driven_elsewhere(Some(worker), repository.common_dir()) {
            return Ok(());
        }
        let repository = repository.clone();
        run_blocking(move || {
            repository.exclude_folders(&[Layout::CONTEXT, Layout::ITERATIONS]).map_err(|error| git_error(&error))
        })
        .await
    }

    /// Refuses commands that this user has neither written here nor confirmed.
    pub(super) async fn refuse_unconfirmed(
        &self,
        commands: &StartCommands,
        confirmed: bool,
        known: Option<&WorkerHandle>,
    ) -> Result<(), ErrorData> {
        if confirmed || commands.written_here {
            return Ok(());
        }
        let digests = match known {
            Some(worker) => worker.list_runs().await.1,
            None => Vec::new(),
        };
        if digests.contains(&commands.digest) { Ok(()) } else { Err(admit::unconfirmed_error(commands)) }
    }

    /// Checks that a run may continue, and stores what its caller has passed on.
    async fn check_resume(
        &self,
        repository: Repository,
        worker: &WorkerHandle,
        caller: ResumeCaller,
    ) -> Result<(), ErrorData> {
        let ResumeCaller { run, confirmed, env } = caller;
        let current = worker.status().run.as_ref().map(|run| run.summary.id.clone());
        let Some(run) = run.or(current) else { return Ok(()) };
        // The worker reports a prefix that matches no run or several.
        let known: Vec<String> = worker.list_runs().await.0.into_iter().map(|known| known.id).collect();
        let mut matching = known.iter().filter(|known| known.starts_with(&run));
        let run = match (known.contains(&run), matching.next(), matching.next()) {
            (false, Some(one), None) => one.clone(),
            (true, ..) => run,
            (false, ..) => return Ok(()),
        };
        let repository = self.pin_config(repository, Some(worker), confirmed).await?;
        let is_session_active = is_session_active(&worker.status(), repository.work_dir())
            || is_driven_elsewhere(Some(worker), repository.common_dir());
        let caller = env.0.clone();
        let admitted = repository.clone();
        let offer = Arc::clone(&self.capabilities);
        let commands = run_blocking(move || {
            admit::check_resume(
                &repository,
                &run,
                &caller,
                StartPreconditions { is_session_active, capabilities: Some(&offer), goal_files: &[] },
            )
        })
        .await?;
        let is_known = commands.written_here || worker.list_runs().await.1.contains(&commands.digest);
        if !confirmed && !is_known {
            return Err(admit::unconfirmed_error(&commands));
        }
        self.check_agents(&commands, &env, admitted.work_dir()).await?;
        self.save_confirmation(worker, AdmittedRun { repository: admitted, commands, env }).await
    }

    /// Checks that the agents of a run can work.
    pub(super) async fn check_agents(
        &self,
        commands: &StartCommands,
        env: &CallerEnv,
        folder: &Path,
    ) -> Result<(), ErrorData> {
        let config = &commands.config;
        let scratch = self.paths.state.join("scratch");
        let candidates = AgentCandidates { config, folder, env: &env.0, scratch: &scratch };
        admit::check_agents(candidates, &self.launcher).await
    }

    /// Returns the repository with its caller's current configuration, unless a session could have written that.
    pub(super) async fn pin_config(
        &self,
        repository: Repository,
        worker: Option<&WorkerHandle>,
        confirmed: bool,
    ) -> Result<Repository, ErrorData> {
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        if worker.is_some_and(|worker| self.is_unsettled(worker)) {
            if repository.pinned_config().is_some() {
                return Ok(repository);
            }
            let pinned = PinnedRepo::for_work_tree(&store, repository.work_dir());
            return run_blocking(move || pinned.open().map_err(|error| git_error(&error))).await;
        }
        let suspects = store.suspects_file();
        run_blocking(move || {
            admit::check_user_config(&suspects, confirmed)?;
            admit::open_current(repository.work_dir())
        })
        .await
    }

    /// Refuses to check out files of a repository without a captured configuration by a configuration of the user that
    /// a session has left, unless they have confirmed it.
    pub(super) async fn check_user_config(&self, repository: &Repository, confirmed: bool) -> Result<(), ErrorData> {
        if repository.pinned_config().is_some() {
            return Ok(());
        }
        let suspects = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir())).suspects_file();
        run_blocking(move || admit::check_user_config(&suspects, confirmed)).await
    }

    /// Stores the confirmation, the configuration of git and the caller's environment.
    pub(super) async fn save_confirmation(
        &self,
        worker: &WorkerHandle,
        admitted: AdmittedRun,
    ) -> Result<(), ErrorData> {
        let AdmittedRun { repository, commands, env } = admitted;
        let moved = self.find_move(&repository, worker).await;
        worker.ask_first(|reply| WorkerMessage::Confirm { digest: commands.digest, moved, reply }).await?;
        let store = RepoStore::new(&self.state_dir, &worker.id);
        let pinned = PinnedRepo::for_work_tree(&store, repository.work_dir());
        let is_running = worker.is_driving();
        let is_live = self.is_unsettled(worker);
        // Another run may have begun in the meantime.
        let is_stale = is_live && repository.pinned_config().is_none();
        let repository = if is_stale { self.find_repository(repository.work_dir()).await? } else { repository };
        run_blocking(move || {
            let saved = match pinned.try_open() {
                _ if !is_live => pinned.pin(&repository),
                // What applies in another work tree also applies in one without a captured configuration.
                Ok(None) => pinned.repin(&repository),
                Ok(Some(_)) if !is_running => pinned.repin(&repository),
                known => known.map(drop),
            };
            saved.map_err(|error| git_error(&error))
        })
        .await?;
        if env.0.is_empty() {
            return Ok(());
        }
        run_blocking(move || {
            store.save_env(&env).map_err(|error| ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(&error))
        })
        .await
    }
}

/// Returns the files that a run watches if it begins where HEAD is now, or at its base.
fn read_guard_files(repository: &Repository, order: &StartOrder, commands: &StartCommands) -> Option<GuardFiles> {
    let base = match &order.start.start_spec.base {
        Some(base) => repository.resolve_revision(base).ok()?,
        None => repository.head().ok()?.commit(),
    };
    guard_files_at(repository, base?, &commands.config)
}

/// Returns what HEAD points to, if it can be read.
pub(super) async fn read_head(repository: &Repository) -> Option<Head> {
    let repository = repository.clone();
    run_blocking(move || repository.head().map_err(|error| git_error(&error))).await.ok()
}

/// Whether a run of the repository is being driven in this work tree.
pub(super) fn is_session_active(status: &StatusView, path: &Path) -> bool {
    let is_driven = |state| matches!(state, RunStatus::Running | RunStatus::Waiting);
    status.repo.queue.iter().any(|run| is_driven(run.state) && run.path.as_path() == path)
}

/// Whether another daemon drives a run of the repository: then the files in the work tree are its session's, and the
/// run waits until that has ended.
pub(super) fn is_driven_elsewhere(worker: Option<&WorkerHandle>, common_dir: &Path) -> bool {
    !worker.is_some_and(WorkerHandle::is_driving) && is_claimed_by_another(common_dir)
}

/// Whether HEAD has a configuration whose file is not in the work tree.
async fn has_only_head_config(repository: &Repository) -> Result<bool, ErrorData> {
    let repository = repository.clone();
    run_blocking(move || {
        let is_present = repository.work_dir().join(Layout::CONFIG).symlink_metadata().is_ok();
        Ok(!is_present && admit::has_config_at_head(&repository)?)
    })
    .await
}

fn init_layout(repository: &Repository, store: &RepoStore, params: &InitParams) -> Result<InitReply, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let text = runner_config::default_text_with(propose_workspace(&layout).as_ref());
    let taken = if params.force { None } else { config_methods::read_settings(store)? };
    let text = match (taken, &params.defaults) {
        (Some((_, taken)), _) => taken,
        (None, Some(defaults)) => admit::default_config_text(&text, defaults)?,
        (None, None) => text,
    };
    let head = repository.head().map_err(|error| git_error(&error))?.commit();
    let committed = read_committed_layout(repository, head).map_err(|error| git_error(&error))?;
    let report = create_layout(&layout, params.force, text, &committed).map_err(|error| {
        ErrorData::new(ErrorKind::InvalidFile, format!("cannot make .runner/ in {}", layout.root().display()))
            .caused_by(&error)
            .hint("fix the file, then: runnerctl init")
    })?;
    Ok(InitReply {
        path: WirePath::from(layout.root()),
        created: report.created,
        kept: report.unchanged,
        overwritten: report.overwritten,
    })
}
