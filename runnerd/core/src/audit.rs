//! Audits a branch: whether a runner that keeps the rules could have made it.
//!
//! Reads commits as plain data and knows neither git nor files. It has no separate rules: the expected content of a
//! commit comes from the functions that the runner itself decides with.

mod commands;
mod commit_data;
mod compare;
mod completeness;
mod decision;
mod evidence;
mod findings;
mod guard_definition;
mod iteration;
mod marker_commit;
mod net_diff;
mod ownership;
mod person_commits;
mod plan;
mod prompts;
mod reviews;
mod scope;
mod signatures;
mod state;
mod tips;
mod trailers;

use std::sync::Arc;

use protocol::review::PendingReview;
use protocol::state::Feedback;
use protocol::verify::{AuditCounts, AuditPass, AuditReport, AuditReview, AuditRule};
use protocol::words::VerdictName;

pub use self::commit_data::{CommitDiff, CommitHeader, PathChange, PathEntry, is_content_read};
use self::completeness::MissingFiles;
pub use self::completeness::{BranchEnd, UnreadableObject};
use self::findings::AuditFindings;
use self::guard_definition::{AnnouncedChanges, DefinitionTracker, SessionDefinition};
use self::iteration::IterationAudit;
use self::marker_commit::MarkerAudit;
use self::net_diff::NetDiff;
use self::ownership::CommitKind;
use self::plan::PlannedCommit;
pub use self::plan::{AuditPlan, CommitOwner, WatchPoint};
use self::prompts::PromptCheck;
pub use self::reviews::report_reviews;
pub use self::signatures::{SignatureStatus, commits_to_sign, report_signatures};
pub use self::state::parse_changes;
use self::state::{RunnerFiles, passed_leaves};
pub use self::tips::TipSearch;
use crate::committed_state::{StateFault, StateFiles};
use crate::fsck;
use crate::guard::watched_files::WatchedFiles;
use crate::message::{Receipt, RunnerCommit};
use crate::scope::Scope;

/// An audit in progress; the caller feeds it the commits of a plan, oldest first.
#[derive(Debug)]
pub struct BranchAudit {
    plan: Arc<AuditPlan>,
    position: usize,
    state: RunnerFiles,
    /// State after the runner's last commit; `None` before the first one.
    last_runner_state: Option<RunnerFiles>,
    /// Number of the last iteration.
    last_iter: Option<u32>,
    /// What people changed since the runner's last commit.
    people_changes: NetDiff,
    /// The session whose commits are being read.
    session: Option<SessionCommits>,
    /// What differs from the base; `None` until a start has been seen.
    since_base: Option<NetDiff>,
    /// Files outside `.runner/`, as far as the branch has shown them.
    definition_tracker: DefinitionTracker,
    /// What people changed since the last iteration.
    since_iteration: NetDiff,
    /// Mode of the entry with which a commit has replaced the runner's folder.
    in_place_of_folder: Option<u32>,
    findings: AuditFindings,
    /// Whether the audit ended early at a commit that could not be read.
    is_truncated: bool,
    missing_files: MissingFiles,
    report: AuditReport,
}

/// Input for one commit.
#[derive(Debug, Clone, Copy)]
struct CommitInput<'a> {
    diff: &'a CommitDiff,
    parsed: &'a StateFiles,
}

/// The commits of a session, before its receipt.
#[derive(Debug)]
struct SessionCommits {
    from: RunnerFiles,
    /// What a person has accepted of the guard's definition, as far as the branch tells.
    accepted: Option<SessionDefinition>,
    net_diff: NetDiff,
    /// Number of its commits that changed a path outside `.runner/`.
    code_commits: u32,
}

