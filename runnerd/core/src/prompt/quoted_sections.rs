//! The sections that can be shortened: the project's goal, what earlier sessions left, the tree, the diff under review.

use protocol::state::{Attempt, Failure, NodeFeedback};
use protocol::words::VerdictName;

use super::section::{PromptSection, SectionMaterial, SectionText};
use super::{PromptInput, selected_node};
use crate::files::layout::PROGRESS_HEADING;
use crate::text::clip::truncate_text;
use crate::text::fence::{clean, one_line};
use crate::tree::outline::TreeOutline;

/// Most bytes of a memory file that are read, from its end.
const MEMORY_LIMIT: usize = 16 * 1024;
/// Most bytes of the list of passed nodes, from its end: it must not take room from what sessions have learned.
const PROGRESS_LIMIT: usize = 8 * 1024;
/// Most bytes of what an attempt did.
const ATTEMPT_LIMIT: usize = 320;
/// The file with the failures in full.
const FAILURE_FILE: &str = ".runner/context/failure.md";

/// A section with foreign text; `words` is its heading and the runner's introduction.
struct QuotedSection {
    name: &'static str,
    intro: String,
    full_file: &'static str,
    head_eighths: usize,
    min_bytes: usize,
}

impl QuotedSection {
    /// Quotes the text, if there is any.
    fn quote(self, text: &str) -> Option<PromptSection<'static>> {
        self.quote_tail(text, 0)
    }

    /// Quotes the remainder of a text from which the first `before` bytes were cut.
    fn quote_tail(self, text: &str, before: usize) -> Option<PromptSection<'static>> {
        let body = clean(text).trim_end().to_owned();
        if body.trim().is_empty() {
            return None;
        }
        let material = SectionMaterial::Text(SectionText {
            body,
            omitted_bytes: before,
            head_eighths: self.head_eighths,
            hint: format!("; all of it: `{}`", self.full_file),
        });
        Some(PromptSection { name: self.name, intro: self.intro, material, min_bytes: self.min_bytes })
    }
}

/// The body of `GOAL.md`.
pub(super) fn goal_section<'a>(input: &PromptInput<'a>) -> Option<PromptSection<'a>> {
    let words = "## Goal of the project\n".to_owned();
    QuotedSection { name: "goal", intro: words, full_file: ".runner/GOAL.md", head_eighths: 6, min_bytes: 900 }
        .quote(input.goal_body)
}

/// Past sessions on the node, newest last.
pub(super) fn history_section<'a>(input: &PromptInput<'a>) -> Option<PromptSection<'a>> {
    let attempts = node_feedback(input).map_or(&[][..], |feedback| &feedback.history);
    let line = |attempt: &Attempt| {
        let summary = clean(attempt.summary.as_deref().unwrap_or("(no summary)"));
        let summary: String = summary.lines().flat_map(|line| ["  ", line, "\n"]).collect();
        format!("iteration {} {}\n{summary}", attempt.iter, describe_attempt(attempt))
    };
    let text: String = attempts.iter().map(line).collect();
    let words =
        "## History of this task\n\nEarlier sessions on it, oldest first, each with its end and its own summary:\n"
            .to_owned();
    QuotedSection {
        name: "history",
        intro: words,
        full_file: ".runner/context/history.md",
        head_eighths: 2,
        min_bytes: 500,
    }
    .quote(&text)
}

/// Returns what an attempt did, in one line.
pub(crate) fn describe_attempt(Attempt { verdict, detail, .. }: &Attempt) -> String {
    let words = match verdict {
        VerdictName::RedGuard => {
            let (end, names) = detail.as_deref().unwrap_or("red").split_once(": ").unzip();
            let end = end.or(detail.as_deref()).unwrap_or("no exit code");
            let names = names.map(|names| format!(": {names}")).unwrap_or_default();
            return one_line(&format!("claimed done; the checks failed ({end}){names}"), ATTEMPT_LIMIT);
        }
        VerdictName::Rejected => "claimed done; the checks passed, and the review rejected it",
        VerdictName::Broken => "broke a rule",
        VerdictName::Retry => "asked for another session",
        VerdictName::Narrowed => "made the task smaller",
        VerdictName::Fault => "ended without a usable answer",
        VerdictName::Timeout => "ran out of time",
        VerdictName::Accepted | VerdictName::Pending => "claimed done; the checks passed",
        VerdictName::Decomposed => "divided the task",
        VerdictName::Unavailable | VerdictName::Misconfigured | VerdictName::Interrupted => "did not finish",
    };
    let detail = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    one_line(&format!("{words}{detail}"), ATTEMPT_LIMIT)
}

/// The failures that are not overcome yet, oldest first, each in its own section, and the tree if it was unusable.
pub(super) fn failure_sections<'a>(input: &PromptInput<'a>) -> Vec<PromptSection<'a>> {
    let failures = node_feedback(input).map_or(&[][..], |feedback| &feedback.failures);
    failures.iter().flat_map(|failure| [evidence_section(failure), invalid_tree_section(failure)]).flatten().collect()
}

fn evidence_section(failure: &Failure) -> Option<PromptSection<'static>> {
    let (name, min_bytes, heading, words) = describe_failure(failure.verdict);
    let intro = format!("## {heading}\n\nIteration {} {words}\n", failure.iter);
    let text = if failure.text.trim().is_empty() { "(nothing)" } else { &failure.text };
    QuotedSection { name, intro, full_file: FAILURE_FILE, head_eighths: 4, min_bytes }.quote(text)
}

