//! Settle, and the runner's commits between iterations: start, baseline, resume, and people's requests.
//!
//! Repeated after a death, each writes the same, and recognizes a commit that was already made.

use std::collections::BTreeSet;

use protocol::state::{Baseline, Feedback, RunState};
use protocol::test_record::TestRecord;
use runner_core::files::change::ChangeRequest;
use runner_core::files::layout;
use runner_core::guard::test_results;
use runner_core::iteration::transition::{self, PROGRESS_HEADING, StateAfter, TransitionFacts};
use runner_core::iteration::{GuardEnd, GuardEndKind, IterationOutcome};
use runner_core::message::{
    AgentStamp, AttemptCount, GuardFlaky, GuardRun, GuardTests, MarkerCommit, NameList, ProcessEnd, Receipt,
    RunnerCommit, RunnerVersion, UsageLine, VerdictLine, compose_headline, compose_human,
};
use runner_core::prompt::{PROMPT_FORMAT, templates_digest};
use runner_core::run;
use runner_core::run::ResumeOrder;
use runner_core::text::digest::Digest;
use runner_core::text::json;
use runner_core::tree;
use runner_core::tree::schema;
use runner_core::tree::validate;
use runner_core::verdict::{SessionEnd, verdict_row};

use super::approval::review_run;
use super::daemon::{DaemonHalt, SimulatedRun, StepResult};
use super::definition::watched_from_start;
use super::effects::named_tests;
use super::loaded::{LoadedState, config_text, goal_text, read_config};
use super::mischief;
use super::mistake::PlantedMistake;
use super::repository::differing;

impl SimulatedRun {
    /// Writes and commits the state that the outcome leads to; returns the commit, or `None` if nothing changed.
    pub(crate) fn settle(&mut self, outcome: &IterationOutcome) -> StepResult<Option<String>> {
        let task = &outcome.work.task;
        let loaded = self.loaded(task)?;
        let base = self.live.parent.get_or_insert_with(|| self.repository.tip.clone()).clone();
        self.may_die()?;
        if outcome.flaky_guard().is_some() {
            self.coverage.insert(format!("flaky {}", outcome.verdict.name()));
        }
        let (prompt, notes) = self.prompt(&loaded, task).unzip();
        let facts = TransitionFacts {
            agents_tree: self.legal_tree(&loaded, &outcome.work),
            notes: notes.unwrap_or_default(),
            held_back: self.repository.held_back(),
            dirty_submodules: Vec::new(),
            guard_definition: self.guarded(&loaded).accepted,
            elapsed_ms: outcome.elapsed_ms(),
            retry_usage: self.record.uncommitted.tried.clone(),
        };
        let after =
            PlantedMistake::change_after(self.mistake, transition::apply_outcome(&loaded, outcome, &facts), outcome);
        let is_same = |commit: &RunnerCommit| matches!(commit, RunnerCommit::Iteration(receipt) if receipt.iter == task.iter && receipt.from == task.from);
        if self.mistake != Some(PlantedMistake::ForgetCommit)
            && let Some(commit) = self.find_existing(&base, is_same)
        {
            return Ok(Some(commit));
        }
        if !outcome.leaves_commit() {
            return Ok(None);
        }
        let raw = if after.tree_refused { self.keep_raw(task.iter) } else { None };
        self.may_die()?;
        self.write(&after)?;
        let receipt = self.receipt((&loaded, prompt), outcome, (&after, raw));
        let commit = self.repository.commit_all(&RunnerCommit::Iteration(Box::new(receipt)).compose());
        self.may_die()?;
        Ok(Some(commit))
    }

    /// Returns a commit since `base` that satisfies `matches`, if it was already made.
    fn find_existing(&self, base: &str, matches: impl Fn(&RunnerCommit) -> bool) -> Option<String> {
        let mut commits = self.repository.since(&self.repository.tip, base);
        let commit = commits.find(|commit| RunnerCommit::parse(&commit.message).is_ok_and(|read| matches(&read)));
        commit.map(|commit| commit.id.clone())
    }

    fn write(&mut self, after: &StateAfter) -> StepResult<()> {
        let mut files = vec![
            (layout::TREE, tree::canonical(&after.tree).into_bytes()),
            (layout::RUN_STATE, json::to_canonical_json(&after.run_state).into_bytes()),
            (layout::FEEDBACK, json::to_canonical_json(&after.feedback).into_bytes()),
            (layout::PROGRESS, after.progress.clone().into_bytes()),
            (layout::TESTS, json::to_canonical_json(&after.tests).into_bytes()),
        ];
        if let Some(line) = &after.guardrail {
            let guardrails = self.repository.text(layout::GUARDRAILS);
            files.extend(line.append_to(guardrails.as_bytes()).map(|text| (layout::GUARDRAILS, text)));
        }
        for (path, text) in files {
            self.repository.write(path, &text);
            self.may_die()?;
        }
        Ok(())
    }