impl BranchAudit {
    /// Starts from the files of the commit before the first one of the plan: every path under `.runner/`, as if that
    /// commit had added it, and every other path too if the plan begins at an iteration.
    pub fn new(plan: AuditPlan, before: &[PathChange]) -> Self {
        let mut state = RunnerFiles::default();
        state.apply_changes(before, &parse_changes(before));
        let mut tracker = DefinitionTracker::default();
        if plan.begins_at_iteration() {
            tracker.load_files(before);
        }
        let runners = plan.runner_commit_before();
        let last = runners.map(|_| state.clone());
        let last_iter = runners.and_then(iteration_number);
        let mut findings = AuditFindings::default();
        if plan.is_start_missing() {
            findings.begin_commit(
                plan.commits().first().or(plan.preceding_commit()).map_or("", |head| head.id.as_str()),
                None,
            );
            let expected = format!("the start of run {} among the commits of its branch", plan.run_at(0));
            findings.add_violation(AuditRule::Chain, "Runner-Commit: start", &expected, "none, and nothing is cut off");
        }
        let report = AuditReport {
            run: plan.run().to_owned(),
            base: plan.preceding_commit().map(|head| head.id.clone()),
            tip: plan.commits().last().or(plan.preceding_commit()).map(|head| head.id.clone()).unwrap_or_default(),
            findings: Vec::new(),
            people: Vec::new(),
            passes: Vec::new(),
            brought: state.tree().map(passed_leaves).unwrap_or_default(),
            unseen: plan.describe_truncation().into_iter().collect(),
            counts: AuditCounts::default(),
            since: None,
            signed: None,
            reviews: Vec::new(),
            reviewed: None,
        };
        Self {
            plan: Arc::new(plan),
            position: 0,
            state,
            last_runner_state: last,
            last_iter,
            people_changes: NetDiff::default(),
            session: None,
            since_base: None,
            definition_tracker: tracker,
            since_iteration: NetDiff::default(),
            in_place_of_folder: None,
            findings,
            is_truncated: false,
            missing_files: MissingFiles::default(),
            report,
        }
    }

    /// Returns the commits that the caller has to feed, oldest first.
    pub fn commits(&self) -> &[CommitHeader] {
        self.plan.commits()
    }

    /// Returns the blob that the receipt of the commit at this index names as the rejected tree.
    pub fn raw_tree_id(&self, at: usize) -> Option<&str> {
        if let RunnerCommit::Iteration(receipt) = self.plan.planned_commit(at)?.commit()? {
            receipt.raw.as_deref()
        } else {
            None
        }
    }

    /// Returns the commit at which the audit needs the files watched for the guard before it takes the commit at this
    /// index: that commit itself for a start, otherwise the one before it, where a session begins.
    pub fn watch_point(&self, at: usize) -> Option<WatchPoint> {
        self.plan.watch_point(at)
    }

    /// Returns the commit from which the reviewer of the commit at this index saw the changes, if a reviewer decided
    /// and that commit is on the branch.
    pub fn review_base(&self, at: usize) -> Option<&str> {
        let PlannedCommit::Runner { commit, has_from: true } = self.plan.planned_commit(at)? else { return None };
        let RunnerCommit::Iteration(receipt) = &**commit else { return None };
        receipt.review.as_ref()?.prompt.as_ref().map(|_| receipt.from.as_str())
    }

    /// Takes the next commit, with its changes to the files that decisions depend on.
    pub fn push_commit(&mut self, diff: &CommitDiff, parsed: &StateFiles) {
        let at = self.position;
        self.position += 1;
        self.report.counts.commits += 1;
        let plan = Arc::clone(&self.plan);
        let (Some(part), Some(header)) = (plan.planned_commit(at), plan.commits().get(at)) else { return };
        self.findings.begin_commit(&header.id, None);
        self.definition_tracker.add_checks(&diff.checks);
        self.missing_files.add(&header.id, &diff.missing);
        if let Some(since_base) = &mut self.since_base {
            since_base.add(diff.changes.iter().filter(|change| is_code_change(change)));
        }
        self.report_tree_faults(&diff.trees, matches!(part, PlannedCommit::Runner { .. }));
        if let Some(change) = diff.changes.iter().find(|change| change.path == b".runner") {
            self.in_place_of_folder = change.new.as_ref().map(|found| found.mode);
        }
        // The receipt of a session repairs what the session has committed there.
        if !matches!(part, PlannedCommit::Agent { .. })
            && let Some(mode) = self.in_place_of_folder.take()
        {
            let found = format!("something else, with the mode {mode:o}");
            self.findings.add_violation(AuditRule::Valid, ".runner", "a folder", &found);
        }
        let input = CommitInput { diff, parsed };
        match part {
            PlannedCommit::Person => self.audit_person_commit(header, input),
            PlannedCommit::Malformed(error) => {
                let found = error.to_string();
                self.findings.add_violation(AuditRule::Form, "message", "a message that the runner writes", &found);
                self.audit_person_commit(header, input);
            }
            PlannedCommit::Agent { imitates_runner: poses } => {
                if *poses {
                    let found = "a message like one of the runner's";
                    self.findings.add_warning(AuditRule::Form, "message", "a commit of the session's own", found);
                }
                self.audit_session_commit(input, 1);
            }
            PlannedCommit::Runner { commit, .. } if commit.is_transparent() => {
                self.audit_driver_commit(header, commit, input);
            }
            PlannedCommit::Runner { commit, has_from } => self.audit_runner_commit(header, commit, *has_from, input),
        }
    }

