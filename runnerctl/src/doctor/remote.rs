//! Asks a running daemon for facts that only it knows, each request within a time limit.

use std::future::Future;
use std::time::Duration;

use jsonrpsee::core::client::{Client, Error as ClientError};
use protocol::api::{ConfigApiClient, DoctorApiClient as _, RepoApiClient as _, RunApiClient, TreeApiClient as _};
use protocol::client::{CallError, Connection, caller_env};
use protocol::doctor::{AgentFacts, AgentFitness, RepositoryFacts};
use protocol::path::WirePath;
use protocol::reply::{ConfigShowReply, ValidateReply};
use protocol::request::{AgentParams, AtRun, AtSettings, ConfigKey, UserDefaults, ValidateParams};
use protocol::view::{DiskView, StopReason};
use tokio::time::timeout;

use super::QueryError;

/// Time limit for what the daemon knows or reads.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for agents to report their versions.
const AGENTS_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit for measuring workspaces.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(20);

/// A daemon's report on a repository.
#[derive(Debug)]
pub(crate) struct RepositoryReport {
    pub(crate) facts: RepositoryFacts,
    /// Why the daemon holds it, if its state cannot be trusted.
    pub(crate) hold_reason: Option<StopReason>,
    pub(crate) settings: Result<ConfigShowReply, QueryError>,
    pub(crate) files: Result<ValidateReply, QueryError>,
    pub(crate) agents: Result<Vec<AgentFacts>, QueryError>,
    /// The installed agents, if a configured one cannot work.
    pub(crate) installed: Vec<AgentFacts>,
    /// The guard's command; empty if the configuration cannot be read.
    pub(crate) guard: Vec<String>,
}

/// Requests all of it concurrently.
pub(crate) async fn query_repository(
    connection: &Connection,
    path: &WirePath,
    defaults: Option<UserDefaults>,
) -> Result<RepositoryReport, QueryError> {
    let client = connection.client();
    let at = AtSettings { path: path.clone(), defaults: defaults.clone() };
    let facts = with_timeout(REQUEST_TIMEOUT, client.repository_facts(at.clone())).await?;
    let env = caller_env::collect_for_new(connection, path, defaults.clone()).await;
    let params = ValidateParams { path: path.clone(), env };
    let agents = AgentParams { path: path.clone(), env: params.env.clone(), defaults: defaults.clone() };
    let guard = ConfigKey { path: path.clone(), key: Some("guard.command".into()), defaults };
    let state = AtRun { path: path.clone(), run: None };
    let (held, settings, files, agents, guard) = tokio::join!(
        with_timeout(REQUEST_TIMEOUT, RunApiClient::status(client, state)),
        with_timeout(REQUEST_TIMEOUT, client.show(at)),
        with_timeout(REQUEST_TIMEOUT, client.validate(params.clone())),
        with_timeout(AGENTS_TIMEOUT, client.agent_facts(agents)),
        with_timeout(REQUEST_TIMEOUT, ConfigApiClient::get(client, guard)),
    );
    let guard = guard.ok().and_then(|reply| serde_json::from_value(reply.value).ok()).unwrap_or_default();
    // An unregistered repository has no state.
    let held = held.ok().and_then(|view| view.repo.held);
    let is_unfit = |agent: &AgentFacts| matches!(agent.fitness, AgentFitness::Unfit { .. });
    let installed = if agents.as_ref().is_ok_and(|agents| agents.iter().any(is_unfit)) {
        // They are only for an example.
        with_timeout(AGENTS_TIMEOUT, client.installed_agents(params)).await.unwrap_or_default()
    } else {
        Vec::new()
    };
    Ok(RepositoryReport { facts, hold_reason: held, settings, files, agents, installed, guard })
}

/// Requests the size of workspaces, which the daemon measures file by file.
pub(crate) async fn query_disk(client: &Client) -> Result<DiskView, QueryError> {
    with_timeout(MEASURE_TIMEOUT, client.disk()).await
}

async fn with_timeout<T>(limit: Duration, call: impl Future<Output = Result<T, ClientError>>) -> Result<T, QueryError> {
    let reply = timeout(limit, call).await.map_err(|_| QueryError::TimedOut(limit))?;
    reply.map_err(|error| to_query_error(CallError::from(error)))
}

fn to_query_error(error: CallError) -> QueryError {
    match error {
        CallError::Refused(data) => {
            let messages: Vec<&str> = std::iter::once(&data.message).chain(&data.causes).map(String::as_str).collect();
            QueryError::Refused(messages.join(": "), data.hint)
        }
        error => QueryError::Refused(error.to_string(), Some("runnerctl daemon status".into())),
    }
}
