//! The table of phases: every pair listed by hand, and a walk over all reachable phases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use protocol::answer::AnswerStatus::{Decomposed, Done, Retry};
use protocol::words::{Containment, PhaseName, Role};
use runner_config::{ReviewPolicy, RolesMode, TimeoutPolicy};
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEnd, IterationEvent, Phase, ReviewEnd, ReviewEndKind, decide,
};
use runner_core::policy::Policy;
use runner_core::run::approval::Decision;
use runner_core::verdict::{SessionEndKind, SessionFinding, SessionRule, SessionTask, StopCause, TreeFinding, Verdict};

use crate::fixture::{
    STOPS, answered, context_exceeded, decomposed, departed, drive, faulty, finding, full_disk, green, guard, illegal,
    invalid, legal, misconfigured, outcome, red, review, session, session_of, task, unavailable,
};

/// An edge of the graph: a phase, an event, and the next phase.
pub(crate) struct Edge {
    pub(crate) from: Phase,
    pub(crate) label: String,
    pub(crate) event: IterationEvent,
    pub(crate) to: Phase,
}

/// The allowed edges: a phase, an event, and the phases that may follow.
const LEGAL: &[(PhaseName, &str, &[PhaseName])] = {
    use PhaseName::{Brief, Guard, Inspect, Open, Over, Review, Settle, Work};
    &[
        (Open, "Opened", &[Brief]),
        (Open, "Declined", &[Over]),
        (Open, "Obstructed", &[Open]),
        (Open, "Stop", &[Over]),
        (Open, "Restarted", &[Open]),
        (Brief, "Briefed", &[Work, Guard, Settle]),
        (Brief, "Obstructed", &[Brief]),
        (Brief, "Stop", &[Over]),
        (Brief, "Restarted", &[Open]),
        (Work, "SessionEnded", &[Inspect]),
        (Work, "Obstructed", &[Work]),
        (Work, "Stop", &[Work]),
        (Work, "Restarted", &[Work]),
        (Inspect, "Inspected", &[Guard, Settle]),
        (Inspect, "Obstructed", &[Inspect]),
        (Inspect, "Stop", &[Inspect]),
        (Inspect, "Restarted", &[Inspect]),
        (Guard, "GuardEnded", &[Guard, Review, Settle]),
        (Guard, "Obstructed", &[Guard]),
        (Guard, "Stop", &[Guard]),
        (Guard, "Restarted", &[Guard]),
        (Review, "ReviewEnded", &[Review, Settle]),
        (Review, "Obstructed", &[Review]),
        (Review, "Stop", &[Review]),
        (Review, "Restarted", &[Review]),
        (Settle, "Settled", &[Over]),
        (Settle, "Obstructed", &[Settle]),
        (Settle, "Stop", &[Settle]),
        (Settle, "Restarted", &[Settle]),
        (Over, "Stop", &[Over]),
        (Over, "Restarted", &[Over]),
    ]
};

/// The events in the order in which they occur in an iteration.
const EVENTS: [&str; 11] = [
    "Opened",
    "Declined",
    "Briefed",
    "SessionEnded",
    "Inspected",
    "GuardEnded",
    "ReviewEnded",
    "Settled",
    "Obstructed",
    "Stop",
    "Restarted",
];

fn sessions() -> Vec<(&'static str, SessionEndKind)> {
    let answer = |status| answered(status).how;
    vec![
        ("done", answer(Done)),
        ("retry", answer(Retry)),
        ("decomposed", answer(Decomposed)),
        ("decomposed with children", decomposed(2).how),
        ("unavailable", unavailable()),
        ("timed out", SessionEndKind::TimedOut),
        ("misconfigured", misconfigured()),
        ("context exceeded", context_exceeded()),
        ("faulty", faulty()),
        ("cut", SessionEndKind::Cut),
    ]
}

fn findings() -> Vec<(&'static str, SessionFinding)> {
    let rewritten = SessionFinding { history: Some("HEAD is elsewhere".to_owned()), ..finding(legal()) };
    vec![
        ("legal", finding(legal())),
        ("reworded", finding(TreeFinding::Legal { gained: 0, reworded: true })),
        ("gained", finding(TreeFinding::Legal { gained: 2, reworded: false })),
        ("invalid", finding(invalid())),
        ("illegal", finding(illegal(SessionRule::PassedNode))),
        ("history rewritten", rewritten),
    ]
}

