//! How `explain` looks: the leaf, why it is that, and a paragraph for each ending.

use std::fmt::Write as _;

use protocol::explain::{Ending, EndingView, ExplainReply, LeafView, NextView, RoleReason, StepView};
use protocol::view::StopReason;

use super::measure::{short, until};
use super::paint::{HEAD, of_verdict, paint};
use super::sanitize::safe;
use super::screen::Screen;
use super::wrap::flowed;

/// Columns that text is wrapped to where the terminal is not narrower.
const WIDTH: usize = 80;

/// Renders the whole answer.
pub(crate) fn explanation(reply: &ExplainReply, screen: &Screen) -> String {
    let page = ExplainPage { screen, width: screen.width.unwrap_or(WIDTH).min(WIDTH) };
    let mut text = page.headline(reply);
    if let Some(leaf) = &reply.leaf {
        text += &page.leaf(leaf);
    }
    if !reply.endings.is_empty() {
        let _ = writeln!(text, "\n{}", paint(HEAD, "If the session ends with"));
    }
    text + &reply.endings.iter().map(|ending| page.ending(ending)).collect::<String>()
}

struct ExplainPage<'a> {
    screen: &'a Screen,
    width: usize,
}

impl ExplainPage<'_> {
    fn headline(&self, reply: &ExplainReply) -> String {
        let run = reply.run.as_deref().unwrap_or("a run that has not started");
        let mut text = format!("iteration {:04} of {} from {}\n", reply.iter, safe(run), short(&reply.commit));
        if let Some(summary) = &reply.summary {
            let why = summary.reason.as_ref().map(|reason| format!(": {}", said(reason))).unwrap_or_default();
            text += &self.wrapped(0, &format!("the run is {}{why}", summary.state));
        }
        let then = self.next(&reply.next);
        let told = if reply.after_resume { format!("once it is resumed it {then}") } else { format!("it {then}") };
        text + &self.wrapped(0, &told)
    }

    fn leaf(&self, leaf: &LeafView) -> String {
        let node = &leaf.node;
        let mut text = format!("\n{}  {}\n", paint(HEAD, &safe(&node.id)), safe(&node.title));
        let way: String = leaf.steps.iter().map(|step| self.wrapped(2, &place(step))).collect();
        text += if way.is_empty() { "  the root has no children: it is the only leaf\n" } else { &way };
        text += &self.wrapped(2, &attempts(leaf));
        text + &self.wrapped(2, &role(leaf))
    }

    fn ending(&self, view: &EndingView) -> String {
        let verdict = paint(of_verdict(view.verdict), view.verdict.plain());
        let detail = view.detail.as_ref().map(|detail| format!(": {}", safe(detail)));
        let detail = detail.filter(|_| view.ending == Ending::Broken).unwrap_or_default();
        let facts = [commit(view), tree(view), format!("attempts {}/{}", view.attempts, view.max_attempts)];
        let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
        let head = format!("\n  {} {verdict}\n", paint(HEAD, &format!("{}:", words(view.ending))));
        let body = self.wrapped(4, &format!("{}{detail}", facts.join("; ")));
        head + &body + &self.wrapped(4, &format!("then the run {}", self.next(&view.next)))
    }

    fn next(&self, next: &NextView) -> String {
        match next {
            NextView::GoesOn { node, role } => format!("goes on with {} as {role}", safe(node)),
            NextView::Waits { until: time, reason } => {
                format!("waits until {}: {}", until(*time, self.screen), said(reason))
            }
            NextView::WaitsForPerson { reason } => format!("waits: {}", said(reason)),
            NextView::Pauses { reason } => format!("is {}", said(reason)),
            NextView::Ends { state, reason } => format!("is {state}: {}", said(reason)),
        }
    }

    /// Breaks a text at its spaces; what has none is longer than the line.
    fn wrapped(&self, indent: usize, text: &str) -> String {
        flowed(indent, self.width, text)
    }
}

fn said(reason: &StopReason) -> String {
    let command = reason.command.as_ref().map(|command| format!(" ({})", safe(command)));
    format!("{}{}", safe(&reason.message), command.unwrap_or_default())
}

/// Why selection goes this way.
fn place(step: &StepView) -> String {
    let (node, parent) = (safe(&step.node), safe(&step.parent));
    match (step.passed_before, step.siblings) {
        (_, 1) => format!("{node} is the only child of {parent}"),
        (0, siblings) => format!("{node} is the first of {siblings} below {parent}"),
        (1, siblings) => format!("{node} is number 2 of {siblings} below {parent}; the one before it passes"),
        (before, siblings) => {
            format!("{node} is number {} of {siblings} below {parent}; the {before} before it pass", before + 1)
        }
    }
}

fn attempts(leaf: &LeafView) -> String {
    let node = &leaf.node;
    if node.attempts >= node.max_attempts {
        return format!("its {} attempts are used up", node.max_attempts);
    }
    let narrowing = if leaf.narrowing { "; narrowing it does not use up the last one" } else { "" };
    format!("attempt {} of {}{narrowing}", node.attempts + 1, node.max_attempts)
}

fn role(leaf: &LeafView) -> String {
    let why = match leaf.role_reason {
        RoleReason::Repair => "a session on it has left an invalid task tree, and no valid answer has followed",
        RoleReason::Root => "it is the root",
        RoleReason::LastAttempt => "it is the last attempt",
        RoleReason::Leaf => "it is not the root, not the last attempt, and there is nothing to repair",
    };
    format!("{}: {why}", leaf.role_reason.role())
}

/// The part of the commit's first line that differs between endings.
fn commit(view: &EndingView) -> String {
    match &view.subject {
        None => "no commit if nothing has changed".to_owned(),
        Some(subject) => safe(subject.rfind("status=").map_or(subject, |at| &subject[at..])),
    }
}

fn tree(view: &EndingView) -> String {
    let list = |ids: &[String]| ids.iter().map(|id| safe(id)).collect::<Vec<_>>().join(", ");
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

fn words(ending: Ending) -> &'static str {
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
    use protocol::words::{GuardOutcome, Role, VerdictName};

    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::text::samples;

    fn sample() -> ExplainReply {
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
        let text = strip_str(&explanation(&sample(), &Screen::fixed())).to_string();
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_tree_that_is_complete_has_no_leaf_and_no_endings() {
        let reason = StopReason::new("every leaf of the task tree passes", "");
        let state = protocol::words::RunStatus::Completed;
        let reply = ExplainReply {
            summary: None,
            leaf: None,
            endings: Vec::new(),
            next: NextView::Ends { state, reason },
            ..sample()
        };
        insta::assert_snapshot!(strip_str(&explanation(&reply, &Screen::fixed())), @r"
        iteration 0004 of run-1a2b3c4d from 01234567
        it is completed: every leaf of the task tree passes
        ");
    }
}
