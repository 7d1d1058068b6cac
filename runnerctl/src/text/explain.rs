//! Renders `explain`: the leaf, why it is next, and a paragraph for each ending.

use std::fmt::Write as _;

use protocol::explain::{Ending, EndingView, ExplainReply, LeafView, NextView, RoleReason, StepView};
use protocol::view::StopReason;

use super::measure::{format_until, short_id};
use super::paint::{HEADING, paint, verdict_style};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::wrap::wrap_indented;

/// Width for wrapping text, if the terminal is not narrower.
const WIDTH: usize = 80;

/// Renders the whole answer.
pub(crate) fn render_explanation(reply: &ExplainReply, screen: &Screen) -> String {
    let page = ExplainPage { screen, width: screen.width.unwrap_or(WIDTH).min(WIDTH) };
    let mut text = page.render_headline(reply);
    if let Some(leaf) = &reply.leaf {
        text += &page.render_leaf(leaf);
    }
    if !reply.endings.is_empty() {
        let _ = writeln!(text, "\n{}", paint(HEADING, "If the session ends with"));
    }
    text + &reply.endings.iter().map(|ending| page.render_ending(ending)).collect::<String>()
}

struct ExplainPage<'a> {
    screen: &'a Screen,
    width: usize,
}

impl ExplainPage<'_> {
    fn render_headline(&self, reply: &ExplainReply) -> String {
        let run = reply.run.as_deref().unwrap_or("a run that has not started");
        let mut text = format!("iteration {:04} of {} from {}\n", reply.iter, sanitize(run), short_id(&reply.commit));
        if let Some(summary) = &reply.summary {
            let why = summary.reason.as_ref().map(|reason| format!(": {}", render_reason(reason))).unwrap_or_default();
            text += &self.wrap(0, &format!("the run {}{why}", summary.state.predicate()));
        }
        let reason = reply.summary.as_ref().and_then(|summary| summary.reason.as_ref());
        if next_reason(&reply.next)
            .is_some_and(|next| reason.is_some_and(|reason| reason.message.contains(&next.message)))
        {
            return text;
        }
        let next = self.describe_next(&reply.next);
        let sentence = if reply.after_resume { format!("once it is resumed it {next}") } else { format!("it {next}") };
        text + &self.wrap(0, &sentence)
    }

    fn render_leaf(&self, leaf: &LeafView) -> String {
        let node = &leaf.node;
        let mut text = format!("\n{}  {}\n", paint(HEADING, &sanitize(&node.id)), sanitize(&node.title));
        let steps: String = leaf.steps.iter().map(|step| self.wrap(2, &describe_step(step))).collect();
        text += if steps.is_empty() { "  the root has no subtasks: it is the only task\n" } else { &steps };
        text += &self.wrap(2, &describe_attempts(leaf));
        text + &self.wrap(2, &describe_role(leaf))
    }

    fn render_ending(&self, view: &EndingView) -> String {
        let verdict = paint(verdict_style(view.verdict), view.verdict.label());
        let detail = view.detail.as_ref().map(|detail| format!(": {}", sanitize(detail)));
        let detail = detail.filter(|_| view.ending == Ending::Broken).unwrap_or_default();
        let facts =
            [describe_commit(view), describe_tree(view), format!("attempts {}/{}", view.attempts, view.max_attempts)];
        let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
        let head = format!("\n  {} {verdict}\n", paint(HEADING, &format!("{}:", describe_ending(view.ending))));
        let body = self.wrap(4, &format!("{}{detail}", facts.join("; ")));
        head + &body + &self.wrap(4, &format!("then the run {}", self.describe_next(&view.next)))
    }

    fn describe_next(&self, next: &NextView) -> String {
        match next {
            NextView::GoesOn { node, role } => format!("continues with {} as {role}", sanitize(node)),
            NextView::Waits { until: time, reason } => {
                format!("waits until {}: {}", format_until(*time, self.screen), render_reason(reason))
            }
            NextView::WaitsForPerson { reason } => format!("waits: {}", render_reason(reason)),
            NextView::Pauses { reason } => format!("is {}", render_reason(reason)),
            NextView::Ends { state, reason } => format!("{}: {}", state.predicate(), render_reason(reason)),
        }
    }

    /// Wraps a text at its spaces; a word longer than the line stays whole.
    fn wrap(&self, indent: usize, text: &str) -> String {
        wrap_indented(indent, self.width, text)
    }
}