fn guards() -> Vec<(&'static str, GuardEnd)> {
    let rewritten = GuardEnd { history: Some("HEAD is elsewhere".to_owned()), ..green() };
    vec![
        ("green", green()),
        ("red", guard(GuardEndKind::Exited(1))),
        ("signal", guard(GuardEndKind::Signaled(9))),
        ("timed out", guard(GuardEndKind::TimedOut)),
        ("missing", guard(GuardEndKind::Missing { what: "install just".to_owned() })),
        ("cut", guard(GuardEndKind::Cut)),
        ("lost", guard(GuardEndKind::Lost)),
        ("history rewritten", rewritten),
        ("green, changed definition", departed(GuardEndKind::Exited(0))),
        ("red, changed definition", departed(GuardEndKind::Exited(1))),
        ("red, once more", red()),
    ]
}

fn reviews() -> Vec<(&'static str, ReviewEnd)> {
    let text = || "text".to_owned();
    let ends = vec![
        ("accepted", ReviewEndKind::Accepted { reasons: text() }),
        ("rejected", ReviewEndKind::Rejected { reasons: text() }),
        ("failed", ReviewEndKind::Failed { what: text() }),
        ("unavailable", ReviewEndKind::Unavailable { why: text(), until: None }),
        ("misconfigured", ReviewEndKind::Misconfigured { what: text() }),
        ("timed out", ReviewEndKind::TimedOut),
        ("cut", ReviewEndKind::Cut),
    ];
    ends.into_iter().map(|(name, how)| (name, review(how))).collect()
}

fn rejection() -> Decision {
    Decision::Reject { reasons: "no test".to_owned() }
}

/// Returns the task of a person's decision.
fn decision_task(decision: Decision, recheck: bool) -> SessionTask {
    SessionTask { role: Role::Human, decision: Some(decision), recheck, ..task() }
}

fn acceptance() -> ReviewEnd {
    review(ReviewEndKind::Accepted { reasons: "it holds".to_owned() })
}

fn events() -> Vec<(String, IterationEvent)> {
    let mut events = vec![
        ("Opened".to_owned(), IterationEvent::Opened(task())),
        ("Opened(approved)".to_owned(), IterationEvent::Opened(decision_task(Decision::Approve, false))),
        ("Opened(approved after a change)".to_owned(), IterationEvent::Opened(decision_task(Decision::Approve, true))),
        ("Opened(rejected)".to_owned(), IterationEvent::Opened(decision_task(rejection(), true))),
        ("Declined".to_owned(), IterationEvent::Declined),
        ("Briefed".to_owned(), IterationEvent::Briefed),
        ("Settled".to_owned(), IterationEvent::Settled { commit: Some("c".repeat(40)) }),
        ("Settled(no commit)".to_owned(), IterationEvent::Settled { commit: None }),
        ("Obstructed".to_owned(), IterationEvent::Obstructed(full_disk())),
        ("Restarted".to_owned(), IterationEvent::Restarted),
    ];
    events.extend(STOPS.map(|cause| (format!("Stop({cause:?})"), IterationEvent::Stop(cause))));
    events.extend(
        sessions()
            .into_iter()
            .map(|(name, how)| (format!("SessionEnded({name})"), IterationEvent::SessionEnded(session(how)))),
    );
    events.extend(
        findings().into_iter().map(|(name, found)| (format!("Inspected({name})"), IterationEvent::Inspected(found))),
    );
    events.extend(
        guards().into_iter().map(|(name, end)| (format!("GuardEnded({name})"), IterationEvent::GuardEnded(end))),
    );
    events.extend(
        reviews().into_iter().map(|(name, end)| (format!("ReviewEnded({name})"), IterationEvent::ReviewEnded(end))),
    );
    events
}

fn policies() -> Vec<Policy> {
    let policy = |review, on_timeout, roles| Policy { review, on_timeout, roles, ..Policy::default() };
    vec![
        policy(ReviewPolicy::Off, TimeoutPolicy::Stop, RolesMode::Auto),
        policy(ReviewPolicy::Agent, TimeoutPolicy::Retry, RolesMode::Strict),
        policy(ReviewPolicy::Human, TimeoutPolicy::Stop, RolesMode::Auto),
    ]
}

