//! Settle: the outcome becomes the committed state, and the iteration one commit.
//!
//! Done again after a crash it writes the same bytes, and a commit that was made is recognised.

use protocol::answer::ReviewAnswer;
use protocol::meta::{IterationMeta, ReviewFacts};
use protocol::state::UsageTotal;
use protocol::words::{ReviewVerdict, Role};
use runner_core::approval::Decision;
use runner_core::digest::Digest;
use runner_core::iteration::{GuardHow, Outcome, ReviewEnd};
use runner_core::json;
use runner_core::message::{
    AgentStamp, Attempts, NameList, Receipt, ReviewRun, RunnerCommit, UsageLine, VerdictLine, headline,
};
use runner_core::prompt::Prompt;
use runner_core::transition::{self, Before, Facts};
use runner_core::tree;
use runner_core::verdict::{SessionEnd, StopCause, Task, Verdict, row};
use serde::{Deserialize, Serialize};

use crate::causes::in_one_line;
use crate::clock;
use crate::git::{Change, CommitRequest, HeldBack, Id, Refused, Repository};
use crate::repo::durable::{self, Access};
use crate::repo::kept::Note;
use crate::repo::layout::Layout;
use crate::worker::clear::{self, clear_leftovers};
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::restore::hold_back;
use crate::worker::iteration::brief;
use crate::worker::iteration::inspect;
use crate::worker::journal::Entry;
use crate::worker::load::Loaded;
use crate::worker::receipt::{guard_run, version};
use crate::worker::record;

/// The commit upon which a settlement makes its own; empty where there is none.
#[derive(Debug, Serialize, Deserialize)]
struct Upon(String);

impl Note for Upon {
    const KIND: &'static str = "upon";
    const VERSION: u32 = 1;
}

/// Writes what the outcome leads to and commits it; returns the commit, or none where nothing changed.
pub(crate) fn settle(
    context: &RunContext,
    loaded: &Loaded,
    outcome: &Outcome,
    entries: &[Entry],
) -> Result<Option<Id>, Obstacle> {
    let repository = context.repository()?;
    clear_leftovers(&repository)?;
    let settling = Settling::new(context, loaded, outcome, &repository)?;
    let head = repository.head()?.commit();
    let upon = settling.upon(head)?;
    let mut changes = context.seen()?;
    let held_back = repository.hold_back(&hold_back(loaded), &mut changes)?;
    let after = settling.after(settling.left_out(held_back)?)?;
    let (tree, guard_changed) = (tree::canonical(&after.tree), settling.guard_changed()?);
    let told = Told { after: &after, tree: &tree, guard_changed: &guard_changed };
    let made = match settling.receipt(&upon)? {
        Some(receipt) => {
            repository.flush_head()?;
            repository.catch_up_index()?;
            Some(receipt)
        }
        None if !outcome.leaves_commit() => None,
        None => Some(settling.commit((head, changes), told)?),
    };
    match (settling.record(entries, made, told), made) {
        // The record is for people: what is committed does not wait for it.
        (Err(error), Some(_)) => {
            tracing::warn!(
                run = context.run,
                iter = outcome.work.task.iter,
                error = in_one_line(&error),
                "no whole record"
            );
        }
        (Ok(()), Some(_)) => {}
        (recorded, None) => {
            recorded?;
            record::set_aside(context, outcome.work.task.iter)?;
        }
    }
    Ok(made)
}

/// What commit and record tell.
#[derive(Clone, Copy)]
struct Told<'a> {
    /// The state that is committed.
    after: &'a transition::After,
    /// Its tree in canonical form.
    tree: &'a str,
    /// The files of the guard's definition that are not as a person has accepted them.
    guard_changed: &'a [String],
}

struct Settling<'a> {
    context: &'a RunContext,
    loaded: &'a Loaded,
    outcome: &'a Outcome,
    repository: &'a Repository,
    /// The session's prompt; none where a person's word stands for a session.
    prompt: Option<Prompt>,
}

