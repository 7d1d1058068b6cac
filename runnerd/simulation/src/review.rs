//! Reviewers: their decisions, and the files they write, which are saved and reverted.

use jiff::SignedDuration;
use protocol::words::Role;
use runner_core::files::layout;
use runner_core::iteration::{IterationEvent, ReviewEnd, ReviewEndKind, WorkResult};
use runner_core::prompt::ReviewMaterial;
use runner_core::text::digest::Digest;
use runner_core::verdict::SessionTask;

use super::daemon::{SimulatedRun, StepResult};
use super::loaded::LoadedState;
use super::mischief::{AfterProcess, MischiefFinding};
use super::mistake::PlantedMistake;
use super::repository::{differing, patch};

impl SimulatedRun {
    /// Asks a reviewer, and reverts what it has changed.
    pub(crate) fn review(&mut self, work: &WorkResult, is_cut: bool) -> StepResult<IterationEvent> {
        if self.live.reviewed.is_some() {
            self.put_back_scenery(work)?;
        }
        self.live.reviewed = Some((self.repository.tip.clone(), self.repository.work.clone()));
        self.may_die()?;
        let loaded = self.loaded(&work.task)?;
        let prompt = self.review_prompt(&loaded, &work.task);
        let how = self.opinion();
        self.witness.saw(&self.repository);
        self.may_die()?;
        let how = if is_cut { ReviewEndKind::Cut } else { how };
        self.witness.has_rejected = !matches!(how, ReviewEndKind::Accepted { .. });
        self.pass(SignedDuration::from_secs(30));
        let end = ReviewEnd {
            agent: format!("{} 1.2.3", work.task.reviewer.as_deref().unwrap_or("command")),
            prompt: Some(prompt.to_string()),
            output: Some(Digest::compute(b"a reviewer's answer").to_string()),
            tries: 1,
            usage: work.session().map(|session| (&session.usage).into()).unwrap_or_default(),
            elapsed_ms: self.random.below(60_000),
            ..ReviewEnd::new(how)
        };
        self.look_after_review(work, end)
    }

    /// Returns the digest of the reviewer's prompt, if prompts are built.
    fn review_prompt(&self, loaded: &LoadedState, task: &SessionTask) -> Digest {
        if !self.habits.has_prompts {
            return Digest::compute(b"a reviewer's prompt");
        }
        let diff = match self.mistake {
            Some(PlantedMistake::ReviewOfNothing) => String::new(),
            _ => patch(&loaded.files, &self.repository.work),
        };
        let task = SessionTask { role: Role::Reviewer, ..task.clone() };
        let review = ReviewMaterial { from: &task.from, criteria: &loaded.config.review.criteria, diff: &diff };
        Digest::compute(self.build(loaded, &task, Some(review)).text.as_bytes())
    }

    fn opinion(&mut self) -> ReviewEndKind {
        if self.random.one_in(self.habits.mischief) {
            match self.random.below(4) {
                0 => self.rewrite_history(),
                1 => self.scribble(layout::NOTES),
                2 => self.scribble(layout::TREE),
                _ => self.scribble("src/better.rs"),
            }
        }
        match self.random.below(12) {
            0..=2 => ReviewEndKind::Rejected { reasons: "it has no test\nnor a comment".to_owned() },
            3 => ReviewEndKind::TimedOut,
            4 | 5 => ReviewEndKind::Failed { what: "it gave no valid answer".to_owned() },
            6 => ReviewEndKind::Unavailable { why: "overloaded".to_owned(), until: None },
            _ => ReviewEndKind::Accepted { reasons: "it is as it should be".to_owned() },
        }
    }

    /// Reverts what a reviewer has changed.
    pub(crate) fn look_after_review(&mut self, work: &WorkResult, end: ReviewEnd) -> StepResult<IterationEvent> {
        let MischiefFinding { reverted, wrote, .. } = self.put_back_scenery(work)?;
        Ok(IterationEvent::ReviewEnded(ReviewEnd { reverted, wrote, ..end }))
    }

    fn put_back_scenery(&mut self, work: &WorkResult) -> StepResult<MischiefFinding> {
        let Some((tip, files)) = self.live.reviewed.clone() else { return Ok(MischiefFinding::default()) };
        let loaded = self.loaded(&work.task)?;
        let legal = self.legal_tree(&loaded, work);
        let text = Self::standing_tree(&loaded, legal.as_ref());
        let after = AfterProcess { phase: "review", iter: work.task.iter, tree: Some(&text) };
        let mut found = self.live.found.get("review").cloned().unwrap_or_default();
        found.reverted.extend(self.wrong_files(&loaded, after).into_keys());
        let paths = differing(&files, &self.repository.work).filter(|path| !path.starts_with(".runner/"));
        found.wrote.extend(paths.map(str::to_owned));
        for paths in [&mut found.reverted, &mut found.wrote] {
            paths.sort();
            paths.dedup();
        }
        self.live.found.insert("review", found.clone());
        self.may_die()?;
        if self.repository.work != files || self.repository.tip != tip || self.repository.strayed.is_some() {
            self.keep_everything(after)?;
            (self.repository.tip, self.repository.work, self.repository.strayed) = (tip, files, None);
        }
        Ok(found)
    }
}
