//! Compares a TOML text with the table of keys: unknown keys, wrong types, values out of range.
//!
//! Each fault keeps its position in the text. Combinations of keys are not checked here.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::error::ConfigProblem;
use super::executor::Inherited;
use super::keys::{self, ConfigSection, KeyDefault, KeyDefinition, ValueKind};
use super::repository::is_instruction_path;

/// Maximum number of bytes of a wrong value in a message.
const MAX_SHOWN_BYTES: usize = 80;

/// A fault and its byte range in the text.
#[derive(Debug)]
pub(super) struct ConfigFinding {
    pub(super) span: Range<usize>,
    pub(super) problem: ConfigProblem,
}

/// Returns the first fault in the order of the text.
pub(super) fn find_first_fault(sections: &'static [ConfigSection], root: &DeTable<'_>) -> Option<ConfigFinding> {
    let mut walk = TableWalk { sections, findings: Vec::new() };
    walk.check_table(&mut Vec::new(), root);
    walk.check_required(&[], root, 0..0);
    walk.findings.into_iter().min_by_key(|finding| finding.span.start)
}

/// Finds the byte at which the value of a key begins, or else the innermost table around it.
pub(super) fn locate_value(root: &DeTable<'_>, path: &[&str]) -> Option<usize> {
    let (name, rest) = path.split_first()?;
    let (key, value) = root.iter().find(|(key, _)| key.get_ref() == name)?;
    match value.get_ref().as_table() {
        Some(table) => locate_value(table, rest).or_else(|| Some(key.span().start)),
        None => Some(value.span().start),
    }
}

struct TableWalk {
    sections: &'static [ConfigSection],
    findings: Vec<ConfigFinding>,
}

impl TableWalk {
    fn check_table<'t>(&mut self, path: &mut Vec<&'t str>, table: &'t DeTable<'_>) {
        for (name, value) in table {
            let entry = TableEntry { name: name.get_ref(), span: name.span(), value: value.get_ref() };
            self.check_entry(path, &entry, value.span());
        }
    }

    fn check_entry<'t>(&mut self, path: &mut Vec<&'t str>, entry: &TableEntry<'t>, value: Range<usize>) {
        let section = keys::find_section(self.sections, path);
        if let Some(key) = section.and_then(|section| section.key(entry.name)) {
            if let Some(problem) = check_value(key, path, entry.value) {
                self.findings.push(ConfigFinding { span: value, problem });
            }
            return;
        }
        path.push(entry.name);
        if keys::leads_to_section(self.sections, path) {
            self.check_subtable(path, entry);
            path.pop();
        } else {
            path.pop();
            let problem = unknown_key(self.sections, path, entry.name);
            self.findings.push(ConfigFinding { span: entry.span.clone(), problem });
        }
    }

    fn check_subtable<'t>(&mut self, path: &mut Vec<&'t str>, entry: &TableEntry<'t>) {
        if let Some(table) = entry.value.as_table() {
            self.check_table(path, table);
            self.check_required(path, table, entry.span.clone());
        } else {
            let (name, parents) = path.split_last().expect("BUG: a section below the root is named");
            let problem = ConfigProblem::NotASection(keys::dotted_key(parents, name));
            self.findings.push(ConfigFinding { span: entry.span.clone(), problem });
        }
    }

    fn check_required(&mut self, path: &[&str], table: &DeTable<'_>, span: Range<usize>) {
        let section = keys::find_section(self.sections, path);
        let keys = section.map_or(&[][..], |section| section.keys);
        for key in keys.iter().filter(|key| matches!(key.default, KeyDefault::Required)) {
            if !table.iter().any(|(name, _)| name.get_ref() == key.name) {
                let problem = ConfigProblem::Missing(keys::dotted_key(path, key.name));
                self.findings.push(ConfigFinding { span: span.clone(), problem });
            }
        }
    }
}

struct TableEntry<'t> {
    name: &'t str,
    span: Range<usize>,
    value: &'t DeValue<'t>,
}

/// Describes a key that does not exist.
pub(super) fn unknown_key(sections: &'static [ConfigSection], path: &[&str], name: &str) -> ConfigProblem {
    let section = path.split_last().map(|(last, parents)| keys::dotted_key(parents, last));
    ConfigProblem::UnknownKey {
        key: name.to_owned(),
        section: section.unwrap_or_default(),
        nearest: keys::find_nearest_key(sections, path, name),
    }
}

fn check_value(key: &KeyDefinition, path: &[&str], value: &DeValue<'_>) -> Option<ConfigProblem> {
    if value_fits(key.kind, value) {
        return None;
    }
    let nearest = match (key.kind, value.as_str()) {
        (ValueKind::Choice(words), Some(word)) => keys::find_nearest_word(word, words.iter().copied()),
        _ => None,
    };
    Some(ConfigProblem::Invalid {
        key: keys::dotted_key(path, key.name),
        expected: key.kind.expected(),
        found: describe_value(value),
        nearest: nearest.map(str::to_owned),
    })
}

fn value_fits(kind: ValueKind, value: &DeValue<'_>) -> bool {
    match kind {
        ValueKind::Number { min, max } => {
            read_integer(value).is_some_and(|n| (i128::from(min)..=i128::from(max)).contains(&n))
        }
        ValueKind::Dollars => read_amount(value).and_then(super::MicroUsd::from_dollars).is_some(),
        ValueKind::Flag => value.is_bool(),
        ValueKind::Text => read_text(value).is_some(),
        ValueKind::Name => read_text(value).is_some_and(|name| !name.trim().is_empty()),
        ValueKind::AbsolutePath => read_text(value).is_some_and(|path| path.starts_with('/')),
        ValueKind::Choice(words) => read_text(value).is_some_and(|word| words.contains(&word)),
        ValueKind::Choices(words) => read_texts(value).is_some_and(|list| list.iter().all(|word| words.contains(word))),
        ValueKind::Argv { required } => read_texts(value).is_some_and(|argv| match argv.first() {
            Some(program) => !program.trim().is_empty(),
            None => !required,
        }),
        ValueKind::Arguments => read_texts(value).is_some(),
        ValueKind::Inherited => read_texts(value).is_some_and(|list| list.iter().all(|item| Inherited::is_item(item))),
        ValueKind::RootPages => {
            read_texts(value).is_some_and(|list| list.iter().all(|name| is_instruction_path(name.as_bytes())))
        }
        ValueKind::Patterns(named) => {
            read_texts(value).is_some_and(|list| list.iter().all(|glob| named.can_match(glob)))
        }
    }
}

fn read_integer(value: &DeValue<'_>) -> Option<i128> {
    let digits = value.as_integer()?;
    i128::from_str_radix(digits.as_str(), digits.radix()).ok()
}

fn read_amount(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(float) => float.as_str().parse().ok(),
        None => value.as_integer()?.to_string().parse().ok(),
    }
}

/// Returns a string if it can be passed to a process: without NUL.
fn read_text<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    value.as_str().filter(|text| !text.contains('\0'))
}

fn read_texts<'v>(value: &'v DeValue<'_>) -> Option<Vec<&'v str>> {
    value.as_array()?.iter().map(|item| read_text(item.get_ref())).collect()
}

/// Describes a value that was found, as the end of a sentence; long values by their type only.
fn describe_value(value: &DeValue<'_>) -> String {
    let shown = match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| describe_value(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    if shown.len() <= MAX_SHOWN_BYTES { shown } else { format!("a long {}", value.type_str()) }
}
