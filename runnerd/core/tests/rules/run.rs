//! The table of a run's life: every edge listed by hand, and a walk over all reachable records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use protocol::path::WirePath;
use protocol::state::{Feedback, RunState};
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use protocol::words::{GuardOutcome, IterationStatus};
use runner_config::ReviewPolicy;
use runner_core::files::change::ChangeSubject;
use runner_core::policy::Policy;
use runner_core::run::approval::{Decision, PendingNode, ReviewDecision};
use runner_core::run::blocker::{Blocker, Transience};
use runner_core::run::usage::ResourceUsage;
use runner_core::run::wait::WaitPeriod;
use runner_core::run::{
    NextStep, QueueInput, QueueTurn, RecordState, RequestContext, RequestRefusal, ResumeOrder, RunAction, RunActivity,
    RunEnd, RunEvent, RunInputs, RunRecord, RunRequest, RunScratch, RunTransition, StartRequest, StartSpec,
    StopRequest, check_restart, choose_turn, create_run, current_run, decide, handle_request, reason_after_change,
};

use crate::fixture::{node, sample, task};

const ENDS: [RunEnd; 6] =
    [RunEnd::Completed, RunEnd::Stuck, RunEnd::Limit, RunEnd::TimedOut, RunEnd::Failed, RunEnd::Cancelled];

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

fn wait() -> WaitPeriod {
    WaitPeriod { since: now(), until: now() + SignedDuration::from_hours(1) }
}

fn why() -> StopReason {
    StopReason::new("why", "runnerctl resume")
}

fn order() -> StartRequest {
    let beginning = StartSpec { base: None, goal: None, keep_tree: false, fork: false, config: None, id_stem: None };
    StartRequest {
        path: WirePath("/work".into()),
        goal: None,
        goal_file: None,
        start_spec: beginning,
        queue_only: false,
        is_begun: false,
    }
}

fn run(state: RecordState) -> RunRecord {
    let reason = (!matches!(state, RecordState::Queued | RecordState::Running)).then(why);
    RunRecord { state, reason, ..RunRecord::queued("r", WirePath("/work".into()), now()) }
}

fn states() -> Vec<RecordState> {
    let mut states = vec![
        RecordState::Queued,
        RecordState::Running,
        RecordState::Paused,
        RecordState::WaitsForService(wait()),
        RecordState::WaitsForPerson,
        RecordState::Held,
    ];
    states.extend(ENDS.map(|end| RecordState::Over { end, at: now() }));
    states
}

fn word(state: RecordState) -> String {
    match state {
        RecordState::WaitsForService(_) => "waits for a service".to_owned(),
        RecordState::WaitsForPerson => "waits for a person".to_owned(),
        state => state.status().to_string().replace('_', " "),
    }
}

/// The inputs of a request beside the record: a done node, and no attempts if the run is stuck.
struct Found {
    policy: Policy,
    tree: TaskTree,
    state: RunState,
    feedback: Feedback,
    tried: ResourceUsage,
    obstacle: Blocker,
}

impl Found {
    fn new() -> Self {
        let last_node = Some("b".to_owned());
        Self {
            policy: Policy { review: ReviewPolicy::Human, ..Policy::default() },
            tree: sample(),
            state: RunState {
                next_iter: 4,
                last_node,
                last_status: Some(IterationStatus::Done),
                last_guard: Some(GuardOutcome::Pass),
                ..RunState::default()
            },
            feedback: Feedback::default(),
            tried: ResourceUsage::default(),
            obstacle: obstruction(Transience::Passing),
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
        // Nothing waits for a review: that would come before the limit.
        found.policy.review = ReviewPolicy::Off;
        found.policy.max_iterations = 3;
        found
    }

    fn standing(&self) -> RunInputs<'_> {
        RunInputs {
            policy: &self.policy,
            tree: &self.tree,
            run_state: &self.state,
            feedback: &self.feedback,
            review_decision: None,
            outages: &[],
            retry_usage: &self.tried,
            now: now(),
        }
    }

