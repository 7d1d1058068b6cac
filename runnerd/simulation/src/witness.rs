//! An outside observer of an iteration: what it has seen, and which outcomes the promises then allow.
//!
//! Does not call the rules; expectations follow from what happened in the simulated world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::answer::AnswerStatus;
use protocol::tree::{Node, TaskTree};
use protocol::words::VerdictName;
use runner_config::{ChangePolicy, ReviewPolicy};
use runner_core::files::layout;
use runner_core::message::RunnerCommit;
use runner_core::run::approval::Decision;
use runner_core::text::digest::Digest;
use runner_core::tree;
use runner_core::verdict::{SessionEndKind, SessionTask, Verdict};

use super::definition::JUSTFILE;
use super::loaded::LoadedState;
use super::repository::{FileMap, SimulatedRepository, differing};

/// A node that a session claimed as done and a guard passed.
#[derive(Debug, Clone)]
pub(crate) struct TaskClaim {
    node: String,
    files: Arc<FileMap>,
}

/// Earlier observations: sessions of the same iteration, pending reviews, and the accepted justfile.
type WitnessedIteration = (u32, Option<TaskClaim>, Option<String>);

/// Observations of one iteration.
#[derive(Debug, Default)]
pub(crate) struct RunWitness {
    from: String,
    iter: u32,
    node: String,
    before: Option<TaskTree>,
    review: Option<ReviewPolicy>,
    /// The justfile that must be in place for a guard to prove anything.
    accepted: Option<String>,
    /// The justfile in place when the guard last ran.
    found: Option<String>,
    /// What a person has decided about an earlier claim.
    word: Option<Decision>,
    claim: Option<TaskClaim>,
    /// Whether code has changed since the claim.
    has_changed: bool,
    /// The agent's answer, once its session is over.
    last_end: Option<AnswerStatus>,
    is_too_large: bool,
    /// The exit code of the last guard.
    pub(crate) guard: Option<i32>,
    /// Whether a reviewer was asked and did not accept.
    pub(crate) has_rejected: bool,
    /// Number of sessions begun.
    pub(crate) sessions: u32,
    /// The prompt that was built.
    pub(crate) prompt: Option<Digest>,
    /// Commits that processes have made.
    theirs: BTreeSet<String>,
    /// Contents that processes have left, and where.
    left: BTreeMap<String, String>,
    /// Contents saved in the record.
    pub(crate) aside: BTreeSet<String>,
}

impl RunWitness {
    /// Starts with the task an iteration was opened for.
    pub(crate) fn of(
        loaded: &LoadedState,
        task: &SessionTask,
        (sessions, claim, accepted): WitnessedIteration,
    ) -> Self {
        let is_code =
            |claim: &TaskClaim| differing(&claim.files, &loaded.files).any(|path| !path.starts_with(".runner/"));
        Self {
            accepted: accepted.filter(|_| loaded.policy.on_change != ChangePolicy::Report),
            word: task.decision.clone(),
            has_changed: claim.as_ref().is_some_and(is_code),
            claim,
            sessions,
            from: loaded.commit.clone(),
            iter: task.iter,
            node: task.node.clone(),
            before: Some((*loaded.tree).clone()),
            review: Some(loaded.policy.review),
            ..Self::default()
        }
    }

    /// Returns the sessions of the same iteration, which may be opened again after a death.
    pub(crate) fn of_same(self, is_same: bool) -> u32 {
        if is_same { self.sessions } else { 0 }
    }

    /// Records what a process has left in the work tree and in its commits. What it removed itself does not count as
    /// lost.
    pub(crate) fn saw(&mut self, repository: &SimulatedRepository) {
        self.left.clear();
        let from = &repository.commit(&self.from).files;
        self.theirs.extend(repository.since(&repository.tip, &self.from).map(|commit| commit.id.clone()));
        let mine = repository.since(&repository.tip, &self.from).map(|commit| &*commit.files);
        for files in mine.chain([&repository.work]) {
            let new = differing(from, files).filter_map(|path| Some((path, files.get(path)?)));
            self.left.extend(new.map(|(path, blob)| (blob.id.to_string(), path.to_owned())));
        }
    }

