//! The effects of an iteration on the repository in memory: open, brief, session, inspect, guard, review.
//!
//! As in the real daemon, each can be repeated, and the daemon may die in the middle.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use protocol::answer::{AgentAnswer, SessionUsage};
use protocol::tree::TaskTree;
use protocol::view::StopReason;
use protocol::words::{Containment, GuardOutcome};
use runner_config::ChangePolicy;
use runner_core::feedback::{list_failing_names, read_test_results};
use runner_core::files::layout;
use runner_core::files::notes;
use runner_core::files::person_edit;
use runner_core::guard::definition::session_notice;
use runner_core::guard::flakes;
use runner_core::guard::test_results::{self, TestResults};
use runner_core::iteration::tree_examination::{self, TreeExamination};
use runner_core::iteration::{
    GuardEnd, GuardEndKind, IterationEffect, IterationEvent, Phase, ReviewEnd, ReviewEndKind, WorkResult,
};
use runner_core::message::NameList;
use runner_core::prompt::{self, Prompt, PromptInput, ReviewMaterial};
use runner_core::run::{self, NextStep};
use runner_core::text::digest::Digest;
use runner_core::verdict::{SessionEnd, SessionEndKind, SessionFinding, SessionTask, TreeFinding};

use super::daemon::{DaemonHalt, OpenRefusal, SimulatedRun, StepResult, promise};
use super::loaded::LoadedState;
use super::mischief::{AfterProcess, MischiefFinding};
use super::mistake::PlantedMistake;
use super::people::is_last_word;
use super::repository::{FileMap, SimulatedCommit, differing};
use super::witness::RunWitness;

impl SimulatedRun {
    /// Performs the effect of a phase; `is_cut` means that a stop was requested.
    pub(crate) fn perform(&mut self, phase: &Phase, is_cut: bool) -> StepResult<IterationEvent> {
        self.pass(SignedDuration::from_millis(40));
        match (phase.effect(), phase) {
            (Some(IterationEffect::Open), _) => Ok(self.open()),
            (Some(IterationEffect::Brief), Phase::Brief { task }) => self.brief(task),
            (Some(IterationEffect::RunSession), Phase::Work { task, .. }) => self.session(task, is_cut),
            (Some(IterationEffect::EndSession), Phase::Work { task, .. }) => {
                Ok(IterationEvent::SessionEnded(session_end(SessionEndKind::Cut, task)))
            }
            (Some(IterationEffect::Inspect), Phase::Inspect { task, session, .. }) => self.inspect(task, session),
            (
                Some(IterationEffect::RunGuard | IterationEffect::RunAccepted | IterationEffect::RerunGuard),
                Phase::Guard { work, earlier, .. },
            ) => self.guard(work, is_cut, earlier.green.is_some()),
            (Some(IterationEffect::EndGuard), Phase::Guard { work, .. }) => {
                self.swap_back();
                let wrote = self.paths_by_guards();
                self.look_after(work, GuardEnd { wrote, ..GuardEnd::new(GuardEndKind::Cut) })
            }
            (Some(IterationEffect::RunReview), Phase::Review { work, .. }) => self.review(work, is_cut),
            (Some(IterationEffect::EndReview), Phase::Review { work, .. }) => {
                self.look_after_review(work, ReviewEnd::new(ReviewEndKind::Cut))
            }
            (Some(IterationEffect::Settle), Phase::Settle { outcome }) => {
                let commit = self.settle(outcome)?;
                Ok(IterationEvent::Settled { commit })
            }
            (effect, phase) => Err(DaemonHalt::Broken(format!("{effect:?} in {phase:?}"))),
        }
    }

    fn open(&mut self) -> IterationEvent {
        match self.find() {
            Ok((loaded, task)) => {
                let earlier = std::mem::take(&mut self.witness).of_same(self.journal.is_some());
                self.witness = RunWitness::of(&loaded, &task, (earlier, self.claim.clone(), self.accepted.clone()));
                self.loaded = Some(loaded);
                IterationEvent::Opened(task)
            }
            Err(declined) => {
                self.declined = Some(*declined);
                IterationEvent::Declined
            }
        }
    }

