//! The sections that give way: the project's goal, what earlier sessions left, the tree, the diff under review.

use protocol::state::{Failure, NodeFeedback};
use protocol::words::VerdictName;

use super::section::{Material, Section, Text};
use super::{PromptInput, selected};
use crate::clip::fit;
use crate::fence::{clean, one_line};
use crate::layout::PROGRESS_HEADING;
use crate::outline::Outline;

/// The most bytes of a memory file that are looked at, from its end.
const MEMORY_LIMIT: usize = 16 * 1024;
/// The most bytes of the list of what has passed, from its end: it may not take the room of what sessions have learnt.
const PROGRESS_LIMIT: usize = 8 * 1024;

/// A section of somebody's text; `words` is its heading, and what the runner says of it.
struct Quote {
    name: &'static str,
    words: String,
    whole: &'static str,
    head_eighths: usize,
    floor: usize,
}

impl Quote {
    /// Quotes the text, if there is any.
    fn of(self, text: &str) -> Option<Section<'static>> {
        self.tail_of(text, 0)
    }

    /// Quotes what is left of a text from whose front `before` bytes were left out.
    fn tail_of(self, text: &str, before: usize) -> Option<Section<'static>> {
        let body = clean(text).trim_end().to_owned();
        if body.trim().is_empty() {
            return None;
        }
        let material = Material::Text(Text { body, before, head_eighths: self.head_eighths, whole: self.whole });
        Some(Section { name: self.name, words: self.words, material, floor: self.floor })
    }
}

/// The body of `GOAL.md`.
pub(super) fn goal<'a>(input: &PromptInput<'a>) -> Option<Section<'a>> {
    let words = "## Goal of the project\n\nAll nodes together are to reach this:\n".to_owned();
    Quote { name: "goal", words, whole: ".runner/GOAL.md", head_eighths: 6, floor: 900 }.of(input.goal_body)
}

/// Past sessions on the node, newest last.
pub(super) fn history<'a>(input: &PromptInput<'a>) -> Option<Section<'a>> {
    let attempts = feedback(input).map_or(&[][..], |feedback| &feedback.history);
    let line = |attempt: &protocol::state::Attempt| {
        let summary = clean(attempt.summary.as_deref().unwrap_or("(no summary)"));
        let summary: String = summary.lines().flat_map(|line| ["  ", line, "\n"]).collect();
        format!("iteration {:04}: {}\n{summary}", attempt.iter, attempt.verdict)
    };
    let text: String = attempts.iter().map(line).collect();
    let words =
        "## History of this node\n\nEarlier sessions on it, oldest first, each with its verdict and its own summary:\n"
            .to_owned();
    Quote { name: "history", words, whole: ".runner/context/history.md", head_eighths: 2, floor: 500 }.of(&text)
}

/// Why the last attempt that came to a judgement did not pass: the evidence, and the tree that could not be used.
pub(super) fn failure<'a>(input: &PromptInput<'a>) -> [Option<Section<'a>>; 2] {
    let Some(NodeFeedback { history, failure: Some(failure) }) = feedback(input) else { return [None, None] };
    let Failure { verdict, text, invalid_tree } = failure;
    let whole = ".runner/context/failure.md";
    let is_of_last = history.last().is_none_or(|last| last.verdict == *verdict);
    let head = if is_of_last { OF_LAST } else { OF_EARLIER };
    let words = format!("{head}{}\n", said_of(*verdict));
    let evidence = Quote { name: "failure", words, whole, head_eighths: 4, floor: 1300 };
    let words =
        "## The task tree that could not be used\n\nAs the last session left it, from its beginning:\n".to_owned();
    let invalid = Quote { name: "invalid-tree", words, whole, head_eighths: 4, floor: 500 };
    let text = if text.trim().is_empty() { "(nothing)" } else { text };
    [evidence.of(text), invalid_tree.as_ref().and_then(|text| invalid.of(text))]
}

const OF_LAST: &str = "## Failure of the last attempt\n\n";
const OF_EARLIER: &str = "## Failure that is not mended yet\n\nAn earlier session failed, and no guard or review since then has shown that it is mended. ";

