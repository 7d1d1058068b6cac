//! Drives thousands of iterations through a scripted world on a paused clock: every answer, obstacle, stop, crash and
//! orderly exit comes from a seed, which a failure reports. No processes, files or repositories.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::words::{Containment, Role};
use runner_core::guard::definition::DefinitionDiff;
use runner_core::iteration::{GuardEnd, GuardEndKind, IterationEffect, IterationEnd, IterationEvent, Phase, decide};
use runner_core::policy::Policy;
use runner_core::run::blocker::{Blocker, Transience};
use runner_core::verdict::{
    FaultKind, SessionEnd, SessionEndKind, SessionFinding, SessionTask, StopCause, TreeFinding, Verdict,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::iteration::drive::{DriveError, DriveOutcome, IterationDriver};
use super::iteration::world::{DriveControl, EffectWorld, EventLog};
use super::journal::{self, JournalContents, JournalEntry, JournalError, JournalHeader};
use crate::repo::durable::DurableError;

/// Number of seeds to try.
const SEEDS: u64 = 5_000;
/// Time limit by which an iteration must end.
const LONGEST: Duration = Duration::from_hours(48);
/// The longest a process takes to exit when asked to.
const GRACE: Duration = Duration::from_secs(10);
/// Number of daemon processes after which there are no more outside events.
const EVENTFUL_LIVES: u32 = 4;

/// Random numbers shared by all participants: the same seed, the same numbers.
#[derive(Clone)]
struct SharedRandom(Arc<Mutex<runner_testkit::RandomSource>>);

impl SharedRandom {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(runner_testkit::RandomSource::new(seed))))
    }

    fn below(&self, limit: u64) -> u64 {
        self.0.lock().unwrap().below(limit)
    }

    fn one_in(&self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What is durable or observed: both outlive the daemon.
#[derive(Debug, Default)]
struct LastingState {
    entries: Vec<JournalEntry>,
    sessions: u32,
    commits: u32,
    in_flight: Option<IterationEffect>,
}

#[derive(Clone, Default)]
struct SharedLasting(Arc<Mutex<LastingState>>);

impl SharedLasting {
    fn lock(&self) -> MutexGuard<'_, LastingState> {
        self.0.lock().unwrap()
    }
}

struct ScriptedWorld {
    random: SharedRandom,
    lasting: SharedLasting,
    policy: Policy,
}

impl EffectWorld for ScriptedWorld {
    fn perform_effect(
        &mut self,
        phase: &Phase,
        stop: &CancellationToken,
    ) -> impl Future<Output = IterationEvent> + Send {
        let effect = phase.effect().expect("a phase that is over has no effect");
        let scene = EffectPerformance {
            random: self.random.clone(),
            lasting: self.lasting.clone(),
            effect,
            has_commit: matches!(phase, Phase::Settle { outcome } if outcome.leaves_commit()),
            stop: stop.clone(),
        };
        scene.play()
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}

struct EffectPerformance {
    random: SharedRandom,
    lasting: SharedLasting,
    effect: IterationEffect,
    has_commit: bool,
    stop: CancellationToken,
}

impl EffectPerformance {
    async fn play(self) -> IterationEvent {
        // A daemon that died while recording an event does not act on it.
        tokio::task::yield_now().await;
        assert_eq!(self.lasting.lock().in_flight.replace(self.effect), None, "an effect was dropped while it ran");
        let event = self.perform().await;
        self.lasting.lock().in_flight = None;
        event
    }

    async fn perform(&self) -> IterationEvent {
        if self.random.one_in(6) {
            sleep(Duration::from_millis(self.random.below(200))).await;
            return blocked_event("the disk is full", Transience::Passing);
        }
        match self.effect {
            IterationEffect::Open => self.after_short_delay(IterationEvent::Opened(sample_task())).await,
            IterationEffect::Brief => self.after_short_delay(IterationEvent::Briefed).await,
            IterationEffect::RunSession => {
                self.lasting.lock().sessions += 1;
                let is_cut = self.run_process().await;
                IterationEvent::SessionEnded(sample_session(if is_cut {
                    SessionEndKind::Cut
                } else {
                    self.random_answer()
                }))
            }
            IterationEffect::EndSession => {
                self.after_short_delay(IterationEvent::SessionEnded(sample_session(SessionEndKind::Cut))).await
            }
            IterationEffect::Inspect => {
                self.after_short_delay(IterationEvent::Inspected(sample_finding(self.random.one_in(4)))).await
            }
            IterationEffect::RunGuard | IterationEffect::RunAccepted | IterationEffect::RerunGuard => {
                let how = match (self.run_process().await, self.random.below(7)) {
                    (true, _) => GuardEndKind::Cut,
                    (false, 0) => GuardEndKind::Lost,
                    (false, code) => GuardEndKind::Exited(i32::from(code <= 2)),
                };
                let paths = if self.random.one_in(3) { vec!["justfile".to_owned()] } else { Vec::new() };
                let departure = DefinitionDiff { paths, has_accepted: true };
                let containment = Some(Containment::Walk);
                IterationEvent::GuardEnded(GuardEnd { departure, containment, ..GuardEnd::new(how) })
            }
            IterationEffect::EndGuard => {
                self.after_short_delay(IterationEvent::GuardEnded(GuardEnd::new(GuardEndKind::Cut))).await
            }
            IterationEffect::Settle => self.settle_once().await,
            IterationEffect::RunReview | IterationEffect::EndReview => panic!("nobody reviews"),
        }
    }

