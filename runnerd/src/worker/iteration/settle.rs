//! Settle: the outcome becomes the committed state, and the iteration one commit.
//!
//! Idempotent: repeated after a crash it writes the same bytes, and recognizes a commit that was already made.

use protocol::answer::ReviewAnswer;
use protocol::meta::{IterationMeta, ReviewFacts};
use protocol::state::UsageTotal;
use protocol::words::{ReviewVerdict, Role};
use runner_core::iteration::transition::{self, StateAfter, TransitionFacts};
use runner_core::iteration::{GuardEndKind, IterationOutcome, ReviewEnd};
use runner_core::message::{
    AgentStamp, AttemptCount, GuardFlaky, GuardTests, NameList, Receipt, ReviewRun, RunnerCommit, UsageLine,
    VerdictLine, compose_headline,
};
use runner_core::prompt::Prompt;
use runner_core::run::approval::Decision;
use runner_core::text::digest::Digest;
use runner_core::text::json;
use runner_core::tree;
use runner_core::verdict::{SessionEnd, SessionTask, StopCause, Verdict, verdict_row};
use runner_git::{CommitRequest, HeldBackFiles, HoldBackRule, Id, Repository, UnstorableFile, WorktreeChange};
use runner_os::clock;
use runner_os::error_chain::display_chain;
use serde::{Deserialize, Serialize};

use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::Layout;
use crate::repo::sealed::Sealable;
use crate::worker::cleanup::{self, clear_leftovers};
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::hold_back::hold_back_rule;
use crate::worker::iteration::brief;
use crate::worker::iteration::guard;
use crate::worker::iteration::inspect;
use crate::worker::journal::JournalEntry;
use crate::worker::load::CommittedState;
use crate::worker::receipt::{guard_run, runner_version};
use crate::worker::record;

/// Parent of the settlement commit; empty on an unborn branch.
#[derive(Debug, Serialize, Deserialize)]
struct SettleParent(String);

impl Sealable for SettleParent {
    const KIND: &'static str = "upon";
    const VERSION: u32 = 1;
}

/// Writes and commits the state that the outcome leads to; returns the commit, or `None` if nothing changed.
pub(crate) fn settle_iteration(
    context: &RunContext,
    loaded: &CommittedState,
    outcome: &IterationOutcome,
    entries: &[JournalEntry],
) -> Result<Option<Id>, EffectError> {
    let repository = context.repository()?;
    clear_leftovers(&repository)?;
    let settlement = Settlement::build(context, loaded, outcome, &repository)?;
    let commit = settlement.find_or_create_commit()?;
    match (settlement.write_record(entries, commit), commit) {
        // The record is for people: the commit does not wait for it.
        (Err(error), Some(_)) => {
            tracing::warn!(
                run = context.run,
                iter = outcome.work.task.iter,
                error = display_chain(&error),
                "no whole record"
            );
        }
        (Ok(()), Some(_)) => {}
        (recorded, None) => {
            recorded?;
            record::move_record(context, outcome.work.task.iter)?;
        }
    }
    Ok(commit)
}

/// What is settled: the files, the commit and the record are made from it alone.
struct Settlement<'a> {
    context: &'a RunContext,
    loaded: &'a CommittedState,
    outcome: &'a IterationOutcome,
    repository: &'a Repository,
    /// The session's prompt; `None` if a person's decision takes the place of a session.
    prompt: Option<Prompt>,
    /// A person's review in the form of a reviewer's answer.
    person_review: Option<ReviewAnswer>,
    /// The commit at HEAD.
    head: Option<Id>,
    /// The commit at HEAD at the first attempt; empty on an unborn branch.
    parent: String,
    /// What differs from HEAD.
    changes: Vec<WorktreeChange>,
    /// What stays out of the commit.
    hold_back: HoldBackRule,
    /// The state to commit.
    after: StateAfter,
    /// The task tree of that state in canonical form.
    tree: String,
    /// What the guard has written and the commit has.
    guard_wrote: Vec<String>,
    /// The files of the guard's definition that differ from the version a person accepted, before the guard ran or now.
    guard_changed: Vec<String>,
}

