//! From the end of a session to a verdict, and what each verdict leads to.
//!
//! Two values: `judge`, which takes the first rule that applies, and `row`, the table. Neither looks at
//! files; what was seen comes in as facts.

mod decision;
mod detail;
mod row;
mod rule;
mod stop;

use jiff::Timestamp;
use protocol::answer::{AgentAnswer, AnswerStatus, SessionUsage};
use protocol::meta::{SecretSeen, SessionFailure};
use protocol::words::{Containment, PhaseName, Role, VerdictName};
use serde::{Deserialize, Serialize};

use crate::message::ReviewSignature;
use crate::policy::{TimeoutPolicy, Policy, RolesMode};
use crate::validate::TreeFault;

pub use self::decision::{Decision, MAX_REASONS_BYTES, InvalidReasons};
use self::detail::ChildCounts;
pub use self::row::{FeedbackEffect, VerdictRow, RunEffect, TreeSource, verdict_row};
pub use self::rule::{RuleBreach, SessionRule};
pub use self::stop::StopCause;

/// The leaf that an iteration is about, and how its session is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTask {
    /// Id of the run.
    pub run: String,
    /// Number of the iteration.
    pub iter: u32,
    /// Commit at which the session begins.
    pub from: String,
    /// Id of the selected leaf.
    pub node: String,
    /// Ids from the root to the leaf.
    pub path: Vec<String>,
    /// What the session is asked to be.
    pub role: Role,
    /// Whether the planner may make the task smaller without losing its last attempt.
    pub narrowing: bool,
    /// Attempts charged before this session.
    pub attempts: u32,
    /// Attempts allowed.
    pub max_attempts: u32,
    /// The kind of agent that is asked; none: the one that is configured for the role.
    pub kind: Option<String>,
    /// The kind of agent that reviews what is claimed to be done; none: nobody, or the one that is configured.
    pub reviewer: Option<String>,
    /// A person's word that stands for a session.
    pub decision: Option<Decision>,
    /// That person's signature, where they have signed.
    pub signature: Option<ReviewSignature>,
    /// Whether the guard is asked again before an approval counts: what it has passed is not what stands there.
    pub recheck: bool,
}

/// How an agent's session ended, as facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd<A = AgentAnswer> {
    /// The class of its end.
    pub how: SessionEndKind<A>,
    /// Exit of the agent: a code, or a negative signal number.
    pub exit: Option<i32>,
    /// Kind and version of the agent.
    pub agent: String,
    /// By which its service knows the session, where the agent says so.
    pub session_id: Option<String>,
    /// The model that was asked, where the agent's own record names it.
    pub model: Option<String>,
    /// SHA-256 of the answer as the record has it: as it came, but for secrets.
    pub output_digest: Option<String>,
    /// Why it gave no answer, where that was seen; nothing is decided by it.
    pub failure: Option<Box<SessionFailure>>,
    /// What it consumed.
    pub usage: SessionUsage,
    /// Time of the budget that it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Bytes of its output that were kept.
    pub captured_bytes: u64,
    /// Bytes of its output that were dropped.
    pub dropped_bytes: u64,
    /// Why its log is not complete, where the disk refused a part of it.
    pub log_fault: Option<String>,
    /// Processes that outlived it and were ended.
    pub survivors: u32,
    /// How tightly it was held.
    pub containment: Containment,
}

impl<A> SessionEnd<A> {
    /// Returns the end of a session of which nothing else is known.
    pub fn new(how: SessionEndKind<A>) -> Self {
        Self {
            how,
            exit: None,
            agent: String::new(),
            session_id: None,
            model: None,
            output_digest: None,
            failure: None,
            usage: SessionUsage::default(),
            elapsed_ms: 0,
            captured_bytes: 0,
            dropped_bytes: 0,
            log_fault: None,
            survivors: 0,
            containment: Containment::Walk,
        }
    }
}

impl SessionEnd {
    /// Returns the answer, where it gave one.
    pub fn answer(&self) -> Option<&AgentAnswer> {
        if let SessionEndKind::Answered(answer) = &self.how { Some(answer) } else { None }
    }
}

