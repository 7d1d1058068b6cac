//! Single keys of a configuration: shown with their origin, and a repository's set and unset in place.
//!
//! Comments and the order of lines stay as they are. Nothing is read from or written to disk.

use std::path::Path;

use toml::de::DeTable;
use toml::{Table, Value};
use toml_edit::{DocumentMut, InlineTable, Item, TableLike};

use super::check;
use super::error::{ConfigError, Position, Problem};
use super::keys::{self, Default, Key, Section, Shown};
use super::parse::{self, Source};
use super::table::{DAEMON, REPOSITORY};

/// What messages call a text that was handed over without a name.
const FILE: &str = ".runner/state/config.toml";

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The file does not set the key.
    Default,
    /// The file sets the key, in this line.
    File {
        /// Number of the line, from 1.
        line: usize,
    },
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
    /// The words that it may be, where it is one of a few.
    pub choices: &'static [&'static str],
}

/// Returns the value of one key, or of a section that the text has, as an inline table.
pub fn get(text: &str, key: &str) -> Result<Setting, ConfigError> {
    let parts = parts(key)?;
    let file = Shape::read(REPOSITORY, source(text))?;
    if let Some(section) = file.section(&parts) {
        return Ok(section);
    }
    let path = Dotted::of(parts, key)?;
    Ok(file.setting(&path.parents(), path.key))
}

/// Returns the names that a dotted key consists of; the name of a model may have dots of its own.
pub fn names(key: &str) -> Vec<String> {
    parts(key).unwrap_or_else(|_| key.split('.').map(str::to_owned).collect())
}

/// Returns every key of a repository: those with a default, and those of optional sections that the file sets.
pub fn show(text: &str, file: &Path) -> Result<Vec<Setting>, ConfigError> {
    show_in(REPOSITORY, Source { text, file })
}

/// Returns every key of the daemon's settings.
pub fn show_daemon(text: &str, file: &Path) -> Result<Vec<Setting>, ConfigError> {
    show_in(DAEMON, Source { text, file })
}

fn show_in(sections: &'static [Section], source: Source<'_>) -> Result<Vec<Setting>, ConfigError> {
    let file = Shape::read(sections, source)?;
    let sections =
        sections.iter().flat_map(|section| present(&file.table, section).into_iter().map(move |path| (section, path)));
    let settings = sections.flat_map(|(section, path)| {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let all = section.keys.iter().map(|key| file.setting(&path, key)).collect::<Vec<_>>();
        all.into_iter().filter(|setting| section.shown == Shown::InFull || setting.origin != Origin::Default)
    });
    Ok(settings.collect())
}

/// Sets a key to a value given as TOML, or as a bare word where only a string is possible; or the keys of a section to
/// those of an inline table. Returns the new text, which is valid as a whole.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let parts = parts(key)?;
    let mut document = document(text)?;
    if let Some(values) = given_section(&parts, value) {
        for (name, value) in &values {
            let path = Dotted::of([&parts[..], &[name.to_owned()]].concat(), key)?;
            put(&mut document, &path, value.clone().decorated(" ", ""))?;
        }
    } else {
        let path = Dotted::of(parts, key)?;
        let value = path.read_value(value)?;
        if let Some(text) = at_its_comment(text, &path, &value).filter(|_| !path.is_set(&document)) {
            return accepted(text, key);
        }
        put(&mut document, &path, value)?;
    }
    accepted(document.to_string(), key)
}

/// Puts a key in the place of the comment that shows its default; none where its section has no such line.
fn at_its_comment(text: &str, path: &Dotted, value: &toml_edit::Value) -> Option<String> {
    let header = format!("[{}]", path.parents().join("."));
    let mark = format!("# {} = ", path.key.name);
    let mut is_inside = path.parents().is_empty();
    let at = text.lines().position(|line| {
        if line.starts_with('[') || line.starts_with("# [") {
            is_inside = line.trim_end() == header;
        }
        is_inside && line.starts_with(&mark)
    })?;
    let set = format!("{} = {}", path.key.name, value.clone().decorated("", ""));
    let lines = text.lines().enumerate().map(|(number, line)| if number == at { &set } else { line });
    Some(lines.flat_map(|line| [line, "\n"]).collect())
}

fn put(document: &mut DocumentMut, path: &Dotted, value: toml_edit::Value) -> Result<(), ConfigError> {
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
    Ok(())
}

/// Returns the inline table that a section is set to, where it is set as a whole.
fn given_section(parts: &[String], value: &str) -> Option<InlineTable> {
    let path: Vec<_> = parts.iter().map(String::as_str).collect();
    keys::section(REPOSITORY, &path)?;
    match value.parse() {
        Ok(toml_edit::Value::InlineTable(table)) if !table.is_empty() => Some(table),
        _ => None,
    }
}

