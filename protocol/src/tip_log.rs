//! The tip log: commits that were once the last of a run's branch, in an append-only file.
//!
//! One `RUN COMMIT` per line; empty lines and lines that start with `#` are ignored. Client and daemon share this code.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// Minimum and maximum number of hexadecimal digits of a commit id.
const DIGITS: [usize; 2] = [40, 64];

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected `RUN COMMIT` with the whole id of the commit")]
pub struct TipLogError {
    /// Its number.
    pub line: usize,
}

/// Returns the commits that were once the last of a run, oldest first.
///
/// # Errors
///
/// Fails at the first invalid line, even if it is about another run.
pub fn tips_of_run<'a>(log: &'a str, run: &str) -> Result<Vec<&'a str>, TipLogError> {
    let mut tips = Vec::new();
    for (at, line) in log.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [run_id, tip] = words[..] else { return Err(TipLogError { line: at + 1 }) };
        if !is_commit(tip) {
            return Err(TipLogError { line: at + 1 });
        }
        if run_id == run {
            tips.push(tip);
        }
    }
    Ok(tips)
}

/// Appends a commit to a log, durably.
///
/// # Errors
///
/// Fails if the file does not exist, or cannot be written.
pub fn append_tip(log: &Path, run: &str, tip: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(log)?;
    // A single write, so that two concurrent additions are two lines.
    file.write_all(format!("{run} {tip}\n").as_bytes())?;
    file.sync_data()
}

fn is_commit(word: &str) -> bool {
    DIGITS.contains(&word.len()) && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_the_tips_of_each_run() {
        let one = "1".repeat(40);
        let two = "a".repeat(64);
        let log = format!("# kept by CI\n\nx {one}\nxy {two}\nx {two}\n");
        assert_eq!(tips_of_run(&log, "x"), Ok(vec![one.as_str(), &two]));
        assert_eq!(tips_of_run(&log, "nobody's"), Ok(Vec::new()));
    }

    #[test]
    fn a_line_that_says_something_else_is_named_whosever_it_is() {
        for line in ["x", "x 1234", "x 1 2", &format!("x {}", "G".repeat(40)), &format!("x {} ", "1".repeat(41))] {
            assert_eq!(tips_of_run(&format!("# first\n{line}\n"), "y"), Err(TipLogError { line: 2 }), "{line}");
        }
    }

    #[test]
    fn what_is_added_is_read_again_and_a_log_is_made_by_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("tips");
        assert_eq!(append_tip(&log, "x", "1").map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        std::fs::write(&log, "").expect("it can be written");
        for tip in ["1".repeat(40), "2".repeat(40)] {
            append_tip(&log, "x", &tip).expect("it can be written");
        }
        let text = std::fs::read_to_string(log).expect("it can be read");
        assert_eq!(tips_of_run(&text, "x").expect("it is one").len(), 2);
    }
}
