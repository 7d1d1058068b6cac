//! A person who reviews. The product determines what is pending review; when and how the person decides is random.

use runner_core::iteration::IterationOutcome;
use runner_core::message::{ReviewRun, RunnerCommit};
use runner_core::run::approval::Decision;
use runner_core::run::{RequestRefusal, RunRequest};
use runner_core::text::digest::Digest;
use runner_core::verdict::SessionTask;

use super::daemon::{DaemonHalt, SimulatedRun, StepResult};
use super::loaded::LoadedState;
use super::repository::differing;

impl SimulatedRun {
    /// Decides a pending review, now or after some other action.
    pub(crate) fn say(&mut self) -> StepResult<()> {
        if self.random.one_in(6) {
            // Someone continues the work meanwhile: the guard must pass again.
            self.repository.write("src/lib.rs", format!("// meanwhile {}\n", self.random.below(1_000)).as_bytes());
            self.commit_as_person("A person's commit");
        }
        let reasons = || "it has no test\nnor a comment".to_owned();
        let decision = if self.random.one_in(3) { Decision::Reject { reasons: reasons() } } else { Decision::Approve };
        let needs_signature = self.tip().is_ok_and(|tip| tip.policy.review_signed);
        let signature = "U1NIU0lHAAAAAQ==".parse().ok().filter(|_| needs_signature);
        let iter = self.tip().map_or(0, |tip| tip.run_state.next_iter.saturating_sub(1));
        match self.ask(RunRequest::Review { decision, iter, signature })? {
            Ok(_) => Ok(()),
            // A review may no longer be pending if a person has changed the configuration or the tree.
            Err(RequestRefusal::NothingToReview(_)) => self.go_on(None, false),
            Err(refusal) => Err(DaemonHalt::Broken(format!("P13: a word is refused: {refusal:?}"))),
        }
    }

    /// Whether files outside `.runner/` differ from those that the guard passed in the last iteration.
    pub(crate) fn has_changed_since(&self, task: &SessionTask, from: &LoadedState) -> bool {
        let is_last = |message: &str| matches!(RunnerCommit::parse(message), Ok(RunnerCommit::Iteration(receipt)) if receipt.iter + 1 == task.iter);
        let guarded = self.repository.ancestors(&from.commit).find(|commit| is_last(&commit.message));
        guarded.is_none_or(|guarded| differing(&guarded.files, &from.files).any(|path| !path.starts_with(".runner/")))
    }
}

/// Returns the review that a receipt records: a person's decision, or that of a reviewer.
pub(crate) fn review_run(outcome: &IterationOutcome) -> Option<ReviewRun> {
    if let Some(decision) = outcome.work.decision() {
        return Some(ReviewRun { accepted: *decision == Decision::Approve, prompt: None, output: None });
    }
    let review = outcome.review.as_ref()?;
    let accepted = review.verdict()? == protocol::words::ReviewVerdict::Accept;
    let digest = |text: &Option<String>| text.as_ref().and_then(|digest| digest.parse::<Digest>().ok());
    Some(ReviewRun { accepted, prompt: digest(&review.prompt), output: digest(&review.output) })
}
