//! Unavailable services: how long each is waited for, and which kind the run continues with.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use runner_core::run::fallback::{KindChoice, ServiceOutage, choose_kind, outages_after, outages_after_review};
use runner_core::run::wait::WaitPeriod;
use runner_core::verdict::{StopCause, Verdict};

use crate::fixture::verdicts;

const MINUTE: SignedDuration = SignedDuration::from_secs(60);

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

fn unavailable(until: Option<Timestamp>) -> Verdict {
    Verdict::Unavailable { why: "usage limit".to_owned(), until }
}

/// Returns what is known after sessions that found the service unavailable at these times.
fn outages(sessions: &[(&str, Option<Timestamp>, Timestamp)]) -> Vec<ServiceOutage> {
    sessions.iter().fold(Vec::new(), |known, (kind, until, at)| outages_after(&known, kind, &unavailable(*until), *at))
}

fn words(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

fn choose(kinds: &[&str], known: &[ServiceOutage], at: Timestamp) -> Option<String> {
    match choose_kind(&words(kinds), known, at) {
        KindChoice::Ask(kind) => Some(kind.unwrap_or("as configured").to_owned()),
        KindChoice::Wait(..) => None,
    }
}

#[test]
fn the_service_is_asked_again_after_one_five_fifteen_thirty_and_then_sixty_minutes() {
    let minutes = |times| {
        let wait = WaitPeriod::for_service(now(), None, times);
        assert_eq!(wait.since, now());
        now().duration_until(wait.until).as_mins()
    };
    assert_eq!((0..8).map(minutes).collect::<Vec<_>>(), [1, 5, 15, 30, 60, 60, 60, 60]);
    assert_eq!(minutes(u32::MAX), 60);
}

#[test]
fn a_stated_time_is_waited_for_and_sixty_seconds_more() {
    for stated in [SignedDuration::from_secs(1), SignedDuration::from_hours(3), SignedDuration::from_hours(8 * 24)] {
        for times in [0, 4] {
            let wait = WaitPeriod::for_service(now(), Some(now() + stated), times);
            assert_eq!(wait.until, now() + stated + MINUTE);
        }
    }
}

#[test]
fn a_stated_time_that_has_passed_or_is_too_far_away_counts_as_none() {
    let far = now() + SignedDuration::from_hours(8 * 24) + SignedDuration::from_secs(1);
    for stated in [Timestamp::MIN, now() - SignedDuration::from_hours(1), now(), far, Timestamp::MAX] {
        for times in [0, 1, 4] {
            assert_eq!(
                WaitPeriod::for_service(now(), Some(stated), times),
                WaitPeriod::for_service(now(), None, times),
                "{stated}"
            );
        }
    }
    assert_eq!(WaitPeriod::for_service(Timestamp::MAX, None, 0).until, Timestamp::MAX);
    let [outage] = &outages(&[("a", Some(far), now())])[..] else { panic!("one outage") };
    assert!(outage.why.starts_with("usage limit (the time that it states, 2026-01-09T12:00:01Z, is too far"));
}

#[test]
fn a_wait_ends_by_the_clock_on_the_wall_whatever_the_machine_slept() {
    let wait = WaitPeriod::for_service(now(), Some(now() + SignedDuration::from_hours(5)), 0);
    let end = now() + SignedDuration::from_hours(5) + MINUTE;
    assert!(!wait.is_over(end - SignedDuration::from_secs(1)));
    assert!(wait.is_over(end) && wait.is_over(end + SignedDuration::from_hours(100)), "the machine slept meanwhile");
    assert_eq!(
        wait.timer_sleep(now()),
        MINUTE,
        "a timer that stands still while the machine sleeps is not trusted for longer"
    );
    assert_eq!(wait.timer_sleep(end - SignedDuration::from_secs(7)), SignedDuration::from_secs(7));
    assert_eq!(wait.timer_sleep(end + MINUTE), SignedDuration::ZERO);
}

#[test]
fn a_clock_that_was_set_back_does_not_lengthen_a_wait() {
    let wait = WaitPeriod::for_service(now(), None, 0);
    assert!(!wait.is_over(now() - SignedDuration::from_secs(30)), "clocks are corrected by seconds all the time");
    assert!(wait.is_over(now() - SignedDuration::from_hours(24)));
}

#[test]
fn the_first_kind_is_asked_again_when_its_time_has_come() {
    let known = outages(&[("a", Some(now() + SignedDuration::from_hours(1)), now())]);
    let back = now() + SignedDuration::from_hours(1) + MINUTE;
    assert_eq!(choose(&["a", "b"], &known, now()).as_deref(), Some("b"));
    assert_eq!(choose(&["a", "b"], &known, back - SignedDuration::from_secs(1)).as_deref(), Some("b"));
    assert_eq!(choose(&["a", "b"], &known, back).as_deref(), Some("a"));
    assert_eq!(choose(&["b", "a"], &known, back).as_deref(), Some("b"));
}

#[test]
fn where_all_are_out_the_one_that_comes_back_first_is_waited_for() {
    let late = now() + SignedDuration::from_hours(4);
    let early = now() + SignedDuration::from_hours(2);
    let known = outages(&[("a", Some(late), now()), ("b", Some(early), now()), ("c", None, now())]);
    let kinds = words(&["a", "b"]);
    let KindChoice::Wait(wait, out) = choose_kind(&kinds, &known, now()) else { panic!("an agent was chosen") };
    assert_eq!(wait.until, early + MINUTE, "what is not a fallback does not count");
    assert_eq!(out.iter().map(|outage| outage.kind.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(choose(&["a", "b"], &known, wait.until).as_deref(), Some("b"));
}

#[test]
fn a_service_that_stays_out_is_asked_less_and_less_though_another_kind_works_meanwhile() {
    let known = outages(&[("a", None, now())]);
    let known = outages_after(&known, "b", &Verdict::Accepted, now());
    let known = outages_after(&known, "a", &unavailable(None), now() + MINUTE);
    let [outage] = &known[..] else { panic!("one outage: {known:?}") };
    assert_eq!((outage.times, outage.wait.until), (2, now() + MINUTE + SignedDuration::from_mins(5)));
}

#[test]
fn an_answer_ends_an_outage_and_nothing_else_does() {
    let known = outages(&[("a", None, now()), ("b", None, now())]);
    for verdict in verdicts() {
        let left = outages_after(&known, "a", &verdict, now());
        let expect = match &verdict {
            Verdict::Unavailable { .. } => Some(2),
            Verdict::Fault { .. } | Verdict::Timeout { .. } => Some(1),
            Verdict::Misconfigured { .. } | Verdict::Interrupted { by: StopCause::Pause } => Some(1),
            _ => None,
        };
        let times = |kind: &str| left.iter().find(|outage| outage.kind == kind).map(|outage| outage.times);
        assert_eq!((times("a"), times("b")), (expect, Some(1)), "{verdict:?}");
    }
}

#[test]
fn a_wait_that_is_cut_short_leaves_the_count_of_waits() {
    let mut known = outages(&[("a", Some(now() + SignedDuration::from_hours(1)), now())]);
    known[0].retry_now(now());
    assert_eq!(choose(&["a", "b"], &known, now()).as_deref(), Some("a"));
    let known = outages_after(&known, "a", &unavailable(None), now());
    assert_eq!(known[0].wait.until, now() + SignedDuration::from_mins(5));
}

#[test]
fn without_kinds_sessions_are_run_as_configured() {
    assert_eq!(choose(&[], &outages(&[("a", None, now())]), now()).as_deref(), Some("as configured"));
}

proptest! {
    #[test]
    fn who_is_out_is_not_asked_and_a_wait_is_never_longer_than_any_outage(
        sessions in proptest::collection::vec((0..4_usize, proptest::option::of(-100_000..1_000_000_i64), 0..50_000_i64), 0..12),
        at in 0..200_000_i64,
    ) {
        let names = ["a", "b", "c", "d"];
        let second = |second: i64| now() + SignedDuration::from_secs(second);
        let sessions: Vec<_> =
            sessions.into_iter().map(|(kind, until, at)| (names[kind], until.map(second), second(at))).collect();
        let known = outages(&sessions);
        let kinds = words(&names[..3]);
        let is_out = |kind: &str| known.iter().any(|outage| outage.kind == kind && !outage.wait.is_over(second(at)));
        match choose_kind(&kinds, &known, second(at)) {
            KindChoice::Ask(kind) => {
                let kind = kind.expect("there are kinds");
                prop_assert!(!is_out(kind));
                prop_assert!(kinds.iter().take_while(|other| *other != kind).all(|other| is_out(other)));
            }
            KindChoice::Wait(wait, out) => {
                prop_assert!(kinds.iter().all(|kind| is_out(kind)));
                prop_assert!(out.iter().all(|outage| wait.until <= outage.wait.until));
                prop_assert!(!wait.is_over(second(at)));
            }
        }
    }
}

#[test]
fn an_outage_of_the_reviewer_is_its_own_and_the_one_who_worked_has_answered() {
    let known = outages(&[("worker", None, now()), ("judge", None, now())]);
    let times =
        |known: &[ServiceOutage]| known.iter().map(|outage| (outage.kind.clone(), outage.times)).collect::<Vec<_>>();
    let after = |verdict: &Verdict| times(&outages_after_review(&known, "worker", "judge", verdict, now()));
    assert_eq!(after(&unavailable(None)), [("judge".to_owned(), 2)]);
    assert_eq!(after(&Verdict::Accepted), []);
    assert_eq!(after(&Verdict::Interrupted { by: StopCause::Pause }), [("judge".to_owned(), 1)]);
    let same = outages_after_review(&known, "worker", "worker", &unavailable(None), now());
    assert_eq!(times(&same), [("judge".to_owned(), 1), ("worker".to_owned(), 1)]);
}