/// The class of a session's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEndKind<A = AgentAnswer> {
    /// It gave an answer of the right shape.
    Answered(A),
    /// The model's service was not available.
    Unavailable {
        /// What it said.
        why: String,
        /// When it can be asked again.
        until: Option<Timestamp>,
    },
    /// The budget ran out.
    TimedOut,
    /// It cannot work until a person changes something.
    Misconfigured {
        /// What, with the fix.
        what: String,
    },
    /// It outgrew the model's context.
    ContextExceeded {
        /// What it said.
        what: String,
    },
    /// It failed in some other way.
    Faulty {
        /// In which.
        kind: FaultKind,
        /// What was seen.
        what: String,
    },
    /// It was ended because somebody asked, or with the daemon.
    Cut,
}

/// The kinds of [`Verdict::Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It exited with another code than 0.
    Exit,
    /// It died of a signal.
    Crash,
    /// It printed nothing for too long.
    Silence,
    /// It ended without an answer.
    NoAnswer,
    /// Its answer was not of the right shape.
    InvalidAnswer,
    /// The budget ran out and is to be tried again.
    Timeout,
    /// The reviewer gave no valid answer, three times.
    Reviewer,
    /// The guard's supervisor was killed, twice.
    Guard,
}

impl FaultKind {
    /// Every kind, in declaration order.
    pub const ALL: [Self; 8] = [
        Self::Exit,
        Self::Crash,
        Self::Silence,
        Self::NoAnswer,
        Self::InvalidAnswer,
        Self::Timeout,
        Self::Reviewer,
        Self::Guard,
    ];

    /// Returns the kind in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit code",
            Self::Crash => "crash",
            Self::Silence => "silence",
            Self::NoAnswer => "no answer",
            Self::InvalidAnswer => "invalid answer",
            Self::Timeout => "timeout",
            Self::Reviewer => "reviewer failed",
            Self::Guard => "guard lost",
        }
    }
}

/// What Inspect saw after a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFinding {
    /// How history was rewritten, where it was; it has been rescued and put back.
    pub history: Option<String>,
    /// Where HEAD was, while the run's branch still contained From; it has been rescued and put back.
    pub elsewhere: Option<String>,
    /// What became of the task tree.
    pub tree: TreeFinding,
    /// Whether anything at all differs from From.
    pub changed: bool,
    /// Whether a path outside `.runner/` differs from From.
    pub changed_code: bool,
    /// Whether a path outside `.runner/` differs from the run's base.
    pub changed_since_base: bool,
    /// Paths of the runner that the session changed, and that were put back.
    pub reverted: Vec<String>,
    /// Files that the session changed and that hold secrets; nothing is decided by them.
    pub secrets: Vec<SecretSeen>,
    /// References of others that the session moved; nothing is decided by them.
    pub moved_refs: Vec<String>,
    /// Submodules with work inside that is not committed there.
    pub dirty_submodules: Vec<String>,
}

impl SessionFinding {
    /// Returns what is found where nothing differs but the task tree, if that.
    pub fn new(tree: TreeFinding) -> Self {
        Self {
            history: None,
            elsewhere: None,
            tree,
            changed: false,
            changed_code: false,
            changed_since_base: false,
            reverted: Vec::new(),
            secrets: Vec::new(),
            moved_refs: Vec::new(),
            dirty_submodules: Vec::new(),
        }
    }
}

/// What became of the task tree in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeFinding {
    /// It is legal.
    Legal {
        /// Children that the selected node gained in `tree.json`.
        gained: u32,
        /// Whether goal or acceptance of the selected node differ.
        reworded: bool,
    },
    /// It cannot be read, or is not valid.
    Invalid {
        /// What is wrong.
        faults: Vec<TreeFault>,
        /// Its text, bounded.
        text: String,
        /// Blob of its text, where it could be kept.
        blob: Option<String>,
    },
    /// It is valid and breaks a rule of who may change what.
    Illegal(RuleBreach),
}

impl TreeFinding {
    /// A tree that is legal, in which the selected node is as it was.
    pub const UNTOUCHED: Self = Self::Legal { gained: 0, reworded: false };
}

