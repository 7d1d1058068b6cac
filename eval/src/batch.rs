//! Runs many trials: decides how many are missing, how many run at once and how much they may cost, and handles
//! interruption.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::error::EvalError;
use crate::outcome::Outcome;
use crate::report::to_f64;
use crate::results::{ResultEntry, ResultMeta};
use crate::trial::{CaseTrial, RunnerContext};

/// Cost limit for a set of trials, and what has been spent.
#[derive(Debug)]
pub(crate) struct CostBudget {
    limit: Option<f64>,
    spent: Mutex<SpentCost>,
}

#[derive(Debug, Default)]
struct SpentCost {
    dollars: f64,
    unknown: bool,
}

impl CostBudget {
    /// Creates a budget in dollars; `None` is unlimited.
    pub(crate) fn new(limit: Option<f64>) -> Self {
        Self { limit, spent: Mutex::default() }
    }

    /// Returns why no further trial may start, if the budget is spent.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        let limit = self.limit?;
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match *spent {
            SpentCost { unknown: true, .. } => {
                Some("the cost of a run is not known, so that no budget can be kept".into())
            }
            SpentCost { dollars, .. } if dollars >= limit => Some(format!("${dollars:.4} of ${limit} are spent")),
            SpentCost { .. } => None,
        }
    }

    /// Adds the cost of a trial. A skipped trial costs nothing.
    fn add_cost(&self, meta: &ResultMeta) {
        let Some(run) = &meta.run else { return };
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match run.usage.cost_micro_usd.filter(|_| run.usage.cost_unknown == 0) {
            Some(cost) => spent.dollars += to_f64(cost) / 1e6,
            None => spent.unknown = true,
        }
    }
}

/// Runs trials, some in parallel, and returns their results in the requested order. Trials that have not started when
/// the user interrupts or the budget is spent are not started.
pub(crate) async fn run_trials(
    context: Arc<RunnerContext>,
    trials: Vec<CaseTrial>,
    jobs: usize,
    budget: Arc<CostBudget>,
) -> Result<Vec<ResultMeta>, EvalError> {
    let slots = Arc::new(Semaphore::new(jobs));
    let mut set = JoinSet::new();
    // Start them in order, whichever thread is free.
    for (at, trial) in trials.into_iter().enumerate() {
        let slot = Arc::clone(&slots).acquire_owned().await;
        let context = Arc::clone(&context);
        let budget = Arc::clone(&budget);
        if slot.is_err() || context.stop.is_cancelled() || budget.stop_reason().is_some() {
            break;
        }
        set.spawn(async move {
            let _place = slot;
            let result = trial.run(&context).await;
            if let Ok(meta) = &result {
                budget.add_cost(meta);
            }
            (at, result)
        });
    }
    let mut results = Vec::new();
    let mut fault = None;
    while let Some(joined) = set.join_next().await {
        match joined {
            Ok((at, Ok(meta))) => results.push((at, meta)),
            Ok((_, Err(error))) => fault = Some(error),
            // The result is marked as lost when it is next read.
            Err(panic) => fault = Some(EvalError::new("a run ended in a bug of the harness").caused_by(&panic)),
        }
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, meta)| meta).collect())
}

/// What two runs of a case must have in common for one to count as the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunKind<'a> {
    pub(crate) digest: &'a str,
    pub(crate) executor: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) templates: Option<&'a str>,
    pub(crate) label: Option<&'a str>,
}

/// Counts the results of a kind that are conclusive: an error counts only if it is expected, and a skipped run never
/// does.
pub(crate) fn count_results(kind: &RunKind<'_>, all: &[ResultEntry]) -> usize {
    let is_meaningful = |meta: &ResultMeta| meta.met || !matches!(meta.outcome, Outcome::Error | Outcome::Skipped);
    let is_of_kind = |meta: &ResultMeta| {
        kind == &RunKind {
            digest: &meta.digests.case,
            executor: &meta.executor,
            model: meta.model.as_deref(),
            templates: meta.digests.templates.as_deref(),
            label: meta.label.as_deref(),
        }
    };
    all.iter().filter(|entry| is_meaningful(&entry.meta) && is_of_kind(&entry.meta)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::sample_entry;

    #[test]
    fn a_budget_is_spent_by_what_is_known_and_by_what_is_not() {
        let run = |cost: Option<u64>| {
            let mut meta = sample_entry("a", Outcome::Success).meta;
            meta.run.as_mut().expect("a run").usage.cost_micro_usd = cost;
            meta
        };
        let budget = CostBudget::new(Some(1.0));
        budget.add_cost(&sample_entry("a", Outcome::Skipped).meta);
        budget.add_cost(&run(Some(600_000)));
        assert_eq!(budget.stop_reason(), None);
        budget.add_cost(&run(Some(400_000)));
        assert_eq!(budget.stop_reason(), Some("$1.0000 of $1 are spent".into()));
        let budget = CostBudget::new(Some(1.0));
        let any = CostBudget::new(None);
        budget.add_cost(&run(None));
        any.add_cost(&run(None));
        assert!(budget.stop_reason().is_some_and(|why| why.contains("not known")));
        assert_eq!(any.stop_reason(), None);
    }

    #[test]
    fn only_results_of_the_same_kind_that_say_something_are_counted() {
        let mut other = sample_entry("a", Outcome::Success);
        other.meta.model = Some("opus".into());
        let all = [
            sample_entry("a", Outcome::Success),
            sample_entry("a", Outcome::Fail),
            sample_entry("a", Outcome::Error),
            other,
        ];
        let kind = RunKind { digest: "case", executor: "script", model: None, templates: None, label: None };
        assert_eq!(count_results(&kind, &all), 2);
    }
}
