//! Checks commits that `runnerctl` has made for a person: each may change only the file its command is about, and only
//! as the command changes it.
//!
//! Whether a person may make such a change to the tree at all is judged with everything that people did between two
//! commits of the runner, not here.

use std::collections::BTreeSet;

use protocol::state::RunState;
use protocol::tree::TaskTree;
use protocol::verify::AuditRule;

use super::commit_data::{CommitHeader, PathChange};
use super::compare::{self, CommittedFile};
use super::findings::AuditFindings;
use super::net_diff::NetDiff;
use super::ownership::{self, CommitKind};
use super::person_commits;
use super::state::{AuditedState, RunnerFiles};
use crate::committed_state::StateFault;
use crate::files::change::{ChangeRequest, NodeAddition};
use crate::files::layout;
use crate::files::notes;
use crate::files::notes::PersonNote;
use crate::files::questions;
use crate::files::questions::AgentQuestion;
use crate::guard::definition::DefinitionState;
use crate::message::{HumanCommit, safe_summary};
use crate::text::fence;
use crate::tree;

/// The commands, each with the files it may change.
const COMMANDS: [(&str, &[&str]); 8] = [
    ("note", &[layout::NOTES]),
    ("answer", &[layout::QUESTIONS]),
    ("retry", &[layout::TREE]),
    ("add", &[layout::TREE]),
    ("edit", &[layout::TREE]),
    ("config set", &[layout::CONFIG]),
    ("config edit", &[layout::CONFIG]),
    ("guard accept", &[layout::RUN_STATE]),
];

/// Checks a commit in which git finds a command, given the state before and after it and its changes; returns the run
/// it names.
pub(super) fn check(
    head: &CommitHeader,
    changes: &[PathChange],
    before: &RunnerFiles,
    after: &RunnerFiles,
    findings: &mut AuditFindings,
) -> Option<String> {
    match person_commits::parse_human_commit(head)? {
        Ok(commit) => {
            check_command_changes(&commit, before, after, &NetDiff::from_changes(changes), findings);
            Some(commit.run)
        }
        Err(error) => {
            let expected = "a message that the runner writes for a person";
            findings.add_violation(AuditRule::Form, "message", expected, &error.to_string());
            None
        }
    }
}

/// Checks that a commit has what its command produces, and nothing else.
fn check_command_changes(
    HumanCommit { command, summary, .. }: &HumanCommit,
    before: &RunnerFiles,
    after: &RunnerFiles,
    net: &NetDiff,
    findings: &mut AuditFindings,
) {
    let Some((command, files)) = COMMANDS.into_iter().find(|(known, _)| known == command) else {
        return findings.add_violation(AuditRule::Person, "Runner-Human", "a command that makes a commit", command);
    };
    ownership::check(CommitKind::Human(files), &[], before, net, findings);
    // If the state before cannot be read, no such commit is made on top of it.
    let (old, new) = match (before.committed_state(), after.committed_state()) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(StateFault { path, fault }), _) | (_, Err(StateFault { path, fault })) => {
            return findings.add_violation(AuditRule::Person, path, "a valid file", &fault.to_string());
        }
    };
    let is_right = match command {
        "note" => appends_note(&old, &new, summary),
        "answer" => adds_answer(&old, &new, summary),
        "retry" | "add" | "edit" => explains_tree_change(command, &old, &new, summary),
        "guard accept" => return check_acceptance(&old.run_state, &new, summary, findings),
        // The content of the configuration is up to the person.
        _ => {
            let base = old.text(layout::CONFIG);
            let text = new.text(layout::CONFIG);
            let change = explain_config_change(command, base, text, summary);
            let result = change.and_then(|change| change.apply(&old.documents(DefinitionState::default())).ok());
            result.is_some_and(|result| result.documents.config == text && safe_summary(&result.summary) == *summary)
        }
    };
    if !is_right {
        let expected = format!("what `runnerctl {command}` makes of it");
        findings.add_violation(AuditRule::Person, files[0], &expected, "something else");
    }
}

