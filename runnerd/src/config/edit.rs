//! Single keys of a repository's configuration: shown with their origin, set and unset in place.
//!
//! Comments and the order of lines stay as they are. Nothing is read from or written to disk.

use std::path::Path;

use toml::{Table, Value};
use toml_edit::{DocumentMut, Item, TableLike};

use super::check;
use super::error::{ConfigError, Problem};
use super::keys::{self, Default, Key, Section, Shown};
use super::parse::{self, Source};
use super::table::REPOSITORY;

/// What messages call a text that was handed over without a name.
const FILE: &str = ".runner/state/config.toml";

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file does not set the key.
    Default,
    /// The file sets the key.
    File,
}

/// One key with its value and the value's origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The dotted key.
    pub key: String,
    /// The value as TOML, `None` if the key is off.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Returns the value of one key.
pub fn get(text: &str, key: &str) -> Result<Setting, ConfigError> {
    let path = Dotted::parse(key)?;
    let file = parse::checked(REPOSITORY, source(text))?;
    Ok(setting(&file, &path.parents(), path.key))
}

/// Returns every key: those with a default, and those of optional sections that the file sets.
pub fn show(text: &str) -> Result<Vec<Setting>, ConfigError> {
    let file = parse::checked(REPOSITORY, source(text))?;
    let sections =
        REPOSITORY.iter().flat_map(|section| present(&file, section).into_iter().map(move |path| (section, path)));
    let settings = sections.flat_map(|(section, path)| {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let all = section.keys.iter().map(|key| setting(&file, &path, key)).collect::<Vec<_>>();
        all.into_iter().filter(|setting| section.shown == Shown::InFull || setting.origin == Origin::File)
    });
    Ok(settings.collect())
}

/// Sets a key to a value given as TOML, or as a bare word where only a string is possible.
/// Returns the new text, which is valid as a whole.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let path = Dotted::parse(key)?;
    let mut document = document(text)?;
    let value = path.read_value(value)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in path.parents() {
        let item = table.entry(part).or_insert_with(new_table);
        table = item.as_table_like_mut().ok_or_else(|| not_a_section(part))?;
    }
    match table.get_mut(path.key.name).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(path.key.name, Item::Value(value));
        }
    }
    accepted(document.to_string(), key)
}

/// Removes a key, so that its default holds again, and returns the new text.
pub fn unset(text: &str, key: &str) -> Result<String, ConfigError> {
    let path = Dotted::parse(key)?;
    let mut document = document(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in path.parents() {
        let Some(inner) = table.get_mut(part).and_then(Item::as_table_like_mut) else {
            return Ok(text.to_owned());
        };
        table = inner;
    }
    table.remove(path.key.name);
    accepted(document.to_string(), key)
}

/// A dotted key that exists.
struct Dotted {
    parts: Vec<String>,
    key: &'static Key,
}

impl Dotted {
    fn parse(key: &str) -> Result<Self, ConfigError> {
        let unknown = |path: &[&str], name: &str| ConfigError::in_value(check::unknown(REPOSITORY, path, name));
        let parts = toml_edit::Key::parse(key).map_err(|_| unknown(&[], key))?;
        let parts: Vec<_> = parts.iter().map(|part| part.get().to_owned()).collect();
        let path: Vec<_> = parts.iter().map(String::as_str).collect();
        let leads = |end: &usize| keys::leads_to_section(REPOSITORY, &path[..*end]);
        let known = (1..=path.len()).take_while(leads).last().unwrap_or(0);
        let section = keys::section(REPOSITORY, &path[..known]);
        match (section.and_then(|section| section.key(path.get(known)?)), &path[known..]) {
            (Some(key), [_]) => Ok(Self { parts, key }),
            (_, []) => Err(ConfigError::in_value(Problem::NotASection(key.to_owned()))),
            (_, [name, ..]) => Err(unknown(&path[..known], name)),
        }
    }

    fn parents(&self) -> Vec<&str> {
        self.parts[..self.parts.len() - 1].iter().map(String::as_str).collect()
    }

    fn read_value(&self, given: &str) -> Result<toml_edit::Value, ConfigError> {
        let textual = self.key.kind.is_textual();
        match given.parse::<toml_edit::Value>() {
            Ok(value) if value.is_str() || !textual => Ok(value),
            _ if textual => Ok(given.into()),
            _ => Err(ConfigError::in_value(Problem::Invalid {
                key: keys::dotted(&self.parents(), self.key.name),
                expected: self.key.kind.expected(),
                found: format!("`{given}`"),
                nearest: None,
            })),
        }
    }
}

fn source(text: &str) -> Source<'_> {
    Source { text, file: Path::new(FILE) }
}

fn document(text: &str) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let offset = error.span().map(|span| span.start);
        source(text).fault(offset, Problem::Syntax(error.message().to_owned()))
    })
}

fn new_table() -> Item {
    let mut table = toml_edit::Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn not_a_section(part: &str) -> ConfigError {
    ConfigError::in_value(Problem::NotASection(part.to_owned()))
}

/// Checks a changed text; a fault of the key just changed is reported without a place, since the
/// text is nowhere yet.
fn accepted(text: String, key: &str) -> Result<String, ConfigError> {
    match super::parse(&text, Path::new(FILE)) {
        Ok(_) => Ok(text),
        Err(ConfigError::Wrong { problem, .. }) if problem.key() == Some(key) => Err(ConfigError::in_value(*problem)),
        Err(other) => Err(other),
    }
}

fn setting(file: &Table, path: &[&str], key: &Key) -> Setting {
    let table = path.iter().try_fold(file, |table, part| table.get(*part)?.as_table());
    let set = table.and_then(|table| table.get(key.name));
    let default = match key.default {
        Default::Is(toml) => Some(toml.to_owned()),
        Default::Off(_) | Default::Required => None,
    };
    Setting {
        key: keys::dotted(path, key.name),
        value: set.map(Value::to_string).or(default),
        origin: if set.is_some() { Origin::File } else { Origin::Default },
    }
}

/// Lists the paths at which a section stands: its own, or for a `*` those that the file has.
fn present(file: &Table, section: &Section) -> Vec<Vec<String>> {
    let parts = section.parts();
    let Some((&"*", parents)) = parts.split_last() else {
        return vec![parts.into_iter().map(str::to_owned).collect()];
    };
    let table = parents.iter().try_fold(file, |table, part| table.get(*part)?.as_table());
    let names = table.into_iter().flat_map(Table::keys);
    names.map(|name| parents.iter().map(|part| (*part).to_owned()).chain([name.clone()]).collect()).collect()
}
