//! Judges a finished session: from facts about its end to a verdict, and from a verdict to its effects.
//!
//! Two values: `judge` takes the first rule that applies, and `row` is the table of effects. Neither reads files;
//! everything observed is passed in as facts.

mod decision;
mod detail;
mod rule;
mod stop_cause;
mod verdict_table;

use jiff::Timestamp;
use protocol::answer::{AgentAnswer, AnswerStatus, SessionUsage};
use protocol::meta::{SecretFinding, SessionFailure};
use protocol::words::{Containment, PhaseName, Role, VerdictName};
use runner_config::{RolesMode, TimeoutPolicy};
use serde::{Deserialize, Serialize};

use crate::message::ReviewSignature;
use crate::policy::Policy;
use crate::tree::validate::TreeFault;

pub use self::decision::{Decision, InvalidReasons, MAX_REASONS_BYTES};
use self::detail::ChildCounts;
pub use self::rule::{RuleBreach, SessionRule};
pub use self::stop_cause::StopCause;
pub use self::verdict_table::{FeedbackEffect, RunEffect, TreeSource, VerdictRow, verdict_row};

/// The leaf an iteration works on, and how to run its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTask {
    /// Id of the run.
    pub run: String,
    /// Number of the iteration within the run.
    pub iter: u32,
    /// Commit at which the session begins.
    pub from: String,
    /// Id of the selected leaf.
    pub node: String,
    /// Ids from the root to the leaf.
    pub path: Vec<String>,
    /// Role that the session's agent plays.
    pub role: Role,
    /// Whether the planner may make the task smaller without using up the last attempt.
    pub narrowing: bool,
    /// Attempts charged to the leaf before this session.
    pub attempts: u32,
    /// Attempts the leaf is allowed.
    pub max_attempts: u32,
    /// Kind of agent to run; `None` means the one configured for the role.
    pub kind: Option<String>,
    /// Kind of agent that reviews a claim of `done`; `None` means no reviewer, or the configured one.
    pub reviewer: Option<String>,
    /// A person's decision that replaces a session.
    pub decision: Option<Decision>,
    /// That person's signature, if they signed.
    pub signature: Option<ReviewSignature>,
    /// Whether the guard runs again before an approval counts, because the files have changed since it last passed.
    pub recheck: bool,
}

/// How an agent's session ended, as facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd<A = AgentAnswer> {
    /// Class of the end.
    pub how: SessionEndKind<A>,
    /// Exit status of the agent: a code, or a negative signal number.
    pub exit: Option<i32>,
    /// Kind and version of the agent.
    pub agent: String,
    /// Id by which the agent's service knows the session, if the agent reports one.
    pub session_id: Option<String>,
    /// Model that was used, if the agent's own record names it.
    pub model: Option<String>,
    /// SHA-256 of the answer as recorded: verbatim except for redacted secrets.
    pub output_digest: Option<String>,
    /// Why there was no answer, if that was seen; informational, no decision depends on it.
    pub failure: Option<Box<SessionFailure>>,
    /// Tokens and cost consumed.
    pub usage: SessionUsage,
    /// Time charged to the budget, in milliseconds.
    pub elapsed_ms: u64,
    /// Bytes of its output that were kept.
    pub captured_bytes: u64,
    /// Bytes of its output that were dropped.
    pub dropped_bytes: u64,
    /// Why its log is incomplete, if the disk refused part of it.
    pub log_fault: Option<String>,
    /// Number of processes that outlived the session and were ended.
    pub survivors: u32,
    /// Paths of the work tree that were moved away while it ran: its program would have obeyed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// How tightly its processes were contained.
    pub containment: Containment,
}

impl<A> SessionEnd<A> {
    /// Returns the end of a session about which nothing else is known.
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
            hidden: Vec::new(),
            containment: Containment::Walk,
        }
    }
}

impl SessionEnd {
    /// Returns the answer, if the session gave one.
    pub fn answer(&self) -> Option<&AgentAnswer> {
        if let SessionEndKind::Answered(answer) = &self.how { Some(answer) } else { None }
    }
}

/// Class of a session's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEndKind<A = AgentAnswer> {
    /// The agent gave an answer of the right shape.
    Answered(A),
    /// The model's service was unavailable.
    Unavailable {
        /// What the service reported.
        why: String,
        /// When it can be tried again, if known.
        until: Option<Timestamp>,
    },
    /// The budget ran out.
    TimedOut,
    /// The agent cannot work until a person changes something.
    Misconfigured {
        /// What has to change, with the fix.
        what: String,
    },
    /// The session outgrew the model's context.
    ContextExceeded {
        /// What the agent reported.
        what: String,
    },
    /// The session failed in some other way.
    Faulty {
        /// Kind of failure.
        kind: FaultKind,
        /// What was observed.
        what: String,
    },
    /// The session was ended on request, or together with the daemon.
    Cut,
}

/// The kinds of [`Verdict::Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The agent exited with a code other than 0.
    Exit,
    /// The agent died of a signal.
    Crash,
    /// The agent printed nothing for too long.
    Silence,
    /// The session ended without an answer.
    NoAnswer,
    /// The answer was not of the right shape.
    InvalidAnswer,
    /// The budget ran out, and the session must be tried again.
    Timeout,
    /// The reviewer gave no valid answer three times.
    Reviewer,
    /// The guard's supervisor was killed twice.
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