impl<'a> Settling<'a> {
    fn new(
        context: &'a RunContext,
        loaded: &'a Loaded,
        outcome: &'a Outcome,
        repository: &'a Repository,
    ) -> Result<Self, Obstacle> {
        let work = &outcome.work;
        let prompt = work.session().map(|_| brief::prompt(context, loaded, &work.task)).transpose()?;
        Ok(Self { context, loaded, outcome, repository, prompt })
    }

    fn task(&self) -> &Task {
        &self.outcome.work.task
    }

    fn session(&self) -> Option<&SessionEnd> {
        self.outcome.work.session()
    }

    fn after(&self, held_back: Vec<String>) -> Result<transition::After, Obstacle> {
        let facts = Facts {
            agents_tree: inspect::legal_tree(self.context, self.loaded, &self.outcome.work)?,
            notes: self.prompt.as_ref().map(|prompt| prompt.notes.clone()).unwrap_or_default(),
            held_back,
            dirty_submodules: self.repository.dirty_submodules()?,
            guard_definition: definition::at(self.repository, self.loaded)?.accepted,
            elapsed_ms: self.elapsed_ms(),
            tried: self.context.uncommitted.tried.clone(),
        };
        let before = Before {
            tree: &self.loaded.tree,
            run_state: &self.loaded.run_state,
            feedback: &self.loaded.feedback,
            progress: self.loaded.text(Layout::PROGRESS),
        };
        Ok(transition::apply(&before, self.outcome, &facts))
    }

    /// Whether what cannot be stored may stay behind: a run that somebody cancels ends whatever is in its work tree.
    fn leaves_refused(&self) -> bool {
        matches!(self.outcome.verdict, Verdict::Interrupted { by: StopCause::Cancel })
    }

    /// Returns the paths that the commit leaves out.
    fn left_out(&self, HeldBack { mut paths, mut refused }: HeldBack) -> Result<Vec<String>, Obstacle> {
        // The tree is written anew before the commit.
        refused.retain(|found| found.display_path() != Layout::TREE);
        if !self.leaves_refused() {
            let first = refused.into_iter().next();
            return first.map_or(Ok(paths), |first| Err(first.into_error().into()));
        }
        paths.extend(refused.iter().map(Refused::display_path));
        paths.sort();
        Ok(paths)
    }

    fn elapsed_ms(&self) -> u64 {
        self.outcome.spent_ms()
    }

    /// Returns the files of the guard's definition that were not as a person has accepted them, before the guard or now.
    fn guard_changed(&self) -> Result<Vec<String>, Obstacle> {
        let now = definition::departure(self.context, self.repository, self.loaded)?;
        let before = self.outcome.guard.as_ref().map(|guard| &guard.departure);
        Ok(before.map_or(now.clone(), |before| before.and(&now)).paths)
    }

    /// Returns the commit upon which this settlement makes its own, kept when it was first tried.
    ///
    /// What was there before is the session's, whatever its messages say.
    fn upon(&self, head: Option<Id>) -> Result<String, Obstacle> {
        let kept = self.context.note::<Upon>(self.task().iter, "upon");
        if let Some(Upon(upon)) = kept.read()? {
            return Ok(upon);
        }
        let upon = Upon(head.map_or_else(String::new, |head| head.to_string()));
        kept.write(&upon)?;
        Ok(upon.0)
    }

    /// Returns the commit that this settlement has made already.
    fn receipt(&self, upon: &str) -> Result<Option<Id>, Obstacle> {
        let task = self.task();
        Ok(RunContext::was_made(self.repository, upon, |commit| {
            matches!(commit, RunnerCommit::Iteration(receipt)
                if receipt.run == task.run && receipt.iter == task.iter && receipt.from == task.from)
        })?)
    }

