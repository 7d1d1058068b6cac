//! SVG plots: rates with their intervals, outcomes as bars, one dot per run. Pure.

use std::fmt::Write as _;

use super::escape::escape_html;
use super::stats::to_f64;
use super::{Rate, Row};
use crate::outcome::Outcome;

const ROW_HEIGHT: f64 = 26.0;
const LEFT_MARGIN: f64 = 230.0;
const PLOT_WIDTH: f64 = 420.0;
const WIDTH: f64 = LEFT_MARGIN + PLOT_WIDTH + 110.0;

/// Draws rates with their intervals, one per line.
pub(super) fn plot_rates(lines: &[(String, Option<Rate>)]) -> String {
    let mut body = draw_axis(lines.len());
    for (index, (name, rate)) in lines.iter().enumerate() {
        let y = ROW_HEIGHT * to_f64(index as u64) + ROW_HEIGHT / 2.0;
        body.push_str(&draw_label(y, name));
        let Some(rate) = rate else { continue };
        let x = |share: f64| LEFT_MARGIN + PLOT_WIDTH * share;
        let _ = write!(
            body,
            r#"<line class="ink" x1="{:.1}" x2="{:.1}" y1="{y}" y2="{y}"/><circle class="dot" cx="{:.1}" cy="{y}" r="5"/>"#,
            x(rate.low),
            x(rate.high),
            x(rate.share)
        );
        let _ = write!(
            body,
            r#"<text x="{:.1}" y="{:.1}">{}/{}</text>"#,
            LEFT_MARGIN + PLOT_WIDTH + 12.0,
            y + 4.0,
            rate.count,
            rate.of
        );
    }
    wrap_svg(lines.len(), "Runs that came out as expected, with intervals at 95 %", &body)
}

/// Draws the outcomes of each row as a stacked bar; all bars have the same length.
pub(super) fn plot_outcomes(rows: &[&Row]) -> String {
    let mut body = String::new();
    for (index, row) in rows.iter().enumerate() {
        let y = ROW_HEIGHT * to_f64(index as u64);
        body.push_str(&draw_label(y + ROW_HEIGHT / 2.0, &row_name(row)));
        let mut x = LEFT_MARGIN;
        for outcome in Outcome::ALL {
            let Some(count) = row.outcomes.get(&outcome) else { continue };
            let width = PLOT_WIDTH * to_f64(*count) / to_f64(row.runs.max(1));
            let _ = write!(
                body,
                r#"<rect class="{outcome}" x="{x:.1}" y="{:.1}" width="{width:.1}" height="{}"><title>{outcome}: {count}</title></rect>"#,
                y + 4.0,
                ROW_HEIGHT - 8.0
            );
            x += width;
        }
        let _ = write!(
            body,
            r#"<text x="{:.1}" y="{:.1}">{}</text>"#,
            LEFT_MARGIN + PLOT_WIDTH + 12.0,
            y + ROW_HEIGHT / 2.0 + 4.0,
            row.runs
        );
    }
    wrap_svg(rows.len(), "Outcomes", &body)
}

/// Draws one number per run as a dot; the axis starts at 0.
pub(super) fn plot_dots(title: &str, unit: &str, lines: &[(String, Vec<f64>)]) -> String {
    let largest = lines.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    let scale = if largest > 0.0 { PLOT_WIDTH / largest } else { 0.0 };
    let mut body = String::new();
    for (index, (name, values)) in lines.iter().enumerate() {
        let y = ROW_HEIGHT * to_f64(index as u64) + ROW_HEIGHT / 2.0;
        body.push_str(&draw_label(y, name));
        let _ = write!(
            body,
            r#"<line class="grid" x1="{LEFT_MARGIN}" x2="{}" y1="{y}" y2="{y}"/>"#,
            LEFT_MARGIN + PLOT_WIDTH
        );
        for value in values {
            let _ = write!(body, r#"<circle class="run" cx="{:.1}" cy="{y}" r="4"/>"#, LEFT_MARGIN + value * scale);
        }
    }
    let end = format!("{largest:.1} {unit}");
    let _ = write!(
        body,
        r#"<text x="{:.1}" y="{:.1}">{end}</text>"#,
        LEFT_MARGIN + PLOT_WIDTH + 12.0,
        ROW_HEIGHT / 2.0 + 4.0
    );
    wrap_svg(lines.len(), title, &body)
}

/// Returns the name of a row.
pub(super) fn row_name(row: &Row) -> String {
    row.group.as_ref().map_or_else(|| row.case.clone(), |group| format!("{} · {group}", row.case))
}

fn draw_axis(lines: usize) -> String {
    let height = ROW_HEIGHT * to_f64(lines as u64);
    let mut text = String::new();
    for quarter in 0..=4_u32 {
        let x = LEFT_MARGIN + PLOT_WIDTH * f64::from(quarter) / 4.0;
        let _ = write!(
            text,
            r#"<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{height}"/><text class="tick" x="{x}" y="{}">{} %</text>"#,
            height + 14.0,
            quarter * 25
        );
    }
    text
}

fn draw_label(y: f64, name: &str) -> String {
    let short: String =
        if name.chars().count() > 32 { name.chars().take(31).chain(['…']).collect() } else { name.into() };
    format!(
        r#"<text class="name" x="{}" y="{:.1}"><title>{}</title>{}</text>"#,
        LEFT_MARGIN - 10.0,
        y + 4.0,
        escape_html(name),
        escape_html(&short)
    )
}

fn wrap_svg(lines: usize, title: &str, body: &str) -> String {
    let height = ROW_HEIGHT * to_f64(lines as u64) + 22.0;
    format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{body}</svg></figure>\n",
        escape_html(title),
        escape_html(title)
    )
}