    /// A situation in which the run is active whenever its record says so.
    fn situation(&self, run: &RunRecord) -> RequestContext<'_> {
        let is_driven = run.state == RecordState::Running;
        RequestContext {
            hold_reason: None,
            work: if is_driven { RunActivity::Active } else { RunActivity::Nothing },
            driven_run: is_driven.then_some("r"),
            blocker: None,
            inputs: Some(self.standing()),
            now: now(),
        }
    }
}

fn obstruction(nature: Transience) -> Blocker {
    Blocker { what: "the disk is full".to_owned(), remedy: "make room".to_owned(), nature }
}

fn requests() -> Vec<(&'static str, RunRequest)> {
    let resume = |now, more| RunRequest::Resume { now, more, rechecked: false };
    vec![
        ("start", RunRequest::Start(order())),
        ("step", RunRequest::Step),
        ("pause", RunRequest::Pause { now: false }),
        ("pause --now", RunRequest::Pause { now: true }),
        ("resume", resume(false, None)),
        ("resume --now", resume(true, None)),
        ("resume --more 5", resume(false, Some(5))),
        ("cancel", RunRequest::Cancel),
        ("approve", RunRequest::Review { decision: Decision::Approve, iter: 3, signature: None }),
        ("note", RunRequest::Change(ChangeSubject::Note)),
        ("retry, add, edit", RunRequest::Change(ChangeSubject::Tree)),
        ("answer, accept, config", RunRequest::Change(ChangeSubject::Files)),
    ]
}

fn events() -> Vec<(String, RunEvent)> {
    let mut events = vec![
        ("Turn".to_owned(), RunEvent::Turn { step: false }),
        ("Turn(step)".to_owned(), RunEvent::Turn { step: true }),
        ("IdSettled".to_owned(), RunEvent::IdSettled { id: "r".to_owned() }),
        ("Begun".to_owned(), RunEvent::Started),
        ("TakenUp".to_owned(), RunEvent::ResumeAnchored { from: "c".repeat(40) }),
        ("Resumed".to_owned(), RunEvent::Resumed),
        ("Between".to_owned(), RunEvent::BetweenIterations),
        (
            "Learned".to_owned(),
            RunEvent::ScratchChanged(RunScratch { followed: Some("m".to_owned()), ..RunScratch::default() }),
        ),
        ("Hold".to_owned(), RunEvent::Hold(why())),
        ("Restarted(journal is over)".to_owned(), RunEvent::Restarted { is_over: true }),
        ("Restarted(journal continues)".to_owned(), RunEvent::Restarted { is_over: false }),
    ];
    for nature in [Transience::Passing, Transience::Lasting, Transience::Lost] {
        events.push((format!("Obstructed({nature:?})"), RunEvent::Blocked(obstruction(nature))));
    }
    let mut nexts = vec![
        ("go on".to_owned(), NextStep::Continue(task())),
        ("wait".to_owned(), NextStep::Wait(wait(), why())),
        ("wait for a person".to_owned(), NextStep::WaitForPerson(why())),
        ("pause".to_owned(), NextStep::Pause(why())),
        ("hold".to_owned(), NextStep::Hold(why())),
    ];
    nexts.extend(ENDS.map(|end| {
        (format!("end, {}", word(RecordState::Over { end, at: now() })), NextStep::End { end, reason: why() })
    }));
    for (name, next) in nexts {
        events.push((format!("Declined({name})"), RunEvent::Declined(next.clone())));
        events.push((format!("Followed({name})"), RunEvent::IterationSettled(next)));
    }
    events
}

