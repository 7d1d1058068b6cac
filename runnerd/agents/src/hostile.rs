//! The fuzz target for agents' streams: any output, in pieces of any length.
//!
//! For tests and for fuzzers only.

use std::path::Path;

use protocol::event::Activity;

use runner_config::ExecutorKind;
use runner_core::files::answer::AnswerForm;

use super::backend::{LaunchRequest, SessionOutput, SessionRest};
use super::backends::backend_for;
use super::line_splitter::LineSplitter;

/// Kinds whose standard output is parsed.
const KINDS: [(&str, ExecutorKind); 4] = [
    ("codex", ExecutorKind::Codex),
    ("claude", ExecutorKind::Claude),
    ("gemini", ExecutorKind::Gemini),
    ("opencode", ExecutorKind::Opencode),
];

/// Parses a stream whose first line names the kind of its agent, and checks that the result does not depend on how it
/// is cut.
///
/// # Panics
///
/// Panics if it does.
pub fn stream(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let kind = &input[..end];
    let stream = input.get(end + 1..).unwrap_or_default();
    let Some((name, kind)) = KINDS.into_iter().find(|(name, _)| name.as_bytes() == kind) else { return };
    let (whole, steps) = read_stream(name, kind, stream, stream.len());
    for piece in [1, 7, 4096] {
        let (pieces, steps_in_pieces) = read_stream(name, kind, stream, piece);
        assert_eq!((&whole.answer, &whole.session_id), (&pieces.answer, &pieces.session_id), "in pieces of {piece}");
        assert_eq!((whole.usage, &steps), (pieces.usage, &steps_in_pieces), "in pieces of {piece}");
    }
}

fn read_stream(name: &str, kind: ExecutorKind, stream: &[u8], piece: usize) -> (SessionOutput, Vec<Activity>) {
    let text = format!("[executor]\nkind = {name:?}\n");
    let config = runner_config::parse(&text, Path::new("config.toml")).expect("BUG: a kind makes a configuration");
    let nowhere = Path::new("/nonexistent");
    let order = LaunchRequest {
        executor: &config.executor.work,
        folder: nowhere,
        git_folder: nowhere,
        env: &[],
        record: nowhere,
        home: None,
        servers: &serde_json::Map::new(),
        output: nowhere,
        form: AnswerForm::Answer,
    };
    let mut reader = backend_for(kind).output_reader(&order);
    let mut lines = LineSplitter::default();
    let mut steps = Vec::new();
    for part in stream.chunks(piece.max(1)) {
        lines.push(part, |line| steps.extend(reader.read_line(line)));
    }
    lines.finish(|line| steps.extend(reader.read_line(line)));
    (reader.finish_output(&SessionRest { errors: stream }), steps)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Returns the checked-in streams.
    fn corpus() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/streams");
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| fs::read(path).unwrap()).collect()
    }

    #[test]
    fn every_stream_of_the_corpus_is_heard_the_same_in_pieces() {
        for input in corpus() {
            stream(&input);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn streams_with_changed_bytes_are_too(input in any::<Index>(), changes: Vec<(Index, u8)>) {
            let mut inputs = corpus();
            let mut input = inputs.swap_remove(input.index(inputs.len()));
            for (at, byte) in changes {
                let at = at.index(input.len());
                input[at] = byte;
            }
            stream(&input);
        }
    }
}
