//! The requests that a person may make about a run's files, and their effects: note, answer, retry, add, edit, guard
//! accept, and a key of the configuration.
//!
//! A pure function of the documents at a commit, so that a request can be tried before it is queued, and repeated after
//! a crash with the same result.

use std::collections::BTreeMap;

use protocol::state::RunState;
use protocol::tree::{Node, TaskTree};
use serde::{Deserialize, Serialize};

use crate::files::notes;
use crate::files::notes::PersonNote;
use crate::files::person_edit;
use crate::files::person_edit::ForbiddenChange;
use crate::files::questions;
use crate::guard::definition::DefinitionState;
use crate::text::fence::one_line;
use crate::tree;
use crate::tree::merge;
use crate::tree::merge::MergeConflict;
use crate::tree::validate;

/// Most bytes of a text in a commit's summary line.
const MAX_SHOWN: usize = 200;

/// The part of a run that a request concerns; the run's state decides whether that part may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeSubject {
    /// The next session's prompt.
    Note,
    /// The task tree.
    Tree,
    /// Other files.
    Files,
}

/// One request from a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangeRequest {
    /// Tell the next session something.
    Note {
        /// Id that was acknowledged to the person.
        id: String,
        /// Text for the next session.
        text: String,
    },
    /// Answer a question.
    Answer {
        /// Id of the question.
        question: String,
        /// Text of the answer.
        text: String,
    },
    /// Give an exhausted node more attempts.
    Retry {
        /// Id of the node, or a unique prefix of it.
        node: String,
    },
    /// Add a node.
    Add(NodeAddition),
    /// Accept the guard's definition as it is committed for the future.
    Accept {
        /// The files, each with its form at the time of the request; `None` if the file was gone.
        files: BTreeMap<String, Option<String>>,
    },
    /// Replace the tree that was opened with another one.
    Edit {
        /// The tree that was opened, in canonical form.
        base: String,
        /// The text that the person saved.
        edited: String,
    },
    /// Set a key of the configuration. The caller has already checked what the new text means.
    Config {
        /// The dotted key.
        key: String,
        /// The value as TOML; `None` restores the default.
        value: Option<String>,
        /// Text of the file at the time of the request.
        base: String,
        /// Text of the file with the key set.
        text: String,
    },
    /// Replace the configuration that was opened with another text. The caller has already checked what it means.
    Settings {
        /// The dotted keys that it changes.
        keys: Vec<String>,
        /// Text of the file that was opened.
        base: String,
        /// The text that the person saved.
        text: String,
    },
}

/// A node to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddition {
    /// Id of its parent, or a unique prefix of it.
    pub parent: String,
    /// Title of the node.
    pub title: String,
    /// What is true once the node is done.
    pub goal: String,
    /// Testable statements.
    pub acceptance: Vec<String>,
    /// The sibling after which the node is placed.
    pub after: Option<String>,
    /// Its explicit order among the siblings.
    pub order: Option<i64>,
}

/// The documents that requests change, as of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDocuments {
    /// The task tree.
    pub tree: TaskTree,
    /// The text of `notes.md`.
    pub notes: String,
    /// The text of `questions.md`.
    pub questions: String,
    /// The text of `config.toml`.
    pub config: String,
    /// The run's bookkeeping.
    pub run_state: RunState,
    /// The guard's definition.
    pub definition_state: DefinitionState,
    /// Attempts that a new node gets and that a retry adds.
    pub max_attempts: u32,
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeResult {
    /// The documents after the request.
    pub documents: RunDocuments,
    /// What was done, in one line.
    pub summary: String,
    /// Id of the note, question or node concerned, or the key; `None` for an edit.
    pub id: Option<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// The request names something that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The request contradicts itself or a limit.
    #[error("{0}")]
    Invalid(String),
    /// The request breaks a rule in the current state.
    #[error("{0}")]
    Rule(String),
    /// The documents have moved on, and what the request would change was changed differently.
    #[error("{0}")]
    Conflict(String),
}

