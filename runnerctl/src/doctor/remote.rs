//! Asks a running daemon for facts that only it knows, each request within a time limit.

use std::future::Future;
use std::time::Duration;

use jsonrpsee::core::client::{Client, Error as ClientError};
use protocol::api::{ConfigApiClient, DoctorApiClient as _, RepoApiClient as _, RunApiClient, TreeApiClient as _};
use protocol::client::{CallError, Connection, caller_env};
use protocol::doctor::{AgentFacts, RepositoryFacts};
use protocol::path::WirePath;
use protocol::reply::{ConfigShowReply, ValidateReply};
use protocol::request::{AtPath, AtRun, ConfigKey, ValidateParams};
use protocol::view::{DiskView, StopReason};
use tokio::time::timeout;

use super::QueryError;

/// Time limit for what the daemon knows or reads.
const LIMIT: Duration = Duration::from_secs(5);
/// Time limit for agents to report their versions.
const AGENTS_LIMIT: Duration = Duration::from_secs(20);

/// Time limit for measuring workspaces.
const MEASURE_LIMIT: Duration = Duration::from_secs(20);

/// A daemon's report on a repository.
#[derive(Debug)]
pub(crate) struct RepositoryReport {
    pub(crate) facts: RepositoryFacts,
    /// Why the daemon holds it, if its state cannot be trusted.
    pub(crate) held: Option<StopReason>,
    pub(crate) settings: Result<ConfigShowReply, QueryError>,
    pub(crate) files: Result<ValidateReply, QueryError>,
    pub(crate) agents: Result<Vec<AgentFacts>, QueryError>,
    /// The guard's command; empty if the configuration cannot be read.
    pub(crate) guard: Vec<String>,
}

/// Requests all of it concurrently.
pub(crate) async fn repository(connection: &Connection, path: &WirePath) -> Result<RepositoryReport, QueryError> {
    let client = connection.client();
    let at = AtPath { path: path.clone() };
    let facts = within(LIMIT, client.repository_facts(at.clone())).await?;
    let params = ValidateParams { path: path.clone(), env: caller_env::collect(connection, path).await };
    let guard = ConfigKey { path: path.clone(), key: Some("guard.command".into()) };
    let state = AtRun { path: path.clone(), run: None };
    let (held, settings, files, agents, guard) = tokio::join!(
        within(LIMIT, RunApiClient::status(client, state)),
        within(LIMIT, client.show(at)),
        within(LIMIT, client.validate(params.clone())),
        within(AGENTS_LIMIT, client.agent_facts(params)),
        within(LIMIT, ConfigApiClient::get(client, guard)),
    );
    let guard = guard.ok().and_then(|reply| serde_json::from_value(reply.value).ok()).unwrap_or_default();
    // An unregistered repository has no state.
    let held = held.ok().and_then(|view| view.repo.held);
    Ok(RepositoryReport { facts, held, settings, files, agents, guard })
}

/// Requests the size of workspaces, which the daemon measures file by file.
pub(crate) async fn disk(client: &Client) -> Result<DiskView, QueryError> {
    within(MEASURE_LIMIT, client.disk()).await
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, ClientError>>) -> Result<T, QueryError> {
    let reply = timeout(limit, call).await.map_err(|_| QueryError::TimedOut(limit))?;
    reply.map_err(|error| trouble(CallError::from(error)))
}

fn trouble(error: CallError) -> QueryError {
    match error {
        CallError::Refused(data) => {
            let words: Vec<&str> = std::iter::once(&data.message).chain(&data.causes).map(String::as_str).collect();
            QueryError::Refused(words.join(": "), data.hint)
        }
        error => QueryError::Refused(error.to_string(), Some("runnerctl daemon status".into())),
    }
}
