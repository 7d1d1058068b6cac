//! The audit of a branch: whether a runner that keeps the rules could have made it.
//!
//! Reads commits as plain data and knows neither git nor files. It has no rules of its own: what a commit should be is
//! asked of the functions that the runner itself decides with.

mod commands;
mod compare;
mod cut;
mod decision;
mod evidence;
mod findings;
mod guarded;
mod iteration;
mod link;
mod milestone;
mod net_diff;
mod owned;
mod people_commits;
mod plan;
mod prompts;
mod reviews;
mod signatures;
mod state;
mod tips;
mod trailers;

use std::sync::Arc;

use protocol::review::PendingReview;
use protocol::state::Feedback;
use protocol::verify::{AuditCounts, AuditPass, AuditReport, AuditReview, AuditRule};
use protocol::words::VerdictName;

use self::cut::Absent;
pub use self::cut::{End, Unread};
use self::findings::Findings;
use self::guarded::{Accepted, Announced, Ground};
use self::iteration::Iteration;
pub use self::link::{FileFault, Goal, Head, Link, PathChange, Readers, Settings, Stored, is_read};
use self::milestone::Step;
use self::net_diff::NetDiff;
use self::owned::Kind;
use self::plan::Part;
pub use self::plan::{Plan, WatchAt, Whose};
use self::prompts::Rebuilt;
pub use self::reviews::reviewed;
pub use self::signatures::{Signature, signed, to_be_signed};
pub use self::state::Reading;
use self::state::{State, passed};
pub use self::tips::Tips;
use crate::fsck::{self, Against, Found};
use crate::message::{Receipt, RunnerCommit};
use crate::watched::Watched;

/// An audit under way: it is given the commits of a plan, oldest first.
#[derive(Debug)]
pub struct Audit {
    plan: Arc<Plan>,
    readers: Readers,
    at: usize,
    state: State,
    /// The state after the runner's last commit.
    last: Option<State>,
    /// The number of the last iteration.
    last_iter: Option<u32>,
    /// What people changed since.
    people: NetDiff,
    /// The session that is being passed.
    session: Option<SessionCommits>,
    /// What differs from the base; none as long as no start was seen.
    since_base: Option<NetDiff>,
    /// What stands outside of `.runner/`.
    ground: Ground,
    /// What people changed since the last iteration.
    since_iteration: NetDiff,
    /// The mode of what a commit has put in the place of the runner's folder.
    in_place_of_folder: Option<u32>,
    findings: Findings,
    /// Whether a commit could not be read.
    is_cut: bool,
    absent: Absent,
    report: AuditReport,
}

/// What is given of a commit.
#[derive(Debug, Clone, Copy)]
struct Given<'a> {
    link: &'a Link,
    reading: &'a Reading,
}

/// The commits of a session, before its receipt.
#[derive(Debug)]
struct SessionCommits {
    from: State,
    /// What a person has accepted of the guard's definition, as far as the branch tells.
    accepted: Option<Accepted>,
    net: NetDiff,
    /// How many of its commits changed a path outside `.runner/`.
    of_code: u32,
}

