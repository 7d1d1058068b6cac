//! Checks one receipt: whether its iteration can have begun as it says, and whether it left what its verdict leads to.

use std::borrow::Cow;
use std::collections::BTreeSet;

use protocol::tree::TaskTree;
use protocol::verify::AuditRule;
use protocol::words::{GuardOutcome, Mode, ReviewVerdict, Role, VerdictName};

use super::commit_data::CommitDiff;
use super::compare::{self, CommittedFile};
use super::decision::DecisionAudit;
use super::evidence::{self, IterationEvidence, ReplayedOutcome};
use super::findings::AuditFindings;
use super::guard_definition::SessionDefinition;
use super::net_diff::NetDiff;
use super::ownership::{self, CommitKind};
use super::prompts::{self, PromptCheck, PromptSources};
use super::scope::ScopeAudit;
use super::state::AuditedState;
use super::trailers;
use crate::files::layout;
use crate::guard::definition::{GuardDefinition, session_notice};
use crate::guard::flakes::{self, FlakyGuard};
use crate::iteration::transition::{self, StateAfter, TransitionFacts};
use crate::iteration::{IterationOutcome, ReviewEnd};
use crate::message::{AttemptCount, GuardTests, NameList, Receipt, VerdictLine, compose_headline};
use crate::run::approval::{self, Decision, ReviewDecision};
use crate::run::usage::{self, ResourceUsage};
use crate::run::{self, NextStep, RunInputs, RunScratch};
use crate::text::digest::Digest;
use crate::tree;
use crate::tree::validate::TreeLimit;
use crate::verdict::{RuleBreach, SessionRule, SessionTask, TreeFinding, TreeSource, Verdict, verdict_row};

/// One iteration as recorded on the branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct IterationAudit<'a> {
    /// The runner's testimony.
    pub receipt: &'a Receipt,
    /// State at From.
    pub from: &'a AuditedState<'a>,
    /// State after the iteration.
    pub to: &'a AuditedState<'a>,
    /// Net difference between the two.
    pub net: &'a NetDiff,
    /// Number of commits between the two that changed a path outside `.runner/`.
    pub code_commits: u32,
    /// Whether a path outside `.runner/` differs from the base.
    pub differs_from_base: bool,
    /// What a person has accepted of the guard's definition at From, as far as the branch tells.
    pub accepted: Option<&'a SessionDefinition>,
    /// Whether people changed a path outside `.runner/` between the previous iteration and From.
    pub changed_between: bool,
    /// Whether the guard had to run on the base, according to the state that the runner's last commit left.
    pub asks_baseline: bool,
    /// The iteration's commit, and the objects kept outside the branch.
    pub diff: &'a CommitDiff,
}

