//! What a run does next: the order of precedence, waits, roles, stalls, and what `resume` resets.

use jiff::Timestamp;
use protocol::answer::AgentAnswer;
use protocol::state::{Attempt, Deaths, Feedback, RunState, Stall, UsageTotal};
use protocol::tree::{Node, TaskTree};
use protocol::words::{FailureClass, GuardOutcome, IterationStatus, PhaseName, Role, RunStatus, VerdictName};
use runner_config::ReviewPolicy;
use runner_core::iteration::session_failure::ClassifiedFailure;
use runner_core::policy::{AgentKinds, Policy};
use runner_core::run::approval::{Decision, PendingNode, ReviewDecision, find_pending};
use runner_core::run::fallback::{self, ServiceOutage};
use runner_core::run::usage::ResourceUsage;
use runner_core::run::{
    NextStep, RunEnd, RunInputs, StopRequest, decide_next, needs_packing, reset_counters, session_role, state_on_resume,
};
use runner_core::verdict::{FaultKind, SessionEndKind, SessionTask, StopCause, Verdict};

use crate::fixture::{fault, inner, leaf, node, passed, sample, tree, verdicts};

/// All inputs of `decide_next`.
struct NextSituation {
    policy: Policy,
    tree: TaskTree,
    state: RunState,
    feedback: Feedback,
    word: Option<ReviewDecision>,
    verdict: Option<Verdict>,
    outages: Vec<ServiceOutage>,
    tried: ResourceUsage,
    stop_request: Option<StopRequest>,
}

impl NextSituation {
    fn new() -> Self {
        Self {
            policy: Policy { kinds: kinds(&["first"]), ..Policy::default() },
            tree: sample(),
            state: RunState { run_id: Some("run-1".to_owned()), ..RunState::default() },
            feedback: Feedback::default(),
            word: None,
            verdict: None,
            outages: Vec::new(),
            tried: ResourceUsage::default(),
            stop_request: None,
        }
    }

    fn with(set: impl FnOnce(&mut Self)) -> Self {
        let mut situation = Self::new();
        set(&mut situation);
        situation
    }

    fn next(&self) -> NextStep {
        let ended = self.verdict.as_ref();
        let outages = ended.map(|verdict| fallback::outages_after(&self.outages, "first", verdict, now()));
        decide_next(&self.standing(outages.as_ref().unwrap_or(&self.outages)), ended, self.stop_request)
    }

    fn standing<'a>(&'a self, outages: &'a [ServiceOutage]) -> RunInputs<'a> {
        RunInputs {
            policy: &self.policy,
            tree: &self.tree,
            run_state: &self.state,
            feedback: &self.feedback,
            review_decision: self.word.as_ref(),
            outages,
            retry_usage: &self.tried,
            now: now(),
        }
    }

    fn task(&self) -> SessionTask {
        match self.next() {
            NextStep::Continue(task) => task,
            other => panic!("it does not continue: {other:?}"),
        }
    }
}