impl<'a> Settlement<'a> {
    fn build(
        context: &'a RunContext,
        loaded: &'a CommittedState,
        outcome: &'a IterationOutcome,
        repository: &'a Repository,
    ) -> Result<Self, EffectError> {
        let work = &outcome.work;
        let prompt = work.session().map(|_| brief::build_prompt(context, loaded, &work.task)).transpose()?;
        let head = repository.head()?.commit();
        let parent = parent_commit(context, work.task.iter, head)?;
        let mut changes = context.cached_changes()?;
        let rule = hold_back_rule(context, repository, loaded)?;
        let held_back = repository.apply_hold_back(&rule, &mut changes)?;
        let facts = TransitionFacts {
            held_back: excluded_paths(outcome, held_back)?,
            agents_tree: inspect::read_legal_tree(context, loaded, work)?,
            notes: prompt.as_ref().map(|prompt| prompt.notes.clone()).unwrap_or_default(),
            dirty_submodules: repository.find_dirty_submodules()?,
            guard_definition: definition::definition_at(repository, loaded)?.accepted,
            elapsed_ms: outcome.elapsed_ms(),
            retry_usage: context.uncommitted.tried.clone(),
        };
        let after = transition::apply_outcome(loaded, outcome, &facts);
        let now = definition::diff_work_tree(context, repository, loaded)?;
        let guard_changed = outcome.guard.as_ref().map_or(now.clone(), |guard| guard.departure.merged_with(&now)).paths;
        Ok(Self {
            context,
            loaded,
            outcome,
            repository,
            prompt,
            person_review: work.decision().map(person_review),
            head,
            parent,
            guard_wrote: guard::committed_paths(repository, loaded.commit, outcome, &changes, &facts.held_back)?,
            changes,
            hold_back: rule,
            tree: tree::canonical(&after.tree),
            after,
            guard_changed,
        })
    }

    fn task(&self) -> &SessionTask {
        &self.outcome.work.task
    }

    fn session(&self) -> Option<&SessionEnd> {
        self.outcome.work.session()
    }

    fn find_or_create_commit(&self) -> Result<Option<Id>, EffectError> {
        if let Some(commit) = self.find_commit()? {
            self.repository.sync_head()?;
            self.repository.sync_index_with_head()?;
            return Ok(Some(commit));
        }
        self.outcome.leaves_commit().then(|| self.create_commit()).transpose()
    }

    /// Returns the commit of this settlement, if an earlier attempt made it.
    fn find_commit(&self) -> Result<Option<Id>, EffectError> {
        let task = self.task();
        Ok(RunContext::find_own_commit(self.repository, &self.parent, |commit| {
            matches!(commit, RunnerCommit::Iteration(receipt)
                if receipt.run == task.run && receipt.iter == task.iter && receipt.from == task.from)
        })?)
    }

