//! The report of an audit: findings, people's commits, what is proven, and what rests on the runner's own record.

pub(crate) mod markdown;
mod rules;
pub(crate) mod sarif;

use std::fmt::Write as _;

use protocol::verify::{AuditFinding, AuditReport, AuditRule, PersonCommit, Severity};

use super::measure::short_id;
use super::paint::{BAD, DIM, GOOD, HEADING, PLAIN, WARN, paint};
use super::sanitize::sanitize;
use super::screen::Screen;
use super::table::{Table, TableCell};
use super::wrap::wrap_indented;

/// Returns the whole report.
pub(crate) fn render_report(report: &AuditReport, screen: &Screen) -> String {
    if !has_commits(report) && is_sound(report) && report.unseen.is_empty() {
        return format!("run {} has made no iteration: there is nothing to verify\n", sanitize(&report.run));
    }
    let mut text = format!(
        "{} {}, {} from {} to {}\n",
        paint(HEADING, "run"),
        sanitize(&report.run),
        count_noun(report.counts.commits, "commit"),
        report.base.as_deref().map_or("its beginning", short_id),
        short_id(&report.tip),
    );
    push_section(&mut text, "found", &render_findings(&report.findings));
    push_section(&mut text, "people", &render_people(&report.people, screen));
    push_section(&mut text, "proven", &render_list(&list_proven(report), screen));
    push_section(&mut text, "reported by the runner", &render_list(&list_reported(report), screen));
    push_section(&mut text, "not proven", &render_list(&list_unproven(report), screen));
    push_section(&mut text, "not checked", &render_list(&report.unseen, screen));
    text.push('\n');
    text.push_str(&render_verdict(report));
    text
}

fn push_section(text: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(text, "\n{}\n{body}", paint(HEADING, heading));
    }
}

fn render_list(lines: &[String], screen: &Screen) -> String {
    let width = screen.width.unwrap_or(usize::MAX);
    lines.iter().map(|line| wrap_indented(2, width, &sanitize(line))).collect()
}

fn render_findings(findings: &[AuditFinding]) -> String {
    findings.iter().map(render_finding).collect()
}

fn render_finding(finding: &AuditFinding) -> String {
    let style = if finding.severity == Severity::Violation { BAD } else { WARN };
    let iter = finding.iter.map(|iter| format!(" iteration {iter:04}")).unwrap_or_default();
    let AuditFinding { commit, rule, severity, at, expected, found, .. } = finding;
    format!(
        "  {} {}{iter}: {rule}, {}\n      expected {}\n      found    {}\n",
        paint(style, severity.as_str()),
        short_id(commit),
        sanitize(at),
        sanitize(expected),
        sanitize(found)
    )
}

fn render_people(people: &[PersonCommit], screen: &Screen) -> String {
    let mut table = Table::without_names();
    for person in people {
        let by = person.command.as_ref().map_or_else(|| "by hand".to_owned(), |command| format!("runnerctl {command}"));
        let others = person.other_paths;
        let others = (others > 0).then(|| count_noun(others, "other file"));
        let changed: Vec<String> = person.runner_paths.iter().cloned().chain(others).collect();
        table.add_row([
            TableCell::styled(DIM, short_id(&person.commit)),
            TableCell::from(&by),
            TableCell::from(&changed.join(", ")),
            TableCell::styled(PLAIN, &person.subject),
        ]);
    }
    table.render(screen, 2)
}

/// Whether the run has made a commit, according to the daemon that runs it; of other runs, a branch never lacks one.
pub(crate) fn has_commits(report: &AuditReport) -> bool {
    report.counts.commits > 0
}

/// Whether there are no rule violations.
pub(crate) fn is_sound(report: &AuditReport) -> bool {
    report.findings.iter().all(|finding| finding.severity != Severity::Violation)
}

/// Returns the unseen parts as findings of one weight: what could not be read, and a run without an iteration. Anything
/// already reported as a violation is left out.
pub(crate) fn unseen_findings(report: &AuditReport, severity: Severity) -> Vec<AuditFinding> {
    let is_empty = report.counts.iterations == 0 && report.unseen.is_empty() && has_commits(report);
    let no_iteration = is_empty.then(|| format!("no iteration of run {}", report.run));
    let finding = |found: &String| AuditFinding {
        commit: report.tip.clone(),
        iter: None,
        rule: AuditRule::Unseen,
        severity,
        at: "branch".to_owned(),
        expected: "all that is to be judged".to_owned(),
        found: found.clone(),
    };
    report.unseen.iter().filter(|unseen| !is_explained(report, unseen)).chain(&no_iteration).map(finding).collect()
}