/// The outcome of an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// `done`, guard 0, review accepts or is off.
    Accepted,
    /// `done`, guard not 0.
    RedGuard,
    /// `done`, guard 0, review rejects.
    Rejected {
        /// Why.
        reasons: String,
    },
    /// `done`, guard 0, a person has yet to review.
    Pending,
    /// The agent asks for another session.
    Retry,
    /// The planner made the task smaller on its last attempt.
    Narrowed,
    /// The selected node gained children.
    Decomposed,
    /// A rule was broken.
    Broken(RuleBreach),
    /// The session gave no valid answer.
    Fault {
        /// Which way.
        kind: FaultKind,
        /// What was seen.
        what: String,
    },
    /// The model's service was not available.
    Unavailable {
        /// What it said.
        why: String,
        /// When it can be asked again.
        until: Option<Timestamp>,
    },
    /// The budget ran out.
    Timeout {
        /// In which phase.
        during: PhaseName,
    },
    /// The agent or the guard cannot run as configured.
    Misconfigured {
        /// What, with the fix.
        what: String,
    },
    /// The iteration was cut short.
    Interrupted {
        /// By whom.
        by: StopCause,
    },
}

impl Verdict {
    /// Returns the name, without details.
    pub fn name(&self) -> VerdictName {
        match self {
            Self::Accepted => VerdictName::Accepted,
            Self::RedGuard => VerdictName::RedGuard,
            Self::Rejected { .. } => VerdictName::Rejected,
            Self::Pending => VerdictName::Pending,
            Self::Retry => VerdictName::Retry,
            Self::Narrowed => VerdictName::Narrowed,
            Self::Decomposed => VerdictName::Decomposed,
            Self::Broken(_) => VerdictName::Broken,
            Self::Fault { .. } => VerdictName::Fault,
            Self::Unavailable { .. } => VerdictName::Unavailable,
            Self::Timeout { .. } => VerdictName::Timeout,
            Self::Misconfigured { .. } => VerdictName::Misconfigured,
            Self::Interrupted { .. } => VerdictName::Interrupted,
        }
    }
}

/// What a session's end amounts to before the guard has been asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionJudgement {
    /// `done`, and no rule is broken: the guard is asked.
    Claimed,
    /// There is nothing to ask.
    Final(Verdict),
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct JudgeInput<'a> {
    /// The numbers and choices in force.
    pub policy: &'a Policy,
    /// What the session was asked.
    pub task: &'a SessionTask,
    /// Who ended the session before its time, where somebody did.
    pub stop: Option<StopCause>,
    /// How it ended.
    pub session: &'a SessionEnd,
    /// What it left.
    pub finding: &'a SessionFinding,
}

/// Takes the first rule that applies.
pub fn judge(case: JudgeInput<'_>) -> SessionJudgement {
    match stop_verdict(&case).or_else(|| no_answer_verdict(&case)).or_else(|| find_breach(&case).map(Verdict::Broken)) {
        Some(verdict) => SessionJudgement::Final(verdict),
        None => judge_by_status(&case),
    }
}

fn stop_verdict(case: &JudgeInput<'_>) -> Option<Verdict> {
    let elsewhere = || case.finding.elsewhere.as_ref().map(|_| StopCause::Elsewhere);
    case.stop.or_else(elsewhere).map(|by| Verdict::Interrupted { by })
}

fn no_answer_verdict(case: &JudgeInput<'_>) -> Option<Verdict> {
    match &case.session.how {
        SessionEndKind::Answered(_) => None,
        SessionEndKind::Unavailable { why, until } => Some(Verdict::Unavailable { why: why.clone(), until: *until }),
        SessionEndKind::TimedOut => Some(timeout_verdict(case.policy, PhaseName::Work)),
        SessionEndKind::Misconfigured { what } => Some(Verdict::Misconfigured { what: what.clone() }),
        SessionEndKind::ContextExceeded { what } => {
            Some(Verdict::Broken(RuleBreach { rule: SessionRule::Context, at: case.task.node.clone(), seen: what.clone() }))
        }
        SessionEndKind::Faulty { kind, what } => Some(Verdict::Fault { kind: *kind, what: what.clone() }),
        SessionEndKind::Cut => Some(Verdict::Interrupted { by: StopCause::Death }),
    }
}

