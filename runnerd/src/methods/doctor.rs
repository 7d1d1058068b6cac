//! `doctor.*`: facts about a repository that only the daemon can determine. Nothing is judged or changed here.

use std::path::PathBuf;

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::DoctorApiServer;
use protocol::doctor::{AgentFacts, AgentFitness, AttributeFault, RepositoryFacts, WorkspaceProposal};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::request::{AgentParams, AtSettings, UserDefaults, ValidateParams};
use runner_agents::{AgentCandidates, AgentReadiness};
use runner_config::{GuardSuggestion, RepoConfig, workflow_commands};
use runner_git::{Repository, WorktreeChange};

use super::config::{read_settings, read_start_config};
use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::repo::durable;
use crate::repo::layout::Layout;
use crate::store::RepoStore;
use crate::worker;

/// Maximum number of commands of workflows that are reported.
const MAX_CI_COMMANDS: usize = 5;
/// Maximum number of uncommitted paths that are reported.
const MAX_UNCOMMITTED: usize = 5;

#[async_trait]
impl DoctorApiServer for Api {
    async fn repository_facts(&self, params: AtSettings) -> RpcResult<RepositoryFacts> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let digests = self.confirmed_digests(&repository).await;
        let store = self.settings_store(&repository);
        let is_driving = self.registry.find(repository.common_dir()).await.is_some_and(|worker| worker.is_driving());
        Ok(run_blocking(move || {
            let facts = collect_facts(&repository, &digests, &store, params.defaults.as_ref())?;
            // The files of a session are its own.
            let uncommitted = if facts.unborn || is_driving { Vec::new() } else { list_uncommitted(&repository)? };
            Ok(RepositoryFacts { uncommitted, ..facts })
        })
        .await?)
    }

    async fn agent_facts(&self, params: AgentParams) -> RpcResult<Vec<AgentFacts>> {
        let AgentParams { path, env, defaults } = params;
        let repository = self.find_repository(path.as_path()).await?;
        let digests = self.confirmed_digests(&repository).await;
        let store = self.settings_store(&repository);
        let (config, folder) = run_blocking(move || {
            let config = read_start_config(&repository, &store, defaults.as_ref())?;
            let is_confirmed = is_confirmed(&repository, &config, &digests)?;
            is_confirmed.then(|| (config, repository.work_dir().to_owned())).ok_or_else(unconfirmed_error)
        })
        .await?;
        let scratch = self.paths.state.join("scratch");
        let candidates = AgentCandidates { config: &config, folder: &folder, env: &env.0, scratch: &scratch };
        let mut all = Vec::new();
        for (section, executor) in runner_agents::list_executors(&config) {
            let fitness = to_agent_fitness(runner_agents::examine_agent(&executor, candidates, &self.launcher).await);
            all.push(AgentFacts { section: section.to_owned(), kind: executor.kind.to_string(), fitness });
        }
        Ok(all)
    }

    async fn installed_agents(&self, params: ValidateParams) -> RpcResult<Vec<AgentFacts>> {
        let config = RepoConfig::default();
        let scratch = self.paths.state.join("scratch");
        // Nothing of the repository takes part: the programs are those that the caller would start.
        let folder = &self.paths.state;
        let candidates = AgentCandidates { config: &config, folder, env: &params.env.0, scratch: &scratch };
        let mut all = Vec::new();
        for executor in runner_agents::list_known(&config, candidates.env) {
            let fitness = to_agent_fitness(runner_agents::examine_agent(&executor, candidates, &self.launcher).await);
            all.push(AgentFacts { section: "executor".to_owned(), kind: executor.kind.to_string(), fitness });
        }
        Ok(all)
    }
}

impl Api {
    /// Returns the digests of the commands that this user has confirmed in a repository.
    async fn confirmed_digests(&self, repository: &Repository) -> Vec<String> {
        match self.registry.find(repository.common_dir()).await {
            Some(worker) => worker.list_runs().await.1,
            None => Vec::new(),
        }
    }
}

