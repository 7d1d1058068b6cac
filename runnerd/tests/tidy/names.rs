//! Names: each type is defined once in its crate, at most one in five is a single word, and empty words are not used.
//!
//! Remaining violations are counted per crate. A count may only decrease: whoever lowers it updates it here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Source, code, sources};

/// Participles, prepositions, adverbs and metaphors, which do not say what a thing is.
const EMPTY_WORDS: &[&str] = &[
    "anew", "aside", "asked", "astray", "bear", "birth", "born", "brought", "ground", "heard", "kept", "laid",
    "landed", "luggage", "made", "meant", "pulse", "said", "scenery", "seen", "standing", "told", "unfit", "unmet",
    "upon", "wanted", "whoever",
];

/// Remaining violations in a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    /// Type names that are defined more than once.
    shared: usize,
    /// Percentage of type names of one word.
    one_word: usize,
    /// Types, functions, modules and constants whose name has one of [`EMPTY_WORDS`].
    empty: usize,
}

const LEFT: &[(&str, Left)] = &[
    ("bench/src/", Left { shared: 0, one_word: 12, empty: 0 }),
    ("eval/src/", Left { shared: 0, one_word: 19, empty: 0 }),
    ("protocol/src/", Left { shared: 0, one_word: 8, empty: 9 }),
    ("runner-ui/src/", Left { shared: 0, one_word: 19, empty: 2 }),
    ("runnerctl/src/", Left { shared: 0, one_word: 8, empty: 2 }),
    ("runnerd/core/", Left { shared: 0, one_word: 5, empty: 13 }),
    ("runnerd/src/", Left { shared: 0, one_word: 5, empty: 15 }),
    ("supervisor/src/", Left { shared: 0, one_word: 4, empty: 0 }),
];

/// The crates, longest path first.
const CRATES: &[&str] = &[
    "runnerd/core/",
    "runnerd/src/",
    "runnerctl/src/",
    "runner-ui/src/",
    "protocol/src/",
    "supervisor/src/",
    "eval/src/",
    "bench/src/",
];

/// The kind and the name of the item that a line defines.
fn definition(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || ["in", "async", "unsafe", "extern"].contains(word) || word.ends_with(')')
    });
    let kind = words.next()?;
    let kinds = ["struct", "enum", "trait", "type", "union", "fn", "mod", "const", "static"];
    let name = words.find(|word| !["fn", "mut"].contains(word))?;
    let name = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    kinds.contains(&kind).then_some((kind, name)).filter(|(_, name)| !name.is_empty())
}

/// Splits a name in snake case or camel case into lower-case words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        words.last_mut().expect("there is one").extend(letter.to_lowercase().filter(|letter| *letter != '_'));
    }
    words.retain(|word| !word.is_empty());
    words
}

fn count(sources: &[&Source]) -> (Left, String) {
    let (mut types, mut names) = (BTreeMap::<String, usize>::new(), String::new());
    let mut empty = 0;
    for source in sources {
        let product = source.product();
        for (at, line) in code(&product) {
            let Some((kind, name)) = definition(line.trim_start()) else { continue };
            let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind) && !line.starts_with(' ');
            if is_type {
                *types.entry(name.to_owned()).or_default() += 1;
            }
            if words(name).iter().any(|word| EMPTY_WORDS.contains(&word.as_str())) {
                empty += 1;
                let _ = writeln!(names, "  {}:{at}: {kind} {name}", source.path);
            }
        }
    }
    for (name, times) in types.iter().filter(|(_, times)| **times > 1) {
        let _ = writeln!(names, "  {name}: {times} types");
    }
    let single = types.keys().filter(|name| words(name).len() == 1).count();
    let shared = types.values().filter(|times| **times > 1).count();
    (Left { shared, one_word: (single * 100).div_ceil(types.len().max(1)), empty }, names)
}

#[test]
fn no_name_is_shared_or_says_nothing_but_for_those_that_are_left() {
    let sources = sources();
    let mut found = BTreeMap::new();
    for name in CRATES {
        let of_crate: Vec<&Source> =
            sources.iter().filter(|source| source.path.starts_with(name) && !source.is_test()).collect();
        assert!(!of_crate.is_empty(), "no source is below {name}");
        found.insert(*name, count(&of_crate));
    }
    let stored: BTreeMap<&str, Left> = LEFT.iter().copied().collect();
    for (name, (left, names)) in &found {
        assert_eq!(stored.get(name), Some(left), "names of {name} (a count may only fall; lower it in LEFT):\n{names}");
    }
}
