//! `land.*`: merges the results of runs into their target branches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use jsonrpsee::Extensions;
use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::{LandApiServer, RunApiServer as _};
use protocol::error::{ErrorData, ErrorKind};
use protocol::landing::{
    CandidatesParams, LandOutcome, LandParams, LandReply, LandedParams, LandedReport, ResolveParams, RunLanding,
};
use protocol::path::WirePath;
use protocol::reply::StartReply;
use protocol::request::{CallerEnv, StartParams};
use protocol::shell;
use protocol::view::RunSummary;
use runner_git::{BranchAdvance, Id, Identity, Repository};
use runner_os::error_chain::display_chain;
use tokio_util::sync::CancellationToken;

use super::isolated;
use super::land_checkout::run_branch;
use super::run_selector::{empty_id_error, run_summary};
use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::call_context::ClientDisconnected;
use crate::landing::{self, LandContext, LandTargets, MergeQueue, PreparedLanding};
use crate::repo::layout::Layout;
use crate::state_dir::temp_dir;
use crate::store::{RepoStore, repo_id};
use crate::verify::resolve_target;
use crate::worker::{self, ExclusiveWork, WorkerHandle, WorkerMessage, unbegun_run_error};

/// Serializes landings per repository, by its id: there is one note of a move.
static LAND_LOCKS: LazyLock<Mutex<BTreeMap<String, Weak<LandLock>>>> = LazyLock::new(Mutex::default);

/// The lock for landing in one repository.
type LandLock = tokio::sync::Mutex<()>;

/// Returns the lock to take before landing in a repository.
fn land_lock(repository: &Repository) -> Arc<LandLock> {
    let mut locks = LAND_LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    locks.retain(|_, turn| turn.strong_count() > 0);
    let lock = locks.entry(repo_id(repository.common_dir())).or_default();
    lock.upgrade().unwrap_or_else(|| {
        let new = Arc::new(LandLock::default());
        *lock = Arc::downgrade(&new);
        new
    })
}

#[async_trait]
impl LandApiServer for Api {
    async fn land(&self, extensions: &Extensions, params: LandParams) -> RpcResult<LandReply> {
        if self.drain.is_cancelled() || self.shutdown.is_cancelled() {
            return Err(super::draining_error().into());
        }
        let repository = self.open_user_repository(params.path.as_path(), params.confirmed).await?;
        self.refuse_workspace(&repository).await?;
        let stop = self.shutdown.child_token();
        let ClientDisconnected(disconnected) = extensions.get().cloned().unwrap_or_default();
        let lock = land_lock(&repository);
        let _guard = lock.lock().await;
        self.recover_landing(&repository).await?;
        self.revert_checkout(&repository).await?;
        let target = self.find_land_target(repository, &params).await?;
        let prepared = {
            let mut preparation = pin!(self.prepare_landing(&target, &params, &stop));
            tokio::select! {
                prepared = &mut preparation => prepared,
                () = disconnected.cancelled() => {
                    stop.cancel();
                    preparation.await
                }
            }
        };
        // No caller is left to report to, so nothing is moved.
        if disconnected.is_cancelled() {
            return Err(ErrorData::new(ErrorKind::Fault, "the client is gone").into());
        }
        let prepared = prepared.map_err(|error| landing::hint_fetch(&target.repository, error))?;
        Ok(self.advance_branch(target, &params, prepared).await?)
    }

    async fn candidates(&self, extensions: &Extensions, params: CandidatesParams) -> RpcResult<Vec<RunSummary>> {
        Ok(self.list_candidates(extensions, params).await?)
    }