    /// Ends the audit. Commits after the runner's last one count as a person's, unless a session is at work.
    pub fn finish(mut self, is_live: bool) -> AuditReport {
        // If the last commits were not read, their author is unknown.
        if !is_live && !self.is_truncated && self.session.is_none() {
            self.end_people_commits();
        }
        self.report.unseen.extend(self.missing_files.describe());
        self.findings.begin_commit(&self.report.tip, None);
        let is_visible = |part: &PlannedCommit| part.commit().is_some_and(|commit| !commit.is_transparent());
        let is_visible =
            self.position.checked_sub(1).and_then(|at| self.plan.planned_commit(at)).is_some_and(is_visible);
        let is_all = self.position >= self.plan.commits().len();
        if let Some(StateFault { path, fault }) = self.state.committed_state().err().filter(|_| is_all && !is_visible) {
            self.findings.add_violation(AuditRule::Valid, path, "a valid file", &fault.to_string());
        }
        let counts = &mut self.report.counts;
        (counts.leaves_passed, counts.leaves_total) =
            self.state.tree().map(|tree| tree.root.leaves()).unwrap_or_default();
        AuditReport { findings: self.findings.into_findings(), ..self.report }
    }

    fn audit_person_commit(&mut self, header: &CommitHeader, CommitInput { diff, parsed }: CommitInput<'_>) {
        let changes = &diff.changes;
        let before = self.state.clone();
        self.apply_changes(changes, parsed);
        if let Some(run) = commands::check(header, changes, &before, &self.state, &mut self.findings) {
            self.check_commit_form(header, &run);
        }
        self.people_changes.add(changes);
        self.since_iteration.add(changes.iter().filter(|change| is_code_change(change)));
        self.report.people.push(person_commits::describe_commit(header, changes));
    }

