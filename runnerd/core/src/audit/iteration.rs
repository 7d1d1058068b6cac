//! One receipt: whether its iteration can have begun as it says, and whether it left what its verdict leads to.

use protocol::tree::TaskTree;
use protocol::verify::AuditRule;
use protocol::words::{GuardOutcome, Mode, ReviewVerdict, Role};

use super::compare::{self, File};
use super::decision::Said;
use super::evidence::{Evidence, Told};
use super::findings::Findings;
use super::guarded::Accepted;
use super::link::Link;
use super::net_diff::NetDiff;
use super::owned::{self, Kind};
use super::prompts::{self, Rebuilt, Sources};
use super::state::CommittedState;
use super::trailers;
use crate::approval::{self, Decision, PersonDecision};
use crate::definition::{Definition, notice};
use crate::digest::Digest;
use crate::iteration::{Outcome, ReviewEnd};
use crate::message::{Attempts, NameList, Receipt, VerdictLine, headline};
use crate::run::{self, Next, Standing};
use crate::transition::{self, After, Before, Facts};
use crate::usage::{self, Spent};
use crate::validate::Unfit;
use crate::verdict::{Breach, Rule, Task, TreeFinding, TreeTaken, Verdict, row};
use crate::{layout, tree};

/// One iteration as the branch has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iteration<'a> {
    /// What the runner testifies.
    pub receipt: &'a Receipt,
    /// The state at From.
    pub from: &'a CommittedState<'a>,
    /// The state after it.
    pub to: &'a CommittedState<'a>,
    /// What differs between the two.
    pub net: &'a NetDiff,
    /// Commits between the two that changed a path outside `.runner/`.
    pub of_code: u32,
    /// Whether a path outside `.runner/` differs from the base.
    pub differs_from_base: bool,
    /// What a person has accepted of the guard's definition at From, as far as the branch tells.
    pub accepted: Option<&'a Accepted>,
    /// Whether people changed a path outside `.runner/` between the iteration before and From.
    pub changed_between: bool,
    /// Whether the guard was to be run on the base, by the state that the runner's last commit had left.
    pub asks_baseline: bool,
    /// Its commit, and what stands beside the branch.
    pub link: &'a Link,
}