impl From<ForbiddenChange> for ChangeRefusal {
    fn from(forbidden: ForbiddenChange) -> Self {
        Self::Rule(forbidden.to_string())
    }
}

impl From<MergeConflict> for ChangeRefusal {
    fn from(conflict: MergeConflict) -> Self {
        Self::Conflict(conflict.to_string())
    }
}

impl ChangeRequest {
    /// Returns the `runnerctl` command that makes this request.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Note { .. } => "note",
            Self::Answer { .. } => "answer",
            Self::Retry { .. } => "retry",
            Self::Add(_) => "add",
            Self::Accept { .. } => "guard accept",
            Self::Edit { .. } => "edit",
            Self::Config { .. } => "config set",
            Self::Settings { .. } => "config edit",
        }
    }

    /// Returns the id of its subject, if that is known in advance, and its text in one line.
    pub fn describe(&self) -> (Option<&str>, String) {
        let (id, text) = match self {
            Self::Note { id, text } => (Some(id.as_str()), text.clone()),
            Self::Answer { question, text } => (Some(question.as_str()), text.clone()),
            Self::Retry { node } => (Some(node.as_str()), "more attempts".to_owned()),
            Self::Add(addition) => (None, format!("under {}: {}", addition.parent, addition.title)),
            Self::Edit { .. } => (None, "the task tree".to_owned()),
            Self::Config { key, value, .. } => (Some(key.as_str()), describe_value(value.as_deref())),
            Self::Settings { keys, .. } => (None, describe_keys(keys)),
            Self::Accept { files } => (None, files.keys().map(String::as_str).collect::<Vec<_>>().join(", ")),
        };
        (id, one_line(&text, MAX_SHOWN))
    }

    /// Returns whether it can be queued for a run that has not begun, because it needs nothing from the run's tree.
    pub fn may_precede_run(&self) -> bool {
        matches!(self, Self::Note { .. })
    }

    /// Returns the part of the run that it concerns.
    pub fn subject(&self) -> ChangeSubject {
        match self {
            Self::Note { .. } => ChangeSubject::Note,
            Self::Retry { .. } | Self::Add(_) | Self::Edit { .. } => ChangeSubject::Tree,
            Self::Answer { .. } | Self::Accept { .. } | Self::Config { .. } | Self::Settings { .. } => {
                ChangeSubject::Files
            }
        }
    }

    /// Applies the request to the documents.
    pub fn apply(&self, before: &RunDocuments) -> Result<ChangeResult, ChangeRefusal> {
        match self {
            Self::Note { id, text } => apply_note(before, id, text),
            Self::Answer { question, text } => apply_answer(before, question, text),
            Self::Retry { node } => apply_retry(before, node),
            Self::Add(addition) => apply_addition(before, addition),
            Self::Accept { files } => apply_acceptance(before, files),
            Self::Edit { base, edited } => apply_edit(before, base, edited),
            Self::Config { key, value, base, text } => {
                apply_setting(before, ConfigSetting { key, value: value.as_deref(), base, text })
            }
            Self::Settings { keys, base, text } => apply_settings(before, keys, base, text),
        }
    }
}

fn apply_note(before: &RunDocuments, id: &str, text: &str) -> Result<ChangeResult, ChangeRefusal> {
    check_length("a note", text, notes::MAX_NOTE_BYTES)?;
    let is_taken = notes::parse_notes(&before.notes).iter().any(|note| note.id == id);
    let id = if is_taken { notes::next_id(&before.notes) } else { id.to_owned() };
    let note = PersonNote { id: id.clone(), text: text.to_owned() };
    let documents = RunDocuments { notes: notes::append_note(&before.notes, &note), ..before.clone() };
    Ok(ChangeResult { documents, summary: format!("{id}: {}", one_line(text, MAX_SHOWN)), id: Some(id) })
}

