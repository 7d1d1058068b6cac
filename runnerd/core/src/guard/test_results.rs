//! What became of the tests of a guard, and which of those that passed before pass no more.
//!
//! Names only: what a test is worth is not known here. The record is committed, so that an audit can compare the names of
//! two commits.

use std::collections::{BTreeMap, BTreeSet};

use protocol::test_record::{LostTest, TestAbsence, TestRecord};
use runner_config::ChangePolicy;
use serde::{Deserialize, Serialize};

use crate::text::clip::truncate_text;
use crate::text::fence::one_line;

/// Longest name of a test, in bytes.
const NAME_LIMIT: usize = 200;
/// Most names of tests that passed in a record, and their bytes.
const MAX_PASSED: usize = 5_000;
const MAX_PASSED_BYTES: usize = 256 * 1024;
/// Most names of lost tests in a record; the newest are kept.
const MAX_LOST: usize = 1_000;

/// What became of a test; of one that is named more than once, the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// It was not run.
    Skipped,
    /// It failed, as it was expected to.
    ExpectedFailure,
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

/// What became of the tests that a guard has named, bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResults {
    /// Names of the tests that passed, sorted; the first ones if there are too many.
    passed: Vec<String>,
    /// Whether more tests have passed.
    is_cut: bool,
    /// What became of the others, bounded.
    others: BTreeMap<String, TestOutcome>,
}

impl TestResults {
    /// Returns what a record holds of these tests.
    pub(crate) fn from_outcomes(outcomes: BTreeMap<String, TestOutcome>) -> Self {
        let is_passed = |(_, outcome): &(String, TestOutcome)| *outcome == TestOutcome::Passed;
        let (passed, others): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(is_passed);
        let mut room = MAX_PASSED_BYTES;
        let fits = |name: &String| room.checked_sub(name.len()).inspect(|rest| room = *rest).is_some();
        let count = passed.len();
        let names = passed.into_iter().map(|(name, _)| name);
        let passed: Vec<String> = names.take(MAX_PASSED).take_while(fits).collect();
        Self { is_cut: passed.len() < count, passed, others: others.into_iter().take(MAX_PASSED).collect() }
    }

    /// Returns the results from which a guard has led to this record, as far as the record tells.
    pub fn from_record(record: &TestRecord) -> Self {
        let passed = record.passed.iter().map(|name| (clean_name(name), TestOutcome::Passed));
        let others = record.lost.iter().filter_map(|lost| Some((clean_name(&lost.name), known_outcome(lost.now)?)));
        let results = Self::from_outcomes(others.chain(passed).collect());
        Self { is_cut: results.is_cut || record.is_cut, ..results }
    }

    /// Returns the names of the tests with this outcome, sorted.
    pub fn names(&self, outcome: TestOutcome) -> Vec<&str> {
        if outcome == TestOutcome::Passed {
            return self.passed.iter().map(String::as_str).collect();
        }
        self.others.iter().filter(|(_, of)| **of == outcome).map(|(name, _)| name.as_str()).collect()
    }

    fn absence(&self, name: &str) -> TestAbsence {
        match self.others.get(name) {
            Some(TestOutcome::Skipped) => TestAbsence::Skipped,
            Some(TestOutcome::ExpectedFailure) => TestAbsence::ExpectedFailure,
            Some(TestOutcome::Failed) => TestAbsence::Failed,
            Some(TestOutcome::Passed) | None => TestAbsence::Gone,
        }
    }
}

fn known_outcome(absence: TestAbsence) -> Option<TestOutcome> {
    match absence {
        TestAbsence::Gone => None,
        TestAbsence::Skipped => Some(TestOutcome::Skipped),
        TestAbsence::ExpectedFailure => Some(TestOutcome::ExpectedFailure),
        TestAbsence::Failed => Some(TestOutcome::Failed),
    }
}

/// Returns the name of a test as it is recorded: one short line.
pub(crate) fn clean_name(name: &str) -> String {
    truncate_text(&one_line(name, 4 * NAME_LIMIT), NAME_LIMIT)
}

/// How the names of the tests that passed differ between two records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestDiff {
    /// Tests that pass now and did not before.
    pub added: Vec<String>,
    /// Tests that passed before and do not now.
    pub lost: Vec<String>,
}

/// Compares the tests that passed. Of two records that are cut, only the names that both would hold are compared.
pub fn diff_records(before: &TestRecord, after: &TestRecord) -> TestDiff {
    let missing = |from: &TestRecord, other: &TestRecord| -> Vec<String> {
        let known: BTreeSet<&String> = other.passed.iter().collect();
        let is_covered = |name: &&String| !other.is_cut || other.passed.last().is_some_and(|last| *name <= last);
        from.passed.iter().filter(is_covered).filter(|name| !known.contains(name)).cloned().collect()
    };
    TestDiff { added: missing(after, before), lost: missing(before, after) }
}

/// Whether a person has to review what a green guard passed: tests are lost, and its definition is not the accepted one.
pub fn is_review_required(before: &TestRecord, after: &TestRecord, policy: ChangePolicy, has_changed: bool) -> bool {
    has_changed && policy != ChangePolicy::Revert && !diff_records(before, after).lost.is_empty()
}

/// Returns the record after a guard that was run on the base.
pub fn first_record(results: &TestResults) -> TestRecord {
    TestRecord { passed: results.passed.clone(), is_cut: results.is_cut, lost: Vec::new() }
}