    async fn after_short_delay(&self, event: IterationEvent) -> IterationEvent {
        sleep(Duration::from_millis(1 + self.random.below(50))).await;
        event
    }

    /// Lets a process run for a while; true if it was asked to end before it was done.
    async fn run_process(&self) -> bool {
        tokio::select! {
            () = sleep(Duration::from_secs(self.random.below(1_200))) => false,
            () = self.stop.cancelled() => {
                sleep(Duration::from_secs(self.random.below(GRACE.as_secs()))).await;
                true
            }
        }
    }

    /// Commits unless an earlier process did, with a delay before and after.
    async fn settle_once(&self) -> IterationEvent {
        sleep(Duration::from_millis(1 + self.random.below(50))).await;
        if self.has_commit {
            let mut lasting = self.lasting.lock();
            lasting.commits = lasting.commits.max(1);
        }
        self.after_short_delay(IterationEvent::Settled { commit: self.has_commit.then(|| "c".repeat(40)) }).await
    }

    fn random_answer(&self) -> SessionEndKind {
        let answered =
            |status| SessionEndKind::Answered(AgentAnswer { status, summary: "so far".to_owned(), children: None });
        match self.random.below(6) {
            0 | 1 => answered(AnswerStatus::Done),
            2 => answered(AnswerStatus::Retry),
            3 => SessionEndKind::Faulty { kind: FaultKind::Exit, what: "it exited with code 3".to_owned() },
            4 => SessionEndKind::Unavailable { why: "overloaded".to_owned(), until: None },
            _ => SessionEndKind::TimedOut,
        }
    }
}

struct ScriptedControl {
    stops: Vec<(Instant, StopCause)>,
    is_leaving: bool,
    is_cancelled: bool,
    obstacles: u32,
}

impl DriveControl for ScriptedControl {
    async fn wait_for_stop(&mut self) -> StopCause {
        let Some((at, cause)) = self.stops.first().copied() else { return std::future::pending().await };
        sleep_until(at).await;
        self.stops.remove(0);
        self.is_leaving |= cause == StopCause::Shutdown;
        self.is_cancelled |= cause == StopCause::Cancel;
        cause
    }

    fn is_shutting_down(&self) -> bool {
        self.is_leaving
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    fn on_phase_entered(&mut self, _: &Phase) {}

    fn on_blocked(&mut self, _: &Blocker) {
        self.obstacles += 1;
    }

    async fn wait_for_retry(&mut self, pause: Duration) -> Option<StopCause> {
        tokio::select! {
            biased;
            cause = self.wait_for_stop() => Some(cause),
            () = sleep(pause) => None,
        }
    }
}

/// A journal that dies with the daemon at its `dies_at`-th event: before or after it is durable.
struct ScriptedLog {
    lasting: SharedLasting,
    dies_at: Option<u64>,
    is_kept: bool,
    refusals: u64,
    random: SharedRandom,
    death: CancellationToken,
}

impl EventLog for ScriptedLog {
    fn record_event(&mut self, event: &IterationEvent, _: &Policy) -> Result<(), JournalError> {
        if self.refusals > 0 && self.random.one_in(3) {
            self.refusals -= 1;
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(DurableError::Io { action: "appending to", path: "journal.jsonl".into(), source }.into());
        }
        let dies = self.dies_at.as_mut().is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        });
        if dies {
            self.death.cancel();
        }
        if self.is_kept || !self.death.is_cancelled() {
            self.lasting.lock().entries.push(JournalEntry { at: jiff::Timestamp::UNIX_EPOCH, event: event.clone() });
        }
        Ok(())
    }
}

/// One iteration from its seed.
struct IterationSimulation {
    random: SharedRandom,
    lasting: SharedLasting,
    policy: Policy,
    seed: u64,
}

