//! Simulates a power loss at every write of two iterations, and again during each recovery: the real store, the real
//! journal and the real iteration loop on a simulated disk, with a scripted session, and git as the order of its
//! writes.
//!
//! `STATES` sets how many states are examined per crash, `SEED` which ones.

#[path = "power/effects.rs"]
mod effects;
#[path = "power/machine.rs"]
mod machine;

use std::env;

use nix::errno::Errno;
use runner_testkit::RandomSource;

use self::effects::catch_panic;
use self::machine::SimulatedMachine;
use crate::repo::simulated_disk::{CrashKind, DiskFailure, DiskFault, DiskFlaws, run_until_crash};

/// Number of iterations of the run.
const ITERATIONS: u32 = 2;
/// Attempts at a write that a faulty disk refuses.
const TRIES: u32 = 10;
const CRASHES: [CrashKind; 3] = [CrashKind::Kill, CrashKind::Ordered, CrashKind::Unordered];

/// Mistakes of a program that looks almost right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct InjectedMistakes {
    disk: DiskFlaws,
    /// The branch moves before the objects are flushed.
    ref_before_objects: bool,
    /// The session's files are not flushed before they are committed.
    unflushed_work: bool,
    /// A branch that has the commit already counts as flushed.
    trusts_ref: bool,
}

/// Results of an enumeration.
#[derive(Debug, Default)]
struct RecoveryTally {
    states: u64,
    violations: u64,
    /// The first violation, with how to reproduce it.
    first: Option<String>,
}

impl RecoveryTally {
    /// Lets a machine recover and checks it; returns the number of writes that took.
    fn recover_machine(&mut self, machine: &SimulatedMachine, how: &dyn Fn() -> String) -> u64 {
        self.states += 1;
        machine.disk.crash_at(None);
        let ended = catch_panic(|| machine.live_once());
        let writes = machine.disk.writes();
        let ended = ended.and_then(|()| machine.check_promises());
        if let Err(why) = ended {
            self.violations += 1;
            self.first.get_or_insert_with(|| format!("{why}; {}", how()));
        }
        writes
    }
}

fn env_number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Crashes at every write, examines possible disk states, and crashes again in each recovery.
///
/// With an injected mistake it ends at the first violation, unless `STATES` is given.
fn enumerate_crashes(mistakes: InjectedMistakes, states: u64) -> RecoveryTally {
    let is_whole = mistakes == InjectedMistakes::default() || env::var_os("STATES").is_some();
    let first_seed = env_number("SEED", 1);
    let states = env_number("STATES", states);
    let mut seen = RecoveryTally::default();
    let begun = SimulatedMachine::new(mistakes);
    let total = seen.recover_machine(&begun.fork(), &|| "undisturbed".into());
    let mut random = RandomSource::new(first_seed);
    for at in 1..=total {
        if seen.violations > 0 && !is_whole {
            break;
        }
        let crashed = begun.fork();
        crashed.disk.crash_at(Some(at));
        assert!(run_until_crash(|| crashed.live_once()).is_none(), "there are {total} writes");
        for crash in CRASHES {
            let how = move || format!("SEED={first_seed} STATES={states}: {crash:?} before write {at}");
            for found in crashed.disk.states_after(crash, first_seed + at, states) {
                let found = crashed.with_disk(found);
                let left = seen.recover_machine(&found.fork(), &how);
                let again = 1 + random.below(left.max(1));
                let second = found.fork();
                second.disk.crash_at(Some(again));
                if run_until_crash(|| catch_panic(|| second.live_once())).is_some() {
                    continue;
                }
                for next in CRASHES {
                    for found in second.disk.states_after(next, first_seed + again, 2) {
                        let how = || format!("{}, then {next:?} before write {again}", how());
                        seen.recover_machine(&second.with_disk(found), &how);
                    }
                }
            }
        }
    }
    seen
}

/// Prints a figure.
#[expect(clippy::print_stderr, reason = "the harness captures it")]
fn write_figure(figure: &str) {
    eprintln!("{figure}");
}

#[track_caller]
fn assert_none(seen: &RecoveryTally) {
    write_figure(&format!("{} states, {} violations", seen.states, seen.violations));
    assert_eq!(seen.first, None);
}

#[track_caller]
fn assert_some(mistakes: InjectedMistakes) {
    // It ends at the first violation, so a rare one costs no more than a frequent one.
    let seen = enumerate_crashes(mistakes, 8);
    write_figure(&format!("{mistakes:?}: {} states, {} violations", seen.states, seen.violations));
    assert!(seen.violations > 0, "a program with a mistake passes: the model finds nothing");
}

#[test]
fn row_55_whenever_power_is_lost_nothing_that_was_promised_is() {
    assert_none(&enumerate_crashes(InjectedMistakes::default(), 3));
}

#[test]
fn files_that_are_not_flushed_are_lost() {
    assert_some(InjectedMistakes {
        disk: DiskFlaws { no_file_sync: true, ..DiskFlaws::default() },
        ..InjectedMistakes::default()
    });
}

#[test]
fn names_that_are_not_flushed_are_lost() {
    assert_some(InjectedMistakes {
        disk: DiskFlaws { no_folder_sync: true, ..DiskFlaws::default() },
        ..InjectedMistakes::default()
    });
}

#[test]
fn temporary_file_that_is_used_again_mixes_old_and_new() {
    assert_some(InjectedMistakes {
        disk: DiskFlaws { fixed_temporary: true, ..DiskFlaws::default() },
        ..InjectedMistakes::default()
    });
}

#[test]
fn branch_that_moves_before_its_objects_are_flushed_points_to_nothing() {
    assert_some(InjectedMistakes { ref_before_objects: true, ..InjectedMistakes::default() });
}

#[test]
fn work_that_is_committed_and_not_flushed_is_taken_for_changed() {
    assert_some(InjectedMistakes { unflushed_work: true, ..InjectedMistakes::default() });
}

#[test]
fn branch_that_a_killed_daemon_has_moved_is_not_flushed() {
    assert_some(InjectedMistakes { trusts_ref: true, ..InjectedMistakes::default() });
}

#[test]
fn any_call_that_the_disk_refuses_leads_to_the_same_result() {
    let ways =
        [Errno::ENOSPC, Errno::EIO, Errno::EMFILE].map(DiskFailure::Error).into_iter().chain([DiskFailure::ShortWrite]);
    for (how, count) in ways.flat_map(|how| [(how, 1), (how, 3)]) {
        let mut calls = 0;
        for at in 1.. {
            let machine = SimulatedMachine::new(InjectedMistakes::default());
            machine.disk.fail(Some(DiskFault { at, count, failure: how }));
            let how = || format!("{how:?} {count} times from call {at}");
            assert_eq!(catch_panic(|| machine.live_once()), Ok(()), "{}", how());
            let made = machine.disk.calls();
            machine.disk.fail(None);
            assert_eq!(machine.check_promises(), Ok(()), "{}", how());
            if made < at {
                break;
            }
            // The copy of what could not be flushed is refused too: its state is unknown.
            let lost = if count > 1 { Vec::new() } else { machine.disk.states_after(CrashKind::Unordered, at, 2) };
            for found in lost {
                let found = machine.with_disk(found);
                let ended = catch_panic(|| found.live_once()).and_then(|()| found.check_promises());
                assert_eq!(ended, Ok(()), "{}, then power is lost", how());
            }
            calls = at;
        }
        write_figure(&format!("{how:?}, {count} in a row: {calls} calls"));
        assert!(calls > 50, "few calls were made to fail");
    }
}
