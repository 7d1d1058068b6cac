//! Reads a run for the export through the same API as the page: its status, and the texts of each iteration.

use futures_util::stream::{self, StreamExt as _};
use protocol::reply::{ActivityReply, ActivityStep, IterationReply};
use protocol::request::LogStream;
use protocol::view::{IterationView, StatusView};
use serde::Serialize;
use serde_json::Value;

use super::bundle::{BundlePiece, MAX_TEXT_BYTES, excerpt, to_embedded_json};
use crate::app::App;
use crate::problem::ApiProblem;
use crate::routes::TEXTS;
use crate::source::LocatedRun;
use crate::target::{IterationId, RequestTarget};
use crate::wire::Shortened;

/// Number of an iteration's texts that are read concurrently.
const CONCURRENT_READS: usize = 4;

/// A run being exported.
#[derive(Debug)]
pub(super) struct ExportedRun {
    pub(super) repo: String,
    pub(super) run: String,
    located: LocatedRun,
    status: StatusView,
}

impl ExportedRun {
    /// Finds a run; an isolated one is found in its workspace.
    pub(super) async fn find(app: &App, run: Option<&str>) -> Result<Self, ApiProblem> {
        let target =
            |repo, run: Option<&str>| RequestTarget { repo, run: run.map(str::to_owned), ..RequestTarget::default() };
        let all = app.repositories().await?;
        let repo = all.iter().find(|view| view.repo.source_id.is_none()).or(all.first());
        let around = repo.map(|view| view.repo.id.clone());
        let status = app.locate(target(around, run)).await?.status().await?;
        let Some(found) = &status.run else {
            return Err(ApiProblem::not_found("there is no run here").hint("runnerctl queue"));
        };
        let run = found.summary.id.clone();
        let path = found.summary.path.clone();
        let home = all.into_iter().find(|view| view.repo.path == path);
        let repo = home.map_or_else(|| status.repo.id.clone(), |view| view.repo.id);
        let located = app.locate(target(Some(repo.clone()), Some(&run))).await?;
        let mut status = located.clone().status().await?;
        // The reader of the export must not see other runs.
        status.repo.queue.retain(|summary| summary.id == run);
        status.isolated.clear();
        Ok(Self { repo, run, located, status })
    }

    /// Returns the replies about the run as a whole, and its iterations, oldest first.
    pub(super) async fn read_overview(&self) -> Result<(Vec<BundlePiece>, Vec<IterationView>), ApiProblem> {
        let iterations = self.for_iteration(None).iterations().await?;
        let mut pieces = vec![
            reply_piece("run-state", &self.status),
            reply_piece("iterations", &iterations),
            reply_piece("tree", &self.for_iteration(None).tree().await?),
            reply_piece("memory", &self.for_iteration(None).memory().await?),
        ];
        // Without a daemon neither is available.
        if let Ok(config) = self.for_iteration(None).config().await {
            pieces.push(reply_piece("config", &config));
        }
        if let Ok(mut questions) = self.for_iteration(None).questions().await {
            questions.retain(|question| question.run == self.run);
            pieces.push(reply_piece("questions", &questions));
        }
        Ok((pieces, iterations))
    }

    /// Returns the number of the live iteration.
    pub(super) fn live_iteration(&self) -> Option<u32> {
        let run = self.status.run.as_ref()?;
        run.phase.as_ref().filter(|phase| !phase.baseline).map(|_| run.iteration)
    }

    /// Returns the outcome of an iteration; empty if its record is gone.
    pub(super) async fn read_outcome(&self, iter: IterationId) -> Result<Vec<BundlePiece>, ApiProblem> {
        let found: Option<IterationReply> = if_found(self.for_iteration(Some(iter)).iteration().await)?;
        Ok(found.iter().map(|found| reply_piece(&iteration_path(iter), found)).collect())
    }

    /// Returns the texts of an iteration.
    pub(super) async fn read_texts(&self, iter: IterationId) -> Result<Vec<BundlePiece>, ApiProblem> {
        let read = TEXTS.map(|(name, log)| Box::pin(self.read_text(iter, name, log)));
        let read: Vec<_> = stream::iter(read).buffered(CONCURRENT_READS).collect().await;
        let mut pieces = self.read_steps(iter).await?;
        for text in read {
            pieces.extend(text?);
        }
        Ok(pieces)
    }

    async fn read_text(
        &self,
        iter: IterationId,
        name: &str,
        log: LogStream,
    ) -> Result<Option<BundlePiece>, ApiProblem> {
        let Some(text) = if_found(self.for_iteration(Some(iter)).text(log).await)? else { return Ok(None) };
        let ends = text.read_ends(MAX_TEXT_BYTES as u64).await;
        let ends = ends.map_err(|error| {
            ApiProblem::fault(format!("reading {name} of iteration {}: {error}", iteration_title(iter)))
        })?;
        let (text, length) = excerpt(&ends, matches!(log, LogStream::Diff));
        let shortened = (length < ends.size).then(|| Shortened {
            iter: iteration_title(iter),
            text: name.into(),
            bytes: ends.size,
            kept: length,
        });
        Ok(Some(BundlePiece::Text(format!("{}/{name}", iteration_path(iter)), text, shortened)))
    }

    /// Returns the newest of the agent's steps that fit.
    async fn read_steps(&self, iter: IterationId) -> Result<Vec<BundlePiece>, ApiProblem> {
        let mut found = ActivityReply { steps: Vec::new(), next_offset: 0, complete: true };
        loop {
            let next = self.located.for_iteration(Some(iter), found.next_offset);
            let Some(more) = if_found(next.activity().await)? else { return Ok(Vec::new()) };
            let is_last = more.complete || more.next_offset == found.next_offset;
            found.steps.extend(more.steps);
            found.next_offset = more.next_offset;
            if is_last {
                break;
            }
        }
        let mut remaining = MAX_TEXT_BYTES;
        let fits = |step: &&ActivityStep| {
            let size = to_embedded_json(step).len() + 1;
            remaining.checked_sub(size).map(|left| remaining = left).is_some()
        };
        let length = found.steps.iter().rev().take_while(fits).count();
        found.steps.drain(..found.steps.len() - length);
        Ok(vec![reply_piece(&format!("{}/activity", iteration_path(iter)), &found)])
    }

    fn for_iteration(&self, iter: Option<IterationId>) -> LocatedRun {
        self.located.for_iteration(iter, 0)
    }
}

/// Maps "not found" to `None`.
fn if_found<T>(found: Result<T, ApiProblem>) -> Result<Option<T>, ApiProblem> {
    match found {
        Err(problem) if problem.is_not_found() => Ok(None),
        found => found.map(Some),
    }
}

fn reply_piece(name: &str, reply: &impl Serialize) -> BundlePiece {
    BundlePiece::Reply(name.to_owned(), serde_json::to_value(reply).unwrap_or(Value::Null))
}

/// Returns an iteration's name as pages show it.
pub(super) fn iteration_title(iter: IterationId) -> String {
    let IterationId { number, wait } = iter;
    wait.map_or_else(|| number.to_string(), |wait| format!("{number}.w{wait}"))
}

fn iteration_path(iter: IterationId) -> String {
    format!("iterations/{}", iteration_title(iter))
}
