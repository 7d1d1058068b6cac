//! The few statistics of reports: a rate with its interval, a difference of rates, a median. Pure.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, Normal};

/// Probability that an interval misses the true value.
const MISS_CHANCE: f64 = 0.05;
/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_963_984_540_054;
/// Larger multiples of the number of runs are not worth reporting.
const MAX_TIMES: u32 = 1024;

/// A share of runs, with the interval of Wilson at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Rate {
    /// Runs of which it is true.
    pub(crate) count: u64,
    /// Runs that were judged.
    pub(crate) of: u64,
    /// Their quotient.
    pub(crate) share: f64,
    /// Lower end of the interval.
    pub(crate) low: f64,
    /// Upper end of the interval.
    pub(crate) high: f64,
}

impl Rate {
    /// Returns the rate; `None` if nothing was judged.
    pub(crate) fn from_counts(count: u64, of: u64) -> Option<Self> {
        if of == 0 {
            return None;
        }
        let (low, high) = wilson_interval(count, of, Z);
        Some(Self { count, of, share: to_f64(count) / to_f64(of), low, high })
    }
}

/// Returns the Wilson score interval for a quantile of the normal distribution.
fn wilson_interval(count: u64, of: u64, z: f64) -> (f64, f64) {
    let n = to_f64(of);
    let share = to_f64(count) / to_f64(of);
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // At the extremes the interval ends exactly at 0 or 1, regardless of rounding.
    let low = if count == 0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if count == of { 1.0 } else { (centre + half).min(1.0) };
    (low, high)
}

/// Returns the quantile for which this many intervals hold jointly at 95 % (Bonferroni correction).
fn corrected_quantile(together: usize) -> f64 {
    if together < 2 {
        return Z;
    }
    Normal::standard().inverse_cdf(1.0 - MISS_CHANCE / 2.0 / to_f64(together as u64))
}

/// How likely one of a number of runs comes out as expected (pass@k).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct PassAt {
    /// The number of runs.
    pub(crate) k: u64,
    /// How likely, from 0 to 1: one less the share of all choices of so many runs in which none did.
    pub(crate) share: f64,
}

impl PassAt {
    /// Computes pass@k from a rate; `None` if fewer than `k` runs were judged.
    pub(crate) fn estimate(rate: Rate, k: u64) -> Option<Self> {
        let missed = rate.of - rate.count;
        let of = rate.of;
        if k == 0 || k > of {
            return None;
        }
        let none: f64 = (0..k).map(|at| to_f64(missed.saturating_sub(at)) / to_f64(of - at)).product();
        Some(Self { k, share: 1.0 - none })
    }
}

/// A difference of two rates, with the interval that their intervals lead to (Newcombe's method 10).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// The second rate minus the first.
    pub(crate) share: f64,
    /// Lower end of the interval, at 95 % for all differences that are told together.
    pub(crate) low: f64,
    /// Upper end of the interval.
    pub(crate) high: f64,
    /// Whether no difference at all lies in the interval.
    pub(crate) within_chance: bool,
    /// How many times as many runs of the same shares would settle it; null where it is settled, there is no difference, or no
    /// number of runs that anybody makes would do.
    pub(crate) more_runs: Option<u32>,
}

/// Returns the difference of rates over several cases. Each case is compared with itself and weighted by its number of
/// runs on both sides, so that running a case more often on one side is not mistaken for a difference. `together` is
/// the number of differences examined at once: with many, one soon exceeds chance by chance.
pub(crate) fn rate_difference(pairs: &[(Rate, Rate)], together: usize) -> Option<Difference> {
    let z = corrected_quantile(together);
    let found = newcombe_interval(pairs, z)?;
    let is_open = found.within_chance && found.share != 0.0;
    Some(Difference { more_runs: is_open.then(|| times_to_settle(pairs, z)).flatten(), ..found })
}

/// Returns by which factor more runs with the same shares would make the difference significant.
fn times_to_settle(pairs: &[(Rate, Rate)], z: f64) -> Option<u32> {
    let more = |rate: &Rate, times: u32| Rate::from_counts(rate.count * u64::from(times), rate.of * u64::from(times));
    let is_settled = |times: u32| {
        let pairs: Option<Vec<_>> = pairs.iter().map(|(a, b)| more(a, times).zip(more(b, times))).collect();
        pairs.and_then(|pairs| newcombe_interval(&pairs, z)).is_some_and(|found| !found.within_chance)
    };
    let enough = (1..=MAX_TIMES.ilog2()).map(|power| 1 << power).find(|times| is_settled(*times))?;
    // The interval only shrinks, so the minimum is between what is too few and what is enough.
    let mut few = enough / 2;
    let mut enough = enough;
    while enough - few > 1 {
        let middle = u32::midpoint(few, enough);
        if is_settled(middle) { enough = middle } else { few = middle }
    }
    Some(enough)
}

fn newcombe_interval(pairs: &[(Rate, Rate)], z: f64) -> Option<Difference> {
    let weight = |(a, b): &(Rate, Rate)| to_f64(a.of) * to_f64(b.of) / (to_f64(a.of) + to_f64(b.of));
    let total: f64 = pairs.iter().map(weight).sum();
    if total <= 0.0 {
        return None;
    }
    let mut share = 0.0;
    let mut down = 0.0;
    let mut up = 0.0;
    for pair @ (a, b) in pairs {
        let weight = weight(pair) / total;
        let [(a_low, a_high), (b_low, b_high)] = [a, b].map(|rate| wilson_interval(rate.count, rate.of, z));
        share += weight * (b.share - a.share);
        down += weight.powi(2) * ((b.share - b_low).powi(2) + (a_high - a.share).powi(2));
        up += weight.powi(2) * ((b_high - b.share).powi(2) + (a.share - a_low).powi(2));
    }
    let low = share - down.sqrt();
    let high = share + up.sqrt();
    Some(Difference { share, low, high, within_chance: low <= 0.0 && high >= 0.0, more_runs: None })
}

