//! Renders reports as self-contained HTML pages: no script, no font, no external URL. Pure.

use std::fmt::Write as _;

use super::compare::Comparison;
use super::escape::escape;
use super::plot;
use super::text::{cost, interval, outcomes, seconds, share, tokens, told, whole};
use super::{Report, Row};
use crate::results::ResultEntry;

const STYLE: &str = include_str!("page.css");

/// Returns a whole page.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{title}</h1>\n{body}</html>\n",
        title = escape(title)
    )
}

/// Returns the page of a report; `entries` are the results behind it.
pub(crate) fn report(report: &Report, entries: &[ResultEntry]) -> String {
    let rows: Vec<&Row> = report.rows.iter().collect();
    let rates: Vec<_> = rows.iter().chain(&report.total.as_ref()).map(|row| (plot::named(row), row.rate)).collect();
    let mut body = format!("<p>{} results.</p>\n", report.results);
    body.push_str(&plot::rates(&rates));
    body.push_str(&plot::outcomes(&rows));
    body.push_str(&legend());
    let mut cases: Vec<&str> = entries.iter().map(|entry| entry.meta.case.as_str()).collect();
    cases.sort_unstable();
    cases.dedup();
    let of = |value: &dyn Fn(&ResultEntry) -> Option<f64>| {
        let line = |case: &&str| {
            let runs = entries.iter().filter(|entry| entry.meta.case == **case);
            ((*case).to_owned(), runs.filter_map(value).collect())
        };
        cases.iter().map(line).collect::<Vec<(String, Vec<f64>)>>()
    };
    let run = |entry: &ResultEntry| entry.meta.run.clone();
    body.push_str(&plot::dots("Iterations of each run", "", &of(&|entry| Some(super::real(run(entry)?.iterations)))));
    body.push_str(&plot::dots("Time of each run", "s", &of(&|entry| Some(super::real(run(entry)?.wall_ms) / 1e3))));
    body.push_str("<h2>Numbers</h2>\n");
    body.push_str(&table(&rows.iter().copied().chain(&report.total).collect::<Vec<_>>()));
    body.push_str(&checks(&rows));
    page("runner-eval report", &body)
}

fn legend() -> String {
    let items = crate::outcome::Outcome::ALL;
    let items = items.map(|outcome| format!("<span><i class=\"{outcome}\"></i>{outcome}</span>"));
    format!("<p class=\"legend\">{}</p>\n", items.join(" "))
}

fn table(rows: &[&Row]) -> String {
    let head = ["case", "runs", "as expected", "95 %", "outcomes", "iterations", "attempts", "tokens", "cost", "time"];
    let mut text = format!("<table><tr>{}</tr>\n", head.map(|cell| format!("<th>{cell}</th>")).concat());
    for row in rows {
        let cells = [
            plot::named(row),
            row.runs.to_string(),
            row.rate.map_or_else(|| "–".into(), share),
            row.rate.map_or_else(|| "–".into(), interval),
            outcomes(row),
            whole(row.iterations),
            whole(row.attempts),
            tokens(row),
            cost(row.cost_usd),
            row.seconds.map_or_else(|| "–".into(), |spread| seconds(spread.median)),
        ];
        let _ = writeln!(text, "<tr>{}</tr>", cells.map(|cell| format!("<td>{}</td>", escape(&cell))).concat());
    }
    text + "</table>\n"
}

fn checks(rows: &[&Row]) -> String {
    let mut lines = Vec::new();
    for row in rows {
        lines
            .extend(row.checks.iter().map(|check| (format!("{}: {}", plot::named(row), check.name), Some(check.rate))));
    }
    let mut text = if lines.is_empty() { String::new() } else { format!("<h2>Checks</h2>\n{}", plot::rates(&lines)) };
    let told = |row: &&&Row| !row.reasons.is_empty();
    for row in rows.iter().filter(told) {
        let _ = write!(text, "<h3>{}</h3><ul>", escape(&plot::named(row)));
        for reason in &row.reasons {
            let _ = write!(text, "<li>{} ×: {}</li>", reason.count, escape(&reason.text));
        }
        text.push_str("</ul>\n");
    }
    text
}

/// Returns the page of a comparison.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let mut rates = Vec::new();
    let mut rows = Vec::new();
    for pair in &comparison.cases {
        for (name, row) in [(&comparison.a, &pair.a), (&comparison.b, &pair.b)] {
            let row = Row { group: Some(name.clone()), ..row.clone() };
            rates.push((plot::named(&row), row.rate));
            rows.push(row);
        }
    }
    let mut body = format!("<p class=\"verdict\">{}</p>\n", escape(&told(comparison.overall)));
    body.push_str(&plot::rates(&rates));
    let rows: Vec<&Row> = rows.iter().collect();
    body.push_str(&plot::outcomes(&rows));
    body.push_str(&legend());
    body.push_str("<h2>Differences</h2>\n<ul>");
    for pair in &comparison.cases {
        let _ = write!(body, "<li>{}: {}</li>", escape(&pair.case), escape(&told(pair.difference)));
    }
    body.push_str("</ul>\n<h2>Numbers</h2>\n");
    body.push_str(&table(&rows));
    page(&format!("{} against {}", comparison.b, comparison.a), &body)
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::super::report as make;
    use super::super::samples::entry;
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn a_page_needs_nothing_but_itself_and_obeys_no_text() {
        let mut hostile = entry("a", Outcome::Fail);
        hostile.meta.reason = Some("<script>alert(1)</script>".into());
        hostile.meta.label = Some("\"><img src=x>".into());
        let entries = [hostile, entry("b", Outcome::Success)];
        let page = report(&make(&entries, Some(super::super::GroupBy::Label), None), &entries);
        assert!(page.contains("&lt;script&gt;") && page.contains("<svg"), "{page}");
        for word in ["<script", "http://", "https://", "<img", "url("] {
            assert!(!page.contains(word), "{word}");
        }
        let other = comparison(&compare(["<a>", "b"], &entries, &entries));
        assert!(other.contains("&lt;a&gt;") && !other.contains("<a>"));
    }
}