/// Returns the verdict of a budget that ran out in `during`.
pub fn timeout_verdict(policy: &Policy, during: PhaseName) -> Verdict {
    match (policy.on_timeout, during) {
        (TimeoutPolicy::Stop, _) => Verdict::Timeout { during },
        (TimeoutPolicy::Retry, PhaseName::Guard) => Verdict::RedGuard,
        (TimeoutPolicy::Retry, _) => {
            Verdict::Fault { kind: FaultKind::Timeout, what: format!("the budget ran out during {during}") }
        }
    }
}

fn find_breach(case: &JudgeInput<'_>) -> Option<RuleBreach> {
    let node = &case.task.node;
    let breach = |rule: SessionRule, seen: &str| Some(RuleBreach { rule, at: node.clone(), seen: seen.to_owned() });
    if let Some(what) = &case.finding.history {
        return breach(SessionRule::History, what);
    }
    let (gained, reworded) = match &case.finding.tree {
        TreeFinding::Legal { gained, reworded } => (*gained, *reworded),
        TreeFinding::Illegal(found) => return Some(found.clone()),
        TreeFinding::Invalid { faults, .. } => {
            let first = faults.first().map_or_else(|| "it cannot be read".to_owned(), ToString::to_string);
            return Some(RuleBreach { rule: SessionRule::ValidTree, at: ".runner/state/tree.json".to_owned(), seen: first });
        }
    };
    let answer = case.session.answer()?;
    let answered = answer.children.as_ref().map_or(0, Vec::len);
    let strict = case.policy.roles == RolesMode::Strict;
    match answer.status {
        AnswerStatus::Done if reworded => breach(SessionRule::KeepGoal, "goal or acceptance differ"),
        AnswerStatus::Decomposed if answered == 0 && gained == 0 => {
            breach(SessionRule::DecomposedNeedsChildren, "the answer brings none and the tree has none")
        }
        AnswerStatus::Decomposed if answered > 0 && gained > 0 => {
            Some(RuleBreach::for_children(SessionRule::ChildrenOneWay, node, ChildCounts { answered, gained }))
        }
        AnswerStatus::Done | AnswerStatus::Retry if answered > 0 || gained > 0 => {
            Some(RuleBreach::for_children(SessionRule::ChildrenOnlyWithDecomposed, node, ChildCounts { answered, gained }))
        }
        AnswerStatus::Done if is_idle_root(case) => breach(SessionRule::RootNeedsChange, &describe_idle(case.finding)),
        AnswerStatus::Decomposed if strict && case.task.role == Role::Worker => {
            breach(SessionRule::WorkerNoChildren, "the worker answered `decomposed`")
        }
        _ if strict && case.task.role == Role::Planner && case.finding.changed_code => {
            breach(SessionRule::PlannerNoCode, "files outside .runner/ differ")
        }
        AnswerStatus::Done | AnswerStatus::Retry | AnswerStatus::Decomposed => None,
    }
}

/// Whether the root itself is claimed to be done although the run has changed nothing.
fn is_idle_root(case: &JudgeInput<'_>) -> bool {
    case.task.path.len() == 1 && !case.finding.changed_since_base
}

/// Says why there is nothing in the branch, for who has to do something about it.
fn describe_idle(finding: &SessionFinding) -> String {
    let dirty = finding.dirty_submodules.join(", ");
    if dirty.is_empty() {
        return "nothing differs from the base".to_owned();
    }
    format!("all that was changed lies uncommitted inside of a submodule: commit it there ({dirty})")
}

fn judge_by_status(case: &JudgeInput<'_>) -> SessionJudgement {
    let Some(answer) = case.session.answer() else {
        return SessionJudgement::Final(Verdict::Interrupted { by: StopCause::Death });
    };
    let reworded = matches!(case.finding.tree, TreeFinding::Legal { reworded: true, .. });
    match answer.status {
        AnswerStatus::Done => SessionJudgement::Claimed,
        AnswerStatus::Decomposed => SessionJudgement::Final(Verdict::Decomposed),
        AnswerStatus::Retry if case.task.narrowing && reworded => SessionJudgement::Final(Verdict::Narrowed),
        AnswerStatus::Retry => SessionJudgement::Final(Verdict::Retry),
    }
}