    async fn resolve(&self, extensions: &Extensions, params: ResolveParams) -> RpcResult<StartReply> {
        let repository = self.find_repository(params.path.as_path()).await?;
        self.refuse_workspace(&repository).await?;
        let runs = resolve_runs(&repository, vec![params.run.clone()]).await?;
        let onto =
            choose_branch(&self.read_targets(&repository)?, params.onto.as_deref(), &runs, &own_branch(&repository))?;
        let stop = self.shutdown.child_token();
        let scratch = temp_dir(&self.paths.state);
        let launcher = self.launcher.clone();
        let env = params.env.clone();
        let run = params.run;
        let branch = onto.clone();
        let (squash, id) = run_blocking(move || {
            let tip = repository.find_branch_tip(&branch).map_err(|error| git_error(&error))?;
            let tip = tip.ok_or_else(|| missing_branch_error(&repository, &branch))?;
            let site = LandContext { repository: &repository, scratch, launcher: &launcher, env: &env, stop: &stop };
            let squash =
                landing::prepare_squash(&site, &run, &branch, tip).map_err(|error| error.to_error_data(&branch))?;
            let id = unused_run_id(&repository, &squash.run)?;
            Ok((squash, id))
        })
        .await?;
        let start = StartParams {
            path: params.path,
            goal: Some(squash.goal),
            goal_file: None,
            id: Some(id.clone()),
            base: Some(squash.base.to_string()),
            onto: None,
            keep_tree: false,
            queue_only: false,
            isolated: Some(false),
            default_config: false,
            defaults: None,
            confirmed: params.confirmed,
            env: params.env,
        };
        let path = start.path.clone();
        let reply = self.start(extensions, start).await?;
        let repository = self.find_repository(path.as_path()).await?;
        self.save_target(&repository, &id, &onto)?;
        Ok(reply)
    }

    async fn verify_landed(&self, extensions: &Extensions, params: LandedParams) -> RpcResult<LandedReport> {
        let repository = self.find_readable_repository(&params.path).await?;
        let scratch = temp_dir(&self.paths.state);
        let branch = params.branch;
        let repo = repository.clone();
        let launcher = self.launcher.clone();
        let env = CallerEnv::default();
        let query = format!("landed {branch}");
        let read = move |stop: &CancellationToken| {
            let tip = match repo.find_branch_tip(&branch).map_err(|error| git_error(&error))? {
                Some(tip) => tip,
                None => repo
                    .resolve_revision(&branch)
                    .map_err(|error| git_error(&error))?
                    .ok_or_else(|| missing_branch_error(&repo, &branch))?,
            };
            let site = LandContext { repository: &repo, scratch, launcher: &launcher, env: &env, stop };
            landing::audit_landed(&site, &branch, tip).map_err(|error| error.to_error_data(&branch))
        };
        Ok(self.read_shared(extensions, &repository, &query, read).await?)
    }
}

/// The state at the start of a landing.
struct LandTarget {
    repository: Repository,
    worker: Option<WorkerHandle>,
    onto: String,
    /// The work tree that has the branch checked out, if any.
    checkout: Option<Repository>,
}

impl Api {
    async fn refuse_workspace(&self, repository: &Repository) -> Result<(), ErrorData> {
        let worker = self.registry.find(repository.common_dir()).await;
        let source = worker.and_then(|worker| worker.source);
        source.map_or(Ok(()), |source| Err(isolated::landing_error(&source)))
    }

    /// Finds the repository that contains a path, with its user's current configuration, unless a session that could
    /// have written it is at work.
    async fn open_user_repository(&self, path: &Path, confirmed: bool) -> Result<Repository, ErrorData> {
        let repository = self.find_repository(path).await?;
        let worker = self.registry.find(repository.common_dir()).await;
        self.pin_config(repository, worker.as_ref(), confirmed).await
    }

    /// Finds the branch, and the work tree that has it checked out.
    async fn find_land_target(&self, repository: Repository, params: &LandParams) -> Result<LandTarget, ErrorData> {
        let worker = self.registry.find(repository.common_dir()).await;
        refuse_pipes(&repository).await?;
        for run in &params.runs {
            if let Some((unbegun, _)) = self.find_unbegun_run(&params.path, Some(run)).await {
                return Err(unbegun_run_error(&unbegun));
            }
        }
        let runs = match resolve_runs(&repository, params.runs.clone()).await {
            Err(error) if error.kind == ErrorKind::NotFound => {
                return Err(self.explain_unpublished(&repository, &params.runs).await.unwrap_or(error));
            }
            found => found?,
        };
        let onto =
            choose_branch(&self.read_targets(&repository)?, params.onto.as_deref(), &runs, &own_branch(&repository))?;
        let checkout = self.find_checkout(&repository, &onto, params.confirmed).await?;
        if let Some(checkout) = &checkout {
            refuse_pipes(checkout).await?;
        }
        Ok(LandTarget { repository, worker, onto, checkout })
    }