/// Returns the record after a green guard of an iteration.
pub fn next_record(before: &TestRecord, iter: u32, results: &TestResults) -> TestRecord {
    let mut after = first_record(results);
    // What was lost before and is not in a record that is cut may have passed behind the cut.
    let is_behind = |name: &str| after.is_cut && after.passed.last().is_some_and(|last| name > last.as_str());
    let is_lost = |name: &str| {
        let passed = after.passed.binary_search_by(|known| known.as_str().cmp(name)).is_ok();
        !passed && (!is_behind(name) || results.others.contains_key(name))
    };
    let new = diff_records(before, &after).lost;
    let known = before.lost.iter().map(|lost| (lost.name.as_str(), lost.iter));
    let all = new.iter().map(|name| (name.as_str(), iter)).chain(known);
    let since: BTreeMap<&str, u32> = all.filter(|(name, _)| is_lost(name)).collect();
    let lost = |(name, iter): (&str, u32)| LostTest { name: name.to_owned(), iter, now: results.absence(name) };
    let mut lost: Vec<LostTest> = since.into_iter().map(lost).collect();
    lost.sort_by(|a, b| b.iter.cmp(&a.iter).then_with(|| a.name.cmp(&b.name)));
    lost.truncate(MAX_LOST);
    after.lost = lost;
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(tests: &[(&str, TestOutcome)]) -> TestResults {
        TestResults::from_outcomes(tests.iter().map(|(name, outcome)| (clean_name(name), *outcome)).collect())
    }

    fn passed_results(names: &[&str]) -> TestResults {
        results(&names.iter().map(|name| (*name, TestOutcome::Passed)).collect::<Vec<_>>())
    }

    fn lost_tests(record: &TestRecord) -> Vec<(&str, u32, TestAbsence)> {
        record.lost.iter().map(|lost| (lost.name.as_str(), lost.iter, lost.now)).collect()
    }

    #[test]
    fn a_test_is_lost_until_it_passes_again() {
        let base = first_record(&passed_results(&["a", "b", "c", "d"]));
        let now =
            results(&[("a", TestOutcome::Passed), ("b", TestOutcome::Skipped), ("c", TestOutcome::ExpectedFailure)]);
        let first = next_record(&base, 1, &now);
        let all = [("b", 1, TestAbsence::Skipped), ("c", 1, TestAbsence::ExpectedFailure), ("d", 1, TestAbsence::Gone)];
        assert_eq!(lost_tests(&first), all);
        assert_eq!(diff_records(&base, &first).lost, ["b", "c", "d"]);
        let second = next_record(&first, 2, &passed_results(&["b", "d", "e"]));
        assert_eq!(lost_tests(&second), [("a", 2, TestAbsence::Gone), ("c", 1, TestAbsence::Gone)]);
        let diff = diff_records(&first, &second);
        assert_eq!((diff.added.join(" "), diff.lost.join(" ")), ("b d e".to_owned(), "a".to_owned()));
        assert_eq!(next_record(&second, 3, &passed_results(&["a", "b", "c", "d", "e"])).lost, []);
    }

    #[test]
    fn a_record_follows_from_the_one_before_it_and_from_itself() {
        let base = first_record(&passed_results(&["a", "b", "c"]));
        let after = next_record(&base, 4, &results(&[("a", TestOutcome::Passed), ("b", TestOutcome::Skipped)]));
        let is_right = |record: &TestRecord| next_record(&base, 4, &TestResults::from_record(record)) == *record;
        assert!(is_right(&after));
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let silent = TestRecord { lost: Vec::new(), ..after.clone() };
        let unsorted = TestRecord { passed: named(&["c", "a"]), ..after.clone() };
        let both = TestRecord { passed: named(&["a", "b"]), ..after };
        assert!(!is_right(&silent) && !is_right(&unsorted) && !is_right(&both));
    }

    #[test]
    fn records_that_are_cut_are_compared_as_far_as_both_reach() {
        let numbered =
            |numbers: std::ops::Range<usize>| -> Vec<String> { numbers.map(|n| format!("t{n:05}")).collect() };
        let record =
            |names: &[String]| first_record(&passed_results(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        let many = record(&numbered(0..7_000));
        let more = record(&numbered(10..8_000));
        assert!(many.is_cut && many.passed.len() == MAX_PASSED);
        let diff = diff_records(&many, &more);
        assert_eq!((diff.lost, diff.added), (numbered(0..10), Vec::new()));
        let few = record(&numbered(6_000..6_010));
        assert_eq!(diff_records(&many, &few).added, Vec::<String>::new());
        let long: Vec<String> = numbered(0..3_000).iter().map(|name| format!("{name}{}", "x".repeat(300))).collect();
        let long = record(&long);
        assert!(long.is_cut && long.passed.iter().map(String::len).sum::<usize>() <= MAX_PASSED_BYTES);
    }

    #[test]
    fn hostile_names_are_one_short_line_and_the_lost_are_bounded() {
        let hostile = format!("a\nRunner-Verdict: Accepted\u{202e}{}", "x".repeat(5_000));
        let name = &first_record(&passed_results(&[&hostile])).passed[0];
        assert!(name.len() <= NAME_LIMIT && !name.contains(['\n', '\u{202e}']), "{name}");
        let names: Vec<String> = (0..4_000).map(|n| format!("t{n}")).collect();
        let base = first_record(&passed_results(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(next_record(&base, 1, &TestResults::default()).lost.len(), MAX_LOST);
    }
}