impl Audit {
    /// Begins with the files of the commit before the first one of the plan: every path under `.runner/`, as if that
    /// commit had added it, and every other one where the plan begins at an iteration.
    pub fn new(plan: Plan, readers: Readers, before: &[PathChange]) -> Self {
        let mut state = State::empty(&readers);
        state.apply(before, &Reading::of(before, &readers));
        let mut ground = Ground::default();
        if plan.begins_at_iteration() {
            ground.stand(before);
        }
        let runners = plan.runners_before();
        let last = runners.map(|_| state.clone());
        let last_iter = runners.and_then(number);
        let mut findings = Findings::default();
        if plan.lacks_start() {
            findings.turn_to(plan.heads().first().or(plan.before()).map_or("", |head| head.id.as_str()), None);
            let expected = format!("the start of run {} among the commits of its branch", plan.run_at(0));
            findings.violation(AuditRule::Chain, "Runner-Commit: start", (&expected, "none, and nothing is cut off"));
        }
        let report = AuditReport {
            run: plan.run().to_owned(),
            base: plan.before().map(|head| head.id.clone()),
            tip: plan.heads().last().or(plan.before()).map(|head| head.id.clone()).unwrap_or_default(),
            findings: Vec::new(),
            people: Vec::new(),
            passes: Vec::new(),
            brought: state.tree().map(passed).unwrap_or_default(),
            unseen: plan.cut().into_iter().collect(),
            counts: AuditCounts::default(),
            since: None,
            signed: None,
            reviews: Vec::new(),
            reviewed: None,
        };
        Self {
            plan: Arc::new(plan),
            readers,
            at: 0,
            state,
            last,
            last_iter,
            people: NetDiff::default(),
            session: None,
            since_base: None,
            ground,
            since_iteration: NetDiff::default(),
            in_place_of_folder: None,
            findings,
            is_cut: false,
            absent: Absent::default(),
            report,
        }
    }

    /// Returns the commits that are to be given, oldest first.
    pub fn heads(&self) -> &[Head] {
        self.plan.heads()
    }

    /// Returns the blob that the receipt of the commit at this place names as the tree that was not taken.
    pub fn raw(&self, at: usize) -> Option<&str> {
        if let RunnerCommit::Iteration(receipt) = self.plan.part(at)?.commit()? { receipt.raw.as_deref() } else { None }
    }

    /// Returns whether it asks what is watched for the guard, with the commit at this place: with a start at that commit, and
    /// else at the one before it, where a session begins.
    pub fn watch_at(&self, at: usize) -> Option<WatchAt> {
        self.plan.watch_at(at)
    }

    /// Returns the commit from which the reviewer of the commit at this place saw the changes, where one decided and that
    /// commit is of the branch.
    pub fn reviewed_from(&self, at: usize) -> Option<&str> {
        let Part::Runner { commit, has_from: true } = self.plan.part(at)? else { return None };
        let RunnerCommit::Iteration(receipt) = &**commit else { return None };
        receipt.review.as_ref()?.prompt.as_ref().map(|_| receipt.from.as_str())
    }

    /// Takes the next commit, and what it changed among the files that decisions are made from.
    pub fn take(&mut self, link: &Link, reading: &Reading) {
        let at = self.at;
        self.at += 1;
        self.report.counts.commits += 1;
        let plan = Arc::clone(&self.plan);
        let (Some(part), Some(head)) = (plan.part(at), plan.heads().get(at)) else { return };
        self.findings.turn_to(&head.id, None);
        self.ground.add_checks(&link.checks);
        self.absent.add(&head.id, &link.missing);
        if let Some(since_base) = &mut self.since_base {
            since_base.add(link.changes.iter().filter(|change| is_code(change)));
        }
        self.trees(&link.trees, matches!(part, Part::Runner { .. }));
        if let Some(change) = link.changes.iter().find(|change| change.path == b".runner") {
            self.in_place_of_folder = change.new.as_ref().map(|found| found.mode);
        }
        // The receipt of a session puts right what the session has committed there.
        if !matches!(part, Part::Agent { .. })
            && let Some(mode) = self.in_place_of_folder.take()
        {
            let found = format!("something else, with the mode {mode:o}");
            self.findings.violation(AuditRule::Valid, ".runner", ("a folder", &found));
        }
        let given = Given { link, reading };
        match part {
            Part::Person => self.persons(head, given),
            Part::Malformed(error) => {
                let found = error.to_string();
                self.findings.violation(AuditRule::Form, "message", ("a message that the runner writes", &found));
                self.persons(head, given);
            }
            Part::Agent { poses } => {
                if *poses {
                    let found = "a message like one of the runner's";
                    self.findings.warning(AuditRule::Form, "message", ("a commit of the session's own", found));
                }
                self.sessions(given, 1);
            }
            Part::Runner { commit, .. } if commit.is_transparent() => self.driven(head, commit, given),
            Part::Runner { commit, has_from } => self.runners(head, (commit, *has_from), given),
        }
    }

