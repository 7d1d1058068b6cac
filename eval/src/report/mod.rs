//! Summarizes results as rows with rates, intervals and spreads. Pure; `text` and `html` render them.

pub(crate) mod compare;
pub(crate) mod escape;
pub(crate) mod html;
mod plot;
#[cfg(test)]
pub(crate) mod samples;
mod stats;
pub(crate) mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::stats::to_f64;
pub(crate) use self::stats::{Difference, PassAt, Rate, Spread, rate_difference};
use crate::outcome::Outcome;
use crate::results::{ResultEntry, ResultMeta, RunFacts};

/// What results of a case are set apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GroupBy {
    Label,
    Executor,
    Model,
    Agent,
    Version,
    Templates,
}

impl GroupBy {
    fn value_of(self, meta: &ResultMeta) -> String {
        let value = match self {
            Self::Label => meta.label.clone(),
            Self::Executor => Some(meta.executor.clone()),
            Self::Model => meta.model.clone(),
            Self::Agent => meta.agent.clone(),
            Self::Version => meta.versions.runnerd.clone(),
            Self::Templates => meta.digests.templates.as_ref().map(|digest| digest.chars().take(12).collect()),
        };
        value.unwrap_or_else(|| "-".into())
    }
}

/// The answer of `report`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "EvalReport")]
pub(crate) struct Report {
    /// `runner/eval-report.v1`.
    pub(crate) schema: &'static str,
    /// Results that were read.
    pub(crate) results: u64,
    /// Of how many runs it is told how likely one comes out as expected, where that was asked for.
    pub(crate) pass_at: Option<u64>,
    /// One per case, or per case and group.
    pub(crate) rows: Vec<Row>,
    /// All rows together, where there are several.
    pub(crate) total: Option<Row>,
}

/// Some results together.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// Id of the case; `all` for the total.
    pub(crate) case: String,
    /// Value of what results are set apart by.
    pub(crate) group: Option<String>,
    /// Results.
    pub(crate) runs: u64,
    /// Results by outcome.
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    /// Runs that came out as their case expects, of those that were not skipped.
    pub(crate) rate: Option<Rate>,
    /// How likely one of a number of runs does, where that was asked for; of the total the mean over its rows.
    pub(crate) pass_at: Option<PassAt>,
    /// Iterations of a run.
    pub(crate) iterations: Option<Spread>,
    /// Attempts charged in a run.
    pub(crate) attempts: Option<Spread>,
    /// Iterations that broke a rule, in a run.
    pub(crate) broken: Option<Spread>,
    /// Tokens that a run read, those from a cache included.
    pub(crate) tokens_in: Option<Spread>,
    /// Tokens that a run wrote.
    pub(crate) tokens_out: Option<Spread>,
    /// What a run cost, in dollars.
    pub(crate) cost_usd: Option<Spread>,
    /// Seconds from the start of a run to its end.
    pub(crate) seconds: Option<Spread>,
    /// How often each check held.
    pub(crate) checks: Vec<CheckRate>,
    /// Why runs came out otherwise than expected, the most frequent first.
    pub(crate) reasons: Vec<Reason>,
}

/// How often a check held.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CheckRate {
    /// What it is called.
    pub(crate) name: String,
    /// How often it held.
    pub(crate) rate: Rate,
}

/// Why runs came out otherwise than expected.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Reason {
    /// What their results say.
    pub(crate) text: String,
    /// How many say so.
    pub(crate) count: u64,
}

/// Maximum number of reasons per row.
const MAX_REASONS: usize = 3;

/// Builds the report over results.
pub(crate) fn build_report(entries: &[ResultEntry], by: Option<GroupBy>, k: Option<u64>) -> Report {
    let mut groups: BTreeMap<(&str, Option<String>), Vec<&ResultEntry>> = BTreeMap::new();
    for entry in entries {
        groups.entry((&entry.meta.case, by.map(|by| by.value_of(&entry.meta)))).or_default().push(entry);
    }
    let with_pass_at =
        |row: Row| Row { pass_at: row.rate.zip(k).and_then(|(rate, k)| PassAt::estimate(rate, k)), ..row };
    let rows: Vec<Row> =
        groups.into_iter().map(|((case, group), of)| with_pass_at(build_row(case, group, &of))).collect();
    let total = (rows.len() > 1).then(|| {
        let mut total = build_row("all", None, &entries.iter().collect::<Vec<_>>());
        // Checks of different cases are unrelated.
        total.checks.clear();
        total.pass_at = k.and_then(|k| mean_pass_at(&rows, k));
        total
    });
    Report { schema: "runner/eval-report.v1", results: entries.len() as u64, pass_at: k, rows, total }
}

/// Returns the mean over cases, or `None` if one has too few runs: each case weighs the same, however often it was run.
fn mean_pass_at(rows: &[Row], k: u64) -> Option<PassAt> {
    let shares: Option<Vec<f64>> = rows.iter().map(|row| row.pass_at.map(|found| found.share)).collect();
    let shares = shares.filter(|shares| !shares.is_empty())?;
    Some(PassAt { k, share: shares.iter().sum::<f64>() / to_f64(shares.len() as u64) })
}

