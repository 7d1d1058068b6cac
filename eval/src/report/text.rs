//! Renders reports for a terminal: aligned columns, followed by what is worth a look. Pure.

use std::fmt::Write as _;

use protocol::sanitize::sanitize;

use super::compare::Comparison;
use super::{Difference, Rate, Report, Row, Spread};

/// Aligns lines of cells as columns: the first to the left, numbers to the right.
pub(crate) fn format_table(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// Renders a report.
pub(crate) fn render_report(report: &Report) -> String {
    let has_groups = report.rows.iter().any(|row| row.group.is_some());
    let pass_at = report.pass_at.map(|k| format!("PASS@{k}"));
    let mut head = vec!["CASE"];
    head.extend(has_groups.then_some("GROUP"));
    head.extend(["RUNS", "AS EXPECTED", "95 %"]);
    head.extend(pass_at.as_deref());
    head.extend(["OUTCOMES", "ITERATIONS", "ATTEMPTS", "BROKEN", "TOKENS", "COST", "TIME"]);
    let mut lines = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    lines.extend(
        report.rows.iter().chain(&report.total).map(|row| report_line(row, has_groups, report.pass_at.is_some())),
    );
    let mut text = format_table(&lines);
    for row in &report.rows {
        text.push_str(&render_details(row));
    }
    text
}

fn report_line(row: &Row, has_groups: bool, has_pass_at: bool) -> Vec<String> {
    let mut cells = vec![row.case.clone()];
    cells.extend(has_groups.then(|| sanitize(row.group.as_deref().unwrap_or("-"))));
    cells.extend([
        row.runs.to_string(),
        row.rate.map_or_else(|| "-".into(), format_share),
        row.rate.map_or_else(|| "-".into(), format_interval),
    ]);
    let pass_at = || row.pass_at.map_or_else(|| "-".into(), |found| format!("{:.0} %", found.share * 100.0));
    cells.extend(has_pass_at.then(pass_at));
    cells.extend([
        format_outcomes(row),
        format_spread(row.iterations),
        format_spread(row.attempts),
        row.broken.map_or_else(|| "-".into(), |spread| format!("{}", spread.sum)),
        format_tokens(row),
        format_cost(row.cost_usd),
        row.seconds.map_or_else(|| "-".into(), |spread| format_seconds(spread.median)),
    ]);
    cells
}

/// Returns the checks that do not always hold, and why runs came out otherwise than expected.
fn render_details(row: &Row) -> String {
    let mut text = String::new();
    let name = match &row.group {
        Some(group) => format!("{} {}", row.case, sanitize(group)),
        None => row.case.clone(),
    };
    for check in row.checks.iter().filter(|check| check.rate.count < check.rate.of) {
        let _ = writeln!(text, "{name}: holds {}/{}: {}", check.rate.count, check.rate.of, sanitize(&check.name));
    }
    for reason in &row.reasons {
        let _ = writeln!(text, "{name}: {} ×: {}", reason.count, sanitize(&reason.text));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Renders a comparison.
pub(crate) fn render_comparison(comparison: &Comparison) -> String {
    let a = sanitize(&comparison.a);
    let b = sanitize(&comparison.b);
    let head = ["CASE", "SET", "RUNS", "AS EXPECTED", "95 %", "ITERATIONS", "ATTEMPTS", "TOKENS", "COST", "TIME"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for pair in &comparison.cases {
        for (name, row) in [(&a, &pair.a), (&b, &pair.b)] {
            lines.push(comparison_line(&pair.case, name, row));
        }
    }
    let mut text = format_table(&lines);
    text.push('\n');
    for pair in &comparison.cases {
        let _ = writeln!(text, "{}: {}", pair.case, describe_difference(pair.difference));
    }
    if comparison.cases.len() > 1 {
        let _ = writeln!(text, "all cases, each compared with itself: {}", describe_difference(comparison.overall));
    }
    if comparison.cases.is_empty() {
        text.push_str("no case has results in both sets: nothing is compared\n");
    }
    if let Some(points) = comparison.fail_under {
        let word = if comparison.failed { "failed" } else { "kept" };
        let _ = writeln!(text, "not under {points} percentage points: {word}");
    }
    for (cases, what) in [
        (&comparison.only_one, "only in one set, and not compared"),
        (&comparison.changed, "the case has changed between the sets"),
    ] {
        if !cases.is_empty() {
            let _ = writeln!(text, "{what}: {}", cases.join(", "));
        }
    }
    text
}

fn comparison_line(case: &str, name: &str, row: &Row) -> Vec<String> {
    vec![
        case.to_owned(),
        name.to_owned(),
        row.runs.to_string(),
        row.rate.map_or_else(|| "-".into(), format_share),
        row.rate.map_or_else(|| "-".into(), format_interval),
        format_spread(row.iterations),
        format_spread(row.attempts),
        format_tokens(row),
        format_cost(row.cost_usd),
        row.seconds.map_or_else(|| "-".into(), |spread| format_seconds(spread.median)),
    ]
}

/// Describes the significance of a difference.
pub(crate) fn describe_difference(difference: Option<Difference>) -> String {
    let Some(Difference { share, low, high, within_chance, more_runs }) = difference else {
        return "not judged on both sides".into();
    };
    let points = format!("{:+.0} points [{:+.0} to {:+.0}]", share * 100.0, low * 100.0, high * 100.0);
    match (within_chance, more_runs) {
        (false, _) => format!("{points}: more than chance"),
        (true, None) => format!("{points}: within chance"),
        (true, Some(times)) => {
            format!("{points}: within chance; {times} times as many runs of the same kind would settle it")
        }
    }
}

pub(crate) fn format_share(rate: Rate) -> String {
    format!("{}/{} {:.0} %", rate.count, rate.of, rate.share * 100.0)
}

pub(crate) fn format_interval(rate: Rate) -> String {
    format!("{:.0}–{:.0} %", rate.low * 100.0, rate.high * 100.0)
}

pub(crate) fn format_outcomes(row: &Row) -> String {
    let parts = row.outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// Formats the median, and the range if there is one.
pub(crate) fn format_spread(spread: Option<Spread>) -> String {
    match spread {
        None => "-".into(),
        Some(spread) if spread.least < spread.most => format!("{} ({}–{})", spread.median, spread.least, spread.most),
        Some(spread) => format!("{}", spread.median),
    }
}

pub(crate) fn format_tokens(row: &Row) -> String {
    match (row.tokens_in, row.tokens_out) {
        (Some(read), Some(written)) => {
            format!("{}+{}{}", shorten_count(read.median), shorten_count(written.median), format_unknown(read.unknown))
        }
        _ => "unknown".into(),
    }
}

pub(crate) fn format_cost(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "unknown".into(), |spread| format!("${:.4}{}", spread.median, format_unknown(spread.unknown)))
}

fn format_unknown(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" ({count} unknown)") }
}

fn shorten_count(count: f64) -> String {
    if count >= 1e6 {
        format!("{:.1}M", count / 1e6)
    } else if count >= 1e4 {
        format!("{:.0}k", count / 1e3)
    } else {
        format!("{count:.0}")
    }
}

pub(crate) fn format_seconds(seconds: f64) -> String {
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else if seconds < 3600.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample_entry;
    use super::super::{GroupBy, build_report as make};
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn a_report_has_a_row_per_case_and_tells_what_does_not_hold() {
        let mut known = sample_entry("b", Outcome::Success);
        let run = known.meta.run.as_mut().expect("a run");
        (run.usage.input_tokens, run.usage.output_tokens, run.usage.cost_micro_usd) =
            (Some(12_000), Some(340), Some(9_100));
        let entries = [sample_entry("a", Outcome::Success), sample_entry("a", Outcome::Fail), known];
        insta::assert_snapshot!(render_report(&make(&entries, None, None)), @r"
        CASE  RUNS  AS EXPECTED  95 %      OUTCOMES           ITERATIONS  ATTEMPTS  BROKEN  TOKENS               COST                 TIME
        a     2     1/2 50 %     9–91 %    success 1, fail 1  2           1         0       unknown              unknown              1.5 s
        b     1     1/1 100 %    21–100 %  success 1          2           1         0       12k+340              $0.0091              1.5 s
        all   3     2/3 67 %     21–94 %   success 2, fail 1  2           1         0       12k+340 (2 unknown)  $0.0091 (2 unknown)  1.5 s

        a: holds 1/2: b exists
        a: 1 ×: it is fail
        ");
        let by = render_report(&make(&entries[..1], Some(GroupBy::Executor), None));
        let three = render_report(&make(&entries[..2], None, Some(2)));
        assert!(three.contains("95 %    PASS@2  OUTCOMES") && three.contains("9–91 %  100 %   success 1"), "{three}");
        assert!(by.starts_with("CASE  GROUP   RUNS") && by.contains("\na     script  1"), "{by}");
    }

    #[test]
    fn a_comparison_says_what_the_difference_is_worth() {
        let many = |outcome: Outcome, count| (0..count).map(|_| sample_entry("a", outcome)).collect::<Vec<_>>();
        let text = render_comparison(&super::super::compare::compare_sets(
            ["old", "new"],
            &many(Outcome::Fail, 12),
            &many(Outcome::Success, 12),
        ));
        insta::assert_snapshot!(text, @r"
        CASE  SET  RUNS  AS EXPECTED  95 %      ITERATIONS  ATTEMPTS  TOKENS   COST     TIME
        a     old  12    0/12 0 %     0–24 %    2           1         unknown  unknown  1.5 s
        a     new  12    12/12 100 %  76–100 %  2           1         unknown  unknown  1.5 s

        a: +100 points [+66 to +100]: more than chance
        ");
    }
}