    /// Saves the rejected tree as a blob under its own reference.
    fn keep_raw(&mut self, iter: u32) -> Option<String> {
        let text = self.agents_tree()?;
        if self.mistake == Some(PlantedMistake::KeepNoRaw) {
            return None;
        }
        let blob = super::repository::StoredBlob::of(&text);
        let id = blob.id.to_string();
        self.repository.keep(&format!("refs/runner/raw/{iter:04}"), &id);
        self.repository.blobs.insert(id.clone(), blob);
        Some(id)
    }

    fn receipt(
        &self,
        (loaded, prompt): (&LoadedState, Option<Digest>),
        outcome: &IterationOutcome,
        (after, raw): (&StateAfter, Option<String>),
    ) -> Receipt {
        let task = &outcome.work.task;
        let session = outcome.work.session();
        let guard = outcome.guard.as_ref();
        let node = tree::find(&after.tree, &task.node);
        let title = tree::find(&loaded.tree, &task.node).map_or("", |node| node.title.as_str());
        let changed: BTreeSet<&str> =
            differing(&self.repository.commit(&loaded.commit).files, &self.repository.work).collect();
        let is_committed =
            |path: &&String| changed.contains(path.as_str()) && !after.run_state.held_back.contains(path);
        let guard_wrote: Vec<String> =
            guard.into_iter().flat_map(|guard| &guard.wrote).filter(is_committed).cloned().collect();
        let used = after.run_state.notes_used.iter().filter(|note| !loaded.run_state.notes_used.contains(note));
        let stamp = |SessionEnd { agent, .. }: &SessionEnd| {
            let (kind, version) = agent.split_once(' ').unwrap_or((agent, "unknown"));
            AgentStamp::new(kind, version)
        };
        Receipt {
            run: task.run.clone(),
            iter: task.iter,
            node: task.node.clone(),
            status: verdict_row(outcome.verdict.name()).status,
            guard: outcome.guard_outcome(),
            headline: compose_headline(title, outcome.verdict.name()),
            summary: after.run_state.last_summary.clone().unwrap_or_default(),
            version: self.version(),
            from: task.from.clone(),
            verdict: VerdictLine::new(outcome.verdict.name(), outcome.verdict.detail().as_deref()),
            role: task.role,
            mode: outcome.mode(&guard_wrote),
            attempts: AttemptCount {
                charged: node.map_or(task.attempts, |node| node.attempts),
                allowed: node.map_or(task.max_attempts, |node| node.max_attempts),
            },
            agent: session.map(stamp),
            prompt,
            output: session.and_then(|session| session.output_digest.as_ref()?.parse().ok()),
            guard_run: guard.and_then(guard_run),
            guard_tests: GuardTests::between(&loaded.tests, &after.tests),
            guard_flaky: outcome.flaky_guard().map(GuardFlaky::from),
            review: review_run(outcome),
            signature: task.signature.clone(),
            notes: NameList::new(used),
            usage: Some(transition::iteration_usage(outcome, &self.record.uncommitted.tried))
                .filter(|usage| usage.sessions > 0)
                .map(UsageLine),
            reverted: NameList::new(&after.run_state.reverted),
            guard_changed: self.guard_changed(loaded, guard),
            guard_wrote: NameList::new(&guard_wrote),
            held_back: NameList::new(&after.run_state.held_back),
            hidden: NameList::new(&after.run_state.hidden),
            dirty_submodules: NameList::new(&after.run_state.dirty_submodules),
            tree_from: Digest::compute(tree::canonical(&loaded.tree).as_bytes()),
            raw,
        }
    }

    /// The files of the guard's definition that differed from the accepted ones, before the guard or now.
    fn guard_changed(&self, from: &LoadedState, guard: Option<&GuardEnd>) -> NameList {
        if self.mistake == Some(PlantedMistake::AnnounceNothing) {
            return NameList::default();
        }
        let now = self.departure(from);
        let paths = guard.map_or(now.clone(), |guard| guard.departure.merged_with(&now)).paths;
        NameList::complete(paths)
    }