/// Returns why no session follows.
fn next_reason(next: &NextView) -> Option<&StopReason> {
    match next {
        NextView::GoesOn { .. } => None,
        NextView::Waits { reason, .. }
        | NextView::WaitsForPerson { reason }
        | NextView::Pauses { reason }
        | NextView::Ends { reason, .. } => Some(reason),
    }
}

fn render_reason(reason: &StopReason) -> String {
    let command = reason.command.as_ref().map(|command| format!(" ({})", sanitize(command)));
    format!("{}{}", sanitize(&reason.message), command.unwrap_or_default())
}

/// Why this leaf was selected.
fn describe_step(step: &StepView) -> String {
    let node = sanitize(&step.node);
    let parent = sanitize(&step.parent);
    match (step.passed_before, step.siblings) {
        (_, 1) => format!("{node} is the only child of {parent}"),
        (0, siblings) => format!("{node} is the first of {siblings} below {parent}"),
        (1, siblings) => format!("{node} is number 2 of {siblings} below {parent}; the one before it passes"),
        (before, siblings) => {
            format!("{node} is number {} of {siblings} below {parent}; the {before} before it pass", before + 1)
        }
    }
}

fn describe_attempts(leaf: &LeafView) -> String {
    let node = &leaf.node;
    if node.attempts >= node.max_attempts {
        return match node.max_attempts {
            1 => "its only attempt is used up".to_owned(),
            more => format!("its {more} attempts are used up"),
        };
    }
    let narrowing = if leaf.narrowing { "; narrowing it does not use up the last one" } else { "" };
    format!("attempt {} of {}{narrowing}", node.attempts + 1, node.max_attempts)
}

fn describe_role(leaf: &LeafView) -> String {
    let why = match leaf.role_reason {
        RoleReason::Repair => "a session on it has left an invalid task tree, and no valid answer has followed",
        RoleReason::Root => "it is the root",
        RoleReason::LastAttempt => "it is the last attempt",
        RoleReason::Leaf => "it is not the root, not the last attempt, and there is nothing to repair",
    };
    format!("{}: {why}", leaf.role_reason.role())
}

/// The part of the commit's first line that differs between endings.
fn describe_commit(view: &EndingView) -> String {
    match &view.subject {
        None => "no commit if nothing has changed".to_owned(),
        Some(subject) => sanitize(subject.rfind("status=").map_or(subject, |at| &subject[at..])),
    }
}

fn describe_tree(view: &EndingView) -> String {
    let list = |ids: &[String]| ids.iter().map(|id| sanitize(id)).collect::<Vec<_>>().join(", ");
    if view.subject.is_none() {
        String::new()
    } else if !view.passes.is_empty() {
        let verb = if view.passes.len() == 1 { "passes" } else { "pass" };
        format!("{} {verb}", list(&view.passes))
    } else if !view.gains.is_empty() {
        format!("adds {}", list(&view.gains))
    } else if view.tree_taken {
        "its task tree is accepted".to_owned()
    } else {
        "the task tree stays as it was".to_owned()
    }
}

