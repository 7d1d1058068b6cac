//! `question.*`: the questions of agents in all repositories, and a person's answer.

use jsonrpsee::core::{RpcResult, async_trait};
use protocol::api::QuestionApiServer;
use protocol::error::{ErrorData, ErrorKind};
use protocol::path::WirePath;
use protocol::reply::ChangeReply;
use protocol::request::{AnswerParams, AtRun, QuestionsParams};
use protocol::view::QuestionView;
use runner_core::files::change::ChangeRequest;
use runner_core::files::questions;
use runner_git::Repository;

use super::{Api, branches, run_blocking};
use crate::admit::git_error;
use crate::repo::layout::Layout;
use crate::store::RepoStore;
use crate::worker::{ChangeOrder, PinnedRepo, WorkerHandle, WorkerMessage};

#[async_trait]
impl QuestionApiServer for Api {
    async fn questions(&self, params: QuestionsParams) -> RpcResult<Vec<QuestionView>> {
        let mut views = match &params.path {
            Some(path) if let Some(found) = self.list_branch_questions(path).await? => found,
            path => self.list_questions(path.as_ref()).await?.into_iter().map(|entry| entry.view).collect(),
        };
        views.retain(|view| params.all || view.answer.is_none());
        views.sort_by_key(|view| view.answer.is_some());
        Ok(views)
    }

    async fn answer(&self, params: AnswerParams) -> RpcResult<ChangeReply> {
        let entries = self.list_questions(params.path.as_ref()).await?;
        let QuestionEntry { worker, view } = find_question(entries, &params.id)?;
        let change = ChangeRequest::Answer { question: view.id, text: params.text };
        let order = ChangeOrder { run: Some(view.run), change, opened: None };
        Ok(worker.ask_or_tell(|reply| WorkerMessage::Change(Box::new(order), reply)).await?)
    }
}

/// A question, and the repository it belongs to.
struct QuestionEntry {
    worker: WorkerHandle,
    view: QuestionView,
}

impl Api {
    /// Returns the questions of all runs with branches in a repository, if it is not registered.
    async fn list_branch_questions(&self, path: &WirePath) -> Result<Option<Vec<QuestionView>>, ErrorData> {
        let repository = self.find_repository(path.as_path()).await?;
        if self.registry.find(repository.common_dir()).await.is_some() {
            return Ok(None);
        }
        let at = AtRun { path: path.clone(), run: None };
        run_blocking(move || branches::list_questions(&repository, &at)).await
    }

    /// Returns the questions of the current run of one repository, or of all.
    async fn list_questions(&self, path: Option<&WirePath>) -> Result<Vec<QuestionEntry>, ErrorData> {
        let mut workers = match path {
            Some(path) => {
                let own = self.find_worker(path.as_path()).await?.1;
                let isolated = self.isolated_runs_of(path.as_path()).await.map(|(_, isolated)| isolated);
                std::iter::once(own).chain(isolated.into_iter().flatten()).collect()
            }
            None => self.registry.list().await,
        };
        workers.sort_by_key(|worker| worker.status().repo.path.clone());
        let mut entries = Vec::new();
        for worker in workers {
            let store = RepoStore::new(&self.state_dir, &worker.id);
            let Some(run) = worker.status().run.as_ref().map(|run| run.summary.clone()) else { continue };
            let read = move || {
                let pinned = PinnedRepo::for_work_tree(&store, run.path.as_path()).try_open();
                let pinned = pinned.map_err(|error| git_error(&error))?;
                let found = pinned.map_or_else(|| Repository::discover(run.path.as_path()), Ok);
                let repository = found.map_err(|error| git_error(&error))?;
                let tip = repository.find_branch_tip(&run.branch).map_err(|error| git_error(&error))?;
                let text = tip.map(|tip| repository.read_file(&tip, Layout::QUESTIONS)).transpose();
                let text = text.map_err(|error| git_error(&error))?.flatten().unwrap_or_default();
                Ok((run, questions::parse_questions(&String::from_utf8_lossy(&text))))
            };
            let (run, questions) = match run_blocking(read).await {
                Ok(found) => found,
                // An unreadable repository does not hide the others.
                Err(error) if path.is_none() => {
                    tracing::warn!(repo = worker.id, error = error.message, "failed to read questions");
                    continue;
                }
                Err(error) => return Err(error),
            };
            entries.extend(questions.into_iter().map(|questions::AgentQuestion { id, text, answer }| QuestionEntry {
                view: QuestionView { id, text, answer, path: run.path.clone(), run: run.id.clone() },
                worker: worker.clone(),
            }));
        }
        Ok(entries)
    }
}

/// Returns the question with this id or prefix, or `RUN/` and the id; open ones take precedence over answered ones.
fn find_question(entries: Vec<QuestionEntry>, requested: &str) -> Result<QuestionEntry, ErrorData> {
    let (run, id) = requested.rsplit_once('/').map_or((None, requested), |(run, id)| (Some(run), id));
    let matches =
        |view: &QuestionView| !id.is_empty() && view.id.starts_with(id) && run.is_none_or(|run| view.run == run);
    let mut matching: Vec<QuestionEntry> = entries.into_iter().filter(|entry| matches(&entry.view)).collect();
    matching.sort_by_key(|entry| entry.view.answer.is_some());
    let entry_key = |entry: &QuestionEntry| (entry.view.id.clone(), entry.view.path.clone());
    let first = matching.first().map(entry_key);
    if matching.iter().any(|entry| entry.view.answer.is_none() && Some(entry_key(entry)) != first) {
        let describe_entry =
            |entry: &QuestionEntry| format!("{}/{} in {}", entry.view.run, entry.view.id, entry.view.path);
        let all: Vec<String> = matching.iter().map(describe_entry).collect();
        let message = format!("`{requested}` matches more than one question: {}", all.join(", "));
        let hint = "name the run too, as in: runnerctl answer RUN/ID TEXT";
        return Err(ErrorData::new(ErrorKind::InvalidRequest, message).hint(hint));
    }
    matching.into_iter().next().ok_or_else(|| {
        ErrorData::new(ErrorKind::NotFound, format!("there is no question {requested}"))
            .hint("runnerctl questions --all")
    })
}