    /// Records what a guard runs with.
    pub(crate) fn guards_with(&mut self, work: &FileMap) {
        self.found = work.get(JUSTFILE).map(|blob| blob.id.to_string());
    }

    /// Records how a session ended.
    pub(crate) fn note_end(&mut self, how: &SessionEndKind) {
        self.last_end = if let SessionEndKind::Answered(answer) = how { Some(answer.status) } else { None };
        self.is_too_large = matches!(how, SessionEndKind::ContextExceeded { .. });
    }

    /// Checks the outcome of an iteration; the error names the broken promise.
    pub(crate) fn check(
        &self,
        repository: &SimulatedRepository,
        tip: &LoadedState,
        (verdict, commit): (&Verdict, Option<&str>),
    ) -> Result<(), String> {
        let holds = |holds: bool, broken: String| if holds { Ok(()) } else { Err(broken) };
        let most = u32::from(self.word.is_none());
        holds(self.sessions <= most, format!("P3: {} sessions in one iteration", self.sessions))?;
        self.commits(repository, verdict, commit)?;
        // The runner may have added a line to it.
        self.nothing_is_lost(repository, &[layout::TREE, layout::GUARDRAILS])?;
        let canonical = tree::canonical(&tip.tree);
        holds(
            *tip.files[layout::TREE].bytes == *canonical.as_bytes(),
            "P2: the tree at HEAD is not in canonical form".to_owned(),
        )?;
        let Some(before) = &self.before else { return Err("settled what nobody has seen".to_owned()) };
        self.passes(before, &tip.tree)?;
        let is_lossy = tip.tests.lost.iter().any(|lost| lost.iter == self.iter);
        let guard_file = repository.head().files.get(JUSTFILE).map(|blob| blob.id.to_string());
        // With `revert` the guard ran with the accepted definition, whatever it has made of it.
        let is_kept = tip.policy.on_change != ChangePolicy::Revert;
        let has_changed = is_kept && self.accepted.is_some() && self.accepted != guard_file;
        holds(
            *verdict != Verdict::Accepted || self.word.is_some() || !is_lossy || !has_changed,
            format!("P5: {} passes with lost tests and a changed guard, and no person has reviewed it", self.node),
        )?;
        self.attempts(before, &tip.tree, verdict)
    }

    /// P7: one commit if anything changed, on top of the session's commits; otherwise none.
    fn commits(&self, repository: &SimulatedRepository, verdict: &Verdict, commit: Option<&str>) -> Result<(), String> {
        let is_receipt = |message: &str| matches!(RunnerCommit::parse(message), Ok(RunnerCommit::Iteration(receipt)) if receipt.from == self.from);
        // A commit by an agent may look like a receipt.
        let own = repository.since(&repository.tip, &self.from).filter(|commit| !self.theirs.contains(&commit.id));
        let count = own.filter(|commit| is_receipt(&commit.message)).count();
        let is_tip = commit.is_none_or(|commit| repository.tip == commit);
        if count != usize::from(commit.is_some()) || !is_tip {
            return Err(format!("P7: {count} commits of iteration {} ({})", self.iter, verdict.name()));
        }
        let may_be_idle = matches!(verdict.name(), VerdictName::Unavailable | VerdictName::Misconfigured);
        if commit.is_none() && !may_be_idle && self.word.is_none() {
            return Err(format!("P7: {} has left no commit", verdict.name()));
        }
        if repository.changes().is_empty() {
            Ok(())
        } else {
            Err(format!("P7: not committed: {:?}", repository.changes()))
        }
    }

    /// P7: everything the last process left is kept somewhere, except for files that are rewritten.
    pub(crate) fn nothing_is_lost(
        &self,
        repository: &SimulatedRepository,
        exempt_paths: &[&str],
    ) -> Result<(), String> {
        let name = format!("/{:04}", self.iter);
        let lost = self.left.iter().find(|(blob, path)| {
            let is_kept = self.aside.contains(*blob) || repository.keeps(blob, &self.from, &name);
            !is_kept && !exempt_paths.contains(&path.as_str())
        });
        lost.map_or(Ok(()), |(blob, path)| Err(format!("P7: {path} ({blob}) is lost")))
    }