    fn create_commit(&self) -> Result<Id, EffectError> {
        let raw = if self.after.tree_refused { self.save_rejected_tree()? } else { None };
        let files = self.write_state()?;
        let written: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_slice())).collect();
        let paths = files.iter().map(|(path, _)| Vec::from(*path));
        let commit_paths: Vec<Vec<u8>> = self.changes.iter().map(|change| change.path.clone()).chain(paths).collect();
        let request = CommitRequest {
            message: &RunnerCommit::Iteration(Box::new(self.receipt(raw))).compose(),
            author: RunContext::identity(self.repository),
            parent: self.head,
            hold_back: &self.hold_back,
            sign: self.loaded.config.git.sign,
            allow_empty: true,
            paths: Some(&commit_paths),
            expected_files: &written,
            keeps_unstorable: may_leave_unstorable(self.outcome),
        };
        let committed = self.repository.commit_all(&request)?;
        if !committed.unstorable.is_empty() {
            tracing::warn!(run = self.context.run, paths = ?committed.unstorable, "git cannot store these files; they are not committed");
        }
        Ok(committed.commit)
    }

    /// Writes the state to commit, and returns the files by path. The commit flushes the directory entries.
    fn write_state(&self) -> Result<Vec<(&'static str, Vec<u8>)>, EffectError> {
        let after = &self.after;
        let layout = &self.context.layout;
        let mut files = vec![
            (Layout::TREE, self.tree.clone().into_bytes()),
            (Layout::RUN_STATE, json::to_canonical_json(&after.run_state).into_bytes()),
            (Layout::FEEDBACK, json::to_canonical_json(&after.feedback).into_bytes()),
            (Layout::PROGRESS, after.progress.clone().into_bytes()),
            (Layout::TESTS, json::to_canonical_json(&after.tests).into_bytes()),
        ];
        durable::create_dir_below_unsynced(layout.root(), Layout::STATE, FileAccess::Repository)?;
        // An interrupted settlement may have left files that would be committed now.
        durable::remove_leftovers(&layout.state())?;
        files.extend(self.updated_guardrails()?);
        for (path, text) in &files {
            let path = layout.path(path);
            cleanup::clear_path_for_file(&path)?;
            if durable::read(&path)?.as_deref() != Some(text) {
                durable::replace_unsynced(&path, text, FileAccess::Repository)?;
            }
        }
        Ok(files)
    }

    /// Returns the guardrails with the line to add; `None` if there is no such line, or they already have it.
    fn updated_guardrails(&self) -> Result<Option<(&'static str, Vec<u8>)>, EffectError> {
        let Some(guardrail) = &self.after.guardrail else { return Ok(None) };
        let path = self.context.layout.path(Layout::GUARDRAILS);
        cleanup::clear_path_for_file(&path)?;
        let text = durable::read(&path)?.unwrap_or_default();
        Ok(guardrail.append_to(&text).map(|text| (Layout::GUARDRAILS, text)))
    }

    /// Stores the rejected tree as a blob under its own ref.
    fn save_rejected_tree(&self) -> Result<Option<Id>, EffectError> {
        let Some(text) = inspect::read_agent_tree(self.context, self.task())? else { return Ok(None) };
        let blob = self.repository.write_blob(&text)?;
        let name = format!("refs/runner/raw/{}/{:04}", self.context.run, self.task().iter);
        self.repository.set_runner_ref(&name, &blob)?;
        Ok(Some(blob))
    }

    fn receipt(&self, raw: Option<Id>) -> Receipt {
        let after = &self.after;
        let task = self.task();
        let session = self.session();
        let guard = self.outcome.guard.as_ref();
        let node = tree::find(&after.tree, &task.node);
        let prompt = self.prompt.as_ref();
        let verdict = &self.outcome.verdict;
        let title = tree::find(&self.loaded.tree, &task.node).map_or("", |node| node.title.as_str());
        Receipt {
            run: task.run.clone(),
            iter: task.iter,
            node: task.node.clone(),
            status: verdict_row(verdict.name()).status,
            guard: self.outcome.guard_outcome(),
            headline: compose_headline(title, verdict.name()),
            summary: after.run_state.last_summary.clone().unwrap_or_default(),
            version: runner_version(),
            from: task.from.clone(),
            verdict: VerdictLine::new(verdict.name(), verdict.detail().as_deref()),
            role: task.role,
            mode: self.outcome.mode(&self.guard_wrote),
            attempts: AttemptCount {
                charged: node.map_or(task.attempts, |node| node.attempts),
                allowed: node.map_or(task.max_attempts, |node| node.max_attempts),
            },
            agent: session.map(|session| agent_stamp(&session.agent)),
            prompt: prompt.map(|prompt| Digest::compute(prompt.text.as_bytes())),
            output: session.and_then(|session| session.output_digest.as_ref()?.parse().ok()),
            guard_run: guard.and_then(guard_run),
            guard_tests: GuardTests::between(&self.loaded.tests, &after.tests),
            guard_flaky: self.outcome.flaky_guard().map(GuardFlaky::from),
            review: self.review_run(),
            signature: task.signature.clone(),
            notes: NameList::new(self.answered_notes()),
            usage: Some(transition::iteration_usage(self.outcome, &self.context.uncommitted.tried))
                .filter(|usage| usage.sessions > 0)
                .map(UsageLine),
            reverted: NameList::new(&after.run_state.reverted),
            hidden: NameList::new(&after.run_state.hidden),
            guard_changed: NameList::complete(&self.guard_changed),
            guard_wrote: NameList::new(&self.guard_wrote),
            held_back: NameList::new(&after.run_state.held_back),
            dirty_submodules: NameList::new(&after.run_state.dirty_submodules),
            tree_from: Digest::compute(self.loaded.canonical_tree().as_bytes()),
            raw: raw.map(|raw| raw.to_string()),
        }
    }

    /// Returns the notes that this session has responded to.
    fn answered_notes(&self) -> impl Iterator<Item = &String> {
        let before = &self.loaded.run_state.notes_used;
        self.after.run_state.notes_used.iter().filter(move |note| !before.contains(note))
    }

    /// Returns which references of others the processes moved, as of the last process.
    fn moved_refs(&self) -> &[String] {
        let of_review = self.outcome.review.as_ref().map(|review| &review.moved_refs);
        let of_guard = self.outcome.guard.as_ref().map(|guard| &guard.moved_refs);
        let later = of_review.into_iter().chain(of_guard).find(|moved| !moved.is_empty());
        let of_session = self.outcome.work.finding().map_or(&[][..], |finding| &finding.moved_refs);
        later.map_or(of_session, Vec::as_slice)
    }

    fn survivor_count(&self) -> u32 {
        let of_guard = self.outcome.guard.as_ref().map_or(0, |guard| guard.survivors);
        let of_review = self.outcome.review.as_ref().map_or(0, |review| review.survivors);
        let of_session = self.session().map_or(0, |session| session.survivors);
        of_session.saturating_add(of_guard).saturating_add(of_review)
    }

    /// Returns the receipt's entry for the review, if a review decided something.
    fn review_run(&self) -> Option<ReviewRun> {
        if let Some(decision) = self.outcome.work.decision() {
            return Some(ReviewRun { accepted: *decision == Decision::Approve, prompt: None, output: None });
        }
        let review = self.outcome.review.as_ref()?;
        let accepted = review.verdict()? == ReviewVerdict::Accept;
        let digest = |text: &Option<String>| text.as_ref().and_then(|digest| digest.parse().ok());
        Some(ReviewRun { accepted, prompt: digest(&review.prompt), output: digest(&review.output) })
    }

    /// Names the logs that are incomplete because of disk errors, and the reports that are not read.
    fn log_faults(&self) -> Vec<String> {
        let guard = self.outcome.guard.as_ref().and_then(|guard| guard.log_fault.as_ref());
        let review = self.outcome.review.as_ref().and_then(|review| review.log_fault.as_ref());
        let session = self.session().and_then(|session| session.log_fault.as_ref());
        let reports = self.outcome.guard.as_ref().and_then(|guard| guard.report_fault.as_ref());
        let logs =
            [("executor.log", session), ("guard.log", guard), ("reviewer.log", review), ("names of tests", reports)];
        logs.into_iter().filter_map(|(log, fault)| fault.map(|fault| format!("{log}: {fault}"))).collect()
    }

    fn meta(&self, entries: &[JournalEntry], commit: Option<Id>) -> IterationMeta {
        let task = self.task();
        let session = self.session();
        let after = &self.after;
        let guard = self.outcome.guard.as_ref();
        let now = clock::now();
        IterationMeta {
            run: task.run.clone(),
            iter: task.iter,
            from: task.from.clone(),
            node: task.node.clone(),
            node_path: task.path.clone(),
            role: task.role,
            mode: self.outcome.mode(&self.guard_wrote),
            agent: session.map_or_else(|| Role::Human.to_string(), |session| session.agent.clone()),
            session_id: session.and_then(|session| session.session_id.clone()),
            verdict: self.outcome.verdict.name(),
            detail: self.outcome.verdict.detail(),
            status: verdict_row(self.outcome.verdict.name()).status,
            guard: self.outcome.guard_outcome(),
            agent_exit: session.and_then(|session| session.exit),
            guard_exit: guard.and_then(guard_exit_code),
            started_at: entries.first().map_or(now, |entry| entry.at),
            ended_at: now,
            phases: record::phase_times(entries, now),
            captured_bytes: session.map_or(0, |session| session.captured_bytes),
            dropped_bytes: session.map_or(0, |session| session.dropped_bytes),
            failure: session.and_then(|session| session.failure.as_deref().cloned()),
            usage: session.map(|session| session.usage).unwrap_or_default(),
            review: self
                .outcome
                .review
                .as_ref()
                .map(review_facts)
                .or(self.person_review.as_ref().map(person_review_facts)),
            containment: self.outcome.containment().min(self.context.launcher.capabilities().level()),
            survivors_ended: self.survivor_count(),
            secrets: self.outcome.work.finding().map(|finding| finding.secrets.clone()).unwrap_or_default(),
            log_faults: self.log_faults(),
            moved_refs: self.moved_refs().to_vec(),
            held_back: after.run_state.held_back.clone(),
            reverted: after.run_state.reverted.clone(),
            hidden: after.run_state.hidden.clone(),
            dirty_submodules: after.run_state.dirty_submodules.clone(),
            guard_changed: self.guard_changed.clone(),
            guard_with_accepted: guard.is_some_and(|guard| guard.with_accepted),
            commit: commit.map(|commit| commit.to_string()),
        }
    }

    fn write_record(&self, entries: &[JournalEntry], commit: Option<Id>) -> Result<(), EffectError> {
        let agent_tree = inspect::read_agent_tree(self.context, self.task())?;
        let input = record::RecordInput {
            outcome: self.outcome,
            entries,
            prompt: self.prompt.as_ref().map(|prompt| prompt.text.as_str()),
            review_json: self.person_review.as_ref().map(json::to_canonical_json),
            tree_before: self.loaded.canonical_tree(),
            agent_tree: agent_tree.as_deref(),
            tree: &self.tree,
            meta: &self.meta(entries, commit),
            commit,
        };
        record::complete_record(self.context, self.repository, &input)
    }
}

