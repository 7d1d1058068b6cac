//! The report of an audit as Markdown, for the page of a job or a comment.
//!
//! What others wrote is code in it: nothing of that is formatted, links or mentions anybody.

use std::fmt::Write as _;

use protocol::verify::{AuditFinding, AuditReport, PersonCommit};

use super::super::measure::short;
use super::super::sanitize::safe;
use super::{count, outcome, proven, testified, unproven};

/// Signs behind which a forge looks for a name, a number or an address.
const REFERRING: &str = "@#!%~^$&-:";

/// Returns the whole report.
pub(crate) fn report(report: &AuditReport) -> String {
    let mut text = format!(
        "## Run {}\n\n**{}**: {} from {} to {}\n",
        code(&report.run),
        outcome(report),
        count(report.counts.commits, "commit"),
        report.base.as_deref().map_or("its beginning".to_owned(), |base| code(short(base))),
        code(short(&report.tip)),
    );
    table(&mut text, ("Found", FINDINGS), &report.findings.iter().map(finding).collect::<Vec<_>>());
    table(&mut text, ("People", PEOPLE), &report.people.iter().map(person).collect::<Vec<_>>());
    list(&mut text, "Proven", &proven(report));
    list(&mut text, "Reported by the runner", &testified(report));
    list(&mut text, "Not proven", &unproven(report));
    list(&mut text, "Not checked", &report.unseen);
    text
}

const FINDINGS: &[&str] = &["", "commit", "iteration", "rule", "where", "expected", "found"];
const PEOPLE: &[&str] = &["commit", "by", "files of `.runner/`", "other files", "subject"];

fn table(text: &mut String, (heading, columns): (&str, &[&str]), rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    let _ = write!(text, "\n### {heading}\n\n{}{}\n", line(&columns), "|---".repeat(columns.len()) + "|");
    text.extend(rows.iter().map(|row| line(row)));
}

fn list(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n### {heading}\n\n");
    text.extend(lines.iter().map(|line| format!("- {}\n", plain(line))));
}

fn finding(finding: &AuditFinding) -> Vec<String> {
    let AuditFinding { commit, iter, rule, severity, at, expected, found } = finding;
    let iter = iter.map(|iter| format!("{iter:04}")).unwrap_or_default();
    vec![severity.to_string(), code(short(commit)), iter, rule.to_string(), code(at), code(expected), code(found)]
}

fn person(person: &PersonCommit) -> Vec<String> {
    let by = person.command.as_ref().map_or("by hand".to_owned(), |command| code(&format!("runnerctl {command}")));
    let paths: Vec<String> = person.runner_paths.iter().map(|path| code(path)).collect();
    vec![code(short(&person.commit)), by, paths.join(" "), person.other_paths.to_string(), code(&person.subject)]
}

/// Returns text on one line as code. What ends code, or a cell of a table, is spelled in references.
fn code(text: &str) -> String {
    let text = on_one_line(text);
    if text.is_empty() {
        return "–".to_owned();
    }
    if !text.contains(['|', '`', '\\']) && text.trim() == text {
        return format!("`{text}`");
    }
    format!("<code>{}</code>", referenced(&text))
}

/// Returns a sentence of ours in which words of others may stand.
fn plain(text: &str) -> String {
    referenced(&on_one_line(text))
}

fn on_one_line(text: &str) -> String {
    safe(text).replace(['\n', '\r', '\t'], " ")
}

/// Spells every sign that Markdown could know as a reference. A forge looks for names and numbers in what is shown, where a
/// character of no width keeps a sign apart from what follows it.
fn referenced(text: &str) -> String {
    text.chars().fold(String::new(), |mut spelled, c| {
        match c {
            ',' | ';' | '(' | ')' => spelled.push(c),
            c if c.is_ascii_punctuation() => {
                let apart = if REFERRING.contains(c) { "&#8203;" } else { "" };
                let _ = write!(spelled, "&#{};{apart}", u32::from(c));
            }
            c => spelled.push(c),
        }
        spelled
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_text() {
        assert_eq!(code("node root.3: passes"), "`node root.3: passes`");
        assert_eq!(code("a\\|b`c\n| d"), "<code>a&#92;&#124;b&#96;c &#124; d</code>");
        assert_eq!(code(" @me "), "<code> &#64;&#8203;me </code>");
        assert_eq!(
            plain("<b>[x](http://e.org) #1"),
            "&#60;b&#62;&#91;x&#93;(http&#58;&#8203;&#47;&#47;e&#46;org) &#35;&#8203;1"
        );
        assert_eq!(code(""), "–");
    }
}
