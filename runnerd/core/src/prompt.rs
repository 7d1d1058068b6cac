//! Builds the prompt of a session: sections in a fixed order, within a budget of bytes.
//!
//! A pure function of what is committed at From: the same input gives the same bytes on every machine, so that an audit
//! can rebuild the prompt. It mentions no path of this machine, no clock and no backend; a session finds the place for
//! its answer in the variable `$RUNNER_OUTPUT`. The text of the templates is in `templates/v1`.

mod context;
mod fixed_sections;
mod instructions;
mod overrides;
mod quoted_sections;
mod section;
pub(crate) mod template;

use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::tree::{Node, TaskTree};
use protocol::words::Role;
use runner_config::RolesMode;

use crate::committed_state::CommittedState;
use crate::files::layout;
use crate::files::notes;
pub use crate::files::notes::PersonNote;
pub use crate::prompt::template::{TemplateFault, check_override, templates_digest};
use crate::scope::Scope;
use crate::text::clip::ClipOptions;
use crate::tree;
use crate::verdict::SessionTask;
pub use context::{ContextFiles, context_files};
use instructions::instructions_section;
pub use instructions::{InstructionFile, MAX_INSTRUCTIONS_BYTES, read_instructions};
pub use overrides::{OVERRIDE_TEMPLATES, find_template_faults, find_unknown_templates};
pub(crate) use quoted_sections::describe_attempt;
use section::{PromptSection, fit_sections, join_rendered};

/// Number of the prompt format that [`build_prompt`] writes.
pub const PROMPT_FORMAT: u32 = 1;

/// Most bytes of everything that is never cut, together.
const UNCUT_LIMIT: usize = 28 * 1024;
/// Most bytes of the state of checks and files, and of the notes, each.
const LIST_LIMIT: usize = 4 * 1024;

/// Everything a prompt is built from; all of it comes from the commit From.
#[derive(Debug, Clone)]
pub struct PromptInput<'a> {
    /// The task tree.
    pub tree: &'a TaskTree,
    /// Id of the selected leaf.
    pub node: &'a str,
    /// Role of the session.
    pub role: Role,
    /// Whether the planner may make the node smaller instead of dividing it.
    pub narrowing: bool,
    /// Whether planners and workers are kept apart.
    pub mode_strict: bool,
    /// `GOAL.md` without its front matter.
    pub goal_body: &'a str,
    /// The repository's instructions.
    pub instructions: &'a [InstructionFile],
    /// What the run may change.
    pub scope: Scope,
    /// What the session takes from the person's set-up of the agent, as the configuration spells it.
    pub inherited: &'a [String],
    /// The run's bookkeeping.
    pub run_state: &'a RunState,
    /// What is remembered from earlier sessions.
    pub feedback: &'a Feedback,
    /// A person's notes that no session has answered yet, oldest first.
    pub notes: Vec<PersonNote>,
    /// What to say about the guard's definition, if anything.
    pub guard_notice: Option<&'a str>,
    /// The time of an iteration.
    pub budget_ms: u64,
    /// The names of tests.
    pub tests: &'a TestRecord,
    /// The guard's command.
    pub guard_command: &'a [String],
    /// The text of `progress.md`.
    pub progress: &'a str,
    /// The files that agents append to.
    pub memory: MemoryFiles<'a>,
    /// The text of `nodes/<id>/context.md`.
    pub node_context: Option<&'a str>,
    /// The text of `.runner/prompts/<role>.md`, if there is one.
    pub own_template: Option<&'a str>,
    /// The material under review; `None` except for a reviewer.
    pub review: Option<ReviewMaterial<'a>>,
    /// Most bytes of the prompt; 32 KiB or more always has room for what is never cut.
    pub budget_bytes: usize,
}

impl<'a> PromptInput<'a> {
    /// Returns what a session on `task` is told of the committed state; the guard's definition, the node's context, the
    /// repository's instructions and the material under review are the caller's.
    pub fn new(state: &'a CommittedState, task: &'a SessionTask) -> Self {
        let own = OVERRIDE_TEMPLATES.into_iter().find(|(role, _)| *role == task.role);
        Self {
            tree: &state.tree,
            node: &task.node,
            role: task.role,
            narrowing: task.narrowing,
            mode_strict: state.policy.roles == RolesMode::Strict,
            goal_body: state.goal.body(),
            instructions: &[],
            scope: Scope::new(&state.config),
            inherited: state.config.executor.for_role(task.role).inherit.items(),
            run_state: &state.run_state,
            feedback: &state.feedback,
            notes: notes::unused_notes(state.text(layout::NOTES), &state.run_state.notes_used),
            guard_notice: None,
            budget_ms: state.policy.budget_ms,
            tests: &state.tests,
            guard_command: &state.config.guard.command,
            progress: state.text(layout::PROGRESS),
            memory: MemoryFiles {
                guardrails: state.text(layout::GUARDRAILS),
                assumptions: state.text(layout::ASSUMPTIONS),
                questions: state.text(layout::QUESTIONS),
            },
            node_context: None,
            own_template: own.and_then(|(_, path)| state.existing_text(path)),
            review: None,
            budget_bytes: usize::try_from(state.config.prompt.budget_bytes).unwrap_or(usize::MAX),
        }
    }
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

/// What a reviewer examines.
#[derive(Debug, Clone, Copy)]
pub struct ReviewMaterial<'a> {
    /// The commit at which the session under review began, in hexadecimal.
    pub from: &'a str,
    /// The configured criteria; may be empty.
    pub criteria: &'a str,
    /// The changes since then, without `.runner/`.
    pub diff: &'a str,
}