impl IterationSimulation {
    fn new(seed: u64) -> Self {
        Self { random: SharedRandom::new(seed), lasting: SharedLasting::default(), policy: Policy::default(), seed }
    }

    async fn run_to_end(&self) -> IterationEnd {
        for life in 0.. {
            let is_eventful = life < EVENTFUL_LIVES;
            if let Some(DriveOutcome::Finished(end)) = self.live_once(is_eventful).await {
                return end;
            }
            assert!(is_eventful, "seed {}: left without a request: {:#?}", self.seed, self.lasting.lock());
        }
        unreachable!("a life without events ends the iteration")
    }

    /// Runs one daemon process; `None` if it died.
    async fn live_once(&self, is_eventful: bool) -> Option<DriveOutcome> {
        let death = CancellationToken::new();
        let mut log = ScriptedLog {
            lasting: self.lasting.clone(),
            dies_at: (is_eventful && self.random.one_in(2)).then(|| 1 + self.random.below(8)),
            is_kept: self.random.one_in(2),
            refusals: self.random.below(3),
            random: self.random.clone(),
            death: death.clone(),
        };
        let mut world =
            ScriptedWorld { random: self.random.clone(), lasting: self.lasting.clone(), policy: self.policy.clone() };
        let stops = if is_eventful { self.random_stops() } else { Vec::new() };
        let mut control = ScriptedControl { stops, is_leaving: false, is_cancelled: false, obstacles: 0 };
        let phase = self.recovered_phase(&mut log);
        let mut drive = IterationDriver { world: &mut world, control: &mut control, log: &mut log, pending_stop: None };
        let driven = tokio::select! {
            biased;
            () = death.cancelled() => None,
            driven = timeout(LONGEST, drive.drive_iteration(phase)) => {
                Some(driven.unwrap_or_else(|_| panic!("seed {}: it does not end: {:#?}", self.seed, self.lasting.lock())))
            }
        };
        let driven = match driven {
            // Its run has ended; the iteration is driven again to check what holds for every iteration.
            Some(Err(DriveError::Blocked(_) | DriveError::Journal(_))) if control.is_cancelled => None,
            driven => driven.map(|driven| {
                driven.unwrap_or_else(|error| panic!("seed {}: {error}: {:#?}", self.seed, self.lasting.lock()))
            }),
        };
        let driven = driven.filter(|_| !death.is_cancelled());
        let in_flight = self.lasting.lock().in_flight.take();
        assert!(driven.is_none() || in_flight.is_none(), "seed {}: {in_flight:?} was left running", self.seed);
        driven
    }

    /// Continues from the journal, as a restarted daemon does.
    fn recovered_phase(&self, log: &mut ScriptedLog) -> Phase {
        if self.lasting.lock().entries.is_empty() {
            return Phase::Open;
        }
        let phase = self.replayed_phase();
        log.record_surely(&IterationEvent::Restarted, &self.policy);
        decide(&self.policy, phase, IterationEvent::Restarted).unwrap()
    }

    fn replayed_phase(&self) -> Phase {
        let header =
            JournalHeader { version: journal::VERSION, run: "r".into(), mark: "m".into(), policy: self.policy.clone() };
        let recorded = JournalContents { header, entries: self.lasting.lock().entries.clone() };
        let replayed = journal::replay("journal.jsonl".as_ref(), &recorded);
        replayed.unwrap_or_else(|error| panic!("seed {}: {error}: {recorded:#?}", self.seed))
    }

    fn random_stops(&self) -> Vec<(Instant, StopCause)> {
        let causes = [StopCause::Pause, StopCause::Cancel, StopCause::Shutdown];
        let count = self.random.below(3);
        // Half of them arrive during the short phases.
        let limit = if self.random.one_in(2) { 200 } else { 2_400_000 };
        let mut stops: Vec<_> = (0..count)
            .map(|_| Instant::now() + Duration::from_millis(self.random.below(limit)))
            .map(|at| (at, causes[usize::try_from(self.random.below(3)).unwrap()]))
            .collect();
        stops.sort_by_key(|(at, _)| *at);
        stops
    }

    fn check_end(&self, end: &IterationEnd) {
        let replayed = self.replayed_phase();
        let lasting = self.lasting.lock();
        let seen = || format!("seed {}: {end:?}: {lasting:#?}", self.seed);
        assert_eq!(replayed, Phase::Over { end: end.clone() }, "{}", seen());
        let settled =
            lasting.entries.iter().filter(|entry| matches!(entry.event, IterationEvent::Settled { .. })).count();
        match end {
            IterationEnd::Untouched => {
                assert_eq!((settled, lasting.commits, lasting.sessions), (0, 0, 0), "{}", seen());
            }
            IterationEnd::Settled { verdict, commit } => {
                assert_eq!((settled, lasting.commits), (1, u32::from(commit.is_some())), "{}", seen());
                assert!(!self.is_stopped_by_person(&lasting) || is_interrupted(verdict), "{}", seen());
            }
        }
    }