fn kinds(words: &[&str]) -> AgentKinds {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    AgentKinds { work: words.clone(), plan: words.clone(), review: words }
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

/// The next state, in words.
fn state(next: &NextStep) -> RunStatus {
    match next {
        NextStep::Continue(_) => RunStatus::Running,
        NextStep::Wait(..) | NextStep::WaitForPerson(_) => RunStatus::Waiting,
        NextStep::Pause(_) => RunStatus::Paused,
        NextStep::Hold(_) => RunStatus::Held,
        NextStep::End { end, .. } => end.status(),
    }
}

fn pass_all(tree: &mut TaskTree) {
    runner_core::tree::for_each_node_mut(tree, |node| node.passes = true);
}

/// Finishes `b` in iteration 7, to be reviewed by a person.
fn finish(case: &mut NextSituation) {
    case.policy.review = ReviewPolicy::Human;
    case.state.last_status = Some(IterationStatus::Done);
    case.state.last_guard = Some(GuardOutcome::Pass);
    case.state.last_node = Some("b".to_owned());
    case.state.next_iter = case.state.next_iter.max(8);
}

/// A person's decision on the node that `finish` finished.
fn word(iter: u32, decision: Decision) -> ReviewDecision {
    ReviewDecision { on: PendingNode { node: "b".to_owned(), iter }, decision, signature: None }
}

type Reason = (&'static str, RunStatus, fn(&mut NextSituation));

/// The reasons why a run does not continue, in order of precedence; reasons that lead to the same state are adjacent.
fn reasons() -> Vec<Reason> {
    vec![
        ("complete", RunStatus::Completed, |case| pass_all(&mut case.tree)),
        ("exhausted", RunStatus::Stuck, |case| node(&mut case.tree, "b").attempts = 3),
        ("stalled", RunStatus::Stuck, |case| case.state.stall.count = 5),
        ("decomposing", RunStatus::Stuck, |case| case.state.decomposed_in_row = 20),
        ("misconfigured", RunStatus::Failed, |case| {
            case.verdict = Some(Verdict::Misconfigured { what: "log in".to_owned() });
        }),
        ("deaths", RunStatus::Failed, |case| case.state.deaths.count = 10),
        ("faults", RunStatus::Failed, |case| case.state.consecutive_faults = 3),
        ("timed out", RunStatus::TimedOut, |case| case.verdict = Some(Verdict::Timeout { during: PhaseName::Guard })),
        ("iterations", RunStatus::Limit, |case| case.state.next_iter = 101),
        ("cost", RunStatus::Limit, |case| {
            case.policy.max_cost_micro_usd = Some(5);
            case.state.usage.cost_micro_usd = Some(5);
        }),
        ("tokens", RunStatus::Limit, |case| {
            case.policy.max_tokens = Some(6);
            case.state.usage.input_tokens = Some(1);
            case.state.usage.cached_tokens = Some(2);
            case.state.usage.output_tokens = Some(3);
        }),
        ("time", RunStatus::Limit, |case| {
            case.policy.max_run_ms = Some(1_000);
            case.state.elapsed_ms = 1_000;
        }),
        ("cancel --now", RunStatus::Cancelled, |case| {
            case.verdict = Some(Verdict::Interrupted { by: StopCause::Cancel });
        }),
        ("cancel", RunStatus::Cancelled, |case| case.stop_request = Some(StopRequest::Cancel)),
        ("pause --now", RunStatus::Paused, |case| case.verdict = Some(Verdict::Interrupted { by: StopCause::Pause })),
        ("pause", RunStatus::Paused, |case| case.stop_request = Some(StopRequest::Pause)),
        ("unavailable", RunStatus::Waiting, |case| {
            case.verdict = Some(Verdict::Unavailable { why: "limit".to_owned(), until: None });
        }),
        ("pending", RunStatus::Waiting, finish),
    ]
}

/// The only agent has failed so many times in a row, in words that no rule knows.
fn fail_unexplained(it: &mut NextSituation, times: u32) {
    let failure = ClassifiedFailure {
        class: FailureClass::Unexplained,
        why: "it exited with code 1: E_NEW".to_owned(),
        until: None,
        fix: None,
    };
    let SessionEndKind::<AgentAnswer>::Unavailable { why, until } = failure.end_kind() else {
        panic!("it is tried again")
    };
    let verdict = Verdict::Unavailable { why, until };
    for _ in 1..times {
        it.outages = fallback::outages_after(&it.outages, "first", &verdict, now());
    }
    it.verdict = Some(verdict);
}

#[test]
fn an_agent_that_fails_without_tokens_is_tried_again_for_six_hours() {
    let next = |times| NextSituation::with(|it| fail_unexplained(it, times)).next();
    let NextStep::Wait(wait, reason) = next(9) else { panic!("it does not wait") };
    assert_eq!(wait.until.to_string(), "2026-01-01T13:00:00Z");
    assert_eq!(reason.message, "the agent failed before it used a token: it exited with code 1: E_NEW");
    let NextStep::End { end: RunEnd::Failed, reason } = next(10) else { panic!("it does not end") };
    assert!(reason.message.ends_with("E_NEW; it was tried again for six hours"), "{}", reason.message);
    let other = NextSituation::with(|it| {
        fail_unexplained(it, 10);
        it.policy.kinds = kinds(&["first", "second"]);
    });
    assert_eq!(other.task().kind.as_deref(), Some("second"), "another agent works");
}

#[test]
fn each_reason_alone_decides() {
    for (name, expect, set) in reasons() {
        assert_eq!(state(&NextSituation::with(set).next()), expect, "{name}");
    }
}

#[test]
fn of_two_reasons_the_first_of_the_order_decides() {
    let reasons = reasons();
    for (at, (first, expect, set_first)) in reasons.iter().enumerate() {
        for (second, _, set_second) in &reasons[at + 1..] {
            let mut case = NextSituation::new();
            set_second(&mut case);
            set_first(&mut case);
            // To wait for a person uses nothing.
            let is_hidden = (*expect, *second) == (RunStatus::Limit, "pending");
            let expect = if is_hidden { RunStatus::Waiting } else { *expect };
            assert_eq!(state(&case.next()), expect, "{first} and {second}");
        }
    }
}

#[test]
fn every_stop_says_why_in_a_sentence_and_names_a_command() {
    for (name, expect, set) in reasons() {
        let reason = match NextSituation::with(set).next() {
            NextStep::Wait(_, reason)
            | NextStep::WaitForPerson(reason)
            | NextStep::Pause(reason)
            | NextStep::Hold(reason)
            | NextStep::End { reason, .. } => reason,
            NextStep::Continue(task) => panic!("{name} continues: {task:?}"),
        };
        assert!(!reason.message.is_empty() && !reason.message.contains('\n'), "{name}: {}", reason.message);
        let goes_on = |command: &str| {
            ["resume", "start", "approve", "retry", "note", "config set"]
                .iter()
                .any(|known| command.strip_prefix("runnerctl ").is_some_and(|command| command.starts_with(known)))
        };
        assert_eq!(reason.command.as_deref().is_some_and(goes_on), expect != RunStatus::Completed, "{name}");
    }
}

#[test]
fn a_finished_node_waits_for_a_person_until_anything_about_it_is_another() {
    type Change = fn(&mut NextSituation);
    let changes: [Change; 7] = [
        |case| case.policy.review = ReviewPolicy::Off,
        |case| case.policy.review = ReviewPolicy::Agent,
        |case| case.state.last_status = Some(IterationStatus::Fault),
        |case| case.state.last_guard = Some(GuardOutcome::Fail),
        |case| case.state.last_node = Some("c1".to_owned()),
        |case| node(&mut case.tree, "b").children = vec![leaf("b.1", 1)],
        |case| {
            let rejected =
                Attempt { iter: 7, verdict: VerdictName::Rejected, detail: None, summary: None, failure_digest: None };
            case.feedback.nodes.entry("b".to_owned()).or_default().history.push(rejected);
        },
    ];
    let case = NextSituation::with(finish);
    assert_eq!(find_pending(&case.standing(&[])), Some(PendingNode { node: "b".to_owned(), iter: 7 }));
    for change in changes {
        let case = NextSituation::with(|case| {
            finish(case);
            change(case);
        });
        assert_eq!(find_pending(&case.standing(&[])), None);
        assert_eq!(state(&case.next()), RunStatus::Running);
    }
    let required = NextSituation::with(|case| {
        finish(case);
        (case.policy.review, case.state.review_required) = (ReviewPolicy::Off, true);
    });
    let NextStep::WaitForPerson(reason) = required.next() else { panic!("{:?}", required.next()) };
    assert!(reason.message.contains("the guard's definition has changed"), "{}", reason.message);
}

#[test]
fn a_persons_word_is_an_iteration_without_a_session_whatever_the_ceilings_say() {
    for decision in [Decision::Approve, Decision::Reject { reasons: "no test".to_owned() }] {
        let case = NextSituation::with(|case| {
            case.state.next_iter = 101;
            finish(case);
            case.word = Some(word(100, decision.clone()));
        });
        let task = case.task();
        assert_eq!((task.role, task.kind, task.decision), (Role::Human, None, Some(decision)));
        assert_eq!((task.node.as_str(), task.iter), ("b", 101));
    }
}

#[test]
fn a_word_on_another_iteration_or_after_the_one_that_it_was_is_not_heard() {
    let late = NextSituation::with(|case| {
        finish(case);
        case.word = Some(word(6, Decision::Approve));
    });
    assert_eq!(state(&late.next()), RunStatus::Waiting);
    let missing = NextSituation::with(|case| {
        finish(case);
        case.word = Some(word(7, Decision::Approve));
        case.verdict = Some(Verdict::Misconfigured { what: "install just".to_owned() });
    });
    assert_eq!(state(&missing.next()), RunStatus::Failed, "it is not said again at once");
}

#[test]
fn nobody_works_while_nobody_can_review() {
    let case = NextSituation::with(|case| {
        case.policy.review = ReviewPolicy::Agent;
        case.policy.kinds.review = vec!["judge".to_owned()];
        let limit = Verdict::Unavailable { why: "limit".to_owned(), until: None };
        case.outages = fallback::outages_after(&[], "judge", &limit, now());
    });
    assert_eq!(state(&case.next()), RunStatus::Waiting);
    let case = NextSituation { outages: Vec::new(), ..case };
    assert_eq!(case.task().reviewer.as_deref(), Some("judge"));
}

#[test]
fn verdicts_that_continue_a_run_continue_it() {
    for verdict in verdicts() {
        let stops = matches!(
            verdict,
            Verdict::Unavailable { .. }
                | Verdict::Timeout { .. }
                | Verdict::Misconfigured { .. }
                | Verdict::Interrupted { .. }
        );
        let next = NextSituation::with(|case| case.verdict = Some(verdict.clone())).next();
        assert_eq!(state(&next) == RunStatus::Running, !stops, "{verdict:?}");
    }
    for by in [StopCause::Shutdown, StopCause::Death] {
        let next = NextSituation::with(|case| case.verdict = Some(Verdict::Interrupted { by })).next();
        assert_eq!(state(&next), RunStatus::Running, "{by:?}");
    }
}

#[test]
fn counters_below_their_limit_let_a_run_continue() {
    let case = NextSituation::with(|case| {
        case.policy.max_cost_micro_usd = Some(6);
        case.policy.max_tokens = Some(6);
        case.policy.max_run_ms = Some(6);
        case.state = RunState {
            stall: Stall { digest: None, count: 4 },
            decomposed_in_row: 19,
            deaths: Deaths { node: Some("b".to_owned()), count: 9 },
            consecutive_faults: 2,
            next_iter: 100,
            elapsed_ms: 5,
            ..case.state.clone()
        };
        case.state.usage.cost_micro_usd = Some(5);
        case.state.usage.output_tokens = Some(5);
        case.verdict = Some(fault());
        node(&mut case.tree, "b").attempts = 2;
    });
    assert_eq!(state(&case.next()), RunStatus::Running);
}

#[test]
fn an_allowance_adds_to_the_iterations() {
    let at = |next_iter| {
        state(&NextSituation::with(|case| (case.state.next_iter, case.state.allowance) = (next_iter, 20)).next())
    };
    assert_eq!((at(120), at(121)), (RunStatus::Running, RunStatus::Limit));
}

#[test]
fn without_ceilings_nothing_is_counted() {
    let case = NextSituation::with(|case| {
        case.state.usage.cost_micro_usd = Some(u64::MAX);
        case.state.usage.output_tokens = Some(u64::MAX);
        case.state.elapsed_ms = u64::MAX;
    });
    assert_eq!(state(&case.next()), RunStatus::Running);
}

#[test]
fn what_was_tried_without_a_commit_counts_towards_every_ceiling() {
    let with = |set: fn(&mut Policy), tried: u64| {
        let case = NextSituation::with(|case| {
            set(&mut case.policy);
            case.state.usage = UsageTotal { cost_micro_usd: Some(4), cached_tokens: Some(4), ..UsageTotal::default() };
            case.state.elapsed_ms = 4;
            case.tried.usage =
                UsageTotal { cost_micro_usd: Some(tried), input_tokens: Some(tried), ..UsageTotal::default() };
            case.tried.elapsed_ms = tried;
        });
        state(&case.next())
    };
    let ceilings: [fn(&mut Policy); 3] = [
        |policy| policy.max_cost_micro_usd = Some(6),
        |policy| policy.max_tokens = Some(6),
        |policy| policy.max_run_ms = Some(6),
    ];
    for set in ceilings {
        assert_eq!((with(set, 1), with(set, 2)), (RunStatus::Running, RunStatus::Limit));
    }
}

#[test]
fn a_session_is_asked_of_the_first_kind_that_is_not_out() {
    let with = |verdict: Option<Verdict>| {
        NextSituation::with(|case| (case.policy.kinds, case.verdict) = (kinds(&["first", "second"]), verdict))
            .task()
            .kind
    };
    assert_eq!(with(None).as_deref(), Some("first"));
    assert_eq!(with(Some(fault())).as_deref(), Some("first"));
    let limit = Verdict::Unavailable { why: "limit".to_owned(), until: None };
    assert_eq!(with(Some(limit)).as_deref(), Some("second"), "it continues instead of waiting");
}

#[test]
fn a_run_waits_at_its_beginning_too_where_every_service_is_known_to_be_out() {
    let unavailable = |why: &str| Verdict::Unavailable { why: why.to_owned(), until: None };
    let case = NextSituation::with(|case| {
        case.policy.kinds = kinds(&["first", "second"]);
        case.outages = fallback::outages_after(&[], "first", &unavailable("limit"), now());
        case.outages = fallback::outages_after(&case.outages, "first", &unavailable("limit"), now());
        case.outages = fallback::outages_after(&case.outages, "second", &unavailable("overloaded"), now());
    });
    let NextStep::Wait(wait, reason) = case.next() else { panic!("it does not wait") };
    assert_eq!(wait.until.to_string(), "2026-01-01T12:01:00Z", "the earliest");
    assert_eq!(reason.message, "no service is available: first: limit; second: overloaded");
    assert_eq!(reason.command.as_deref(), Some("runnerctl resume --now"));
}

#[test]
fn each_role_has_kinds_of_its_own() {
    let mut case = NextSituation::with(|case| {
        case.policy.kinds.plan = vec!["planner".to_owned()];
        case.outages = fallback::outages_after(
            &[],
            "first",
            &Verdict::Unavailable { why: "limit".to_owned(), until: None },
            now(),
        );
    });
    assert_eq!(state(&case.next()), RunStatus::Waiting, "a worker is next");
    node(&mut case.tree, "b").attempts = 2;
    assert_eq!(case.task().kind.as_deref(), Some("planner"));
}

#[test]
fn the_task_tells_the_leaf_its_path_and_its_attempts() {
    let case = NextSituation::with(|case| {
        case.state.next_iter = 8;
        node(&mut case.tree, "b").passes = true;
        node(&mut case.tree, "c1").attempts = 1;
    });
    let task = case.task();
    assert_eq!((task.run.as_str(), task.iter, task.node.as_str()), ("run-1", 8, "c1"));
    assert_eq!((task.path, task.attempts, task.max_attempts), (vec!["root".into(), "c".into(), "c1".into()], 1, 3));
}

#[test]
fn roles_follow_from_repair_root_and_the_last_attempt() {
    let with = |attempts, max_attempts| Node { attempts, max_attempts, ..leaf("b", 1) };
    let state = RunState::default();
    for (attempts, max_attempts, expect) in [
        (0, 1, Role::Worker),
        (0, 2, Role::Worker),
        (1, 2, Role::Planner),
        (0, 3, Role::Worker),
        (1, 3, Role::Worker),
        (2, 3, Role::Planner),
        (8, 10, Role::Worker),
        (9, 10, Role::Planner),
        (u32::MAX, u32::MAX, Role::Worker),
    ] {
        assert_eq!(session_role(&state, &with(attempts, max_attempts), false), expect, "{attempts}/{max_attempts}");
        assert_eq!(session_role(&state, &with(attempts, max_attempts), true), Role::Planner);
    }
    let repair = RunState { repair: Some("b".to_owned()), ..state.clone() };
    assert_eq!(session_role(&repair, &with(2, 3), true), Role::Repair);
    let other = RunState { repair: Some("a".to_owned()), ..state };
    assert_eq!(session_role(&other, &with(2, 3), false), Role::Planner);
}

#[test]
fn a_planner_may_narrow_on_the_last_attempt_once_per_node() {
    let narrowing = |tree: TaskTree, set: fn(&mut RunState)| {
        let case = NextSituation::with(|case| {
            case.tree = tree;
            set(&mut case.state);
        });
        case.task().narrowing
    };
    let at = |attempts, max_attempts| {
        let mut tree = sample();
        (node(&mut tree, "b").attempts, node(&mut tree, "b").max_attempts) = (attempts, max_attempts);
        tree
    };
    let alone = |attempts, max_attempts| tree(Node { attempts, max_attempts, ..leaf("root", 0) });
    assert!(narrowing(at(2, 3), |_| {}));
    assert!(!narrowing(at(1, 3), |_| {}));
    assert!(!narrowing(at(2, 3), |state| state.narrowed = vec!["a".to_owned(), "b".to_owned()]));
    assert!(narrowing(at(2, 3), |state| state.narrowed = vec!["a".to_owned()]));
    assert!(!narrowing(at(2, 3), |state| state.repair = Some("b".to_owned())));
    assert!(!narrowing(at(0, 1), |_| {}), "a worker does not narrow");
    assert!(!narrowing(alone(0, 3), |_| {}), "the root's planner has attempts left");
    assert!(narrowing(alone(2, 3), |_| {}));
    assert!(narrowing(alone(0, 1), |_| {}), "an only attempt is the last one");
}

#[test]
fn the_root_alone_is_planned() {
    let alone = NextSituation::with(|case| case.tree = tree(leaf("root", 0)));
    assert_eq!(alone.task().role, Role::Planner);
    let below = NextSituation::with(|case| case.tree = tree(inner("root", 0, vec![passed("a", 1), leaf("b", 2)])));
    assert_eq!(below.task().role, Role::Worker);
}

#[test]
fn failed_run_says_what_its_last_session_came_to() {
    let message_of = |count, kind, what: &str| {
        let case = NextSituation::with(|case| {
            (case.policy.max_consecutive_faults, case.state.consecutive_faults) = (count, count);
            case.verdict = Some(Verdict::Fault { kind, what: what.to_owned() });
        });
        match case.next() {
            NextStep::End { reason, .. } => reason.message,
            other => panic!("it continues: {other:?}"),
        }
    };
    let message = |count| message_of(count, FaultKind::Exit, "it exited with code 3");
    assert!(message(1).starts_with("a session gave no valid answer (it exited with code 3); "), "{}", message(1));
    let expected = "3 sessions in a row gave no valid answer, last on task b (it exited with code 3); ";
    assert!(message(3).starts_with(expected), "{}", message(3));
    let lost = message_of(1, FaultKind::Guard, "it was lost");
    assert_eq!(
        lost,
        "a session could not be checked (it was lost); `runnerctl log --guard` shows what the last one printed"
    );
    let lost = message_of(3, FaultKind::Guard, "it was lost");
    let expected = "3 sessions in a row gave no valid answer or could not be checked, last on task b (it was lost); ";
    assert!(lost.starts_with(expected), "{lost}");
}

#[test]
fn a_run_that_is_stuck_says_what_its_last_session_came_to() {
    let case = NextSituation::with(|case| {
        node(&mut case.tree, "b").attempts = 3;
        let red = Attempt {
            iter: 7,
            verdict: VerdictName::RedGuard,
            detail: Some("exit 101: test_decode".to_owned()),
            summary: None,
            failure_digest: None,
        };
        case.feedback.nodes.entry("b".to_owned()).or_default().history.push(red);
    });
    let NextStep::End { reason, .. } = case.next() else { panic!("it continues: {:?}", case.next()) };
    let said = "task b has used its 3 attempts; iteration 7 claimed done; the checks failed (exit 101): test_decode";
    assert_eq!(reason.message, said);
}

#[test]
fn resume_resets_what_stopped_the_run_and_keeps_the_rest() {
    let stopped = RunState {
        run_id: Some("run-1".to_owned()),
        next_iter: 9,
        consecutive_faults: 3,
        stall: Stall { digest: Some("d".to_owned()), count: 5 },
        decomposed_in_row: 20,
        deaths: Deaths { node: Some("b".to_owned()), count: 10 },
        narrowed: vec!["b".to_owned()],
        repair: Some("b".to_owned()),
        notes_used: vec!["n1".to_owned()],
        allowance: 5,
        elapsed_ms: 77,
        ..RunState::default()
    };
    let expect = RunState {
        consecutive_faults: 0,
        stall: Stall::default(),
        decomposed_in_row: 0,
        deaths: Deaths::default(),
        allowance: 25,
        ..stopped.clone()
    };
    assert_eq!(reset_counters(&stopped, 20), expect);
    assert_eq!(reset_counters(&expect, 0), expect);
    assert_eq!(reset_counters(&expect, u32::MAX).allowance, u32::MAX);
}

#[test]
fn counters_are_reset_only_where_they_would_stop_a_run_that_had_ended() {
    let resume = |situation: &NextSituation, had_ended: bool, more: u32| {
        state_on_resume(&situation.standing(&[]), had_ended, more)
    };
    let counting = NextSituation::with(|situation| situation.state.consecutive_faults = 1);
    assert_eq!(resume(&counting, true, 0), counting.state, "one fault does not stop a run");
    let failed = NextSituation::with(|situation| situation.state.consecutive_faults = 3);
    assert_eq!(resume(&failed, true, 0).consecutive_faults, 0);
    assert_eq!(resume(&failed, false, 2), RunState { allowance: 2, ..failed.state.clone() });
}

#[test]
fn git_packs_where_some_thousand_objects_lie_about() {
    let packed: Vec<usize> = (0..=6).filter(|found| needs_packing(*found)).collect();
    assert_eq!(packed, [4, 5, 6]);
}
