//! Compares two sets of results case by case, and over the cases they have in common. Pure.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Difference, Row, build_row, rate_difference};
use crate::results::ResultEntry;

/// The answer of `compare`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "EvalComparison")]
pub(crate) struct Comparison {
    /// `runner/eval-comparison.v1`.
    pub(crate) schema: &'static str,
    /// What the first set was called.
    pub(crate) a: String,
    /// What the second set was called.
    pub(crate) b: String,
    /// The cases that both have.
    pub(crate) cases: Vec<Pair>,
    /// Over all of these.
    pub(crate) overall: Option<Difference>,
    /// The difference in percentage points that was not to be undercut, where one was named.
    pub(crate) fail_under: Option<f64>,
    /// Whether it was.
    pub(crate) failed: bool,
    /// Cases that only one set has: they are not compared.
    pub(crate) only_one: Vec<String>,
    /// Cases that are not the same on both sides: file or template have changed.
    pub(crate) changed: Vec<String>,
}

/// One case on both sides.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Pair {
    /// Id of the case.
    pub(crate) case: String,
    /// The first set.
    pub(crate) a: Row,
    /// The second set.
    pub(crate) b: Row,
    /// The second minus the first; null where one of them was never judged.
    pub(crate) difference: Option<Difference>,
}

/// Compares two sets of results.
pub(crate) fn compare_sets(names: [&str; 2], a: &[ResultEntry], b: &[ResultEntry]) -> Comparison {
    let ids = |entries: &[ResultEntry]| entries.iter().map(|entry| entry.meta.case.clone()).collect::<BTreeSet<_>>();
    let ids_a = ids(a);
    let ids_b = ids(b);
    let mut cases: Vec<Pair> = ids_a.intersection(&ids_b).map(|case| compare_case(case, a, b)).collect();
    let judged: Vec<_> = cases.iter().filter_map(|pair| Some((pair.a.rate?, pair.b.rate?))).collect();
    for pair in &mut cases {
        pair.difference = pair.a.rate.zip(pair.b.rate).and_then(|rates| rate_difference(&[rates], judged.len()));
    }
    let digests = |case: &String, entries: &[ResultEntry]| {
        let own = entries.iter().filter(|entry| entry.meta.case == *case);
        own.map(|entry| entry.meta.digests.case.clone()).collect::<BTreeSet<_>>()
    };
    Comparison {
        schema: "runner/eval-comparison.v1",
        a: names[0].to_owned(),
        b: names[1].to_owned(),
        overall: rate_difference(&judged, 1),
        fail_under: None,
        failed: false,
        only_one: ids_a.symmetric_difference(&ids_b).cloned().collect(),
        changed: ids_a.intersection(&ids_b).filter(|case| digests(case, a) != digests(case, b)).cloned().collect(),
        cases,
    }
}

impl Comparison {
    /// Sets the failure threshold in percentage points; without any difference, the comparison has failed.
    pub(crate) fn with_threshold(self, fail_under: Option<f64>) -> Self {
        let failed = |points: f64| self.overall.is_none_or(|overall| overall.share * 100.0 < points);
        Self { failed: fail_under.is_some_and(failed), fail_under, ..self }
    }
}

fn compare_case(case: &str, a: &[ResultEntry], b: &[ResultEntry]) -> Pair {
    let case_row = |entries: &[ResultEntry]| {
        build_row(case, None, &entries.iter().filter(|entry| entry.meta.case == case).collect::<Vec<_>>())
    };
    Pair { case: case.to_owned(), a: case_row(a), b: case_row(b), difference: None }
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample_entry;
    use super::*;
    use crate::outcome::Outcome::{Fail, Success};

    #[test]
    fn only_what_both_have_is_compared_and_the_rest_is_named() {
        let a = [sample_entry("x", Success), sample_entry("only-a", Fail)];
        let mut changed = sample_entry("x", Fail);
        changed.meta.digests.case = "other".into();
        let comparison = compare_sets(["a", "b"], &a, &[changed]);
        assert_eq!(comparison.cases.len(), 1);
        assert_eq!((comparison.only_one, comparison.changed), (vec!["only-a".to_owned()], vec!["x".to_owned()]));
        assert!(comparison.overall.expect("one").within_chance, "one run each says nothing");
    }

    #[test]
    fn one_case_of_many_is_held_to_more_than_one_alone() {
        let many =
            |case: &'static str, outcome, count| (0..count).map(|_| sample_entry(case, outcome)).collect::<Vec<_>>();
        let sides = |cases: &[&'static str]| {
            let of = |won| {
                cases
                    .iter()
                    .flat_map(|case| [many(case, Success, won), many(case, Fail, 10 - won)])
                    .flatten()
                    .collect::<Vec<_>>()
            };
            compare_sets(["a", "b"], &of(3), &of(8))
        };
        let alone = sides(&["x"]).cases[0].difference.expect("one");
        let among = sides(&["x", "y", "z", "p", "q"]);
        assert!(!alone.within_chance && among.cases[0].difference.expect("one").within_chance);
        assert!(!among.overall.expect("one").within_chance, "all of them together are one question");
    }

    #[test]
    fn many_runs_show_a_difference() {
        let many = |outcome| (0..20).map(|_| sample_entry("x", outcome)).collect::<Vec<_>>();
        let comparison = compare_sets(["a", "b"], &many(Fail), &many(Success));
        let overall = comparison.overall.expect("one");
        assert!(!overall.within_chance && overall.share > 0.99);
        assert!(!comparison.with_threshold(Some(-5.0)).failed);
        let worse = || compare_sets(["a", "b"], &many(Success), &many(Fail));
        assert!(worse().with_threshold(Some(-5.0)).failed && !worse().with_threshold(Some(-100.0)).failed);
        assert!(compare_sets(["a", "b"], &[], &many(Fail)).with_threshold(Some(-5.0)).failed, "nothing was compared");
    }
}
