//! Rebuilds the prompt of a session from From, and compares it with the digest in the receipt.

use std::convert::Infallible;

use protocol::verify::AuditRule;
use protocol::words::Role;

use super::findings::AuditFindings;
use super::state::AuditedState;
use crate::files::layout;
use crate::message::{Receipt, RunnerVersion};
use crate::prompt::{self, PROMPT_FORMAT, Prompt, PromptInput, ReviewMaterial, read_instructions, templates_digest};
use crate::text::digest::Digest;
use crate::verdict::SessionTask;

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
    pub from: &'a AuditedState<'a>,
    /// The text for sessions about the guard's definition, if any.
    pub guard_notice: Option<&'a str>,
    /// The session's task.
    pub task: &'a SessionTask,
}

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
    let review =
        ReviewMaterial { from: &sources.task.from, criteria: &sources.from.config.review.criteria, diff: &diff };
    let task = SessionTask { role: Role::Reviewer, ..sources.task.clone() };
    let expected = Digest::compute(build_prompt(sources, &task, Some(review)).text.as_bytes());
    if *found != expected {
        let expected = expected.to_string();
        let found = found.to_string();
        findings.add_violation(AuditRule::Prompt, "Runner-Review", &expected, &found);
    }
}

fn build_prompt(
    PromptSources { from, guard_notice, .. }: PromptSources<'_>,
    task: &SessionTask,
    review: Option<ReviewMaterial<'_>>,
) -> Prompt {
    let node_context = from.bytes(&format!("{}/{}/context.md", layout::NODES, task.node)).map(String::from_utf8_lossy);
    let node_context = node_context.as_deref();
    let read = |name: &str| Ok::<_, Infallible>(from.bytes(name).map(<[u8]>::to_vec));
    let Ok(instructions) = read_instructions(&from.config.prompt.instructions, read);
    let instructions = &instructions[..];
    prompt::build_prompt(&PromptInput {
        instructions,
        guard_notice,
        node_context,
        review,
        ..PromptInput::new(from, task)
    })
}