    /// A simulation that builds no prompts claims to use other templates, which no audit can rebuild them from.
    fn version(&self) -> RunnerVersion {
        let own = templates_digest().chars().take(12).collect();
        RunnerVersion {
            version: "0.1.0".to_owned(),
            prompt_format: PROMPT_FORMAT,
            templates: if self.habits.has_prompts { own } else { "0".repeat(12) },
        }
    }

    /// Makes the start commit unless it exists.
    pub(crate) fn start(&mut self) -> StepResult<()> {
        let tip = self.tip();
        let is_named = tip.as_ref().is_ok_and(|loaded| loaded.run_state.run_id.as_deref() == Some(self.run));
        // A person may have made the state unreadable since then.
        if is_named || self.repository.chain().iter().any(|commit| self.begins(commit)) {
            return Ok(());
        }
        if let Some(from) = tip.ok().filter(|loaded| loaded.run_state.run_id.is_some()) {
            return self.start_fork(&from);
        }
        let base = self.repository.tip.clone();
        let there = Some(self.repository.text(layout::CONFIG)).filter(|text| !text.is_empty());
        let config = there.and_then(|text| read_config(&text)).unwrap_or_else(|| self.habits.config.clone());
        let prepared = validate::load(self.repository.text(layout::TREE).as_bytes());
        let tree = prepared.unwrap_or_else(|_| tree::new_tree(config.max_attempts_default));
        let state = RunState {
            run_id: Some(self.run.to_owned()),
            base: Some(base.clone()),
            guard_definition: watched_from_start(&self.repository.head().files, &config).accepted,
            ..RunState::default()
        };
        let files = [
            (layout::CONFIG, config_text(&config)),
            (layout::TREE, tree::canonical(&tree)),
            (layout::RUN_STATE, json::to_canonical_json(&state)),
            (layout::FEEDBACK, json::to_canonical_json(&Feedback::default())),
            (layout::TESTS, json::to_canonical_json(&TestRecord::default())),
            (layout::PROGRESS, PROGRESS_HEADING.to_owned()),
            (layout::SCHEMA, schema::tree_schema_text()),
            (layout::ANSWER_SCHEMA, schema::answer_schema_text()),
            (layout::GOAL, goal_text(self.run, "Port the ledger.\n")),
        ];
        for (path, text) in files {
            self.repository.write(path, text.as_bytes());
            self.may_die()?;
        }
        self.repository.commit_all(&RunnerCommit::Start(self.milestone(base)).compose());
        Ok(())
    }

    pub(crate) fn milestone(&self, from: String) -> MarkerCommit {
        MarkerCommit {
            run: self.run.to_owned(),
            summary: String::new(),
            version: self.version(),
            from: Some(from),
            guard_run: None,
            reverted: NameList::default(),
            guard_wrote: NameList::default(),
            driver: None,
        }
    }

    /// Runs the guard on the base and commits its result; false if the run cannot continue.
    pub(crate) fn baseline(&mut self) -> StepResult<bool> {
        let Ok(loaded) = self.tip() else { return Ok(true) };
        if !loaded.is_baseline_due() {
            return Ok(true);
        }
        let text = tree::canonical(&loaded.tree);
        let after = mischief::AfterProcess { phase: "baseline", iter: 0, tree: Some(&text) };
        self.live.found.clear();
        self.undo(&loaded, after)?;
        self.live.found.clear();
        let how = self.run_guard();
        self.may_die()?;
        if let GuardEndKind::Missing { what } = how {
            self.hold(protocol::view::StopReason::new(what, "runnerctl resume"))?;
            return Ok(false);
        }
        let end = GuardEnd { digest: Some(Digest::compute(b"it ran").to_string()), ..GuardEnd::new(how) };
        let reverted = self.undo(&loaded, after)?.reverted;
        self.live.found.clear();
        let from = &self.repository.commit(&loaded.commit).files;
        let wrote = differing(from, &self.repository.work).filter(|path| !path.starts_with(".runner/"));
        let guard_wrote = NameList::new(wrote.collect::<BTreeSet<_>>());
        let output = (end.how != GuardEndKind::Exited(0)).then(|| "FAILED: 3 of 12\n".to_owned());
        let baseline = Baseline { guard: end.outcome(), output, green_at: None };
        let guard_definition = self.guarded(&loaded).accepted;
        let elapsed_ms = loaded.run_state.elapsed_ms + 40;
        let state = RunState { elapsed_ms, guard_definition, ..(*loaded.run_state).clone() };
        let feedback = Feedback { baseline: Some(baseline), ..(*loaded.feedback).clone() };
        self.repository.write(layout::RUN_STATE, json::to_canonical_json(&state).as_bytes());
        self.may_die()?;
        self.repository.write(layout::FEEDBACK, json::to_canonical_json(&feedback).as_bytes());
        self.may_die()?;
        let tests = named_tests(elapsed_ms).map(|results| test_results::first_record(&results)).unwrap_or_default();
        self.repository.write(layout::TESTS, json::to_canonical_json(&tests).as_bytes());
        let milestone = MarkerCommit {
            guard_run: guard_run(&end),
            reverted: NameList::new(&reverted),
            guard_wrote,
            ..self.milestone(loaded.commit.clone())
        };
        self.repository.commit_all(&RunnerCommit::Baseline(milestone, end.outcome()).compose());
        Ok(true)
    }