    /// Adds a commit to its session; the first one ends the people's commits before it.
    fn audit_session_commit(&mut self, CommitInput { diff, parsed }: CommitInput<'_>, agents: u32) {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.begin_session(diff.watched.as_ref()),
        };
        session.net_diff.add(&diff.changes);
        session.code_commits += if diff.changes.iter().any(is_code_change) { agents } else { 0 };
        self.session = Some(session);
        self.report.counts.agents_commits += agents;
        self.apply_changes(&diff.changes, parsed);
    }

    fn begin_session(&mut self, watched: Option<&WatchedFiles>) -> SessionCommits {
        let accepted = watched.and_then(|watched| self.definition_tracker.apply_watched(watched));
        self.end_people_commits();
        SessionCommits { from: self.state.clone(), accepted, net_diff: NetDiff::default(), code_commits: 0 }
    }

    fn apply_changes(&mut self, changes: &[PathChange], parsed: &StateFiles) {
        self.state.apply_changes(changes, parsed);
        self.definition_tracker.apply(changes, &mut self.findings);
    }

    /// Checks a claim or a release, which must not change any file. One that does also counts as a person's commit.
    fn audit_driver_commit(
        &mut self,
        header: &CommitHeader,
        commit: &RunnerCommit,
        CommitInput { diff, parsed }: CommitInput<'_>,
    ) {
        self.check_commit_form(header, commit.run());
        marker_commit::check_release(commit, self.plan.claim_before(self.last_position()), &mut self.findings);
        let net_diff = NetDiff::from_changes(&diff.changes);
        ownership::check(CommitKind::Driver, &[], &self.state, &net_diff, &mut self.findings);
        self.apply_changes(&diff.changes, parsed);
        self.people_changes.add(&diff.changes);
        self.since_iteration.add(diff.changes.iter().filter(|change| is_code_change(change)));
    }

    fn audit_runner_commit(
        &mut self,
        header: &CommitHeader,
        commit: &RunnerCommit,
        has_from: bool,
        given: CommitInput<'_>,
    ) {
        let iter = iteration_number(commit);
        self.findings.begin_commit(&header.id, iter);
        self.audit_session_commit(given, 0);
        self.findings.begin_commit(&header.id, iter);
        self.check_commit_form(header, commit.run());
        if !has_from {
            let found = commit.from().unwrap_or("none");
            self.findings.add_violation(AuditRule::Chain, "Runner-From", "a commit before this one", found);
        }
        if let (Some(last), Some(iter)) = (self.last_iter, iter)
            && last.checked_add(1) != Some(iter)
        {
            let expected = format!("the one after {last}");
            self.findings.add_violation(AuditRule::Number, "iter", &expected, &iter.to_string());
        }
        self.last_iter = iter.or(self.last_iter);
        if let Some(session) = self.session.take() {
            match commit {
                RunnerCommit::Iteration(receipt) => self.audit_iteration(&session, receipt, given.diff),
                RunnerCommit::Start(_) | RunnerCommit::Baseline(..) | RunnerCommit::Resume(_) => {
                    self.audit_marker(&session, header, commit, given.diff.start_watched.as_ref());
                }
                RunnerCommit::Claim(_) | RunnerCommit::Release(_) => {}
            }
        }
        self.last_runner_state = Some(self.state.clone());
    }

    /// Checks what every commit of the runner has: the run, one parent, and the headers that it writes.
    fn check_commit_form(&mut self, header: &CommitHeader, named_run: &str) {
        let run = self.plan.run_at(self.last_position());
        if named_run != run {
            self.findings.add_violation(AuditRule::Number, "run", run, named_run);
        }
        if header.parents.len() != 1 {
            let found = format!("{} parents", header.parents.len());
            self.findings.add_violation(AuditRule::Chain, "parents", "one parent", &found);
        }
        if let Some(fault) = fsck::find_header_fault(&header.headers) {
            let expected = "the headers that the runner writes";
            self.findings.add_violation(AuditRule::Form, "header", expected, &fault.to_string());
        }
    }

    fn audit_iteration(&mut self, session: &SessionCommits, receipt: &Receipt, diff: &CommitDiff) {
        let counts = &mut self.report.counts;
        counts.iterations += 1;
        let sides = session.from.committed_state().and_then(|from| Ok((from, self.state.committed_state()?)));
        let (from, to) = match sides {
            Ok(sides) => sides,
            Err(StateFault { path, fault }) => {
                return self.findings.add_violation(AuditRule::Valid, path, "a valid file", &fault.to_string());
            }
        };
        let rebuilt = IterationAudit {
            receipt,
            from: &from,
            to: &to,
            net: &session.net_diff,
            code_commits: session.code_commits,
            accepted: session.accepted.as_ref(),
            changed_between: self.since_iteration.code_paths().next().is_some(),
            asks_baseline: self.last_runner_state.as_ref().is_some_and(RunnerFiles::asks_baseline),
            differs_from_base: self.since_base.as_ref().is_none_or(|since| since.code_paths().next().is_some()),
            diff,
        }
        .check(&mut self.findings);
        if let Some(accepted) = &session.accepted {
            self.definition_tracker.check(AnnouncedChanges { accepted, receipt }, &mut self.findings);
            accepted.check_restored(&to.run_state.reverted, &Scope::new(&from.config), &mut self.findings);
        }
        self.since_iteration = NetDiff::default();
        let counts = &mut self.report.counts;
        counts.prompts += u32::from(rebuilt == PromptCheck::Same);
        counts.decisions += u32::from(rebuilt == PromptCheck::NotSent);
        counts.prompts_unknown += u32::from(rebuilt == PromptCheck::Unknown);
        self.report.reviews.extend(self.describe_review(receipt, &to.feedback));
        if receipt.verdict.name == VerdictName::Accepted {
            let pass = AuditPass { node: receipt.node.clone(), iter: receipt.iter, commit: self.last_commit_id() };
            self.report.passes.push(pass);
        }
        let counts = &mut self.report.counts;
        counts.guards_unproven += u32::from(receipt.guard_run.is_some());
    }

    /// Returns the person's review, if the receipt of this commit records one.
    fn describe_review(&self, receipt: &Receipt, after: &Feedback) -> Option<AuditReview> {
        let iteration = receipt.iter.checked_sub(1)?;
        let commit = self.plan.iteration_commit(iteration, self.last_position()).unwrap_or_default().to_owned();
        let on = PendingReview { run: receipt.run.clone(), node: receipt.node.clone(), iteration, commit };
        reviews::read_review(receipt, self.last_commit_id(), &on, after)
    }

    fn audit_marker(
        &mut self,
        session: &SessionCommits,
        header: &CommitHeader,
        commit: &RunnerCommit,
        start_watched: Option<&WatchedFiles>,
    ) {
        let to = match self.state.committed_state() {
            Ok(to) => to,
            Err(StateFault { path, fault }) => {
                return self.findings.add_violation(AuditRule::Valid, path, "a valid file", &fault.to_string());
            }
        };
        let parent = header.parents.first().map_or("none", String::as_str);
        let before = &session.from;
        let net = &session.net_diff;
        let accepted = session.accepted.as_ref();
        let parent_receipt = self.plan.receipt_before(self.last_position());
        let step = |milestone| MarkerAudit {
            marker: milestone,
            parent,
            before,
            to: &to,
            net,
            accepted,
            watched: start_watched,
            parent_receipt,
        };
        match commit {
            RunnerCommit::Start(milestone) => {
                let is_fork = step(milestone).check_start(&mut self.findings);
                if !self.plan.is_run_start(self.last_position()) {
                    let found = "another one, after it";
                    self.findings.add_violation(AuditRule::Milestone, "Runner-Commit", "one start of a run", found);
                }
                if self.since_base.is_none() {
                    self.report.brought = passed_leaves(&to.tree);
                }
                if !is_fork {
                    self.definition_tracker.begin_run(&to.run_state.guard_definition);
                }
                (self.since_base, self.last_iter) = (Some(NetDiff::default()), None);
            }
            RunnerCommit::Baseline(milestone, guard) => step(milestone).check_baseline(*guard, &mut self.findings),
            RunnerCommit::Resume(milestone) => step(milestone).check_resume(&mut self.findings),
            RunnerCommit::Iteration(_) | RunnerCommit::Claim(_) | RunnerCommit::Release(_) => {}
        }
    }

    /// Checks what people did since the runner's last commit.
    fn end_people_commits(&mut self) {
        let net = std::mem::take(&mut self.people_changes);
        if let Some(last) = &self.last_runner_state {
            person_commits::check(last, &self.state, &net, &mut self.findings);
        }
    }

    /// Index of the commit that was taken last.
    fn last_position(&self) -> usize {
        self.position.saturating_sub(1)
    }

    fn last_commit_id(&self) -> String {
        self.plan.commits().get(self.last_position()).map(|head| head.id.clone()).unwrap_or_default()
    }
}

fn is_code_change(change: &PathChange) -> bool {
    !change.path.starts_with(b".runner/")
}

fn iteration_number(commit: &RunnerCommit) -> Option<u32> {
    if let RunnerCommit::Iteration(receipt) = commit { Some(receipt.iter) } else { None }
}

/// Audits a plan whose commits are all available, oldest first.
pub fn audit_commits(plan: AuditPlan, before: &[PathChange], diffs: &[CommitDiff]) -> AuditReport {
    let mut audit = BranchAudit::new(plan, before);
    for diff in diffs {
        audit.push_commit(diff, &parse_changes(&diff.changes));
    }
    audit.finish(false)
}