    /// Says of an isolated run that has no branch here that it is not published yet, and what is in the way.
    async fn explain_unpublished(&self, repository: &Repository, selectors: &[String]) -> Option<ErrorData> {
        let (_, workers) = self.isolated_runs_of(repository.work_dir()).await?;
        let runs = workers.iter().filter_map(run_summary);
        let has_branch =
            |run: &RunSummary| !matches!(repository.find_branch_tip(&format!("runner/{}", run.id)), Ok(None));
        let run = runs.into_iter().find(|run| selectors.contains(&run.id) && !has_branch(run))?;
        let why = run.published.as_ref().and_then(|published| published.why.clone());
        let state = run.state.predicate();
        let message = match &why {
            Some(why) => format!("run {} {state}, and is not published here yet: {}", run.id, why.message),
            None => format!("run {} {state}, and is not published here yet", run.id),
        };
        let hint = why.and_then(|why| why.command).unwrap_or_else(|| format!("runnerctl status --run {}", run.id));
        Some(ErrorData::new(ErrorKind::WrongState, message).hint(hint))
    }

    /// Returns the work tree that has a branch checked out, with the configuration in force there; refuses a branch
    /// that is being rebased or bisected.
    async fn find_checkout(
        &self,
        repository: &Repository,
        onto: &str,
        confirmed: bool,
    ) -> Result<Option<Repository>, ErrorData> {
        let repo = repository.clone();
        let name = onto.to_owned();
        let found = run_blocking(move || {
            let mut checkout = None;
            for tree in repo.list_work_trees().map_err(|error| git_error(&error))? {
                if let Some(operation) = tree.find_branch_operation(&name) {
                    return Err(branch_busy_error(&tree, operation, &name));
                }
                let head = tree.head().map_err(|error| git_error(&error))?;
                if head.branch() == Some(name.as_str()) {
                    checkout = Some(tree);
                }
            }
            Ok(checkout)
        })
        .await?;
        match found {
            Some(holder) => self.open_user_repository(holder.work_dir(), confirmed).await.map(Some),
            None => Ok(None),
        }
    }

    async fn prepare_landing(
        &self,
        ground: &LandTarget,
        params: &LandParams,
        stop: &CancellationToken,
    ) -> Result<PreparedLanding, ErrorData> {
        let (digests, live) = match &ground.worker {
            Some(worker) => {
                let live = worker.status().run.as_ref().map(|run| run.summary.id.clone());
                (worker.list_runs().await.1, live.filter(|_| self.is_unsettled(worker)))
            }
            None => (Vec::new(), None),
        };
        let site = LandContext {
            repository: &ground.repository,
            scratch: temp_dir(&self.paths.state),
            launcher: &self.launcher,
            env: &params.env,
            stop,
        };
        let queue = MergeQueue {
            params,
            onto: &ground.onto,
            checkout: ground.checkout.as_ref(),
            active_run: live.as_deref(),
            confirmed_commands: &digests,
        };
        landing::prepare_landing(&site, &queue).await.map_err(|error| error.to_error_data(&ground.onto))
    }

    /// Moves the branch, unless a preview was requested or there is nothing to merge.
    async fn advance_branch(
        &self,
        ground: LandTarget,
        params: &LandParams,
        prepared: PreparedLanding,
    ) -> Result<LandReply, ErrorData> {
        let LandTarget { repository, worker, onto, checkout: holder } = ground;
        let work_tree = holder.as_ref().map(|holder| WirePath::from(holder.work_dir()));
        let moves = prepared.is_move_needed();
        let before = prepared.old_tip;
        let after = prepared.new_tip;
        let mut reply = LandReply {
            onto: onto.clone(),
            before: prepared.old_tip.map(|id| id.to_string()),
            after: prepared.new_tip.to_string(),
            preview: params.preview,
            work_tree: work_tree.filter(|_| moves),
            on_run: run_branch(&repository)?,
            left: None,
            back: None,
            uncommitted: Vec::new(),
            settings: find_other_settings(&repository, &prepared)?,
            runs: prepared.runs,
        };
        if params.preview {
            return Ok(reply);
        }
        if !moves {
            return self.go_back(&repository, worker.as_ref(), params, reply).await;
        }
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let message = format!("runner: land {}", params.runs.join(" "));
        let checked_out = holder.clone();
        let place = repository.clone();
        let work = move || {
            let by = repository.identity().unwrap_or_else(Identity::runner);
            let advance = BranchAdvance { branch: &onto, old: before, new: after, message: &message, identity: &by };
            landing::move_branch(&store, &repository, holder.as_ref(), &advance)
        };
        // No run starts in the work tree meanwhile, since the worker is what starts runs.
        match &worker {
            Some(worker) => {
                worker.send_request(|reply| WorkerMessage::RunExclusive(ExclusiveWork::new(work), reply)).await?;
            }
            None => run_blocking(work).await?,
        }
        let stale_note = run_blocking(move || {
            Ok(checked_out.zip(before).and_then(|(tree, old)| stale_submodules_note(&tree, &old, &after)))
        });
        if let Some(last) = reply.runs.last_mut() {
            last.notes.extend(stale_note.await?);
        }
        self.go_back(&place, worker.as_ref(), params, reply).await
    }

