//! The precedence of verdicts, tested in pairs: if two findings apply, the first in the list is the verdict.

use protocol::answer::{AgentAnswer, AnswerStatus};
use protocol::words::{Role, VerdictName};
use runner_config::RolesMode;
use runner_core::policy::Policy;
use runner_core::verdict::{
    JudgeInput, SessionEnd, SessionEndKind, SessionFinding, SessionJudgement, SessionRule, SessionTask, StopCause,
    TreeFinding, Verdict, judge,
};

use crate::fixture::{
    answered, child, context_exceeded, faulty, finding, illegal, invalid, legal, misconfigured, session, task,
    unavailable,
};

/// All inputs of `judge`.
struct StopSituation {
    policy: Policy,
    task: SessionTask,
    stop: Option<StopCause>,
    session: SessionEnd,
    finding: SessionFinding,
}

impl StopSituation {
    fn answer(&mut self) -> &mut AgentAnswer {
        if !matches!(self.session.how, SessionEndKind::Answered(_)) {
            self.session = answered(AnswerStatus::Done);
        }
        let SessionEndKind::Answered(answer) = &mut self.session.how else { panic!("an answer") };
        answer
    }

    fn answers(&mut self, status: AnswerStatus, children: u32) {
        let children = (children > 0).then(|| vec![child("part")]);
        *self.answer() = AgentAnswer { status, children, summary: "x".to_owned() };
    }

    fn tree(&mut self, gained: u32, reworded: bool) {
        self.finding.tree = TreeFinding::Legal { gained, reworded };
    }

    fn judge(&self) -> SessionJudgement {
        let Self { policy, task, stop, session, finding } = self;
        judge(JudgeInput { policy, task, stop: *stop, session, finding })
    }
}

enum Expect {
    Verdict(VerdictName),
    Rule(SessionRule),
}

/// A finding in the list: its name, how to produce it, and its verdict.
struct Entry {
    name: &'static str,
    set: fn(&mut StopSituation),
    expect: Expect,
}

fn entry(name: &'static str, expect: Expect, set: fn(&mut StopSituation)) -> Entry {
    Entry { name, set, expect }
}

