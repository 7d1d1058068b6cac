//! `iteration.activity`: what an agent did, parsed from the output in its record.

use protocol::reply::ActivityReply;
use runner_config::ExecutorKind;

/// Maximum number of bytes of output parsed for one reply; a longer line yields nothing.
pub(super) const MAX_OUTPUT: u64 = 1 << 20;

/// A part of an agent's output.
pub(super) struct OutputPart {
    /// Its position in the output.
    pub(super) offset: u64,
    /// At most [`MAX_OUTPUT`] bytes; fewer at the end.
    pub(super) bytes: Vec<u8>,
    /// Whether more may still be written.
    pub(super) may_grow: bool,
}

/// Parses the steps in a part of the output of an agent with this name and version.
pub(super) fn read_steps(agent: Option<&str>, part: &OutputPart) -> ActivityReply {
    let OutputPart { offset, bytes, may_grow: is_written } = part;
    let is_last = (bytes.len() as u64) < MAX_OUTPUT;
    let complete = is_last && !is_written;
    let used = if complete { bytes.len() } else { complete_lines_len(bytes, is_last) };
    let steps = match agent.and_then(agent_kind) {
        Some(kind) => runner_agents::parse_steps(kind, &bytes[..used], *offset),
        None => Vec::new(),
    };
    ActivityReply { steps, next_offset: offset + used as u64, complete }
}

/// Returns the kind that precedes a version.
fn agent_kind(agent: &str) -> Option<ExecutorKind> {
    ExecutorKind::from_spelling(agent.split_whitespace().next()?)
}

/// Returns how many of the bytes form complete lines; all of them if a line exceeds the limit.
fn complete_lines_len(bytes: &[u8], is_last: bool) -> usize {
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
        assert_eq!(complete_lines_len(b"one\ntw", true), 4);
        assert_eq!(complete_lines_len(b"tw", true), 0);
        assert_eq!(complete_lines_len(b"tw", false), 2, "what is too long is passed over");
    }

    #[test]
    fn an_agent_is_known_by_the_word_in_front_of_its_version() {
        assert_eq!(agent_kind("codex 0.169.0"), Some(ExecutorKind::Codex));
        assert_eq!(agent_kind("command"), Some(ExecutorKind::Command));
        assert_eq!(agent_kind("human"), None);
    }
}
