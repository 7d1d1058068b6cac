//! The source of replies: the daemon, or the records if no daemon has answered.

use std::sync::Arc;

use protocol::api::{
    ConfigApiClient, IterationApiClient, MemoryApiClient, QuestionApiClient, RunApiClient, TreeApiClient,
};
use protocol::client::Connection;
use protocol::id_lookup::find_by_id;
use protocol::path::WirePath;
use protocol::reply::{ActivityReply, ConfigShowReply, IterationReply, MemoryReply, TreeReply};
use protocol::request::{ActivityParams, AtIteration, AtPath, AtRun, AtSettings, LogStream, QuestionsParams};
use protocol::view::{IterationView, QuestionView, RunSummary, StatusView};

use crate::app::App;
use crate::daemon_link::DaemonStatus;
use crate::problem::ApiProblem;
use crate::records::WorkTreeRecords;
use crate::target::{IterationId, RequestTarget};
use crate::text::RecordText;
use crate::wire::{ErrorReply, Health};

/// Where replies come from.
#[derive(Debug, Clone)]
enum ReplySource {
    Daemon(Arc<Connection>),
    Records(WorkTreeRecords),
}

/// The run that a request is about, and the source of replies about it.
#[derive(Debug, Clone)]
pub(crate) struct LocatedRun {
    source: ReplySource,
    status: StatusView,
    /// The work tree of the run, and the run if one was named.
    at: AtRun,
    iter: Option<IterationId>,
    start: u64,
}

impl App {
    /// Returns the repositories that are shown, and the source they come from.
    async fn read_shown(&self) -> Result<(ReplySource, Vec<StatusView>), ApiProblem> {
        let from_records = |records: &WorkTreeRecords| (ReplySource::Records(records.clone()), vec![records.status()]);
        let connection = match (self.daemon_status(), &self.records) {
            (DaemonStatus::Connected(connection), _) => connection,
            (DaemonStatus::NeverAnswered, Some(records)) => return Ok(from_records(records)),
            (DaemonStatus::NeverAnswered, None) => return Err(ApiProblem::daemon_away(None)),
            (DaemonStatus::Untried, _) => return Err(ApiProblem::daemon_untried()),
            (DaemonStatus::Unreachable(error), _) => return Err(ApiProblem::daemon_unreachable(&error)),
            (DaemonStatus::Disconnected { since }, _) => return Err(ApiProblem::daemon_away(Some(since))),
        };
        let client = connection.client();
        let views = match &self.only_path {
            None => client.status_all().await?,
            Some(path) => {
                let at = AtRun { path: WirePath(path.to_path_buf()), run: None };
                match (RunApiClient::status(client, at).await.map_err(ApiProblem::from), &self.records) {
                    // A clone that no daemon has ever driven still has records.
                    (Err(problem), Some(records)) if problem.is_not_found() => return Ok(from_records(records)),
                    (view, _) => {
                        let view = view?;
                        with_isolated_runs(client.status_all().await?, view)
                    }
                }
            }
        };
        Ok((ReplySource::Daemon(connection), views))
    }

    /// Fails if nothing can be shown: the path is in no repository, or there is neither daemon nor records.
    ///
    /// # Errors
    ///
    /// Explains why nothing can be shown.
    pub async fn check_available(&self) -> Result<(), ErrorReply> {
        self.read_shown().await.map(drop).map_err(ErrorReply::from)
    }

    /// Describes every repository that is shown.
    pub(crate) async fn repositories(&self) -> Result<Vec<StatusView>, ApiProblem> {
        Ok(self.read_shown().await?.1)
    }

    /// Returns who answers, and from which source.
    pub(crate) async fn health_now(&self) -> Health {
        let (is_records, only) = match self.read_shown().await {
            Ok((source, views)) => (matches!(source, ReplySource::Records(_)), views),
            Err(_) => (false, Vec::new()),
        };
        let mut own = only.iter().filter(|view| view.repo.source_id.is_none());
        let only = own.next().filter(|_| own.next().is_none()).map(|view| view.repo.id.clone());
        Health { from_records: is_records, only, ..self.health() }
    }

    /// Finds the repository and the run that a request is about.
    pub(crate) async fn locate(&self, target: RequestTarget) -> Result<LocatedRun, ApiProblem> {
        let (source, views) = self.read_shown().await?;
        // Workspaces of isolated runs match by name only.
        let is_target = |view: &StatusView| match &target.repo {
            Some(id) => *id == view.repo.id,
            None => view.repo.source_id.is_none(),
        };
        let mut views = views.into_iter().filter(is_target);
        let Some(status) = views.next() else { return Err(ApiProblem::not_found("there is no such repository")) };
        if views.next().is_some() {
            return Err(ApiProblem::not_found("there is more than one repository: /api/repos names them"));
        }
        let path = match &source {
            ReplySource::Daemon(connection) => find_work_tree(connection, &status, target.run.as_deref()).await?,
            ReplySource::Records(_) => status.repo.path.clone(),
        };
        Ok(LocatedRun { source, status, at: AtRun { path, run: target.run }, iter: target.iter, start: target.start })
    }
}

/// Returns a repository and the workspaces of its isolated runs, each with its own run; only the repository if it is
/// not registered.
fn with_isolated_runs(all: Vec<StatusView>, view: StatusView) -> Vec<StatusView> {
    let id = &view.repo.id;
    let belongs = |other: &StatusView| other.repo.id == *id || other.repo.source_id.as_ref() == Some(id);
    let own: Vec<StatusView> = all.into_iter().filter(belongs).collect();
    if own.is_empty() { vec![view] } else { own }
}

