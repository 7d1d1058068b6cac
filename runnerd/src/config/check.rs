//! Compares a TOML text with the table of keys: unknown keys, wrong types, values out of range.
//!
//! Each fault keeps its place in the text. What two keys mean together is not checked here.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::error::Problem;
use super::keys::{self, Default, Key, Kind, Section};

/// Bytes of a wrong value that a message repeats.
const SHOWN_BYTES: usize = 80;

/// A fault and the bytes of the text that show it.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) span: Range<usize>,
    pub(super) problem: Problem,
}

/// Returns the first fault in the order of the text.
pub(super) fn first_fault(sections: &'static [Section], root: &DeTable<'_>) -> Option<Finding> {
    let mut walk = Walk { sections, findings: Vec::new() };
    walk.table(&mut Vec::new(), root);
    walk.require(&[], root, 0..0);
    walk.findings.into_iter().min_by_key(|finding| finding.span.start)
}

/// Finds the byte at which the value of a key begins, or else the innermost table around it.
pub(super) fn locate(root: &DeTable<'_>, path: &[&str]) -> Option<usize> {
    let (name, rest) = path.split_first()?;
    let (key, value) = root.iter().find(|(key, _)| key.get_ref() == name)?;
    match value.get_ref().as_table() {
        Some(table) => locate(table, rest).or_else(|| Some(key.span().start)),
        None => Some(value.span().start),
    }
}

struct Walk {
    sections: &'static [Section],
    findings: Vec<Finding>,
}

impl Walk {
    fn table<'t>(&mut self, path: &mut Vec<&'t str>, table: &'t DeTable<'_>) {
        for (name, value) in table {
            let found = Setting { name: name.get_ref(), span: name.span(), value: value.get_ref() };
            self.entry(path, &found, value.span());
        }
    }

    fn entry<'t>(&mut self, path: &mut Vec<&'t str>, entry: &Setting<'t>, value: Range<usize>) {
        let section = keys::section(self.sections, path);
        if let Some(key) = section.and_then(|section| section.key(entry.name)) {
            if let Some(problem) = fault_of(key, path, entry.value) {
                self.findings.push(Finding { span: value, problem });
            }
            return;
        }
        path.push(entry.name);
        if keys::leads_to_section(self.sections, path) {
            self.subtable(path, entry);
            path.pop();
        } else {
            path.pop();
            let problem = unknown(self.sections, path, entry.name);
            self.findings.push(Finding { span: entry.span.clone(), problem });
        }
    }

    fn subtable<'t>(&mut self, path: &mut Vec<&'t str>, entry: &Setting<'t>) {
        if let Some(table) = entry.value.as_table() {
            self.table(path, table);
            self.require(path, table, entry.span.clone());
        } else {
            let (name, parents) = path.split_last().expect("BUG: a section below the root is named");
            let problem = Problem::NotASection(keys::dotted(parents, name));
            self.findings.push(Finding { span: entry.span.clone(), problem });
        }
    }

    fn require(&mut self, path: &[&str], table: &DeTable<'_>, span: Range<usize>) {
        let section = keys::section(self.sections, path);
        let keys = section.map_or(&[][..], |section| section.keys);
        for key in keys.iter().filter(|key| matches!(key.default, Default::Required)) {
            if !table.iter().any(|(name, _)| name.get_ref() == key.name) {
                let problem = Problem::Missing(keys::dotted(path, key.name));
                self.findings.push(Finding { span: span.clone(), problem });
            }
        }
    }
}

struct Setting<'t> {
    name: &'t str,
    span: Range<usize>,
    value: &'t DeValue<'t>,
}

/// Describes a key that does not exist.
pub(super) fn unknown(sections: &'static [Section], path: &[&str], name: &str) -> Problem {
    let section = path.split_last().map(|(last, parents)| keys::dotted(parents, last));
    Problem::UnknownKey {
        key: name.to_owned(),
        section: section.unwrap_or_default(),
        nearest: keys::nearest_key(sections, path, name),
    }
}

fn fault_of(key: &Key, path: &[&str], value: &DeValue<'_>) -> Option<Problem> {
    if fits(key.kind, value) {
        return None;
    }
    let nearest = match (key.kind, value.as_str()) {
        (Kind::Choice(words), Some(word)) => keys::nearest_word(word, words.iter().copied()),
        _ => None,
    };
    Some(Problem::Invalid {
        key: keys::dotted(path, key.name),
        expected: key.kind.expected(),
        found: describe(value),
        nearest: nearest.map(str::to_owned),
    })
}

fn fits(kind: Kind, value: &DeValue<'_>) -> bool {
    match kind {
        Kind::Number { min, max } => integer(value).is_some_and(|n| (i128::from(min)..=i128::from(max)).contains(&n)),
        Kind::Dollars => amount(value).and_then(super::MicroUsd::from_dollars).is_some(),
        Kind::Flag => value.is_bool(),
        Kind::Text => text(value).is_some(),
        Kind::Name => text(value).is_some_and(|name| !name.trim().is_empty()),
        Kind::AbsolutePath => text(value).is_some_and(|path| path.starts_with('/')),
        Kind::Choice(words) => text(value).is_some_and(|word| words.contains(&word)),
        Kind::Choices(words) => texts(value).is_some_and(|list| list.iter().all(|word| words.contains(word))),
        Kind::Argv { required } => texts(value).is_some_and(|argv| match argv.first() {
            Some(program) => !program.trim().is_empty(),
            None => !required,
        }),
        Kind::Arguments => texts(value).is_some(),
        Kind::Patterns(named) => texts(value).is_some_and(|list| list.iter().all(|glob| named.can_match(glob))),
    }
}

fn integer(value: &DeValue<'_>) -> Option<i128> {
    let digits = value.as_integer()?;
    i128::from_str_radix(digits.as_str(), digits.radix()).ok()
}

fn amount(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(float) => float.as_str().parse().ok(),
        None => value.as_integer()?.to_string().parse().ok(),
    }
}

/// Returns a string that a process can be given: one without NUL.
fn text<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    value.as_str().filter(|text| !text.contains('\0'))
}

fn texts<'v>(value: &'v DeValue<'_>) -> Option<Vec<&'v str>> {
    value.as_array()?.iter().map(|item| text(item.get_ref())).collect()
}

/// Says what was found, as the end of a sentence; long values by their type alone.
fn describe(value: &DeValue<'_>) -> String {
    let shown = match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| describe(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    if shown.len() <= SHOWN_BYTES { shown } else { format!("a long {}", value.type_str()) }
}
