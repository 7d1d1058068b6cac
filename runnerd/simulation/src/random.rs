//! Random numbers from a seed: the same seed gives the same numbers on every machine.

/// The source of everything that the rules do not decide.
#[derive(Debug, Clone)]
pub(crate) struct RandomSource(u64);

impl RandomSource {
    /// Creates a generator from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number (splitmix64).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below a limit; 0 if the limit is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    /// Returns true once in this many calls on average; never for 0.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.next().checked_rem(times) == Some(0)
    }

    /// Returns a random index below a length; `None` if the length is 0.
    pub(crate) fn place(&mut self, count: usize) -> Option<usize> {
        let at = self.below(count as u64);
        (count > 0).then(|| usize::try_from(at).unwrap_or_default())
    }

    /// Returns one of some values.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.place(from.len()).expect("there is something to pick from");
        &from[at]
    }
}
