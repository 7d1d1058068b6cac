//! What the audit reads of git's objects against what git itself reads of them: made objects, hundreds at a time.
//!
//! All that is made comes from a seed, which a failure names. `SEED` and `OBJECTS` choose others.

mod commits;
mod encodings;
mod messages;
mod store;
mod trees;

use runner_testkit::RandomSource;

/// Objects of each kind that are made by default.
pub(crate) const OBJECTS: u64 = 400;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Makes one object for each seed, and returns the seed with it.
fn made<T>(make: impl Fn(&mut RandomSource) -> T) -> Vec<(u64, T)> {
    let seed = number("SEED", 0);
    (seed..seed + number("OBJECTS", OBJECTS)).map(|seed| (seed, make(&mut RandomSource::new(seed)))).collect()
}

fn pick<'a, T: ?Sized>(random: &mut RandomSource, from: &[&'a T]) -> &'a T {
    let at = random.below(from.len() as u64);
    from[usize::try_from(at).expect("it is a small number")]
}

/// Returns how many there were, and fails with the first that differ.
#[track_caller]
fn all_same(differing: &[String], all: usize) {
    let shown = differing.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differing.is_empty(), "{} of {all} differ:\n{shown}", differing.len());
}
