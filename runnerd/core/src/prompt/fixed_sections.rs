//! The sections that are never cut: contract and role, the node, the state of checks and files, notes, the answer.
//!
//! Each is bounded on its own; items that do not fit into a list are counted.

use protocol::shell;
use protocol::test_record::LostTest;
use protocol::words::{GuardOutcome, Role};

use super::section::{PromptSection, SectionMaterial};
use super::{PromptInput, ReviewMaterial, lineage, selected_node};
use crate::prompt::template::{self, ROLE_LIMIT, TemplateValues};
use crate::text::clip::{ClipOptions, truncate_text};
use crate::text::fence::{clean, fence_overhead, one_line, wrap_fenced};

/// Most bytes of the guard's command.
const COMMAND_LIMIT: usize = 300;
/// Most bytes of the node's goal.
const GOAL_LIMIT: usize = 8 * 1024;
/// Most bytes of an acceptance statement, and the number of statements.
const STATEMENT_LIMIT: usize = 400;
const MAX_STATEMENTS: usize = 20;
/// Most bytes of the path from the root.
const PATH_LIMIT: usize = 1024;
/// Most bytes of each list of a scope.
const SCOPE_LIMIT: usize = 1024;
/// Most bytes of a list item.
const ITEM_LIMIT: usize = 200;
/// Most watched files that are named.
const MAX_WATCHED: usize = 6;
/// Most notes in one prompt: as many as a receipt names.
const MAX_NOTES: usize = 20;

