//! The files under `.runner/context/` that a session may read: full versions of what the prompt may have shortened.

use super::section::PromptSection;
use super::{PromptInput, fixed_sections, quoted_sections};

/// Most bytes of each file.
const FILE_LIMIT: usize = 64 * 1024;

/// The text of the files, each at most 64 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFiles {
    /// `goal.md`: the node and the goal of the project.
    pub goal: String,
    /// `history.md`: earlier sessions on the node.
    pub history: String,
    /// `failure.md`: why the last attempt did not pass.
    pub failure: String,
}

/// Returns the files for the session whose prompt [`super::build_prompt`] builds.
pub fn context_files(input: &PromptInput<'_>) -> ContextFiles {
    let node = fixed_sections::node_section(input);
    let failures: Vec<_> = quoted_sections::failure_sections(input).into_iter().map(Some).collect();
    ContextFiles {
        goal: join_sections(&[Some(node), quoted_sections::goal_section(input)], ""),
        history: join_sections(
            &[quoted_sections::history_section(input)],
            "No session has worked on this task before.\n",
        ),
        failure: join_sections(&failures, "No attempt at this task has failed.\n"),
    }
}

/// The sections in order, the first ones whole if possible; `none` if there are no sections.
fn join_sections(sections: &[Option<PromptSection<'_>>], none: &str) -> String {
    let mut text = String::new();
    for section in sections.iter().flatten() {
        let joint = if text.is_empty() { "" } else { "\n" };
        text.push_str(joint);
        text.push_str(&section.render(FILE_LIMIT - text.len()).text);
    }
    if text.is_empty() { none.to_owned() } else { text }
}