fn describe_ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Green => "done, and the guard passes",
        Ending::Red => "done, but the guard fails",
        Ending::Rejected => "done, but the reviewer rejects it",
        Ending::Retry => "retry",
        Ending::Reworded => "retry, with a changed goal or acceptance",
        Ending::Decomposed => "decomposed into two children",
        Ending::Broken => "an answer that breaks a rule",
        Ending::InvalidTree => "an invalid task tree",
        Ending::ContextExceeded => "a full model context",
        Ending::Crash => "a crash, or no valid answer",
        Ending::Unavailable => "an unavailable service",
        Ending::Timeout => "no time left",
        Ending::Misconfigured => "a misconfigured agent",
        Ending::Interrupted => "`runnerctl pause --now`",
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use protocol::view::RunSummary;
    use protocol::words::{GuardOutcome, Role, VerdictName};

    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::text::samples;

    fn sample_reply() -> ExplainReply {
        let step = |parent: &str, node: &str, passed_before| StepView {
            node: node.into(),
            parent: parent.into(),
            passed_before,
            siblings: 3,
        };
        let ending = |ending, verdict| EndingView {
            ending,
            verdict,
            detail: None,
            subject: Some("chore(loop): run run-1a2b3c4d iter 0004 node parser.lex status=done guard=pass".into()),
            guard: GuardOutcome::Pass,
            tree_taken: true,
            attempts: 1,
            max_attempts: 3,
            passes: vec!["parser.lex".into(), "parser".into()],
            gains: Vec::new(),
            next: NextView::GoesOn { node: "printer".into(), role: Role::Worker },
        };
        let reason =
            StopReason::new("the model's service is not available: what the service says", "runnerctl resume --now");
        let unavailable = EndingView {
            subject: None,
            passes: Vec::new(),
            next: NextView::Waits { until: "2026-01-01T12:01:00Z".parse().expect("a time"), reason },
            ..ending(Ending::Unavailable, VerdictName::Unavailable)
        };
        ExplainReply {
            run: Some("run-1a2b3c4d".into()),
            summary: Some(samples::summary()),
            commit: "0123456789abcdef0123456789abcdef01234567".into(),
            iter: 4,
            next: NextView::GoesOn { node: "parser.lex".into(), role: Role::Worker },
            after_resume: false,
            leaf: Some(LeafView {
                node: samples::node(),
                steps: vec![step("root", "parser", 1), step("parser", "parser.lex", 0)],
                role_reason: RoleReason::Leaf,
                narrowing: false,
            }),
            endings: vec![ending(Ending::Green, VerdictName::Accepted), unavailable],
        }
    }

    #[test]
    fn leaf_reasons_and_endings_are_told_in_eighty_columns() {
        let text = strip_str(&render_explanation(&sample_reply(), &Screen::fixed())).to_string();
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_run_that_has_ended_says_why_once() {
        let reason = StopReason::new("every leaf of the task tree passes", "");
        let state = protocol::words::RunStatus::Completed;
        let summary = Some(RunSummary { state, reason: Some(reason.clone()), ..crate::text::samples::summary() });
        let next = NextView::Ends { state, reason };
        let reply = ExplainReply { summary, leaf: None, endings: Vec::new(), next, ..sample_reply() };
        insta::assert_snapshot!(strip_str(&render_explanation(&reply, &Screen::fixed())), @r"
        iteration 0004 of run-1a2b3c4d from 01234567
        the run is completed: every leaf of the task tree passes
        ");
    }

    #[test]
    fn a_run_that_waits_for_a_review_says_why_once() {
        let reason = StopReason::new("iteration 1 waits for your review", "runnerctl approve --iter 1");
        let state = protocol::words::RunStatus::Waiting;
        let summary = Some(RunSummary { state, reason: Some(reason.clone()), ..crate::text::samples::summary() });
        let next = NextView::WaitsForPerson { reason };
        let reply = ExplainReply { summary, leaf: None, endings: Vec::new(), next, ..sample_reply() };
        insta::assert_snapshot!(strip_str(&render_explanation(&reply, &Screen::fixed())), @r"
        iteration 0004 of run-1a2b3c4d from 01234567
        the run is waiting: iteration 1 waits for your review (runnerctl approve
          --iter 1)
        ");
    }

    #[test]
    fn a_tree_that_is_complete_has_no_leaf_and_no_endings() {
        let reason = StopReason::new("every task has passed", "");
        let state = protocol::words::RunStatus::Completed;
        let reply = ExplainReply {
            summary: None,
            leaf: None,
            endings: Vec::new(),
            next: NextView::Ends { state, reason },
            ..sample_reply()
        };
        insta::assert_snapshot!(strip_str(&render_explanation(&reply, &Screen::fixed())), @r"
        iteration 0004 of run-1a2b3c4d from 01234567
        it is completed: every task has passed
        ");
    }
}
