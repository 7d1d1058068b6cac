//! The table of a run's life: every edge typed by hand, and a walk over all reachable records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use protocol::path::WirePath;
use protocol::state::{Feedback, RunState};
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use protocol::words::{GuardOutcome, IterationStatus};
use runner_core::approval::{Decision, Pending, PersonDecision};
use runner_core::change::Subject;
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::policy::{Policy, ReviewBy};
use runner_core::run::{
    Asked, Beginning, Effect, End, Event, Next, Refusal, Request, ResumeOrder, RunRecord, Situation, Standing, Start,
    State, Step, Turn, Uncommitted, Wanted, Work, ask, begin, current, decide, may_begin_again, reason_after_change,
    turn,
};
use runner_core::usage::Spent;
use runner_core::wait::Wait;

use crate::fixture::{node, sample, task};

const ENDS: [End; 6] = [End::Completed, End::Stuck, End::Limit, End::TimedOut, End::Failed, End::Cancelled];

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

fn wait() -> Wait {
    Wait { since: now(), until: now() + SignedDuration::from_hours(1) }
}

fn why() -> StopReason {
    StopReason::new("why", "runnerctl resume")
}

fn order() -> Start {
    let beginning = Beginning { base: None, goal: None, keep_tree: false, fork: false };
    Start { path: WirePath("/work".into()), goal: None, beginning, queue_only: false, is_begun: false }
}

fn run(state: State) -> RunRecord {
    let reason = (!matches!(state, State::Queued | State::Running)).then(why);
    RunRecord { state, reason, ..RunRecord::queued("r", WirePath("/work".into()), now()) }
}

fn states() -> Vec<State> {
    let mut states = vec![
        State::Queued,
        State::Running,
        State::Paused,
        State::WaitsForService(wait()),
        State::WaitsForPerson,
        State::Held,
    ];
    states.extend(ENDS.map(|end| State::Over { end, at: now() }));
    states
}

fn word(state: State) -> String {
    match state {
        State::WaitsForService(_) => "waits for a service".to_owned(),
        State::WaitsForPerson => "waits for a person".to_owned(),
        state => state.status().to_string().replace('_', " "),
    }
}

/// What a request finds beside the record: a done node, and no attempts where it is stuck.
struct Found {
    policy: Policy,
    tree: TaskTree,
    state: RunState,
    feedback: Feedback,
    tried: Spent,
    obstacle: Obstruction,
}

impl Found {
    fn new() -> Self {
        let last_node = Some("b".to_owned());
        Self {
            policy: Policy { review: ReviewBy::Human, ..Policy::default() },
            tree: sample(),
            state: RunState {
                next_iter: 4,
                last_node,
                last_status: Some(IterationStatus::Done),
                last_guard: Some(GuardOutcome::Pass),
                ..RunState::default()
            },
            feedback: Feedback::default(),
            tried: Spent::default(),
            obstacle: obstruction(Nature::Passing),
        }
    }

    fn exhausted() -> Self {
        let mut found = Self::new();
        node(&mut found.tree, "b").attempts = 3;
        found
    }

    fn complete() -> Self {
        let mut found = Self::new();
        found.tree.root.children.clear();
        found.tree.root.passes = true;
        found
    }

    fn at_limit() -> Self {
        let mut found = Self::new();
        found.policy.max_iterations = 3;
        found
    }

    fn standing(&self) -> Standing<'_> {
        Standing {
            policy: &self.policy,
            tree: &self.tree,
            run_state: &self.state,
            feedback: &self.feedback,
            word: None,
            outages: &[],
            tried: &self.tried,
            now: now(),
        }
    }

    /// A situation in which the run is at work where its record says so.
    fn situation(&self, run: &RunRecord) -> Situation<'_> {
        let is_driven = run.state == State::Running;
        Situation {
            held: None,
            work: if is_driven { Work::Live } else { Work::Nothing },
            driven: is_driven.then_some("r"),
            obstacle: None,
            standing: Some(self.standing()),
            now: now(),
        }
    }
}

fn obstruction(nature: Nature) -> Obstruction {
    Obstruction { what: "the disk is full".to_owned(), remedy: "make room".to_owned(), nature }
}

