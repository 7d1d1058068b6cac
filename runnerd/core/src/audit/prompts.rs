//! Rebuilds the prompt of a session from From, and compares it with the digest in the receipt.

use std::collections::BTreeMap;

use protocol::verify::AuditRule;
use protocol::words::Role;

use super::findings::AuditFindings;
use super::state::CommittedState;
use crate::digest::Digest;
use crate::message::{Receipt, RunnerVersion};
use crate::policy::RolesMode;
use crate::prompt::{self, MemoryFiles, PROMPT_FORMAT, Prompt, PromptInput, ReviewMaterial, templates_digest};
use crate::verdict::SessionTask;
use crate::{layout, notes};

/// Result of checking a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptCheck {
    /// The prompt has the digest in the receipt.
    Same,
    /// The prompt has another digest.
    Differs,
    /// The prompt cannot be rebuilt here.
    Unknown,
    /// There was no prompt: a person's decision replaced the session.
    NotSent,
}

/// Everything prompts are built from.
#[derive(Debug, Clone, Copy)]
pub(super) struct PromptSources<'a> {
    /// The state at From.
    pub from: &'a CommittedState<'a>,
    /// The text for sessions about the guard's definition, if any.
    pub guard_notice: Option<&'a str>,
    /// The session's task.
    pub task: &'a SessionTask,
}

/// The overrides of prompt templates, by role.
const OVERRIDE_PATHS: [(Role, &str); 4] = [
    (Role::Worker, ".runner/prompts/worker.md"),
    (Role::Planner, ".runner/prompts/planner.md"),
    (Role::Repair, ".runner/prompts/repair.md"),
    (Role::Reviewer, ".runner/prompts/reviewer.md"),
];

/// Rebuilds the prompt of a task; returns the result of the check, and the notes in the prompt.
pub(super) fn check(
    receipt: &Receipt,
    sources: PromptSources<'_>,
    findings: &mut AuditFindings,
) -> (PromptCheck, Vec<String>) {
    if !is_supported_version(&receipt.version) {
        let found = receipt.version.to_string();
        let expected = format!("prompt={PROMPT_FORMAT} templates={}", short_templates_digest());
        findings.add_warning(
            AuditRule::Prompt,
            "Runner-Version",
            &format!("{expected}, to build the prompt again"),
            &found,
        );
        let notes = receipt.notes.items().iter().map(|note| String::from_utf8_lossy(note).into_owned());
        return (PromptCheck::Unknown, notes.collect());
    }
    let built = build_prompt(sources, sources.task, None);
    let expected = Digest::compute(built.text.as_bytes());
    let found = receipt.prompt.as_ref();
    if found == Some(&expected) {
        return (PromptCheck::Same, built.notes);
    }
    let found = found.map_or_else(|| "none".to_owned(), ToString::to_string);
    findings.add_violation(AuditRule::Prompt, "Runner-Prompt", &expected.to_string(), &found);
    (PromptCheck::Differs, built.notes)
}

/// Whether prompts of this version can be rebuilt here.
fn is_supported_version(version: &RunnerVersion) -> bool {
    version.prompt_format == PROMPT_FORMAT && version.templates == short_templates_digest()
}

fn short_templates_digest() -> String {
    templates_digest().chars().take(12).collect()
}

/// Rebuilds the prompt of the reviewer, if one decided and its diff is available.
pub(super) fn check_review(
    receipt: &Receipt,
    sources: PromptSources<'_>,
    diff: Option<&[u8]>,
    findings: &mut AuditFindings,
) {
    let recorded = receipt.review.as_ref().and_then(|review| review.prompt.as_ref());
    let (Some(found), Some(diff)) = (recorded, diff.filter(|_| is_supported_version(&receipt.version))) else { return };
    let diff = String::from_utf8_lossy(diff);
    let review = ReviewMaterial { from: &sources.task.from, criteria: &sources.from.settings.criteria, diff: &diff };
    let task = SessionTask { role: Role::Reviewer, ..sources.task.clone() };
    let expected = Digest::compute(build_prompt(sources, &task, Some(review)).text.as_bytes());
    if *found != expected {
        let (expected, found) = (expected.to_string(), found.to_string());
        findings.add_violation(AuditRule::Prompt, "Runner-Review", &expected, &found);
    }
}

fn build_prompt(
    PromptSources { from, guard_notice, .. }: PromptSources<'_>,
    task: &SessionTask,
    review: Option<ReviewMaterial<'_>>,
) -> Prompt {
    let text = |path: &str| from.bytes(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let overrides: BTreeMap<Role, String> =
        OVERRIDE_PATHS.into_iter().filter_map(|(role, path)| Some((role, text(path)?))).collect();
    let node_context = text(&format!("{}/{}/context.md", layout::NODES, task.node));
    let notes = notes::unused_notes(&from.text(layout::NOTES), &from.run_state.notes_used);
    prompt::build_prompt(&PromptInput {
        tree: from.tree,
        node: &task.node,
        role: task.role,
        narrowing: task.narrowing,
        mode_strict: from.settings.policy.roles == RolesMode::Strict,
        goal_body: &from.goal.body,
        run_state: from.run_state,
        feedback: from.feedback,
        notes: &notes,
        guard_notice,
        budget_ms: from.settings.policy.budget_ms,
        tests: from.tests,
        guard_command: &from.settings.guard_command,
        progress: &from.text(layout::PROGRESS),
        memory: MemoryFiles {
            guardrails: &from.text(layout::GUARDRAILS),
            assumptions: &from.text(layout::ASSUMPTIONS),
            questions: &from.text(layout::QUESTIONS),
        },
        node_context: node_context.as_deref(),
        overrides: &overrides,
        review,
        budget_bytes: from.settings.prompt_bytes,
    })
}
