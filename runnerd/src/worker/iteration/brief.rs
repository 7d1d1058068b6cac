//! Brief: the folder that a session reads and the prompt it gets, both made from From alone; a reviewer's also
//! from what it is to review.

use std::collections::BTreeMap;

use protocol::words::Role;
use runner_core::definition::notice;
use runner_core::notes;
use runner_core::policy::RolesMode;
use runner_core::prompt::{self, Memory, Note, Prompt, PromptInput, Review};
use runner_core::verdict::Task;

use crate::git::{Id, Repository};
use crate::repo::durable::{self, Access};
use crate::repo::layout::Layout;
use crate::repo::prompts::OVERRIDES;
use crate::worker::clear;
use crate::worker::context::{Obstacle, RunContext};
use crate::worker::integrity::definition;
use crate::worker::integrity::tampering;
use crate::worker::load::Loaded;
use crate::worker::record;

/// Most bytes of a diff of which a reviewer's prompt takes what has room.
pub const MAX_REVIEWED_BYTES: usize = 1024 * 1024;

/// Clears and writes the folder, and begins the record; where a person's word stands for a session, the record alone.
pub(crate) fn brief(context: &RunContext, loaded: &Loaded, task: &Task) -> Result<(), Obstacle> {
    // A try that left no commit had the same number.
    context.forget_kept(task.iter)?;
    if task.decision.is_some() {
        tampering::look_before(context, (loaded.commit, task.iter))?;
        return record::begin(context, task, loaded.canonical_tree(), None);
    }
    let repository = context.repository()?;
    let sources = Sources::read(&repository, loaded, task)?;
    let input = sources.input(loaded, task);
    let prompt = prompt::build(&input);
    let files = prompt::context_files(&input);
    let folder = context.layout.context();
    clear::remove(&folder)?;
    durable::put_dir_below(context.layout.root(), Layout::CONTEXT, Access::Repository)?;
    for (name, text) in [
        ("goal.md", &files.goal),
        ("history.md", &files.history),
        ("failure.md", &files.failure),
        ("prompt.md", &prompt.text),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, &*context.secrets.redact(text)).map_err(Obstacle::system("writing", &path))?;
    }
    record::begin(context, task, loaded.canonical_tree(), Some(&prompt.text))
}

/// Returns the prompt of a task; the same for the same From.
pub(crate) fn prompt(context: &RunContext, loaded: &Loaded, task: &Task) -> Result<Prompt, Obstacle> {
    let sources = Sources::read(&context.repository()?, loaded, task)?;
    Ok(prompt::build(&sources.input(loaded, task)))
}

/// Returns the prompt of a review: a function of From, and of how the files of `snapshot` differ from it.
pub(crate) fn review_prompt(
    repository: &Repository,
    loaded: &Loaded,
    task: &Task,
    snapshot: &Id,
) -> Result<String, Obstacle> {
    let is_code = |path: &[u8]| !path.starts_with(b".runner/");
    let diff = repository.diff_of((&loaded.commit, snapshot), is_code, MAX_REVIEWED_BYTES)?;
    let diff = String::from_utf8_lossy(&diff);
    let task = Task { role: Role::Reviewer, ..task.clone() };
    let sources = Sources::read(repository, loaded, &task)?;
    let from = loaded.commit.to_string();
    let review = Review { from: &from, criteria: &loaded.config.review.criteria, diff: &diff };
    let input = PromptInput { review: Some(review), ..sources.input(loaded, &task) };
    Ok(prompt::build(&input).text)
}

/// What the prompt takes from From besides the loaded state.
struct Sources {
    overrides: BTreeMap<Role, String>,
    node_context: Option<String>,
    notes: Vec<Note>,
    guard_notice: Option<String>,
}

impl Sources {
    fn read(repository: &Repository, loaded: &Loaded, task: &Task) -> Result<Self, Obstacle> {
        let path = format!("{}/{}/context.md", Layout::NODES, task.node);
        let node_context = repository.read(&loaded.commit, &path)?;
        let texts = OVERRIDES.into_iter().filter_map(|(role, path)| Some((role, loaded.texts.get(path)?.clone())));
        Ok(Self {
            overrides: texts.collect(),
            node_context: node_context.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            guard_notice: notice(loaded.policy.on_change, &definition::at(repository, loaded)?),
            notes: notes::unused(loaded.text(Layout::NOTES), &loaded.run_state.notes_used),
        })
    }

    fn input<'a>(&'a self, loaded: &'a Loaded, task: &'a Task) -> PromptInput<'a> {
        PromptInput {
            tree: &loaded.tree,
            node: &task.node,
            role: task.role,
            narrowing: task.narrowing,
            mode_strict: loaded.policy.roles == RolesMode::Strict,
            goal_body: loaded.goal.body(),
            run_state: &loaded.run_state,
            feedback: &loaded.feedback,
            notes: &self.notes,
            guard_notice: self.guard_notice.as_deref(),
            guard_command: &loaded.config.guard.command,
            progress: loaded.text(Layout::PROGRESS),
            memory: Memory {
                guardrails: loaded.text(Layout::GUARDRAILS),
                assumptions: loaded.text(Layout::ASSUMPTIONS),
                questions: loaded.text(Layout::QUESTIONS),
            },
            node_context: self.node_context.as_deref(),
            overrides: &self.overrides,
            review: None,
            budget_bytes: usize::try_from(loaded.config.prompt.budget_bytes).unwrap_or(usize::MAX),
        }
    }
}
