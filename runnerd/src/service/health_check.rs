//! Health checks behind the systemd watchdog: which workers are asked, and how long one may be silent. Reporting is in
//! `watchdog`.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::words::RunStatus;
use tokio_util::task::AbortOnDropHandle;

use crate::worker::WorkerHandle;

/// A worker answers no one during a single step, the longest of which is a command of the git program with its limit of
/// 15 minutes. A worker that is silent for longer hangs.
pub(super) const MAX_SILENCE: Duration = Duration::from_mins(20);

/// A worker to check.
pub(super) trait HealthTarget: Clone + Send + 'static {
    /// Returns its name.
    fn name(&self) -> &str;
    /// Completes as soon as it handles requests.
    fn ping(self) -> impl Future<Output = ()> + Send;
    /// Whether it shows a state of waiting for something transient.
    fn is_blocked(&self) -> bool;
}

impl HealthTarget for WorkerHandle {
    fn name(&self) -> &str {
        &self.id
    }

    async fn ping(self) {
        self.ask_for_runs().await;
    }

    fn is_blocked(&self) -> bool {
        self.status().run.as_ref().is_some_and(|run| run.summary.state == RunStatus::Waiting)
    }
}

/// Checks every worker once per beat.
#[derive(Debug)]
pub(super) struct HealthCheck {
    pings: BTreeMap<String, PendingPing>,
    /// Number of beats for which a question may remain unanswered.
    max_ticks: u128,
}

#[derive(Debug)]
struct PendingPing {
    response: AbortOnDropHandle<()>,
    ticks: u128,
}

impl HealthCheck {
    /// Creates the check; there will be a beat in each `period`.
    pub(super) fn new(period: Duration) -> Self {
        let max_ticks = MAX_SILENCE.as_millis() / period.as_millis().max(1);
        Self { pings: BTreeMap::new(), max_ticks: max_ticks.max(1) }
    }

    /// Asks every worker that has answered the last question, and returns one that has been silent for too long.
    pub(super) fn tick<W: HealthTarget>(&mut self, workers: &[W]) -> Option<String> {
        self.pings.retain(|name, _| workers.iter().any(|worker| worker.name() == name));
        for worker in workers {
            match self.pings.get_mut(worker.name()) {
                Some(ping) if !ping.response.is_finished() => {
                    ping.ticks = if worker.is_blocked() { 0 } else { ping.ticks + 1 };
                }
                _ => {
                    let response = AbortOnDropHandle::new(tokio::spawn(worker.clone().ping()));
                    self.pings.insert(worker.name().to_owned(), PendingPing { response, ticks: 0 });
                }
            }
        }
        let mut unresponsive = self.pings.iter().filter(|(_, question)| question.ticks > self.max_ticks);
        unresponsive.next().map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy)]
    struct FakeWorker {
        answers: bool,
        waits: bool,
    }

    impl HealthTarget for FakeWorker {
        fn name(&self) -> &'static str {
            "fake"
        }

        async fn ping(self) {
            if !self.answers {
                std::future::pending::<()>().await;
            }
        }

        fn is_blocked(&self) -> bool {
            self.waits
        }
    }

    /// Returns which worker was found silent in twenty beats of a minute and some more.
    async fn run_for_twenty_minutes(worker: FakeWorker) -> Vec<Option<String>> {
        let mut health = HealthCheck::new(Duration::from_mins(1));
        let mut found = Vec::new();
        for _ in 0..22 {
            found.push(health.tick(&[worker]));
            tokio::task::yield_now().await;
        }
        found
    }

    #[tokio::test]
    async fn who_answers_is_never_found_silent() {
        assert!(run_for_twenty_minutes(FakeWorker { answers: true, waits: false }).await.iter().all(Option::is_none));
    }

    #[tokio::test]
    async fn who_answers_nobody_is_found_after_twenty_minutes_and_not_before() {
        let found = run_for_twenty_minutes(FakeWorker { answers: false, waits: false }).await;
        assert_eq!(found.iter().position(Option::is_some), Some(21));
    }

    #[tokio::test]
    async fn who_says_that_it_waits_may_be_silent() {
        assert!(run_for_twenty_minutes(FakeWorker { answers: false, waits: true }).await.iter().all(Option::is_none));
    }

    #[tokio::test]
    async fn who_has_left_is_not_missed() {
        let mut health = HealthCheck::new(MAX_SILENCE);
        let silent = FakeWorker { answers: false, waits: false };
        for _ in 0..3 {
            health.tick(&[silent]);
        }
        assert_eq!(health.tick(&[silent]), Some("fake".to_owned()));
        assert_eq!(health.tick::<FakeWorker>(&[]), None);
    }
}