impl Iteration<'_> {
    /// Checks everything about it; returns what became of its prompt.
    pub(super) fn check(&self, findings: &mut Findings) -> Rebuilt {
        self.chain(findings);
        self.baseline(findings);
        let Some(task) = self.task(findings) else { return Rebuilt::Unknown };
        let on_change = self.from.settings.policy.on_change;
        let notice = self.accepted.and_then(|accepted| notice(on_change, &accepted.guarded));
        let sources = Sources { from: self.from, guard_notice: notice.as_deref(), task: &task };
        let (rebuilt, notes) = if task.decision.is_some() {
            (Rebuilt::NotSent, Vec::new())
        } else {
            prompts::check_review(self.receipt, sources, self.link.diff.as_deref(), findings);
            prompts::check(self.receipt, sources, findings)
        };
        let evidence = self.evidence(&task);
        let Some(mut told) = evidence.told() else {
            let found = self.receipt.verdict.to_string();
            findings.violation(AuditRule::Verdict, "Runner-Verdict", ("details that the runner writes", &found));
            return rebuilt;
        };
        self.verdict(&told, findings);
        self.raw(&told, findings);
        let left = told.left.tree.take();
        let after = self.after(&told.outcome, left, notes);
        self.files(&told, &after, findings);
        self.receipt(&told, findings);
        rebuilt
    }

    /// The receipt names the tree that it began with, and the number that was next.
    fn chain(&self, findings: &mut Findings) {
        // The file has the canonical form nearly always: then it is not written anew to be hashed.
        if self.from.bytes(layout::TREE).map(Digest::of).as_ref() != Some(&self.receipt.tree_from) {
            let expected = Digest::of(tree::canonical(self.from.tree).as_bytes());
            same(findings, (AuditRule::Chain, "Runner-Tree-From"), &expected, &self.receipt.tree_from);
        }
        same(findings, (AuditRule::Number, "iter"), &self.from.run_state.next_iter, &self.receipt.iter);
        for (at, id) in [("GOAL.md", &self.from.goal.id), ("run_state.json", &self.from.run_state.run_id)] {
            let id = id.as_deref().unwrap_or("none");
            same(findings, (AuditRule::Number, at), &self.receipt.run.as_str(), &id);
        }
    }

    /// No session begins before the guard has run on the base, where that is asked for.
    fn baseline(&self, findings: &mut Findings) {
        let is_due = self.asks_baseline && self.from.is_baseline_due();
        if is_due {
            let expected = "how the guard ended on the base, before the first session";
            findings.violation(AuditRule::Milestone, "feedback.json: baseline", (expected, "none"));
        }
    }

    /// What the rules ask of a session that begins at From.
    fn task(&self, findings: &mut Findings) -> Option<Task> {
        let standing = Standing {
            policy: &self.from.settings.policy,
            tree: self.from.tree,
            run_state: self.from.run_state,
            feedback: self.from.feedback,
            word: None,
            outages: &[],
            tried: &Spent::default(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        let word = self.word(&standing);
        let standing = Standing { word: word.as_ref(), ..standing };
        let task = match run::next(&standing, None, None) {
            Next::GoOn(task) => task,
            Next::End { reason, .. }
            | Next::Pause(reason)
            | Next::Hold(reason)
            | Next::WaitForPerson(reason)
            | Next::Wait(_, reason) => {
                let found = format!("an iteration on {}", self.receipt.node);
                findings.violation(AuditRule::Selection, "run", (&format!("no iteration: {}", reason.message), &found));
                return None;
            }
        };
        same(findings, (AuditRule::Selection, "node"), &task.node, &self.receipt.node);
        same(findings, (AuditRule::Selection, "Runner-Role"), &task.role, &self.receipt.role);
        let kinds = standing.policy.kinds.of(task.role);
        let agent = self.receipt.agent.as_ref().filter(|agent| !kinds.is_empty() && !kinds.contains(&agent.kind));
        if let Some(agent) = agent {
            findings.violation(AuditRule::Selection, "Runner-Agent", (&kinds.join(" or "), &agent.kind));
        }
        let recheck = task.decision.is_some() && self.changed_between;
        Some(Task { from: self.receipt.from.clone(), recheck, ..task })
    }

    /// A person's word on what waits for one, where the receipt tells of it.
    fn word(&self, standing: &Standing<'_>) -> Option<PersonDecision> {
        let review = self.receipt.review.as_ref().filter(|_| self.receipt.role == Role::Human)?;
        let told = self.to.feedback.nodes.get(&self.receipt.node).and_then(|told| told.failure.as_ref());
        let reasons = told.map(|failure| failure.text.clone()).unwrap_or_default();
        let decision = if review.accepted { Decision::Approve } else { Decision::Reject { reasons } };
        let signature = self.receipt.signature.clone();
        approval::pending(standing).map(|on| PersonDecision { on, decision, signature })
    }

    fn evidence<'a>(&'a self, task: &'a Task) -> Evidence<'a> {
        let is_root = self.receipt.verdict.broken_rule() == Some(Rule::RootNeedsChange);
        // What a session changed and its guard took back is in no commit.
        let was_changed = self.receipt.mode == Mode::Execute && !is_root;
        Evidence {
            task,
            receipt: self.receipt,
            from: self.from,
            to: self.to,
            raw: self.link.raw.as_deref(),
            changed_code: self.changed_code(),
            changed_since_base: self.differs_from_base || was_changed,
        }
    }

    /// Whether the session changed a path outside `.runner/`: what the guard wrote, or the runner put back, is not its own.
    fn changed_code(&self) -> bool {
        let guards = &self.receipt.guard_wrote;
        let mut named = self.to.run_state.reverted.iter().filter(|path| !path.starts_with(".runner/"));
        // What is told as put back, and does not stand as a person has accepted it, is the session's.
        let is_back = |path: &String| self.accepted.is_none_or(|accepted| accepted.is_put_back(path, self.net));
        let is_put_back = |path: &[u8]| named.clone().any(|back| back.as_bytes() == path && is_back(back));
        let others: Vec<&[u8]> = self.net.code().filter(|path| !is_put_back(path)).collect();
        !guards.missing(&others).is_empty()
            || guards.is_empty() && named.next().is_none() && self.receipt.mode == Mode::Execute
    }

    /// The verdict is the one that the table gives for what is told.
    fn verdict(&self, told: &Told, findings: &mut Findings) {
        let found = self.receipt.verdict.to_string();
        match &told.judged {
            Ok(judged) if line(&judged.verdict) == self.receipt.verdict => self.processes(judged, findings),
            Ok(judged) => {
                let expected = line(&judged.verdict).to_string();
                findings.violation(AuditRule::Verdict, "Runner-Verdict", (&expected, &found));
            }
            Err(why) => findings.violation(AuditRule::Verdict, "Runner-Verdict", (&why.to_string(), &found)),
        }
        if self.kind(told) == Kind::Rewritten && self.of_code > 0 {
            let found = format!("{} commits of the session", self.of_code);
            findings.violation(AuditRule::Verdict, "history", ("everything as it was at From", &found));
        }
    }

    /// What kind of commit it is, by what came of it.
    fn kind(&self, told: &Told) -> Kind {
        let task = &told.outcome.work.task;
        if matches!(&told.outcome.verdict, Verdict::Broken(breach) if breach.rule == Rule::History) {
            Kind::Rewritten
        } else if task.decision.is_some() && !self.asked_guard(task) {
            Kind::Word
        } else {
            Kind::Iteration
        }
    }

    /// Whether the guard was asked again for a person's word. Of one that was cut off there is no word in the receipt.
    fn asked_guard(&self, task: &Task) -> bool {
        task.recheck && self.receipt.review.as_ref().is_none_or(|review| review.accepted)
    }

    /// A tree that was not taken breaks the rule that it was not taken for.
    fn raw(&self, told: &Told, findings: &mut Findings) {
        let Some(raw) = self.link.raw.as_deref() else { return };
        let left = crate::examine::examine(&crate::examine::LeftBySession {
            from: self.from.tree,
            node: &told.outcome.work.task.node,
            text: Some(raw),
            answer: None,
            max_attempts: self.from.settings.policy.max_attempts_default,
        });
        let broken = match &left.finding {
            TreeFinding::Legal { .. } => None,
            TreeFinding::Invalid { .. } => Some(Rule::ValidTree),
            TreeFinding::Illegal(breach) => Some(breach.rule),
        };
        let (is_right, expected) = if let Verdict::Broken(breach) = &told.outcome.verdict {
            // With the children of an answer in it a tree may be too large.
            let is_excess = breach.unfit().is_some_and(Unfit::is_excess);
            (breach.rule > Rule::KeepPlace || broken == Some(breach.rule) || is_excess, breach.rule.as_str())
        } else {
            (broken.is_some(), "a tree that breaks a rule")
        };
        if is_right {
            return;
        }
        let found = broken.map_or("a legal tree", Rule::as_str);
        findings.violation(AuditRule::Verdict, "Runner-Raw", (expected, found));
    }

    /// What the runner must have written of the guard's definition.
    fn guard_definition(&self) -> Definition {
        let told = &self.to.run_state.guard_definition;
        self.accepted.map_or(told, |accepted| &accepted.guarded.accepted).clone()
    }

    /// What the runner makes of the state at From with this outcome.
    fn after(&self, outcome: &Outcome, left: Option<TaskTree>, notes: Vec<String>) -> After {
        let before = Before {
            tree: self.from.tree,
            run_state: self.from.run_state,
            feedback: self.from.feedback,
            progress: &self.from.text(layout::PROGRESS),
        };
        let (old, new) = (self.from.run_state, self.to.run_state);
        let facts = Facts {
            agents_tree: left,
            notes,
            held_back: new.held_back.clone(),
            dirty_submodules: new.dirty_submodules.clone(),
            guard_definition: self.guard_definition(),
            elapsed_ms: new.elapsed_ms.saturating_sub(old.elapsed_ms),
            tried: Spent::default(),
        };
        let mut after = transition::apply(&before, outcome, &facts);
        if let Some(used) = &self.receipt.usage {
            after.run_state.usage = usage::sum(&old.usage, &used.0);
        }
        after
    }

    /// What is committed under `.runner/` is what the outcome leads to.
    fn files(&self, told: &Told, after: &After, findings: &mut Findings) {
        let bytes = |path| self.to.bytes(path).unwrap_or_default();
        let takes = row(told.outcome.verdict.name()).tree;
        match &told.left.finding {
            TreeFinding::Illegal(breach) if takes != TreeTaken::Froms && self.receipt.raw.is_none() => {
                let rule = if breach.rule == Rule::PassedNode { AuditRule::Passed } else { AuditRule::Tree };
                findings.violation(rule, &format!("node {}", breach.at), (breach.rule.as_str(), &breach.seen));
            }
            TreeFinding::Legal { .. } | TreeFinding::Invalid { .. } | TreeFinding::Illegal(_) => {
                let tree = File { value: self.to.tree, bytes: bytes(layout::TREE) };
                compare::trees(self.from.tree, &after.tree, &tree, findings);
            }
        }
        let run_state = (AuditRule::RunState, layout::RUN_STATE);
        let found = File { value: self.to.run_state, bytes: bytes(layout::RUN_STATE) };
        compare::values(run_state, &after.run_state, &found, findings);
        let feedback = (AuditRule::Feedback, layout::FEEDBACK);
        let found = File { value: self.to.feedback, bytes: bytes(layout::FEEDBACK) };
        compare::values(feedback, &after.feedback, &found, findings);
        if after.progress.as_bytes() != bytes(layout::PROGRESS) {
            let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
            let (expected, found) = (last(&after.progress), last(&self.to.text(layout::PROGRESS)));
            findings.violation(AuditRule::Progress, layout::PROGRESS, (&expected, &found));
        }
        let mut besides: &[&str] = &[];
        if let Some(line) = &after.guardrail {
            besides = &[layout::GUARDRAILS];
            let before = self.from.bytes(layout::GUARDRAILS).unwrap_or_default();
            if !line.follows(before, bytes(layout::GUARDRAILS)) {
                let expected = ("what was there, and a line for what failed twice in the same way", "something else");
                findings.violation(AuditRule::Guardrails, layout::GUARDRAILS, expected);
            }
        }
        owned::check((self.kind(told), besides), (self.from.state(), self.net), findings);
    }

    /// What the receipt says of its commit is the case.
    fn receipt(&self, told: &Told, findings: &mut Findings) {
        let (receipt, task) = (self.receipt, &told.outcome.work.task);
        let node = tree::find(self.to.tree, &task.node);
        let charged = node.map_or(task.attempts, |node| node.attempts);
        let attempts = Attempts { charged, allowed: node.map_or(task.max_attempts, |node| node.max_attempts) };
        let used = self.to.run_state.notes_used.iter().filter(|note| !self.from.run_state.notes_used.contains(note));
        let title = tree::find(self.from.tree, &task.node).map_or("", |node| node.title.as_str());
        let expected = Receipt {
            node: task.node.clone(),
            status: row(told.outcome.verdict.name()).status,
            guard: told.outcome.guard_outcome(),
            headline: headline(title, told.outcome.verdict.name()),
            summary: self.to.run_state.last_summary.clone().unwrap_or_default(),
            attempts,
            notes: NameList::new(used),
            reverted: NameList::new(&self.to.run_state.reverted),
            held_back: NameList::new(&self.to.run_state.held_back),
            dirty_submodules: NameList::new(&self.to.run_state.dirty_submodules),
            ..receipt.clone()
        };
        let (expected, found) = (expected.compose(), receipt.compose());
        let differing = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        if let Some((expected, found)) = differing {
            let at = if found.starts_with("Runner-") { found.split(':').next().unwrap_or_default() } else { "message" };
            findings.violation(AuditRule::Receipt, at, (expected, found));
        }
        let is_kept = |breach: &Breach| breach.rule <= Rule::KeepPlace && breach.unfit() != Some(Unfit::Gone);
        let needs_raw = matches!(&told.outcome.verdict, Verdict::Broken(breach) if is_kept(breach));
        if needs_raw && receipt.raw.is_none() {
            findings.violation(AuditRule::Receipt, "Runner-Raw", ("the tree that was not taken", "nothing"));
        }
        let asked = told.judged.as_ref().ok().filter(|judged| !matches!(judged.verdict, Verdict::Interrupted { .. }));
        let guard = asked.map(|judged| judged.guard.is_some());
        trailers::check(receipt, trailers::Asked { session: task.decision.is_none(), guard }, findings);
        if task.decision.is_some() {
            let said = Said {
                receipt,
                net: self.net,
                commits: self.of_code,
                // Of a guard that was cut off there is no word in the receipt.
                asked_guard: task.recheck && receipt.review.as_ref().is_none_or(|review| review.accepted),
                reverted: &self.to.run_state.reverted,
                accepted: self.accepted,
            };
            said.check(findings);
        }
        if let Some(fault) = receipt.usage.as_ref().and_then(|used| usage::fault(&used.0)) {
            findings.violation(AuditRule::Receipt, "Runner-Usage", ("what sessions can have used", fault));
        }
        let writes = self.net.code().next().is_some();
        if writes && receipt.mode == Mode::Decompose {
            findings.violation(AuditRule::Receipt, "Runner-Mode", ("execute", "decompose"));
        }
    }

    /// What guard and reviewer said is in the receipt where they were asked, and nowhere else.
    fn processes(&self, judged: &Outcome, findings: &mut Findings) {
        // Who stops an iteration may stop it while one of them runs.
        if matches!(judged.verdict, Verdict::Interrupted { .. }) {
            return;
        }
        let is_green = matches!(judged.verdict, Verdict::Accepted | Verdict::Pending | Verdict::Rejected { .. });
        let reviewed = judged.review.as_ref().and_then(ReviewEnd::verdict).map(is_accepting);
        let said = judged.work.decision().map(|decision| *decision == Decision::Approve);
        let review = self.receipt.review.as_ref();
        let guard = self.receipt.guard_run.is_some();
        let is_right = match said {
            // One that did not end by itself said nothing.
            Some(_) => guard == judged.guard.as_ref().is_some_and(|guard| guard.outcome() != GuardOutcome::Skipped),
            None if is_green => guard,
            None => !guard || judged.guard.is_some(),
        };
        for (at, is_right, is_there) in [
            ("Runner-Guard", is_right, guard),
            ("Runner-Review", review.map(|review| review.accepted) == said.or(reviewed), review.is_some()),
        ] {
            let told = |is_there| if is_there { "what it said" } else { "nothing" };
            if !is_right {
                findings.violation(AuditRule::Receipt, at, (told(!is_there), told(is_there)));
            }
        }
    }
}

fn is_accepting(verdict: ReviewVerdict) -> bool {
    verdict == ReviewVerdict::Accept
}

/// A verdict as receipts have it.
fn line(verdict: &Verdict) -> VerdictLine {
    VerdictLine::new(verdict.name(), verdict.detail().as_deref())
}

fn same<T: PartialEq + std::fmt::Display>(
    findings: &mut Findings,
    (rule, at): (AuditRule, &str),
    expected: &T,
    found: &T,
) {
    if expected != found {
        findings.violation(rule, at, (&expected.to_string(), &found.to_string()));
    }
}