/// What is known of a number over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Spread {
    /// The one in the middle.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) least: f64,
    /// The largest.
    pub(crate) most: f64,
    /// All together.
    pub(crate) sum: f64,
    /// Runs of which it is known.
    pub(crate) known: u64,
    /// Runs of which it is not.
    pub(crate) unknown: u64,
}

impl Spread {
    /// Returns the spread of the known values; `None` if there are none.
    pub(crate) fn from_values(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let mut known = Vec::new();
        let mut unknown = 0;
        for value in values {
            match value {
                Some(value) => known.push(value),
                None => unknown += 1,
            }
        }
        known.sort_by(f64::total_cmp);
        let least = *known.first()?;
        let most = *known.last()?;
        let middle = known.len() / 2;
        let median = if known.len() % 2 == 1 { known[middle] } else { f64::midpoint(known[middle - 1], known[middle]) };
        Some(Self { median, least, most, sum: known.iter().sum(), known: known.len() as u64, unknown })
    }
}

/// Converts a count; counts are far below the limit of what a float represents exactly.
#[expect(clippy::cast_precision_loss, reason = "counts of runs, tokens and milliseconds")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    /// Expected values: Wilson (1927), as printed in Newcombe (1998, table I).
    #[test]
    fn intervals_are_those_of_the_literature() {
        for (count, of, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let rate = Rate::from_counts(count, of).expect("a rate");
            assert!(is_near(rate.low, low) && is_near(rate.high, high), "{count}/{of}: {rate:?}");
        }
        assert_eq!(Rate::from_counts(0, 0), None);
        assert!((Rate::from_counts(3, 3).expect("a rate").high - 1.0).abs() < f64::EPSILON);
    }

    /// Chen et al. (2021), "Evaluating large language models trained on code", the unbiased estimator.
    #[test]
    fn pass_at_k_is_the_share_of_choices_with_one_that_passes() {
        let of =
            |count, of, k| PassAt::estimate(Rate::from_counts(count, of).expect("a rate"), k).map(|found| found.share);
        assert!(is_near(of(1, 5, 1).expect("one"), 0.2));
        // Of the ten pairs of five runs, seven hold one of the two that pass.
        assert!(is_near(of(2, 5, 2).expect("one"), 0.7));
        assert_eq!((of(0, 5, 5), of(3, 5, 3), of(3, 5, 6), of(3, 5, 0)), (Some(0.0), Some(1.0), None, None));
    }

    /// Newcombe (1998), table II, method 10: 56/70 against 48/80, and 10/10 against 0/10.
    #[test]
    fn differences_are_those_of_the_literature() {
        let of = |a: (u64, u64), b: (u64, u64)| {
            rate_difference(
                &[(Rate::from_counts(b.0, b.1).expect("a rate"), Rate::from_counts(a.0, a.1).expect("a rate"))],
                1,
            )
            .expect("one")
        };
        let found = of((56, 70), (48, 80));
        assert!(is_near(found.share, 0.2) && is_near(found.low, 0.0524) && is_near(found.high, 0.3339), "{found:?}");
        assert!(!found.within_chance);
        let found = of((10, 10), (0, 10));
        assert!(is_near(found.low, 0.6075) && is_near(found.high, 1.0), "{found:?}");
        let found = of((3, 5), (2, 5));
        assert!(found.within_chance);
        let times = u64::from(found.more_runs.expect("it is not settled"));
        let again = |times: u64| of((3 * times, 5 * times), (2 * times, 5 * times));
        assert!(!again(times).within_chance && again(times - 1).within_chance, "{times}");
        assert_eq!(of((2, 5), (2, 5)).more_runs, None);
    }

    #[test]
    fn a_case_that_was_run_more_often_on_one_side_is_no_difference() {
        let rate = |count, of| Rate::from_counts(count, of).expect("a rate");
        // An easy case and a hard one; the first side ran the easy one more often, with the same rates.
        let found =
            rate_difference(&[(rate(90, 100), rate(9, 10)), (rate(1, 10), rate(10, 100))], 1).expect("a difference");
        assert!(is_near(found.share, 0.0) && found.within_chance, "{found:?}");
    }

    #[test]
    fn of_many_differences_each_has_to_be_larger() {
        assert!(
            is_near(corrected_quantile(1), 1.95996)
                && is_near(corrected_quantile(2), 2.24140)
                && is_near(corrected_quantile(20), 3.02334)
        );
        let pair = [(Rate::from_counts(48, 80).expect("a rate"), Rate::from_counts(56, 70).expect("a rate"))];
        let one = rate_difference(&pair, 1).expect("one");
        let many = rate_difference(&pair, 20).expect("one");
        assert!(!one.within_chance && many.within_chance && many.low < one.low && many.high > one.high);
        assert!(many.more_runs.is_some());
    }

    #[test]
    fn what_is_not_known_is_counted_and_not_taken_for_nothing() {
        let spread = Spread::from_values([Some(3.0), None, Some(1.0)]).expect("a spread");
        assert!(is_near(spread.median, 2.0) && is_near(spread.sum, 4.0));
        assert_eq!((spread.known, spread.unknown), (2, 1));
        assert_eq!(Spread::from_values([None, None]), None);
    }
}