fn said_of(verdict: VerdictName) -> &'static str {
    match verdict {
        VerdictName::RedGuard => "It answered `done`, but the guard did not exit 0. What the guard printed:",
        VerdictName::Rejected => {
            "It answered `done` and the guard exited 0, but the reviewer rejected it. The reasons:"
        }
        VerdictName::Broken => {
            "It broke a rule, so its changes to the task tree were not taken; what it changed elsewhere is still there, unless \
             it rewrote history. What was seen:"
        }
        VerdictName::Retry | VerdictName::Narrowed => "It asked for another session. What it said:",
        VerdictName::Fault => {
            "It ended without an answer that could be used or checked; what it changed is still there. What happened:"
        }
        VerdictName::Timeout => "Its time ran out; what it changed is still there. What was running:",
        VerdictName::Accepted
        | VerdictName::Pending
        | VerdictName::Decomposed
        | VerdictName::Unavailable
        | VerdictName::Misconfigured
        | VerdictName::Interrupted => "It did not finish. What is known:",
    }
}

/// What has passed.
pub(super) fn progress<'a>(input: &PromptInput<'a>) -> Option<Section<'a>> {
    let lines = input.progress.strip_prefix(PROGRESS_HEADING).unwrap_or(input.progress);
    let words = "## Done so far\n\nOne line for each node that passed, oldest first:\n".to_owned();
    let quote = Quote { name: "progress", words, whole: ".runner/state/progress.md", head_eighths: 0, floor: 600 };
    newest(quote, lines, PROGRESS_LIMIT)
}

/// The rest of the tree.
pub(super) fn outline<'a>(input: &PromptInput<'a>) -> Option<Section<'a>> {
    let outline = Outline::new(input.tree, input.node);
    let words = "## Outline of the task tree\n\n`[>]` is your node, `[x]` passes, `[ ]` is open. Leaves are done from top to bottom; the \
                 whole is in `.runner/state/tree.json`.\n";
    let is_worth_it = outline.has_others();
    let section = Section { name: "outline", words: words.to_owned(), material: Material::Outline(outline), floor: 0 };
    is_worth_it.then_some(section)
}

/// What sessions left for others: the node's context, guardrails, assumptions, questions; the newest is kept.
pub(super) fn memory<'a>(input: &PromptInput<'a>) -> [Option<Section<'a>>; 4] {
    let quote = |name, words: &str, (whole, floor)| {
        let words = words.to_owned();
        Quote { name, words, whole, head_eighths: 0, floor }
    };
    let of_node = (".runner/nodes/<id>/context.md", 1200);
    let context = quote("context", "## Left for this node by earlier sessions\n", of_node);
    let rules = (".runner/state/guardrails.md", 1200);
    let guardrails = quote("guardrails", "## Guardrails: what sessions learnt the hard way\n", rules);
    let assumptions = quote("assumptions", "## Assumptions made so far\n", (".runner/state/assumptions.md", 600));
    let questions = quote("questions", "## Questions to a person, and answers\n", (".runner/state/questions.md", 600));
    [
        newest(context, input.node_context.unwrap_or_default(), MEMORY_LIMIT),
        newest(guardrails, input.memory.guardrails, MEMORY_LIMIT),
        newest(assumptions, input.memory.assumptions, MEMORY_LIMIT),
        newest(questions, input.memory.questions, MEMORY_LIMIT),
    ]
}

/// Quotes the end of a text that may be of any size.
fn newest(quote: Quote, text: &str, limit: usize) -> Option<Section<'static>> {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    quote.tail_of(&text[start..], start)
}

/// What changed since the session under review began.
pub(super) fn diff<'a>(input: &PromptInput<'a>) -> Section<'a> {
    let from = one_line(input.review.map_or("", |review| review.from), 64);
    let words = format!("## The change under review\n\nSince `{from}`, without `.runner/`:\n");
    let diff = clean(input.review.map_or("", |review| review.diff));
    let body = if diff.trim().is_empty() { "(nothing changed)".to_owned() } else { diff };
    let material = Material::Text(Text { body, before: 0, head_eighths: 6, whole: "git diff" });
    Section { name: "diff", words: fit(&words, 200), material, floor: 0 }
}

fn feedback<'a>(input: &PromptInput<'a>) -> Option<&'a NodeFeedback> {
    input.feedback.nodes.get(&selected(input).id)
}