    /// Ends with a commit that cannot be read, though its trees may tell why. Only a partial clone may lack what it is
    /// made of.
    pub fn unread(&mut self, commit: &str, (trees, unread): (&[Found], &Unread), is_partial: bool) {
        let why = unread.sentence(is_partial);
        self.is_cut = true;
        self.report.unseen.push(format!("the files of commit {commit}, and what was made of them since: {why}"));
        self.findings.turn_to(commit, None);
        self.trees(trees, false);
        if !unread.is_promised(is_partial) {
            self.findings.violation(AuditRule::Valid, "tree", ("objects that can be read", &why));
        }
    }

    /// Trees that git's check refuses hold more than one thing, or none; what it only warns of the runner does not write.
    fn trees(&mut self, found: &[Found], is_runners: bool) {
        for Found { path, fault } in found {
            if is_runners || fault.against() == Against::Anyone {
                let path = format!("/{}", String::from_utf8_lossy(path));
                self.findings.violation(
                    AuditRule::Valid,
                    &path,
                    ("a tree that git's check accepts", &fault.to_string()),
                );
            }
        }
    }

    /// Ends it; what follows the runner's last commit is a person's, unless a session is at work.
    pub fn finish(mut self, is_live: bool) -> AuditReport {
        // Whose the last commits are is not known where they were not read.
        if !is_live && !self.is_cut && self.session.is_none() {
            self.end_people_commits();
        }
        self.report.unseen.extend(self.absent.sentence());
        self.findings.turn_to(&self.report.tip, None);
        let is_told = |part: &Part| part.commit().is_some_and(|commit| !commit.is_transparent());
        let is_told = self.at.checked_sub(1).and_then(|at| self.plan.part(at)).is_some_and(is_told);
        let is_all = self.at >= self.plan.heads().len();
        if let Some((path, fault)) = self.state.known().err().filter(|_| is_all && !is_told) {
            self.findings.violation(AuditRule::Valid, path, ("a valid file", &fault.to_string()));
        }
        let counts = &mut self.report.counts;
        (counts.leaves_passed, counts.leaves_total) =
            self.state.tree().map(|tree| tree.root.leaves()).unwrap_or_default();
        AuditReport { findings: self.findings.into_findings(), ..self.report }
    }

    fn persons(&mut self, head: &Head, Given { link, reading }: Given<'_>) {
        let (changes, before) = (&link.changes, self.state.clone());
        self.apply(changes, reading);
        if let Some(run) = commands::check(head, (&before, &self.state), changes, &mut self.findings) {
            self.form(head, &run);
        }
        self.people.add(changes);
        self.since_iteration.add(changes.iter().filter(|change| is_code(change)));
        self.report.people.push(people_commits::describe(head, changes));
    }