    /// Whether a stop was requested before the end of the iteration was decided.
    fn is_stopped_by_person(&self, lasting: &LastingState) -> bool {
        let mut phase = Phase::Open;
        let mut is_stopped = false;
        for entry in &lasting.entries {
            let is_open = matches!(phase, Phase::Work { .. } | Phase::Inspect { .. } | Phase::Guard { .. });
            let by_person = matches!(entry.event, IterationEvent::Stop(StopCause::Pause | StopCause::Cancel));
            is_stopped |= is_open && by_person;
            phase = decide(&self.policy, phase, entry.event.clone()).unwrap();
        }
        is_stopped
    }
}

impl ScriptedLog {
    fn record_surely(&mut self, event: &IterationEvent, policy: &Policy) {
        while self.record_event(event, policy).is_err() {}
    }
}

fn is_interrupted(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Interrupted { .. })
}

pub(super) fn sample_task() -> SessionTask {
    SessionTask {
        run: "r".into(),
        iter: 1,
        from: "f".repeat(40),
        node: "root.1".into(),
        path: vec!["root".into(), "root.1".into()],
        role: Role::Worker,
        narrowing: false,
        attempts: 0,
        max_attempts: 3,
        kind: None,
        reviewer: None,
        decision: None,
        signature: None,
        recheck: false,
    }
}

pub(super) fn sample_session(how: SessionEndKind) -> SessionEnd {
    SessionEnd { agent: "command".into(), elapsed_ms: 1, ..SessionEnd::new(how) }
}

pub(super) fn sample_finding(is_idle: bool) -> SessionFinding {
    SessionFinding {
        changed: !is_idle,
        changed_code: !is_idle,
        changed_since_base: true,
        ..SessionFinding::new(TreeFinding::UNTOUCHED)
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_an_iteration_is_settled_once_or_leaves_no_trace() {
    for seed in 0..SEEDS {
        let simulation = IterationSimulation::new(seed);
        let end = simulation.run_to_end().await;
        simulation.check_end(&end);
    }
}

fn blocked_event(what: &str, nature: Transience) -> IterationEvent {
    IterationEvent::Obstructed(Blocker { what: what.to_owned(), remedy: "look at it".to_owned(), nature })
}

/// A world in which every effect is blocked.
struct BlockedWorld {
    policy: Policy,
    nature: Transience,
}

impl EffectWorld for BlockedWorld {
    async fn perform_effect(&mut self, _: &Phase, _: &CancellationToken) -> IterationEvent {
        blocked_event("permission denied", self.nature)
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Drives an iteration in which every effect is blocked; returns why it ended, if it did, and the number of attempts.
async fn drive_blocked(nature: Transience, is_cancelled: bool) -> (Option<String>, u32) {
    let simulation = IterationSimulation::new(1);
    let mut world = BlockedWorld { policy: Policy::default(), nature };
    let mut control = ScriptedControl { stops: Vec::new(), is_leaving: false, is_cancelled, obstacles: 0 };
    let mut log = ScriptedLog {
        lasting: simulation.lasting.clone(),
        dies_at: None,
        is_kept: true,
        refusals: 0,
        random: simulation.random.clone(),
        death: CancellationToken::new(),
    };
    let mut drive = IterationDriver { world: &mut world, control: &mut control, log: &mut log, pending_stop: None };
    let driven = timeout(LONGEST, drive.drive_iteration(Phase::Open)).await;
    (driven.ok().map(|driven| driven.unwrap_err().to_string()), control.obstacles)
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_ends_the_drive_after_eight_tries() {
    assert_eq!(drive_blocked(Transience::Lasting, false).await, (Some("permission denied".to_owned()), 8));
}

#[tokio::test(start_paused = true)]
async fn whatever_is_in_the_way_of_a_cancelled_run_ends_the_drive_after_four_tries() {
    for nature in [Transience::Passing, Transience::Lasting] {
        assert_eq!(drive_blocked(nature, true).await, (Some("permission denied".to_owned()), 4), "{nature:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_ends_the_drive_at_once() {
    assert_eq!(drive_blocked(Transience::Lost, false).await, (Some("permission denied".to_owned()), 1));
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_for_days() {
    let (end, tries) = drive_blocked(Transience::Passing, false).await;
    assert_eq!(end, None);
    assert!(tries > 2_000, "{tries}");
}
