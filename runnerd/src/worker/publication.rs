//! When an isolated run is published, and how its worker reacts to the result: the run is held, or retried, or
//! continues with its branch behind.
//!
//! How to publish is up to `publish`, and for the run of a job `upstream`. In any other repository nothing is done.

use jiff::SignedDuration;
use protocol::view::PublishedView;
use runner_core::publish::missing_workspace;
use runner_core::run::blocker::Blocker;
use runner_core::run::wait::WaitPeriod;
use runner_git::{GitError, MovedRef, Repository};
use runner_os::clock;
use runner_os::error_chain::display_chain;
use runner_os::retryable::{Retryable as _, describe_blocker};
use tokio::task::block_in_place;

use crate::publish::{self, PublishError, PublishOutcome, PublishedMove};
use crate::store::{RepoFile, RepoStore, SourceRepo};
use crate::upstream::{PUSH_TIMEOUT, Upstream, UpstreamOutcome};
use crate::worker::pinned_repo::PinnedRepo;
use crate::worker::prepare_error::PrepareError;
use crate::worker::queue::RepoQueue;

/// Pause before publishing is retried for a branch that could not be moved.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
/// The same if the error is not known to be transient: a source that was away may be back some day.
const RETRY_INTERVAL_LATER: SignedDuration = SignedDuration::from_secs(60);
/// Prefix of the branches of runs.
const RUN_REF_PREFIX: &str = "refs/heads/runner/";

/// How far a run has been published to its source.
#[derive(Debug, Default)]
pub(crate) struct PublishState {
    /// What clients see.
    view: Option<PublishedView>,
    /// When to try again, even if nothing new was committed.
    pub(crate) retry: Option<WaitPeriod>,
}

impl PublishState {
    /// Returns what clients see.
    pub(crate) fn view(&self) -> Option<PublishedView> {
        self.view.clone()
    }

    /// Whether it is time to try again.
    pub(crate) fn is_due(&self) -> bool {
        self.retry.is_some_and(|wait| wait.is_over(clock::now()))
    }
}

/// Publishes what is committed before any other work on the run. Holds the run if a person must intervene, or another
/// driver is to continue it.
pub(crate) fn publish_before_work(queue: &mut RepoQueue) -> Result<(), PrepareError> {
    let publication = publish_commits(queue)?;
    let reason = publication.view.and_then(|view| view.why).filter(|_| publication.is_held);
    match reason.or_else(|| queue.upstream.as_ref()?.hand_over()) {
        Some(why) => Err(PrepareError::Hold(why)),
        None => Ok(()),
    }
}

/// Publishes what was just committed; a failure shows again before the next iteration.
pub(crate) fn publish_commit(queue: &mut RepoQueue) {
    if let Err(error) = publish_commits(queue) {
        tracing::warn!(repo = queue.file.id, error = display_chain(&error), "a run cannot be published yet");
    }
}

/// Publishes what was committed while nothing is driven. Does nothing while an interrupted session has not been
/// inspected.
pub(crate) fn publish_when_idle(queue: &mut RepoQueue) {
    if queue.is_idle() && queue.held.is_none() {
        publish_commit(queue);
    }
}

/// Retries publishing; if that is not possible now either, the next turn of the run does it.
pub(crate) fn retry_publish(queue: &mut RepoQueue) {
    queue.publish_state.retry = None;
    publish_when_idle(queue);
}

/// Refreshes the publishing state of an idle run on request, since people move branches too. Changes nothing else.
pub(crate) fn refresh_publish_state(queue: &mut RepoQueue) {
    let Some(source) = queue.file.source.clone() else { return };
    if queue.upstream.is_some() || !queue.is_idle() {
        return;
    }
    let observed = block_in_place(|| publish::inspect_published(&queue.store, &open_repository(queue)?, &source));
    let view = observed.unwrap_or_else(|error| {
        Some(PublishedView { why: Some(describe_blocker(&error).wait_reason()), ..unknown_view(&source) })
    });
    let position = |view: &Option<PublishedView>| view.as_ref().map(|view| (view.tip.clone(), view.behind));
    // Only the last attempt knows why it failed.
    let is_unchanged =
        position(&view) == position(&queue.publish_state.view) && view.as_ref().is_none_or(|view| view.why.is_none());
    // The obstacle is gone, such as an absent source: the next attempt need not wait.
    let now = clock::now();
    if !is_unchanged && queue.publish_state.retry.is_some() && view.as_ref().is_some_and(|view| view.why.is_none()) {
        queue.publish_state.retry = Some(WaitPeriod { since: now, until: now });
    }
    if !is_unchanged && view != queue.publish_state.view {
        queue.publish_state.view = view;
        queue.publish_view();
    }
}

fn unknown_view(source: &SourceRepo) -> PublishedView {
    PublishedView { to: source.path.clone(), tip: None, behind: None, why: None }
}

/// Returns the error to report for the missing workspace of an isolated run, in place of whatever failed first because
/// of it.
pub(crate) fn missing_workspace_blocker(file: &RepoFile) -> Option<Blocker> {
    let source = file.source.as_ref()?;
    let found = file.path.as_path().symlink_metadata();
    let is_gone = found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    is_gone.then(|| missing_workspace(&source.run, [&source.path.to_string(), &file.path.to_string()]))
}