/// Returns the request by which `config set` or `config edit` turns one text into another, given the summary of its
/// commit; `None` if more than the key that it names was changed.
fn explain_config_change(command: &str, base: &str, text: &str, summary: &str) -> Option<ChangeRequest> {
    let keys = runner_config::changed_keys(base, text);
    let base = base.to_owned();
    let text = text.to_owned();
    if command == "config edit" {
        return Some(ChangeRequest::Settings { keys, base, text });
    }
    let mut words = summary.split_whitespace();
    let key = words.next()?.to_owned();
    let is_it =
        |other: &String| other.strip_prefix(&key).is_some_and(|below| below.is_empty() || below.starts_with('.'));
    if !keys.iter().all(is_it) {
        return None;
    }
    let is_reset = words.eq(["is", "reset", "to", "default"]);
    let value = if is_reset { None } else { runner_config::get(&text, &key).ok()?.value };
    Some(ChangeRequest::Config { key, value, base, text })
}

/// Whether one note was appended to a file of notes, the one that the commit's message tells.
fn appends_note(old: &AuditedState<'_>, new: &AuditedState<'_>, summary: &str) -> bool {
    let notes = new.text(layout::NOTES);
    let Some(PersonNote { id, text }) = notes::parse_notes(notes).pop() else { return false };
    let result = ChangeRequest::Note { id, text }.apply(&old.documents(DefinitionState::default()));
    result.is_ok_and(|result| result.documents.notes == notes && safe_summary(&result.summary) == summary)
}

/// Whether a question of a file gained an answer, the one that the commit's message tells.
fn adds_answer(old: &AuditedState<'_>, new: &AuditedState<'_>, summary: &str) -> bool {
    let before = old.text(layout::QUESTIONS);
    let after = new.text(layout::QUESTIONS);
    let open = questions::parse_questions(before).into_iter();
    let added = open.zip(questions::parse_questions(after)).find(|(open, after)| open.answer != after.answer);
    let Some((AgentQuestion { id: question, .. }, AgentQuestion { answer: Some(text), .. })) = added else {
        return false;
    };
    let result = ChangeRequest::Answer { question, text }.apply(&old.documents(DefinitionState::default()));
    result.is_ok_and(|result| result.documents.questions == after && safe_summary(&result.summary) == summary)
}

/// Whether a command of this name turns the old tree into the new one, and says what the commit's message tells.
fn explains_tree_change(command: &str, old: &AuditedState<'_>, new: &AuditedState<'_>, summary: &str) -> bool {
    let documents = old.documents(DefinitionState::default());
    let makes = |change: &ChangeRequest| {
        let result = change.apply(&documents);
        result.is_ok_and(|result| result.documents.tree == *new.tree && safe_summary(&result.summary) == summary)
    };
    let bytes = new.bytes(layout::TREE).unwrap_or_default();
    tree::is_canonical(&new.tree, bytes) && candidate_changes(command, &old.tree, &new.tree).iter().any(makes)
}

/// Returns the requests that may have turned the old tree into the new one.
fn candidate_changes(command: &str, old: &TaskTree, new: &TaskTree) -> Vec<ChangeRequest> {
    let before = tree::index(old);
    let after = tree::index(new);
    match command {
        "retry" => {
            let allowed = |id: &&str| after.get(*id).map(|placed| placed.node.max_attempts);
            let raised = before.iter().filter(|(id, placed)| allowed(id) != Some(placed.node.max_attempts));
            raised.map(|(id, _)| ChangeRequest::Retry { node: (*id).to_owned() }).take(1).collect()
        }
        "add" => {
            let Some(added) = after.values().find(|placed| !before.contains_key(placed.node.id.as_str())) else {
                return Vec::new();
            };
            let Some(parent) = added.parent else { return Vec::new() };
            let siblings = parent.children.iter().filter(|child| child.id != added.node.id);
            let addition = NodeAddition {
                parent: parent.id.clone(),
                title: added.node.title.clone(),
                goal: added.node.goal.clone(),
                acceptance: added.node.acceptance.clone(),
                after: None,
                order: Some(added.node.order),
            };
            let behind = |id: &String| NodeAddition { after: Some(id.clone()), order: None, ..addition.clone() };
            let behind: Vec<NodeAddition> = siblings.map(|child| behind(&child.id)).collect();
            std::iter::once(addition).chain(behind).map(ChangeRequest::Add).collect()
        }
        _ => vec![ChangeRequest::Edit { base: tree::canonical(old), edited: tree::canonical(new) }],
    }
}

