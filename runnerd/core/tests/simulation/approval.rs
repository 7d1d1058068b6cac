//! A person who reviews: what waits for their word is the product's to say, when and what they say is drawn.

use std::sync::Arc;

use runner_core::approval::{self, Decision, PersonDecision};
use runner_core::digest::Digest;
use runner_core::iteration::Outcome;
use runner_core::message::{ReviewRun, RunnerCommit};
use runner_core::verdict::{StopCause, Task, Verdict};

use super::daemon::{Course, Halt, Lived};
use super::loaded::Loaded;
use super::repository::differing;

impl Course {
    /// Says a word on what waits for one, now or after something else was done.
    pub(crate) fn say(&mut self) -> Lived<()> {
        if self.random.one_in(6) {
            // Somebody goes on working meanwhile: the guard is asked again before it passes.
            self.repository.write("src/lib.rs", format!("// meanwhile {}\n", self.random.below(1_000)).as_bytes());
            self.commit_as_person("A person's commit");
        }
        let pending = |loaded: Arc<Loaded>| approval::pending(&loaded.standing(&self.record.uncommitted, self.now));
        let Some(on) = self.tip().ok().and_then(pending) else {
            // What waited may wait no longer, where a person has changed the configuration or the tree.
            self.queue();
            return Ok(());
        };
        let reasons = || "it has no test\nnor a comment".to_owned();
        let decision = if self.random.one_in(3) { Decision::Reject { reasons: reasons() } } else { Decision::Approve };
        decision.check().map_err(|wrong| Halt::Broken(wrong.to_string()))?;
        self.record.uncommitted.word = Some(PersonDecision { on, decision });
        self.queue();
        Ok(())
    }

    /// Whether files outside of `.runner/` are others than those that the guard has passed in the last iteration.
    pub(crate) fn has_changed_since(&self, task: &Task, from: &Loaded) -> bool {
        let is_last = |message: &str| matches!(RunnerCommit::parse(message), Ok(RunnerCommit::Iteration(receipt)) if receipt.iter + 1 == task.iter);
        let guarded = self.repository.ancestors(&from.commit).find(|commit| is_last(&commit.message));
        guarded.is_none_or(|guarded| differing(&guarded.files, &from.files).any(|path| !path.starts_with(".runner/")))
    }
}

/// Whether a word is said again when the run goes on: it was cut off, or the guard could not be asked.
pub(crate) fn is_still_said(verdict: &Verdict, commit: Option<&str>) -> bool {
    let is_cut_off = match verdict {
        Verdict::Interrupted { by } => *by != StopCause::Cancel,
        verdict => matches!(verdict, Verdict::Timeout { .. } | Verdict::Misconfigured { .. }),
    };
    commit.is_none() && is_cut_off
}

/// Returns what a receipt says of a review: a person's word, or that of a reviewer who decided.
pub(crate) fn review_run(outcome: &Outcome) -> Option<ReviewRun> {
    if let Some(decision) = &outcome.work.task.decision {
        return Some(ReviewRun { accepted: *decision == Decision::Approve, prompt: None, output: None });
    }
    let review = outcome.review.as_ref()?;
    let accepted = review.verdict()? == protocol::words::ReviewVerdict::Accept;
    let digest = |text: &Option<String>| text.as_ref().and_then(|digest| digest.parse::<Digest>().ok());
    Some(ReviewRun { accepted, prompt: digest(&review.prompt), output: digest(&review.output) })
}