fn apply_answer(before: &RunDocuments, question: &str, text: &str) -> Result<ChangeResult, ChangeRefusal> {
    check_length("an answer", text, questions::MAX_ANSWER_BYTES)?;
    let found = questions::parse_questions(&before.questions).into_iter().rev().find(|found| found.id == question);
    let found = found.ok_or_else(|| ChangeRefusal::NotFound(format!("there is no question {question}")))?;
    let questions = questions::add_answer(&before.questions, question, text).ok_or_else(|| {
        ChangeRefusal::Rule(format!("question {question} is already answered; to add something: runnerctl note TEXT"))
    })?;
    let summary = format!("{question}: {}\n{}", one_line(&found.text, MAX_SHOWN), one_line(text, MAX_SHOWN));
    Ok(ChangeResult { documents: RunDocuments { questions, ..before.clone() }, summary, id: Some(found.id) })
}

fn check_length(what: &str, text: &str, limit: usize) -> Result<(), ChangeRefusal> {
    if text.trim().is_empty() {
        return Err(ChangeRefusal::Invalid(format!("{what} needs a text")));
    }
    if text.len() > limit {
        return Err(ChangeRefusal::Invalid(format!("{what} may have {limit} bytes, and this one has {}", text.len())));
    }
    Ok(())
}

fn apply_retry(before: &RunDocuments, node_prefix: &str) -> Result<ChangeResult, ChangeRefusal> {
    let id = resolve_node_id(&before.tree, node_prefix)?;
    let mut tree = before.tree.clone();
    let Some(node) = tree::find_mut(&mut tree, &id) else { return Err(unknown_node(node_prefix)) };
    if !node.is_leaf() {
        return Err(ChangeRefusal::Rule(format!("task {id} has subtasks, and sessions work on those")));
    }
    check_open(node)?;
    if node.attempts < node.max_attempts {
        let remaining = node.max_attempts - node.attempts;
        return Err(ChangeRefusal::Rule(format!(
            "task {id} has {remaining} of its {} attempts left",
            node.max_attempts
        )));
    }
    node.max_attempts = node.max_attempts.saturating_add(before.max_attempts);
    let summary =
        format!("node {id} may now be tried {} times, {} more than before", node.max_attempts, before.max_attempts);
    Ok(ChangeResult { documents: RunDocuments { tree, ..before.clone() }, summary, id: Some(id) })
}

fn apply_addition(before: &RunDocuments, addition: &NodeAddition) -> Result<ChangeResult, ChangeRefusal> {
    for (what, text) in [("title", &addition.title), ("goal", &addition.goal)] {
        check_length(&format!("the {what} of a task"), text, validate::MAX_GOAL_BYTES)?;
    }
    let parent_id = resolve_node_id(&before.tree, &addition.parent)?;
    let mut tree = before.tree.clone();
    let id = tree::next_child_id(&tree, &parent_id);
    let Some(parent) = tree::find_mut(&mut tree, &parent_id) else { return Err(unknown_node(&addition.parent)) };
    check_open(parent)?;
    let order = make_room(parent, addition)?;
    parent.children.push(Node {
        id: id.clone(),
        order,
        title: addition.title.clone(),
        goal: addition.goal.clone(),
        acceptance: addition.acceptance.clone(),
        passes: false,
        attempts: 0,
        max_attempts: before.max_attempts,
        children: Vec::new(),
    });
    let tree = finish_tree(&before.tree, tree)?;
    let summary = format!("node {id} under {parent_id}: {}", one_line(&addition.title, MAX_SHOWN));
    Ok(ChangeResult { documents: RunDocuments { tree, ..before.clone() }, summary, id: Some(id) })
}