/// A prompt and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text for the agent's stdin.
    pub text: String,
    /// Its sections in order.
    pub sections: Vec<SectionSize>,
    /// Ids of the notes in it; they count as used once the session has answered.
    pub notes: Vec<String>,
}

/// The size of one section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionSize {
    /// Name of the section.
    pub name: &'static str,
    /// Bytes it takes up in the prompt.
    pub bytes: usize,
    /// Bytes of its material that did not fit.
    pub cut_bytes: usize,
}

/// Builds the prompt of a session.
pub fn build_prompt(input: &PromptInput<'_>) -> Prompt {
    let (sections, notes) = if input.role == Role::Reviewer { review_sections(input) } else { work_sections(input) };
    let (text, sizes) = join_rendered(&fit_sections(&sections, input.budget_bytes));
    let text = ClipOptions { limit: input.budget_bytes, head_eighths: 5, omitted_bytes: 0, hint: "" }.apply(&text).text;
    Prompt { text, sections: sizes, notes }
}

/// The sections for a session that works, plans or repairs, and the notes among them.
///
/// The sections that change least come first, so that two prompts of a run share the longest possible beginning:
/// the role comes before the memory, to which nearly every session adds, and the built-in ones name no task.
fn work_sections<'a>(input: &PromptInput<'a>) -> (Vec<PromptSection<'a>>, Vec<String>) {
    let rules = fixed_sections::rules_section(input);
    let answer = fixed_sections::answer_section(input);
    let role = fixed_sections::role_section(input);
    let node = fixed_sections::node_section(input);
    let scope = fixed_sections::scope_section(input);
    let inherited = fixed_sections::inherited_section(input);
    let fixed = [&rules, &answer, &role, &node].into_iter().chain(&scope).chain(&inherited);
    let (checks, room) = checks_section(input, fixed);
    let (notes, shown) = fixed_sections::notes_section(input, LIST_LIMIT.min(room));
    let [guardrails, assumptions, questions] = quoted_sections::memory_sections(input);
    let sections = [
        Some(rules),
        Some(answer),
        quoted_sections::goal_section(input),
        instructions_section(input.instructions),
        Some(role),
        inherited,
        guardrails,
        assumptions,
        questions,
        quoted_sections::progress_section(input),
        scope,
        Some(node),
        checks,
        notes,
        quoted_sections::context_section(input),
        quoted_sections::outline_section(input),
        quoted_sections::history_section(input),
    ];
    let failures = quoted_sections::failure_sections(input);
    (sections.into_iter().flatten().chain(failures).collect(), shown)
}

/// The sections for a session that reviews.
fn review_sections<'a>(input: &PromptInput<'a>) -> (Vec<PromptSection<'a>>, Vec<String>) {
    let role = fixed_sections::role_section(input);
    let answer = fixed_sections::answer_section(input);
    let node = fixed_sections::node_section(input);
    let (checks, room) = checks_section(input, [&role, &answer, &node]);
    let criteria = fixed_sections::criteria_section(input, LIST_LIMIT.min(room));
    let diff = quoted_sections::diff_section(input);
    let goal = quoted_sections::goal_section(input);
    let instructions = instructions_section(input.instructions);
    let sections = [Some(role), Some(answer), goal, instructions, Some(node), checks, criteria, Some(diff)];
    (sections.into_iter().flatten().collect(), Vec::new())
}

/// The state of checks and files, and the room that it and these sections leave for the others that are never cut.
fn checks_section<'s, 'a: 's>(
    input: &PromptInput<'_>,
    sections: impl IntoIterator<Item = &'s PromptSection<'a>>,
) -> (Option<PromptSection<'static>>, usize) {
    const JOINTS: usize = 16;
    let room =
        UNCUT_LIMIT.saturating_sub(sections.into_iter().map(|section| section.intro.len()).sum::<usize>() + JOINTS);
    let checks = fixed_sections::checks_section(input, LIST_LIMIT.min(room / 2));
    let left = room - checks.as_ref().map_or(0, |checks| checks.intro.len());
    (checks, left)
}

/// The selected node and its ancestors, root first; only the root if there is no such node.
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
