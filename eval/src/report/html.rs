//! Renders reports as self-contained HTML pages: no script, no font, no external URL. Pure.

use std::fmt::Write as _;

use super::compare::Comparison;
use super::escape::escape_html;
use super::plot;
use super::text::{
    describe_difference, format_cost, format_interval, format_outcomes, format_seconds, format_share, format_spread,
    format_tokens,
};
use super::{Report, Row};
use crate::results::ResultEntry;

const STYLE: &str = include_str!("page.css");

/// Returns a whole page.
pub(crate) fn render_page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{title}</h1>\n{body}</html>\n",
        title = escape_html(title)
    )
}

/// Returns the page of a report; `entries` are the results behind it.
pub(crate) fn render_report(report: &Report, entries: &[ResultEntry]) -> String {
    let rows: Vec<&Row> = report.rows.iter().collect();
    let rates: Vec<_> = rows.iter().chain(&report.total.as_ref()).map(|row| (plot::row_name(row), row.rate)).collect();
    let mut body = format!("<p>{} results.</p>\n", report.results);
    body.push_str(&plot::plot_rates(&rates));
    body.push_str(&plot::plot_outcomes(&rows));
    body.push_str(&render_legend());
    let mut cases: Vec<&str> = entries.iter().map(|entry| entry.meta.case.as_str()).collect();
    cases.sort_unstable();
    cases.dedup();
    let values_by_case = |value: &dyn Fn(&ResultEntry) -> Option<f64>| {
        let line = |case: &&str| {
            let runs = entries.iter().filter(|entry| entry.meta.case == **case);
            ((*case).to_owned(), runs.filter_map(value).collect())
        };
        cases.iter().map(line).collect::<Vec<(String, Vec<f64>)>>()
    };
    let run = |entry: &ResultEntry| entry.meta.run.clone();
    body.push_str(&plot::plot_dots(
        "Iterations of each run",
        "",
        &values_by_case(&|entry| Some(super::to_f64(run(entry)?.iterations))),
    ));
    body.push_str(&plot::plot_dots(
        "Time of each run",
        "s",
        &values_by_case(&|entry| Some(super::to_f64(run(entry)?.wall_ms) / 1e3)),
    ));
    body.push_str("<h2>Numbers</h2>\n");
    body.push_str(&render_table(&rows.iter().copied().chain(&report.total).collect::<Vec<_>>()));
    body.push_str(&render_checks(&rows));
    render_page("runner-eval report", &body)
}

fn render_legend() -> String {
    let items = crate::outcome::Outcome::ALL;
    let items = items.map(|outcome| format!("<span><i class=\"{outcome}\"></i>{outcome}</span>"));
    format!("<p class=\"legend\">{}</p>\n", items.join(" "))
}

fn render_table(rows: &[&Row]) -> String {
    let head = ["case", "runs", "as expected", "95 %", "outcomes", "iterations", "attempts", "tokens", "cost", "time"];
    let mut text = format!("<table><tr>{}</tr>\n", head.map(|cell| format!("<th>{cell}</th>")).concat());
    for row in rows {
        let cells = [
            plot::row_name(row),
            row.runs.to_string(),
            row.rate.map_or_else(|| "–".into(), format_share),
            row.rate.map_or_else(|| "–".into(), format_interval),
            format_outcomes(row),
            format_spread(row.iterations),
            format_spread(row.attempts),
            format_tokens(row),
            format_cost(row.cost_usd),
            row.seconds.map_or_else(|| "–".into(), |spread| format_seconds(spread.median)),
        ];
        let _ = writeln!(text, "<tr>{}</tr>", cells.map(|cell| format!("<td>{}</td>", escape_html(&cell))).concat());
    }
    text + "</table>\n"
}

fn render_checks(rows: &[&Row]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        lines.extend(
            row.checks.iter().map(|check| (format!("{}: {}", plot::row_name(row), check.name), Some(check.rate))),
        );
    }
    let mut text =
        if lines.is_empty() { String::new() } else { format!("<h2>Checks</h2>\n{}", plot::plot_rates(&lines)) };
    let has_reasons = |row: &&&Row| !row.reasons.is_empty();
    for row in rows.iter().filter(has_reasons) {
        let _ = write!(text, "<h3>{}</h3><ul>", escape_html(&plot::row_name(row)));
        for reason in &row.reasons {
            let _ = write!(text, "<li>{} ×: {}</li>", reason.count, escape_html(&reason.text));
        }
        text.push_str("</ul>\n");
    }
    text
}

/// Returns the page of a comparison.
pub(crate) fn render_comparison(comparison: &Comparison) -> String {
    let mut rates = Vec::new();
    let mut rows = Vec::new();
    for pair in &comparison.cases {
        for (name, row) in [(&comparison.a, &pair.a), (&comparison.b, &pair.b)] {
            let row = Row { group: Some(name.clone()), ..row.clone() };
            rates.push((plot::row_name(&row), row.rate));
            rows.push(row);
        }
    }
    let mut body = format!("<p class=\"verdict\">{}</p>\n", escape_html(&describe_difference(comparison.overall)));
    body.push_str(&plot::plot_rates(&rates));
    let rows: Vec<&Row> = rows.iter().collect();
    body.push_str(&plot::plot_outcomes(&rows));
    body.push_str(&render_legend());
    body.push_str("<h2>Differences</h2>\n<ul>");
    for pair in &comparison.cases {
        let _ = write!(
            body,
            "<li>{}: {}</li>",
            escape_html(&pair.case),
            escape_html(&describe_difference(pair.difference))
        );
    }
    body.push_str("</ul>\n<h2>Numbers</h2>\n");
    body.push_str(&render_table(&rows));
    render_page(&format!("{} against {}", comparison.b, comparison.a), &body)
}

#[cfg(test)]
mod tests {
    use super::super::build_report as make;
    use super::super::compare::compare_sets;
    use super::super::samples::sample_entry;
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn a_page_needs_nothing_but_itself_and_obeys_no_text() {
        let mut hostile = sample_entry("a", Outcome::Fail);
        hostile.meta.reason = Some("<script>alert(1)</script>".into());
        hostile.meta.label = Some("\"><img src=x>".into());
        let entries = [hostile, sample_entry("b", Outcome::Success)];
        let page = render_report(&make(&entries, Some(super::super::GroupBy::Label), None), &entries);
        assert!(page.contains("&lt;script&gt;") && page.contains("<svg"), "{page}");
        for word in ["<script", "http://", "https://", "<img", "url("] {
            assert!(!page.contains(word), "{word}");
        }
        let other = render_comparison(&compare_sets(["<a>", "b"], &entries, &entries));
        assert!(other.contains("&lt;a&gt;") && !other.contains("<a>"));
    }
}
