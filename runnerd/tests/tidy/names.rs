//! Names: each type is defined once in its crate, at most one in five is a single word, empty words are not used, and
//! each variable is bound by a line of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Source, code, sources};

/// Participles, prepositions, adverbs and metaphors, which do not say what a thing is.
const EMPTY_WORDS: &[&str] = &[
    "anew", "aside", "asked", "astray", "bear", "birth", "born", "brought", "ground", "heard", "kept", "laid",
    "luggage", "made", "meant", "pulse", "said", "scenery", "seen", "standing", "told", "unfit", "unmet", "upon",
    "wanted", "whoever",
];

/// The empty words that variables were named with; a set of what a walk has `seen` is common Rust.
const EMPTY_VARIABLES: &[&str] = &["asked", "heard", "made", "meant", "said", "told", "wanted"];

/// Most type names of one word, in percent of a crate's.
const MAX_ONE_WORD: usize = 20;

/// The crates, longest path first.
const CRATES: &[&str] = &[
    "runnerd/config/",
    "runnerd/core/",
    "runnerd/git/",
    "runnerd/process/",
    "runnerd/agents/",
    "runnerd/os/",
    "runnerd/src/",
    "runnerctl/src/",
    "runner-ui/src/",
    "protocol/src/",
    "runnerd/supervisor/src/",
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

/// The variable that a line binds, if it binds one.
fn variable(line: &str) -> Option<&str> {
    let name = line.strip_prefix("let ")?.trim_start_matches("mut ");
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().filter(|name| !name.is_empty())
}

/// Whether a line binds several variables to a tuple that it writes itself.
fn binds_tuple(line: &str) -> bool {
    let parts = line.strip_prefix("let (").and_then(|rest| rest.split_once(") = ("));
    parts.is_some_and(|(names, values)| {
        names.chars().all(|letter| letter.is_alphanumeric() || "_, ".contains(letter)) && !values.starts_with('*')
    })
}

/// Returns the violations in the sources of a crate, a line each.
fn violations(sources: &[&Source]) -> String {
    let mut types = BTreeMap::<String, usize>::new();
    let mut found = String::new();
    for source in sources {
        let product = source.product();
        for (at, line) in code(&product) {
            let line_start = line.trim_start();
            if binds_tuple(line_start) {
                let _ = writeln!(found, "  {}:{at}: several variables in one line", source.path);
            }
            if let Some(name) = variable(line_start).filter(|name| EMPTY_VARIABLES.contains(name)) {
                let _ = writeln!(found, "  {}:{at}: variable {name} says nothing", source.path);
            }
            let Some((kind, name)) = definition(line_start) else { continue };
            let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind) && !line.starts_with(' ');
            if is_type {
                *types.entry(name.to_owned()).or_default() += 1;
            }
            if words(name).iter().any(|word| EMPTY_WORDS.contains(&word.as_str())) {
                let _ = writeln!(found, "  {}:{at}: {kind} {name} says nothing", source.path);
            }
        }
    }
    for (name, times) in types.iter().filter(|(_, times)| **times > 1) {
        let _ = writeln!(found, "  {name}: {times} types");
    }
    let single = types.keys().filter(|name| words(name).len() == 1).count();
    let percent = (single * 100).div_ceil(types.len().max(1));
    // One of a few is not many.
    if single > 1 && percent > MAX_ONE_WORD {
        let _ = writeln!(found, "  {percent} % of the types are one word, more than {MAX_ONE_WORD} %");
    }
    found
}

#[test]
fn no_name_is_shared_or_says_nothing() {
    let sources = sources();
    for name in CRATES {
        let of_crate: Vec<&Source> =
            sources.iter().filter(|source| source.path.starts_with(name) && !source.is_test()).collect();
        assert!(!of_crate.is_empty(), "no source is below {name}");
        let found = violations(&of_crate);
        assert!(found.is_empty(), "names of {name}:\n{found}");
    }
}