fn publish_commits(queue: &mut RepoQueue) -> Result<PublishOutcome, PublishError> {
    if let Some(upstream) = queue.upstream.clone() {
        return push_commits(queue, &upstream);
    }
    let Some(source) = queue.file.source.clone() else { return Ok(PublishOutcome::default()) };
    let result = block_in_place(|| {
        let repository = open_repository(queue)?;
        publish::publish_run(&queue.store, &repository, &source)
    });
    let (view, pause) = match &result {
        Ok(publication) => {
            let is_behind = publication.view.as_ref().is_some_and(|view| view.why.is_some());
            (publication.view.clone(), is_behind.then_some(RETRY_INTERVAL))
        }
        Err(error) => {
            let view = block_in_place(|| publish::inspect_published(&queue.store, &open_repository(queue)?, &source));
            let view = view.ok().flatten().unwrap_or_else(|| unknown_view(&source));
            let pause = if error.is_transient() { RETRY_INTERVAL } else { RETRY_INTERVAL_LATER };
            (Some(PublishedView { why: Some(describe_blocker(error).wait_reason()), ..view }), Some(pause))
        }
    };
    let now = clock::now();
    let retry = pause.map(|pause| WaitPeriod { since: now, until: now + pause });
    queue.publish_state = PublishState { view, retry };
    queue.publish_view();
    result
}

/// Pushes what the run of a job has committed to its remote. If the remote refuses, the next turn of the run handles
/// it.
fn push_commits(queue: &mut RepoQueue, upstream: &Upstream) -> Result<PublishOutcome, PublishError> {
    let UpstreamOutcome { view, is_held } =
        block_in_place(|| upstream.publish(&open_repository(queue)?, PUSH_TIMEOUT))?;
    queue.publish_state = PublishState { view: view.clone(), retry: None };
    queue.publish_view();
    Ok(PublishOutcome { view, is_held })
}

fn open_repository(queue: &RepoQueue) -> Result<Repository, GitError> {
    let path = queue.file.path.as_path();
    queue.last_load.repository(path).map_or_else(|| PinnedRepo::for_work_tree(&queue.store, path).open(), Ok)
}

/// Filters out references that this daemon, not a session, has moved by publishing other runs.
pub(crate) fn exclude_published(
    store: &RepoStore,
    repository: &Repository,
    mut moved: Vec<MovedRef>,
) -> Result<Vec<MovedRef>, GitError> {
    if !moved.iter().any(|moved| moved.name.starts_with(RUN_REF_PREFIX)) {
        return Ok(moved);
    }
    for (name, published) in published_branches(store, repository) {
        let mut error = None;
        moved.retain(|moved| {
            moved.name != name
                || !published.accounts_for(moved, repository).unwrap_or_else(|failed| {
                    error = Some(failed);
                    false
                })
        });
        error.map_or(Ok(()), Err)?;
    }
    Ok(moved)
}

/// Returns the branches that this daemon publishes to a repository. An unreadable note accounts for nothing.
fn published_branches(store: &RepoStore, repository: &Repository) -> Vec<(String, PublishedMove)> {
    let source_of = |RepoFile { source, .. }: RepoFile| {
        source.filter(|source| source.common_dir.as_path() == repository.common_dir())
    };
    let all = store.list_siblings().unwrap_or_default().into_iter();
    all.filter_map(|store| {
        let source = source_of(store.read_repo_file().ok().flatten()?)?;
        let published = store.published_file().read().ok().flatten()?;
        Some((format!("{RUN_REF_PREFIX}{}", source.run), published))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use protocol::path::WirePath;

    use super::*;
    use crate::publish::tests::fixture::PublishFixture;

    fn moved_ref(name: &str, before: &str, after: &str) -> MovedRef {
        MovedRef { name: name.to_owned(), before: Some(before.to_owned()), after: Some(after.to_owned()) }
    }

    #[test]
    fn what_was_published_under_a_session_is_not_told_as_its_and_all_else_is() {
        let pair = PublishFixture::new();
        let first = pair.commit("one");
        pair.publish();
        let second = pair.commit("two");
        pair.publish();
        let mut file = RepoFile::placeholder(pair.store.id().to_owned());
        file.source = Some(pair.origin.clone());
        pair.store.save_repo_file(&mut file).unwrap();
        let source = Repository::discover(pair.source()).unwrap();
        let all = vec![
            moved_ref("refs/heads/runner/x", &first, &second),
            moved_ref("refs/heads/runner/y", &first, &second),
            moved_ref("refs/heads/main", &first, &second),
        ];
        let names = |moved: Vec<MovedRef>| moved.into_iter().map(|moved| moved.name).collect::<Vec<_>>();
        let left = exclude_published(&pair.store, &source, all.clone()).unwrap();
        assert_eq!(names(left), ["refs/heads/runner/y", "refs/heads/main"]);
        let back = vec![moved_ref("refs/heads/runner/x", &second, &first)];
        assert_eq!(exclude_published(&pair.store, &source, back.clone()).unwrap(), back, "a session has set it back");

        let elsewhere = WirePath(pair.place("elsewhere"));
        file.source = Some(crate::store::SourceRepo { common_dir: elsewhere, ..pair.origin.clone() });
        pair.store.save_repo_file(&mut file).unwrap();
        assert_eq!(
            exclude_published(&pair.store, &source, all.clone()).unwrap(),
            all,
            "it is published to another one"
        );
    }
}