/// Returns the work tree of a run, which contains its records.
async fn find_work_tree(
    connection: &Connection,
    status: &StatusView,
    run: Option<&str>,
) -> Result<WirePath, ApiProblem> {
    let current = status.run.as_ref().map(|run| &run.summary);
    let Some(run) = run else {
        return Ok(current.map_or_else(|| status.repo.path.clone(), |summary| summary.path.clone()));
    };
    if let Some(summary) = current.filter(|summary| summary.id == run) {
        return Ok(summary.path.clone());
    }
    let at = AtPath { path: status.repo.path.clone() };
    let known = RunApiClient::list(connection.client(), at).await?;
    let found = find_by_id(&known, |summary| &summary.id, run);
    let found = found.map_err(|error| ApiProblem::invalid(error.to_string()))?;
    Ok(found.map_or_else(|| status.repo.path.clone(), |summary| summary.path.clone()))
}

impl LocatedRun {
    fn to_at_iteration(&self) -> AtIteration {
        let AtRun { path, run } = self.at.clone();
        AtIteration { path, run, iter: self.iter.map(|iter| iter.number), wait: self.iter.and_then(|iter| iter.wait) }
    }

    /// Describes the repository, with the requested run.
    pub(crate) async fn status(self) -> Result<StatusView, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) if self.at.run.is_some() => {
                Ok(RunApiClient::status(connection.client(), self.at).await?)
            }
            ReplySource::Daemon(_) | ReplySource::Records(_) => Ok(self.status),
        }
    }

    /// Reads the task tree.
    pub(crate) async fn tree(self) -> Result<TreeReply, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) => Ok(TreeApiClient::get(connection.client(), self.at).await?),
            ReplySource::Records(records) => records.tree(),
        }
    }

    /// Reads the texts that go into prompts.
    pub(crate) async fn memory(self) -> Result<MemoryReply, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) => Ok(connection.client().memory(self.at).await?),
            ReplySource::Records(records) => records.memory(),
        }
    }

    /// Lists the settings.
    pub(crate) async fn config(self) -> Result<ConfigShowReply, ApiProblem> {
        let at = AtSettings { path: self.at.path.clone(), defaults: None };
        Ok(ConfigApiClient::show(self.daemon()?.client(), at).await?)
    }

    /// Lists the questions.
    pub(crate) async fn questions(self) -> Result<Vec<QuestionView>, ApiProblem> {
        let params = QuestionsParams { path: Some(self.status.repo.path.clone()), all: true };
        Ok(self.daemon()?.client().questions(params).await?)
    }

    /// Lists the runs.
    pub(crate) async fn runs(self) -> Result<Vec<RunSummary>, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) => {
                let at = AtPath { path: self.status.repo.path.clone() };
                Ok(RunApiClient::list(connection.client(), at).await?)
            }
            ReplySource::Records(_) => Ok(self.status.run.map(|run| run.summary).into_iter().collect()),
        }
    }

    /// Lists the iterations of a run, starting at a number.
    pub(crate) async fn iterations(self) -> Result<Vec<IterationView>, ApiProblem> {
        let mut views = match &self.source {
            ReplySource::Daemon(connection) => IterationApiClient::list(connection.client(), self.at).await?,
            ReplySource::Records(records) => records.iterations(self.at.run.as_deref())?,
        };
        views.retain(|view| u64::from(view.iter) >= self.start);
        Ok(views)
    }

    /// Describes one iteration.
    pub(crate) async fn iteration(self) -> Result<IterationReply, ApiProblem> {
        match (&self.source, self.iter) {
            (ReplySource::Records(records), Some(iter)) => records.iteration(self.at.run.as_deref(), iter),
            (ReplySource::Records(_), None) => Err(ApiProblem::not_found("no iteration is named")),
            (ReplySource::Daemon(connection), _) => {
                Ok(IterationApiClient::get(connection.client(), self.to_at_iteration()).await?)
            }
        }
    }

    /// Lists the agent's activity.
    pub(crate) async fn activity(self) -> Result<ActivityReply, ApiProblem> {
        let params = ActivityParams { at: self.to_at_iteration(), offset: self.start };
        Ok(self.daemon()?.client().activity(params).await?)
    }

    /// Opens a text of a record.
    pub(crate) async fn text(self, stream: LogStream) -> Result<RecordText, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) => {
                RecordText::from_daemon(Arc::clone(connection), self.to_at_iteration(), stream).await
            }
            ReplySource::Records(records) => records.text(self.at.run.as_deref(), self.iter, stream),
        }
    }

    /// Returns the connection to the daemon, which is required for changes.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) => Ok(Arc::clone(connection)),
            ReplySource::Records(_) => Err(ApiProblem::daemon_away(None)),
        }
    }

    /// Returns the same run at another iteration and offset; saves looking the run up again.
    pub(crate) fn for_iteration(&self, iter: Option<IterationId>, start: u64) -> Self {
        Self { iter, start, ..self.clone() }
    }

    /// Returns the work tree, and the run if one was named.
    pub(crate) fn into_at_run(self) -> AtRun {
        self.at
    }

    /// Returns the daemon, or an error if the source is the records.
    fn daemon(&self) -> Result<&Connection, ApiProblem> {
        match &self.source {
            ReplySource::Daemon(connection) => Ok(connection),
            ReplySource::Records(_) => {
                Err(ApiProblem::not_found("only a daemon can tell this").hint("runnerctl status"))
            }
        }
    }
}