/// Every edge reachable from `Open`; the illegal pairs found on the way.
fn walk(policy: &Policy) -> (Vec<Edge>, BTreeSet<(PhaseName, &'static str)>) {
    let events = events();
    let mut edges = Vec::new();
    let mut illegal = BTreeSet::new();
    let mut seen = BTreeSet::from([format!("{:?}", Phase::Open)]);
    let mut open = vec![Phase::Open];
    while let Some(from) = open.pop() {
        for (label, event) in &events {
            let Ok(to) = decide(policy, from.clone(), event.clone()) else {
                illegal.insert((from.name(), event.name()));
                continue;
            };
            if seen.insert(format!("{to:?}")) {
                open.push(to.clone());
            }
            edges.push(Edge { from: from.clone(), label: label.clone(), event: event.clone(), to });
        }
    }
    (edges, illegal)
}

fn edges() -> Vec<Edge> {
    policies().iter().flat_map(|policy| walk(policy).0).collect()
}

fn stop_of(phase: &Phase) -> Option<StopCause> {
    match phase {
        Phase::Work { stop, .. }
        | Phase::Inspect { stop, .. }
        | Phase::Guard { stop, .. }
        | Phase::Review { stop, .. } => *stop,
        Phase::Open | Phase::Brief { .. } | Phase::Settle { .. } | Phase::Over { .. } => None,
    }
}

/// Whether the guard runs again, because its supervisor was lost, because it was red, or with the accepted definition after
/// it was green with another one. Only this phase can follow itself.
fn is_second_guard(edge: &Edge) -> bool {
    let (Phase::Guard { earlier: before, stop: None, .. }, Phase::Guard { earlier: after, stop: None, .. }) =
        (&edge.from, &edge.to)
    else {
        return false;
    };
    let IterationEvent::GuardEnded(guard) = &edge.event else { return false };
    let is_new = |before: &Option<Box<GuardEnd>>, after: &Option<Box<GuardEnd>>| before.is_none() && after.is_some();
    match guard.how {
        GuardEndKind::Lost => is_new(&before.lost, &after.lost) && before.red.is_none() && before.green == after.green,
        GuardEndKind::Exited(0) => is_new(&before.green, &after.green) && after.lost.is_none() && after.red.is_none(),
        GuardEndKind::Exited(_) => {
            is_new(&before.red, &after.red) && after.lost.is_none() && before.green == after.green
        }
        _ => false,
    }
}

/// Whether a reviewer is asked again after an invalid answer.
fn is_next_reviewer(edge: &Edge) -> bool {
    let failed_before = |phase: &Phase| match phase {
        Phase::Review { failed, stop: None, .. } => Some(failed.as_ref().map_or(0, |failed| failed.tries)),
        _ => None,
    };
    let is_failing =
        matches!(&edge.event, IterationEvent::ReviewEnded(ReviewEnd { how: ReviewEndKind::Failed { .. }, .. }));
    is_failing
        && failed_before(&edge.from).zip(failed_before(&edge.to)).is_some_and(|(from, to)| to == from + 1 && to <= 2)
}

/// The event that reports the end of an effect's processes; `None` for an effect without processes.
fn end_of(effect: IterationEffect) -> Option<&'static str> {
    match effect {
        IterationEffect::RunSession | IterationEffect::EndSession => Some("SessionEnded"),
        IterationEffect::RunGuard
        | IterationEffect::RunAccepted
        | IterationEffect::RerunGuard
        | IterationEffect::EndGuard => Some("GuardEnded"),
        IterationEffect::RunReview | IterationEffect::EndReview => Some("ReviewEnded"),
        IterationEffect::Open | IterationEffect::Brief | IterationEffect::Inspect | IterationEffect::Settle => None,
    }
}

/// The table of all pairs as Markdown: one row per event, one column per phase.
pub(crate) fn table() -> String {
    let mut cells: BTreeMap<(&str, PhaseName), BTreeSet<PhaseName>> = BTreeMap::new();
    for edge in edges() {
        cells.entry((edge.event.name(), edge.from.name())).or_default().insert(edge.to.name());
    }
    let heads: Vec<&str> = PhaseName::ALL.iter().map(|phase| phase.as_str()).collect();
    let mut text = format!("| event | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for event in EVENTS {
        write!(text, "| {event} |").expect("writes");
        for phase in PhaseName::ALL {
            let next: Vec<&str> =
                cells.get(&(event, *phase)).into_iter().flatten().map(|phase| phase.as_str()).collect();
            let next = if next.is_empty() { "–".to_owned() } else { next.join(", ") };
            write!(text, " {next} |").expect("writes");
        }
        text.push('\n');
    }
    text
}

