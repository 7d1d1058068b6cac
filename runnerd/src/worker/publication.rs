//! When an isolated run is published, and what its worker makes of how that went: the run is held, or tried again, or goes
//! on with its branch behind.
//!
//! How it is done is `publish`'s, and for the run of a job `upstream`'s. In any other repository nothing is done.

use jiff::SignedDuration;
use protocol::view::PublishedView;
use runner_core::obstacle::Blocker;
use runner_core::publish::missing_workspace;
use runner_core::wait::WaitPeriod;
use tokio::task::block_in_place;

use crate::causes::display_chain;
use crate::clock;
use crate::git::{GitError, MovedRef, Repository};
use crate::obstruction::{Retryable as _, describe_blocker};
use crate::publish::{self, PublishOutcome, PublishError, PublishedMove};
use crate::store::{RepoFile, SourceRepo, RepoStore};
use crate::upstream::{PUSH_TIMEOUT, UpstreamOutcome, Upstream};
use crate::worker::queue::RepoQueue;
use crate::worker::trusted::PinnedRepo;
use crate::worker::unready::PrepareError;

/// Pause before a branch that could not be moved is looked at again.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
/// The same where it is not known to pass by itself: a source that was away is back some day.
const RETRY_INTERVAL_LATER: SignedDuration = SignedDuration::from_secs(60);
/// What the branches of runs are called.
const RUN_REF_PREFIX: &str = "refs/heads/runner/";

/// What is known of a run's way into its source.
#[derive(Debug, Default)]
pub(crate) struct PublishState {
    /// What clients see.
    view: Option<PublishedView>,
    /// When it is looked at again, though nothing was committed.
    pub(crate) retry: Option<WaitPeriod>,
}

impl PublishState {
    /// Returns what clients see.
    pub(crate) fn view(&self) -> Option<PublishedView> {
        self.view.clone()
    }

    /// Tells whether it is to be looked at again now.
    pub(crate) fn is_due(&self) -> bool {
        self.retry.is_some_and(|wait| wait.is_over(clock::now()))
    }
}

/// Publishes what is committed before anything else is done with the run, which is held where a person has to look, or where
/// another driver is to go on with it.
pub(crate) fn publish_before_work(queue: &mut RepoQueue) -> Result<(), PrepareError> {
    let publication = publish_commits(queue)?;
    let reason = publication.view.and_then(|view| view.why).filter(|_| publication.is_held);
    match reason.or_else(|| queue.upstream.as_ref()?.hand_over()) {
        Some(why) => Err(PrepareError::Hold(why)),
        None => Ok(()),
    }
}

/// Publishes what was committed just now; what is in the way is met again before the next iteration.
pub(crate) fn publish_commit(queue: &mut RepoQueue) {
    if let Err(error) = publish_commits(queue) {
        tracing::warn!(repo = queue.file.id, error = display_chain(&error), "a run is not published for now");
    }
}

/// Publishes what was committed while nothing is driven. What a session has left that nobody has looked at stays where it is.
pub(crate) fn publish_when_idle(queue: &mut RepoQueue) {
    if queue.is_idle() && queue.held.is_none() {
        publish_commit(queue);
    }
}

/// Publishes what could not be published before; where that cannot be done now either, whoever drives does it.
pub(crate) fn retry_publish(queue: &mut RepoQueue) {
    queue.publish_state.retry = None;
    publish_when_idle(queue);
}

/// Looks how far a run is published that nobody drives, for whoever asks: a person moves branches too. Nothing is done.
pub(crate) fn refresh_publish_state(queue: &mut RepoQueue) {
    let Some(source) = queue.file.source.clone() else { return };
    if queue.upstream.is_some() || !queue.is_idle() {
        return;
    }
    let observed = block_in_place(|| publish::inspect_published(&queue.store, &open_repository(queue)?, &source));
    let view = observed
        .unwrap_or_else(|error| Some(PublishedView { why: Some(describe_blocker(&error).wait_reason()), ..unknown_view(&source) }));
    let position = |view: &Option<PublishedView>| view.as_ref().map(|view| (view.tip.clone(), view.behind));
    // Why the last try has failed is known from that alone.
    let is_unchanged = position(&view) == position(&queue.publish_state.view) && view.as_ref().is_none_or(|view| view.why.is_none());
    // What was in the way is not any more, such as a source that was away: nobody has to wait for the next try.
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

/// Returns what is in the way where the workspace of an isolated run is gone: whatever has met that first says less.
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

/// Sends what the run of a job has committed to its remote. What the remote does not take is looked at by whoever drives.
fn push_commits(queue: &mut RepoQueue, upstream: &Upstream) -> Result<PublishOutcome, PublishError> {
    let UpstreamOutcome { view, is_held } = block_in_place(|| upstream.publish(&open_repository(queue)?, PUSH_TIMEOUT))?;
    queue.publish_state = PublishState { view: view.clone(), retry: None };
    queue.publish_view();
    Ok(PublishOutcome { view, is_held })
}

fn open_repository(queue: &RepoQueue) -> Result<Repository, GitError> {
    let path = queue.file.path.as_path();
    queue.last_load.repository(path).map_or_else(|| PinnedRepo::for_work_tree(&queue.store, path).open(), Ok)
}

/// Takes those references out that this daemon has moved itself, by publishing other runs, and no session.
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

/// Returns the branches that this daemon publishes to a repository. A note that cannot be read accounts for nothing.
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

    fn moved(name: &str, before: &str, after: &str) -> MovedRef {
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
            moved("refs/heads/runner/x", &first, &second),
            moved("refs/heads/runner/y", &first, &second),
            moved("refs/heads/main", &first, &second),
        ];
        let names = |moved: Vec<MovedRef>| moved.into_iter().map(|moved| moved.name).collect::<Vec<_>>();
        let left = exclude_published(&pair.store, &source, all.clone()).unwrap();
        assert_eq!(names(left), ["refs/heads/runner/y", "refs/heads/main"]);
        let back = vec![moved("refs/heads/runner/x", &second, &first)];
        assert_eq!(exclude_published(&pair.store, &source, back.clone()).unwrap(), back, "a session has set it back");

        let elsewhere = WirePath(pair.place("elsewhere"));
        file.source = Some(crate::store::SourceRepo { common_dir: elsewhere, ..pair.origin.clone() });
        pair.store.save_repo_file(&mut file).unwrap();
        assert_eq!(exclude_published(&pair.store, &source, all.clone()).unwrap(), all, "it is published to another one");
    }
}
