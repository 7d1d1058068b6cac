//! Complete runs in memory: every rule of the core, with a simulated daemon, agent, guard and people, and a number for
//! a clock.
//!
//! Everything that happens is derived from a seed, which a failure prints. `SEED` and `RUNS` choose others: see
//! `scripts/simulate.sh`. A crate of its own, so that the default tests build without it.

#![cfg(test)]

mod agent;
mod approval;
mod audit;
mod daemon;
mod definition;
mod drive;
mod effects;
mod forgery;
mod fork;
mod habits;
mod kinds;
mod loaded;
mod mischief;
mod mistake;
mod people;
mod random;
mod repository;
mod review;
mod settle;
mod witness;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::words::{Role, RunStatus, VerdictName};
use runner_core::verdict::SessionRule;

use daemon::SimulatedRun;
use forgery::ForgedBranch;
use mistake::PlantedMistake;
use random::RandomSource;

/// Number of simulations by default.
const RUNS: u64 = 1_400;

/// Number of simulations in which everything expected must occur.
const ENOUGH: u64 = 400;

/// Number of branches forged.
const FORGED: u64 = 384;
/// Number of simulations in which a mistake must be detected.
const UNTIL_CAUGHT: u64 = 400;
/// Maximum number of failures to print.
const SHOWN: usize = 5;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Runs a simulation for each seed, in parallel; returns the results in the order of the seeds.
fn play_all<T: Send>(seeds: Range<u64>, play: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(seeds.start);
    let ends = Mutex::new(Vec::new());
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| seeds.contains(seed)) {
            let end = play(seed);
            ends.lock().expect("nobody has panicked with it").push((seed, end));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let mut ends = ends.into_inner().expect("nobody has panicked with it");
    ends.sort_by_key(|(seed, _)| *seed);
    ends.into_iter().map(|(_, end)| end).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "a person who chose the seeds wants to see the runs")]
fn whatever_happens_in_a_run_every_promise_is_kept_and_the_audit_finds_nothing() {
    let seed = number("SEED", 0);
    let runs = number("RUNS", RUNS);
    let ends = play_all(seed..seed + runs, |seed| {
        SimulatedRun::play(seed, None).map(|course| (course.settled, course.coverage))
    });
    let broken: Vec<&String> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
    let shown: Vec<&str> = broken.iter().take(SHOWN).map(|broken| broken.as_str()).collect();
    assert!(broken.is_empty(), "{} of {runs} runs:\n{}", broken.len(), shown.join("\n\n"));
    let settled: u32 = ends.iter().flatten().map(|(settled, _)| settled).sum();
    println!("{settled} iterations in {runs} runs from seed {seed}");
    if runs >= ENOUGH {
        let all: BTreeSet<String> = ends.into_iter().flatten().flat_map(|(_, seen)| seen).collect();
        let never: Vec<String> = everything().filter(|label| !all.contains(label)).collect();
        assert_eq!(never, Vec::<String>::new(), "never occurred");
    }
}

/// Everything that must occur in this many runs: a simulation that does not reach something proves nothing about it.
fn everything() -> impl Iterator<Item = String> {
    let verdicts = VerdictName::ALL.iter().map(ToString::to_string);
    let rules = SessionRule::ALL.into_iter().map(|rule| rule.as_str().to_owned());
    let role_labels = [Role::Worker, Role::Planner, Role::Repair, Role::Human].map(|role| format!("role {role}"));
    let states = RunStatus::ALL.iter().filter(|state| **state != RunStatus::Completed).map(ToString::to_string);
    verdicts
        .chain(rules)
        .chain(role_labels)
        .chain(states)
        .chain([daemon::FORKED, "flaky Accepted", "flaky RedGuard"].map(str::to_owned))
}

#[test]
fn the_same_seed_makes_the_same_bytes_and_decisions() {
    let ends = play_all(1..9, |seed| {
        let play = || SimulatedRun::play(seed * 16, None).expect("every promise is kept");
        (play(), play())
    });
    for (one, other) in ends {
        assert!(one.settled > 0 && one.repository.tip == other.repository.tip);
        assert_eq!(one.repository.refs, other.repository.refs);
        assert_eq!((one.now, one.marks, one.record.reason), (other.now, other.marks, other.record.reason));
    }
}

#[test]
fn every_forgery_of_a_branch_is_named() {
    let all: Vec<_> = forgery::WAYS.iter().chain(&kinds::WAYS).collect();
    let tried = play_all(0..FORGED, |seed| {
        let course = SimulatedRun::play(seed, None).expect("every promise is kept");
        let honest = course.repository.chain();
        // Mistakes about prompts show only if prompts are built; all others are tried in turn.
        let tries = if course.habits.has_prompts { all.len() } else { 12 };
        let ways = (seed..).step_by(7).take(tries).map(|at| usize::try_from(at).unwrap_or(0) % all.len());
        let forged = ways.filter_map(|at| {
            let forgery =
                ForgedBranch::of(&honest, course.start_at(&honest), RandomSource::new(seed), course.habits.has_prompts);
            let forged = forgery.forged(all[at].1)?;
            let found = audit::violations(&course.report(&forged));
            assert!(!found.is_empty(), "seed {seed}: {} is not noticed", all[at].0);
            Some(at)
        });
        forged.collect::<Vec<usize>>()
    });
    let tried: Vec<usize> = tried.into_iter().flatten().collect();
    let missing = all.iter().enumerate().filter(|(at, _)| !tried.contains(at)).map(|(_, (name, _))| *name);
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new(), "no branch gave an occasion");
}

#[test]
fn every_mistake_that_is_made_on_purpose_is_caught() {
    for mistake in PlantedMistake::ALL {
        let broken = (0..UNTIL_CAUGHT).find_map(|seed| SimulatedRun::play(seed, Some(mistake)).err());
        let broken = broken.unwrap_or_else(|| panic!("{mistake:?} is not caught"));
        assert!(broken.starts_with("seed "), "{mistake:?}: no seed brings it back: {broken}");
    }
}
