//! The files under `.runner/context/` that a session may read: what the prompt may have had to shorten.

use super::section::PromptSection;
use super::{PromptInput, fixed, foreign};

/// The most bytes of each file.
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

/// Returns the text of the files for the session that [`super::build`] makes the prompt of.
pub fn context_files(input: &PromptInput<'_>) -> ContextFiles {
    let node = fixed::node_section(input);
    let [evidence, invalid_tree] = foreign::failure_sections(input);
    ContextFiles {
        goal: join_sections(&[Some(node), foreign::goal_section(input)], ""),
        history: join_sections(&[foreign::history_section(input)], "No session has worked on this node before.\n"),
        failure: join_sections(&[evidence, invalid_tree], "No attempt on this node has failed.\n"),
    }
}

/// The sections one after the other, the first ones whole where possible; `none` where there are none.
fn join_sections(sections: &[Option<PromptSection<'_>>], none: &str) -> String {
    let mut text = String::new();
    for section in sections.iter().flatten() {
        let joint = if text.is_empty() { "" } else { "\n" };
        text.push_str(joint);
        text.push_str(&section.render(FILE_LIMIT - text.len()).text);
    }
    if text.is_empty() { none.to_owned() } else { text }
}