    /// Checks whether an iteration can begin, and on which leaf.
    fn find(&self) -> Result<(Arc<LoadedState>, SessionTask), Box<OpenRefusal>> {
        let loaded = self.tip().map_err(hold)?;
        for id in [loaded.goal.id(), loaded.run_state.run_id.as_deref()] {
            if id != Some(self.run) {
                return Err(hold(format!("the files name run {id:?}")));
            }
        }
        self.breach(&loaded).map_or(Ok(()), |breach| Err(hold(breach)))?;
        let next = run::decide_next(&loaded.run_inputs(&self.record.uncommitted, self.now), None, None);
        let NextStep::Continue(task) = next else { return Err(Box::new(OpenRefusal::Next(next))) };
        let changes = self.repository.changes();
        if !changes.is_empty() {
            return Err(hold(format!("the working tree has changes that are not committed: {changes:?}")));
        }
        let recheck = task.decision.is_some()
            && self.mistake != Some(PlantedMistake::ApproveChanged)
            && self.has_changed_since(&task, &loaded);
        let task = SessionTask { from: loaded.commit.clone(), recheck, ..task };
        Ok((loaded, task))
    }

    /// What people have committed since the runner's last commit although they may not.
    pub(crate) fn breach(&self, loaded: &LoadedState) -> Option<String> {
        let is_runners = |commit: &SimulatedCommit| is_last_word(commit);
        if is_runners(self.repository.commit(&loaded.commit)) {
            return None;
        }
        let last = self.repository.ancestors(&loaded.commit).find(|commit| is_runners(commit))?;
        let before = LoadedState::of(last).ok()?;
        person_edit::check_edit(&before.tree, &loaded.tree).err().map(|overreach| overreach.to_string())
    }