/// Returns the parent of this settlement's commit, saved at the first attempt.
///
/// All commits that existed then are the session's, whatever their messages say.
fn parent_commit(context: &RunContext, iter: u32, head: Option<Id>) -> Result<String, EffectError> {
    let note = context.iteration_note::<SettleParent>(iter, "upon");
    if let Some(SettleParent(upon)) = note.read()? {
        return Ok(upon);
    }
    let parent = SettleParent(head.map_or_else(String::new, |head| head.to_string()));
    note.write(&parent)?;
    Ok(parent.0)
}

/// Whether files that git cannot store may be left out: a cancelled run ends whatever is in its work tree.
fn may_leave_unstorable(outcome: &IterationOutcome) -> bool {
    matches!(outcome.verdict, Verdict::Interrupted { by: StopCause::Cancel })
}

/// Returns the paths that the commit leaves out.
fn excluded_paths(
    outcome: &IterationOutcome,
    HeldBackFiles { mut paths, unstorable: mut refused }: HeldBackFiles,
) -> Result<Vec<String>, EffectError> {
    // The tree is rewritten before the commit.
    refused.retain(|found| found.display_path() != Layout::TREE);
    if !may_leave_unstorable(outcome) {
        let first = refused.into_iter().next();
        return first.map_or(Ok(paths), |first| Err(first.into_error().into()));
    }
    paths.extend(refused.iter().map(UnstorableFile::display_path));
    paths.sort();
    Ok(paths)
}