    /// Repairs what an earlier, interrupted landing has left.
    async fn recover_landing(&self, repository: &Repository) -> Result<(), ErrorData> {
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let vault = self.state_dir.clone();
        let worker = self.registry.find(repository.common_dir()).await;
        let live = worker.filter(|worker| self.is_unsettled(worker));
        run_blocking(move || {
            let pinned = live.map(|worker| super::find_pinned(&vault, &worker, |_| true)).unwrap_or_default();
            let bind =
                |repository| pinned.iter().fold(repository, |repository, known| known.bind_repository(repository));
            landing::recover_landing(&store, bind).map_err(|error| {
                ErrorData::new(ErrorKind::Fault, display_chain(&error)).hint("runnerctl daemon status")
            })
        })
        .await
    }

    pub(super) fn read_targets(&self, repository: &Repository) -> Result<LandTargets, ErrorData> {
        let sealed_targets =
            RepoStore::new(&self.state_dir, &repo_id(repository.common_dir())).landing_targets_file::<LandTargets>();
        sealed_targets.read().map(Option::unwrap_or_default).map_err(|error| sealed_file_error(&error))
    }

    /// Returns the branch that a run is to land on, if it is known.
    pub(super) fn find_target(&self, repository: &Repository, run: &str) -> Option<String> {
        self.read_targets(repository).ok()?.0.get(run).cloned()
    }

    /// Remembers the target branch of a run's result: the branch of HEAD, or the target of the run that HEAD is on.
    pub(super) fn save_target(&self, repository: &Repository, run: &str, onto: &str) -> Result<(), ErrorData> {
        let store = RepoStore::new(&self.state_dir, &repo_id(repository.common_dir()));
        let mut targets = self.read_targets(repository)?;
        let onto = match onto.strip_prefix("runner/") {
            Some(source_run) => targets.0.get(source_run).cloned(),
            None => Some(onto.to_owned()),
        };
        let Some(onto) = onto else { return Ok(()) };
        if targets.0.insert(run.to_owned(), onto.clone()) == Some(onto) {
            return Ok(());
        }
        store.landing_targets_file::<LandTargets>().write(&targets).map_err(|error| sealed_file_error(&error))
    }
}

/// Returns the branch of the last run that lands, if its settings differ from the defaults and the result has none.
fn find_other_settings(repository: &Repository, prepared: &PreparedLanding) -> Result<Option<String>, ErrorData> {
    let read_config = |commit: &Id| repository.read_file(commit, Layout::CONFIG).map_err(|error| git_error(&error));
    let landed = |run: &&RunLanding| run.outcome == LandOutcome::Landed;
    let Some(run) = prepared.runs.iter().rfind(landed) else { return Ok(None) };
    let branch = format!("runner/{}", run.run);
    let tip = repository.find_branch_tip(&branch).map_err(|error| git_error(&error))?;
    let Some(tip) = tip else { return Ok(None) };
    let Some(text) = read_config(&tip)? else { return Ok(None) };
    let keys = runner_config::list_changes(&String::from_utf8_lossy(&text), Path::new(Layout::CONFIG));
    // What the target has changed itself is newer.
    let is_older = match read_config(&prepared.new_tip)? {
        None => true,
        Some(target) => {
            let loaded = worker::load_state(repository, tip).ok();
            let base = loaded.and_then(|loaded| loaded.run_state.base.as_deref()?.parse::<Id>().ok());
            target != text && base.map(|base| read_config(&base)).transpose()?.flatten() == Some(target)
        }
    };
    Ok((is_older && keys.is_ok_and(|keys| !keys.is_empty())).then_some(branch))
}

