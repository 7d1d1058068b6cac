//! What a person may ask of a run's files, and what it makes of them: note, answer, retry, add, edit, guard
//! accept, and a key of the configuration.
//!
//! A pure function of the documents at a commit, so that it can be tried before it is queued, and done again after a
//! crash with the same end.

use std::collections::BTreeMap;

use protocol::state::RunState;
use protocol::tree::{Node, TaskTree};
use serde::{Deserialize, Serialize};

use crate::definition::DefinitionState;
use crate::fence::one_line;
use crate::merge::MergeConflict;
use crate::notes::PersonNote;
use crate::person::ForbiddenChange;
use crate::{merge, notes, person, questions, tree, validate};

/// Most bytes of a text in a commit's summary line.
const MAX_SHOWN: usize = 200;

/// What of a run a request is about: whether it may be asked depends on the run's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeSubject {
    /// What the next session is told.
    Note,
    /// The task tree.
    Tree,
    /// Other files.
    Files,
}

/// One request of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangeRequest {
    /// Tell the next session something.
    Note {
        /// Id that was acknowledged.
        id: String,
        /// What is told.
        text: String,
    },
    /// Answer a question.
    Answer {
        /// Id of the question.
        question: String,
        /// The answer.
        text: String,
    },
    /// Give an exhausted node more attempts.
    Retry {
        /// Id of the node, or a unique beginning of it.
        node: String,
    },
    /// Add a node.
    Add(NodeAddition),
    /// Take the guard's definition as it is committed for what is to be.
    Accept {
        /// The files, each as it was when this was asked; none where it was gone.
        files: BTreeMap<String, Option<String>>,
    },
    /// Put another tree in the place of the one that was opened.
    Edit {
        /// The tree that was opened, canonical.
        base: String,
        /// The text that was left.
        edited: String,
    },
    /// Set a key of the configuration. What the new text means was checked before.
    Config {
        /// The dotted key.
        key: String,
        /// Its value as TOML; none has the default hold again.
        value: Option<String>,
        /// The text of the file that it was asked upon.
        base: String,
        /// The text with the key set.
        text: String,
    },
    /// Put another text in the place of the configuration that was opened. What it means was checked before.
    Settings {
        /// The dotted keys that it changes.
        keys: Vec<String>,
        /// The text of the file that was opened.
        base: String,
        /// The text that was left.
        text: String,
    },
}

/// A node to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAddition {
    /// Id of its parent, or a unique beginning of it.
    pub parent: String,
    /// What it is called.
    pub title: String,
    /// What is to be true when it is done.
    pub goal: String,
    /// Testable statements.
    pub acceptance: Vec<String>,
    /// The sibling that it comes behind.
    pub after: Option<String>,
    /// Its place among the siblings.
    pub order: Option<i64>,
}

/// The documents that a person's requests change, as one commit has them.
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
    /// The bookkeeping.
    pub run_state: RunState,
    /// The guard's definition.
    pub definition_state: DefinitionState,
    /// Attempts that a new node gets, and a retry adds.
    pub max_attempts: u32,
}

/// What a request made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeResult {
    /// The documents after it.
    pub documents: RunDocuments,
    /// What was done, in one line.
    pub summary: String,
    /// Id of the note, the question or the node that it is about, or the key; none for an edit.
    pub id: Option<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// What it names is not there.
    #[error("{0}")]
    NotFound(String),
    /// It contradicts itself or a limit.
    #[error("{0}")]
    Invalid(String),
    /// It breaks a rule as things are.
    #[error("{0}")]
    Rule(String),
    /// The documents have gone on, and what it would change was changed otherwise.
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
    /// Returns the command of `runnerctl` that asks for it.
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

    /// Returns the id of what it is about, where that is known before it is done, and what it says, in one line.
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

    /// Returns whether it can wait for a run that has not begun: it needs nothing of the run's tree.
    pub fn may_precede_run(&self) -> bool {
        matches!(self, Self::Note { .. })
    }

    /// Returns what of a run it is about.
    pub fn subject(&self) -> ChangeSubject {
        match self {
            Self::Note { .. } => ChangeSubject::Note,
            Self::Retry { .. } | Self::Add(_) | Self::Edit { .. } => ChangeSubject::Tree,
            Self::Answer { .. } | Self::Accept { .. } | Self::Config { .. } | Self::Settings { .. } => ChangeSubject::Files,
        }
    }

    /// Does it to the documents.
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
            Self::Settings { keys, base, text } => apply_settings(before, keys, (base, text)),
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
        return Err(ChangeRefusal::Rule(format!("node {id} has children, which are worked on in its place")));
    }
    check_open(node)?;
    if node.attempts < node.max_attempts {
        let left = node.max_attempts - node.attempts;
        return Err(ChangeRefusal::Rule(format!("node {id} has {left} of its {} attempts left", node.max_attempts)));
    }
    node.max_attempts = node.max_attempts.saturating_add(before.max_attempts);
    let summary =
        format!("node {id} may now be tried {} times, {} more than before", node.max_attempts, before.max_attempts);
    Ok(ChangeResult { documents: RunDocuments { tree, ..before.clone() }, summary, id: Some(id) })
}