/// Returns the order of a new child, and makes room for it after the sibling that was named.
fn make_room(parent: &mut Node, addition: &NodeAddition) -> Result<i64, ChangeRefusal> {
    let Some(after) = &addition.after else {
        let last = parent.children.iter().map(|child| child.order).max();
        return Ok(addition.order.unwrap_or(last.map_or(1, |last| last.saturating_add(1))));
    };
    parent.children.sort_by(|a, b| (a.order, &a.id).cmp(&(b.order, &b.id)));
    let at = parent.children.iter().position(|child| child.id == *after);
    let at = at.ok_or_else(|| ChangeRefusal::NotFound(format!("task {} has no subtask {after}", parent.id)))?;
    let order = parent.children[at].order.saturating_add(1);
    let later = &mut parent.children[at + 1..];
    let shift = later.first().map_or(0, |next| order.saturating_add(1).saturating_sub(next.order).max(0));
    if let Some(passed) = later.iter().find(|child| shift > 0 && child.passes) {
        let why = format!("behind {after} comes {}, which has passed and stays where it is", passed.id);
        return Err(ChangeRefusal::Rule(format!("{why}; choose the place with --order")));
    }
    for child in later.iter_mut() {
        child.order = child.order.saturating_add(shift);
    }
    Ok(order)
}

/// Lists what is accepted for the requested files, as committed; without a request, every file that has changed.
pub fn select_files_to_accept<'a>(
    guarded: &DefinitionState,
    requested: impl ExactSizeIterator<Item = &'a String>,
) -> Result<BTreeMap<String, Option<String>>, ChangeRefusal> {
    let changed = guarded.changed_paths();
    let paths = if requested.len() == 0 { changed.clone() } else { requested.cloned().collect() };
    let is_part = |path: &String| guarded.accepted.contains_key(path) || guarded.committed.contains_key(path);
    let take = |path: String| match (changed.contains(&path), is_part(&path)) {
        (true, _) => Ok((path.clone(), guarded.committed.get(&path).cloned())),
        (false, true) => Err(ChangeRefusal::Rule(format!("{path} is as it was accepted"))),
        (false, false) => {
            Err(ChangeRefusal::NotFound(format!("{path} is no committed file of the guard's definition")))
        }
    };
    paths.into_iter().map(take).collect()
}

fn apply_acceptance(
    before: &RunDocuments,
    files: &BTreeMap<String, Option<String>>,
) -> Result<ChangeResult, ChangeRefusal> {
    let mut accepted = before.definition_state.accepted.clone();
    for (path, form) in files {
        match form {
            Some(form) => accepted.insert(path.clone(), form.clone()),
            None => accepted.remove(path),
        };
    }
    if accepted == before.definition_state.accepted {
        return Err(ChangeRefusal::Rule("the guard's definition is as it was accepted".to_owned()));
    }
    let paths: Vec<&str> = files.keys().map(String::as_str).collect();
    let summary = one_line(&paths.join(", "), MAX_SHOWN);
    let run_state = RunState { guard_definition: accepted.clone(), ..before.run_state.clone() };
    let guarded = DefinitionState { accepted, ..before.definition_state.clone() };
    Ok(ChangeResult {
        documents: RunDocuments { run_state, definition_state: guarded, ..before.clone() },
        summary,
        id: None,
    })
}

fn apply_edit(before: &RunDocuments, base: &str, edited: &str) -> Result<ChangeResult, ChangeRefusal> {
    let read = |text: &str| validate::load_person_tree(text.as_bytes()).map_err(|faults| invalid_tree(&faults));
    let base = read(base)?;
    let edited = read(edited)?;
    // Check permission against the opened tree first: a conflict would hide that the edit is not allowed at all.
    person_edit::check_edit(&base, &edited)?;
    let merged = merge::merge(&base, &edited, &before.tree)?;
    let tree = finish_tree(&before.tree, merged)?;
    if tree::canonical(&tree) == tree::canonical(&before.tree) {
        return Err(ChangeRefusal::Invalid("nothing was changed".to_owned()));
    }
    let summary = person_edit::summarize_edit(&before.tree, &tree);
    Ok(ChangeResult { documents: RunDocuments { tree, ..before.clone() }, summary, id: None })
}