/// Removes a key, so that its default holds again, and returns the new text.
pub fn unset(text: &str, key: &str) -> Result<String, ConfigError> {
    let path = Dotted::of(parts(key)?, key)?;
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

/// Reads the names that a dotted key consists of.
fn parts(key: &str) -> Result<Vec<String>, ConfigError> {
    let parts = toml_edit::Key::parse(key).map_err(|_| unknown(&[], key))?;
    Ok(joined(parts.iter().map(|part| part.get().to_owned()).collect()))
}

/// Takes a name with dots, as those of models have, for one without quotes too, where only a name can follow.
fn joined(parts: Vec<String>) -> Vec<String> {
    let named = REPOSITORY.iter().find(|section| match section.parts().split_last() {
        Some((&"*", above)) => parts.len() > above.len() && above.iter().zip(&parts).all(|(a, b)| a == b),
        _ => false,
    });
    let Some(section) = named else { return parts };
    let from = section.parts().len() - 1;
    let has_key = parts.len() > from + 1 && parts.last().is_some_and(|last| section.key(last).is_some());
    let to = parts.len() - usize::from(has_key);
    [&parts[..from], &[parts[from..to].join(".")], &parts[to..]].concat()
}

fn unknown(path: &[&str], name: &str) -> ConfigError {
    ConfigError::in_value(check::unknown(REPOSITORY, path, name))
}

impl Dotted {
    /// Finds the key with these names; `key` is what it was called.
    fn of(parts: Vec<String>, key: &str) -> Result<Self, ConfigError> {
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

    fn is_set(&self, document: &DocumentMut) -> bool {
        let first: &dyn TableLike = document.as_table();
        let table = self.parents().iter().try_fold(first, |table, part| table.get(part)?.as_table_like());
        table.is_some_and(|table| table.contains_key(self.key.name))
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
    let is_it =
        |faulty: &str| parts(faulty).ok().zip(parts(key).ok()).is_some_and(|(faulty, key)| faulty.starts_with(&key));
    match super::parse(&text, Path::new(FILE)) {
        Ok(_) => Ok(text),
        Err(ConfigError::Wrong { problem, .. }) if problem.key().is_some_and(is_it) => {
            Err(ConfigError::in_value(*problem))
        }
        Err(other) => Err(other),
    }
}

/// A file as a table of values, and as one of places.
struct Shape<'s> {
    source: Source<'s>,
    table: Table,
    places: Option<toml::Spanned<DeTable<'s>>>,
}

impl<'s> Shape<'s> {
    fn read(sections: &'static [Section], source: Source<'s>) -> Result<Self, ConfigError> {
        let table = parse::checked(sections, source)?;
        Ok(Self { source, table, places: DeTable::parse(source.text).ok() })
    }

    fn section(&self, parts: &[String]) -> Option<Setting> {
        let path: Vec<_> = parts.iter().map(String::as_str).collect();
        let (name, parents) = path.split_last()?;
        keys::section(REPOSITORY, &path)?;
        let table = path.iter().try_fold(&self.table, |table, part| table.get(*part)?.as_table())?;
        let first = self.places.as_ref().and_then(|places| check::locate(places.get_ref(), &path));
        let line = Position::at(self.source.file, self.source.text, first).position.map_or(1, |(line, _)| line);
        let value = Some(Value::Table(table.clone()).to_string());
        Some(Setting { key: keys::dotted(parents, name), value, origin: Origin::File { line }, choices: &[] })
    }

    fn setting(&self, path: &[&str], key: &Key) -> Setting {
        let table = path.iter().try_fold(&self.table, |table, part| table.get(*part)?.as_table());
        let set = table.and_then(|table| table.get(key.name));
        let default = match key.default {
            Default::Is(toml) => Some(toml.to_owned()),
            Default::Off(_) | Default::Required => None,
        };
        Setting {
            key: keys::dotted(path, key.name),
            value: set.map(Value::to_string).or(default),
            origin: if set.is_some() { Origin::File { line: self.line(path, key) } } else { Origin::Default },
            choices: key.kind.choices(),
        }
    }

    fn line(&self, path: &[&str], key: &Key) -> usize {
        let path: Vec<&str> = path.iter().copied().chain([key.name]).collect();
        let offset = self.places.as_ref().and_then(|places| check::locate(places.get_ref(), &path));
        Position::at(self.source.file, self.source.text, offset).position.map_or(1, |(line, _)| line)
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