    fn commit(&self, (head, changes): (Option<Id>, Vec<Change>), told: Told<'_>) -> Result<Id, Obstacle> {
        let raw = if told.after.tree_refused { self.keep_raw()? } else { None };
        let files = self.write(told)?;
        let written: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_slice())).collect();
        let paths = files.iter().map(|(path, _)| Vec::from(*path));
        let within: Vec<Vec<u8>> = changes.into_iter().map(|change| change.path).chain(paths).collect();
        let request = CommitRequest {
            message: &self.message(told, raw),
            author: RunContext::identity(self.repository),
            parent: head,
            hold_back: &hold_back(self.loaded),
            sign: self.loaded.config.git.sign,
            allow_empty: true,
            within: Some(&within),
            written: &written,
            leaves_refused: self.leaves_refused(),
        };
        let committed = self.repository.commit_all(&request)?;
        if !committed.unstorable.is_empty() {
            tracing::warn!(run = self.context.run, paths = ?committed.unstorable, "git cannot store these; they stay out");
        }
        Ok(committed.commit)
    }

    /// Writes the state that is to be committed, and returns it by path. The commit flushes what names the files.
    fn write(&self, Told { after, tree, .. }: Told<'_>) -> Result<Vec<(&'static str, Vec<u8>)>, Obstacle> {
        let layout = &self.context.layout;
        let mut files = vec![
            (Layout::TREE, tree.as_bytes().to_owned()),
            (Layout::RUN_STATE, json::canonical(&after.run_state).into_bytes()),
            (Layout::FEEDBACK, json::canonical(&after.feedback).into_bytes()),
            (Layout::PROGRESS, after.progress.clone().into_bytes()),
        ];
        durable::put_dir_below(layout.root(), Layout::STATE, Access::Repository)?;
        // A settlement that was interrupted may have left what would be committed now.
        durable::remove_leftovers(&layout.state())?;
        files.extend(self.guardrails(after)?);
        for (path, text) in &files {
            let path = layout.path(path);
            clear::clear_for_file(&path)?;
            if durable::read(&path)?.as_deref() != Some(text) {
                durable::put(&path, text, Access::Repository)?;
            }
        }
        Ok(files)
    }

    /// Returns the guardrails with the line that is due; none where there is no such line, or they have it.
    fn guardrails(&self, after: &transition::After) -> Result<Option<(&'static str, Vec<u8>)>, Obstacle> {
        let Some(guardrail) = &after.guardrail else { return Ok(None) };
        let path = self.context.layout.path(Layout::GUARDRAILS);
        clear::clear_for_file(&path)?;
        let text = durable::read(&path)?.unwrap_or_default();
        Ok(guardrail.added_to(&text).map(|text| (Layout::GUARDRAILS, text)))
    }

    /// Keeps the tree that was not taken as a blob under a ref of its own.
    fn keep_raw(&self) -> Result<Option<Id>, Obstacle> {
        let Some(text) = inspect::agents_tree(self.context, self.task())? else { return Ok(None) };
        let blob = self.repository.write_blob(&text)?;
        let name = format!("refs/runner/raw/{}/{:04}", self.context.run, self.task().iter);
        self.repository.keep(&name, &blob)?;
        Ok(Some(blob))
    }

    fn message(&self, Told { after, guard_changed, .. }: Told<'_>, raw: Option<Id>) -> String {
        let (task, session, guard) = (self.task(), self.session(), self.outcome.guard.as_ref());
        let node = tree::find(&after.tree, &task.node);
        let prompt = self.prompt.as_ref();
        let verdict = &self.outcome.verdict;
        let title = tree::find(&self.loaded.tree, &task.node).map_or("", |node| node.title.as_str());
        let receipt = Receipt {
            run: task.run.clone(),
            iter: task.iter,
            node: task.node.clone(),
            status: row(verdict.name()).status,
            guard: self.outcome.guard_outcome(),
            headline: headline(title, verdict.name()),
            summary: after.run_state.last_summary.clone().unwrap_or_default(),
            version: version(),
            from: task.from.clone(),
            verdict: VerdictLine::new(verdict.name(), verdict.detail().as_deref()),
            role: task.role,
            mode: self.outcome.mode(),
            attempts: Attempts {
                charged: node.map_or(task.attempts, |node| node.attempts),
                allowed: node.map_or(task.max_attempts, |node| node.max_attempts),
            },
            agent: session.map(|session| stamp(&session.agent)),
            prompt: prompt.map(|prompt| Digest::of(prompt.text.as_bytes())),
            output: session.and_then(|session| session.output_digest.as_ref()?.parse().ok()),
            guard_run: guard.and_then(guard_run),
            review: self.review_run(),
            signature: task.signature.clone(),
            notes: NameList::new(self.notes_used(after)),
            usage: Some(transition::iteration_usage(self.outcome, &self.context.uncommitted.tried))
                .filter(|usage| usage.sessions > 0)
                .map(UsageLine),
            reverted: NameList::new(&after.run_state.reverted),
            guard_changed: NameList::whole(guard_changed),
            guard_wrote: NameList::new(guard.map_or(&[][..], |guard| &guard.wrote)),
            held_back: NameList::new(&after.run_state.held_back),
            dirty_submodules: NameList::new(&after.run_state.dirty_submodules),
            tree_from: Digest::of(self.loaded.canonical_tree().as_bytes()),
            raw: raw.map(|raw| raw.to_string()),
        };
        RunnerCommit::Iteration(Box::new(receipt)).compose()
    }

    /// Returns the notes that this session has answered to.
    fn notes_used<'n>(&self, after: &'n transition::After) -> impl Iterator<Item = &'n String> {
        let before = &self.loaded.run_state.notes_used;
        after.run_state.notes_used.iter().filter(move |note| !before.contains(note))
    }

    /// Returns which references of others the processes moved: as they stood after the last one.
    fn moved_refs(&self) -> &[String] {
        let of_review = self.outcome.review.as_ref().map(|review| &review.moved_refs);
        let of_guard = self.outcome.guard.as_ref().map(|guard| &guard.moved_refs);
        let later = of_review.into_iter().chain(of_guard).find(|moved| !moved.is_empty());
        let of_session = self.outcome.work.finding().map_or(&[][..], |finding| &finding.moved_refs);
        later.map_or(of_session, Vec::as_slice)
    }

    fn survivors(&self) -> u32 {
        let of_guard = self.outcome.guard.as_ref().map_or(0, |guard| guard.survivors);
        let of_review = self.outcome.review.as_ref().map_or(0, |review| review.survivors);
        let of_session = self.session().map_or(0, |session| session.survivors);
        of_session.saturating_add(of_guard).saturating_add(of_review)
    }

    /// Returns what the receipt says of the review, where one decided something.
    fn review_run(&self) -> Option<ReviewRun> {
        if let Some(decision) = self.outcome.work.decision() {
            return Some(ReviewRun { accepted: *decision == Decision::Approve, prompt: None, output: None });
        }
        let review = self.outcome.review.as_ref()?;
        let accepted = review.verdict()? == ReviewVerdict::Accept;
        let digest = |text: &Option<String>| text.as_ref().and_then(|digest| digest.parse().ok());
        Some(ReviewRun { accepted, prompt: digest(&review.prompt), output: digest(&review.output) })
    }

    /// Returns a person's review in the form of a reviewer's answer.
    fn said(&self) -> Option<ReviewAnswer> {
        let (verdict, reasons) = match self.outcome.work.decision()? {
            Decision::Approve => (ReviewVerdict::Accept, Vec::new()),
            Decision::Reject { reasons } => (ReviewVerdict::Reject, vec![reasons.clone()]),
        };
        Some(ReviewAnswer { verdict, reasons })
    }

    /// Names the logs of which the disk has refused a part.
    fn log_faults(&self) -> Vec<String> {
        let guard = self.outcome.guard.as_ref().and_then(|guard| guard.log_fault.as_ref());
        let review = self.outcome.review.as_ref().and_then(|review| review.log_fault.as_ref());
        let session = self.session().and_then(|session| session.log_fault.as_ref());
        let logs = [("executor.log", session), ("guard.log", guard), ("reviewer.log", review)];
        logs.into_iter().filter_map(|(log, fault)| fault.map(|fault| format!("{log}: {fault}"))).collect()
    }

    fn record(&self, entries: &[Entry], commit: Option<Id>, told: Told<'_>) -> Result<(), Obstacle> {
        let (task, session) = (self.task(), self.session());
        let guard = self.outcome.guard.as_ref();
        let now = clock::now();
        let meta = IterationMeta {
            run: task.run.clone(),
            iter: task.iter,
            from: task.from.clone(),
            node: task.node.clone(),
            node_path: task.path.clone(),
            role: task.role,
            mode: self.outcome.mode(),
            agent: session.map_or_else(|| Role::Human.to_string(), |session| session.agent.clone()),
            session_id: session.and_then(|session| session.session_id.clone()),
            verdict: self.outcome.verdict.name(),
            detail: self.outcome.verdict.detail(),
            status: row(self.outcome.verdict.name()).status,
            guard: self.outcome.guard_outcome(),
            agent_exit: session.and_then(|session| session.exit),
            guard_exit: guard.and_then(guard_exit),
            started_at: entries.first().map_or(now, |entry| entry.at),
            ended_at: now,
            phases: record::phase_times(entries, now),
            captured_bytes: session.map_or(0, |session| session.captured_bytes),
            dropped_bytes: session.map_or(0, |session| session.dropped_bytes),
            failure: session.and_then(|session| session.failure.as_deref().cloned()),
            usage: session.map(|session| session.usage).unwrap_or_default(),
            review: self.outcome.review.as_ref().map(review_facts).or_else(|| self.said().as_ref().map(persons_facts)),
            containment: self.outcome.containment().min(self.context.launcher.offer().level()),
            survivors_ended: self.survivors(),
            secrets: self.outcome.work.finding().map(|finding| finding.secrets.clone()).unwrap_or_default(),
            log_faults: self.log_faults(),
            moved_refs: self.moved_refs().to_vec(),
            held_back: told.after.run_state.held_back.clone(),
            reverted: told.after.run_state.reverted.clone(),
            dirty_submodules: told.after.run_state.dirty_submodules.clone(),
            guard_changed: told.guard_changed.to_vec(),
            guard_with_accepted: guard.is_some_and(|guard| guard.with_accepted),
            commit: commit.map(|commit| commit.to_string()),
        };
        let agents_tree = inspect::agents_tree(self.context, task)?;
        let settled = record::Settled {
            outcome: self.outcome,
            entries,
            prompt: self.prompt.as_ref().map(|prompt| prompt.text.as_str()),
            word: self.said().as_ref().map(json::canonical),
            tree_before: self.loaded.canonical_tree(),
            agents_tree: agents_tree.as_deref(),
            tree: told.tree,
            meta: &meta,
            commit,
        };
        record::complete(self.context, self.repository, &settled)
    }
}

/// Returns what the record says of a reviewer.
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

/// Returns what the record says of a person who reviewed.
fn persons_facts(said: &ReviewAnswer) -> ReviewFacts {
    ReviewFacts {
        by: Role::Human.to_string(),
        verdict: Some(said.verdict),
        session_id: None,
        tries: 0,
        failure: None,
        usage: UsageTotal::default(),
        wrote: Vec::new(),
    }
}

/// Kind and version stand in one word each, the version where it is known.
fn stamp(agent: &str) -> AgentStamp {
    let (kind, version) = agent.split_once(' ').unwrap_or((agent, "unknown"));
    AgentStamp::new(kind, version)
}

fn guard_exit(guard: &runner_core::iteration::GuardEnd) -> Option<i32> {
    match guard.how {
        GuardHow::Exited(code) => Some(code),
        GuardHow::Signaled(signal) => Some(-signal),
        GuardHow::TimedOut | GuardHow::Missing { .. } | GuardHow::Cut | GuardHow::Lost => None,
    }
}