fn apply_addition(before: &RunDocuments, addition: &NodeAddition) -> Result<ChangeResult, ChangeRefusal> {
    for (what, text) in [("title", &addition.title), ("goal", &addition.goal)] {
        check_length(&format!("the {what} of a node"), text, validate::MAX_GOAL_BYTES)?;
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

/// Returns the order of a new child, and makes room for it behind the sibling that was named.
fn make_room(parent: &mut Node, addition: &NodeAddition) -> Result<i64, ChangeRefusal> {
    let Some(after) = &addition.after else {
        let last = parent.children.iter().map(|child| child.order).max();
        return Ok(addition.order.unwrap_or(last.map_or(1, |last| last.saturating_add(1))));
    };
    parent.children.sort_by(|a, b| (a.order, &a.id).cmp(&(b.order, &b.id)));
    let at = parent.children.iter().position(|child| child.id == *after);
    let at = at.ok_or_else(|| ChangeRefusal::NotFound(format!("node {} has no child {after}", parent.id)))?;
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

/// Names what is accepted where these files are asked for, as they are committed; all that have changed where none is.
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
        (false, false) => Err(ChangeRefusal::NotFound(format!("{path} is no committed file of the guard's definition"))),
    };
    paths.into_iter().map(take).collect()
}

fn apply_acceptance(before: &RunDocuments, files: &BTreeMap<String, Option<String>>) -> Result<ChangeResult, ChangeRefusal> {
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
    Ok(ChangeResult { documents: RunDocuments { run_state, definition_state: guarded, ..before.clone() }, summary, id: None })
}

fn apply_edit(before: &RunDocuments, base: &str, edited: &str) -> Result<ChangeResult, ChangeRefusal> {
    let read = |text: &str| validate::load_person_tree(text.as_bytes()).map_err(|faults| invalid_tree(&faults));
    let (base, edited) = (read(base)?, read(edited)?);
    // Against what was opened first: a conflict would hide that it is not allowed at all.
    person::check_edit(&base, &edited)?;
    let merged = merge::merge(&base, &edited, &before.tree)?;
    let tree = finish_tree(&before.tree, merged)?;
    if tree::canonical(&tree) == tree::canonical(&before.tree) {
        return Err(ChangeRefusal::Invalid("nothing was changed".to_owned()));
    }
    let summary = person::summarize_edit(&before.tree, &tree);
    Ok(ChangeResult { documents: RunDocuments { tree, ..before.clone() }, summary, id: None })
}

/// One key of the configuration that is to be set.
#[derive(Debug, Clone, Copy)]
struct ConfigSetting<'a> {
    key: &'a str,
    value: Option<&'a str>,
    /// The file that it was read from.
    base: &'a str,
    /// The file with it.
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

fn apply_settings(before: &RunDocuments, keys: &[String], (base, text): (&str, &str)) -> Result<ChangeResult, ChangeRefusal> {
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

/// Derives and checks what every tree must keep, and what a person's must.
fn finish_tree(before: &TaskTree, mut tree: TaskTree) -> Result<TaskTree, ChangeRefusal> {
    tree::derive_passes(&mut tree);
    tree::sort(&mut tree);
    validate::check_tree(&tree).map_err(|faults| invalid_tree(&faults))?;
    person::check_edit(before, &tree)?;
    Ok(tree)
}

fn invalid_tree(faults: &[validate::TreeFault]) -> ChangeRefusal {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    ChangeRefusal::Invalid(faults.join("\n"))
}

fn check_open(node: &Node) -> Result<(), ChangeRefusal> {
    let refusal = || ChangeRefusal::Rule(format!("node {} has passed, and what has passed stays as it is", node.id));
    if node.passes { Err(refusal()) } else { Ok(()) }
}

/// Completes the unique beginning of a node's id.
fn resolve_node_id(tree: &TaskTree, wanted: &str) -> Result<String, ChangeRefusal> {
    let ids: Vec<&str> = tree::walk(tree).into_iter().map(|placed| placed.node.id.as_str()).collect();
    if ids.contains(&wanted) {
        return Ok(wanted.to_owned());
    }
    let fitting: Vec<&str> = ids.into_iter().filter(|id| id.starts_with(wanted)).collect();
    match fitting[..] {
        [one] => Ok(one.to_owned()),
        [] => Err(unknown_node(wanted)),
        [a, b, ..] => Err(ChangeRefusal::Invalid(format!("`{wanted}` matches more than one node: {a}, {b}"))),
    }
}

fn unknown_node(id: &str) -> ChangeRefusal {
    ChangeRefusal::NotFound(format!("there is no node {id} in the task tree"))
}
