//! The logs of failed checks: how many are asked for, how much of each is kept, and their lines without what services put in
//! front of them.
//!
//! What of a log is told to a session is the daemon's to choose. It is text of others, and nothing in it is obeyed.

use protocol::delivery::{FeedbackItem, FeedbackKind};

/// Most logs that are asked for.
const LOGS: usize = 8;
/// Most bytes of one, from its end.
pub(super) const LOG_TAIL: usize = 32 << 10;

/// Returns the failed checks whose logs are asked for, each with the number of its job.
pub(super) fn jobs(
    items: &mut [FeedbackItem],
    job_of: impl Fn(&FeedbackItem) -> Option<String>,
) -> Vec<(&mut FeedbackItem, String)> {
    let checks = items.iter_mut().filter(|item| item.kind == FeedbackKind::Check);
    checks.filter_map(|item| job_of(item).map(|job| (item, job))).take(LOGS).collect()
}

/// Returns the lines of a log as the job has printed them; none where it printed nothing.
pub(super) fn lines(log: &str) -> Option<String> {
    // The first line of a log that was cut is not a whole one.
    let whole = if log.len() < LOG_TAIL { log } else { log.split_once('\n').map_or("", |(_, rest)| rest) };
    let lines: Vec<String> = whole.lines().filter_map(printed).collect();
    let text = lines.join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// Returns a line without the names of job and step, the time and the marks of folded parts.
fn printed(line: &str) -> Option<String> {
    let mut columns = line.splitn(3, '\t');
    let of_github = |text: &&str| time_of(text.trim_start_matches('\u{feff}')).is_some();
    let line = columns.nth(2).filter(of_github).unwrap_or(line).trim_start_matches('\u{feff}');
    let line = time_of(line).map_or(line, |(_, text)| without_stream(text));
    if line.starts_with("section_start:") || line.starts_with("section_end:") || line.starts_with("##[endgroup]") {
        return None;
    }
    Some(match line.strip_prefix("##[error]") {
        Some(error) => format!("error: {error}"),
        None => line.strip_prefix("##[group]").unwrap_or(line).to_owned(),
    })
}

/// Takes a time such as `2026-01-02T10:00:00.1234567Z` off a line.
fn time_of(line: &str) -> Option<(&str, &str)> {
    let (time, text) = line.split_once(' ').unwrap_or((line, ""));
    let is_time = time.len() >= "2026-01-02T10:00:00Z".len()
        && time.ends_with('Z')
        && time.as_bytes()[10] == b'T'
        && time.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte));
    is_time.then_some((time, text))
}

/// Takes off what GitLab puts behind the time: the number of a stream, `O` or `E`, and `+` where a line goes on.
fn without_stream(text: &str) -> &str {
    match text.as_bytes() {
        [one, two, b'O' | b'E', rest @ ..] if one.is_ascii_hexdigit() && two.is_ascii_hexdigit() => match rest {
            [b' ' | b'+', ..] => &text[4..],
            [] => "",
            _ => text,
        },
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GITHUB: &str = include_str!("../../tests/forges/gh-run-log-failed.txt");
    const GITLAB: &str = include_str!("../../tests/forges/glab-trace.txt");

    #[test]
    fn lines_are_as_the_job_has_printed_them() {
        insta::assert_snapshot!(lines(GITHUB).unwrap_or_default(), @r"
        Run cargo test
        cargo test
        test store::keeps_the_last_line ... FAILED

        failures:

        ---- store::keeps_the_last_line stdout ----
        thread 'store::keeps_the_last_line' panicked at src/store.rs:42:9:
        assertion `left == right` failed
          left: 2
         right: 3

        test result: FAILED. 0 passed; 1 failed
        error: Process completed with exit code 101.
        ");
        insta::assert_snapshot!(lines(GITLAB).unwrap_or_default(), @r"
        $ bundle exec rspec
        Failures:

          1) Store keeps the last line
             Failure/Error: expect(store.lines).to eq(3)
        ERROR: Job failed: exit code 1
        ");
    }

    #[test]
    fn what_is_no_mark_stays_and_nothing_is_no_log() {
        assert_eq!(lines("a\tb\tc\n20O x\n2026: Z").as_deref(), Some("a\tb\tc\n20O x\n2026: Z"));
        assert_eq!(lines("\n \n"), None);
        let cut = format!("{}\nwhole\n", "x".repeat(LOG_TAIL));
        assert_eq!(lines(&cut).as_deref(), Some("whole"));
    }
}
