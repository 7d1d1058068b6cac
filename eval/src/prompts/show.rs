//! Renders the grid of the prompt trials for a terminal and as an HTML page. Pure.

use std::fmt::Write as _;

use protocol::sanitize::sanitize;

use super::{Cell, Decision, PromptGrid};
use crate::report::escape::escape_html;
use crate::report::html::render_page;
use crate::report::text::format_table;

/// Renders the grid for a terminal: a row per template, a column per input.
pub(super) fn render_text(grid: &PromptGrid) -> String {
    let mut lines = vec![std::iter::once("TEMPLATE".to_owned()).chain(grid.inputs.iter().cloned()).collect::<Vec<_>>()];
    for template in &grid.templates {
        let cells = cells_of(grid, template).map(|cell| sanitize(&describe_cell(cell)));
        lines.push(std::iter::once(sanitize(template)).chain(cells).collect());
    }
    let mut text = format_table(&lines);
    for cell in &grid.cells {
        let reply = cell.fault.as_deref().or(cell.summary.as_deref()).unwrap_or_default();
        let reply = reply.lines().next().unwrap_or_default();
        let _ = writeln!(text, "\n{} × {}: {}", sanitize(&cell.template), cell.input, sanitize(reply));
        for child in &cell.children {
            let _ = writeln!(text, "  - {}", sanitize(child));
        }
    }
    text
}

/// Renders the grid as an HTML page, with every answer in full.
pub(super) fn render_html(grid: &PromptGrid) -> String {
    let head = grid.inputs.iter().map(|input| format!("<th>{}</th>", escape_html(input))).collect::<Vec<_>>().concat();
    let mut body =
        format!("<p>Agent: {} {}</p>\n", escape_html(&grid.executor), escape_html(grid.model.as_deref().unwrap_or("")));
    let _ = writeln!(body, "<table><tr><th></th>{head}</tr>");
    for template in &grid.templates {
        let _ = write!(body, "<tr><th>{}</th>", escape_html(template));
        for cell in cells_of(grid, template) {
            let children = cell.children.iter().map(|child| format!("<li>{}</li>", escape_html(child)));
            let children = children.collect::<Vec<_>>().concat();
            let reply = cell.fault.as_deref().or(cell.summary.as_deref()).unwrap_or_default();
            let reply = reply.lines().map(escape_html).collect::<Vec<_>>().join("\n");
            let _ = write!(
                body,
                "<td><b>{}</b><pre>{reply}</pre><ul>{children}</ul></td>",
                escape_html(&describe_cell(cell))
            );
        }
        body.push_str("</tr>\n");
    }
    render_page(&format!("Prompts of the {}", grid.role.as_str()), &(body + "</table>\n"))
}

fn cells_of<'a>(grid: &'a PromptGrid, template: &'a str) -> impl Iterator<Item = &'a Cell> {
    grid.cells.iter().filter(move |cell| cell.template == template)
}

/// Returns the decision, whether it was expected, and its cost.
fn describe_cell(cell: &Cell) -> String {
    let decision = cell.decision.map_or("no answer", Decision::as_str);
    let expected = match cell.matches {
        Some(true) => " as expected",
        Some(false) => " NOT expected",
        None => "",
    };
    let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    let read = cell.usage.input_tokens.map(|tokens| tokens + cell.usage.cached_tokens.unwrap_or(0));
    let suffix = if cell.kept { ", kept" } else { "" };
    format!("{decision}{expected} ({}+{} tokens{suffix})", count(read), count(cell.usage.output_tokens))
}

#[cfg(test)]
mod tests {
    use protocol::answer::SessionUsage;

    use super::super::LabRole;
    use super::*;

    #[test]
    fn a_grid_has_a_row_per_template_and_says_what_was_not_expected() {
        let cell = |template: &str, decision, matches| Cell {
            template: template.into(),
            input: "typo".into(),
            digest: String::new(),
            decision,
            expected: Some(Decision::Done),
            matches,
            verdict: None,
            summary: decision.map(|_| "Said <b>so</b>.".to_owned()),
            children: Vec::new(),
            usage: SessionUsage { input_tokens: Some(10), ..SessionUsage::default() },
            fault: decision.is_none().then(|| "no answer: Fault".to_owned()),
            kept: false,
        };
        let grid = PromptGrid {
            schema: "runner/eval-prompts.v1",
            role: LabRole::Planner,
            executor: "codex".into(),
            model: None,
            templates: vec!["built-in".into(), "a.md".into()],
            inputs: vec!["typo".into()],
            cells: vec![cell("built-in", Some(Decision::Retry), Some(false)), cell("a.md", None, None)],
        };
        insta::assert_snapshot!(render_text(&grid), @r"
        TEMPLATE  typo
        built-in  retry NOT expected (10+? tokens)
        a.md      no answer (10+? tokens)

        built-in × typo: Said <b>so</b>.

        a.md × typo: no answer: Fault
        ");
        assert!(render_html(&grid).contains("Said &lt;b&gt;so&lt;/b&gt;."));
    }
}
