//! The prompt of a session: sections in a fixed order, within a budget of bytes.
//!
//! A pure function of what is committed at From: the same input gives the same bytes on every machine, so that an
//! audit can build the prompt again. It names no path of this machine, no clock and no backend; where a session puts
//! its answer is the variable `$RUNNER_OUTPUT`. The text of the templates is in `templates/v1`.

mod context;
mod fixed;
mod foreign;
mod section;
pub(crate) mod template;

use std::collections::BTreeMap;

use protocol::state::{Feedback, RunState};
use protocol::tree::{Node, TaskTree};
use protocol::words::Role;

use crate::clip::ClipOptions;
pub use crate::notes::PersonNote;
pub use crate::template::{TemplateFault, check_override, templates_digest};
use crate::tree;
pub use context::{ContextFiles, context_files};
use section::{PromptSection, fit_sections, join_rendered};

/// Number of the prompt format that [`build`] writes.
pub const PROMPT_FORMAT: u32 = 1;

/// The most bytes of all that is never cut, together.
const UNCUT_LIMIT: usize = 28 * 1024;
/// The most bytes of the state of checks and files, and of the notes, each.
const LIST_LIMIT: usize = 4 * 1024;

/// What a prompt is made of; all of it comes from the commit From.
#[derive(Debug, Clone)]
pub struct PromptInput<'a> {
    /// The task tree.
    pub tree: &'a TaskTree,
    /// Id of the selected leaf.
    pub node: &'a str,
    /// What the session is asked to be.
    pub role: Role,
    /// Whether the planner may make the node smaller instead of dividing it.
    pub narrowing: bool,
    /// Whether planners and workers are kept apart.
    pub mode_strict: bool,
    /// `GOAL.md` without its front matter.
    pub goal_body: &'a str,
    /// The bookkeeping.
    pub run_state: &'a RunState,
    /// What is remembered of earlier sessions.
    pub feedback: &'a Feedback,
    /// A person's notes that no session has answered to, oldest first.
    pub notes: &'a [PersonNote],
    /// What is to be said of the guard's definition.
    pub guard_notice: Option<&'a str>,
    /// The guard's command.
    pub guard_command: &'a [String],
    /// The text of `progress.md`.
    pub progress: &'a str,
    /// The files that agents append to.
    pub memory: MemoryFiles<'a>,
    /// The text of `nodes/<id>/context.md`.
    pub node_context: Option<&'a str>,
    /// The text of `.runner/prompts/<role>.md`, by role.
    pub overrides: &'a BTreeMap<Role, String>,
    /// What is under review; for the reviewer only.
    pub review: Option<ReviewMaterial<'a>>,
    /// The most bytes of the prompt; 32 KiB or more is always enough for what is never cut.
    pub budget_bytes: usize,
}

/// The files that agents append to.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryFiles<'a> {
    /// `guardrails.md`.
    pub guardrails: &'a str,
    /// `assumptions.md`.
    pub assumptions: &'a str,
    /// `questions.md`.
    pub questions: &'a str,
}

/// What a reviewer looks at.
#[derive(Debug, Clone, Copy)]
pub struct ReviewMaterial<'a> {
    /// The commit at which the session under review began, in hexadecimal.
    pub from: &'a str,
    /// The criteria of the configuration; may be empty.
    pub criteria: &'a str,
    /// What changed since, without `.runner/`.
    pub diff: &'a str,
}

/// A prompt and what it consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text for the agent's stdin.
    pub text: String,
    /// Its sections in order.
    pub sections: Vec<SectionSize>,
    /// Ids of the notes that it contains; these count as used once the session has answered.
    pub notes: Vec<String>,
}

/// The size of one section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionSize {
    /// Name of the section.
    pub name: &'static str,
    /// Bytes it has in the prompt.
    pub bytes: usize,
    /// Bytes of its material that had no room.
    pub cut_bytes: usize,
}

/// Builds the prompt.
pub fn build_prompt(input: &PromptInput<'_>) -> Prompt {
    let (sections, notes) = if input.role == Role::Reviewer { review_sections(input) } else { work_sections(input) };
    let (text, sizes) = join_rendered(&fit_sections(&sections, input.budget_bytes));
    let text = ClipOptions { limit: input.budget_bytes, head_eighths: 5, omitted_bytes: 0, hint: "" }.apply(&text).text;
    Prompt { text, sections: sizes, notes }
}

/// The sections of a session that works, plans or repairs, and the notes among them.
fn work_sections<'a>(input: &PromptInput<'a>) -> (Vec<PromptSection<'a>>, Vec<String>) {
    let (role, node, answer) = (fixed::role_section(input), fixed::node_section(input), fixed::answer_section(input));
    let room = remaining_room([&role, &node, &answer]);
    let checks = fixed::checks_section(input, LIST_LIMIT.min(room / 2));
    let left = room - checks.as_ref().map_or(0, |checks| checks.intro.len());
    let (notes, shown) = fixed::notes_section(input, LIST_LIMIT.min(left));
    let sections = [Some(role), Some(node), foreign::goal_section(input), checks, notes, foreign::history_section(input)].into_iter();
    let sections = sections.chain(foreign::failure_sections(input)).chain([foreign::progress_section(input), foreign::outline_section(input)]);
    let sections = sections.chain(foreign::memory_sections(input)).chain([Some(answer)]);
    (sections.flatten().collect(), shown)
}

/// The sections of a session that reviews.
fn review_sections<'a>(input: &PromptInput<'a>) -> (Vec<PromptSection<'a>>, Vec<String>) {
    let (role, node, answer) = (fixed::role_section(input), fixed::node_section(input), fixed::answer_section(input));
    let room = remaining_room([&role, &node, &answer]);
    let checks = fixed::checks_section(input, LIST_LIMIT.min(room / 2));
    let left = room - checks.as_ref().map_or(0, |checks| checks.intro.len());
    let criteria = fixed::criteria_section(input, LIST_LIMIT.min(left));
    let diff = foreign::diff_section(input);
    let sections = [Some(role), Some(node), foreign::goal_section(input), checks, criteria, Some(diff), Some(answer)];
    (sections.into_iter().flatten().collect(), Vec::new())
}

/// What the sections leave to the others that are never cut.
fn remaining_room(sections: [&PromptSection<'_>; 3]) -> usize {
    const JOINTS: usize = 16;
    UNCUT_LIMIT.saturating_sub(sections.iter().map(|section| section.intro.len()).sum::<usize>() + JOINTS)
}

/// The selected node and its ancestors, root first; the root alone where there is no such node.
fn lineage<'a>(input: &PromptInput<'a>) -> Vec<&'a Node> {
    let nodes = tree::index(input.tree);
    let selected = nodes.get(input.node).map_or(&input.tree.root, |placed| placed.node);
    let parent = |node: &&'a Node| nodes.get(node.id.as_str()).and_then(|placed| placed.parent);
    let mut lineage: Vec<&Node> = std::iter::successors(Some(selected), parent).collect();
    lineage.reverse();
    lineage
}

/// The selected node, or the root.
fn selected_node<'a>(input: &PromptInput<'a>) -> &'a Node {
    tree::find(input.tree, input.node).unwrap_or(&input.tree.root)
}

#[cfg(test)]
mod tests;