/// Each phase with its effect when it is entered, and with its effect after a person's stop.
pub(crate) fn effects() -> Vec<(PhaseName, Option<IterationEffect>, Option<IterationEffect>)> {
    let phases: Vec<Phase> = edges().into_iter().flat_map(|edge| [edge.from, edge.to]).collect();
    let effect = |name: PhaseName, stopped: bool| {
        let found = phases.iter().find(|phase| phase.name() == name && stop_of(phase).is_some() == stopped);
        found.and_then(Phase::effect)
    };
    let row = |name: &PhaseName| {
        let runs = effect(*name, false);
        let ends = effect(*name, true);
        (*name, runs, ends.filter(|ends| Some(*ends) != runs))
    };
    PhaseName::ALL.iter().map(row).collect()
}

#[test]
fn every_pair_of_phase_and_event_is_as_specified() {
    let mut cells: BTreeMap<(PhaseName, &str), BTreeSet<PhaseName>> = BTreeMap::new();
    let mut refused = BTreeSet::new();
    for policy in policies() {
        let (edges, illegal) = walk(&policy);
        refused.extend(illegal);
        for edge in edges {
            cells.entry((edge.from.name(), edge.event.name())).or_default().insert(edge.to.name());
        }
    }
    let legal: BTreeMap<_, BTreeSet<_>> =
        LEGAL.iter().map(|(phase, event, next)| ((*phase, *event), next.iter().copied().collect())).collect();
    assert_eq!(cells, legal);
    let all = PhaseName::ALL.iter().flat_map(|phase| EVENTS.map(|event| (*phase, event)));
    assert_eq!(refused, all.filter(|pair| !legal.contains_key(pair)).collect());
}

#[test]
fn the_table_is_the_one_in_the_snapshot() {
    insta::assert_snapshot!(table());
}

