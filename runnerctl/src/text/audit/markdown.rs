//! The report of an audit as Markdown, for a job's summary page or a comment.
//!
//! Texts by others are shown as code: nothing in them is formatted, becomes a link or mentions anyone.

use std::fmt::Write as _;

use protocol::verify::{AuditFinding, AuditReport, PersonCommit};

use super::super::measure::short_id;
use super::super::sanitize::sanitize;
use super::{count_noun, list_proven, list_reported, list_unproven, summarize};

/// Characters after which a forge recognizes a name, a number or an address.
const LINKING_CHARS: &str = "@#!%~^$&-:";

/// Returns the whole report.
pub(crate) fn render_report(report: &AuditReport) -> String {
    let mut text = format!(
        "## Run {}\n\n**{}**: {} from {} to {}\n",
        to_code(&report.run),
        summarize(report),
        count_noun(report.counts.commits, "commit"),
        report.base.as_deref().map_or("its beginning".to_owned(), |base| to_code(short_id(base))),
        to_code(short_id(&report.tip)),
    );
    push_table(&mut text, "Found", FINDINGS, &report.findings.iter().map(finding_row).collect::<Vec<_>>());
    push_table(&mut text, "People", PEOPLE, &report.people.iter().map(person_row).collect::<Vec<_>>());
    push_list(&mut text, "Proven", &list_proven(report));
    push_list(&mut text, "Reported by the runner", &list_reported(report));
    push_list(&mut text, "Not proven", &list_unproven(report));
    push_list(&mut text, "Not checked", &report.unseen);
    text
}

const FINDINGS: &[&str] = &["", "commit", "iteration", "rule", "where", "expected", "found"];
const PEOPLE: &[&str] = &["commit", "by", "files of `.runner/`", "other files", "subject"];

fn push_table(text: &mut String, heading: &str, columns: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    let _ = write!(text, "\n### {heading}\n\n{}{}\n", line(&columns), "|---".repeat(columns.len()) + "|");
    text.extend(rows.iter().map(|row| line(row)));
}

fn push_list(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n### {heading}\n\n");
    text.extend(lines.iter().map(|line| format!("- {}\n", to_plain(line))));
}

fn finding_row(finding: &AuditFinding) -> Vec<String> {
    let AuditFinding { commit, iter, rule, severity, at, expected, found } = finding;
    let iter = iter.map(|iter| format!("{iter:04}")).unwrap_or_default();
    vec![
        severity.to_string(),
        to_code(short_id(commit)),
        iter,
        rule.to_string(),
        to_code(at),
        to_code(expected),
        to_code(found),
    ]
}

fn person_row(person: &PersonCommit) -> Vec<String> {
    let by = person.command.as_ref().map_or("by hand".to_owned(), |command| to_code(&format!("runnerctl {command}")));
    let paths: Vec<String> = person.runner_paths.iter().map(|path| to_code(path)).collect();
    vec![
        to_code(short_id(&person.commit)),
        by,
        paths.join(" "),
        person.other_paths.to_string(),
        to_code(&person.subject),
    ]
}

/// Returns text on one line as code. Characters that would end the code, or a table cell, become character references.
fn to_code(text: &str) -> String {
    let text = to_single_line(text);
    if text.is_empty() {
        return "–".to_owned();
    }
    if !text.contains(['|', '`', '\\']) && text.trim() == text {
        return format!("`{text}`");
    }
    format!("<code>{}</code>", escape_markdown(&text))
}

/// Returns a sentence of ours that may contain others' words.
fn to_plain(text: &str) -> String {
    escape_markdown(&to_single_line(text))
}

fn to_single_line(text: &str) -> String {
    sanitize(text).replace(['\n', '\r', '\t'], " ")
}

/// Replaces every character that could be Markdown syntax with a character reference. A forge finds names and numbers
/// in the rendered text, so a zero-width character separates the marker from what follows.
fn escape_markdown(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        match c {
            ',' | ';' | '(' | ')' => escaped.push(c),
            c if c.is_ascii_punctuation() => {
                let separator = if LINKING_CHARS.contains(c) { "&#8203;" } else { "" };
                let _ = write!(escaped, "&#{};{separator}", u32::from(c));
            }
            c => escaped.push(c),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_text() {
        assert_eq!(to_code("node root.3: passes"), "`node root.3: passes`");
        assert_eq!(to_code("a\\|b`c\n| d"), "<code>a&#92;&#124;b&#96;c &#124; d</code>");
        assert_eq!(to_code(" @me "), "<code> &#64;&#8203;me </code>");
        assert_eq!(
            to_plain("<b>[x](http://e.org) #1"),
            "&#60;b&#62;&#91;x&#93;(http&#58;&#8203;&#47;&#47;e&#46;org) &#35;&#8203;1"
        );
        assert_eq!(to_code(""), "–");
    }
}