fn requests() -> Vec<(&'static str, Request)> {
    let resume = |now, more| Request::Resume { now, more, looked: false };
    vec![
        ("start", Request::Start(order())),
        ("step", Request::Step),
        ("pause", Request::Pause { now: false }),
        ("pause --now", Request::Pause { now: true }),
        ("resume", resume(false, None)),
        ("resume --now", resume(true, None)),
        ("resume --more 5", resume(false, Some(5))),
        ("cancel", Request::Cancel),
        ("approve", Request::Review { decision: Decision::Approve, signature: None }),
        ("note", Request::Change(Subject::Note)),
        ("retry, add, edit", Request::Change(Subject::Tree)),
        ("answer, accept, config", Request::Change(Subject::Files)),
    ]
}

fn events() -> Vec<(String, Event)> {
    let mut events = vec![
        ("Turn".to_owned(), Event::Turn { step: false }),
        ("Turn(step)".to_owned(), Event::Turn { step: true }),
        ("Begun".to_owned(), Event::Begun),
        ("TakenUp".to_owned(), Event::TakenUp { from: "c".repeat(40) }),
        ("Resumed".to_owned(), Event::Resumed),
        ("Between".to_owned(), Event::Between),
        (
            "Learned".to_owned(),
            Event::Learned(Uncommitted { followed: Some("m".to_owned()), ..Uncommitted::default() }),
        ),
        ("Hold".to_owned(), Event::Hold(why())),
        ("Restarted(journal is over)".to_owned(), Event::Restarted { is_over: true }),
        ("Restarted(journal goes on)".to_owned(), Event::Restarted { is_over: false }),
    ];
    for nature in [Nature::Passing, Nature::Lasting, Nature::Lost] {
        events.push((format!("Obstructed({nature:?})"), Event::Obstructed(obstruction(nature))));
    }
    let mut nexts = vec![
        ("go on".to_owned(), Next::GoOn(task())),
        ("wait".to_owned(), Next::Wait(wait(), why())),
        ("wait for a person".to_owned(), Next::WaitForPerson(why())),
        ("pause".to_owned(), Next::Pause(why())),
        ("hold".to_owned(), Next::Hold(why())),
    ];
    nexts.extend(
        ENDS.map(|end| (format!("end, {}", word(State::Over { end, at: now() })), Next::End { end, reason: why() })),
    );
    for (name, next) in nexts {
        events.push((format!("Declined({name})"), Event::Declined(next.clone())));
        events.push((format!("Followed({name})"), Event::Followed(next)));
    }
    events
}

/// A request whose answer depends on the state, and what the answer is: a state, or the name of the refusal.
const ANSWERS: &[(&str, [&str; 12])] = &[
    // queued, running, paused, service, person, held, completed, stuck, limit, timed out, failed, cancelled
    (
        "start",
        [
            "queued",
            "running",
            "queued",
            "waits for a service",
            "waits for a person",
            "queued",
            "IsCompleted",
            "StillStuck",
            "StillAtLimit",
            "queued",
            "queued",
            "queued",
        ],
    ),
    (
        "step",
        [
            "queued",
            "IsDriven",
            "paused",
            "waits for a service",
            "WaitsForReview",
            "held",
            "IsCompleted",
            "StillStuck",
            "StillAtLimit",
            "timed out",
            "failed",
            "IsCancelled",
        ],
    ),
    (
        "pause",
        [
            "paused", "running", "paused", "paused", "paused", "paused", "IsOver", "IsOver", "IsOver", "IsOver",
            "IsOver", "IsOver",
        ],
    ),
    (
        "pause --now",
        [
            "paused", "running", "paused", "paused", "paused", "paused", "IsOver", "IsOver", "IsOver", "IsOver",
            "IsOver", "IsOver",
        ],
    ),
    (
        "resume",
        [
            "queued",
            "IsRunning",
            "queued",
            "WaitsForService",
            "WaitsForReview",
            "queued",
            "IsCompleted",
            "StillStuck",
            "StillAtLimit",
            "queued",
            "queued",
            "IsCancelled",
        ],
    ),
    (
        "resume --now",
        [
            "queued",
            "IsRunning",
            "queued",
            "queued",
            "WaitsForReview",
            "queued",
            "IsCompleted",
            "StillStuck",
            "StillAtLimit",
            "queued",
            "queued",
            "IsCancelled",
        ],
    ),
    (
        "resume --more 5",
        [
            "queued",
            "running",
            "queued",
            "WaitsForService",
            "WaitsForReview",
            "queued",
            "IsCompleted",
            "StillStuck",
            "queued",
            "queued",
            "queued",
            "IsCancelled",
        ],
    ),
    (
        "cancel",
        [
            "cancelled",
            "running",
            "cancelled",
            "cancelled",
            "cancelled",
            "cancelled",
            "IsOver",
            "IsOver",
            "IsOver",
            "IsOver",
            "IsOver",
            "IsOver",
        ],
    ),
    (
        "approve",
        [
            "queued",
            "IsAtWork",
            "queued",
            "queued",
            "queued",
            "queued",
            "NothingToReview",
            "NothingToReview",
            "queued",
            "queued",
            "queued",
            "IsCancelled",
        ],
    ),
    (
        "note",
        [
            "queued",
            "running",
            "paused",
            "waits for a service",
            "waits for a person",
            "held",
            "NoReader",
            "stuck",
            "limit",
            "timed out",
            "failed",
            "NoReader",
        ],
    ),
    (
        "retry, add, edit",
        [
            "queued",
            "running",
            "paused",
            "waits for a service",
            "waits for a person",
            "held",
            "AllPassed",
            "stuck",
            "limit",
            "timed out",
            "failed",
            "cancelled",
        ],
    ),
    (
        "answer, accept, config",
        [
            "queued",
            "running",
            "paused",
            "waits for a service",
            "waits for a person",
            "held",
            "completed",
            "stuck",
            "limit",
            "timed out",
            "failed",
            "cancelled",
        ],
    ),
];

