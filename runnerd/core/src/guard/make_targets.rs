//! Targets of a makefile that run a check, and that a file or folder of the same name would turn off: make then takes
//! them for up to date.

use std::collections::BTreeSet;

/// Parts of the names of targets that run a check.
const CHECK_NAMES: [&str; 19] = [
    "audit",
    "check",
    "checks",
    "ci",
    "clippy",
    "e2e",
    "guard",
    "integration",
    "lint",
    "qa",
    "smoke",
    "spec",
    "test",
    "tests",
    "typecheck",
    "types",
    "unit",
    "validate",
    "verify",
];

/// Returns the targets that are named like a check, are not declared as phony, and whose recipe makes no such file.
pub(super) fn find_unprotected_targets(text: &str) -> BTreeSet<String> {
    let text = text.replace("\\\n", " ");
    let mut phony = BTreeSet::new();
    let mut found = BTreeSet::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((names, rest)) = line.split_once(':').filter(|_| !line.starts_with('\t')) else { continue };
        if names.trim() == ".PHONY" {
            phony.extend(rest.split_whitespace().map(str::to_owned));
            continue;
        }
        let mut recipe = rest.split_once(';').map_or(String::new(), |(_, command)| command.to_owned());
        while let Some(command) = lines.next_if(|line| line.starts_with('\t')) {
            recipe.extend(["\n", command]);
        }
        if recipe.trim().is_empty() || recipe.contains("$@") || recipe.contains("$(@") {
            continue;
        }
        let is_unprotected = |name: &&str| is_check_name(name) && !makes_file(&recipe, name);
        found.extend(names.split_whitespace().filter(is_unprotected).map(str::to_owned));
    }
    found.retain(|name| !phony.contains(name));
    found
}

fn is_check_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        && name.split(['-', '_']).any(|part| CHECK_NAMES.contains(&part))
}

/// Whether a recipe writes a file of this name.
fn makes_file(recipe: &str, name: &str) -> bool {
    let words: Vec<&str> = recipe.split([' ', '\t', '\n', ';']).filter(|word| !word.is_empty()).collect();
    let is_output = |word: &str| matches!(word, "-o" | ">" | ">>" | "touch" | "mkdir" | "-p");
    words.windows(2).any(|pair| is_output(pair[0]) && pair[1] == name)
}