/// What the Inspect phase observed after a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFinding {
    /// How history was rewritten, if it was; the rewritten commits are rescued and the branch is restored.
    pub history: Option<String>,
    /// Where HEAD pointed if it had left the run's branch, which still contained From; it is rescued and HEAD is
    /// restored.
    pub elsewhere: Option<String>,
    /// How the session broke the scope of the run as a whole, if it did.
    pub scope: Option<String>,
    /// State of the task tree that the session left.
    pub tree: TreeFinding,
    /// Whether anything at all differs from From.
    pub changed: bool,
    /// Whether a path outside `.runner/` differs from From.
    pub changed_code: bool,
    /// Whether a path outside `.runner/` differs from the run's base.
    pub changed_since_base: bool,
    /// Protected paths that the session changed and that were restored.
    pub reverted: Vec<String>,
    /// Those of them that are outside of the scope of the run.
    pub outside: Vec<String>,
    /// Files that the session changed and that contain secrets; informational, no decision depends on them.
    pub secrets: Vec<SecretFinding>,
    /// References outside the run that the session moved; informational, no decision depends on them.
    pub moved_refs: Vec<String>,
    /// Submodules with uncommitted work inside.
    pub dirty_submodules: Vec<String>,
}

impl SessionFinding {
    /// Returns the finding for a session that changed at most the task tree.
    pub fn new(tree: TreeFinding) -> Self {
        Self {
            history: None,
            elsewhere: None,
            scope: None,
            tree,
            changed: false,
            changed_code: false,
            changed_since_base: false,
            reverted: Vec::new(),
            outside: Vec::new(),
            secrets: Vec::new(),
            moved_refs: Vec::new(),
            dirty_submodules: Vec::new(),
        }
    }
}

/// State of the task tree that a session left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeFinding {
    /// The tree is legal.
    Legal {
        /// Children that the selected node gained in `tree.json`.
        gained: u32,
        /// Whether the goal or acceptance of the selected node differs.
        reworded: bool,
    },
    /// The tree cannot be read or is not valid.
    Invalid {
        /// What is wrong with it.
        faults: Vec<TreeFault>,
        /// Text of the tree, bounded.
        text: String,
        /// Blob with the text, if it could be stored.
        blob: Option<String>,
    },
    /// The tree is valid but breaks a rule about who may change what.
    Illegal(RuleBreach),
}

impl TreeFinding {
    /// A legal tree in which the selected node is unchanged.
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
        /// Reasons for the rejection.
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
        /// Kind of failure.
        kind: FaultKind,
        /// What was observed.
        what: String,
    },
    /// The model's service was unavailable.
    Unavailable {
        /// What the service reported.
        why: String,
        /// When it can be tried again, if known.
        until: Option<Timestamp>,
    },
    /// The budget ran out.
    Timeout {
        /// Phase in which it ran out.
        during: PhaseName,
    },
    /// The agent or the guard cannot run as configured.
    Misconfigured {
        /// What has to change, with the fix.
        what: String,
    },
    /// The iteration was cut short.
    Interrupted {
        /// What caused the stop.
        by: StopCause,
    },
}

impl Verdict {
    /// Returns the verdict's name, without details.
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

/// What a session's end amounts to before the guard has run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionJudgement {
    /// `done`, and no rule is broken: the guard runs next.
    Claimed,
    /// The verdict is final; there is nothing for the guard to check.
    Final(Verdict),
}

/// Everything `judge` decides from.
#[derive(Debug, Clone, Copy)]
pub struct JudgeInput<'a> {
    /// The configured numbers and choices in force.
    pub policy: &'a Policy,
    /// The task the session was given.
    pub task: &'a SessionTask,
    /// What stopped the session early, if anything did.
    pub stop: Option<StopCause>,
    /// How the session ended.
    pub session: &'a SessionEnd,
    /// What the session left.
    pub finding: &'a SessionFinding,
}

/// Returns the judgement of the first rule that applies.
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
        SessionEndKind::ContextExceeded { what } => Some(Verdict::Broken(RuleBreach {
            rule: SessionRule::Context,
            at: case.task.node.clone(),
            details: what.clone(),
        })),
        SessionEndKind::Faulty { kind, what } => Some(Verdict::Fault { kind: *kind, what: what.clone() }),
        SessionEndKind::Cut => Some(Verdict::Interrupted { by: StopCause::Death }),
    }
}

/// Returns the verdict for a budget that ran out in `during`.
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
    let breach =
        |rule: SessionRule, details: &str| Some(RuleBreach { rule, at: node.clone(), details: details.to_owned() });
    if let Some(what) = &case.finding.history {
        return breach(SessionRule::History, what);
    }
    if let Some(what) = &case.finding.scope {
        return breach(SessionRule::Scope, what);
    }
    let (gained, reworded) = match &case.finding.tree {
        TreeFinding::Legal { gained, reworded } => (*gained, *reworded),
        TreeFinding::Illegal(found) => return Some(found.clone()),
        TreeFinding::Invalid { faults, .. } => {
            let first = faults.first().map_or_else(|| "it cannot be read".to_owned(), ToString::to_string);
            return Some(RuleBreach {
                rule: SessionRule::ValidTree,
                at: ".runner/state/tree.json".to_owned(),
                details: first,
            });
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
        AnswerStatus::Done | AnswerStatus::Retry if answered > 0 || gained > 0 => Some(RuleBreach::for_children(
            SessionRule::ChildrenOnlyWithDecomposed,
            node,
            ChildCounts { answered, gained },
        )),
        AnswerStatus::Done if !case.finding.outside.is_empty() && !case.finding.changed_code => {
            breach(SessionRule::Scope, &case.finding.describe_outside())
        }
        AnswerStatus::Done if is_idle_root(case) => breach(SessionRule::RootNeedsChange, &case.finding.describe_idle()),
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