    /// Resets counters and grants iterations; makes a separate commit if there is anything to change.
    pub(crate) fn resume(&mut self, order: &ResumeOrder) -> StepResult<()> {
        let from = order.from.clone().unwrap_or_default();
        if self.find_existing(&from, |commit| matches!(commit, RunnerCommit::Resume(_))).is_some() {
            return Ok(());
        }
        // Problems are reported when the iteration is opened.
        let Ok(loaded) = self.tip() else { return Ok(()) };
        if self.breach(&loaded).is_some() {
            return Ok(());
        }
        let standing = loaded.run_inputs(&self.record.uncommitted, self.now);
        let state = run::state_on_resume(&standing, order.reset, order.more);
        if state == *loaded.run_state {
            return Ok(());
        }
        let state = RunState { guard_definition: self.guarded(&loaded).accepted, ..state };
        let text = json::to_canonical_json(&state);
        let is_own = |path: &String| path == layout::RUN_STATE && self.repository.text(path) == text;
        if self.repository.changes().iter().any(|path| !is_own(path)) {
            // The runner leaves people's uncommitted changes alone; opening the iteration refuses them.
            return Ok(());
        }
        self.repository.write(layout::RUN_STATE, text.as_bytes());
        self.may_die()?;
        self.repository.commit_all(&RunnerCommit::Resume(self.milestone(loaded.commit.clone())).compose());
        Ok(())
    }

    /// Commits people's requests, one commit each; drops requests that no longer apply.
    pub(crate) fn commit_changes(&mut self) -> StepResult<()> {
        while let Some((change, from)) = self.changes.first().cloned() {
            if from.is_none() {
                self.changes[0].1 = Some(self.repository.tip.clone());
                self.may_die()?;
                continue;
            }
            self.commit_change(&change, &from.unwrap_or_default())?;
            self.may_die()?;
            self.changes.remove(0);
        }
        Ok(())
    }

    fn commit_change(&mut self, change: &ChangeRequest, from: &str) -> StepResult<()> {
        if self.repository.tip != from {
            // An earlier attempt made it.
            return Ok(());
        }
        let Ok(at) = self.tip() else { return Ok(()) };
        let before = at.documents(self.guarded(&at));
        let Ok(changed) = change.apply(&before) else { return Ok(()) };
        let after = changed.documents;
        let texts = [
            (layout::TREE, tree::canonical(&before.tree), tree::canonical(&after.tree)),
            (layout::NOTES, before.notes, after.notes),
            (layout::QUESTIONS, before.questions, after.questions),
            (layout::CONFIG, before.config, after.config),
            (layout::RUN_STATE, json::to_canonical_json(&before.run_state), json::to_canonical_json(&after.run_state)),
        ];
        let files: Vec<(&str, &str)> =
            texts.iter().filter(|(_, old, new)| old != new).map(|(path, _, text)| (*path, text.as_str())).collect();
        if let ChangeRequest::Accept { files } = change {
            self.accepts(files);
        }
        self.repository.graft(&files, &compose_human(self.run, change.command(), &changed.summary));
        if validate::load(tree::canonical(&after.tree).as_bytes()).is_err() {
            return Err(DaemonHalt::Broken(format!("P2: {change:?} made a tree that is not valid")));
        }
        Ok(())
    }
}

/// Returns a guard's result for a receipt; `None` if it was stopped.
fn guard_run(guard: &GuardEnd) -> Option<GuardRun> {
    let end = match guard.how {
        GuardEndKind::Exited(code) => ProcessEnd::Exit(code),
        GuardEndKind::Signaled(signal) => ProcessEnd::Signal(signal),
        GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => return None,
    };
    Some(GuardRun { end, output: guard.digest.as_ref()?.parse().ok()? })
}