#[test]
fn each_phase_has_its_effect_and_its_ways_on() {
    let policy = Policy { review: ReviewPolicy::Agent, ..Policy::default() };
    let mut ways: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    let name = |phase: &Phase| {
        let stop = stop_of(phase).map_or(String::new(), |stop| format!(" stop={stop:?}"));
        let verdict = match phase {
            Phase::Settle { outcome } => format!(" {}", outcome.verdict.name()),
            Phase::Over { end: IterationEnd::Settled { verdict, .. } } => format!(" {}", verdict.name()),
            _ => String::new(),
        };
        let effect = phase.effect().map_or("none".to_owned(), |effect| format!("{effect:?}"));
        format!("{}{stop}{verdict} [{effect}]", phase.name())
    };
    let shown = |phase: &Phase| match phase {
        Phase::Inspect { session, .. } => {
            matches!(&session.how, SessionEndKind::Answered(answer) if answer.status == Done)
        }
        Phase::Settle { outcome } => outcome.verdict == Verdict::Accepted,
        Phase::Over { .. } => false,
        _ => true,
    };
    for edge in walk(&policy).0.into_iter().filter(|edge| shown(&edge.from)) {
        let labels = ways.entry(name(&edge.from)).or_default().entry(name(&edge.to)).or_default();
        if !labels.contains(&edge.label) {
            labels.push(edge.label);
        }
    }
    let mut text = String::new();
    for (from, next) in ways {
        writeln!(text, "{from}").expect("writes");
        for (to, labels) in next {
            writeln!(text, "    -> {to}: {}", labels.join(", ")).expect("writes");
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn no_phase_is_left_while_a_process_may_be_alive() {
    for edge in edges() {
        let Some(end) = edge.from.effect().and_then(end_of) else { continue };
        let stays = edge.to.name() == edge.from.name();
        assert!(stays || edge.event.name() == end, "{:?} -{}-> {:?}", edge.from, edge.label, edge.to);
        assert!(
            !stays || edge.event.name() != end || is_second_guard(&edge) || is_next_reviewer(&edge),
            "{:?} stays after {}",
            edge.from,
            edge.label
        );
    }
}

#[test]
fn only_what_was_inspected_is_settled_and_only_what_was_settled_is_committed() {
    for edge in edges() {
        match edge.to {
            Phase::Settle { outcome } if edge.from.name() != PhaseName::Settle => {
                let from = [PhaseName::Inspect, PhaseName::Guard, PhaseName::Review];
                let is_said = outcome.work.decision().is_some() && edge.from.name() == PhaseName::Brief;
                assert!(is_said || from.contains(&edge.from.name()), "{:?} -{}->", edge.from, edge.label);
                assert_eq!(Some(&outcome.work.task), edge.from.task());
            }
            Phase::Over { end: IterationEnd::Settled { .. } } => {
                let from = [PhaseName::Settle, PhaseName::Over];
                assert!(from.contains(&edge.from.name()), "{:?} -{}->", edge.from, edge.label);
            }
            Phase::Over { end: IterationEnd::Untouched } => {
                let from = [PhaseName::Open, PhaseName::Brief, PhaseName::Over];
                assert!(from.contains(&edge.from.name()), "{:?} -{}->", edge.from, edge.label);
            }
            _ => {}
        }
    }
}

/// The phases in their order. An edge to an earlier one would be a cycle, and allow a second commit.
#[test]
fn every_path_goes_forward_but_for_a_restart_before_the_prompt_a_second_guard_and_a_reviewer_asked_again() {
    let rank = |phase: &Phase| PhaseName::ALL.iter().position(|name| *name == phase.name());
    for edge in edges() {
        let from = rank(&edge.from);
        let to = rank(&edge.to);
        let back = edge.from.name() == PhaseName::Brief && edge.event == IterationEvent::Restarted;
        if back {
            assert_eq!(edge.to, Phase::Open);
            continue;
        }
        let outside = ["Stop", "Restarted", "Obstructed"].contains(&edge.event.name());
        let stays = from == to && (outside || is_second_guard(&edge) || is_next_reviewer(&edge));
        assert!(from < to || stays, "{:?} -{}-> {:?}", edge.from, edge.label, edge.to);
    }
}

#[test]
fn from_every_phase_the_end_can_be_reached() {
    for policy in policies() {
        let edges = walk(&policy).0;
        let mut done: BTreeSet<String> = BTreeSet::new();
        let key = |phase: &Phase| format!("{phase:?}");
        done.extend(edges.iter().filter(|edge| edge.to.effect().is_none()).map(|edge| key(&edge.to)));
        loop {
            let before = done.len();
            let more: Vec<String> =
                edges.iter().filter(|edge| done.contains(&key(&edge.to))).map(|edge| key(&edge.from)).collect();
            done.extend(more);
            if done.len() == before {
                break;
            }
        }
        let all: BTreeSet<String> = edges.iter().map(|edge| key(&edge.from)).collect();
        assert!(all.is_subset(&done));
    }
}

#[test]
fn every_phase_survives_stops_restarts_and_obstacles() {
    for policy in policies() {
        let phases: BTreeMap<String, Phase> =
            walk(&policy).0.into_iter().map(|edge| (format!("{:?}", edge.from), edge.from)).collect();
        for phase in phases.into_values() {
            for event in STOPS.map(IterationEvent::Stop).into_iter().chain([IterationEvent::Restarted]) {
                assert!(decide(&policy, phase.clone(), event.clone()).is_ok(), "{phase:?} {event:?}");
            }
            let obstructed = decide(&policy, phase.clone(), IterationEvent::Obstructed(full_disk()));
            match phase.effect() {
                Some(_) => assert_eq!(obstructed, Ok(phase)),
                None => assert!(obstructed.is_err()),
            }
        }
    }
}

#[test]
fn a_stop_is_never_forgotten_and_the_first_one_counts() {
    for edge in edges().into_iter().filter(|edge| edge.from.name() == edge.to.name()) {
        if let Some(stop) = stop_of(&edge.from) {
            assert_eq!(stop_of(&edge.to), Some(stop), "{:?} -{}->", edge.from, edge.label);
        }
    }
}

#[test]
fn a_stop_of_the_session_ends_it_and_the_verdict_names_the_cause() {
    for policy in policies() {
        for cause in STOPS {
            let working =
                drive(&policy, [IterationEvent::Opened(task()), IterationEvent::Briefed, IterationEvent::Stop(cause)]);
            assert_eq!(working.effect(), Some(IterationEffect::EndSession));
            for (_, how) in sessions() {
                let ended =
                    decide(&policy, working.clone(), IterationEvent::SessionEnded(session(how))).expect("legal");
                let settled = decide(&policy, ended, IterationEvent::Inspected(finding(legal()))).expect("legal");
                let Phase::Settle { outcome } = settled else { panic!("{settled:?}") };
                assert_eq!(outcome.verdict, Verdict::Interrupted { by: cause });
            }
        }
    }
}

#[test]
fn a_session_of_a_dead_daemon_is_interrupted_by_its_death() {
    let working =
        drive(&Policy::default(), [IterationEvent::Opened(task()), IterationEvent::Briefed, IterationEvent::Restarted]);
    assert_eq!(working.effect(), Some(IterationEffect::EndSession));
    assert_eq!(stop_of(&working), Some(StopCause::Death));
}

#[test]
fn a_restart_repeats_the_effect_of_every_phase_after_the_session() {
    for edge in edges().into_iter().filter(|edge| edge.event == IterationEvent::Restarted) {
        let later = [PhaseName::Inspect, PhaseName::Guard, PhaseName::Review, PhaseName::Settle];
        if later.contains(&edge.from.name()) {
            assert_eq!(edge.to, edge.from);
        }
    }
}

#[test]
fn an_orderly_stop_of_the_daemon_leaves_guard_and_review_to_the_next_start() {
    for edge in edges().into_iter().filter(|edge| [PhaseName::Guard, PhaseName::Review].contains(&edge.from.name())) {
        if edge.event == IterationEvent::Stop(StopCause::Shutdown) {
            assert_eq!(edge.to, edge.from);
        }
    }
}

#[test]
fn the_budget_that_is_used_up_only_grows_until_the_iteration_is_over() {
    for edge in edges().into_iter().filter(|edge| edge.to.effect().is_some()) {
        assert!(edge.to.elapsed_ms() >= edge.from.elapsed_ms(), "{:?} -{}-> {:?}", edge.from, edge.label, edge.to);
    }
}

#[test]
fn the_budget_counts_the_session_and_the_guard() {
    let policy = Policy { review: ReviewPolicy::Agent, ..Policy::default() };
    let start = [IterationEvent::Opened(task()), IterationEvent::Briefed, IterationEvent::SessionEnded(answered(Done))];
    let guarding = drive(&policy, start.into_iter().chain([IterationEvent::Inspected(finding(legal()))]));
    assert_eq!(guarding.elapsed_ms(), 1_000);
    let reviewing = decide(&policy, guarding, IterationEvent::GuardEnded(green())).expect("legal");
    assert_eq!(reviewing.elapsed_ms(), 1_200);
    let settling = decide(&policy, reviewing, IterationEvent::ReviewEnded(acceptance())).expect("legal");
    assert_eq!(settling.elapsed_ms(), 1_230);
}

#[test]
fn a_reviewer_that_fails_is_asked_again_with_what_is_left_and_nothing_is_forgotten() {
    let policy = Policy { review: ReviewPolicy::Agent, ..Policy::default() };
    let start = [IterationEvent::Opened(task()), IterationEvent::Briefed, IterationEvent::SessionEnded(answered(Done))];
    let guarded = [IterationEvent::Inspected(finding(legal())), IterationEvent::GuardEnded(green())];
    let failing = |path: &str| {
        let failed = review(ReviewEndKind::Failed { what: "no answer".to_owned() });
        IterationEvent::ReviewEnded(ReviewEnd { wrote: vec![path.to_owned()], survivors: 1, ..failed })
    };
    let again =
        drive(&policy, start.into_iter().chain(guarded).chain([failing("a"), IterationEvent::Restarted, failing("b")]));
    assert_eq!((again.elapsed_ms(), again.effect()), (1_260, Some(IterationEffect::RunReview)));
    let settling = decide(&policy, again, IterationEvent::ReviewEnded(acceptance())).expect("legal");
    let Phase::Settle { outcome } = settling else { panic!("{settling:?}") };
    assert_eq!((outcome.elapsed_ms(), &outcome.verdict), (1_290, &Verdict::Accepted));
    let review = outcome.review.expect("a review");
    assert_eq!((review.wrote, review.tries, review.survivors), (vec!["a".to_owned(), "b".to_owned()], 3, 2));
    assert_eq!(review.usage.sessions, 3);
}

#[test]
fn a_persons_word_needs_no_session_and_an_approval_of_other_files_a_green_guard() {
    let policy = Policy { review: ReviewPolicy::Human, ..Policy::default() };
    let verdict = |task: SessionTask, events: &[IterationEvent]| {
        let sequence =
            [IterationEvent::Opened(task), IterationEvent::Briefed].into_iter().chain(events.iter().cloned());
        match drive(&policy, sequence) {
            Phase::Settle { outcome } => Some((outcome.verdict.clone(), outcome.leaves_commit())),
            _ => None,
        }
    };
    let guarded = |how| [IterationEvent::GuardEnded(guard(how))];
    let approved = || decision_task(Decision::Approve, true);
    assert_eq!(verdict(decision_task(Decision::Approve, false), &[]), Some((Verdict::Accepted, true)));
    let rejected = Verdict::Rejected { reasons: "no test".to_owned() };
    assert_eq!(verdict(decision_task(rejection(), true), &[]), Some((rejected, true)));
    assert_eq!(verdict(approved(), &[]), None);
    assert_eq!(verdict(approved(), &guarded(GuardEndKind::Exited(0))), Some((Verdict::Accepted, true)));
    assert_eq!(verdict(approved(), &guarded(GuardEndKind::Exited(1))), Some((Verdict::RedGuard, true)));
    let timed_out = Verdict::Timeout { during: PhaseName::Guard };
    assert_eq!(verdict(approved(), &guarded(GuardEndKind::TimedOut)), Some((timed_out, false)));
    let stopped = [IterationEvent::Stop(StopCause::Pause), IterationEvent::GuardEnded(guard(GuardEndKind::Cut))];
    let interrupted = Verdict::Interrupted { by: StopCause::Pause };
    assert_eq!(verdict(approved(), &stopped), Some((interrupted, false)), "it is as if it had not been said");
}

#[test]
fn a_second_guard_has_what_the_session_and_the_first_have_left_of_the_budget() {
    let start = [IterationEvent::Opened(task()), IterationEvent::Briefed, IterationEvent::SessionEnded(answered(Done))];
    let lost = || {
        IterationEvent::GuardEnded(GuardEnd { wrote: vec!["a".to_owned()], survivors: 1, ..guard(GuardEndKind::Lost) })
    };
    let again =
        drive(&Policy::default(), start.into_iter().chain([IterationEvent::Inspected(finding(legal())), lost()]));
    assert_eq!((again.elapsed_ms(), again.effect()), (1_200, Some(IterationEffect::RunGuard)));
    let green = GuardEnd { wrote: vec!["b".to_owned()], survivors: 2, ..green() };
    let settling = decide(&Policy::default(), again, IterationEvent::GuardEnded(green)).expect("legal");
    assert_eq!(settling.elapsed_ms(), 1_400);
    let Phase::Settle { outcome } = settling else { panic!("{settling:?}") };
    let guard = outcome.guard.expect("a guard");
    assert_eq!((guard.wrote, guard.survivors), (vec!["a".to_owned(), "b".to_owned()], 3), "nothing is forgotten");
}

#[test]
fn an_illegal_event_names_phase_and_event() {
    let error = decide(&Policy::default(), Phase::Open, IterationEvent::Briefed).expect_err("illegal");
    assert_eq!(error.to_string(), "event Briefed is not possible in phase open");
}

#[test]
fn an_iteration_was_held_as_tightly_as_the_one_of_its_processes_that_was_held_least() {
    let held = |of_session, of_guard| {
        let mut outcome = outcome(Verdict::Accepted);
        outcome.review = Some(ReviewEnd { containment: Some(Containment::Pidns), ..acceptance() });
        session_of(&mut outcome).containment = of_session;
        outcome.guard = Some(GuardEnd { containment: of_guard, ..green() });
        outcome.containment()
    };
    assert_eq!(held(Containment::Pidns, Some(Containment::Cgroup)), Containment::Cgroup);
    assert_eq!(held(Containment::Cgroup, Some(Containment::Pidns)), Containment::Cgroup);
    assert_eq!(held(Containment::Pidns, None), Containment::Pidns);
}
