//! Brief: writes the folder that a session reads and its prompt, both from From alone; a reviewer's prompt also from
//! the changes under review.

use protocol::words::Role;
use runner_core::guard::definition::session_notice;
use runner_core::prompt::{self, InstructionFile, Prompt, PromptInput, ReviewMaterial, read_instructions};
use runner_core::verdict::SessionTask;
use runner_git::{EntryKind, GitError, Id, Repository};

use crate::repo::durable::{self, FileAccess};
use crate::repo::layout::Layout;
use crate::worker::cleanup;
use crate::worker::context::{EffectError, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::git_dir;
use crate::worker::load::CommittedState;
use crate::worker::record;

/// Size limit in bytes of the diff from which a reviewer's prompt takes what fits.
pub const MAX_REVIEWED_BYTES: usize = 1024 * 1024;

/// Clears and writes the folder, and begins the record; only the record if a person's decision takes the place of a
/// session.
pub(crate) fn write_brief(
    context: &RunContext,
    loaded: &CommittedState,
    task: &SessionTask,
) -> Result<(), EffectError> {
    // An attempt that left no commit had the same number.
    context.remove_iteration_notes(task.iter)?;
    if task.decision.is_some() {
        git_dir::save_snapshot(context, loaded.commit, task.iter)?;
        return record::begin_record(context, task, loaded.canonical_tree(), None);
    }
    let repository = context.repository()?;
    let sources = BriefSources::read_sources(&repository, loaded, task)?;
    let input = sources.prompt_input(loaded, task);
    let prompt = prompt::build_prompt(&input);
    let files = prompt::context_files(&input);
    let folder = context.layout.context();
    cleanup::remove_path(&folder)?;
    durable::create_dir_below_unsynced(context.layout.root(), Layout::CONTEXT, FileAccess::Repository)?;
    for (name, text) in [
        ("goal.md", &files.goal),
        ("history.md", &files.history),
        ("failure.md", &files.failure),
        ("prompt.md", &prompt.text),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, &*context.secrets.redact(text)).map_err(EffectError::io_error("writing", &path))?;
    }
    record::begin_record(context, task, loaded.canonical_tree(), Some(&prompt.text))
}

/// Returns the prompt of a task; a pure function of From.
pub(crate) fn build_prompt(
    context: &RunContext,
    loaded: &CommittedState,
    task: &SessionTask,
) -> Result<Prompt, EffectError> {
    let sources = BriefSources::read_sources(&context.repository()?, loaded, task)?;
    Ok(prompt::build_prompt(&sources.prompt_input(loaded, task)))
}

/// Returns the prompt of a review: a function of From and of the difference between its files and `snapshot`.
pub(crate) fn build_review_prompt(
    repository: &Repository,
    loaded: &CommittedState,
    task: &SessionTask,
    snapshot: &Id,
) -> Result<String, EffectError> {
    let is_code = |path: &[u8]| !path.starts_with(b".runner/");
    let diff = repository.diff_paths(&loaded.commit, snapshot, is_code, MAX_REVIEWED_BYTES)?;
    let diff = String::from_utf8_lossy(&diff);
    let task = SessionTask { role: Role::Reviewer, ..task.clone() };
    let sources = BriefSources::read_sources(repository, loaded, &task)?;
    let from = loaded.commit.to_string();
    let review = ReviewMaterial { from: &from, criteria: &loaded.config.review.criteria, diff: &diff };
    let input = PromptInput { review: Some(review), ..sources.prompt_input(loaded, &task) };
    Ok(prompt::build_prompt(&input).text)
}

/// What the prompt takes from From in addition to the loaded state.
struct BriefSources {
    node_context: Option<String>,
    guard_notice: Option<String>,
    instructions: Vec<InstructionFile>,
}

impl BriefSources {
    fn read_sources(repository: &Repository, loaded: &CommittedState, task: &SessionTask) -> Result<Self, EffectError> {
        let path = format!("{}/{}/context.md", Layout::NODES, task.node);
        let node_context = repository.read_file(&loaded.commit, &path)?;
        let read = |name: &str| read_regular_file(repository, &loaded.commit, name);
        Ok(Self {
            instructions: read_instructions(&loaded.config.prompt.instructions, read)?,
            node_context: node_context.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            guard_notice: session_notice(loaded.policy.on_change, &definition::definition_at(repository, loaded)?),
        })
    }

    fn prompt_input<'a>(&'a self, loaded: &'a CommittedState, task: &'a SessionTask) -> PromptInput<'a> {
        let guard_notice = self.guard_notice.as_deref();
        let node_context = self.node_context.as_deref();
        let instructions = &self.instructions[..];
        PromptInput { instructions, guard_notice, node_context, ..PromptInput::new(loaded, task) }
    }
}

/// Returns the content of a path that is a regular file: neither a link nor a submodule.
fn read_regular_file(repository: &Repository, commit: &Id, path: &str) -> Result<Option<Vec<u8>>, GitError> {
    let entry = repository.find_entry(commit, path)?;
    let is_regular = entry.is_some_and(|entry| matches!(entry.kind, EntryKind::File | EntryKind::Executable));
    if is_regular { repository.read_file(commit, path) } else { Ok(None) }
}