fn collect_facts(
    repository: &Repository,
    digests: &[String],
    store: &RepoStore,
    defaults: Option<&UserDefaults>,
) -> Result<RepositoryFacts, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let config = read_start_config(repository, store, defaults).ok();
    let confirmed = config.as_ref().map(|config| is_confirmed(repository, config, digests)).transpose()?;
    let is_set = config.as_ref().is_some_and(|config| config.workspace.needs_setup());
    let workspace = worker::propose_workspace(&layout).filter(|_| !is_set).map(|proposal| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        WorkspaceProposal { by: words(&proposal.detected), copy: words(&proposal.copy), setup: words(&proposal.setup) }
    });
    let guard = config.and_then(|config| worker::guard_files_at_head(repository, &config));
    let by_program = repository.explain_git_engine().map_err(|error| git_error(&error))?;
    let attribute = admit::find_runner_attribute(repository).map_err(|error| git_error(&error))?;
    let locks: Vec<PathBuf> = repository.list_locks();
    let unborn = repository.head().map_err(|error| git_error(&error))?.commit().is_none();
    let read =
        |name: &str| durable::read(&layout.path(name)).ok().flatten().and_then(|text| String::from_utf8(text).ok());
    let guard_suggestion = GuardSuggestion::detect(read);
    Ok(RepositoryFacts {
        path: WirePath::from(layout.root()),
        has_layout: layout.path(Layout::STATE).is_dir() || admit::has_config_at_head(repository)?,
        by_program: by_program.into_iter().map(str::to_owned).collect(),
        locks: locks.into_iter().map(WirePath).collect(),
        attribute: attribute.map(|[what, fix]| AttributeFault { what, fix }),
        operation: repository.operation().map(|operation| operation.to_string()),
        confirmed,
        guard,
        workspace,
        has_settings: has_settings(repository, &layout, store)?,
        guard_suggestion: guard_suggestion
            .map(|found| protocol::doctor::GuardSuggestion { command: found.command, reason: found.reason }),
        ci_commands: read_ci_commands(&layout),
        unborn,
        uncommitted: Vec::new(),
    })
}

fn list_uncommitted(repository: &Repository) -> Result<Vec<String>, ErrorData> {
    let changes = repository.list_changes().map_err(|error| git_error(&error))?;
    let paths = changes.iter().map(WorktreeChange::display_path).filter(|path| !path.starts_with(".runner/"));
    Ok(paths.take(MAX_UNCOMMITTED).collect())
}

/// Whether a new run would not begin with the defaults.
fn has_settings(repository: &Repository, layout: &Layout, store: &RepoStore) -> Result<bool, ErrorData> {
    Ok(layout.config().is_file() || admit::has_config_at_head(repository)? || read_settings(store)?.is_some())
}

/// Returns the first commands of the workflows in a work tree.
fn read_ci_commands(layout: &Layout) -> Vec<String> {
    let folder = layout.path(".github/workflows");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yml" || ending == "yaml"));
    files.sort();
    let texts = files.iter().filter_map(|file| String::from_utf8(durable::read(file).ok()??).ok());
    let commands = texts.flat_map(|text| workflow_commands(&text, MAX_CI_COMMANDS)).take(MAX_CI_COMMANDS);
    commands.collect()
}

fn is_confirmed(repository: &Repository, config: &RepoConfig, digests: &[String]) -> Result<bool, ErrorData> {
    let is_own = repository.was_written_here(Layout::CONFIG).map_err(|error| git_error(&error))?;
    Ok(is_own || digests.contains(&config.commands_digest()))
}

fn unconfirmed_error() -> ErrorData {
    let message = "the commands of this repository's configuration are not confirmed, and are not started";
    ErrorData::new(ErrorKind::Unconfirmed, message).hint("runnerctl start shows them, and asks")
}

fn to_agent_fitness(fitness: AgentReadiness) -> AgentFitness {
    match fitness {
        AgentReadiness::Ready { version, tested, login } => AgentFitness::Fit { version, tested, login },
        AgentReadiness::Unavailable(error) => AgentFitness::Unfit { what: error.what, fix: error.fix },
        AgentReadiness::Unknown(why) => AgentFitness::Unknown { why },
    }
}