/// Summarizes results as one row.
pub(crate) fn build_row(case: &str, group: Option<String>, entries: &[&ResultEntry]) -> Row {
    let mut outcomes = BTreeMap::new();
    for entry in entries {
        *outcomes.entry(entry.meta.outcome).or_default() += 1;
    }
    let spread = |value: &dyn Fn(&RunFacts) -> Option<u64>| {
        Spread::from_values(
            entries.iter().filter_map(|entry| entry.meta.run.as_ref()).map(|run| value(run).map(to_f64)),
        )
    };
    Row {
        case: case.to_owned(),
        group,
        runs: entries.len() as u64,
        outcomes,
        rate: success_rate(entries),
        pass_at: None,
        iterations: spread(&|run| Some(run.iterations)),
        attempts: spread(&|run| Some(run.attempts)),
        broken: spread(&|run| Some(run.verdicts.get("Broken").copied().unwrap_or(0))),
        tokens_in: spread(&|run| Some(run.usage.input_tokens? + run.usage.cached_tokens.unwrap_or(0))),
        tokens_out: spread(&|run| run.usage.output_tokens),
        cost_usd: spread(&|run| run.usage.cost_micro_usd.filter(|_| run.usage.cost_unknown == 0)).map(to_dollars),
        seconds: spread(&|run| Some(run.wall_ms)).map(|spread| scale_spread(spread, 1e3)),
        checks: check_rates(entries),
        reasons: count_reasons(entries),
    }
}

/// Returns the success rate. A skipped run does not count; an error counts as not met.
pub(crate) fn success_rate(entries: &[&ResultEntry]) -> Option<Rate> {
    let judged: Vec<_> =
        entries.iter().filter(|entry| entry.meta.outcome != Outcome::Skipped || entry.meta.met).collect();
    Rate::from_counts(judged.iter().filter(|entry| entry.meta.met).count() as u64, judged.len() as u64)
}

fn to_dollars(spread: Spread) -> Spread {
    scale_spread(spread, 1e6)
}

fn scale_spread(spread: Spread, divisor: f64) -> Spread {
    let Spread { median, least, most, sum, known, unknown } = spread;
    Spread {
        median: median / divisor,
        least: least / divisor,
        most: most / divisor,
        sum: sum / divisor,
        known,
        unknown,
    }
}

fn check_rates(entries: &[&ResultEntry]) -> Vec<CheckRate> {
    let mut order: Vec<&str> = Vec::new();
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for check in entries.iter().filter_map(|entry| entry.checks.as_ref()).flat_map(|checks| &checks.checks) {
        let count = counts.entry(&check.name).or_insert_with(|| {
            order.push(&check.name);
            (0, 0)
        });
        count.0 += u64::from(check.passed);
        count.1 += 1;
    }
    let rate = |name: &str| {
        let (passed, total) = counts[name];
        Some(CheckRate { name: name.to_owned(), rate: Rate::from_counts(passed, total)? })
    };
    order.into_iter().filter_map(rate).collect()
}

fn count_reasons(entries: &[&ResultEntry]) -> Vec<Reason> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for meta in entries.iter().map(|entry| &entry.meta).filter(|meta| !meta.met) {
        *counts.entry(meta.reason.as_deref().unwrap_or(meta.outcome.as_str())).or_default() += 1;
    }
    let mut reasons: Vec<Reason> =
        counts.into_iter().map(|(text, count)| Reason { text: text.to_owned(), count }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    reasons.truncate(MAX_REASONS);
    reasons
}

#[cfg(test)]
mod tests {
    use super::samples::sample_entry;
    use super::*;

    #[test]
    fn what_was_skipped_is_no_failure_and_an_error_is_no_success() {
        let entries = [
            sample_entry("a", Outcome::Success),
            sample_entry("a", Outcome::Error),
            sample_entry("a", Outcome::Skipped),
        ];
        let report = build_report(&entries, None, None);
        let rate = report.rows[0].rate.expect("a rate");
        assert_eq!((rate.count, rate.of, report.rows[0].runs), (1, 2, 3));
        assert!(report.total.is_none());
    }

    #[test]
    fn rows_are_set_apart_by_what_was_asked_for() {
        let mut other = sample_entry("a", Outcome::Fail);
        other.meta.label = Some("new".into());
        let report = build_report(&[sample_entry("a", Outcome::Success), other], Some(GroupBy::Label), None);
        let groups: Vec<_> = report.rows.iter().map(|row| row.group.as_deref()).collect();
        assert_eq!(groups, [Some("-"), Some("new")]);
        assert_eq!(report.total.expect("a total").runs, 2);
    }

    #[test]
    fn cases_count_the_same_in_the_mean_and_one_of_too_few_runs_leaves_none() {
        let runs = |case: &'static str, outcomes: &[Outcome]| {
            outcomes.iter().map(|outcome| sample_entry(case, *outcome)).collect::<Vec<_>>()
        };
        let won = Outcome::Success;
        let lost = Outcome::Fail;
        let all = [runs("a", &[won, won, won, won]), runs("b", &[lost, lost])].concat();
        let shares = |k| build_report(&all, None, Some(k)).total.expect("a total").pass_at.map(|found| found.share);
        assert_eq!((shares(1), shares(2), shares(3)), (Some(0.5), Some(0.5), None));
        assert_eq!(build_report(&all, None, Some(3)).rows[0].pass_at, Some(PassAt { k: 3, share: 1.0 }));
    }

    #[test]
    fn a_sum_of_costs_of_which_some_are_unknown_is_unknown() {
        let mut known = sample_entry("a", Outcome::Success);
        let run = known.meta.run.as_mut().expect("a run");
        (run.usage.cost_micro_usd, run.usage.cost_unknown) = (Some(1_000_000), 1);
        assert_eq!(build_row("a", None, &[&known]).cost_usd, None);
        known.meta.run.as_mut().expect("a run").usage.cost_unknown = 0;
        let spread =
            build_row("a", None, &[&known, &sample_entry("a", Outcome::Success)]).cost_usd.expect("one is known");
        assert_eq!((spread.known, spread.unknown), (1, 1));
    }
}
