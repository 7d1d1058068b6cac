//! Drives thousands of iterations through a scripted world on a paused clock: every answer, obstacle, stop, death and
//! orderly end comes from a seed, which a failure names. No process, no file, no repository.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::words::Role;
use runner_core::definition::Departure;
use runner_core::iteration::{Effect, Event, GuardEnd, GuardHow, Over, Phase, decide};
use runner_core::obstacle::{Nature, Obstruction};
use runner_core::policy::Policy;
use runner_core::verdict::{FaultKind, Finding, SessionEnd, SessionHow, StopCause, Task, TreeFinding, Verdict};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::iteration::drive::{Drive, DriveError, Drove};
use super::iteration::world::{Control, Log, World};
use super::journal::{self, Entry, Header, JournalError, Recorded};
use crate::repo::durable::DurableError;

/// Seeds that are tried.
const SEEDS: u64 = 5_000;
/// Longest life of an iteration, in which it must come to its end.
const LONGEST: Duration = Duration::from_hours(48);
/// Longest a process takes that is asked to end.
const GRACE: Duration = Duration::from_secs(10);
/// Lives after which nothing happens from outside any more.
const EVENTFUL_LIVES: u32 = 4;

/// Numbers that all who take part draw from: the same seed, the same numbers.
#[derive(Clone)]
struct Random(Arc<Mutex<runner_testkit::Random>>);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(runner_testkit::Random::new(seed))))
    }

    fn below(&self, limit: u64) -> u64 {
        self.0.lock().unwrap().below(limit)
    }

    fn one_in(&self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// What is durable, and what is watched: both outlive the daemon.
#[derive(Debug, Default)]
struct Lasting {
    entries: Vec<Entry>,
    sessions: u32,
    commits: u32,
    in_flight: Option<Effect>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Lasting>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lasting> {
        self.0.lock().unwrap()
    }
}

struct ScriptedWorld {
    random: Random,
    lasting: Shared,
    policy: Policy,
}

impl World for ScriptedWorld {
    fn perform(&mut self, phase: &Phase, stop: &CancellationToken) -> impl Future<Output = Event> + Send {
        let effect = phase.effect().expect("a phase that is over has no effect");
        let scene = Performance {
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

struct Performance {
    random: Random,
    lasting: Shared,
    effect: Effect,
    has_commit: bool,
    stop: CancellationToken,
}

impl Performance {
    async fn play(self) -> Event {
        // A daemon that died while it recorded an event does not act upon it.
        tokio::task::yield_now().await;
        assert_eq!(self.lasting.lock().in_flight.replace(self.effect), None, "an effect was dropped while it ran");
        let event = self.perform().await;
        self.lasting.lock().in_flight = None;
        event
    }

    async fn perform(&self) -> Event {
        if self.random.one_in(6) {
            sleep(Duration::from_millis(self.random.below(200))).await;
            return obstructed("the disk is full", Nature::Passing);
        }
        match self.effect {
            Effect::Open => self.briefly(Event::Opened(task())).await,
            Effect::Brief => self.briefly(Event::Briefed).await,
            Effect::RunSession => {
                self.lasting.lock().sessions += 1;
                let is_cut = self.process().await;
                Event::SessionEnded(session(if is_cut { SessionHow::Cut } else { self.answer() }))
            }
            Effect::EndSession => self.briefly(Event::SessionEnded(session(SessionHow::Cut))).await,
            Effect::Inspect => self.briefly(Event::Inspected(finding(self.random.one_in(4)))).await,
            Effect::RunGuard | Effect::RunAccepted => {
                let how = match (self.process().await, self.random.below(7)) {
                    (true, _) => GuardHow::Cut,
                    (false, 0) => GuardHow::Lost,
                    (false, code) => GuardHow::Exited(i32::from(code <= 2)),
                };
                let paths = if self.random.one_in(3) { vec!["justfile".to_owned()] } else { Vec::new() };
                let departure = Departure { paths, has_accepted: true };
                Event::GuardEnded(GuardEnd { departure, ..GuardEnd::new(how) })
            }
            Effect::EndGuard => self.briefly(Event::GuardEnded(GuardEnd::new(GuardHow::Cut))).await,
            Effect::Settle => self.settle().await,
            Effect::RunReview | Effect::EndReview => panic!("nobody reviews"),
        }
    }

    async fn briefly(&self, event: Event) -> Event {
        sleep(Duration::from_millis(1 + self.random.below(50))).await;
        event
    }

    /// Lets a process take its time; true if it was asked to end before it had.
    async fn process(&self) -> bool {
        tokio::select! {
            () = sleep(Duration::from_secs(self.random.below(1_200))) => false,
            () = self.stop.cancelled() => {
                sleep(Duration::from_secs(self.random.below(GRACE.as_secs()))).await;
                true
            }
        }
    }

    /// Commits unless that was done before a death, and takes a moment before and after.
    async fn settle(&self) -> Event {
        sleep(Duration::from_millis(1 + self.random.below(50))).await;
        if self.has_commit {
            let mut lasting = self.lasting.lock();
            lasting.commits = lasting.commits.max(1);
        }
        self.briefly(Event::Settled { commit: self.has_commit.then(|| "c".repeat(40)) }).await
    }

    fn answer(&self) -> SessionHow {
        let answered =
            |status| SessionHow::Answered(AgentAnswer { status, summary: "so far".to_owned(), children: None });
        match self.random.below(6) {
            0 | 1 => answered(AnswerStatus::Done),
            2 => answered(AnswerStatus::Retry),
            3 => SessionHow::Faulty { kind: FaultKind::Exit, what: "it exited with code 3".to_owned() },
            4 => SessionHow::Unavailable { why: "overloaded".to_owned(), until: None },
            _ => SessionHow::TimedOut,
        }
    }
}

struct ScriptedControl {
    stops: Vec<(Instant, StopCause)>,
    is_leaving: bool,
    is_cancelled: bool,
    obstacles: u32,
}

impl Control for ScriptedControl {
    async fn stop(&mut self) -> StopCause {
        let Some((at, cause)) = self.stops.first().copied() else { return std::future::pending().await };
        sleep_until(at).await;
        self.stops.remove(0);
        self.is_leaving |= cause == StopCause::Shutdown;
        self.is_cancelled |= cause == StopCause::Cancel;
        cause
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    fn entered(&mut self, _: &Phase) {}

    fn obstructed(&mut self, _: &Obstruction) {
        self.obstacles += 1;
    }

    async fn wait(&mut self, pause: Duration) -> Option<StopCause> {
        tokio::select! {
            biased;
            cause = self.stop() => Some(cause),
            () = sleep(pause) => None,
        }
    }
}

/// A journal that dies with the daemon at its `dies_at`-th event: before it is durable, or after.
struct ScriptedLog {
    lasting: Shared,
    dies_at: Option<u64>,
    is_kept: bool,
    refusals: u64,
    random: Random,
    death: CancellationToken,
}

impl Log for ScriptedLog {
    fn record(&mut self, event: &Event, _: &Policy) -> Result<(), JournalError> {
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
            self.lasting.lock().entries.push(Entry { at: jiff::Timestamp::UNIX_EPOCH, event: event.clone() });
        }
        Ok(())
    }
}

/// One iteration from its seed.
struct Simulation {
    random: Random,
    lasting: Shared,
    policy: Policy,
    seed: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), lasting: Shared::default(), policy: Policy::default(), seed }
    }

    async fn play(&self) -> Over {
        for life in 0.. {
            let is_eventful = life < EVENTFUL_LIVES;
            if let Some(Drove::Over(end)) = self.live(is_eventful).await {
                return end;
            }
            assert!(is_eventful, "seed {}: left although nobody asked: {:#?}", self.seed, self.lasting.lock());
        }
        unreachable!("a life without events ends the iteration")
    }

    /// One life of the daemon; none if it died.
    async fn live(&self, is_eventful: bool) -> Option<Drove> {
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
        let stops = if is_eventful { self.stops() } else { Vec::new() };
        let mut control = ScriptedControl { stops, is_leaving: false, is_cancelled: false, obstacles: 0 };
        let phase = self.recovered(&mut log);
        let mut drive = Drive { world: &mut world, control: &mut control, log: &mut log, heard: None };
        let driven = tokio::select! {
            biased;
            () = death.cancelled() => None,
            driven = timeout(LONGEST, drive.run(phase)) => {
                Some(driven.unwrap_or_else(|_| panic!("seed {}: it does not end: {:#?}", self.seed, self.lasting.lock())))
            }
        };
        let driven = match driven {
            // Its run has ended; the iteration is gone through once more for what holds of every one.
            Some(Err(DriveError::Obstructed(_) | DriveError::Journal(_))) if control.is_cancelled => None,
            driven => driven.map(|driven| {
                driven.unwrap_or_else(|error| panic!("seed {}: {error}: {:#?}", self.seed, self.lasting.lock()))
            }),
        };
        let driven = driven.filter(|_| !death.is_cancelled());
        let in_flight = self.lasting.lock().in_flight.take();
        assert!(driven.is_none() || in_flight.is_none(), "seed {}: {in_flight:?} was left running", self.seed);
        driven
    }

    /// Goes on where the journal says, as a restarted daemon does.
    fn recovered(&self, log: &mut ScriptedLog) -> Phase {
        if self.lasting.lock().entries.is_empty() {
            return Phase::Open;
        }
        let phase = self.replayed();
        log.record_surely(&Event::Restarted, &self.policy);
        decide(&self.policy, phase, Event::Restarted).unwrap()
    }

    fn replayed(&self) -> Phase {
        let header =
            Header { version: journal::VERSION, run: "r".into(), mark: "m".into(), policy: self.policy.clone() };
        let recorded = Recorded { header, entries: self.lasting.lock().entries.clone() };
        let replayed = journal::replay("journal.jsonl".as_ref(), &recorded);
        replayed.unwrap_or_else(|error| panic!("seed {}: {error}: {recorded:#?}", self.seed))
    }

    fn stops(&self) -> Vec<(Instant, StopCause)> {
        let causes = [StopCause::Pause, StopCause::Cancel, StopCause::Shutdown];
        let count = self.random.below(3);
        // Half of them come while the short phases last.
        let limit = if self.random.one_in(2) { 200 } else { 2_400_000 };
        let mut stops: Vec<_> = (0..count)
            .map(|_| Instant::now() + Duration::from_millis(self.random.below(limit)))
            .map(|at| (at, causes[usize::try_from(self.random.below(3)).unwrap()]))
            .collect();
        stops.sort_by_key(|(at, _)| *at);
        stops
    }

    fn check(&self, end: &Over) {
        let replayed = self.replayed();
        let lasting = self.lasting.lock();
        let seen = || format!("seed {}: {end:?}: {lasting:#?}", self.seed);
        assert_eq!(replayed, Phase::Over { end: end.clone() }, "{}", seen());
        let settled = lasting.entries.iter().filter(|entry| matches!(entry.event, Event::Settled { .. })).count();
        match end {
            Over::Untouched => assert_eq!((settled, lasting.commits, lasting.sessions), (0, 0, 0), "{}", seen()),
            Over::Settled { verdict, commit } => {
                assert_eq!((settled, lasting.commits), (1, u32::from(commit.is_some())), "{}", seen());
                assert!(!self.is_stopped_by_person(&lasting) || is_interrupted(verdict), "{}", seen());
            }
        }
    }

    /// Whether somebody wanted the iteration to end before it was decided how it ends.
    fn is_stopped_by_person(&self, lasting: &Lasting) -> bool {
        let mut phase = Phase::Open;
        let mut is_stopped = false;
        for entry in &lasting.entries {
            let is_open = matches!(phase, Phase::Work { .. } | Phase::Inspect { .. } | Phase::Guard { .. });
            let by_person = matches!(entry.event, Event::Stop(StopCause::Pause | StopCause::Cancel));
            is_stopped |= is_open && by_person;
            phase = decide(&self.policy, phase, entry.event.clone()).unwrap();
        }
        is_stopped
    }
}

impl ScriptedLog {
    fn record_surely(&mut self, event: &Event, policy: &Policy) {
        while self.record(event, policy).is_err() {}
    }
}

fn is_interrupted(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Interrupted { .. })
}

