//! The sections that are never cut: contract and role, the node, the state of checks and files, notes, the answer.
//!
//! Each is bounded by itself; what a list has no room for is counted.

use protocol::words::{GuardOutcome, Role};

use super::section::{Material, Section};
use super::{PromptInput, Review, lineage, selected};
use crate::clip::{Cut, fit};
use crate::fence::{clean, one_line, overhead, wrap};
use crate::shell;
use crate::template::{self, Filling, ROLE_LIMIT};

/// The most bytes of the guard's command.
const COMMAND_LIMIT: usize = 300;
/// The most bytes of the node's goal.
const GOAL_LIMIT: usize = 8 * 1024;
/// The most bytes of an acceptance statement, and how many there are.
const STATEMENT_LIMIT: usize = 400;
const STATEMENTS: usize = 20;
/// The most bytes of the path from the root.
const PATH_LIMIT: usize = 1024;
/// The most bytes of an item of a list.
const ITEM_LIMIT: usize = 200;
/// The most notes in one prompt: as many as a receipt names.
const NOTES: usize = 20;

fn never_cut(name: &'static str, words: String) -> Section<'static> {
    Section { name, words, material: Material::None, floor: 0 }
}

/// Contract and role; a repository may bring its own text for the role, not for the contract.
pub(super) fn role(input: &PromptInput<'_>) -> Section<'static> {
    let own = input.overrides.get(&input.role).map(|text| clean(text));
    let text = fill(input, own.as_deref().unwrap_or_else(|| template::of_role(input.role)));
    let text = Cut { limit: ROLE_LIMIT, head_eighths: 6, before: 0, hint: "" }.apply(&text).text;
    let contract = if input.role == Role::Reviewer { String::new() } else { fill(input, template::CONTRACT) + "\n" };
    never_cut("role", contract + &text)
}

/// How to answer.
pub(super) fn answer(input: &PromptInput<'_>) -> Section<'static> {
    let text = if input.role == Role::Reviewer { template::VERDICT } else { template::ANSWER };
    never_cut("answer", fill(input, text))
}

fn fill(input: &PromptInput<'_>, template: &str) -> String {
    let is_root = selected(input).id == input.tree.root.id;
    let command = one_line(&shell::words(input.guard_command.iter().map(String::as_str)), COMMAND_LIMIT);
    let node = one_line(&selected(input).id, ITEM_LIMIT);
    let from = one_line(input.review.map_or("", |review| review.from), 64);
    let filling = Filling {
        flags: &[
            ("auto", !input.mode_strict),
            ("strict", input.mode_strict),
            ("root", is_root),
            ("leaf", !is_root),
            ("narrowing", input.narrowing),
        ],
        slots: &[("node", &node), ("guard", &command), ("from", &from)],
    };
    filling.apply(template)
}

/// The node: id, attempt, title, goal, acceptance, path from the root.
pub(super) fn node(input: &PromptInput<'_>) -> Section<'static> {
    let node = selected(input);
    let id = one_line(&node.id, ITEM_LIMIT);
    let attempt = node.attempts.saturating_add(1).min(node.max_attempts);
    let goal = Cut { limit: GOAL_LIMIT, head_eighths: 6, before: 0, hint: "" }.apply(&clean(&node.goal)).text;
    let title = one_line(&node.title, ITEM_LIMIT);
    let goal = wrap("node-goal", &format!("{title}\n\n{goal}"));
    let words = format!("## The node\n\nId `{id}`, attempt {attempt} of {}.\n\n{goal}\n", node.max_attempts);
    let acceptance = acceptance(&node.acceptance);
    never_cut("node", words + &acceptance + &path(input))
}

fn acceptance(statements: &[String]) -> String {
    if statements.is_empty() {
        return "It has no acceptance statements: the goal alone says when it is done.\n".to_owned();
    }
    let line = |(number, text): (usize, &String)| format!("{number}. {}\n", one_line(text, STATEMENT_LIMIT));
    let lines: String = (1..).zip(statements).take(STATEMENTS).map(line).collect();
    wrap("acceptance", &lines)
}

/// The ancestors, root first; where they are too many, the root and the nearest.
fn path(input: &PromptInput<'_>) -> String {
    let lineage = lineage(input);
    let Some((root, between)) = lineage.split_last().and_then(|(_, ancestors)| ancestors.split_first()) else {
        return String::new();
    };
    let line = |node: &protocol::tree::Node| {
        fit(&format!("{}  {}", one_line(&node.id, ITEM_LIMIT), one_line(&node.title, ITEM_LIMIT)), ITEM_LIMIT) + "\n"
    };
    let mut left = PATH_LIMIT - ITEM_LIMIT;
    let mut nearest: Vec<String> = Vec::new();
    for text in between.iter().rev().map(|node| line(node)) {
        let Some(rest) = left.checked_sub(text.len()) else { break };
        left = rest;
        nearest.push(text);
    }
    let hidden = between.len() - nearest.len();
    let gap = if hidden == 0 { String::new() } else { format!("… {hidden} more levels\n") };
    nearest.reverse();
    format!("\nIts path from the root, parents first:\n\n{}", wrap("path", &(line(root) + &gap + &nearest.concat())))
}

/// Baseline, guard definition, reverted paths and held-back files, in shares of `limit`.
///
/// A reviewer is told what bears on its judgement only.
pub(super) fn checks(input: &PromptInput<'_>, limit: usize) -> Option<Section<'static>> {
    const HEADING: &str = "## State of checks and files\n";
    let share = limit.saturating_sub(HEADING.len()) / 8;
    let text = if input.role == Role::Reviewer {
        [guard_definition(input, share), held_back(input, 2 * share)].concat()
    } else {
        let [red, definition] = [baseline(input, 3 * share), guard_definition(input, share)];
        let dirty = dirty_submodules(input, share);
        let left = if dirty.is_empty() { 2 * share } else { share };
        [red, definition, reverted(input, 2 * share), held_back(input, left), dirty].concat()
    };
    (!text.is_empty()).then(|| never_cut("checks", format!("{HEADING}{text}")))
}

fn guard_definition(input: &PromptInput<'_>, limit: usize) -> String {
    const CHANGED: &str = "The definition of the guard has changed:";
    input.guard_notice.map(|notice| quoted("guard-definition", CHANGED, &clean(notice), limit)).unwrap_or_default()
}

fn reverted(input: &PromptInput<'_>, limit: usize) -> String {
    let words = "The last session changed these paths, which are not its to change; they were put back:";
    List { name: "reverted", words, items: &input.run_state.reverted }.render(limit)
}

fn held_back(input: &PromptInput<'_>, limit: usize) -> String {
    let words = "These files stay in the work tree but are not committed (secrets, too large, or nested repositories). The \
                 guard sees them here, the branch lacks them; do not depend on them:";
    List { name: "held-back", words, items: &input.run_state.held_back }.render(limit)
}

fn dirty_submodules(input: &PromptInput<'_>, limit: usize) -> String {
    let words = "Inside of these submodules work is not committed, so the branch lacks it. Commit it there with \
                 `git -C <path> add -A` and `git -C <path> commit -m <message>`; that the submodule is at a new commit is \
                 recorded for you:";
    List { name: "dirty-submodules", words, items: &input.run_state.dirty_submodules }.render(limit)
}

fn baseline(input: &PromptInput<'_>, limit: usize) -> String {
    const RED: &str = "The guard did not exit 0 on the base of this run, before any session. No node can pass until it does, so \
                       what it finds is to be repaired too:";
    let output = |baseline: &protocol::state::Baseline| match baseline.guard {
        GuardOutcome::Fail | GuardOutcome::Skipped => Some(clean(baseline.output.as_deref().unwrap_or_default())),
        GuardOutcome::Pass => None,
    };
    let red = input.feedback.baseline.as_ref().and_then(output);
    red.map(|output| quoted("baseline", RED, &output, limit)).unwrap_or_default()
}

/// The runner's words and somebody's text, within `limit`; the words alone where the text has no room.
fn quoted(name: &str, words: &str, text: &str, limit: usize) -> String {
    const WORTH_IT: usize = 80;
    let room = limit.saturating_sub(words.len() + overhead(name) + 3);
    if room < WORTH_IT.min(text.len()) {
        return format!("\n{words} (no room for it here)\n");
    }
    let text = Cut { limit: room, head_eighths: 4, before: 0, hint: "" }.apply(text).text;
    format!("\n{words}\n\n{}", wrap(name, &text))
}

/// Names that the runner lists.
struct List<'a> {
    name: &'a str,
    words: &'a str,
    items: &'a [String],
}

impl List<'_> {
    /// Renders as many items as fit into `limit` and counts the others; at least the count.
    fn render(&self, limit: usize) -> String {
        if self.items.is_empty() {
            return String::new();
        }
        let mut left = limit.saturating_sub(self.words.len() + overhead(self.name) + 40);
        let mut lines = String::new();
        let mut shown = 0;
        for line in self.items.iter().map(|item| one_line(item, ITEM_LIMIT) + "\n") {
            let Some(rest) = left.checked_sub(line.len()) else { break };
            left = rest;
            lines.push_str(&line);
            shown += 1;
        }
        format!("\n{}\n\n{}{}", self.words, wrap(self.name, &lines), more(self.items.len() - shown))
    }
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!("and {count} more\n") }
}

/// A person's notes that fit into `limit`, oldest first, and their ids; the others wait for the next session.
///
/// A repair acts on no note, so it is shown none.
pub(super) fn notes(input: &PromptInput<'_>, limit: usize) -> (Option<Section<'static>>, Vec<String>) {
    const WORDS: &str =
        "## Notes\n\nThe person who runs this wrote these notes. Where they differ from the goal, the notes count.\n\n";
    if input.notes.is_empty() || input.role == Role::Repair {
        return (None, Vec::new());
    }
    let room = limit.saturating_sub(WORDS.len() + overhead("notes") + 60);
    let mut lines = String::new();
    let mut shown = Vec::new();
    for note in input.notes.iter().take(NOTES) {
        let heading = format!("[{}]\n", one_line(&note.id, ITEM_LIMIT));
        let first = shown.is_empty().then(|| room.saturating_sub(heading.len() + 1));
        let whole = clean(&note.text);
        let cut = |limit| {
            Cut { limit, head_eighths: 6, before: 0, hint: "; all of it: `.runner/state/notes.md`" }.apply(&whole).text
        };
        let text = format!("{heading}{}\n", first.map_or_else(|| whole.clone(), cut).trim_end());
        if lines.len() + text.len() > room {
            break;
        }
        lines.push_str(&text);
        shown.push(note.id.clone());
    }
    let waiting = more(input.notes.len() - shown.len()).replace("more", "more, for the sessions after you");
    (Some(never_cut("notes", format!("{WORDS}{}{waiting}", wrap("notes", &lines)))), shown)
}

/// What the configuration asks of a review, within `limit`.
pub(super) fn criteria(input: &PromptInput<'_>, limit: usize) -> Option<Section<'static>> {
    let criteria = clean(input.review.as_ref().map_or("", |Review { criteria, .. }| criteria));
    let text =
        quoted("criteria", "Besides goal and acceptance, this is asked:", criteria.trim(), limit.saturating_sub(12));
    (!criteria.trim().is_empty()).then(|| never_cut("criteria", format!("## Criteria\n{text}")))
}