/// Answers a request to a run: one that is completed or stuck has nothing to review.
fn answer(run: &RunRecord, request: &Request) -> Result<Step, Refusal> {
    let found = match run.state {
        State::Over { end: End::Completed, .. } => Found::complete(),
        State::Over { end: End::Stuck, .. } => Found::exhausted(),
        State::Over { end: End::Limit, .. } => Found::at_limit(),
        _ => Found::new(),
    };
    ask(run, request.clone(), &found.situation(run))
}

fn name(refusal: &Refusal) -> String {
    let text = format!("{refusal:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

#[test]
fn every_request_is_answered_in_every_state_as_it_is_typed_here() {
    for (row, (label, request)) in ANSWERS.iter().zip(requests()) {
        assert_eq!(row.0, label);
        for (state, expect) in states().into_iter().zip(row.1) {
            let found = match answer(&run(state), &request) {
                Ok(step) => word(step.record.state),
                Err(refusal) => name(&refusal),
            };
            assert_eq!(found, expect, "{label} of a run that is {}", word(state));
        }
    }
}

#[test]
fn a_run_that_ended_goes_on_once_what_would_end_it_again_is_put_right() {
    let ended = run(State::Over { end: End::Limit, at: now() });
    let resume = |more| Request::Resume { now: false, more, looked: false };
    let ask_of = |found: &Found, request| ask(&ended, request, &found.situation(&ended)).map(|step| step.record.state);
    let found = Found::at_limit();
    let refused = ask_of(&found, resume(None)).expect_err("it has no iterations left");
    assert_eq!(refused.told("r").hint.as_deref(), Some("runnerctl resume --more 20"));
    assert_eq!(ask_of(&found, resume(Some(1))), Ok(State::Queued));
    let mut spent = Found::new();
    spent.policy.max_cost_micro_usd = Some(20_000_000);
    spent.state.usage.cost_micro_usd = Some(20_500_000);
    let refused = ask_of(&spent, resume(Some(1))).expect_err("iterations are not what it lacks");
    assert_eq!(refused.told("r").hint.as_deref(), Some("runnerctl config set max_cost_usd 41 && runnerctl resume"));
    spent.policy.max_cost_micro_usd = Some(41_000_000);
    for request in [resume(None), Request::Step, Request::Start(order())] {
        assert!(request.reads_commit(ended.state));
        assert!(ask_of(&spent, request).is_ok());
    }
}

#[test]
fn the_reason_of_an_end_follows_what_is_changed_since() {
    let (stuck, open, limit) = (Found::exhausted(), Found::new(), Found::at_limit());
    let reason = |before: &Found, after: &Found| {
        reason_after_change(&before.standing(), &after.standing()).map(|reason| reason.message)
    };
    assert_eq!(reason(&stuck, &open).as_deref(), Some("what stopped it was changed since, and it can go on"));
    assert_eq!(reason(&stuck, &limit).as_deref(), Some("3 iterations are used up"));
    assert_eq!(reason(&open, &open), None, "what ended it is in no file");
}

#[test]
fn a_word_without_a_signature_is_refused_where_it_must_have_one() {
    let waiting = run(State::WaitsForPerson);
    let mut found = Found::new();
    found.policy.review_signed = true;
    let say = |signature: Option<&str>| {
        let signature = signature.map(|text| text.parse().expect("a signature"));
        ask(&waiting, Request::Review { decision: Decision::Approve, signature }, &found.situation(&waiting))
    };
    let on = Pending { node: "b".to_owned(), iter: 3 };
    assert_eq!(say(None).err(), Some(Refusal::Unsigned(on.clone())));
    let word = say(Some("U1NIU0lHAAAAAQ==")).expect("it is signed").record.uncommitted.word.expect("it is kept");
    let unsigned = PersonDecision { signature: None, ..word.clone() };
    let next = |word| runner_core::run::next(&Standing { word: Some(word), ..found.standing() }, None, None);
    assert!(matches!(next(&word), Next::GoOn(task) if task.signature == word.signature));
    // It was said before the configuration asked for one.
    assert!(matches!(next(&unsigned), Next::WaitForPerson(_)));
}

#[test]
fn a_cancelled_run_is_started_though_it_ends_at_once_and_then_says_how_it_goes_on() {
    let cancelled = run(State::Over { end: End::Cancelled, at: now() });
    for found in [Found::at_limit(), Found::exhausted()] {
        let started = ask(&cancelled, Request::Start(order()), &found.situation(&cancelled)).expect("it is begun");
        assert_eq!(started.record.state, State::Queued);
    }
}

#[test]
fn a_completed_run_whose_tree_was_opened_again_by_hand_goes_on_with_start() {
    let completed = run(State::Over { end: End::Completed, at: now() });
    let found = Found::new();
    let started = ask(&completed, Request::Start(order()), &found.situation(&completed)).expect("there is work");
    assert_eq!(started.record.state, State::Queued);
    assert_eq!(may_begin_again(&Found::complete().standing()), Err(Refusal::IsCompleted));
}

/// What leads from one state to another, of all that can happen; everything else is a bug, or changes no state.
const EDGES: &[(&str, &str, &str)] = &[
    ("queued", "Turn", "running"),
    ("queued", "Turn(step)", "running"),
    ("paused", "Turn(step)", "running"),
    ("waits for a service", "Turn", "running"),
    ("waits for a service", "Turn(step)", "running"),
    ("waits for a person", "Turn(step)", "running"),
    ("held", "Turn(step)", "running"),
    ("stuck", "Turn(step)", "running"),
    ("limit", "Turn(step)", "running"),
    ("timed out", "Turn(step)", "running"),
    ("failed", "Turn(step)", "running"),
    ("running", "Hold", "held"),
    ("running", "Obstructed(Lasting)", "held"),
    ("running", "Obstructed(Lost)", "held"),
    ("running", "Declined(wait)", "waits for a service"),
    ("running", "Followed(wait)", "waits for a service"),
    ("running", "Declined(wait for a person)", "waits for a person"),
    ("running", "Followed(wait for a person)", "waits for a person"),
    ("running", "Declined(pause)", "paused"),
    ("running", "Followed(pause)", "paused"),
    ("running", "Declined(hold)", "held"),
    ("running", "Followed(hold)", "held"),
];

#[test]
fn what_happens_leads_where_it_is_typed_here_and_is_a_bug_where_nothing_is_being_driven() {
    let mut found = BTreeSet::new();
    for (state, (label, event)) in states().iter().flat_map(|state| events().into_iter().map(move |it| (*state, it))) {
        let step = decide(&run(state), event.clone(), now());
        let has_turn = state == State::Running || matches!(event, Event::Turn { .. } | Event::Restarted { .. });
        assert!(step.is_err() || has_turn, "{label} of a run that is {}", word(state));
        let Ok(step) = step else { continue };
        if step.record.state != state {
            found.insert((word(state), label, word(step.record.state)));
        }
    }
    let ends = ENDS.map(|end| word(State::Over { end, at: now() }));
    let ends = ends.iter().flat_map(|end| ["Declined", "Followed"].map(|event| (format!("{event}(end, {end})"), end)));
    let typed = EDGES.iter().map(|(from, event, to)| (from.to_string(), event.to_string(), to.to_string()));
    let typed = typed.chain(ends.map(|(event, end)| ("running".to_owned(), event, end.clone())));
    assert_eq!(found, typed.collect());
}

#[test]
fn a_run_that_is_over_has_its_turn_only_if_a_step_can_lead_on() {
    for end in [End::Completed, End::Cancelled] {
        let over = run(State::Over { end, at: now() });
        for step in [false, true] {
            assert!(decide(&over, Event::Turn { step }, now()).is_err(), "{end:?}");
        }
    }
    for state in [State::Paused, State::Held, State::WaitsForPerson] {
        assert!(decide(&run(state), Event::Turn { step: false }, now()).is_err(), "{state:?}");
    }
}

#[test]
fn what_was_asked_takes_effect_between_two_iterations_and_goes_before_a_wait() {
    let asked = |asked| RunRecord { asked: Some(asked), ..run(State::Running) };
    let after = |run: &RunRecord, event| decide(run, event, now()).expect("it is being driven").record;
    let wait = || Event::Declined(Next::Wait(wait(), why()));
    let waits = [wait(), Event::Followed(Next::Wait(self::wait(), why())), Event::Declined(Next::WaitForPerson(why()))];
    for event in [Event::Between, Event::Followed(Next::WaitForPerson(why()))].into_iter().chain(waits) {
        assert_eq!(after(&asked(Asked::Pause), event.clone()).state, State::Paused);
        assert_eq!(after(&asked(Asked::Cancel), event).state, State::Over { end: End::Cancelled, at: now() });
    }
    assert_eq!(after(&asked(Asked::Step), Event::Between).state, State::Running);
    assert_eq!(after(&asked(Asked::Step), wait()).state, State::WaitsForService(self::wait()));
}

#[test]
fn a_cancelled_run_ends_whatever_is_in_its_way_and_says_what_it_has_left() {
    let cancelled = RunRecord { asked: Some(Asked::Cancel), ..run(State::Running) };
    for nature in [Nature::Passing, Nature::Lasting, Nature::Lost] {
        let step = decide(&cancelled, Event::Obstructed(obstruction(nature)), now()).expect("it is being driven");
        assert_eq!(step.record.state, State::Over { end: End::Cancelled, at: now() }, "{nature:?}");
        assert_eq!(step.effects, [Effect::RemoveJournal], "{nature:?}");
        let why = step.record.reason.expect("it says why");
        for part in [&obstruction(nature).what, &cancelled.path.to_string()] {
            assert!(why.message.contains(part), "{}", why.message);
        }
        let command = why.command.expect("it says what to do");
        assert!(command.contains(&obstruction(nature).remedy), "{command}");
        assert!(command.ends_with("runnerctl start --id r"), "{command}");
    }
    let held = decide(&cancelled, Event::Hold(why()), now()).expect("it is being driven").record;
    assert_eq!(held.state, State::Over { end: End::Cancelled, at: now() });
}

#[test]
fn a_restart_changes_no_record_and_keeps_the_journal_of_what_was_not_followed() {
    for state in states() {
        for is_over in [false, true] {
            let step = decide(&run(state), Event::Restarted { is_over }, now()).expect("it may happen at any time");
            assert_eq!(step.record, run(state));
            let is_followed = state.is_over() || is_over && state != State::Running;
            let expect = if is_followed { Effect::RemoveJournal } else { Effect::KeepJournal };
            assert_eq!(step.effects, [expect], "{state:?}, {is_over}");
        }
    }
}

#[test]
fn an_iteration_that_the_daemon_died_in_comes_to_its_end_before_its_run_does() {
    let found = Found::new();
    let unfinished = |run: &RunRecord, request| {
        let situation = Situation { work: Work::Unfinished, driven: Some("r"), ..found.situation(run) };
        ask(run, request, &situation).expect("it is not over").record
    };
    for state in [State::Running, State::Held, State::Paused] {
        let cancelled = unfinished(&run(state), Request::Cancel);
        assert_eq!((cancelled.state, cancelled.asked), (State::Running, Some(Asked::Cancel)));
        let paused = unfinished(&run(state), Request::Pause { now: false });
        assert_eq!(paused.state, if state == State::Running { State::Running } else { State::Paused });
    }
}

#[test]
fn nothing_is_done_with_a_repository_that_is_held_but_to_stop_its_runs() {
    let (found, held) = (Found::new(), why());
    for (label, request) in requests() {
        let run = run(State::Queued);
        let situation = Situation { held: Some(&held), ..found.situation(&run) };
        let answer = ask(&run, request.clone(), &situation);
        match request {
            Request::Pause { .. } | Request::Cancel => assert!(answer.is_ok(), "{label}"),
            Request::Resume { now, more, .. } => {
                assert_eq!(answer.expect("it is looked at again").effects, [Effect::LookAgain]);
                let again = ask(&run, Request::Resume { now, more, looked: true }, &situation);
                assert_eq!(again, Err(Refusal::RepositoryHeld(why())));
            }
            _ => assert_eq!(answer, Err(Refusal::RepositoryHeld(why())), "{label}"),
        }
    }
}

#[test]
fn what_a_request_does_beside_the_record() {
    let effects = |state, request| answer(&run(state), &request).expect("it is not refused").effects;
    let resume = Request::Resume { now: false, more: None, looked: false };
    let failed = State::Over { end: End::Failed, at: now() };
    assert_eq!(effects(State::Running, Request::Pause { now: false }), []);
    assert_eq!(
        effects(State::Running, Request::Pause { now: true }),
        [Effect::Stop(runner_core::verdict::StopCause::Pause)]
    );
    assert_eq!(effects(State::Running, Request::Cancel), [Effect::Stop(runner_core::verdict::StopCause::Cancel)]);
    assert_eq!(effects(State::Queued, Request::Cancel), [Effect::AnswerSteps]);
    assert_eq!(effects(State::Held, resume.clone()), [Effect::Tell]);
    assert_eq!(effects(failed, resume), [Effect::Tell, Effect::GoLast]);
    assert_eq!(effects(failed, Request::Step), [Effect::AwaitStep]);
    assert_eq!(effects(failed, Request::Start(order())), [Effect::Tell, Effect::GoLast]);
}

#[test]
fn a_cancelled_session_is_not_paused_by_a_pause_that_comes_later() {
    let asked = RunRecord { asked: Some(Asked::Cancel), ..run(State::Running) };
    assert_eq!(answer(&asked, &Request::Pause { now: false }).expect("it runs").record.asked, Some(Asked::Cancel));
}

#[test]
fn a_run_that_ended_is_resumed_with_its_counters_reset_and_one_that_rests_is_not() {
    let resumed = |state| answer(&run(state), &requests()[6].1).expect("it goes on").record.resume;
    let granted = |reset| Some(ResumeOrder { more: 5, reset, from: None, then: 0 });
    assert_eq!(resumed(State::Over { end: End::Limit, at: now() }), granted(true));
    assert_eq!(resumed(State::Paused), granted(false));
    let started = answer(&run(State::Over { end: End::Failed, at: now() }), &requests()[0].1).expect("it begins anew");
    assert_eq!(started.record.resume, Some(ResumeOrder { more: 0, reset: true, from: None, then: 0 }));
    let fork = Start { beginning: Beginning { fork: true, ..order().beginning }, ..order() };
    assert_eq!(answer(&run(State::Queued), &Request::Start(fork)), Err(Refusal::IsThere));
}

#[test]
fn a_person_who_had_paused_the_run_finds_it_paused_after_their_word() {
    let asked = |state| {
        answer(&run(state), &Request::Review { decision: Decision::Approve, signature: None })
            .expect("a node waits")
            .record
            .asked
    };
    assert_eq!((asked(State::Paused), asked(State::WaitsForPerson)), (Some(Asked::Step), None));
}

#[test]
fn the_turn_is_whose_run_was_running_then_of_who_asked_for_a_step_then_of_the_first() {
    let named = |id: &str, state| RunRecord { id: id.to_owned(), ..run(state) };
    let nobody = Wanted { steps: &[], unfinished: None };
    let (over, later) = (wait().until, wait().until + SignedDuration::from_secs(1));
    let steps = ["b".to_owned()];
    let runs = |first, second| [named("a", first), named("b", second)];
    let table = [
        (runs(State::Queued, State::Running), nobody, Turn::Run("b".to_owned())),
        (runs(State::Queued, State::Paused), Wanted { steps: &steps, ..nobody }, Turn::Step("b".to_owned())),
        (
            runs(State::Queued, State::Paused),
            Wanted { steps: &steps, unfinished: Some("a") },
            Turn::Run("a".to_owned()),
        ),
        (runs(State::Paused, State::Queued), nobody, Turn::Rest(None)),
        (runs(State::WaitsForPerson, State::Queued), nobody, Turn::Rest(None)),
        (runs(State::Held, State::Queued), nobody, Turn::Rest(None)),
        (runs(State::Over { end: End::Stuck, at: now() }, State::Queued), nobody, Turn::Run("b".to_owned())),
    ];
    for (runs, wanted, expect) in table {
        assert_eq!(turn(&runs, wanted, now()), expect, "{runs:?}");
    }
    let waiting = runs(State::WaitsForService(wait()), State::Queued);
    assert_eq!(turn(&waiting, nobody, now()), Turn::Rest(Some(wait())));
    assert_eq!(turn(&waiting, nobody, over), Turn::Run("a".to_owned()));
    let ended = |at| State::Over { end: End::Stuck, at };
    assert_eq!(current(&runs(ended(later), ended(over))).map(|run| run.id.as_str()), Some("a"));
}

#[test]
fn the_machine_is_kept_awake_for_what_goes_on_by_itself_within_twelve_hours() {
    let waits = |hours| State::WaitsForService(Wait { since: now(), until: now() + SignedDuration::from_hours(hours) });
    assert!(waits(12).is_active(now()) && !waits(13).is_active(now()));
    for state in states().into_iter().filter(|state| state.wait().is_none()) {
        assert_eq!(state.is_active(now()), state == State::Running, "{state:?}");
    }
}

/// All records that requests and events lead to, and what led from each to the next.
fn walk() -> Vec<(RunRecord, String, Step)> {
    let (requests, events) = (requests(), events());
    let mut seen = BTreeSet::new();
    let mut open = vec![begin("r", order(), now()).record];
    let mut edges = Vec::new();
    while let Some(run) = open.pop() {
        if !seen.insert(format!("{run:?}")) {
            continue;
        }
        let asked =
            requests.iter().filter_map(|(label, request)| Some((label.to_string(), answer(&run, request).ok()?)));
        let happened =
            events.iter().filter_map(|(label, event)| Some((label.clone(), decide(&run, event.clone(), now()).ok()?)));
        for (label, mut step) in asked.chain(happened) {
            // How often iterations are granted makes no other record.
            if let Some(order) = &mut step.record.resume {
                (order.more, order.then) = (order.more.min(1), order.then.min(1));
            }
            open.push(step.record.clone());
            edges.push((run.clone(), label, step));
        }
    }
    edges
}

#[test]
fn wherever_a_run_comes_to_it_says_why_it_stands_and_can_be_stored() {
    let edges = walk();
    let states: BTreeSet<String> = edges.iter().map(|(_, _, step)| word(step.record.state)).collect();
    assert_eq!(states.len(), 12, "{states:?}");
    for (from, label, step) in edges {
        let run = step.record;
        let stands = !matches!(run.state, State::Queued | State::Running);
        assert_eq!(run.reason.is_some(), stands, "{label}: {from:?} -> {run:?}");
        let is_done_with = matches!(run.state, State::Queued | State::Paused | State::Over { .. });
        assert!(!is_done_with || !matches!(run.asked, Some(Asked::Pause | Asked::Cancel)), "{label}: {run:?}");
        assert!(!stands || run.asked != Some(Asked::Cancel), "a cancel waits for a person: {label}: {run:?}");
        let stored = serde_json::to_string(&run).expect("it is data");
        assert_eq!(serde_json::from_str::<RunRecord>(&stored).expect("it is read again"), run);
        if matches!(from.state, State::Over { end: End::Completed | End::Cancelled, .. }) && run.state != from.state {
            assert_eq!(label, "start", "{from:?} -> {run:?}");
        }
        if run.state.is_over() && !from.state.is_over() {
            assert!(from.state == State::Running || label == "cancel", "{label}: {from:?}");
        }
    }
}

#[test]
fn every_record_that_is_reached_goes_on_again() {
    let edges = walk();
    let mut before: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (from, _, step) in &edges {
        before.entry(format!("{:?}", step.record)).or_default().push(format!("{from:?}"));
    }
    let running = edges.iter().map(|(_, _, step)| &step.record).filter(|run| run.state == State::Running);
    let mut open: Vec<String> = running.map(|run| format!("{run:?}")).collect();
    let mut goes_on = BTreeSet::new();
    while let Some(record) = open.pop() {
        if goes_on.insert(record.clone()) {
            open.extend(before.get(&record).into_iter().flatten().cloned());
        }
    }
    // Whoever wants more than a completed run has reached begins another.
    let ended = |step: &Step| matches!(step.record.state, State::Over { end: End::Completed, .. });
    for (_, label, step) in edges.into_iter().filter(|(_, _, step)| !ended(step)) {
        assert!(goes_on.contains(&format!("{:?}", step.record)), "{label} leads to what nothing leads from: {step:?}");
    }
}

#[test]
fn a_record_is_read_as_it_was_written_and_in_no_other_form() {
    for state in states() {
        let text = serde_json::to_value(run(state)).expect("it is written");
        assert_eq!(serde_json::from_value::<RunRecord>(text.clone()).expect("it is read"), run(state));
        let with = |key: &str, value: serde_json::Value| {
            let mut other = text.clone();
            other[key] = value;
            serde_json::from_value::<RunRecord>(other)
        };
        assert!(with("wait", serde_json::Value::Null).is_err(), "a field that no record has");
        assert!(with("state", "waiting".into()).is_err(), "a state without its time");
        let mut less = text;
        less.as_object_mut().expect("an object").remove("uncommitted");
        assert!(serde_json::from_value::<RunRecord>(less).is_err(), "a field that is missing");
    }
}

/// The table of requests for the page.
pub(crate) fn requests_table() -> String {
    let mut text = String::from("| a run that | ");
    let requests = requests();
    let labels: Vec<String> = requests.iter().map(|(label, _)| format!("`{label}`")).collect();
    writeln!(text, "{} |", labels.join(" | ")).expect("writes");
    writeln!(text, "|---|{}", "---|".repeat(labels.len())).expect("writes");
    for state in states() {
        let cells = requests.iter().map(|(_, request)| match answer(&run(state), request) {
            Ok(step) => granted(state, &step),
            Err(refusal) => format!("*{}*", name(&refusal)),
        });
        let is = if word(state).starts_with("waits") { "" } else { "is " };
        writeln!(text, "| {is}{} | {} |", word(state), cells.collect::<Vec<_>>().join(" | ")).expect("writes");
    }
    text
}

fn granted(state: State, step: &Step) -> String {
    let mut words = vec![if step.record.state == state { "as it is".to_owned() } else { word(step.record.state) }];
    words.extend(step.record.asked.map(|asked| format!("asked to {}", format!("{asked:?}").to_lowercase())));
    words.extend(step.effects.iter().filter_map(|effect| match effect {
        Effect::GoLast => Some("behind the others".to_owned()),
        Effect::Stop(_) => Some("the session ends".to_owned()),
        Effect::AwaitStep => Some("one iteration".to_owned()),
        _ => None,
    }));
    words.join(", ")
}

/// The refusals for the page: what they say, and what they name to type.
pub(crate) fn refusals_table() -> String {
    let mut told = BTreeMap::new();
    let runs = states().into_iter().map(run);
    let mut add = |refusal: Refusal| {
        told.insert(
            name(&refusal),
            (refusal.message("ID"), refusal.ways("ID").map_or_else(|| "–".to_owned(), |ways| ways.text().to_owned())),
        );
    };
    for run in runs {
        for (_, request) in requests() {
            answer(&run, &request).err().into_iter().for_each(&mut add);
        }
    }
    let found = Found::new();
    let running = run(State::Running);
    let obstructed = Situation { obstacle: Some(&found.obstacle), ..found.situation(&running) };
    ask(&running, requests()[4].1.clone(), &obstructed).err().into_iter().for_each(&mut add);
    let fork = Start { beginning: Beginning { fork: true, ..order().beginning }, ..order() };
    answer(&running, &Request::Start(fork)).err().into_iter().for_each(&mut add);
    let empty = Decision::Reject { reasons: String::new() };
    answer(&run(State::WaitsForPerson), &Request::Review { decision: empty, signature: None })
        .err()
        .into_iter()
        .for_each(&mut add);
    let waiting = run(State::WaitsForPerson);
    let mut signed = Found::new();
    signed.policy.review_signed = true;
    let unsigned = Request::Review { decision: Decision::Approve, signature: None };
    ask(&waiting, unsigned, &signed.situation(&waiting)).err().into_iter().for_each(&mut add);
    let mut text = String::from("| refusal | says | and names |\n|---|---|---|\n");
    for (name, (message, command)) in told {
        writeln!(text, "| *{name}* | {message} | {command} |").expect("writes");
    }
    text
}

/// The table of events for the page.
pub(crate) fn events_table() -> String {
    let mut text = String::from("| event | from | to | beside the record |\n|---|---|---|---|\n");
    for (label, event) in events() {
        let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for state in states() {
            let Ok(step) = decide(&run(state), event.clone(), now()) else { continue };
            let to = if step.record.state == state { "as it was".to_owned() } else { word(step.record.state) };
            let effects: Vec<String> = step
                .effects
                .iter()
                .map(|effect| format!("{effect:?}").split(['(', ' ']).next().unwrap_or("").to_owned())
                .collect();
            rows.entry((to, effects.join(", "))).or_default().push(word(state));
        }
        for ((to, effects), from) in rows {
            writeln!(text, "| {label} | {} | {to} | {effects} |", from.join(", ")).expect("writes");
        }
    }
    text
}
