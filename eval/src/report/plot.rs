//! SVG plots: rates with their intervals, outcomes as bars, one dot per run. Pure.

use std::fmt::Write as _;

use super::escape::escape;
use super::stats::real;
use super::{Rate, Row};
use crate::outcome::Outcome;

const ROW: f64 = 26.0;
const LEFT: f64 = 230.0;
const PLOT: f64 = 420.0;
const WIDTH: f64 = LEFT + PLOT + 110.0;

/// Draws rates with their intervals, one per line.
pub(super) fn rates(lines: &[(String, Option<Rate>)]) -> String {
    let mut body = axis(lines.len());
    for (at, (name, rate)) in lines.iter().enumerate() {
        let y = ROW * real(at as u64) + ROW / 2.0;
        body.push_str(&label(y, name));
        let Some(rate) = rate else { continue };
        let x = |share: f64| LEFT + PLOT * share;
        let _ = write!(
            body,
            r#"<line class="ink" x1="{:.1}" x2="{:.1}" y1="{y}" y2="{y}"/><circle class="dot" cx="{:.1}" cy="{y}" r="5"/>"#,
            x(rate.low),
            x(rate.high),
            x(rate.share)
        );
        let _ =
            write!(body, r#"<text x="{:.1}" y="{:.1}">{}/{}</text>"#, LEFT + PLOT + 12.0, y + 4.0, rate.count, rate.of);
    }
    svg(lines.len(), "Runs that came out as expected, with intervals at 95 %", &body)
}

/// Draws the outcomes of each row as a stacked bar; all bars have the same length.
pub(super) fn outcomes(rows: &[&Row]) -> String {
    let mut body = String::new();
    for (at, row) in rows.iter().enumerate() {
        let y = ROW * real(at as u64);
        body.push_str(&label(y + ROW / 2.0, &named(row)));
        let mut x = LEFT;
        for outcome in Outcome::ALL {
            let Some(count) = row.outcomes.get(&outcome) else { continue };
            let width = PLOT * real(*count) / real(row.runs.max(1));
            let _ = write!(
                body,
                r#"<rect class="{outcome}" x="{x:.1}" y="{:.1}" width="{width:.1}" height="{}"><title>{outcome}: {count}</title></rect>"#,
                y + 4.0,
                ROW - 8.0
            );
            x += width;
        }
        let _ =
            write!(body, r#"<text x="{:.1}" y="{:.1}">{}</text>"#, LEFT + PLOT + 12.0, y + ROW / 2.0 + 4.0, row.runs);
    }
    svg(rows.len(), "Outcomes", &body)
}

/// Draws one number per run as a dot; the axis starts at 0.
pub(super) fn dots(title: &str, unit: &str, lines: &[(String, Vec<f64>)]) -> String {
    let most = lines.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    let scale = if most > 0.0 { PLOT / most } else { 0.0 };
    let mut body = String::new();
    for (at, (name, values)) in lines.iter().enumerate() {
        let y = ROW * real(at as u64) + ROW / 2.0;
        body.push_str(&label(y, name));
        let _ = write!(body, r#"<line class="grid" x1="{LEFT}" x2="{}" y1="{y}" y2="{y}"/>"#, LEFT + PLOT);
        for value in values {
            let _ = write!(body, r#"<circle class="run" cx="{:.1}" cy="{y}" r="4"/>"#, LEFT + value * scale);
        }
    }
    let end = format!("{most:.1} {unit}");
    let _ = write!(body, r#"<text x="{:.1}" y="{:.1}">{end}</text>"#, LEFT + PLOT + 12.0, ROW / 2.0 + 4.0);
    svg(lines.len(), title, &body)
}

/// Returns the name of a row.
pub(super) fn named(row: &Row) -> String {
    row.group.as_ref().map_or_else(|| row.case.clone(), |group| format!("{} · {group}", row.case))
}

fn axis(lines: usize) -> String {
    let height = ROW * real(lines as u64);
    let mut text = String::new();
    for quarter in 0..=4_u32 {
        let x = LEFT + PLOT * f64::from(quarter) / 4.0;
        let _ = write!(
            text,
            r#"<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{height}"/><text class="tick" x="{x}" y="{}">{} %</text>"#,
            height + 14.0,
            quarter * 25
        );
    }
    text
}

fn label(y: f64, name: &str) -> String {
    let short: String =
        if name.chars().count() > 32 { name.chars().take(31).chain(['…']).collect() } else { name.into() };
    format!(
        r#"<text class="name" x="{}" y="{:.1}"><title>{}</title>{}</text>"#,
        LEFT - 10.0,
        y + 4.0,
        escape(name),
        escape(&short)
    )
}

fn svg(lines: usize, title: &str, body: &str) -> String {
    let height = ROW * real(lines as u64) + 22.0;
    format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{body}</svg></figure>\n",
        escape(title),
        escape(title)
    )
}