impl IterationAudit<'_> {
    /// Checks everything about the iteration, and returns what became of its prompt.
    pub(super) fn check(&self, findings: &mut AuditFindings) -> PromptCheck {
        self.check_chain(findings);
        self.check_baseline(findings);
        let Some(task) = self.rebuild_task(findings) else { return PromptCheck::Unknown };
        let on_change = self.from.policy.on_change;
        let notice = self.accepted.and_then(|accepted| session_notice(on_change, &accepted.definition_state));
        let sources = PromptSources { from: self.from, guard_notice: notice.as_deref(), task: &task };
        let (rebuilt, notes) = if task.decision.is_some() {
            (PromptCheck::NotSent, Vec::new())
        } else {
            prompts::check_review(self.receipt, sources, self.diff.diff.as_deref(), findings);
            prompts::check(self.receipt, sources, findings)
        };
        let evidence = self.evidence(&task);
        let Some(mut replayed) = evidence.replay_outcome() else {
            let found = self.receipt.verdict.to_string();
            findings.add_violation(AuditRule::Verdict, "Runner-Verdict", "details that the runner writes", &found);
            return rebuilt;
        };
        self.check_verdict(&replayed, findings);
        self.check_raw_tree(&replayed, findings);
        let agent_tree = replayed.tree.tree.take();
        let after = self.expected_state(&replayed.outcome, agent_tree, notes);
        self.check_files(&replayed, &after, findings);
        self.check_receipt(&replayed, findings);
        self.check_guard_paths(findings);
        let scope_audit = ScopeAudit {
            from: self.from,
            net: self.net,
            reverted: &self.to.run_state.reverted,
            accepted: self.accepted,
            verdict: &replayed.outcome.verdict,
        };
        scope_audit.check(findings);
        rebuilt
    }

    /// Checks that the receipt names the tree it began with and the number that was next.
    fn check_chain(&self, findings: &mut AuditFindings) {
        // The file is almost always in canonical form, so it need not be serialized again to be hashed.
        if self.from.bytes(layout::TREE).map(Digest::compute).as_ref() != Some(&self.receipt.tree_from) {
            let expected = Digest::compute(tree::canonical(&self.from.tree).as_bytes());
            check_equal(findings, AuditRule::Chain, "Runner-Tree-From", &expected, &self.receipt.tree_from);
        }
        check_equal(findings, AuditRule::Number, "iter", &self.from.run_state.next_iter, &self.receipt.iter);
        for (at, id) in [("GOAL.md", self.from.goal.id()), ("run_state.json", self.from.run_state.run_id.as_deref())] {
            let id = id.unwrap_or("none");
            check_equal(findings, AuditRule::Number, at, &self.receipt.run.as_str(), &id);
        }
    }

    /// Checks that no session begins before the guard has run on the base, if that was requested.
    fn check_baseline(&self, findings: &mut AuditFindings) {
        let is_due = self.asks_baseline && self.from.is_baseline_due();
        if is_due {
            let expected = "how the guard ended on the base, before the first session";
            findings.add_violation(AuditRule::Milestone, "feedback.json: baseline", expected, "none");
        }
    }

    /// Rebuilds the task that the rules give a session that begins at From.
    fn rebuild_task(&self, findings: &mut AuditFindings) -> Option<SessionTask> {
        let scratch = RunScratch::default();
        let inputs = self.from.run_inputs(&scratch, jiff::Timestamp::UNIX_EPOCH);
        let decision = self.rebuild_decision(&inputs);
        let inputs = RunInputs { review_decision: decision.as_ref(), ..inputs };
        let task = match run::decide_next(&inputs, None, None) {
            NextStep::Continue(task) => task,
            NextStep::End { reason, .. }
            | NextStep::Pause(reason)
            | NextStep::Hold(reason)
            | NextStep::WaitForPerson(reason)
            | NextStep::Wait(_, reason) => {
                let found = format!("an iteration on {}", self.receipt.node);
                findings.add_violation(
                    AuditRule::Selection,
                    "run",
                    &format!("no iteration: {}", reason.message),
                    &found,
                );
                return None;
            }
        };
        check_equal(findings, AuditRule::Selection, "node", &task.node, &self.receipt.node);
        check_equal(findings, AuditRule::Selection, "Runner-Role", &task.role, &self.receipt.role);
        let kinds = inputs.policy.kinds.for_role(task.role);
        let agent = self.receipt.agent.as_ref().filter(|agent| !kinds.is_empty() && !kinds.contains(&agent.kind));
        if let Some(agent) = agent {
            findings.add_violation(AuditRule::Selection, "Runner-Agent", &kinds.join(" or "), &agent.kind);
        }
        let recheck = task.decision.is_some() && self.changed_between;
        Some(SessionTask { from: self.receipt.from.clone(), recheck, ..task })
    }

    /// Returns a person's decision on a pending node, if the receipt records one.
    fn rebuild_decision(&self, inputs: &RunInputs<'_>) -> Option<ReviewDecision> {
        let review = self.receipt.review.as_ref().filter(|_| self.receipt.role == Role::Human)?;
        let failure = evidence::find_failure(&self.to.feedback, &self.receipt.node, self.receipt.iter);
        let reasons = failure.map(|failure| failure.text.clone()).unwrap_or_default();
        let decision = if review.accepted { Decision::Approve } else { Decision::Reject { reasons } };
        let signature = self.receipt.signature.clone();
        approval::find_pending(inputs).map(|on| ReviewDecision { on, decision, signature })
    }

    fn evidence<'a>(&'a self, task: &'a SessionTask) -> IterationEvidence<'a> {
        let is_root = self.receipt.verdict.broken_rule() == Some(SessionRule::RootNeedsChange);
        // What a session changed and its guard reverted is in no commit.
        let was_changed = self.receipt.mode == Mode::Execute && !is_root;
        IterationEvidence {
            task,
            receipt: self.receipt,
            from: self.from,
            to: self.to,
            raw: self.diff.raw.as_deref(),
            changed_code: self.changed_code(),
            changed_since_base: self.differs_from_base || was_changed,
            flaky: self.rebuild_flaky_guard(),
        }
    }

    /// Returns the guard's red run before a green one, with the paths for which the session is charged.
    fn rebuild_flaky_guard(&self) -> Option<FlakyGuard> {
        let failing = self.receipt.guard_flaky.clone()?.names;
        let paths: Vec<&[u8]> = self.net.code_paths().map(|(path, _)| path).collect();
        // Of a path that the guard wrote, it is not known whether the session had changed it, too.
        let is_charged = self.receipt.verdict.name == VerdictName::RedGuard;
        let certain = self.receipt.guard_wrote.missing_names(&paths);
        let paths = if is_charged { paths } else { certain.into_iter().copied().collect() };
        let paths: Vec<_> = paths.into_iter().map(String::from_utf8_lossy).collect();
        let suspects = flakes::find_suspects(&failing, paths.iter().map(AsRef::as_ref));
        Some(FlakyGuard { failing, suspects })
    }

    /// Whether the session changed a path outside `.runner/`, not counting what the guard wrote or the runner restored.
    fn changed_code(&self) -> bool {
        let guards = &self.receipt.guard_wrote;
        let mut named = self.to.run_state.reverted.iter().filter(|path| !path.starts_with(".runner/"));
        // A path that is reported as restored but is not in its accepted state was changed by the session.
        let is_back = |path: &String| self.accepted.is_none_or(|accepted| accepted.is_restored(path, self.net));
        let is_put_back = |path: &[u8]| named.clone().any(|back| back.as_bytes() == path && is_back(back));
        let others: Vec<&[u8]> =
            self.net.code_paths().map(|(path, _)| path).filter(|path| !is_put_back(path)).collect();
        !guards.missing_names(&others).is_empty()
            || guards.is_empty() && named.next().is_none() && self.receipt.mode == Mode::Execute
    }

    /// Checks that the verdict is the one that the table gives for the recorded facts.
    fn check_verdict(&self, replayed: &ReplayedOutcome, findings: &mut AuditFindings) {
        let found = self.receipt.verdict.to_string();
        match &replayed.expected {
            Ok(judged) if verdict_line(&judged.verdict) == self.receipt.verdict => {
                self.check_processes(judged, findings);
            }
            Ok(judged) => {
                let expected = verdict_line(&judged.verdict).to_string();
                findings.add_violation(AuditRule::Verdict, "Runner-Verdict", &expected, &found);
            }
            Err(why) => findings.add_violation(AuditRule::Verdict, "Runner-Verdict", &why.to_string(), &found),
        }
        if self.commit_kind(replayed) == CommitKind::Rewritten && self.code_commits > 0 {
            let found = format!("{} commits of the session", self.code_commits);
            findings.add_violation(AuditRule::Verdict, "history", "everything as it was at From", &found);
        }
    }

    /// Returns the kind of commit that follows from the outcome.
    fn commit_kind(&self, replayed: &ReplayedOutcome) -> CommitKind {
        let task = &replayed.outcome.work.task;
        if matches!(&replayed.outcome.verdict, Verdict::Broken(breach) if breach.rule == SessionRule::History) {
            CommitKind::Rewritten
        } else if task.decision.is_some() && !self.is_guard_rerun(task) {
            CommitKind::PersonReview
        } else {
            CommitKind::Iteration
        }
    }

    /// Whether the guard ran again for a person's decision. If it was cut off, the receipt does not mention it.
    fn is_guard_rerun(&self, task: &SessionTask) -> bool {
        task.recheck && self.receipt.review.as_ref().is_none_or(|review| review.accepted)
    }

    /// Checks that a rejected tree breaks the rule it was rejected for.
    fn check_raw_tree(&self, replayed: &ReplayedOutcome, findings: &mut AuditFindings) {
        let Some(raw) = self.diff.raw.as_deref() else { return };
        let examination =
            crate::iteration::tree_examination::examine_tree(&crate::iteration::tree_examination::SessionTree {
                from: &self.from.tree,
                node: &replayed.outcome.work.task.node,
                role: replayed.outcome.work.task.role,
                text: Some(raw),
                answer: None,
                max_attempts: self.from.policy.max_attempts_default,
            });
        let broken = match &examination.finding {
            TreeFinding::Legal { .. } => None,
            TreeFinding::Invalid { .. } => Some(SessionRule::ValidTree),
            TreeFinding::Illegal(breach) => Some(breach.rule),
        };
        let (is_right, expected) = if let Verdict::Broken(breach) = &replayed.outcome.verdict {
            // The children in an answer may make a tree too large.
            let is_excess = breach.tree_limit().is_some_and(TreeLimit::is_excess);
            (breach.rule > SessionRule::KeepPlace || broken == Some(breach.rule) || is_excess, breach.rule.as_str())
        } else {
            // So may those in an answer that a stop made void; they are in no commit.
            (broken.is_some() || self.receipt.output.is_some(), "a tree that breaks a rule")
        };
        if is_right {
            return;
        }
        let found = broken.map_or("a legal tree", SessionRule::as_str);
        findings.add_violation(AuditRule::Verdict, "Runner-Raw", expected, found);
    }

    /// Returns the guard's definition that the runner must have written.
    fn guard_definition(&self) -> GuardDefinition {
        let definition = &self.to.run_state.guard_definition;
        self.accepted.map_or(definition, |accepted| &accepted.definition_state.accepted).clone()
    }

    /// Returns the state that the runner derives from From and this outcome.
    fn expected_state(
        &self,
        outcome: &IterationOutcome,
        agent_tree: Option<TaskTree>,
        notes: Vec<String>,
    ) -> StateAfter {
        let old = &self.from.run_state;
        let new = &self.to.run_state;
        let facts = TransitionFacts {
            agents_tree: agent_tree,
            notes,
            held_back: new.held_back.clone(),
            dirty_submodules: new.dirty_submodules.clone(),
            guard_definition: self.guard_definition(),
            elapsed_ms: new.elapsed_ms.saturating_sub(old.elapsed_ms),
            retry_usage: ResourceUsage::default(),
        };
        let mut after = transition::apply_outcome(self.from, outcome, &facts);
        if let Some(used) = &self.receipt.usage {
            after.run_state.usage = usage::add_usage(&old.usage, &used.0);
        }
        after
    }

    /// Checks that the files committed under `.runner/` are those that the outcome leads to.
    fn check_files(&self, replayed: &ReplayedOutcome, after: &StateAfter, findings: &mut AuditFindings) {
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        let takes = verdict_row(replayed.outcome.verdict.name()).tree;
        match &replayed.tree.finding {
            TreeFinding::Illegal(breach) if takes != TreeSource::FromCommit && self.receipt.raw.is_none() => {
                let rule = if breach.rule == SessionRule::PassedNode { AuditRule::Passed } else { AuditRule::Tree };
                findings.add_violation(rule, &format!("node {}", breach.at), breach.rule.as_str(), &breach.details);
            }
            TreeFinding::Legal { .. } | TreeFinding::Invalid { .. } | TreeFinding::Illegal(_) => {
                let tree = CommittedFile { value: &*self.to.tree, bytes: bytes(layout::TREE) };
                compare::compare_trees(&self.from.tree, &after.tree, &tree, findings);
            }
        }
        let found = CommittedFile { value: &*self.to.run_state, bytes: bytes(layout::RUN_STATE) };
        compare::compare_values(AuditRule::RunState, layout::RUN_STATE, &after.run_state, &found, findings);
        let found = CommittedFile { value: &*self.to.feedback, bytes: bytes(layout::FEEDBACK) };
        compare::compare_values(AuditRule::Feedback, layout::FEEDBACK, &after.feedback, &found, findings);
        let found = CommittedFile { value: &*self.to.tests, bytes: bytes(layout::TESTS) };
        compare::compare_values(AuditRule::Feedback, layout::TESTS, &after.tests, &found, findings);
        if after.progress.as_bytes() != bytes(layout::PROGRESS) {
            let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
            let expected = last(&after.progress);
            let found = last(self.to.text(layout::PROGRESS));
            findings.add_violation(AuditRule::Progress, layout::PROGRESS, &expected, &found);
        }
        let mut besides: &[&str] = &[];
        if let Some(line) = &after.guardrail {
            besides = &[layout::GUARDRAILS];
            let before = self.from.bytes(layout::GUARDRAILS).unwrap_or_default();
            if !line.explains_change(before, bytes(layout::GUARDRAILS)) {
                let expected = "what was there, and a line for what failed twice in the same way";
                findings.add_violation(AuditRule::Guardrails, layout::GUARDRAILS, expected, "something else");
            }
        }
        ownership::check(self.commit_kind(replayed), besides, self.from.files(), self.net, findings);
    }

    /// Checks that the commit has what the guard wrote according to the receipt. A commit of the session may hide that a
    /// guard has reverted a file of it.
    fn check_guard_paths(&self, findings: &mut AuditFindings) {
        if self.code_commits > 0 {
            return;
        }
        let changed: BTreeSet<Cow<'_, str>> =
            self.net.code_paths().map(|(path, _)| String::from_utf8_lossy(path)).collect();
        let named = self.receipt.guard_wrote.items().iter().map(|path| String::from_utf8_lossy(path));
        for path in named.filter(|path| !changed.contains(path)) {
            findings.add_violation(AuditRule::Receipt, "Runner-Guard-Wrote", "paths that the commit changes", &path);
        }
    }

    /// Checks the receipt's statements about its own commit.
    fn check_receipt(&self, replayed: &ReplayedOutcome, findings: &mut AuditFindings) {
        let receipt = self.receipt;
        let task = &replayed.outcome.work.task;
        let node = tree::find(&self.to.tree, &task.node);
        let charged = node.map_or(task.attempts, |node| node.attempts);
        let attempts = AttemptCount { charged, allowed: node.map_or(task.max_attempts, |node| node.max_attempts) };
        let used = self.to.run_state.notes_used.iter().filter(|note| !self.from.run_state.notes_used.contains(note));
        let title = tree::find(&self.from.tree, &task.node).map_or("", |node| node.title.as_str());
        let expected = Receipt {
            node: task.node.clone(),
            status: verdict_row(replayed.outcome.verdict.name()).status,
            guard: replayed.outcome.guard_outcome(),
            headline: compose_headline(title, replayed.outcome.verdict.name()),
            summary: self.to.run_state.last_summary.clone().unwrap_or_default(),
            attempts,
            guard_tests: GuardTests::between(&self.from.tests, &self.to.tests),
            guard_flaky: replayed.flaky_guard(receipt),
            notes: NameList::new(used),
            reverted: NameList::new(&self.to.run_state.reverted),
            hidden: NameList::new(&self.to.run_state.hidden),
            held_back: NameList::new(&self.to.run_state.held_back),
            dirty_submodules: NameList::new(&self.to.run_state.dirty_submodules),
            ..receipt.clone()
        };
        let expected = expected.compose();
        let found = receipt.compose();
        let differing = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        if let Some((expected, found)) = differing {
            let at = if found.starts_with("Runner-") { found.split(':').next().unwrap_or_default() } else { "message" };
            findings.add_violation(AuditRule::Receipt, at, expected, found);
        }
        let is_kept = |breach: &RuleBreach| {
            breach.rule <= SessionRule::KeepPlace && breach.tree_limit() != Some(TreeLimit::FileGone)
        };
        let needs_raw = matches!(&replayed.outcome.verdict, Verdict::Broken(breach) if is_kept(breach));
        if needs_raw && receipt.raw.is_none() {
            findings.add_violation(AuditRule::Receipt, "Runner-Raw", "the tree that was not taken", "nothing");
        }
        let judged =
            replayed.expected.as_ref().ok().filter(|judged| !matches!(judged.verdict, Verdict::Interrupted { .. }));
        let guard = judged.map(|judged| judged.guard.is_some());
        trailers::check(receipt, trailers::IterationProcesses { session: task.decision.is_none(), guard }, findings);
        if task.decision.is_some() {
            let decision_audit = DecisionAudit {
                receipt,
                net: self.net,
                commits: self.code_commits,
                // If the guard was cut off, the receipt does not mention it.
                reran_guard: task.recheck && receipt.review.as_ref().is_none_or(|review| review.accepted),
                reverted: &self.to.run_state.reverted,
                accepted: self.accepted,
            };
            decision_audit.check(findings);
        }
        if let Some(fault) = receipt.usage.as_ref().and_then(|used| usage::find_fault(&used.0)) {
            findings.add_violation(AuditRule::Receipt, "Runner-Usage", "what sessions can have used", fault);
        }
        let writes = self.net.code_paths().next().is_some();
        if writes && receipt.mode == Mode::Decompose {
            findings.add_violation(AuditRule::Receipt, "Runner-Mode", "execute", "decompose");
        }
    }

    /// Checks that the receipt has the results of guard and reviewer if, and only if, they ran.
    fn check_processes(&self, judged: &IterationOutcome, findings: &mut AuditFindings) {
        // A stop may arrive while either of them runs.
        if matches!(judged.verdict, Verdict::Interrupted { .. }) {
            return;
        }
        let is_green = matches!(judged.verdict, Verdict::Accepted | Verdict::Pending | Verdict::Rejected { .. });
        let reviewed = judged.review.as_ref().and_then(ReviewEnd::verdict).map(is_accepting);
        let decided = judged.work.decision().map(|decision| *decision == Decision::Approve);
        let review = self.receipt.review.as_ref();
        let guard = self.receipt.guard_run.is_some();
        let is_right = match decided {
            // A guard that was ended has no result.
            Some(_) => guard == judged.guard.as_ref().is_some_and(|guard| guard.outcome() != GuardOutcome::Skipped),
            None if is_green => guard,
            None => !guard || judged.guard.is_some(),
        };
        for (at, is_right, is_expected) in [
            ("Runner-Guard", is_right, guard),
            ("Runner-Review", review.map(|review| review.accepted) == decided.or(reviewed), review.is_some()),
        ] {
            let describe = |is_expected| if is_expected { "what it said" } else { "nothing" };
            if !is_right {
                findings.add_violation(AuditRule::Receipt, at, describe(!is_expected), describe(is_expected));
            }
        }
    }
}

fn is_accepting(verdict: ReviewVerdict) -> bool {
    verdict == ReviewVerdict::Accept
}

/// Returns a verdict in the form used by receipts.
fn verdict_line(verdict: &Verdict) -> VerdictLine {
    VerdictLine::new(verdict.name(), verdict.detail().as_deref())
}

fn check_equal<T: PartialEq + std::fmt::Display>(
    findings: &mut AuditFindings,
    rule: AuditRule,
    at: &str,
    expected: &T,
    found: &T,
) {
    if expected != found {
        findings.add_violation(rule, at, &expected.to_string(), &found.to_string());
    }
}