fn fixed_section(name: &'static str, intro: String) -> PromptSection<'static> {
    PromptSection { name, intro, material: SectionMaterial::None, min_bytes: 0 }
}

/// What holds for every session; a repository cannot override it.
pub(super) fn rules_section(input: &PromptInput<'_>) -> PromptSection<'static> {
    fixed_section("rules", fill_template(input, template::CONTRACT))
}

/// The role; a repository may override its text.
pub(super) fn role_section(input: &PromptInput<'_>) -> PromptSection<'static> {
    let own = input.own_template.map(clean);
    let text = fill_template(input, own.as_deref().unwrap_or_else(|| template::built_in_template(input.role)));
    let text = ClipOptions { limit: ROLE_LIMIT, head_eighths: 6, omitted_bytes: 0, hint: "" }.apply(&text).text;
    fixed_section("role", text)
}

/// What the run may change, unless that is everything.
pub(super) fn scope_section(input: &PromptInput<'_>) -> Option<PromptSection<'static>> {
    const WORDS: &str = "## Files that you may change\n\nWhat you change elsewhere, outside of `.runner/`, is put back when you exit, and \
                         does not count. If the task needs it, answer `retry` and name the file and the reason. The lists are \
                         globs, as in `.gitignore`: a folder stands for all that is in it.\n";
    let scope = &input.scope;
    if scope.is_everything() {
        return None;
    }
    let only = match scope.write_globs() {
        [] => "\nNone: this run changes no file.\n".to_owned(),
        items => NameSection { name: "scope", intro: "Only these:", items }.render(SCOPE_LIMIT),
    };
    let never =
        NameSection { name: "scope-never", intro: "Never these:", items: scope.never_globs() }.render(SCOPE_LIMIT);
    Some(fixed_section("scope", format!("{WORDS}{only}{never}")))
}

/// What the session takes from the person's set-up, if anything. Its program does not always show that.
pub(super) fn inherited_section(input: &PromptInput<'_>) -> Option<PromptSection<'static>> {
    const WORDS: &str = "## What you may use besides\n";
    let intro = "Your program may offer you these parts of the set-up of the person who started this run (`mcp:` is a \
                 server of tools). Use them where the task needs them:";
    let items = NameSection { name: "set-up", intro, items: input.inherited }.render(SCOPE_LIMIT);
    (!input.inherited.is_empty()).then(|| fixed_section("set-up", format!("{WORDS}{items}")))
}

/// How to answer.
pub(super) fn answer_section(input: &PromptInput<'_>) -> PromptSection<'static> {
    let text = if input.role == Role::Reviewer { template::VERDICT } else { template::ANSWER };
    fixed_section("answer", fill_template(input, text))
}

fn fill_template(input: &PromptInput<'_>, template: &str) -> String {
    let is_root = selected_node(input).id == input.tree.root.id;
    let command = one_line(&shell::join_args(input.guard_command.iter().map(String::as_str)), COMMAND_LIMIT);
    let node = one_line(&selected_node(input).id, ITEM_LIMIT);
    let from = one_line(input.review.map_or("", |review| review.from), 64);
    let time = render_time(input.budget_ms);
    let filling = TemplateValues {
        flags: &[
            ("auto", !input.mode_strict),
            ("strict", input.mode_strict),
            ("root", is_root),
            ("leaf", !is_root),
            ("narrowing", input.narrowing),
        ],
        slots: &[("node", &node), ("guard", &command), ("from", &from), ("time", &time)],
    };
    filling.fill(template)
}

/// The time of a session in whole minutes, or in seconds if there is less.
fn render_time(budget_ms: u64) -> String {
    match (budget_ms / 60_000, budget_ms / 1_000) {
        (0, seconds) => format!("{seconds} seconds"),
        (1, _) => "1 minute".to_owned(),
        (minutes, _) => format!("{minutes} minutes"),
    }
}

/// The node: id, attempt, title, goal, acceptance, path from the root.
pub(super) fn node_section(input: &PromptInput<'_>) -> PromptSection<'static> {
    let node = selected_node(input);
    let id = one_line(&node.id, ITEM_LIMIT);
    let attempt = node.attempts.saturating_add(1).min(node.max_attempts);
    let goal =
        ClipOptions { limit: GOAL_LIMIT, head_eighths: 6, omitted_bytes: 0, hint: "" }.apply(&clean(&node.goal)).text;
    let title = one_line(&node.title, ITEM_LIMIT);
    let goal = wrap_fenced("task", &format!("{title}\n\n{goal}"));
    let words = format!("## Your task\n\nIts id is `{id}`.\n\n{goal}\n");
    let acceptance = render_acceptance(&node.acceptance);
    let attempt = format!("\nThis is attempt {attempt} of {}.\n", node.max_attempts);
    fixed_section("node", words + &acceptance + &render_path(input) + &attempt)
}

fn render_acceptance(statements: &[String]) -> String {
    if statements.is_empty() {
        return "It has no acceptance statements: the goal alone says when it is done.\n".to_owned();
    }
    let line = |(number, text): (usize, &String)| format!("{number}. {}\n", one_line(text, STATEMENT_LIMIT));
    let lines: String = (1..).zip(statements).take(MAX_STATEMENTS).map(line).collect();
    wrap_fenced("acceptance", &lines)
}

/// The ancestors, root first; if there are too many, the root and the nearest ones.
fn render_path(input: &PromptInput<'_>) -> String {
    let lineage = lineage(input);
    let Some((root, between)) = lineage.split_last().and_then(|(_, ancestors)| ancestors.split_first()) else {
        return String::new();
    };
    // The goal of the project says what the root is.
    if between.is_empty() {
        return String::new();
    }
    let line = |node: &protocol::tree::Node| {
        truncate_text(&format!("{}  {}", one_line(&node.id, ITEM_LIMIT), one_line(&node.title, ITEM_LIMIT)), ITEM_LIMIT)
            + "\n"
    };
    let mut budget = PATH_LIMIT - ITEM_LIMIT;
    let mut nearest: Vec<String> = Vec::new();
    for text in between.iter().rev().map(|node| line(node)) {
        let Some(rest) = budget.checked_sub(text.len()) else { break };
        budget = rest;
        nearest.push(text);
    }
    let hidden = between.len() - nearest.len();
    let gap = if hidden == 0 { String::new() } else { format!("… {hidden} more levels\n") };
    nearest.reverse();
    format!(
        "\nIts path from the root, parents first:\n\n{}",
        wrap_fenced("path", &(line(root) + &gap + &nearest.concat()))
    )
}

/// Baseline, guard definition, reverted paths and held-back files, in shares of `limit`.
///
/// A reviewer gets only what is relevant to its judgement.
pub(super) fn checks_section(input: &PromptInput<'_>, limit: usize) -> Option<PromptSection<'static>> {
    const HEADING: &str = "## State of checks and files\n";
    let share = limit.saturating_sub(HEADING.len()) / 9;
    let text = if input.role == Role::Reviewer {
        [render_guard_definition(input, share), render_held_back(input, 2 * share)].concat()
    } else {
        let [red, definition] = [render_baseline(input, 3 * share), render_guard_definition(input, share)];
        let dirty = render_dirty_submodules(input, share);
        let hidden = render_hidden(input, share);
        let room = if dirty.is_empty() && hidden.is_empty() { 2 * share } else { share };
        [
            red,
            definition,
            render_watched(input),
            render_lost_tests(input, share),
            render_flakes(input, share),
            render_reverted(input, 2 * share),
            hidden,
            render_held_back(input, room),
            dirty,
        ]
        .concat()
    };
    (!text.is_empty()).then(|| fixed_section("checks", format!("{HEADING}{text}")))
}

fn render_guard_definition(input: &PromptInput<'_>, limit: usize) -> String {
    const CHANGED: &str = "What the checks run has changed:";
    input
        .guard_notice
        .map(|notice| render_quote("guard-definition", CHANGED, &clean(notice), limit))
        .unwrap_or_default()
}

/// The files that the checks run, as far as they are watched.
fn render_watched(input: &PromptInput<'_>) -> String {
    let files: Vec<&str> = input.run_state.guard_definition.keys().map(String::as_str).collect();
    let shown = files.iter().take(MAX_WATCHED).map(|file| format!("`{}`", one_line(file, ITEM_LIMIT)));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    let more = render_more(files.len() - shown.len());
    format!(
        "\nThe checks run these; a change to them is reported to a person: {}{}{}.\n",
        shown.join(", "),
        if more.is_empty() { "" } else { " " },
        more.trim_end()
    )
}

/// The tests that passed until the last iteration.
fn render_lost_tests(input: &PromptInput<'_>, limit: usize) -> String {
    let is_new = |lost: &&LostTest| lost.iter.saturating_add(1) == input.run_state.next_iter;
    let lost = input.tests.lost.iter().filter(is_new);
    let items: Vec<String> = lost.map(|lost| format!("{} ({})", lost.name, lost.now.as_str())).collect();
    let words = "These tests passed before the last session and do not now. Bring back what was not meant to go; if it \
                 was renamed or is wrong, say so in your summary:";
    NameSection { name: "lost-tests", intro: words, items: &items }.render(limit)
}

/// The tests that failed and then passed on the same files.
fn render_flakes(input: &PromptInput<'_>, limit: usize) -> String {
    let items: Vec<String> = input.run_state.flakes.iter().map(ToString::to_string).collect();
    let words = "These tests failed in this run and then passed on the same files. If one fails, run it again before you look \
                 for the cause in your change; leave it as it is, unless your task is about it:";
    NameSection { name: "flaky-tests", intro: words, items: &items }.render(limit)
}

fn render_reverted(input: &PromptInput<'_>, limit: usize) -> String {
    let words = "The last session changed these paths, which are not its to change; they were put back:";
    let outside_words = "The last session or its checks changed these paths, which are outside of the scope of this run; they were put back:";
    let restored = &input.run_state.reverted;
    let outside: Vec<String> = input.scope.restored_outside(restored).cloned().collect();
    let others: Vec<String> = restored.iter().filter(|path| !outside.contains(path)).cloned().collect();
    let room = if outside.is_empty() || others.is_empty() { limit } else { limit / 2 };
    let others = NameSection { name: "reverted", intro: words, items: &others }.render(room);
    others + &NameSection { name: "outside", intro: outside_words, items: &outside }.render(room)
}

fn render_hidden(input: &PromptInput<'_>, limit: usize) -> String {
    let words =
        "Moved away while the last session ran, because its program would obey them; they are back when it ends:";
    NameSection { name: "hidden", intro: words, items: &input.run_state.hidden }.render(limit)
}

fn render_held_back(input: &PromptInput<'_>, limit: usize) -> String {
    let words = "These files stay in the work tree but are not committed (secrets, too large, or nested repositories). The \
                 checks see them here, the branch lacks them; do not depend on them:";
    NameSection { name: "held-back", intro: words, items: &input.run_state.held_back }.render(limit)
}

fn render_dirty_submodules(input: &PromptInput<'_>, limit: usize) -> String {
    let words = "Inside of these submodules work is not committed, so the branch lacks it. Commit it there with \
                 `git -C <path> add -A` and `git -C <path> commit -m <message>`; that the submodule is at a new commit is \
                 recorded for you:";
    NameSection { name: "dirty-submodules", intro: words, items: &input.run_state.dirty_submodules }.render(limit)
}

fn render_baseline(input: &PromptInput<'_>, limit: usize) -> String {
    const RED: &str = "The checks failed before the first session of this run. No task can pass until they exit 0, so what they \
                       find is to be repaired too:";
    let output = |baseline: &protocol::state::Baseline| match baseline.guard {
        GuardOutcome::Fail | GuardOutcome::Skipped => Some(clean(baseline.output.as_deref().unwrap_or_default())),
        GuardOutcome::Pass => None,
    };
    let red = input.feedback.baseline.as_ref().filter(|baseline| baseline.green_at.is_none()).and_then(output);
    red.map(|output| render_quote("baseline", RED, &output, limit)).unwrap_or_default()
}

/// The runner's words and a quoted text, within `limit`; the words alone if the text does not fit.
fn render_quote(name: &str, words: &str, text: &str, limit: usize) -> String {
    const WORTH_IT: usize = 80;
    let room = limit.saturating_sub(words.len() + fence_overhead(name) + 3);
    if room < WORTH_IT.min(text.len()) {
        return format!("\n{words} (no room for it here)\n");
    }
    let text = ClipOptions { limit: room, head_eighths: 4, omitted_bytes: 0, hint: "" }.apply(text).text;
    format!("\n{words}\n\n{}", wrap_fenced(name, &text))
}

/// Names that the runner lists.
struct NameSection<'a> {
    name: &'a str,
    intro: &'a str,
    items: &'a [String],
}

impl NameSection<'_> {
    /// Renders as many items as fit into `limit` and counts the others; at least the count is rendered.
    fn render(&self, limit: usize) -> String {
        if self.items.is_empty() {
            return String::new();
        }
        let mut left = limit.saturating_sub(self.intro.len() + fence_overhead(self.name) + 40);
        let mut lines = String::new();
        let mut shown = 0;
        for line in self.items.iter().map(|item| one_line(item, ITEM_LIMIT) + "\n") {
            let Some(rest) = left.checked_sub(line.len()) else { break };
            left = rest;
            lines.push_str(&line);
            shown += 1;
        }
        format!("\n{}\n\n{}{}", self.intro, wrap_fenced(self.name, &lines), render_more(self.items.len() - shown))
    }
}

fn render_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!("and {count} more\n") }
}

/// A person's notes that fit into `limit`, oldest first, and their ids; the others wait for the next session.
///
/// A repair session does not act on notes, so it gets none.
pub(super) fn notes_section(input: &PromptInput<'_>, limit: usize) -> (Option<PromptSection<'static>>, Vec<String>) {
    const WORDS: &str =
        "## Notes\n\nThe person who runs this wrote these notes. Where they differ from the goal, the notes count.\n\n";
    if input.notes.is_empty() || input.role == Role::Repair {
        return (None, Vec::new());
    }
    let room = limit.saturating_sub(WORDS.len() + fence_overhead("notes") + 60);
    let mut lines = String::new();
    let mut shown = Vec::new();
    for note in input.notes.iter().take(MAX_NOTES) {
        let heading = format!("[{}]\n", one_line(&note.id, ITEM_LIMIT));
        let first = shown.is_empty().then(|| room.saturating_sub(heading.len() + 1));
        let whole = clean(&note.text);
        let cut = |limit| {
            ClipOptions { limit, head_eighths: 6, omitted_bytes: 0, hint: "; all of it: `.runner/state/notes.md`" }
                .apply(&whole)
                .text
        };
        let text = format!("{heading}{}\n", first.map_or_else(|| whole.clone(), cut).trim_end());
        if lines.len() + text.len() > room {
            break;
        }
        lines.push_str(&text);
        shown.push(note.id.clone());
    }
    let waiting = render_more(input.notes.len() - shown.len()).replace("more", "more, for the sessions after you");
    (Some(fixed_section("notes", format!("{WORDS}{}{waiting}", wrap_fenced("notes", &lines)))), shown)
}

/// The configured review criteria, within `limit`.
pub(super) fn criteria_section(input: &PromptInput<'_>, limit: usize) -> Option<PromptSection<'static>> {
    let criteria = clean(input.review.as_ref().map_or("", |ReviewMaterial { criteria, .. }| criteria));
    let text = render_quote(
        "criteria",
        "Besides goal and acceptance, this is asked:",
        criteria.trim(),
        limit.saturating_sub(12),
    );
    (!criteria.trim().is_empty()).then(|| fixed_section("criteria", format!("## Criteria\n{text}")))
}