    /// Adds a commit to the session that it is of; the first ends people's commits before it.
    fn sessions(&mut self, Given { link, reading }: Given<'_>, agents: u32) {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.begin_session(link.watched.as_ref()),
        };
        session.net.add(&link.changes);
        session.of_code += if link.changes.iter().any(is_code) { agents } else { 0 };
        self.session = Some(session);
        self.report.counts.agents_commits += agents;
        self.apply(&link.changes, reading);
    }

    fn begin_session(&mut self, watched: Option<&Watched>) -> SessionCommits {
        let accepted = watched.and_then(|watched| self.ground.watch(watched, &self.readers));
        self.end_people_commits();
        SessionCommits { from: self.state.clone(), accepted, net: NetDiff::default(), of_code: 0 }
    }

    fn apply(&mut self, changes: &[PathChange], reading: &Reading) {
        self.state.apply(changes, reading);
        self.ground.apply(changes, &self.readers, &mut self.findings);
    }

    /// Looks at a claim or a release: it changes no file. One that does counts as a person's commit besides.
    fn driven(&mut self, head: &Head, commit: &RunnerCommit, Given { link, reading }: Given<'_>) {
        self.form(head, commit.run());
        let sides = (&self.state, &NetDiff::of(&link.changes));
        owned::check((Kind::Driver, &[]), sides, &mut self.findings);
        self.apply(&link.changes, reading);
        self.people.add(&link.changes);
        self.since_iteration.add(link.changes.iter().filter(|change| is_code(change)));
    }

    fn runners(&mut self, head: &Head, (commit, has_from): (&RunnerCommit, bool), given: Given<'_>) {
        let iter = number(commit);
        self.findings.turn_to(&head.id, iter);
        self.sessions(given, 0);
        self.findings.turn_to(&head.id, iter);
        self.form(head, commit.run());
        if !has_from {
            let found = commit.from().unwrap_or("none");
            self.findings.violation(AuditRule::Chain, "Runner-From", ("a commit before this one", found));
        }
        if let (Some(last), Some(iter)) = (self.last_iter, iter)
            && last.checked_add(1) != Some(iter)
        {
            let expected = format!("the one after {last}");
            self.findings.violation(AuditRule::Number, "iter", (&expected, &iter.to_string()));
        }
        self.last_iter = iter.or(self.last_iter);
        if let Some(session) = self.session.take() {
            match commit {
                RunnerCommit::Iteration(receipt) => self.iteration(&session, receipt, given.link),
                RunnerCommit::Start(_) | RunnerCommit::Baseline(..) | RunnerCommit::Resume(_) => {
                    self.milestone(&session, (head, commit), given.link.begun.as_ref());
                }
                RunnerCommit::Claim(_) | RunnerCommit::Release(_) => {}
            }
        }
        self.last = Some(self.state.clone());
    }

    /// What every commit of the runner's has: the run, one parent, and the headers that it writes.
    fn form(&mut self, head: &Head, told: &str) {
        let run = self.plan.run_at(self.place());
        if told != run {
            self.findings.violation(AuditRule::Number, "run", (run, told));
        }
        if head.parents.len() != 1 {
            let found = format!("{} parents", head.parents.len());
            self.findings.violation(AuditRule::Chain, "parents", ("one parent", &found));
        }
        if let Some(fault) = fsck::receipt_fault(&head.header) {
            let expected = "the headers that the runner writes";
            self.findings.violation(AuditRule::Form, "header", (expected, &fault.to_string()));
        }
    }

    fn iteration(&mut self, session: &SessionCommits, receipt: &Receipt, link: &Link) {
        let counts = &mut self.report.counts;
        counts.iterations += 1;
        let sides = session.from.known().and_then(|from| Ok((from, self.state.known()?)));
        let (from, to) = match sides {
            Ok(sides) => sides,
            Err((path, fault)) => {
                return self.findings.violation(AuditRule::Valid, path, ("a valid file", &fault.to_string()));
            }
        };
        let rebuilt = Iteration {
            receipt,
            from: &from,
            to: &to,
            net: &session.net,
            of_code: session.of_code,
            accepted: session.accepted.as_ref(),
            changed_between: self.since_iteration.code().next().is_some(),
            asks_baseline: self.last.as_ref().is_some_and(State::asks_baseline),
            differs_from_base: self.since_base.as_ref().is_none_or(|since| since.code().next().is_some()),
            link,
        }
        .check(&mut self.findings);
        if let Some(accepted) = &session.accepted {
            self.ground.check(Announced { accepted, receipt }, &self.readers, &mut self.findings);
            accepted.check_put_back(&to.run_state.reverted, &self.readers, &mut self.findings);
        }
        self.since_iteration = NetDiff::default();
        let counts = &mut self.report.counts;
        counts.prompts += u32::from(rebuilt == Rebuilt::Same);
        counts.said += u32::from(rebuilt == Rebuilt::NotSent);
        counts.prompts_unknown += u32::from(rebuilt == Rebuilt::Unknown);
        self.report.reviews.extend(self.review(receipt, to.feedback));
        if receipt.verdict.name == VerdictName::Accepted {
            let pass = AuditPass { node: receipt.node.clone(), iter: receipt.iter, commit: self.commit() };
            self.report.passes.push(pass);
        }
        let counts = &mut self.report.counts;
        counts.guards_unproven += u32::from(receipt.guard_run.is_some());
    }

    /// Tells what a person has said, where the receipt of this commit has their word.
    fn review(&self, receipt: &Receipt, after: &Feedback) -> Option<AuditReview> {
        let iteration = receipt.iter.checked_sub(1)?;
        let commit = self.plan.commit_of(iteration, self.place()).unwrap_or_default().to_owned();
        let on = PendingReview { run: receipt.run.clone(), node: receipt.node.clone(), iteration, commit };
        reviews::review((receipt, self.commit()), &on, after)
    }

    fn milestone(&mut self, session: &SessionCommits, (head, commit): (&Head, &RunnerCommit), begun: Option<&Watched>) {
        let to = match self.state.known() {
            Ok(to) => to,
            Err((path, fault)) => {
                return self.findings.violation(AuditRule::Valid, path, ("a valid file", &fault.to_string()));
            }
        };
        let parent = head.parents.first().map_or("none", String::as_str);
        let (before, net) = (&session.from, &session.net);
        let accepted = session.accepted.as_ref();
        let upon = self.plan.iteration_before(self.place());
        let readers = &self.readers;
        let step = |milestone| Step { milestone, parent, before, to: &to, net, accepted, begun, upon, readers };
        match commit {
            RunnerCommit::Start(milestone) => {
                let is_fork = step(milestone).start(&mut self.findings);
                if !self.plan.begins(self.place()) {
                    let found = "another one, after it";
                    self.findings.violation(AuditRule::Milestone, "Runner-Commit", ("one start of a run", found));
                }
                if self.since_base.is_none() {
                    self.report.brought = passed(to.tree);
                }
                if !is_fork {
                    self.ground.begin(&to.run_state.guard_definition);
                }
                (self.since_base, self.last_iter) = (Some(NetDiff::default()), None);
            }
            RunnerCommit::Baseline(milestone, guard) => step(milestone).baseline(*guard, &mut self.findings),
            RunnerCommit::Resume(milestone) => step(milestone).resume(&mut self.findings),
            RunnerCommit::Iteration(_) | RunnerCommit::Claim(_) | RunnerCommit::Release(_) => {}
        }
    }

    /// Judges what people did since the runner's last commit.
    fn end_people_commits(&mut self) {
        let net = std::mem::take(&mut self.people);
        if let Some(last) = &self.last {
            people_commits::check(last, &self.state, &net, &mut self.findings);
        }
    }

    /// The place of the commit that was taken last.
    fn place(&self) -> usize {
        self.at.saturating_sub(1)
    }

    fn commit(&self) -> String {
        self.plan.heads().get(self.place()).map(|head| head.id.clone()).unwrap_or_default()
    }
}

fn is_code(change: &PathChange) -> bool {
    !change.path.starts_with(b".runner/")
}

fn number(commit: &RunnerCommit) -> Option<u32> {
    if let RunnerCommit::Iteration(receipt) = commit { Some(receipt.iter) } else { None }
}

/// Audits commits that are all at hand: those of a plan, oldest first.
pub fn audit(plan: Plan, readers: Readers, before: &[PathChange], links: &[Link]) -> AuditReport {
    let mut audit = Audit::new(plan, readers, before);
    for link in links {
        audit.take(link, &Reading::of(&link.changes, &readers));
    }
    audit.finish(false)
}