/// The list: ends of sessions first, then the rules in the order of the variants of `Broken`.
fn list() -> Vec<Entry> {
    use Expect::{Rule as Breaks, Verdict as Is};
    vec![
        entry("the user stopped it", Is(VerdictName::Interrupted), |case| case.stop = Some(StopCause::Cancel)),
        entry("HEAD was elsewhere, and the run's branch still contained From", Is(VerdictName::Interrupted), |case| {
            case.finding.elsewhere = Some("HEAD was moved to branch main".to_owned());
        }),
        entry("the service was unavailable", Is(VerdictName::Unavailable), |case| {
            case.session = session(unavailable());
        }),
        entry("the budget ran out", Is(VerdictName::Timeout), |case| case.session = session(SessionEndKind::TimedOut)),
        entry("the agent is misconfigured", Is(VerdictName::Misconfigured), |case| {
            case.session = session(misconfigured());
        }),
        entry("the context was exceeded", Breaks(SessionRule::Context), |case| {
            case.session = session(context_exceeded());
        }),
        entry("the process failed, went silent or gave no valid answer", Is(VerdictName::Fault), |case| {
            case.session = session(faulty());
        }),
        entry("history was rewritten", Breaks(SessionRule::History), |case| {
            case.finding.history = Some("a merge is in progress".to_owned());
        }),
        entry("the scope was broken as a whole", Breaks(SessionRule::Scope), |case| {
            case.finding.scope = Some("a merge".to_owned());
        }),
        entry("the tree is unreadable or invalid", Breaks(SessionRule::ValidTree), |case| {
            case.finding.tree = invalid();
        }),
        entry("a passed task was changed", Breaks(SessionRule::PassedNode), |case| {
            case.finding.tree = illegal(SessionRule::PassedNode);
        }),
        entry("a task was removed or renamed", Breaks(SessionRule::KeepNodes), |case| {
            case.finding.tree = illegal(SessionRule::KeepNodes);
        }),
        entry("a task was moved", Breaks(SessionRule::KeepPlace), |case| {
            case.finding.tree = illegal(SessionRule::KeepPlace);
        }),
        entry("more than 12 tasks were added, or 24 by a repair", Breaks(SessionRule::NodeCount), |case| {
            case.finding.tree = illegal(SessionRule::NodeCount);
        }),
        entry("a single child was added below two others", Breaks(SessionRule::SingleChild), |case| {
            case.finding.tree = illegal(SessionRule::SingleChild);
        }),
        entry("goal or acceptance were touched with `done`", Breaks(SessionRule::KeepGoal), |case| {
            case.answer().status = AnswerStatus::Done;
            case.tree(0, true);
        }),
        entry("children came with `done` or `retry`", Breaks(SessionRule::ChildrenOnlyWithDecomposed), |case| {
            case.answers(AnswerStatus::Done, 1);
        }),
        entry("`decomposed` came without children", Breaks(SessionRule::DecomposedNeedsChildren), |case| {
            case.answers(AnswerStatus::Decomposed, 0);
            case.tree(0, false);
        }),
        entry("children came in the answer and in the tree", Breaks(SessionRule::ChildrenOneWay), |case| {
            case.answers(AnswerStatus::Decomposed, 1);
            case.tree(1, false);
        }),
        entry(
            "the root was claimed while nothing differs from the base",
            Breaks(SessionRule::RootNeedsChange),
            |case| {
                case.answers(AnswerStatus::Done, 0);
                case.tree(0, false);
                case.task.path.truncate(1);
                case.finding.changed_since_base = false;
            },
        ),
        entry("strict mode: a planner touched code", Breaks(SessionRule::PlannerNoCode), |case| {
            case.answer();
            case.policy.roles = RolesMode::Strict;
            case.task.role = Role::Planner;
            case.finding.changed_code = true;
        }),
        entry("strict mode: a worker decomposed", Breaks(SessionRule::WorkerNoChildren), |case| {
            case.answers(AnswerStatus::Decomposed, 1);
            case.policy.roles = RolesMode::Strict;
            case.task.role = Role::Worker;
        }),
    ]
}

fn dull() -> StopSituation {
    StopSituation {
        policy: Policy::default(),
        task: task(),
        stop: None,
        session: answered(AnswerStatus::Done),
        finding: finding(legal()),
    }
}

/// The list in Markdown, with the verdict of each finding.
pub(crate) fn list_text() -> String {
    let lines = list().into_iter().enumerate().map(|(at, entry)| match entry.expect {
        Expect::Verdict(verdict) => format!("{}. {}: **{verdict}**\n", at + 1, entry.name),
        Expect::Rule(rule) => format!("{}. {}: **Broken** ({})\n", at + 1, entry.name, rule.as_str()),
    });
    lines.collect()
}

fn holds(expect: &Expect, judgement: &SessionJudgement) -> bool {
    let SessionJudgement::Final(verdict) = judgement else { return false };
    match expect {
        Expect::Rule(expect) => matches!(verdict, Verdict::Broken(breach) if breach.rule == *expect),
        Expect::Verdict(expect) => verdict.name() == *expect,
    }
}

#[test]
fn without_a_finding_a_claim_is_a_claim() {
    assert_eq!(dull().judge(), SessionJudgement::Claimed);
}

#[test]
fn each_finding_alone_is_the_verdict() {
    for Entry { name, set, expect } in list() {
        let mut case = dull();
        set(&mut case);
        assert!(holds(&expect, &case.judge()), "{name}: {:?}", case.judge());
    }
}

#[test]
fn of_two_findings_the_first_of_the_list_is_the_verdict() {
    let list = list();
    for (at, first) in list.iter().enumerate() {
        for second in &list[at + 1..] {
            let mut case = dull();
            (second.set)(&mut case);
            (first.set)(&mut case);
            assert!(holds(&first.expect, &case.judge()), "{} and {}: {:?}", first.name, second.name, case.judge());
        }
    }
}
