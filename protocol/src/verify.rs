//! The result of an audit of a branch: findings, the commits of people, and how much is proven.
//!
//! Data only. The rules are in `runner-core`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::path::WirePath;
use crate::words::{ReviewVerdict, words};

words! {
    /// A rule that an audit holds a branch to.
    AuditRule {
        /// A commit of the runner says what it says in the one form that the runner writes.
        Form = "form",
        /// Nothing is missing: parents, `Runner-From` and `Runner-Tree-From` are an unbroken chain.
        Chain = "chain",
        /// Iterations are numbered without a gap, within one run.
        Number = "number",
        /// Every state that a session begins with or ends in can be read and is valid.
        Valid = "valid",
        /// Node, role and the right to begin at all follow from the commit at which the session began.
        Selection = "selection",
        /// The prompt that follows from that commit has the digest in the receipt.
        Prompt = "prompt",
        /// The verdict is one that its evidence allows.
        Verdict = "verdict",
        /// The task tree is what the verdict leads to, and within what a session may change.
        Tree = "tree",
        /// `passes` is set for an accepted leaf, and by nothing else.
        Passes = "passes",
        /// A passed node stays as it is.
        Passed = "passed",
        /// `run_state.json` is what the verdict leads to.
        RunState = "run_state",
        /// `feedback.json` is what the verdict leads to.
        Feedback = "feedback",
        /// `progress.md` is what the verdict leads to.
        Progress = "progress",
        /// `guardrails.md` is what the verdict leads to.
        Guardrails = "guardrails",
        /// The receipt says of its own commit what is the case.
        Receipt = "receipt",
        /// Files that are the runner's, configuration and templates included, are changed by nobody's session.
        Owned = "owned",
        /// What a person may not do to a run.
        Person = "person",
        /// A start, a baseline and a resume change what they are for and nothing else.
        Milestone = "milestone",
        /// A guard that runs again agrees with the receipt.
        Rerun = "rerun",
        /// All that is judged is here, and there is an iteration of the run to judge.
        Unseen = "unseen",
        /// Each commit of the runner, and each review by a person, is signed by a key that was named.
        Signed = "signed",
        /// What was once the last commit of the branch is still in it.
        Tip = "tip",
    }
}

words! {
    /// How much a finding weighs.
    Severity {
        /// No runner that keeps the rules makes such a branch.
        Violation = "violation",
        /// It may be as it should, and somebody should know.
        Warning = "warning",
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditFinding {
    /// The commit that it is about.
    pub commit: String,
    /// The iteration, where it is one.
    pub iter: Option<u32>,
    /// Which rule.
    pub rule: AuditRule,
    /// How much it weighs.
    pub severity: Severity,
    /// What it concerns: a file, a field, a node, a trailer.
    pub at: String,
    /// What the rules lead to.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// A commit of a person's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonCommit {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// The command of `runnerctl` that it says it was made by; null for a plain commit.
    pub command: Option<String>,
    /// Paths under `.runner/` that it changed.
    pub runner_paths: Vec<String>,
    /// How many other paths it changed.
    pub other_paths: u32,
}

/// A leaf that passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditPass {
    /// The node.
    pub node: String,
    /// The iteration.
    pub iter: u32,
    /// Its commit.
    pub commit: String,
}

/// How much was looked at, and how much of it is proven.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditCounts {
    /// Commits on first parents, from the start to the tip.
    pub commits: u32,
    /// Iterations.
    pub iterations: u32,
    /// Iterations without a session, for which a person's word stood.
    pub said: u32,
    /// Prompts that were built again and have the digest in the receipt.
    pub prompts: u32,
    /// Prompts that cannot be built again: another version's, or what they were made of is not here.
    pub prompts_unknown: u32,
    /// Commits of agents, between a session's beginning and its receipt.
    pub agents_commits: u32,
    /// Leaves that pass at the tip, and all leaves.
    pub leaves_passed: u32,
    /// All leaves at the tip.
    pub leaves_total: u32,
    /// Guards whose result is the runner's word alone.
    pub guards_unproven: u32,
}

/// What guards said that were run once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunReport {
    /// How many guards were run.
    pub guards: u32,
    /// Those that did not exit 0, as warnings.
    pub findings: Vec<AuditFinding>,
}

/// `verify.tips`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TipsParams {
    /// Absolute path in the repository, a bare one included.
    pub path: WirePath,
    /// The last commit of the branch.
    pub tip: String,
    /// Commits that were the last once, by their whole ids.
    pub tips: Vec<String>,
}

/// A revision that has commits of the branch already, and what was found in these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditSince {
    /// The commit that the revision names.
    pub commit: String,
    /// How many violations are in commits that it contains: they are not among the findings.
    pub violations: u32,
    /// How many warnings are in them.
    pub warnings: u32,
}

/// Whose signatures the runner's commits, or people's reviews, have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditSigned {
    /// How many were looked at.
    pub commits: u32,
    /// How many of them are signed by a key that was named.
    pub held: u32,
    /// By whom: principal and key, each once.
    pub by: Vec<String>,
}

/// A person's word on what a session has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReview {
    /// The commit that it became.
    pub commit: String,
    /// The iteration.
    pub iter: u32,
    /// The node.
    pub node: String,
    /// What was decided.
    pub verdict: ReviewVerdict,
    /// The bytes that a signature of it is of.
    pub text: String,
    /// The signature in the receipt, in base64 without its armor.
    pub signature: Option<String>,
}

/// What an audit of a branch found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReport {
    /// The run.
    pub run: String,
    /// The commit before the first one that was looked at; null where it is not here.
    pub base: Option<String>,
    /// The last commit that was looked at.
    pub tip: String,
    /// What is not as it should be, oldest commit first.
    pub findings: Vec<AuditFinding>,
    /// Commits of people, oldest first.
    pub people: Vec<PersonCommit>,
    /// Leaves that passed in this run, oldest first.
    pub passes: Vec<AuditPass>,
    /// Leaves that passed already before the first commit that was looked at, by id: the commits say nothing about them.
    pub brought: Vec<String>,
    /// What could not be looked at, in sentences.
    pub unseen: Vec<String>,
    /// Counts.
    pub counts: AuditCounts,
    /// The revision before which findings are counted alone, where one was named.
    pub since: Option<AuditSince>,
    /// Whose signatures the runner's commits have, where signers were named.
    pub signed: Option<AuditSigned>,
    /// What people have said of finished nodes, oldest first.
    pub reviews: Vec<AuditReview>,
    /// Whose signatures these have, where reviewers were named.
    pub reviewed: Option<AuditSigned>,
}