    /// Returns the state at From, read again if an earlier daemon process opened the iteration.
    pub(crate) fn loaded(&mut self, task: &SessionTask) -> StepResult<Arc<LoadedState>> {
        if let Some(loaded) = &self.loaded {
            return Ok(Arc::clone(loaded));
        }
        let loaded = LoadedState::of(self.repository.commit(&task.from)).map_err(DaemonHalt::Broken)?;
        let loaded = Arc::new(loaded);
        self.loaded = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn brief(&mut self, task: &SessionTask) -> StepResult<IterationEvent> {
        let loaded = self.loaded(task)?;
        self.live = super::daemon::LiveState::default();
        self.may_die()?;
        let Some((sent, _)) = self.prompt(&loaded, task) else { return Ok(IterationEvent::Briefed) };
        // If an earlier daemon process died before its session began, that session had the same prompt.
        let before = self.witness.prompt.replace(sent.clone()).unwrap_or_else(|| sent.clone());
        promise(before == sent, || "P1: the same commit made two prompts".to_owned())?;
        Ok(IterationEvent::Briefed)
    }

    /// Returns the digest of a task's prompt, and the notes in it; `None` if a person's decision replaces the session.
    /// For speed, most simulated runs build no prompts.
    pub(crate) fn prompt(&self, loaded: &LoadedState, task: &SessionTask) -> Option<(Digest, Vec<String>)> {
        if task.decision.is_some() {
            return None;
        }
        if !self.habits.has_prompts {
            let unused = notes::unused_notes(loaded.text(layout::NOTES), &loaded.run_state.notes_used);
            return Some((Digest::compute(task.from.as_bytes()), unused.into_iter().map(|note| note.id).collect()));
        }
        let built = self.build(loaded, task, None);
        Some((Digest::compute(built.text.as_bytes()), built.notes))
    }

    /// Builds a prompt from From.
    pub(crate) fn build(&self, loaded: &LoadedState, task: &SessionTask, review: Option<ReviewMaterial<'_>>) -> Prompt {
        let is_mistaken = self.mistake == Some(PlantedMistake::BriefFromWorkTree);
        let files: &FileMap = if is_mistaken { &self.repository.work } else { &loaded.files };
        let text = |path: &str| files.get(path).map(|blob| String::from_utf8_lossy(&blob.bytes));
        let from_files = [layout::PROGRESS, layout::GUARDRAILS, layout::ASSUMPTIONS, layout::QUESTIONS];
        let state = from_files.into_iter().fold(loaded.state.clone(), |state, path| match text(path) {
            Some(text) => state.with_text(path, &text),
            None => state,
        });
        prompt::build_prompt(&PromptInput {
            guard_notice: session_notice(loaded.policy.on_change, &self.guarded(loaded)).as_deref(),
            node_context: text(&format!("{}/{}/context.md", layout::NODES, task.node)).as_deref(),
            review,
            ..PromptInput::new(&state, task)
        })
    }

    fn session(&mut self, task: &SessionTask, is_cut: bool) -> StepResult<IterationEvent> {
        let loaded = self.loaded(task)?;
        self.witness.sessions += 1;
        let how = self.act(&loaded, task);
        self.witness.saw(&self.repository);
        let how = if is_cut && !self.random.one_in(4) { SessionEndKind::Cut } else { how };
        let end = self.bill(session_end(how, task));
        self.pass(SignedDuration::from_millis(end.elapsed_ms.cast_signed()));
        self.may_die()?;
        self.witness.note_end(&end.how);
        Ok(IterationEvent::SessionEnded(end))
    }

    fn bill(&mut self, end: SessionEnd) -> SessionEnd {
        let number = |random: &mut super::random::RandomSource| (!random.one_in(5)).then(|| random.below(900));
        SessionEnd {
            usage: SessionUsage {
                input_tokens: number(&mut self.random),
                cached_tokens: number(&mut self.random),
                output_tokens: number(&mut self.random),
                cost_micro_usd: number(&mut self.random),
            },
            elapsed_ms: self.random.below(600_000),
            // A session that answered has left an answer; any other may have left something.
            output_digest: (self.random.one_in(2) || matches!(end.how, SessionEndKind::Answered(_)))
                .then(|| Digest::compute(b"an answer").to_string()),
            ..end
        }
    }

    fn inspect(&mut self, task: &SessionTask, session: &SessionEnd) -> StepResult<IterationEvent> {
        let loaded = self.loaded(task)?;
        self.agents_tree();
        self.may_die()?;
        let after = AfterProcess { phase: "work", iter: task.iter, tree: None };
        let MischiefFinding { history, elsewhere, mut reverted, .. } = self.undo(&loaded, after)?;
        self.witness.nothing_is_lost(&self.repository, &[]).map_err(DaemonHalt::Broken)?;
        let is_put_back = history.is_some() || elsewhere.is_some();
        let outside = if is_put_back { Vec::new() } else { self.restore_outside(&loaded, after, &[])? };
        reverted.extend_from_slice(&outside);
        let tree =
            if is_put_back { TreeFinding::UNTOUCHED } else { self.examined(&loaded, task, session.answer()).finding };
        let mut changed = self.repository.changes();
        changed.extend(self.committed_since(&loaded.commit));
        let base = loaded.run_state.base.clone().unwrap_or_default();
        let is_code = |path: &String| !path.starts_with(".runner/") && !outside.contains(path);
        let has_earlier_code = || {
            let base = &self.repository.commit(&base).files;
            let from = &self.repository.commit(&loaded.commit).files;
            !outside.is_empty() && differing(base, from).any(|path| !path.starts_with(".runner/"))
        };
        let since_base = self.repository.changes().iter().any(is_code)
            || self.committed_since(&base).iter().any(is_code)
            || has_earlier_code();
        Ok(IterationEvent::Inspected(SessionFinding {
            changed: self.repository.tip != loaded.commit || !changed.is_empty() || !reverted.is_empty() || is_put_back,
            changed_code: changed.iter().any(is_code),
            changed_since_base: since_base,
            history,
            elsewhere,
            reverted,
            outside,
            ..SessionFinding::new(tree)
        }))
    }

    fn committed_since(&self, since: &str) -> Vec<String> {
        let before = &self.repository.commit(since).files;
        let after = &self.repository.head().files;
        differing(before, after).map(str::to_owned).collect()
    }

    /// Returns the tree that the session left: the first time from the work tree, then as it was saved.
    pub(crate) fn agents_tree(&mut self) -> Option<Vec<u8>> {
        let bytes = self.repository.work.get(layout::TREE).map(|blob| blob.bytes.to_vec());
        self.live.tree.get_or_insert(bytes).clone().filter(|text| !text.is_empty())
    }

    /// Returns a session's tree if it is acceptable; `None` if a person has decided instead.
    pub(crate) fn legal_tree(&mut self, loaded: &LoadedState, work: &WorkResult) -> Option<TaskTree> {
        work.session()?;
        self.examined(loaded, &work.task, work.answer()).tree
    }

    /// Judges the tree that the session left, only once, because that takes much of a simulation's time.
    pub(crate) fn examined(
        &mut self,
        loaded: &LoadedState,
        task: &SessionTask,
        answer: Option<&AgentAnswer>,
    ) -> TreeExamination {
        let text = self.agents_tree();
        let examine = || {
            tree_examination::examine_tree(&tree_examination::SessionTree {
                from: &loaded.tree,
                node: &task.node,
                role: task.role,
                text: text.as_deref(),
                answer,
                max_attempts: loaded.policy.max_attempts_default,
            })
        };
        self.live.examined.get_or_insert_with(examine).clone()
    }

    fn guard(&mut self, work: &WorkResult, is_cut: bool, with_accepted: bool) -> StepResult<IterationEvent> {
        let loaded = self.loaded(&work.task)?;
        self.lay_out(&loaded, with_accepted)?;
        self.witness.guards_with(&self.repository.work);
        let how = self.run_guard();
        // If the guard removed files of the session, they do not count as lost, even if the daemon dies now.
        self.witness.saw(&self.repository);
        self.may_die()?;
        self.swap_back();
        self.witness.saw(&self.repository);
        self.may_die()?;
        let how = if is_cut { GuardEndKind::Cut } else { how };
        self.witness.guard = if let GuardEndKind::Exited(code) = how { Some(code) } else { None };
        let wrote = self.paths_by_guards();
        let output = self.random.pick(&OUTPUTS).to_string();
        let elapsed_ms = self.random.below(60_000);
        let is_silent = matches!(how, GuardEndKind::Cut | GuardEndKind::Lost | GuardEndKind::Missing { .. });
        let failing = NameList::new(list_failing_names(output.as_bytes()));
        let is_red = matches!(how, GuardEndKind::Exited(1..) | GuardEndKind::Signaled(_));
        let end = GuardEnd {
            wrote,
            suspects: if is_red { self.suspects(&loaded, &failing) } else { Vec::new() },
            failing,
            output: if is_silent { String::new() } else { output.clone() },
            digest: (!is_silent).then(|| Digest::compute(output.as_bytes()).to_string()),
            elapsed_ms,
            tests: (!is_silent && !elapsed_ms.is_multiple_of(7)).then(|| named_tests(elapsed_ms)).flatten(),
            containment: Some(Containment::Walk),
            ..GuardEnd::new(how)
        };
        self.look_after(work, end)
    }

    /// Returns the paths for which the session is charged even if a red guard is green the second time.
    fn suspects(&self, from: &LoadedState, failing: &NameList) -> Vec<String> {
        let Some((_, before)) = &self.live.before_guard else { return Vec::new() };
        if self.mistake == Some(PlantedMistake::ForgetSuspects) {
            return Vec::new();
        }
        let changed: BTreeSet<&str> =
            differing(&from.files, before).filter(|path| !path.starts_with(".runner/")).collect();
        flakes::find_suspects(failing, changed)
    }

    /// Returns the paths outside `.runner/` that guards have written since the first one of the iteration, in any
    /// daemon process.
    fn paths_by_guards(&self) -> Vec<String> {
        let Some((tip, before)) = &self.live.before_guard else { return Vec::new() };
        let of = |files: &FileMap, path: &str| files.get(path).map(|blob| Arc::clone(&blob.id));
        let tip = &self.repository.commit(tip).files;
        let is_code = |path: &&str| !path.starts_with(".runner/");
        let is_written = |path: &&str| of(&self.repository.work, path) != of(before, path);
        let head = &self.repository.head().files;
        // A committed file that did not differ before was written by a guard, whatever its content is now.
        let committed = differing(tip, head).filter(|path| is_written(path) || of(before, path) == of(tip, path));
        let standing = differing(head, &self.repository.work).filter(is_written);
        let wrote: BTreeSet<&str> = standing.chain(committed).filter(is_code).collect();
        wrote.into_iter().map(str::to_owned).collect()
    }

    /// Inspects what a guard has done, and reverts what it may not do.
    fn look_after(&mut self, work: &WorkResult, end: GuardEnd) -> StepResult<IterationEvent> {
        let loaded = self.loaded(&work.task)?;
        let legal = self.legal_tree(&loaded, work);
        let text = Self::standing_tree(&loaded, legal.as_ref());
        let after = AfterProcess { phase: "guard", iter: work.task.iter, tree: Some(&text) };
        let MischiefFinding { history, elsewhere, mut reverted, .. } = self.undo(&loaded, after)?;
        self.witness.nothing_is_lost(&self.repository, &[layout::TREE]).map_err(DaemonHalt::Broken)?;
        let departure = self.live.departure.clone();
        let is_reverting = departure.effective_policy(loaded.policy.on_change) == ChangePolicy::Revert;
        let outside = if history.is_some() || elsewhere.is_some() {
            Vec::new()
        } else {
            self.restore_outside(&loaded, after, if is_reverting { &departure.paths } else { &[] })?
        };
        if is_reverting {
            reverted.extend_from_slice(&departure.paths);
        }
        reverted.extend_from_slice(&outside);
        let end = end.with_outside(&outside);
        let has_changed = !departure.merged_with(&self.departure(&loaded)).paths.is_empty();
        let record = end.tests.as_ref().filter(|_| end.outcome() == GuardOutcome::Pass).map(test_results::first_record);
        let review_required = record.is_some_and(|record| {
            test_results::is_review_required(&loaded.tests, &record, loaded.policy.on_change, has_changed)
        });
        let end = GuardEnd { history, elsewhere, reverted, outside, departure, review_required, ..end };
        Ok(IterationEvent::GuardEnded(end))
    }
}

/// What guards print.
/// The tests that a guard names, each in one of four ways, as a number has it.
pub(crate) fn named_tests(mut number: u64) -> Option<TestResults> {
    let mut report = String::new();
    for name in ["pays", "refunds", "rounds", "splits", "sums"] {
        let end = ["ok", "ok", "ignored", ""][usize::try_from(number % 4).unwrap_or_default()];
        number /= 4;
        if !end.is_empty() {
            report.extend(["test ", name, " ... ", end, "\n"]);
        }
    }
    read_test_results(report.as_bytes())
}

const OUTPUTS: [&str; 6] = [
    "test result: ok",
    "error: the ledger does not match\n  at src/ledger.rs:12\n",
    "thread 'main' panicked at src/lib.rs:3:5:\nassertion failed: is_paid\n",
    "warning: unused\nFAILED: 3 of 12\n",
    "thread 'pays' panicked at src/part_3.rs:3:5:\nassertion failed: is_paid\n",
    "--- FAIL: TestPay (0.00s)\n    pay_test.go:12: want 1\nFAIL\n",
];

fn hold(message: String) -> Box<OpenRefusal> {
    Box::new(OpenRefusal::Hold(StopReason::new(message, "correct it, commit, then: runnerctl resume")))
}

/// Returns a session with this end.
fn session_end(how: SessionEndKind, task: &SessionTask) -> SessionEnd {
    let agent = format!("{} 1.2.3", task.kind.as_deref().unwrap_or("command"));
    SessionEnd { agent, ..SessionEnd::new(how) }
}