/// Returns a person's review in the form of a reviewer's answer.
fn person_review(decision: &Decision) -> ReviewAnswer {
    let (verdict, reasons) = match decision {
        Decision::Approve => (ReviewVerdict::Accept, Vec::new()),
        Decision::Reject { reasons } => (ReviewVerdict::Reject, vec![reasons.clone()]),
    };
    ReviewAnswer { verdict, reasons }
}

/// Returns the record's facts about a reviewer.
fn review_facts(review: &ReviewEnd) -> ReviewFacts {
    ReviewFacts {
        by: review.agent.clone(),
        verdict: review.verdict(),
        session_id: review.session_id.clone(),
        tries: review.tries,
        failure: review.failure.as_deref().cloned(),
        usage: review.usage.clone(),
        wrote: review.wrote.clone(),
    }
}

/// Returns the record's facts about a person who reviewed.
fn person_review_facts(review: &ReviewAnswer) -> ReviewFacts {
    ReviewFacts {
        by: Role::Human.to_string(),
        verdict: Some(review.verdict),
        session_id: None,
        tries: 0,
        failure: None,
        usage: UsageTotal::default(),
        wrote: Vec::new(),
    }
}

/// Splits `agent` into kind and version, one word each; the version may be unknown.
fn agent_stamp(agent: &str) -> AgentStamp {
    let (kind, version) = agent.split_once(' ').unwrap_or((agent, "unknown"));
    AgentStamp::new(kind, version)
}

fn guard_exit_code(guard: &runner_core::iteration::GuardEnd) -> Option<i32> {
    match guard.how {
        GuardEndKind::Exited(code) => Some(code),
        GuardEndKind::Signaled(signal) => Some(-signal),
        GuardEndKind::TimedOut | GuardEndKind::Missing { .. } | GuardEndKind::Cut | GuardEndKind::Lost => None,
    }
}
