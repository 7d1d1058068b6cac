//! The result of a person's request: committed, or accepted and pending.

use protocol::reply::ChangeReply;

use super::paint::{DIM, paint};
use super::sanitize::sanitize;

/// Returns the line that names the command, its action and its commit, or what the request is waiting for.
pub(crate) fn render_change(reply: &ChangeReply) -> String {
    let what = format!("{}: {}", sanitize(&reply.command), sanitize(reply.summary.lines().next().unwrap_or_default()));
    if let Some(commit) = &reply.commit {
        return format!("{what}  {}\n", paint(DIM, commit.get(..8).unwrap_or(commit)));
    }
    let why = reply.waits_for.as_deref().unwrap_or("a session is running");
    format!("{what}\n  accepted; will be committed before the next session ({})\n", sanitize(why))
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::text::samples;

    #[test]
    fn a_request_is_committed_or_says_what_it_waits_for() {
        let mut reply = ChangeReply {
            run: samples::summary(),
            command: "note".into(),
            id: Some("n1".into()),
            summary: "n1: Use sqlx\u{1b}[2J".into(),
            pending: true,
            waits_for: Some("a session is running".into()),
            commit: None,
        };
        insta::assert_snapshot!(strip_str(&render_change(&reply)), @r"
        note: n1: Use sqlx␛[2J
          accepted; will be committed before the next session (a session is running)
        ");
        reply.commit = Some("0123456789abcdef".into());
        insta::assert_snapshot!(strip_str(&render_change(&reply)), @"note: n1: Use sqlx␛[2J  01234567");
    }
}
