//! When an isolated run is published, and what its worker makes of how that went: the run is held, or tried again, or goes
//! on with its branch behind.
//!
//! How it is done is `publish`'s, and for the run of a job `upstream`'s. In any other repository nothing is done.

use jiff::SignedDuration;
use protocol::view::PublishedView;
use runner_core::obstacle::Obstruction;
use runner_core::publish::gone;
use runner_core::wait::Wait;
use tokio::task::block_in_place;

use crate::causes::in_one_line;
use crate::clock;
use crate::git::{GitError, MovedRef, Repository};
use crate::obstruction::{Obstructs as _, obstruction};
use crate::publish::{self, Publication, PublishError, Published};
use crate::store::{RepoFile, Source, Store};
use crate::upstream::{PUSH, Sent, Upstream};
use crate::worker::queue::RepoQueue;
use crate::worker::trusted::Trusted;
use crate::worker::unready::Unready;

/// Pause before a branch that could not be moved is looked at again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// The same where it is not known to pass by itself: a source that was away is back some day.
const LOOK_AGAIN_LATER: SignedDuration = SignedDuration::from_secs(60);
/// What the branches of runs are called.
const RUNS: &str = "refs/heads/runner/";

/// What is known of a run's way into its source.
#[derive(Debug, Default)]
pub(crate) struct Outlet {
    /// What clients see.
    view: Option<PublishedView>,
    /// When it is looked at again, though nothing was committed.
    pub(crate) again: Option<Wait>,
}

impl Outlet {
    /// Returns what clients see.
    pub(crate) fn view(&self) -> Option<PublishedView> {
        self.view.clone()
    }

    /// Tells whether it is to be looked at again now.
    pub(crate) fn is_due(&self) -> bool {
        self.again.is_some_and(|wait| wait.is_over(clock::now()))
    }
}

/// Publishes what is committed before anything else is done with the run, which is held where a person has to look, or where
/// another driver is to go on with it.
pub(crate) fn publish_before_work(queue: &mut RepoQueue) -> Result<(), Unready> {
    let publication = publish_now(queue)?;
    let why = publication.view.and_then(|view| view.why).filter(|_| publication.is_held);
    match why.or_else(|| queue.upstream.as_ref()?.leave()) {
        Some(why) => Err(Unready::Hold(why)),
        None => Ok(()),
    }
}

/// Publishes what was committed just now; what is in the way is met again before the next iteration.
pub(crate) fn publish_commit(queue: &mut RepoQueue) {
    if let Err(error) = publish_now(queue) {
        tracing::warn!(repo = queue.file.id, error = in_one_line(&error), "a run is not published for now");
    }
}

/// Publishes what was committed while nothing is driven. What a session has left that nobody has looked at stays where it is.
pub(crate) fn publish_at_rest(queue: &mut RepoQueue) {
    if queue.is_at_rest() && queue.held.is_none() {
        publish_commit(queue);
    }
}

/// Publishes what could not be published before; where that cannot be done now either, whoever drives does it.
pub(crate) fn publish_again(queue: &mut RepoQueue) {
    queue.outlet.again = None;
    publish_at_rest(queue);
}

/// Looks how far a run is published that nobody drives, for whoever asks: a person moves branches too. Nothing is done.
pub(crate) fn look_again(queue: &mut RepoQueue) {
    let Some(source) = queue.file.source.clone() else { return };
    if queue.upstream.is_some() || !queue.is_at_rest() {
        return;
    }
    let looked = block_in_place(|| publish::look(&queue.store, &repository(queue)?, &source));
    let view = looked
        .unwrap_or_else(|error| Some(PublishedView { why: Some(obstruction(&error).waiting()), ..unknown(&source) }));
    let place = |view: &Option<PublishedView>| view.as_ref().map(|view| (view.tip.clone(), view.behind));
    // Why the last try has failed is known from that alone.
    let is_as_told = place(&view) == place(&queue.outlet.view) && view.as_ref().is_none_or(|view| view.why.is_none());
    // What was in the way is not any more, such as a source that was away: nobody has to wait for the next try.
    let now = clock::now();
    if !is_as_told && queue.outlet.again.is_some() && view.as_ref().is_some_and(|view| view.why.is_none()) {
        queue.outlet.again = Some(Wait { since: now, until: now });
    }
    if !is_as_told && view != queue.outlet.view {
        queue.outlet.view = view;
        queue.show();
    }
}

fn unknown(source: &Source) -> PublishedView {
    PublishedView { to: source.path.clone(), tip: None, behind: None, why: None }
}

/// Returns what is in the way where the workspace of an isolated run is gone: whatever has met that first says less.
pub(crate) fn workspace_gone(file: &RepoFile) -> Option<Obstruction> {
    let source = file.source.as_ref()?;
    let found = file.path.as_path().symlink_metadata();
    let is_gone = found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    is_gone.then(|| gone(&source.run, [&source.path.to_string(), &file.path.to_string()]))
}

