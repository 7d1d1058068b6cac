//! Hostile input: runs every fuzz target on its checked-in corpus, and on mutations of it.
//!
//! The assertions of the targets are in `fuzz/src/bodies.rs`; recorded output of agents is replayed next to the
//! parsers.

#[expect(unreachable_pub, reason = "the fuzz crate shows it")]
#[path = "../../fuzz/src/bodies.rs"]
mod bodies;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use bodies::TARGETS;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Returns the checked-in inputs of a target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.display().to_string(), fs::read(&path).expect("an input can be read")))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn every_input_of_the_corpus_keeps_the_rules_of_its_target() {
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        assert!(inputs.len() >= 3, "{name} has {} inputs", inputs.len());
        for (path, input) in inputs {
            assert!(catch_unwind(|| target(&input)).is_ok(), "{path} breaks a rule of {name}");
        }
    }
}

/// A mutation of an input: a byte is set, a part is removed, or a part is repeated.
#[derive(Debug, Clone)]
enum HostileChange {
    Set(Index, u8),
    LeaveOut(Index, usize),
    Repeat(Index, usize),
}

fn changes() -> impl Strategy<Value = Vec<HostileChange>> {
    let change = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| HostileChange::Set(at, byte)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, length)| HostileChange::LeaveOut(at, length)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, length)| HostileChange::Repeat(at, length)),
    ];
    vec(change, 1..6)
}

fn apply_changes(mut input: Vec<u8>, changes: Vec<HostileChange>) -> Vec<u8> {
    for change in changes {
        if input.is_empty() {
            break;
        }
        let part = |input: &[u8], at: usize, length: usize| at..(at + length).min(input.len());
        match change {
            HostileChange::Set(at, byte) => {
                let at = at.index(input.len());
                input[at] = byte;
            }
            HostileChange::LeaveOut(at, length) => {
                input.drain(part(&input, at.index(input.len()), length));
            }
            HostileChange::Repeat(at, length) => {
                let part = part(&input, at.index(input.len()), length);
                let again = input[part.clone()].to_vec();
                input.splice(part.end..part.end, again);
            }
        }
    }
    input
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_inputs_keep_the_rules_too(target in 0..TARGETS.len(), input in any::<Index>(), changes in changes()) {
        let (name, target) = TARGETS[target];
        let mut inputs = corpus(name);
        let input = inputs.swap_remove(input.index(inputs.len())).1;
        target(&apply_changes(input, changes));
    }

    #[test]
    fn any_bytes_keep_the_rules(bytes: Vec<u8>) {
        for (_, target) in TARGETS {
            target(&bytes);
        }
    }
}
