//! `iteration.activity`: what an agent did, read from the output that its record keeps.

use protocol::error::ErrorData;
use protocol::reply::ActivityReply;
use protocol::request::LogStream;

use super::iteration::{IterationPlace, wanted};
use crate::agent;
use crate::config::ExecutorKind;

/// Most bytes of output that are looked at for one reply; a longer line tells nothing.
const MAX_OUTPUT: u64 = 1 << 20;

/// Reads the steps from a byte of the output on.
pub(super) fn read(at: &IterationPlace, offset: u64) -> Result<ActivityReply, ErrorData> {
    let log = wanted(at, LogStream::Agent)?;
    let (bytes, _) = log.read(offset, MAX_OUTPUT)?;
    let is_last = (bytes.len() as u64) < MAX_OUTPUT;
    let complete = is_last && !log.is_written;
    let used = if complete { bytes.len() } else { whole_lines(&bytes, is_last) };
    let steps = match at.agent().and_then(|agent| kind(&agent)) {
        Some(kind) => agent::steps(kind, &bytes[..used], offset),
        None => Vec::new(),
    };
    Ok(ActivityReply { steps, next_offset: offset + used as u64, complete })
}

/// Returns the kind that is named in front of a version.
fn kind(agent: &str) -> Option<ExecutorKind> {
    ExecutorKind::from_spelling(agent.split_whitespace().next()?)
}

/// Returns how many of the bytes are whole lines; all of them where a line is longer than what is looked at.
fn whole_lines(bytes: &[u8], is_last: bool) -> usize {
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        None if is_last => 0,
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_still_written_is_read_once_it_is_whole() {
        assert_eq!(whole_lines(b"one\ntw", true), 4);
        assert_eq!(whole_lines(b"tw", true), 0);
        assert_eq!(whole_lines(b"tw", false), 2, "what is too long is passed over");
    }

    #[test]
    fn an_agent_is_known_by_the_word_in_front_of_its_version() {
        assert_eq!(kind("codex 0.169.0"), Some(ExecutorKind::Codex));
        assert_eq!(kind("command"), Some(ExecutorKind::Command));
        assert_eq!(kind("human"), None);
    }
}