fn publish_now(queue: &mut RepoQueue) -> Result<Publication, PublishError> {
    if let Some(upstream) = queue.upstream.clone() {
        return send_now(queue, &upstream);
    }
    let Some(source) = queue.file.source.clone() else { return Ok(Publication::default()) };
    let done = block_in_place(|| {
        let repository = repository(queue)?;
        publish::publish(&queue.store, &repository, &source)
    });
    let (view, pause) = match &done {
        Ok(publication) => {
            let is_behind = publication.view.as_ref().is_some_and(|view| view.why.is_some());
            (publication.view.clone(), is_behind.then_some(LOOK_AGAIN))
        }
        Err(error) => {
            let view = block_in_place(|| publish::look(&queue.store, &repository(queue)?, &source));
            let view = view.ok().flatten().unwrap_or_else(|| unknown(&source));
            let pause = if error.passes() { LOOK_AGAIN } else { LOOK_AGAIN_LATER };
            (Some(PublishedView { why: Some(obstruction(error).waiting()), ..view }), Some(pause))
        }
    };
    let now = clock::now();
    let again = pause.map(|pause| Wait { since: now, until: now + pause });
    queue.outlet = Outlet { view, again };
    queue.show();
    done
}

/// Sends what the run of a job has committed to its remote. What the remote does not take is looked at by whoever drives.
fn send_now(queue: &mut RepoQueue, upstream: &Upstream) -> Result<Publication, PublishError> {
    let Sent { view, is_held } = block_in_place(|| upstream.publish(&repository(queue)?, PUSH))?;
    queue.outlet = Outlet { view: view.clone(), again: None };
    queue.show();
    Ok(Publication { view, is_held })
}

fn repository(queue: &RepoQueue) -> Result<Repository, GitError> {
    let path = queue.file.path.as_path();
    queue.last_load.repository(path).map_or_else(|| Trusted::of(&queue.store, path).bound(), Ok)
}

/// Takes those references out that this daemon has moved itself, by publishing other runs, and no session.
pub(crate) fn not_published(
    store: &Store,
    repository: &Repository,
    mut moved: Vec<MovedRef>,
) -> Result<Vec<MovedRef>, GitError> {
    if !moved.iter().any(|moved| moved.name.starts_with(RUNS)) {
        return Ok(moved);
    }
    for (name, published) in published_to(store, repository) {
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
fn published_to(store: &Store, repository: &Repository) -> Vec<(String, Published)> {
    let source_of = |RepoFile { source, .. }: RepoFile| {
        source.filter(|source| source.common_dir.as_path() == repository.common_dir())
    };
    let all = store.beside().unwrap_or_default().into_iter();
    all.filter_map(|store| {
        let source = source_of(store.read().ok().flatten()?)?;
        let published = store.published().read().ok().flatten()?;
        Some((format!("{RUNS}{}", source.run), published))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use protocol::path::WirePath;

    use super::*;
    use crate::publish::tests::fixture::Pair;

    fn moved(name: &str, before: &str, after: &str) -> MovedRef {
        MovedRef { name: name.to_owned(), before: Some(before.to_owned()), after: Some(after.to_owned()) }
    }

    #[test]
    fn what_was_published_under_a_session_is_not_told_as_its_and_all_else_is() {
        let pair = Pair::new();
        let first = pair.commit("one");
        pair.publish();
        let second = pair.commit("two");
        pair.publish();
        let mut file = RepoFile::unknown(pair.store.id().to_owned());
        file.source = Some(pair.of.clone());
        pair.store.save(&mut file).unwrap();
        let source = Repository::discover(pair.source()).unwrap();
        let all = vec![
            moved("refs/heads/runner/x", &first, &second),
            moved("refs/heads/runner/y", &first, &second),
            moved("refs/heads/main", &first, &second),
        ];
        let names = |moved: Vec<MovedRef>| moved.into_iter().map(|moved| moved.name).collect::<Vec<_>>();
        let left = not_published(&pair.store, &source, all.clone()).unwrap();
        assert_eq!(names(left), ["refs/heads/runner/y", "refs/heads/main"]);
        let back = vec![moved("refs/heads/runner/x", &second, &first)];
        assert_eq!(not_published(&pair.store, &source, back.clone()).unwrap(), back, "a session has set it back");

        let elsewhere = WirePath(pair.place("elsewhere"));
        file.source = Some(crate::store::Source { common_dir: elsewhere, ..pair.of.clone() });
        pair.store.save(&mut file).unwrap();
        assert_eq!(not_published(&pair.store, &source, all.clone()).unwrap(), all, "it is published to another one");
    }
}
