//! The result of a delivery, and of feedback.

use std::fmt::Write as _;

use protocol::delivery::FeedbackReply;
use protocol::shell;

use super::change::render_change;
use super::measure::short_id;
use super::paint::{DIM, GOOD, HEADING, HINT, WARN, paint};
use super::sanitize::{sanitize, sanitize_lines};
use crate::deliver::delivery::{DeliveryAction, DeliveryReport};

/// Returns the report of a delivery.
pub(crate) fn render_delivery(report: &DeliveryReport) -> String {
    let DeliveryReport { run, branch, remote, base, commits, .. } = report;
    let base = base.as_ref().map(|base| format!(" for {}", sanitize(base))).unwrap_or_default();
    if matches!(report.action, DeliveryAction::Landed | DeliveryAction::LandedHere) {
        let onto = report.base.as_deref().unwrap_or("its base");
        let push = paint(HINT, &sanitize(&shell::join_args(["git", "push", remote.as_str(), onto])));
        let head = paint(HEADING, "run");
        let run = sanitize(run);
        let onto = sanitize(onto);
        let mut text = if report.action == DeliveryAction::LandedHere {
            format!("{head} {run} has landed on {onto} here; nothing was pushed\nto publish {onto}: {push}\n")
        } else {
            format!("{head} {run} has landed on {onto} at {} before; nothing was pushed\n", sanitize(remote))
        };
        for note in &report.notes {
            let _ = writeln!(text, "note: {}", sanitize(note));
        }
        return text;
    }
    let verb = if report.action == DeliveryAction::Preview { "would be" } else { "is" };
    let mut text = format!(
        "{} {} {verb} {} at {}{base}\n",
        paint(HEADING, "run"),
        sanitize(run),
        sanitize(branch),
        sanitize(remote)
    );
    for commit in commits {
        let _ = writeln!(text, "  {} {}", paint(DIM, short_id(&commit.commit)), sanitize(&commit.subject));
    }
    if let Some(commit) = &report.commit {
        let what = if report.pushed { "pushed" } else { "nothing new to push:" };
        let _ = writeln!(text, "{what} {}", paint(DIM, short_id(commit)));
    }
    text.push_str(&render_request(report));
    for note in &report.notes {
        let _ = writeln!(text, "note: {}", sanitize(note));
    }
    if report.action == DeliveryAction::Preview {
        let _ = write!(text, "\n{}\n\n{}", paint(HEADING, &sanitize(&report.title)), sanitize_lines(&report.body));
    }
    text
}

fn render_request(report: &DeliveryReport) -> String {
    let noun = report.noun;
    let url = report.url.as_deref().map(sanitize);
    match (report.action, url) {
        (DeliveryAction::Opened, Some(url)) => format!("{} {noun}: {url}\n", paint(GOOD, "opened")),
        (DeliveryAction::Opened, None) => format!("{} {noun}\n", paint(GOOD, "opened")),
        (DeliveryAction::Updated, url) => format!("{} {noun}: {}\n", paint(GOOD, "updated"), url.unwrap_or_default()),
        (DeliveryAction::Merged, url) => format!("the {noun} was taken before: {}\n", url.unwrap_or_default()),
        (DeliveryAction::ByHand, url) => {
            let text = format!("runnerctl deliver {} --dry-run", sanitize(&report.run));
            let instruction = url.map_or_else(
                || {
                    format!(
                        "open it by hand: from {} to {}",
                        sanitize(&report.branch),
                        sanitize(report.base.as_deref().unwrap_or("its base"))
                    )
                },
                |url| format!("open it by hand: {url}"),
            );
            format!("{} {instruction}\nwhat to write there: {}\n", paint(WARN, "no request yet;"), paint(HINT, &text))
        }
        (DeliveryAction::Preview | DeliveryAction::Landed | DeliveryAction::LandedHere, _) => String::new(),
    }
}

/// Returns what was passed on to a run.
pub(crate) fn render_feedback(reply: &FeedbackReply, skipped: u32) -> String {
    let mut text = match reply.included {
        0 => "nothing new\n".to_owned(),
        1 => "1 new piece of feedback\n".to_owned(),
        count => format!("{count} new pieces of feedback\n"),
    };
    for (n, what) in [(reply.known, "already known to the run"), (reply.omitted, "did not fit: run the command again")]
    {
        if n > 0 {
            let _ = writeln!(text, "{} {what}", count_feedback(n));
        }
    }
    if skipped > 0 {
        let _ = writeln!(
            text,
            "skipped {} by people without write access; --anyone includes them",
            count_feedback(skipped)
        );
    }
    if let Some(change) = &reply.change {
        text.push_str(&render_change(change));
    }
    text
}

fn count_feedback(n: u32) -> String {
    if n == 1 { "1 piece of feedback".to_owned() } else { format!("{n} pieces of feedback") }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use protocol::landing::LandedCommit;

    use super::*;

    fn sample_report(action: DeliveryAction) -> DeliveryReport {
        DeliveryReport {
            run: "port".into(),
            branch: "deliver/port".into(),
            remote: "origin".into(),
            base: Some("main".into()),
            commits: vec![LandedCommit {
                commit: "0123456789abcdef".into(),
                subject: "The schema\u{1b}[2J".into(),
                node: "root.1".into(),
                of: "fedcba9876543210".into(),
            }],
            commit: Some("0123456789abcdef".into()),
            pushed: true,
            action,
            noun: "pull request",
            url: Some("https://github.com/o/r/pull/5".into()),
            title: "Port the store".into(),
            body: "Body\n".into(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn what_was_made_pushed_and_opened_is_told() {
        insta::assert_snapshot!(strip_str(&render_delivery(&sample_report(DeliveryAction::Opened))), @r"
        run port is deliver/port at origin for main
          01234567 The schema␛[2J
        pushed 01234567
        opened pull request: https://github.com/o/r/pull/5
        ");
    }

    #[test]
    fn what_has_landed_here_is_told_with_the_command_that_publishes_it() {
        let report = DeliveryReport { commits: Vec::new(), ..sample_report(DeliveryAction::LandedHere) };
        insta::assert_snapshot!(strip_str(&render_delivery(&report)), @r"
        run port has landed on main here; nothing was pushed
        to publish main: git push origin main
        ");
    }

    #[test]
    fn where_nobody_opened_a_request_it_is_told_how() {
        let manual = DeliveryReport {
            url: None,
            notes: vec!["gh is not on your PATH".into()],
            ..sample_report(DeliveryAction::ByHand)
        };
        insta::assert_snapshot!(strip_str(&render_delivery(&manual)), @r"
        run port is deliver/port at origin for main
          01234567 The schema␛[2J
        pushed 01234567
        no request yet; open it by hand: from deliver/port to main
        what to write there: runnerctl deliver port --dry-run
        note: gh is not on your PATH
        ");
    }

    #[test]
    fn what_a_run_was_told_and_what_not_is_counted() {
        let reply = FeedbackReply { included: 2, known: 1, omitted: 3, text: String::new(), change: None };
        insta::assert_snapshot!(render_feedback(&reply, 1), @r"
        2 new pieces of feedback
        1 piece of feedback already known to the run
        3 pieces of feedback did not fit: run the command again
        skipped 1 piece of feedback by people without write access; --anyone includes them
        ");
    }
}
