//! Many trials: how many are missing, how many at once, what they may cost, and what an interruption leaves.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::fault::Fault;
use crate::outcome::Outcome;
use crate::report::real;
use crate::results::{Entry, Meta};
use crate::trial::{Bench, Trial};

/// What trials may cost together, and what they have.
#[derive(Debug)]
pub(crate) struct Budget {
    most: Option<f64>,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    dollars: f64,
    unknown: bool,
}

impl Budget {
    /// Allows so many dollars; without a number as many as there are.
    pub(crate) fn of(most: Option<f64>) -> Self {
        Self { most, spent: Mutex::default() }
    }

    /// Says why no further trial may begin, where none may.
    pub(crate) fn is_spent(&self) -> Option<String> {
        let most = self.most?;
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match *spent {
            Spent { unknown: true, .. } => Some("the cost of a run is not known, so that no budget can be kept".into()),
            Spent { dollars, .. } if dollars >= most => Some(format!("${dollars:.4} of ${most} are spent")),
            Spent { .. } => None,
        }
    }

    /// Takes what a trial has cost. One that was skipped has cost nothing.
    fn spend(&self, meta: &Meta) {
        let Some(run) = &meta.run else { return };
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match run.usage.cost_micro_usd.filter(|_| run.usage.cost_unknown == 0) {
            Some(cost) => spent.dollars += real(cost) / 1e6,
            None => spent.unknown = true,
        }
    }
}

/// Runs trials, some at once, and returns their results in the order in which they were wanted. What has not begun when
/// somebody interrupts, or when the budget is spent, does not begin.
pub(crate) async fn run(
    bench: Arc<Bench>,
    trials: Vec<Trial>,
    (jobs, budget): (usize, Arc<Budget>),
) -> Result<Vec<Meta>, Fault> {
    let places = Arc::new(Semaphore::new(jobs));
    let mut set = JoinSet::new();
    // One begins after the other, whichever thread is free.
    for (at, trial) in trials.into_iter().enumerate() {
        let place = Arc::clone(&places).acquire_owned().await;
        let (bench, budget) = (Arc::clone(&bench), Arc::clone(&budget));
        if place.is_err() || bench.stop.is_cancelled() || budget.is_spent().is_some() {
            break;
        }
        set.spawn(async move {
            let _place = place;
            let done = trial.run(&bench).await;
            if let Ok(meta) = &done {
                budget.spend(meta);
            }
            (at, done)
        });
    }
    let (mut done, mut fault) = (Vec::new(), None);
    while let Some(joined) = set.join_next().await {
        match joined {
            Ok((at, Ok(meta))) => done.push((at, meta)),
            Ok((_, Err(error))) => fault = Some(error),
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
    fn a_budget_is_spent_by_what_is_known_and_by_what_is_not() {
        let run = |cost: Option<u64>| {
            let mut meta = entry("a", Outcome::Success).meta;
            meta.run.as_mut().expect("a run").usage.cost_micro_usd = cost;
            meta
        };
        let budget = Budget::of(Some(1.0));
        budget.spend(&entry("a", Outcome::Skipped).meta);
        budget.spend(&run(Some(600_000)));
        assert_eq!(budget.is_spent(), None);
        budget.spend(&run(Some(400_000)));
        assert_eq!(budget.is_spent(), Some("$1.0000 of $1 are spent".into()));
        let (budget, any) = (Budget::of(Some(1.0)), Budget::of(None));
        budget.spend(&run(None));
        any.spend(&run(None));
        assert!(budget.is_spent().is_some_and(|why| why.contains("not known")));
        assert_eq!(any.is_spent(), None);
    }

    #[test]
    fn only_results_of_the_same_kind_that_say_something_are_counted() {
        let mut other = entry("a", Outcome::Success);
        other.meta.model = Some("opus".into());
        let all = [entry("a", Outcome::Success), entry("a", Outcome::Fail), entry("a", Outcome::Error), other];
        let kind = Kind { digest: "case", executor: "script", model: None, templates: None, label: None };
        assert_eq!(counted(&kind, &all), 2);
    }
}