/// A request whose answer depends on the state, with its answer: a state, or the name of the refusal.
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
            "OtherRunActive",
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
            "cancelled",
        ],
    ),
    (
        "approve",
        [
            "queued",
            "SessionActive",
            "queued",
            "queued",
            "queued",
            "queued",
            "NothingToReview",
            "NothingToReview",
            "NothingToReview",
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

/// Answers a request to a run; a completed or stuck run has nothing to review.
fn answer(run: &RunRecord, request: &RunRequest) -> Result<RunTransition, RequestRefusal> {
    let found = match run.state {
        RecordState::Over { end: RunEnd::Completed, .. } => Found::complete(),
        RecordState::Over { end: RunEnd::Stuck, .. } => Found::exhausted(),
        RecordState::Over { end: RunEnd::Limit, .. } => Found::at_limit(),
        _ => Found::new(),
    };
    handle_request(run, request.clone(), &found.situation(run))
}

fn name(refusal: &RequestRefusal) -> String {
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
fn an_ended_run_continues_once_the_cause_of_its_end_is_removed() {
    let ended = run(RecordState::Over { end: RunEnd::Limit, at: now() });
    let resume = |more| RunRequest::Resume { now: false, more, rechecked: false };
    let ask_of = |found: &Found, request| {
        handle_request(&ended, request, &found.situation(&ended)).map(|step| step.record.state)
    };
    let found = Found::at_limit();
    let refused = ask_of(&found, resume(None)).expect_err("it has no iterations left");
    assert_eq!(refused.to_error_data("r").hint.as_deref(), Some("runnerctl resume --more 20"));
    assert_eq!(ask_of(&found, resume(Some(1))), Ok(RecordState::Queued));
    let mut spent = Found::at_limit();
    spent.policy.max_iterations = 10;
    spent.policy.max_cost_micro_usd = Some(20_000_000);
    spent.state.usage.cost_micro_usd = Some(20_500_000);
    spent.state.run_id = Some("port".into());
    let refused = ask_of(&spent, resume(Some(1))).expect_err("iterations are not what it lacks");
    assert_eq!(
        refused.to_error_data("r").hint.as_deref(),
        Some("runnerctl config set max_cost_usd 41 --run port && runnerctl resume --run port")
    );
    spent.policy.max_cost_micro_usd = Some(41_000_000);
    for request in [resume(None), RunRequest::Step, RunRequest::Start(order())] {
        assert!(request.needs_commit(ended.state));
        assert!(ask_of(&spent, request).is_ok());
    }
}

#[test]
fn the_reason_of_an_end_follows_what_is_changed_since() {
    let stuck = Found::exhausted();
    let open = Found::new();
    let limit = Found::at_limit();
    let reason = |before: &Found, after: &Found| {
        reason_after_change(&before.standing(), &after.standing()).map(|reason| reason.message)
    };
    assert_eq!(
        reason(&stuck, &open).as_deref(),
        Some("the reason why it stopped has changed since, and it can continue")
    );
    assert_eq!(reason(&stuck, &limit).as_deref(), Some("3 iterations are used up"));
    assert_eq!(reason(&open, &open), None, "what ended it is in no file");
}

#[test]
fn a_word_without_a_signature_is_refused_where_it_must_have_one() {
    let waiting = run(RecordState::WaitsForPerson);
    let mut found = Found::new();
    found.policy.review_signed = true;
    let say = |signature: Option<&str>| {
        let signature = signature.map(|text| text.parse().expect("a signature"));
        handle_request(
            &waiting,
            RunRequest::Review { decision: Decision::Approve, iter: 3, signature },
            &found.situation(&waiting),
        )
    };
    let on = PendingNode { node: "b".to_owned(), iter: 3 };
    assert_eq!(say(None).err(), Some(RequestRefusal::Unsigned(on.clone())));
    let word = say(Some("U1NIU0lHAAAAAQ==")).expect("it is signed").record.uncommitted.word.expect("it is kept");
    let unsigned = ReviewDecision { signature: None, ..word.clone() };
    let next = |word| {
        runner_core::run::decide_next(&RunInputs { review_decision: Some(word), ..found.standing() }, None, None)
    };
    assert!(matches!(next(&word), NextStep::Continue(task) if task.signature == word.signature));
    // The decision was made before the configuration required one.
    assert!(matches!(next(&unsigned), NextStep::WaitForPerson(_)));
}

#[test]
fn a_cancelled_run_is_started_though_it_ends_at_once_and_then_says_how_to_continue() {
    let cancelled = run(RecordState::Over { end: RunEnd::Cancelled, at: now() });
    for found in [Found::at_limit(), Found::exhausted()] {
        let started =
            handle_request(&cancelled, RunRequest::Start(order()), &found.situation(&cancelled)).expect("it is begun");
        assert_eq!(started.record.state, RecordState::Queued);
    }
}

#[test]
fn a_completed_run_with_a_reopened_tree_continues_with_start() {
    let completed = run(RecordState::Over { end: RunEnd::Completed, at: now() });
    let found = Found::new();
    let started =
        handle_request(&completed, RunRequest::Start(order()), &found.situation(&completed)).expect("there is work");
    assert_eq!(started.record.state, RecordState::Queued);
    assert_eq!(check_restart(&Found::complete().standing()), Err(RequestRefusal::IsCompleted));
}

/// Everything that leads from one state to another. All other events are bugs, or leave the state unchanged.
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
    for (state, (label, event)) in
        states().iter().flat_map(|state| events().into_iter().map(move |entry| (*state, entry)))
    {
        let step = decide(&run(state), event.clone(), now());
        let has_turn =
            state == RecordState::Running || matches!(event, RunEvent::Turn { .. } | RunEvent::Restarted { .. });
        assert!(step.is_err() || has_turn, "{label} of a run that is {}", word(state));
        let Ok(step) = step else { continue };
        if step.record.state != state {
            found.insert((word(state), label, word(step.record.state)));
        }
    }
    let ends = ENDS.map(|end| word(RecordState::Over { end, at: now() }));
    let ends = ends.iter().flat_map(|end| ["Declined", "Followed"].map(|event| (format!("{event}(end, {end})"), end)));
    let typed = EDGES.iter().map(|(from, event, to)| (from.to_string(), event.to_string(), to.to_string()));
    let typed = typed.chain(ends.map(|(event, end)| ("running".to_owned(), event, end.clone())));
    assert_eq!(found, typed.collect());
}

#[test]
fn a_run_that_is_over_has_its_turn_only_if_a_step_can_lead_on() {
    for end in [RunEnd::Completed, RunEnd::Cancelled] {
        let over = run(RecordState::Over { end, at: now() });
        for step in [false, true] {
            assert!(decide(&over, RunEvent::Turn { step }, now()).is_err(), "{end:?}");
        }
    }
    for state in [RecordState::Paused, RecordState::Held, RecordState::WaitsForPerson] {
        assert!(decide(&run(state), RunEvent::Turn { step: false }, now()).is_err(), "{state:?}");
    }
}

#[test]
fn what_was_asked_takes_effect_between_two_iterations_and_goes_before_a_wait() {
    let asked = |asked| RunRecord { stop_request: Some(asked), ..run(RecordState::Running) };
    let after = |run: &RunRecord, event| decide(run, event, now()).expect("it is being driven").record;
    let wait = || RunEvent::Declined(NextStep::Wait(wait(), why()));
    let waits = [
        wait(),
        RunEvent::IterationSettled(NextStep::Wait(self::wait(), why())),
        RunEvent::Declined(NextStep::WaitForPerson(why())),
    ];
    for event in [RunEvent::BetweenIterations, RunEvent::IterationSettled(NextStep::WaitForPerson(why()))]
        .into_iter()
        .chain(waits)
    {
        assert_eq!(after(&asked(StopRequest::Pause), event.clone()).state, RecordState::Paused);
        assert_eq!(
            after(&asked(StopRequest::Cancel), event).state,
            RecordState::Over { end: RunEnd::Cancelled, at: now() }
        );
    }
    assert_eq!(after(&asked(StopRequest::Step), RunEvent::BetweenIterations).state, RecordState::Running);
    assert_eq!(after(&asked(StopRequest::Step), wait()).state, RecordState::WaitsForService(self::wait()));
}

#[test]
fn a_cancelled_run_ends_whatever_is_in_its_way_and_says_what_it_has_left() {
    let cancelled = RunRecord { stop_request: Some(StopRequest::Cancel), ..run(RecordState::Running) };
    for nature in [Transience::Passing, Transience::Lasting, Transience::Lost] {
        let step = decide(&cancelled, RunEvent::Blocked(obstruction(nature)), now()).expect("it is being driven");
        assert_eq!(step.record.state, RecordState::Over { end: RunEnd::Cancelled, at: now() }, "{nature:?}");
        assert_eq!(step.effects, [RunAction::RemoveJournal], "{nature:?}");
        let why = step.record.reason.expect("it says why");
        for part in [&obstruction(nature).what, &cancelled.path.to_string()] {
            assert!(why.message.contains(part), "{}", why.message);
        }
        let command = why.command.expect("it says what to do");
        assert!(command.contains(&obstruction(nature).remedy), "{command}");
        assert!(command.ends_with("runnerctl start --id r"), "{command}");
    }
    let held = decide(&cancelled, RunEvent::Hold(why()), now()).expect("it is being driven").record;
    assert_eq!(held.state, RecordState::Over { end: RunEnd::Cancelled, at: now() });
}

#[test]
fn a_restart_changes_no_record_and_keeps_the_journal_of_what_was_not_followed() {
    for state in states() {
        for is_over in [false, true] {
            let step = decide(&run(state), RunEvent::Restarted { is_over }, now()).expect("it may happen at any time");
            assert_eq!(step.record, run(state));
            let is_followed = state.is_over() || is_over && state != RecordState::Running;
            let expect = if is_followed { RunAction::RemoveJournal } else { RunAction::ReplayJournal };
            assert_eq!(step.effects, [expect], "{state:?}, {is_over}");
        }
    }
}

#[test]
fn an_iteration_in_which_the_daemon_died_ends_before_its_run() {
    let found = Found::new();
    let unfinished = |run: &RunRecord, request| {
        let situation = RequestContext { work: RunActivity::Unfinished, driven_run: Some("r"), ..found.situation(run) };
        handle_request(run, request, &situation).expect("it is not over").record
    };
    for state in [RecordState::Running, RecordState::Held, RecordState::Paused] {
        let cancelled = unfinished(&run(state), RunRequest::Cancel);
        assert_eq!((cancelled.state, cancelled.stop_request), (RecordState::Running, Some(StopRequest::Cancel)));
        let paused = unfinished(&run(state), RunRequest::Pause { now: false });
        assert_eq!(
            paused.state,
            if state == RecordState::Running { RecordState::Running } else { RecordState::Paused }
        );
    }
}

#[test]
fn nothing_is_done_with_a_repository_that_is_held_but_to_stop_its_runs() {
    let found = Found::new();
    let held = why();
    for (label, request) in requests() {
        let run = run(RecordState::Queued);
        let situation = RequestContext { hold_reason: Some(&held), ..found.situation(&run) };
        let answer = handle_request(&run, request.clone(), &situation);
        match request {
            RunRequest::Pause { .. } | RunRequest::Cancel => assert!(answer.is_ok(), "{label}"),
            RunRequest::Resume { now, more, .. } => {
                assert_eq!(answer.expect("it is looked at again").effects, [RunAction::RecheckRepository]);
                let again = handle_request(&run, RunRequest::Resume { now, more, rechecked: true }, &situation);
                assert_eq!(again, Err(RequestRefusal::RepositoryHeld(why())));
            }
            _ => assert_eq!(answer, Err(RequestRefusal::RepositoryHeld(why())), "{label}"),
        }
    }
}

#[test]
fn what_a_request_does_beside_the_record() {
    let effects = |state, request| answer(&run(state), &request).expect("it is not refused").effects;
    let resume = RunRequest::Resume { now: false, more: None, rechecked: false };
    let failed = RecordState::Over { end: RunEnd::Failed, at: now() };
    assert_eq!(effects(RecordState::Running, RunRequest::Pause { now: false }), []);
    assert_eq!(
        effects(RecordState::Running, RunRequest::Pause { now: true }),
        [RunAction::Stop(runner_core::verdict::StopCause::Pause)]
    );
    assert_eq!(
        effects(RecordState::Running, RunRequest::Cancel),
        [RunAction::Stop(runner_core::verdict::StopCause::Cancel)]
    );
    assert_eq!(effects(RecordState::Queued, RunRequest::Cancel), [RunAction::AnswerSteps]);
    assert_eq!(effects(RecordState::Held, resume.clone()), [RunAction::NotifyState]);
    assert_eq!(effects(failed, resume), [RunAction::NotifyState, RunAction::MoveToBack]);
    assert_eq!(effects(failed, RunRequest::Step), [RunAction::AwaitStep]);
    assert_eq!(effects(failed, RunRequest::Start(order())), [RunAction::NotifyState, RunAction::MoveToBack]);
}

#[test]
fn a_cancelled_session_is_not_paused_by_a_pause_that_comes_later() {
    let cancelled = RunRecord { stop_request: Some(StopRequest::Cancel), ..run(RecordState::Running) };
    assert_eq!(
        answer(&cancelled, &RunRequest::Pause { now: false }).expect("it runs").record.stop_request,
        Some(StopRequest::Cancel)
    );
}

#[test]
fn a_run_that_ended_is_resumed_with_its_counters_reset_and_one_that_rests_is_not() {
    let resumed = |state| answer(&run(state), &requests()[6].1).expect("it continues").record.resume;
    let granted = |reset| Some(ResumeOrder { more: 5, reset, from: None, then: 0 });
    assert_eq!(resumed(RecordState::Over { end: RunEnd::Limit, at: now() }), granted(true));
    assert_eq!(resumed(RecordState::Paused), granted(false));
    let started =
        answer(&run(RecordState::Over { end: RunEnd::Failed, at: now() }), &requests()[0].1).expect("it starts again");
    assert_eq!(started.record.resume, Some(ResumeOrder { more: 0, reset: true, from: None, then: 0 }));
    let fork = StartRequest { start_spec: StartSpec { fork: true, ..order().start_spec }, ..order() };
    assert_eq!(answer(&run(RecordState::Queued), &RunRequest::Start(fork)), Err(RequestRefusal::RunExists));
}

#[test]
fn a_word_on_an_iteration_that_does_not_wait_decides_nothing() {
    let on = PendingNode { node: "b".to_owned(), iter: 3 };
    for iter in [2, 4] {
        let request = RunRequest::Review { decision: Decision::Approve, iter, signature: None };
        let refused = answer(&run(RecordState::WaitsForPerson), &request);
        assert_eq!(refused.err(), Some(RequestRefusal::OtherReview { on: on.clone(), iter }));
    }
}

#[test]
fn a_run_is_cancelled_once() {
    let over = run(RecordState::Over { end: RunEnd::Cancelled, at: now() });
    let again = answer(&over, &RunRequest::Cancel).expect("it is what was asked for");
    assert_eq!((&again.record, again.effects), (&over, Vec::new()));
    assert!(over.is_cancelled() && !run(RecordState::Running).is_cancelled());
}

#[test]
fn a_person_who_had_paused_the_run_finds_it_paused_after_their_word() {
    let request_after_review = |state| {
        answer(&run(state), &RunRequest::Review { decision: Decision::Approve, iter: 3, signature: None })
            .expect("a node waits")
            .record
            .stop_request
    };
    assert_eq!(
        (request_after_review(RecordState::Paused), request_after_review(RecordState::WaitsForPerson)),
        (Some(StopRequest::Step), None)
    );
}

#[test]
fn the_turn_is_whose_run_was_running_then_of_who_asked_for_a_step_then_of_the_first() {
    let named = |id: &str, state| RunRecord { id: id.to_owned(), ..run(state) };
    let nobody = QueueInput { steps: &[], unfinished: None };
    let over = wait().until;
    let later = wait().until + SignedDuration::from_secs(1);
    let steps = ["b".to_owned()];
    let runs = |first, second| [named("a", first), named("b", second)];
    let table = [
        (runs(RecordState::Queued, RecordState::Running), nobody, QueueTurn::Run("b".to_owned())),
        (
            runs(RecordState::Queued, RecordState::Paused),
            QueueInput { steps: &steps, ..nobody },
            QueueTurn::Step("b".to_owned()),
        ),
        (
            runs(RecordState::Queued, RecordState::Paused),
            QueueInput { steps: &steps, unfinished: Some("a") },
            QueueTurn::Run("a".to_owned()),
        ),
        (runs(RecordState::Paused, RecordState::Queued), nobody, QueueTurn::Idle(None)),
        (runs(RecordState::WaitsForPerson, RecordState::Queued), nobody, QueueTurn::Idle(None)),
        (runs(RecordState::Held, RecordState::Queued), nobody, QueueTurn::Idle(None)),
        (
            runs(RecordState::Over { end: RunEnd::Stuck, at: now() }, RecordState::Queued),
            nobody,
            QueueTurn::Run("b".to_owned()),
        ),
    ];
    for (runs, selected, expect) in table {
        assert_eq!(choose_turn(&runs, selected, now()), expect, "{runs:?}");
    }
    let waiting = runs(RecordState::WaitsForService(wait()), RecordState::Queued);
    assert_eq!(choose_turn(&waiting, nobody, now()), QueueTurn::Idle(Some(wait())));
    assert_eq!(choose_turn(&waiting, nobody, over), QueueTurn::Run("a".to_owned()));
    let ended = |at| RecordState::Over { end: RunEnd::Stuck, at };
    assert_eq!(current_run(&runs(ended(later), ended(over))).map(|run| run.id.as_str()), Some("a"));
}

#[test]
fn the_machine_is_kept_awake_for_runs_that_continue_automatically_within_twelve_hours() {
    let waits = |hours| {
        RecordState::WaitsForService(WaitPeriod { since: now(), until: now() + SignedDuration::from_hours(hours) })
    };
    assert!(waits(12).is_active(now()) && !waits(13).is_active(now()));
    for state in states().into_iter().filter(|state| state.wait().is_none()) {
        assert_eq!(state.is_active(now()), state == RecordState::Running, "{state:?}");
    }
}

/// All records reachable by requests and events, and the steps between them.
fn walk() -> Vec<(RunRecord, String, RunTransition)> {
    let requests = requests();
    let events = events();
    let mut seen = BTreeSet::new();
    let mut open = vec![create_run("r", order(), now()).record];
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
            // The number of granted iterations does not distinguish records.
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
fn every_stopped_run_says_why_and_can_be_stored() {
    let edges = walk();
    let states: BTreeSet<String> = edges.iter().map(|(_, _, step)| word(step.record.state)).collect();
    assert_eq!(states.len(), 12, "{states:?}");
    for (from, label, step) in edges {
        let run = step.record;
        let stands = !matches!(run.state, RecordState::Queued | RecordState::Running);
        assert_eq!(run.reason.is_some(), stands, "{label}: {from:?} -> {run:?}");
        let is_done_with = matches!(run.state, RecordState::Queued | RecordState::Paused | RecordState::Over { .. });
        assert!(
            !is_done_with || !matches!(run.stop_request, Some(StopRequest::Pause | StopRequest::Cancel)),
            "{label}: {run:?}"
        );
        assert!(
            !stands || run.stop_request != Some(StopRequest::Cancel),
            "a cancel waits for a person: {label}: {run:?}"
        );
        let stored = serde_json::to_string(&run).expect("it is data");
        assert_eq!(serde_json::from_str::<RunRecord>(&stored).expect("it is read again"), run);
        if matches!(from.state, RecordState::Over { end: RunEnd::Completed | RunEnd::Cancelled, .. })
            && run.state != from.state
        {
            assert_eq!(label, "start", "{from:?} -> {run:?}");
        }
        if run.state.is_over() && !from.state.is_over() {
            assert!(from.state == RecordState::Running || label == "cancel", "{label}: {from:?}");
        }
    }
}

#[test]
fn every_reachable_record_can_continue() {
    let edges = walk();
    let mut before: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (from, _, step) in &edges {
        before.entry(format!("{:?}", step.record)).or_default().push(format!("{from:?}"));
    }
    let running = edges.iter().map(|(_, _, step)| &step.record).filter(|run| run.state == RecordState::Running);
    let mut open: Vec<String> = running.map(|run| format!("{run:?}")).collect();
    let mut goes_on = BTreeSet::new();
    while let Some(record) = open.pop() {
        if goes_on.insert(record.clone()) {
            open.extend(before.get(&record).into_iter().flatten().cloned());
        }
    }
    // To do more than a completed run has done, a person starts another run.
    let ended = |step: &RunTransition| matches!(step.record.state, RecordState::Over { end: RunEnd::Completed, .. });
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

fn granted(state: RecordState, step: &RunTransition) -> String {
    let mut words = vec![if step.record.state == state { "as it is".to_owned() } else { word(step.record.state) }];
    words.extend(step.record.stop_request.map(|request| format!("asked to {}", format!("{request:?}").to_lowercase())));
    words.extend(step.effects.iter().filter_map(|effect| match effect {
        RunAction::MoveToBack => Some("behind the others".to_owned()),
        RunAction::Stop(_) => Some("the session ends".to_owned()),
        RunAction::AwaitStep => Some("one iteration".to_owned()),
        _ => None,
    }));
    words.join(", ")
}

/// The refusals for the page: their texts, and the commands that they name.
pub(crate) fn refusals_table() -> String {
    let mut sentences = BTreeMap::new();
    let runs = states().into_iter().map(run);
    let mut add = |refusal: RequestRefusal| {
        sentences.insert(
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
    let running = run(RecordState::Running);
    let obstructed = RequestContext { blocker: Some(&found.obstacle), ..found.situation(&running) };
    handle_request(&running, requests()[4].1.clone(), &obstructed).err().into_iter().for_each(&mut add);
    let fork = StartRequest { start_spec: StartSpec { fork: true, ..order().start_spec }, ..order() };
    answer(&running, &RunRequest::Start(fork)).err().into_iter().for_each(&mut add);
    let empty = Decision::Reject { reasons: String::new() };
    answer(&run(RecordState::WaitsForPerson), &RunRequest::Review { decision: empty, iter: 3, signature: None })
        .err()
        .into_iter()
        .for_each(&mut add);
    let waiting = run(RecordState::WaitsForPerson);
    let mut signed = Found::new();
    signed.policy.review_signed = true;
    let unsigned = RunRequest::Review { decision: Decision::Approve, iter: 3, signature: None };
    handle_request(&waiting, unsigned, &signed.situation(&waiting)).err().into_iter().for_each(&mut add);
    let other = RunRequest::Review { decision: Decision::Approve, iter: 2, signature: None };
    answer(&waiting, &other).err().into_iter().for_each(&mut add);
    let mut text = String::from("| refusal | says | and names |\n|---|---|---|\n");
    for (name, (message, command)) in sentences {
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