/// Reports the submodule folders that a landing left outdated, and how to update them.
fn stale_submodules_note(holder: &Repository, before: &Id, after: &Id) -> Option<String> {
    // The branch has moved, whether or not this can be determined.
    let submodules = holder.find_moved_submodules(before, after).ok().filter(|moved| !moved.is_empty())?;
    let place = holder.work_dir().display().to_string();
    let command = ["git", "-C", &place, "submodule", "update", "--init", "--"].into_iter();
    let command = shell::join_args(command.chain(submodules.iter().map(String::as_str)));
    Some(format!("the directories of submodules are as they were: {command}"))
}

fn sealed_file_error(error: &crate::repo::sealed::SealedFileError) -> ErrorData {
    ErrorData::new(ErrorKind::Fault, error.to_string()).caused_by(error)
}

/// Refuses a work tree in which git would wait for ever.
async fn refuse_pipes(repository: &Repository) -> Result<(), ErrorData> {
    let repository = repository.clone();
    run_blocking(move || admit::refuse_pipes(&repository)).await
}

/// Returns the ids of the requested runs, each of which has a branch.
async fn resolve_runs(repository: &Repository, requested: Vec<String>) -> Result<Vec<String>, ErrorData> {
    let repository = repository.clone();
    if requested.iter().any(String::is_empty) {
        return Err(empty_id_error());
    }
    let run = move |selector: &String| Ok(resolve_target(&repository, Some(selector), "land")?.run);
    run_blocking(move || requested.iter().map(run).collect()).await
}

/// Chooses the branch that runs land on: the one that was named, else the one from which all of them were started. If
/// there is neither, the refusal suggests `fallback`.
fn choose_branch(
    targets: &LandTargets,
    requested: Option<&str>,
    runs: &[String],
    fallback: &str,
) -> Result<String, ErrorData> {
    if let Some(named) = requested {
        return Ok(named.to_owned());
    }
    let found: BTreeSet<Option<&String>> = runs.iter().map(|run| targets.0.get(run)).collect();
    let command = |onto: &str| {
        let words = ["runnerctl", "land"].into_iter().chain(runs.iter().map(String::as_str));
        shell::join_args(words.chain(["--onto", onto]))
    };
    if let [Some(onto)] = found.iter().collect::<Vec<_>>()[..] {
        return Ok((*onto).clone());
    }
    let message = match found.iter().flatten().next() {
        Some(_) => "these runs were not started from one branch: say which they land on",
        None => "no branch is known from which this run was started: say which one it lands on",
    };
    let first = found.iter().flatten().next().map_or(fallback, |onto| onto.as_str());
    Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint(command(first)))
}

/// Returns the branch that is checked out, unless it is a run's.
fn own_branch(repository: &Repository) -> String {
    let head = repository.head().ok();
    let branch = head.as_ref().and_then(|head| head.branch()).filter(|branch| !branch.starts_with("runner/"));
    branch.unwrap_or("main").to_owned()
}

fn missing_branch_error(repository: &Repository, name: &str) -> ErrorData {
    let message = format!("there is no branch {name} in {}", repository.work_dir().display());
    ErrorData::new(ErrorKind::NotFound, message).hint("git branch --list")
}

fn branch_busy_error(tree: &Repository, operation: &str, branch: &str) -> ErrorData {
    let place = tree.work_dir().display().to_string();
    let message = format!("a {operation} of {branch} is in progress in {place}");
    ErrorData::new(ErrorKind::DirtyTree, message).hint(shell::join_args(["git", "-C", &place, "status"]))
}

/// Returns a free id (`resolve-<run>`, numbered if necessary) for the run that brings in the result of another one.
fn unused_run_id(repository: &Repository, run: &str) -> Result<String, ErrorData> {
    let taken = repository.list_branches("runner/").map_err(|error| git_error(&error))?;
    let is_free = |id: &String| !taken.iter().any(|(name, _): &(String, Id)| name[7..].eq_ignore_ascii_case(id));
    let first = format!("resolve-{run}");
    let next = (2..).map(|number| format!("{first}-{number}"));
    Ok(std::iter::once(first.clone()).chain(next).find(is_free).unwrap_or(first))
}
