//! Variables of scripts, makefiles and justfiles, and their possible values, as far as a text shows without running it.
//!
//! A variable has every value that is assigned to it anywhere: rather too many than too few. One whose value is unknown
//! is `$`.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{self, CommandSeparator, pipeline_input};
use super::script::parse_commands;
use super::tools::ScriptForm;

/// Most values of a variable or a word.
const MAX_VALUES: usize = 32;
/// Most bytes of a value.
const MAX_BYTES: usize = 4096;
/// How deep variables that refer to each other are followed.
const MAX_DEPTH: u8 = 8;
/// Most variables that are looked up in one round.
const MAX_LOOKUPS: usize = 20_000;
/// Names under which a script refers to `${{}}` when it is passed as an argument.
const GIVEN_NAMES: [&str; 5] = ["{}", "0", "1", "@", "*"];

/// Variables with their possible values.
#[derive(Debug, Default)]
pub(super) struct VariableTable {
    values: BTreeMap<String, BTreeSet<String>>,
    /// The files that `xargs` passes to a command.
    pub xargs_files: Vec<String>,
    /// Number of variables looked up.
    lookups: usize,
}

impl VariableTable {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.values.values().map(BTreeSet::len).sum()
    }

    /// Whether more variables were looked up than allowed.
    pub(super) fn is_exhausted(&self) -> bool {
        self.lookups > MAX_LOOKUPS
    }

    /// Resets the number of lookups.
    pub(super) fn reset_lookups(&mut self) {
        self.lookups = 0;
    }

    /// Adds the assignments of a text.
    pub(super) fn read_assignments(&mut self, text: &str, form: ScriptForm) {
        if matches!(form, ScriptForm::Make | ScriptForm::Just) {
            for line in text.replace("\\\n", " ").lines() {
                self.read_line(line, form);
            }
        }
        let commands = parse_commands(text);
        for (at, command) in commands.iter().enumerate() {
            for word in &command.words {
                if let Some((name, value)) =
                    word.split_once('=').filter(|(name, _)| is_name(name.trim_end_matches('+')))
                {
                    self.add(name.trim_end_matches('+'), value);
                }
            }
            let words: Vec<&str> = command.words.iter().map(|word| word.trim_start_matches('@')).collect();
            let begin = words.iter().position(|word| !matches!(*word, "do" | "then" | ""));
            match words.get(begin.unwrap_or_default()..).unwrap_or_default() {
                ["for", name, "in", values @ ..] => values.iter().for_each(|value| self.add(name, value)),
                ["while" | "until", words @ ..] if words.contains(&"read") => {
                    let name = words.iter().skip_while(|word| **word != "read").skip(1).find(|word| is_name(word));
                    let values = pipeline_input(&commands, at).iter().flat_map(command::ShellCommand::printed_paths);
                    for (name, value) in values.filter_map(|value| Some((name?, value))).collect::<Vec<_>>() {
                        self.add(name, &value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the assignments in a line of a makefile or a justfile.
    fn read_line(&mut self, line: &str, form: ScriptForm) {
        let line = line.strip_prefix("export ").or_else(|| line.strip_prefix("override ")).unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { return };
        let name = name.trim_end_matches([':', '?', '+']).trim_end();
        let value = value.trim();
        if !is_name(name) {
            return;
        }
        if form == ScriptForm::Make {
            return self.add(name, value.split(" #").next().unwrap_or_default().trim());
        }
        let literal = |word: &str| match word.trim() {
            word if is_name(word) => format!("${{{word}}}"),
            word => word.trim_matches(['"', '\'']).to_owned(),
        };
        let joined = |value: &str| value.split(" + ").map(literal).collect::<String>();
        self.add(name, &value.split(" / ").map(joined).collect::<Vec<_>>().join("/"));
    }

    fn add(&mut self, name: &str, value: &str) {
        let values = self.values.entry(name.to_owned()).or_default();
        if values.len() < MAX_VALUES && value.len() <= MAX_BYTES && !value.is_empty() {
            values.insert(value.to_owned());
        }
    }

    /// Returns the possible values of a word, at least one.
    pub(super) fn expand_word(&mut self, word: &str) -> Vec<String> {
        if !word.contains('$') {
            return vec![word.to_owned()];
        }
        self.expand_at_depth(word, 0)
    }

    /// Returns the possible values of a word; if it is a variable, every word of its values.
    pub(super) fn expand_words(&mut self, word: &str) -> Vec<String> {
        let values = self.expand_word(word);
        if !is_variable(word) {
            return values;
        }
        values.iter().flat_map(|value| value.split_whitespace()).map(str::to_owned).collect()
    }

    fn expand_at_depth(&mut self, word: &str, depth: u8) -> Vec<String> {
        let mut results = vec![String::new()];
        let mut rest = word;
        while let Some(at) = rest.find('$').filter(|_| !results.is_empty()) {
            for result in &mut results {
                result.push_str(&rest[..at]);
            }
            self.lookups += 1;
            let (inner, after) = split_reference(&rest[at..]);
            rest = after;
            let values = if depth < MAX_DEPTH && !self.is_exhausted() {
                self.expand_reference(inner, depth)
            } else {
                Vec::new()
            };
            let values = if values.is_empty() { vec!["$".to_owned()] } else { values };
            let joined = results.iter().flat_map(|result| values.iter().map(move |value| format!("{result}{value}")));
            results = joined.filter(|result| result.len() <= MAX_BYTES).take(MAX_VALUES).collect();
        }
        if results.is_empty() {
            return vec!["$".to_owned()];
        }
        for result in &mut results {
            result.push_str(rest);
        }
        results
    }

    /// Returns the values of the expression inside `${…}` or `$(…)`.
    fn expand_reference(&mut self, inner: &str, depth: u8) -> Vec<String> {
        let inner = inner.trim();
        if GIVEN_NAMES.contains(&inner) {
            return self.xargs_files.clone();
        }
        let default = inner.split_once(":-").or_else(|| inner.split_once(":="));
        let (name, default) = default.unwrap_or((inner, ""));
        let name = name.split('[').next().unwrap_or_default();
        let mut values: Vec<String> = Vec::new();
        if inner.len() > MAX_BYTES {
            return values;
        }
        if is_name(name) {
            values.extend(self.values.get(name).into_iter().flatten().cloned());
            values.extend(Some(default).filter(|default| !default.is_empty()).map(str::to_owned));
            values.extend(default_program(name).filter(|_| values.is_empty()));
        } else {
            let commands = parse_commands(inner);
            let last =
                commands.iter().rposition(|command| command.separator != CommandSeparator::Pipe).unwrap_or_default();
            let printing = pipeline_input(&commands, last).iter().chain(commands.get(last));
            values.extend(printing.flat_map(command::ShellCommand::printed_paths));
        }
        let expanded = values.iter().flat_map(|value| self.expand_at_depth(value, depth + 1));
        expanded.take(MAX_VALUES).collect()
    }
}

/// Returns the program that a variable such as `PYTHON` or `SHELL` usually names.
fn default_program(name: &str) -> Option<String> {
    // A user's home folder is not a folder of the repository.
    if name == "HOME" {
        return Some("~".to_owned());
    }
    let program = if name == "SHELL" { "sh".to_owned() } else { name.to_ascii_lowercase() };
    (name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()) && command::is_script_runner(&program))
        .then_some(program)
}

/// Splits a text after a `$` into the name or the expression, and the rest.
fn split_reference(text: &str) -> (&str, &str) {
    let rest = text[1..].trim_start_matches('$');
    let (open, close) = match rest.as_bytes().first() {
        Some(b'(') => ('(', ')'),
        Some(b'{') => ('{', '}'),
        _ => {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            return rest.split_at(end);
        }
    };
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        depth = if c == open { depth + 1 } else { depth - usize::from(c == close) };
        if depth == 0 {
            return (&rest[1..at], &rest[at + 1..]);
        }
    }
    (&rest[1..], "")
}

/// Whether a word is a single variable and nothing else.
pub(super) fn is_variable(word: &str) -> bool {
    word.starts_with('$') && split_reference(word).1.is_empty()
}

fn is_name(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.chars().all(is_part)
}