/// One configuration key to set.
#[derive(Debug, Clone, Copy)]
struct ConfigSetting<'a> {
    key: &'a str,
    value: Option<&'a str>,
    /// Text of the file when the key was read.
    base: &'a str,
    /// Text of the file with the key set.
    text: &'a str,
}

fn apply_setting(before: &RunDocuments, setting: ConfigSetting<'_>) -> Result<ChangeResult, ChangeRefusal> {
    let ConfigSetting { key, value, base, text } = setting;
    if before.config != base {
        return Err(ChangeRefusal::Conflict(format!("the configuration has changed since you asked to set {key}")));
    }
    if text == base {
        return Err(ChangeRefusal::Rule(match value {
            Some(value) => format!("{key} is already {value}"),
            None => format!("{key} already has its default"),
        }));
    }
    let summary = one_line(&format!("{key} is {}", describe_value(value)), MAX_SHOWN);
    let documents = RunDocuments { config: text.to_owned(), ..before.clone() };
    Ok(ChangeResult { documents, summary, id: Some(key.to_owned()) })
}

fn apply_settings(
    before: &RunDocuments,
    keys: &[String],
    base: &str,
    text: &str,
) -> Result<ChangeResult, ChangeRefusal> {
    if before.config != base {
        return Err(ChangeRefusal::Conflict("the configuration has changed since it was opened".to_owned()));
    }
    if text == base {
        return Err(ChangeRefusal::Rule("nothing was changed".to_owned()));
    }
    let summary = one_line(&describe_keys(keys), MAX_SHOWN);
    Ok(ChangeResult { documents: RunDocuments { config: text.to_owned(), ..before.clone() }, summary, id: None })
}

fn describe_keys(keys: &[String]) -> String {
    if keys.is_empty() { "comments".to_owned() } else { keys.join(", ") }
}

fn describe_value(value: Option<&str>) -> String {
    value.map_or_else(|| "reset to default".to_owned(), str::to_owned)
}

/// Derives and checks what every tree must satisfy, and what a person's must.
fn finish_tree(before: &TaskTree, mut tree: TaskTree) -> Result<TaskTree, ChangeRefusal> {
    tree::derive_passes(&mut tree);
    tree::sort(&mut tree);
    validate::check_tree(&tree).map_err(|faults| invalid_tree(&faults))?;
    person_edit::check_edit(before, &tree)?;
    Ok(tree)
}

fn invalid_tree(faults: &[validate::TreeFault]) -> ChangeRefusal {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    ChangeRefusal::Invalid(faults.join("\n"))
}

fn check_open(node: &Node) -> Result<(), ChangeRefusal> {
    let refusal = || ChangeRefusal::Rule(format!("task {} has passed, and passed tasks stay as they are", node.id));
    if node.passes { Err(refusal()) } else { Ok(()) }
}

/// Expands a unique prefix of a node's id.
fn resolve_node_id(tree: &TaskTree, prefix: &str) -> Result<String, ChangeRefusal> {
    let ids: Vec<&str> = tree::walk(tree).into_iter().map(|placed| placed.node.id.as_str()).collect();
    if ids.contains(&prefix) {
        return Ok(prefix.to_owned());
    }
    let fitting: Vec<&str> = ids.into_iter().filter(|id| id.starts_with(prefix)).collect();
    match fitting[..] {
        [one] => Ok(one.to_owned()),
        [] => Err(unknown_node(prefix)),
        [a, b, ..] => Err(ChangeRefusal::Invalid(format!("`{prefix}` matches more than one task: {a}, {b}"))),
    }
}

fn unknown_node(id: &str) -> ChangeRefusal {
    ChangeRefusal::NotFound(format!("there is no task {id} in the task tree"))
}