    /// P5, P6: which nodes pass, and which are unchanged.
    fn passes(&self, before: &TaskTree, after: &TaskTree) -> Result<(), String> {
        let old = tree::index(before);
        let new = tree::index(after);
        for (id, placed) in &new {
            let is_new = placed.node.passes && !old.get(id).is_some_and(|was| was.node.passes);
            let is_earned = *id == self.node && (self.is_earned() || self.is_approved());
            if is_new && placed.node.is_leaf() && !is_earned {
                let claim = self.last_end;
                let guard = self.guard;
                let word = &self.word;
                let files = (&self.accepted, &self.found);
                return Err(format!("P5: {id} passes; said {claim:?}, guard {guard:?} {files:?}, a person {word:?}"));
            }
        }
        let own = |node: &Node| {
            let ids: Vec<String> = node.children.iter().map(|child| child.id.clone()).collect();
            (node.order, node.title.clone(), node.goal.clone(), node.acceptance.clone(), node.attempts, ids)
        };
        let parent = |placed: &tree::PlacedNode<'_>| placed.parent.map(|node| node.id.clone());
        for (id, was) in old.iter().filter(|(_, was)| was.node.passes) {
            let stays = new.get(id).is_some_and(|now| own(now.node) == own(was.node) && parent(now) == parent(was));
            if !stays || !new[id].node.passes {
                return Err(format!("P6: passed node {id} changed"));
            }
        }
        Ok(())
    }

    /// Whether the session, the guard and the reviewer have passed the node.
    fn is_earned(&self) -> bool {
        let is_accepted = match self.review {
            Some(ReviewPolicy::Off) => true,
            Some(ReviewPolicy::Agent) => !self.has_rejected,
            Some(ReviewPolicy::Human) | None => false,
        };
        self.last_end == Some(AnswerStatus::Done) && self.was_green() && is_accepted
    }

    /// Whether the last guard was green and ran with the accepted definition.
    fn was_green(&self) -> bool {
        self.guard == Some(0) && (self.accepted.is_none() || self.accepted == self.found)
    }

    /// Whether a person has approved a claimed and guarded node that is unchanged, or has passed the guard again.
    fn is_approved(&self) -> bool {
        let is_claimed = self.claim.as_ref().is_some_and(|claim| claim.node == self.node);
        let is_guarded = self.was_green() || !self.has_changed && self.guard.is_none();
        self.word == Some(Decision::Approve) && is_claimed && is_guarded
    }

    /// Returns what is pending a person's review after this iteration.
    pub(crate) fn claim(&self, repository: &SimulatedRepository, verdict: &Verdict) -> Option<TaskClaim> {
        let is_claimed = self.last_end == Some(AnswerStatus::Done) && self.was_green();
        let files = || Arc::clone(&repository.head().files);
        (*verdict == Verdict::Pending && is_claimed).then(|| TaskClaim { node: self.node.clone(), files: files() })
    }

    /// P15: an attempt is charged for an answer, for a context that was too small, or by a person, and for nothing
    /// else.
    fn attempts(&self, before: &TaskTree, after: &TaskTree, verdict: &Verdict) -> Result<(), String> {
        let old = tree::index(before);
        for placed in tree::walk(after) {
            let node = placed.node;
            let had = old.get(node.id.as_str()).map_or(0, |was| was.node.attempts);
            let may_be_charged =
                node.id == self.node && (self.last_end.is_some() || self.is_too_large || self.word.is_some());
            let most = had + u32::from(may_be_charged);
            if node.attempts < had || node.attempts > most {
                let name = verdict.name();
                return Err(format!("P15: {} had {had} attempts and has {} after {name}", node.id, node.attempts));
            }
        }
        Ok(())
    }
}
