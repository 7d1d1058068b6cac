//! The result of an audit of a branch: findings, the commits of people, and how much is proven.
//!
//! Data only. The rules are in `runner-core`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::words::{ReviewVerdict, words};

words! {
    /// A rule that an audit checks on a branch.
    AuditRule {
        /// Each commit of the runner has exactly the format that the runner writes.
        Form = "form",
        /// No commit is missing: parents, `Runner-From` and `Runner-Tree-From` form an unbroken chain.
        Chain = "chain",
        /// Iterations are numbered without gaps, within one run.
        Number = "number",
        /// Every state at the beginning or end of a session can be read and is valid.
        Valid = "valid",
        /// The commit at which a session started determines its task, its role, and whether it may start at all.
        Selection = "selection",
        /// The prompt built from that commit has the digest in the receipt.
        Prompt = "prompt",
        /// The evidence allows the verdict.
        Verdict = "verdict",
        /// The task tree follows from the verdict, and contains only changes that a session may make.
        Tree = "tree",
        /// `passes` is set only for an accepted task.
        Passes = "passes",
        /// A passed task does not change.
        Passed = "passed",
        /// `run_state.json` follows from the verdict.
        RunState = "run_state",
        /// `feedback.json` follows from the verdict.
        Feedback = "feedback",
        /// `progress.md` follows from the verdict.
        Progress = "progress",
        /// `guardrails.md` follows from the verdict.
        Guardrails = "guardrails",
        /// The receipt describes its own commit correctly.
        Receipt = "receipt",
        /// No session changes the runner's own files, including configuration and templates.
        Owned = "owned",
        /// No iteration changes a file outside of the scope of its run.
        Scope = "scope",
        /// A person's commit makes only changes that a person may make.
        Person = "person",
        /// A start, a baseline and a resume change only what they are meant to change.
        Milestone = "milestone",
        /// A guard that runs again agrees with the receipt.
        Rerun = "rerun",
        /// All commits that the audit needs are present, and there is at least one iteration of the run.
        Unseen = "unseen",
        /// Each commit of the runner, and each review by a person, is signed with one of the given keys.
        Signed = "signed",
        /// Every commit that was once the last of the branch is still on the branch.
        Tip = "tip",
    }
}

words! {
    /// The severity of a finding.
    Severity {
        /// A runner that follows the rules never makes such a branch.
        Violation = "violation",
        /// It may be correct, but a person should check it.
        Warning = "warning",
    }
}

/// A finding of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFinding {
    /// The commit that the finding is about.
    pub commit: String,
    /// The iteration, if the commit belongs to one.
    pub iter: Option<u32>,
    /// The broken rule.
    pub rule: AuditRule,
    /// Its severity.
    pub severity: Severity,
    /// The subject: a file, a field, a task, or a trailer.
    pub at: String,
    /// The expected value, according to the rules.
    pub expected: String,
    /// The actual value.
    pub found: String,
}

/// A person's commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonCommit {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// The `runnerctl` command that made it, according to its message; null for a plain commit.
    pub command: Option<String>,
    /// Paths under `.runner/` that it changed.
    pub runner_paths: Vec<String>,
    /// Number of other paths that it changed.
    pub other_paths: u32,
}

/// A task that has passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditPass {
    /// The task.
    pub node: String,
    /// The iteration.
    pub iter: u32,
    /// Its commit.
    pub commit: String,
}

/// The number of audited commits, and the proven share of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditCounts {
    /// Commits on first parents, from the start to the tip.
    pub commits: u32,
    /// Iterations.
    pub iterations: u32,
    /// Iterations without a session, in which a person decided instead.
    #[serde(rename = "said")]
    pub decisions: u32,
    /// Prompts that were rebuilt and have the digest in the receipt.
    pub prompts: u32,
    /// Prompts that cannot be rebuilt, because another version made them or their inputs are missing.
    pub prompts_unknown: u32,
    /// Commits of agents, between the start of a session and its receipt.
    pub agents_commits: u32,
    /// Leaf tasks that have passed at the tip.
    pub leaves_passed: u32,
    /// All leaf tasks at the tip.
    pub leaves_total: u32,
    /// Guards whose result has no proof except the runner's receipt.
    pub guards_unproven: u32,
}

/// The results of guards that were run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunReport {
    /// Number of guards that were run.
    pub guards: u32,
    /// The guards that did not exit 0, as warnings.
    pub findings: Vec<AuditFinding>,
}

/// `verify.tips`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TipsParams {
    /// Absolute path in the repository, which may be bare.
    pub path: WirePath,
    /// The last commit of the branch.
    pub tip: String,
    /// Full ids of commits that were once the last of the branch.
    pub tips: Vec<String>,
}

/// A revision that already has commits of the branch, and the number of findings in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditSince {
    /// The commit that the revision names.
    pub commit: String,
    /// Number of violations in commits that it contains; they are left out of the findings.
    pub violations: u32,
    /// Number of warnings in those commits.
    pub warnings: u32,
}

/// The signatures on the runner's commits, or on people's reviews.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditSigned {
    /// Number of commits or reviews that were checked.
    pub commits: u32,
    /// Number of those with a signature by one of the given keys.
    pub held: u32,
    /// The signers: principal and key, each once.
    pub by: Vec<String>,
}

/// A person's decision on the work of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReview {
    /// The commit that records it.
    pub commit: String,
    /// The iteration.
    pub iter: u32,
    /// The task.
    pub node: String,
    /// The decision.
    pub verdict: ReviewVerdict,
    /// The bytes that a signature must cover.
    pub text: String,
    /// The signature in the receipt, in base64 without its armor.
    pub signature: Option<String>,
}

/// The result of an audit of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// The run.
    pub run: String,
    /// The commit before the first one that was audited; null if it is missing here.
    pub base: Option<String>,
    /// The last commit that was audited.
    pub tip: String,
    /// The findings, oldest commit first.
    pub findings: Vec<AuditFinding>,
    /// Commits of people, oldest first.
    pub people: Vec<PersonCommit>,
    /// Leaf tasks that passed in this run, oldest first.
    pub passes: Vec<AuditPass>,
    /// Ids of leaf tasks that had passed before the first audited commit: the audited commits do not prove them.
    pub brought: Vec<String>,
    /// Parts that could not be audited, in sentences.
    pub unseen: Vec<String>,
    /// Counts.
    pub counts: AuditCounts,
    /// The revision before which findings are only counted, if one was given.
    pub since: Option<AuditSince>,
    /// The signatures on the runner's commits, if signers were given.
    pub signed: Option<AuditSigned>,
    /// People's reviews of finished tasks, oldest first.
    pub reviews: Vec<AuditReview>,
    /// The signatures on the reviews, if reviewers were given.
    pub reviewed: Option<AuditSigned>,
}
