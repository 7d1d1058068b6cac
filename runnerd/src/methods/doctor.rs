//! `doctor.*`: facts about a repository that only the daemon can determine. Nothing is judged or changed here.

use std::path::PathBuf;

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::DoctorApiServer;
use protocol::doctor::{AgentFacts, AgentFitness, AttributeFault, RepositoryFacts, WorkspaceProposal};
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::request::{AtPath, ValidateParams};

use super::{Api, run_blocking};
use crate::admit::{self, git_error};
use crate::agent::{self, AgentCandidates, AgentReadiness};
use crate::config::RepoConfig;
use crate::git::Repository;
use crate::repo::layout::Layout;
use crate::worker;

#[async_trait]
impl DoctorApiServer for Api {
    async fn repository_facts(&self, params: AtPath) -> RpcResult<RepositoryFacts> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let digests = self.confirmed_digests(&repository).await;
        Ok(run_blocking(move || collect_facts(&repository, &digests)).await?)
    }

    async fn agent_facts(&self, params: ValidateParams) -> RpcResult<Vec<AgentFacts>> {
        let repository = self.find_repository(params.path.as_path()).await?;
        let digests = self.confirmed_digests(&repository).await;
        let (config, folder) = run_blocking(move || {
            let config = admit::read_config(&Layout::new(repository.work_dir()))?;
            let is_confirmed = is_confirmed(&repository, &config, &digests)?;
            is_confirmed.then(|| (config, repository.work_dir().to_owned())).ok_or_else(unconfirmed_error)
        })
        .await?;
        let scratch = self.paths.state.join("scratch");
        let candidates = AgentCandidates { config: &config, folder: &folder, env: &params.env.0, scratch: &scratch };
        let mut all = Vec::new();
        for (section, executor) in agent::list_executors(&config) {
            let fitness = to_agent_fitness(agent::examine_agent(&executor, candidates, &self.launcher).await);
            all.push(AgentFacts { section: section.to_owned(), kind: executor.kind.to_string(), fitness });
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

fn collect_facts(repository: &Repository, digests: &[String]) -> Result<RepositoryFacts, ErrorData> {
    let layout = Layout::new(repository.work_dir());
    let config = admit::read_config(&layout).ok();
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
    Ok(RepositoryFacts {
        path: WirePath::from(layout.root()),
        has_layout: layout.path(Layout::STATE).is_dir(),
        by_program: by_program.into_iter().map(str::to_owned).collect(),
        locks: locks.into_iter().map(WirePath).collect(),
        attribute: attribute.map(|[what, fix]| AttributeFault { what, fix }),
        operation: repository.operation().map(|operation| operation.to_string()),
        confirmed,
        guard,
        workspace,
    })
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
        AgentReadiness::Ready { version, login } => AgentFitness::Fit { version, login },
        AgentReadiness::Unavailable(error) => AgentFitness::Unfit { what: error.what, fix: error.fix },
        AgentReadiness::Unknown(why) => AgentFitness::Unknown { why },
    }
}