fn invalid_tree_section(failure: &Failure) -> Option<PromptSection<'static>> {
    let intro = "## The task tree that could not be used\n\nAs that session left it, from its beginning:\n".to_owned();
    let name = "invalid-tree";
    let full_file = FAILURE_FILE;
    let quote = QuotedSection { name, intro, full_file, head_eighths: 4, min_bytes: 500 };
    failure.invalid_tree.as_ref().and_then(|text| quote.quote(text))
}

/// Returns the name of the section that tells a failure, the bytes that it keeps, its heading, and what the iteration did.
fn describe_failure(verdict: VerdictName) -> (&'static str, usize, &'static str, &'static str) {
    match verdict {
        VerdictName::RedGuard => (
            "failure",
            1300,
            "The checks failed",
            "claimed that the task is done, but the checks failed, and they have not passed since. Their output:",
        ),
        VerdictName::Rejected => (
            "rejection",
            900,
            "The review rejected the work",
            "claimed that the task is done and the checks passed, but the review rejected it, and none has accepted it \
             since. The reasons:",
        ),
        VerdictName::Broken => (
            "broken-rule",
            600,
            "A rule was broken",
            "broke a rule, so its changes to the task tree were not taken; what it changed elsewhere is still there, unless \
             it rewrote history. What was seen:",
        ),
        VerdictName::Timeout => (
            "session-end",
            300,
            "The time ran out",
            "had no time left; what it changed is still there. What was running:",
        ),
        VerdictName::Accepted
        | VerdictName::Pending
        | VerdictName::Retry
        | VerdictName::Narrowed
        | VerdictName::Decomposed
        | VerdictName::Fault
        | VerdictName::Unavailable
        | VerdictName::Misconfigured
        | VerdictName::Interrupted => (
            "session-end",
            300,
            "No answer",
            "ended without an answer that could be used or checked; what it changed is still there. What happened:",
        ),
    }
}

/// The nodes that have passed.
pub(super) fn progress_section<'a>(input: &PromptInput<'a>) -> Option<PromptSection<'a>> {
    let lines = input.progress.strip_prefix(PROGRESS_HEADING).unwrap_or(input.progress);
    let words = "## Done so far\n\nOne line for each task that passed, oldest first:\n".to_owned();
    let quote = QuotedSection {
        name: "progress",
        intro: words,
        full_file: ".runner/state/progress.md",
        head_eighths: 0,
        min_bytes: 600,
    };
    quote_newest(quote, lines, PROGRESS_LIMIT)
}

/// The rest of the tree.
pub(super) fn outline_section<'a>(input: &PromptInput<'a>) -> Option<PromptSection<'a>> {
    let outline = TreeOutline::new(input.tree, input.node);
    let words = "## Outline of the task tree\n\n`[>]` is your task, `[x]` passes.\n";
    let is_worth_it = outline.has_others();
    let section = PromptSection {
        name: "outline",
        intro: words.to_owned(),
        material: SectionMaterial::Outline(outline),
        min_bytes: 0,
    };
    is_worth_it.then_some(section)
}

/// What sessions left for those of all tasks: guardrails, assumptions, questions; the newest part is kept.
pub(super) fn memory_sections<'a>(input: &PromptInput<'a>) -> [Option<PromptSection<'a>>; 3] {
    let quote = |name, words: &str, (full_file, min_bytes), text| {
        let quote = QuotedSection { name, intro: words.to_owned(), full_file, head_eighths: 0, min_bytes };
        quote_newest(quote, text, MEMORY_LIMIT)
    };
    let memory = &input.memory;
    let guardrails = (".runner/state/guardrails.md", 1200);
    let assumptions = (".runner/state/assumptions.md", 600);
    let questions = (".runner/state/questions.md", 600);
    [
        quote("guardrails", "## What earlier sessions learnt\n", guardrails, memory.guardrails),
        quote("assumptions", "## Assumptions made so far\n", assumptions, memory.assumptions),
        quote("questions", "## Questions to a person, and answers\n", questions, memory.questions),
    ]
}

/// What sessions left for those of this task.
pub(super) fn context_section<'a>(input: &PromptInput<'a>) -> Option<PromptSection<'a>> {
    let quote = QuotedSection {
        name: "context",
        intro: "## Left for this task by earlier sessions\n".to_owned(),
        full_file: ".runner/nodes/<id>/context.md",
        head_eighths: 0,
        min_bytes: 1200,
    };
    quote_newest(quote, input.node_context.unwrap_or_default(), MEMORY_LIMIT)
}

/// Quotes the end of a text of any size, if it has more than headings.
fn quote_newest(quote: QuotedSection, text: &str, limit: usize) -> Option<PromptSection<'static>> {
    let is_heading = |line: &str| line.trim().is_empty() || line.starts_with('#');
    if text.lines().all(is_heading) {
        return None;
    }
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    quote.quote_tail(&text[start..], start)
}

/// What changed since the session under review began.
pub(super) fn diff_section<'a>(input: &PromptInput<'a>) -> PromptSection<'a> {
    let from = one_line(input.review.map_or("", |review| review.from), 64);
    let words = format!("## The change under review\n\nSince `{from}`, without `.runner/`:\n");
    let diff = clean(input.review.map_or("", |review| review.diff));
    let body = if diff.trim().is_empty() { "(nothing changed)".to_owned() } else { diff };
    let hint = "; all of it: `git diff`".to_owned();
    let material = SectionMaterial::Text(SectionText { body, omitted_bytes: 0, head_eighths: 6, hint });
    PromptSection { name: "diff", intro: truncate_text(&words, 200), material, min_bytes: 0 }
}

fn node_feedback<'a>(input: &PromptInput<'a>) -> Option<&'a NodeFeedback> {
    input.feedback.nodes.get(&selected_node(input).id)
}
