//! The steps of an agent as lines: what it says, starts and changes, and the results.

use anstyle::Style;
use protocol::event::{Activity, ActivityKind};

use crate::text::paint::{DIM, GOOD, HEADING, LIVE, PLAIN, WARN};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentStep {
    /// The iteration it belongs to.
    pub(crate) iter: u32,
    /// Its content.
    pub(crate) activity: Activity,
}

/// The rendering of a kind of step: its mark (and one for terminals without Unicode), style, and maximum number of
/// lines.
struct StepStyle {
    symbols: [&'static str; 2],
    style: Style,
    lines: usize,
}

fn step_style(what: ActivityKind) -> StepStyle {
    let (mark, style, lines) = match what {
        ActivityKind::Message => (["▪", "*"], PLAIN, 40),
        ActivityKind::Reasoning => (["·", "."], DIM, 6),
        ActivityKind::Tool => (["$", "$"], LIVE, 4),
        ActivityKind::ToolResult => (["└", "`"], DIM, 4),
        ActivityKind::FileChange => (["±", "~"], GOOD, 6),
        ActivityKind::Notice => (["!", "!"], WARN, 4),
    };
    StepStyle { symbols: mark, style, lines }
}

impl AgentStep {
    /// Returns its lines, each with its style; not yet sanitized.
    pub(crate) fn render_lines(&self, is_unicode: bool) -> Vec<(Style, String)> {
        let step_style = step_style(self.activity.what);
        let symbol = step_style.symbols[usize::from(!is_unicode)];
        let all: Vec<&str> = self.activity.text.trim_end().lines().collect();
        let visible = all.iter().take(step_style.lines).enumerate();
        let mut lines: Vec<(Style, String)> = visible
            .map(|(at, line)| (step_style.style, format!("{} {line}", if at == 0 { symbol } else { " " })))
            .collect();
        if all.len() > step_style.lines {
            lines.push((DIM, format!("  and {} more lines", all.len() - step_style.lines)));
        }
        lines
    }
}

/// Returns the line that separates the steps of two iterations.
pub(crate) fn iteration_divider(iter: u32) -> (Style, String) {
    (HEADING, format!("{iter:04}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered_lines(what: ActivityKind, text: &str, is_unicode: bool) -> Vec<String> {
        let step = AgentStep { iter: 1, activity: Activity { what, text: text.to_owned() } };
        step.render_lines(is_unicode).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_result_of_a_tool_is_cut_and_says_by_how_much() {
        let text: Vec<String> = (0..9).map(|n| format!("line {n}")).collect();
        let lines = rendered_lines(ActivityKind::ToolResult, &text.join("\n"), true);
        assert_eq!((lines[0].as_str(), lines[3].as_str()), ("└ line 0", "  line 3"));
        assert_eq!(lines[4..], ["  and 5 more lines"]);
    }

    #[test]
    fn each_kind_has_a_mark_that_ascii_can_show() {
        for what in [ActivityKind::Message, ActivityKind::Reasoning, ActivityKind::ToolResult, ActivityKind::FileChange]
        {
            assert!(rendered_lines(what, "x", false)[0].is_ascii(), "{what:?}");
        }
    }
}