/// Checks that only the accepted part of the guard's definition differs, and that the message names files of it. It
/// may also be unchanged, if a person's commit has already accepted the same.
fn check_acceptance(old: &RunState, new: &AuditedState<'_>, summary: &str, findings: &mut AuditFindings) {
    let guard_definition = new.run_state.guard_definition.clone();
    let known: BTreeSet<&String> = old.guard_definition.keys().chain(guard_definition.keys()).collect();
    if !lists_paths(summary, known) {
        let expected = "the files of the guard's definition that were accepted";
        findings.add_violation(AuditRule::Person, "message", expected, summary);
    }
    let expected = RunState { guard_definition, ..old.clone() };
    let file = CommittedFile { value: &*new.run_state, bytes: new.bytes(layout::RUN_STATE).unwrap_or_default() };
    compare::compare_values(AuditRule::Person, layout::RUN_STATE, &expected, &file, findings);
}

/// Whether a summary is a list of some of these paths, in this order, with line breaks and marks of quotation anywhere,
/// and possibly cut.
fn lists_paths<'a>(summary: &str, paths: impl IntoIterator<Item = &'a String>) -> bool {
    let fold = |text: &str| text.replace(|c: char| c.is_whitespace() || c == '>', "");
    let text = fold(&fence::clean(summary));
    // Where the next path of the list may begin.
    let mut begins = BTreeSet::from([0]);
    for path in paths {
        let item = format!("{},", fold(&fence::clean(path)));
        for begin in begins.clone() {
            let rest = &text[begin..];
            if item.strip_suffix(',') == Some(rest) || rest.strip_suffix('…').is_some_and(|cut| item.starts_with(cut))
            {
                return true;
            }
            begins.extend(rest.starts_with(&item).then_some(begin + item.len()));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::audit::commit_data::PathEntry;
    use crate::audit::state::parse_changes;
    use crate::files::change::RunDocuments;
    use crate::message::compose_human;
    use crate::policy::Policy;
    use crate::tree::find_mut;

    fn plan() -> TaskTree {
        let mut tree = tree::new_tree(1);
        let child = |title: &str| protocol::tree::ChildSpec {
            title: title.to_owned(),
            goal: format!("{title} is there."),
            acceptance: Vec::new(),
        };
        tree::insert_children(&mut tree, "root", &[child("a"), child("b")], 1);
        find_mut(&mut tree, "root.1").expect("is there").attempts = 1;
        tree
    }

    fn plan_with(change: impl FnOnce(&mut TaskTree)) -> String {
        let mut tree = plan();
        change(&mut tree);
        tree::canonical(&tree)
    }

    fn run_state() -> RunState {
        let guard_definition = [("justfile".to_owned(), "0".repeat(40))].into_iter().collect();
        RunState { next_iter: 3, guard_definition, ..RunState::default() }
    }

    fn files() -> Vec<(&'static str, String)> {
        let state = run_state();
        vec![
            (layout::TREE, tree::canonical(&plan())),
            (layout::RUN_STATE, crate::text::json::to_canonical_json(&state)),
            (layout::FEEDBACK, crate::text::json::to_canonical_json(&protocol::state::Feedback::default())),
            (layout::GOAL, "a goal\n".to_owned()),
            (layout::CONFIG, "stall_after = 4\n".to_owned()),
            (layout::NOTES, "# Notes\n\n- [n1] First.\n".to_owned()),
            (layout::QUESTIONS, "# Questions\n\n- Why?\n- When?\n".to_owned()),
            (layout::TESTS, crate::text::json::to_canonical_json(&protocol::test_record::TestRecord::default())),
        ]
    }

    fn path_change(path: &str, text: &str) -> PathChange {
        let content: Arc<[u8]> = text.as_bytes().into();
        let new = PathEntry { mode: 0o100_644, id: crate::text::digest::sha256_hex(&content), content: Some(content) };
        PathChange { path: path.as_bytes().to_vec(), old: None, new: Some(new) }
    }

    /// Returns the findings for a commit with this message that writes these files.
    fn collect_findings(message: &str, changes: &[(&str, &str)]) -> Vec<String> {
        let before: Vec<PathChange> = files().iter().map(|(path, text)| path_change(path, text)).collect();
        let changes: Vec<PathChange> = changes.iter().map(|(path, text)| path_change(path, text)).collect();
        let mut state = RunnerFiles::default();
        state.apply_changes(&before, &parse_changes(&before));
        let old = state.clone();
        state.apply_changes(&changes, &parse_changes(&changes));
        let header = Vec::new();
        let message = message.as_bytes().to_vec();
        let head = CommitHeader { id: "1".repeat(40), parents: Vec::new(), headers: header, message, recoded: None };
        let mut findings = AuditFindings::default();
        check(&head, &changes, &old, &state, &mut findings);
        findings.into_findings().into_iter().map(|found| format!("{:?} {}", found.rule, found.at)).collect()
    }

    /// Returns the message of a command that writes this text, if it can.
    fn message_of(command: &str, text: &str) -> String {
        let summary = match (command, crate::tree::validate::load(text.as_bytes())) {
            ("note", _) => "n2: Mind this.".to_owned(),
            ("answer", _) => {
                let question = &questions::parse_questions(&files()[6].1)[0];
                format!("{}: {}\nBecause. - of this", question.id, question.text)
            }
            ("guard accept", _) => "justfile".to_owned(),
            ("config set", _) => "stall_after is 6".to_owned(),
            ("config edit", _) => "stall_after".to_owned(),
            ("retry" | "add" | "edit", Ok(tree)) => {
                let documents = RunDocuments {
                    tree: plan(),
                    notes: String::new(),
                    questions: String::new(),
                    config: String::new(),
                    run_state: RunState::default(),
                    definition_state: DefinitionState::default(),
                    max_attempts: Policy::default().max_attempts_default,
                };
                let changes = candidate_changes(command, &plan(), &tree);
                let changes = changes.iter().filter_map(|change| change.apply(&documents).ok());
                changes
                    .filter(|changes| changes.documents.tree == tree)
                    .map(|changes| changes.summary)
                    .next()
                    .unwrap_or_default()
            }
            _ => "As it was asked for.".to_owned(),
        };
        compose_human("r-1", command, &summary)
    }

    #[track_caller]
    fn assert_obeys(command: &str, path: &str, text: &str) {
        let message = message_of(command, text);
        assert_eq!(collect_findings(&message, &[(path, text)]), Vec::<String>::new(), "{command}");
        let code = collect_findings(&message, &[(path, text), ("src/lib.rs", "code")]);
        assert_eq!(code, ["Person src/lib.rs"], "{command} with code");
        let notes = (layout::NOTES, "# Notes\n\n- [n1] First.\n- [n2] b\n");
        let (other, more) = if path == layout::CONFIG { notes } else { (layout::CONFIG, "stall_after = 5\n") };
        let another = collect_findings(&message, &[(path, text), (other, more)]);
        assert_eq!(another, [format!("Person {other}")], "{command} with another file");
        // A person's commit may already have accepted the same.
        let may_be_empty = command == "guard accept";
        assert_eq!(collect_findings(&message, &[]).is_empty(), may_be_empty, "{command} without a change");
    }

    #[track_caller]
    fn assert_refuses(command: &str, path: &str, text: &str) {
        let message = message_of(command, text);
        assert!(!collect_findings(&message, &[(path, text)]).is_empty(), "{command}: {text}");
    }

    #[test]
    fn a_note_adds_one_note() {
        let (_, notes) = &files()[5];
        let second = notes::append_note(notes, &PersonNote { id: "n2".to_owned(), text: "Mind\n\nthis.".to_owned() });
        assert_obeys("note", layout::NOTES, &second);
        assert_refuses("note", layout::NOTES, &second.replace("First", "Another"));
        assert_refuses(
            "note",
            layout::NOTES,
            &notes::append_note(&second, &PersonNote { id: "n3".to_owned(), text: "b".to_owned() }),
        );
        assert_refuses("note", layout::NOTES, &format!("{notes}  and more\n"));
        assert_refuses("note", layout::NOTES, &second.replace("Mind", "Forget"));
        assert_refuses("note", layout::NOTES, &format!("{second}\nProse, and no note.\n"));
        assert_refuses("note", layout::NOTES, &second.replace('\n', "\r\n"));
    }

    #[test]
    fn an_answer_stands_under_one_question() {
        let (_, request) = &files()[6];
        let id = &questions::parse_questions(request)[0].id;
        let answered = questions::add_answer(request, id, "Because.\n\n  - of this").expect("there is one");
        assert_obeys("answer", layout::QUESTIONS, &answered);
        assert_refuses("answer", layout::QUESTIONS, &answered.replace("- When?\n", ""));
        assert_refuses("answer", layout::QUESTIONS, &format!("{answered}- And?\n"));
        assert_refuses("answer", layout::QUESTIONS, &answered.replace("# Questions", "# Orders"));
        assert_refuses("answer", layout::QUESTIONS, &answered.replace("Because", "Never"));
    }

    #[test]
    fn a_retry_gives_one_exhausted_leaf_its_attempts() {
        let more = Policy::default().max_attempts_default;
        let raised = |by: u32| plan_with(|tree| find_mut(tree, "root.1").expect("is there").max_attempts += by);
        assert_obeys("retry", layout::TREE, &raised(more));
        assert_refuses("retry", layout::TREE, &raised(more + 1));
        assert_refuses(
            "retry",
            layout::TREE,
            &plan_with(|tree| find_mut(tree, "root.2").expect("is there").max_attempts += more),
        );
        assert_refuses(
            "retry",
            layout::TREE,
            &plan_with(|tree| find_mut(tree, "root.1").expect("is there").goal.push('!')),
        );
    }

    #[test]
    fn an_addition_is_one_open_node() {
        let node = protocol::tree::Node {
            id: "root.3".to_owned(),
            order: 3,
            title: "c".to_owned(),
            goal: "c is there.".to_owned(),
            acceptance: Vec::new(),
            passes: false,
            attempts: 0,
            max_attempts: Policy::default().max_attempts_default,
            children: Vec::new(),
        };
        let added = |change: fn(&mut protocol::tree::Node)| {
            let mut node = node.clone();
            change(&mut node);
            plan_with(|tree| tree.root.children.push(node))
        };
        assert_obeys("add", layout::TREE, &added(|_| {}));
        let behind = plan_with(|tree| {
            tree.root.children[1].order = 3;
            tree.root.children.push(protocol::tree::Node { order: 2, ..node.clone() });
            tree::sort(tree);
        });
        assert_obeys("add", layout::TREE, &behind);
        let as_edit = message_of("add", &behind).replace("add", "edit");
        assert_eq!(collect_findings(&as_edit, &[(layout::TREE, &behind)]), [format!("Person {}", layout::TREE)]);
        assert_refuses("add", layout::TREE, &added(|node| node.passes = true));
        assert_refuses("add", layout::TREE, &added(|node| node.attempts = 1));
        assert_refuses("add", layout::TREE, &added(|node| node.id = "root.9".to_owned()));
        assert_refuses(
            "add",
            layout::TREE,
            &plan_with(|tree| find_mut(tree, "root.2").expect("is there").goal.push('!')),
        );
    }

    #[test]
    fn an_edit_is_what_a_person_may_do_to_a_tree() {
        assert_obeys(
            "edit",
            layout::TREE,
            &plan_with(|tree| find_mut(tree, "root.2").expect("is there").goal.push('!')),
        );
        assert_refuses(
            "edit",
            layout::TREE,
            &plan_with(|tree| find_mut(tree, "root.1").expect("is there").attempts = 0),
        );
        assert_refuses(
            "edit",
            layout::TREE,
            &plan_with(|tree| find_mut(tree, "root.2").expect("is there").passes = true),
        );
        assert_refuses("edit", layout::TREE, &format!("{}\n", plan_with(|tree| tree.root.title.push('!'))));
        assert_refuses("edit", layout::TREE, "no tree");
    }

    #[test]
    fn a_setting_changes_the_configuration_to_one_that_can_be_read() {
        for command in ["config set", "config edit"] {
            assert_obeys(command, layout::CONFIG, "stall_after = 6\n");
            assert_refuses(command, layout::CONFIG, "!\n");
        }
        let other = compose_human("r-1", "config set", "stall_after is 7");
        assert_eq!(
            collect_findings(&other, &[(layout::CONFIG, "stall_after = 6\n")]),
            [format!("Person {}", layout::CONFIG)]
        );
    }

    #[test]
    fn an_acceptance_changes_what_is_accepted_of_the_guards_definition() {
        let accepted = |change: fn(&mut RunState)| {
            let mut state = run_state();
            change(&mut state);
            crate::text::json::to_canonical_json(&state)
        };
        let accept = |state: &mut RunState| drop(state.guard_definition.insert("justfile".to_owned(), "1".repeat(40)));
        assert_obeys("guard accept", layout::RUN_STATE, &accepted(accept));
        assert_refuses("guard accept", layout::RUN_STATE, &accepted(|state| state.next_iter = 4));
        assert_refuses("guard accept", layout::RUN_STATE, &format!("{}\n", accepted(accept)));
        let other = compose_human("r-1", "guard accept", "All of it is proven.");
        assert_eq!(collect_findings(&other, &[(layout::RUN_STATE, &accepted(accept))]), ["Person message"]);
    }

    #[test]
    fn a_summary_lists_paths_that_may_be_wrapped_quoted_and_cut() {
        let paths = ["#a", "a, b", "b c", "z"].map(str::to_owned);
        for listed in ["#a", "> #a, a, b", "a, b, b\nc, z", "a, b, b…", "#a, …"] {
            assert!(lists_paths(listed, &paths), "{listed}");
        }
        for other in ["", "a", "z, #a", "z, ", "b c, and more", "…and more"] {
            assert!(!lists_paths(other, &paths), "{other}");
        }
    }

    #[test]
    fn what_names_a_command_in_another_form_or_another_command_is_found() {
        let note = (layout::NOTES, "# Notes\n\n- [n1] First.\n\n- [n2] b\n");
        let message = compose_human("r-1", "note", "");
        assert_eq!(collect_findings(&message.replace("Runner-Human", "runner-human"), &[note]), ["Form message"]);
        assert_eq!(collect_findings(&compose_human("r-1", "approve", ""), &[]), ["Person Runner-Human"]);
        assert_eq!(
            collect_findings("A person's own\n\nIt has prose.\n", &[note, ("src/lib.rs", "")]),
            Vec::<String>::new()
        );
    }
}
