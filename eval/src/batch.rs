//! Many trials: how many are missing, how many at once, and what an interruption leaves.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::fault::Fault;
use crate::outcome::Outcome;
use crate::results::{Entry, Meta};
use crate::trial::{Bench, Trial};

/// Runs trials, some at once, and returns their results in the order in which they were wanted. What has not begun when
/// somebody interrupts does not begin.
pub(crate) async fn run(bench: Arc<Bench>, trials: Vec<Trial>, jobs: usize) -> Result<Vec<Meta>, Fault> {
    let places = Arc::new(Semaphore::new(jobs));
    let mut set = JoinSet::new();
    for (at, trial) in trials.into_iter().enumerate() {
        let (bench, places) = (Arc::clone(&bench), Arc::clone(&places));
        set.spawn(async move {
            let place = places.acquire_owned().await;
            if place.is_err() || bench.stop.is_cancelled() {
                return (at, None);
            }
            (at, Some(trial.run(&bench).await))
        });
    }
    let (mut done, mut fault) = (Vec::new(), None);
    while let Some(joined) = set.join_next().await {
        match joined {
            Ok((at, Some(Ok(meta)))) => done.push((at, meta)),
            Ok((_, Some(Err(error)))) => fault = Some(error),
            Ok((_, None)) => {}
            // Its result is found to be lost when it is read.
            Err(panic) => fault = Some(Fault::new("a run ended in a bug of the harness").caused_by(&panic)),
        }
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, meta)| meta).collect())
}

/// What makes two runs of a case the same in kind, so that one counts where the other is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind<'a> {
    pub(crate) digest: &'a str,
    pub(crate) executor: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) templates: Option<&'a str>,
    pub(crate) label: Option<&'a str>,
}

/// Counts the results that say something of a kind: an error says nothing, unless it is expected, and neither does what was skipped.
pub(crate) fn counted(kind: &Kind<'_>, all: &[Entry]) -> usize {
    let says_something = |meta: &Meta| meta.met || !matches!(meta.outcome, Outcome::Error | Outcome::Skipped);
    let of = |meta: &Meta| {
        kind == &Kind {
            digest: &meta.digests.case,
            executor: &meta.executor,
            model: meta.model.as_deref(),
            templates: meta.digests.templates.as_deref(),
            label: meta.label.as_deref(),
        }
    };
    all.iter().filter(|entry| says_something(&entry.meta) && of(&entry.meta)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::entry;

    #[test]
    fn only_results_of_the_same_kind_that_say_something_are_counted() {
        let mut other = entry("a", Outcome::Success);
        other.meta.model = Some("opus".into());
        let all = [entry("a", Outcome::Success), entry("a", Outcome::Fail), entry("a", Outcome::Error), other];
        let kind = Kind { digest: "case", executor: "script", model: None, templates: None, label: None };
        assert_eq!(counted(&kind, &all), 2);
    }
}