pub(super) fn task() -> Task {
    Task {
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

pub(super) fn session(how: SessionHow) -> SessionEnd {
    SessionEnd { agent: "command".into(), elapsed_ms: 1, ..SessionEnd::new(how) }
}

pub(super) fn finding(is_idle: bool) -> Finding {
    Finding {
        changed: !is_idle,
        changed_code: !is_idle,
        changed_since_base: true,
        ..Finding::new(TreeFinding::UNTOUCHED)
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_an_iteration_is_settled_once_or_leaves_no_trace() {
    for seed in 0..SEEDS {
        let simulation = Simulation::new(seed);
        let end = simulation.play().await;
        simulation.check(&end);
    }
}

fn obstructed(what: &str, nature: Nature) -> Event {
    Event::Obstructed(Obstruction { what: what.to_owned(), remedy: "look at it".to_owned(), nature })
}

/// A world in which nothing can be done.
struct Blocked {
    policy: Policy,
    nature: Nature,
}

impl World for Blocked {
    async fn perform(&mut self, _: &Phase, _: &CancellationToken) -> Event {
        obstructed("permission denied", self.nature)
    }

    fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Drives an iteration in which nothing can be done; returns why it ended, if it did, and the tries that were made.
async fn blocked(nature: Nature, is_cancelled: bool) -> (Option<String>, u32) {
    let simulation = Simulation::new(1);
    let mut world = Blocked { policy: Policy::default(), nature };
    let mut control = ScriptedControl { stops: Vec::new(), is_leaving: false, is_cancelled, obstacles: 0 };
    let mut log = ScriptedLog {
        lasting: simulation.lasting.clone(),
        dies_at: None,
        is_kept: true,
        refusals: 0,
        random: simulation.random.clone(),
        death: CancellationToken::new(),
    };
    let mut drive = Drive { world: &mut world, control: &mut control, log: &mut log, heard: None };
    let driven = timeout(LONGEST, drive.run(Phase::Open)).await;
    (driven.ok().map(|driven| driven.unwrap_err().to_string()), control.obstacles)
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_ends_the_drive_after_eight_tries() {
    assert_eq!(blocked(Nature::Lasting, false).await, (Some("permission denied".to_owned()), 8));
}

#[tokio::test(start_paused = true)]
async fn whatever_is_in_the_way_of_a_cancelled_run_ends_the_drive_after_four_tries() {
    for nature in [Nature::Passing, Nature::Lasting] {
        assert_eq!(blocked(nature, true).await, (Some("permission denied".to_owned()), 4), "{nature:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_ends_the_drive_at_once() {
    assert_eq!(blocked(Nature::Lost, false).await, (Some("permission denied".to_owned()), 1));
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_for_days() {
    let (end, tries) = blocked(Nature::Passing, false).await;
    assert_eq!(end, None);
    assert!(tries > 2_000, "{tries}");
}
