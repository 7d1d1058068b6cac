//! The logs of failed checks: limits their number and size, and strips the prefixes that services add to lines.
//!
//! The daemon chooses what a session gets to see. It is untrusted text, and never interpreted.

use protocol::delivery::{FeedbackItem, FeedbackKind};

/// Maximum number of logs that are fetched.
const MAX_LOGS: usize = 8;
/// Maximum size of one log, in bytes from its end.
pub(super) const LOG_TAIL: usize = 32 << 10;

/// Returns the failed checks whose logs are fetched, each with its job id.
pub(super) fn failed_jobs(
    items: &mut [FeedbackItem],
    job_id: impl Fn(&FeedbackItem) -> Option<String>,
) -> Vec<(&mut FeedbackItem, String)> {
    let checks = items.iter_mut().filter(|item| item.kind == FeedbackKind::Check);
    checks.filter_map(|item| job_id(item).map(|job| (item, job))).take(MAX_LOGS).collect()
}

/// Returns the lines of a log as the job printed them; `None` if it printed nothing.
pub(super) fn job_lines(log: &str) -> Option<String> {
    // A truncated log begins with a partial line.
    let whole = if log.len() < LOG_TAIL { log } else { log.split_once('\n').map_or("", |(_, rest)| rest) };
    let lines: Vec<String> = whole.lines().filter_map(clean_line).collect();
    let text = lines.join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// Returns a line without job and step names, timestamp and fold markers.
fn clean_line(line: &str) -> Option<String> {
    let mut columns = line.splitn(3, '\t');
    let has_timestamp = |text: &&str| split_timestamp(text.trim_start_matches('\u{feff}')).is_some();
    let line = columns.nth(2).filter(has_timestamp).unwrap_or(line).trim_start_matches('\u{feff}');
    let line = split_timestamp(line).map_or(line, |(_, text)| strip_stream_mark(text));
    if line.starts_with("section_start:") || line.starts_with("section_end:") || line.starts_with("##[endgroup]") {
        return None;
    }
    Some(match line.strip_prefix("##[error]") {
        Some(error) => format!("error: {error}"),
        None => line.strip_prefix("##[group]").unwrap_or(line).to_owned(),
    })
}

/// Strips a timestamp such as `2026-01-02T10:00:00.1234567Z` from a line.
fn split_timestamp(line: &str) -> Option<(&str, &str)> {
    let (time, text) = line.split_once(' ').unwrap_or((line, ""));
    let is_time = time.len() >= "2026-01-02T10:00:00Z".len()
        && time.ends_with('Z')
        && time.as_bytes()[10] == b'T'
        && time.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte));
    is_time.then_some((time, text))
}

/// Strips GitLab's suffix of the timestamp: a stream number, `O` or `E`, and `+` on a continued line.
fn strip_stream_mark(text: &str) -> &str {
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
        insta::assert_snapshot!(job_lines(GITHUB).unwrap_or_default(), @r"
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
        insta::assert_snapshot!(job_lines(GITLAB).unwrap_or_default(), @r"
        $ bundle exec rspec
        Failures:

          1) Store keeps the last line
             Failure/Error: expect(store.lines).to eq(3)
        ERROR: Job failed: exit code 1
        ");
    }

    #[test]
    fn what_is_no_mark_stays_and_nothing_is_no_log() {
        assert_eq!(job_lines("a\tb\tc\n20O x\n2026: Z").as_deref(), Some("a\tb\tc\n20O x\n2026: Z"));
        assert_eq!(job_lines("\n \n"), None);
        let cut = format!("{}\nwhole\n", "x".repeat(LOG_TAIL));
        assert_eq!(job_lines(&cut).as_deref(), Some("whole"));
    }
}