/// Whether a violation explains why this was not seen: an object needed for decisions is missing.
fn is_explained(report: &AuditReport, unseen: &str) -> bool {
    report.findings.iter().any(|AuditFinding { commit, rule, severity, found, .. }| {
        (*rule, *severity) == (AuditRule::Valid, Severity::Violation)
            && unseen.contains(&format!(" commit {commit},"))
            && unseen.ends_with(found)
    })
}

fn list_proven(report: &AuditReport) -> Vec<String> {
    let counts = &report.counts;
    let mut lines = Vec::new();
    if counts.iterations == 0 {
        return lines;
    }
    if !report.unseen.is_empty() {
        lines.push("only for the part that was checked, and only if what came before it was right:".to_owned());
    }
    // If an earlier commit breaks a rule, everything that later commits build on is unproven.
    if is_sound(report) && report.since.as_ref().is_none_or(|since| since.violations == 0) {
        let iterations = count_noun(counts.iterations, "iteration");
        lines.push(format!("{iterations}, each on the right task, with only the changes that its verdict allows"));
        let passes = count_noun(u32::try_from(report.passes.len()).unwrap_or(u32::MAX), "task");
        lines.push(format!("{passes} passed, each by an accepted iteration; none changed since"));
        if let Some(signed) = report.signed.as_ref().filter(|signed| signed.held == signed.commits) {
            lines.push(format!(
                "{} of the runner, signed by {}",
                count_noun(signed.held, "commit"),
                signed.by.join(", ")
            ));
        }
        if let Some(signed) = report.reviewed.as_ref().filter(|signed| signed.held > 0 && signed.held == signed.commits)
        {
            lines.push(format!("{} by people, signed by {}", count_noun(signed.held, "review"), signed.by.join(", ")));
        }
    }
    let sent = count_noun(counts.iterations.saturating_sub(counts.decisions), "prompt");
    lines.push(format!("{} of {sent} exactly as the rules build them", counts.prompts));
    lines
}

fn list_reported(report: &AuditReport) -> Vec<String> {
    let counts = &report.counts;
    let mut lines = Vec::new();
    if counts.guards_unproven > 0 {
        lines.push(format!("how {} ended, and what they printed", count_noun(counts.guards_unproven, "guard")));
    }
    if counts.iterations > 0 {
        lines.push("what sessions said and consumed, and why those without an answer ended".to_owned());
    }
    if !report.reviews.is_empty() && report.reviewed.is_none() {
        let reviews = count_noun(u32::try_from(report.reviews.len()).unwrap_or(u32::MAX), "review");
        lines.push(format!("that {reviews} came from a person"));
    }
    if counts.prompts_unknown > 0 {
        lines.push(format!("{} of another version", count_noun(counts.prompts_unknown, "prompt")));
    }
    lines
}

/// Parts that are neither proven nor attested by any commit that was read.
fn list_unproven(report: &AuditReport) -> Vec<String> {
    let mut lines = Vec::new();
    if report.counts.iterations == 0 {
        lines.push("anything: this branch has no iteration of the run".to_owned());
    }
    if !report.brought.is_empty() {
        lines.push(format!("that these passed before the first commit: {}", report.brought.join(", ")));
    }
    lines
}

fn render_verdict(report: &AuditReport) -> String {
    let style = match (is_sound(report), is_proven(report)) {
        (true, true) => GOOD,
        (true, false) => WARN,
        (false, _) => BAD,
    };
    paint(style, &summarize(report)) + "\n"
}

fn is_proven(report: &AuditReport) -> bool {
    report.unseen.is_empty() && report.counts.iterations > 0
}

/// Returns the result in one line.
fn summarize(report: &AuditReport) -> String {
    let findings = &report.findings;
    let violations = findings.iter().filter(|finding| finding.severity == Severity::Violation).count();
    let count_of = |found: usize, what: &str| count_noun(u32::try_from(found).unwrap_or(u32::MAX), what);
    let mut text =
        format!("{}, {}", count_of(violations, "violation"), count_of(findings.len() - violations, "warning"));
    if let Some(since) = &report.since {
        let violations = count_noun(since.violations, "violation");
        let warnings = count_noun(since.warnings, "warning");
        let _ = write!(text, " since {}, {violations} and {warnings} before", short_id(&since.commit));
    }
    if !is_proven(report) {
        text.push_str(if report.counts.iterations == 0 { ", nothing proven" } else { ", partly not checked" });
    }
    text
}

fn count_noun(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
