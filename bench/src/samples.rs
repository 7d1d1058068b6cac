//! Repeated time measurements of one thing: the median and the spread.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// Times, sorted by length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Measures how long the work takes and adds the time.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        self.add(began.elapsed());
        result
    }

    /// Adds a time.
    pub(crate) fn add(&mut self, time: Duration) {
        let index = self.0.partition_point(|other| *other <= time);
        self.0.insert(index, time);
    }

    /// Returns the number of samples.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the median; zero if nothing was measured.
    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// Returns the time that the given percentage of samples does not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.len() * percent).div_ceil(100).max(1) - 1;
        self.0.get(rank).copied().unwrap_or_default()
    }

    /// Returns all samples with a time subtracted from each.
    pub(crate) fn minus(&self, time: Duration) -> Self {
        Self(self.0.iter().map(|sample| sample.saturating_sub(time)).collect())
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort();
        Self(times)
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("not measured");
        }
        let [median, low, high] = [50, 5, 95].map(|share| format_duration(self.percentile(share)));
        write!(f, "{median} ({low} to {high}, n {})", self.len())
    }
}

impl Serialize for Samples {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Samples", 5)?;
        for (name, share) in [("p5_us", 5), ("median_us", 50), ("p95_us", 95), ("p99_us", 99)] {
            let micros = u64::try_from(self.percentile(share).as_micros()).unwrap_or(u64::MAX);
            fields.serialize_field(name, &micros)?;
        }
        fields.serialize_field("n", &self.len())?;
        fields.end()
    }
}

/// Formats a time with three or four digits.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..0.000_999_5 => format!("{:.0} µs", seconds * 1e6),
        0.0..0.009_995 => format!("{:.2} ms", seconds * 1e3),
        0.0..0.999_5 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(times: &[u64]) -> Samples {
        times.iter().map(|ms| Duration::from_millis(*ms)).collect()
    }

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        let mut samples = millis(&[9, 1]);
        samples.add(Duration::from_millis(5));
        assert_eq!(samples.median(), Duration::from_millis(5));
    }

    #[test]
    fn shares_are_ranks_that_were_measured() {
        let samples: Samples = (1..=100).map(Duration::from_millis).collect();
        assert_eq!([5, 50, 99, 100].map(|share| samples.percentile(share).as_millis()), [5, 50, 99, 100]);
    }

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        let shown =
            [Duration::from_micros(31), Duration::from_micros(2_340), Duration::from_millis(56)].map(format_duration);
        assert_eq!(shown, ["31 µs", "2.34 ms", "56.0 ms"]);
        assert_eq!(format_duration(Duration::from_millis(12_340)), "12.34 s");
        assert_eq!(millis(&[]).to_string(), "not measured");
    }
}
