//! Every path under `.runner/`, and who may write it.
//!
//! Only names, relative to the root of the work tree: nothing here accesses the file system.

use crate::tree::ids::check_id;

/// Heading of `progress.md`.
pub const PROGRESS_HEADING: &str = "# Progress\n\n";
/// The folder that contains everything else.
pub const FOLDER: &str = ".runner";
/// The goal.
pub const GOAL: &str = ".runner/GOAL.md";
/// What git ignores under `.runner/`.
pub const GITIGNORE: &str = ".runner/.gitignore";
/// Makes git store and check out everything under `.runner/` byte for byte.
pub const GITATTRIBUTES: &str = ".runner/.gitattributes";
/// The folder of the committed state.
pub const STATE: &str = ".runner/state";
/// The task tree.
pub const TREE: &str = ".runner/state/tree.json";
/// The tree's schema, for readers.
pub const SCHEMA: &str = ".runner/state/schema.json";
/// The schema of an agent's answer, for readers.
pub const ANSWER_SCHEMA: &str = ".runner/state/agent_output.schema.json";
/// The configuration of the repository.
pub const CONFIG: &str = ".runner/state/config.toml";
/// Bookkeeping of the current run.
pub const RUN_STATE: &str = ".runner/state/run_state.json";
/// What is remembered about the last attempt at each open node.
pub const FEEDBACK: &str = ".runner/state/feedback.json";
/// Names of the tests that passed, and of those that passed before and no longer do.
pub const TESTS: &str = ".runner/state/tests.json";
/// One line per passed node.
pub const PROGRESS: &str = ".runner/state/progress.md";
/// A person's guidance for sessions.
pub const NOTES: &str = ".runner/state/notes.md";
/// What agents assumed.
pub const ASSUMPTIONS: &str = ".runner/state/assumptions.md";
/// What agents ask.
pub const QUESTIONS: &str = ".runner/state/questions.md";
/// What agents found important to remember.
pub const GUARDRAILS: &str = ".runner/state/guardrails.md";
/// What agents would do better.
pub const IMPROVEMENTS: &str = ".runner/state/improvements.md";
/// The files to which agents append.
pub const MEMORY: [&str; 4] = [ASSUMPTIONS, QUESTIONS, GUARDRAILS, IMPROVEMENTS];
/// Files for one session to read.
pub const CONTEXT: &str = ".runner/context";
/// The records of iterations.
pub const ITERATIONS: &str = ".runner/iterations";
/// Context and artifacts of nodes.
pub const NODES: &str = ".runner/nodes";
/// Overrides of prompt templates.
pub const PROMPTS: &str = ".runner/prompts";

/// Who may write a path under `.runner/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathOwnership {
    /// Agents may write it freely.
    Agent,
    /// Agents may append to it; the old bytes must remain its beginning.
    AppendOnly,
    /// Not part of the repository's content; rewritten by the runner.
    Ignored,
    /// Only the runner may write it.
    Runner,
}

/// Returns who may write a file, named relative to `.runner/` with `/` between names.
///
/// Everything not known to be an agent's is the runner's, including odd spellings of a path.
pub fn path_ownership(path_in_runner: &str) -> PathOwnership {
    let parts: Vec<_> = path_in_runner.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return PathOwnership::Runner;
    }
    match parts[..] {
        ["state", "tree.json"] => PathOwnership::Agent,
        ["state", "assumptions.md" | "questions.md" | "guardrails.md" | "improvements.md"] => PathOwnership::AppendOnly,
        ["context" | "iterations", _, ..] => PathOwnership::Ignored,
        ["nodes", id, "context.md"] | ["nodes", id, "artifacts", _, ..] if check_id(id).is_ok() => PathOwnership::Agent,
        _ => PathOwnership::Runner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_write_only_what_is_marked() {
        use PathOwnership::{Agent, AppendOnly, Ignored, Runner};
        let cases = [
            ("GOAL.md", Runner),
            (".gitignore", Runner),
            (".gitattributes", Runner),
            ("state/tree.json", Agent),
            ("state/schema.json", Runner),
            ("state/agent_output.schema.json", Runner),
            ("state/config.toml", Runner),
            ("state/run_state.json", Runner),
            ("state/feedback.json", Runner),
            ("state/tests.json", Runner),
            ("state/progress.md", Runner),
            ("state/notes.md", Runner),
            ("state/assumptions.md", AppendOnly),
            ("state/questions.md", AppendOnly),
            ("state/guardrails.md", AppendOnly),
            ("state/improvements.md", AppendOnly),
            ("state/new.md", Runner),
            ("state/tree.json/x", Runner),
            ("context/goal.md", Ignored),
            ("context", Runner),
            ("iterations/run-1/0001/prompt.md", Ignored),
            ("nodes/root.1/context.md", Agent),
            ("nodes/root.1/artifacts/a/b.png", Agent),
            ("nodes/root.1/artifacts", Runner),
            ("nodes/root.1/tools.json", Runner),
            ("nodes/root.1/other.md", Runner),
            ("nodes/.git/context.md", Runner),
            ("nodes/context.md", Runner),
            ("prompts/worker.md", Runner),
            ("State/tree.json", Runner),
            ("", Runner),
            ("nodes/a/artifacts/../tools.json", Runner),
            ("nodes//artifacts/x", Runner),
            ("context/", Runner),
            ("/state/tree.json", Runner),
        ];
        for (path, expected) in cases {
            assert_eq!(path_ownership(path), expected, "{path}");
        }
    }

    #[test]
    fn every_memory_file_is_append_only() {
        for path in MEMORY {
            assert_eq!(path_ownership(&path[".runner/".len()..]), PathOwnership::AppendOnly, "{path}");
        }
    }
}
