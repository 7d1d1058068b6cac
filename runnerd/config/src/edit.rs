//! Single keys of a configuration: shows them with their origin, and sets and unsets those of a repository in place.
//!
//! Comments and the order of lines are preserved. Nothing is read from or written to disk.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;
use toml::{Table, Value};
use toml_edit::{DocumentMut, InlineTable, Item, TableLike};

use super::check;
use super::error::{ConfigError, ConfigProblem, FaultPosition};
use super::keys::{self, ConfigSection, KeyDefault, KeyDefinition, SectionDisplay};
use super::parse::{self, ConfigSource};
use super::table::{DAEMON, REPOSITORY};

/// The file name in messages about a text without a name.
const FILE_NAME: &str = ".runner/state/config.toml";

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The file does not set the key.
    Default,
    /// The file sets the key, in this line.
    File {
        /// Line number, from 1.
        line: usize,
    },
}

/// One key with its value and the value's origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingEntry {
    /// The dotted key.
    pub key: String,
    /// The value as TOML, `None` if the key is off.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: ValueOrigin,
    /// The words allowed, if the key takes one of a few; otherwise empty.
    pub choices: &'static [&'static str],
}

/// Returns the value of one key, or of a section in the text as an inline table.
pub fn get(text: &str, key: &str) -> Result<SettingEntry, ConfigError> {
    let parts = parse_key(key)?;
    let file = ParsedFile::read(REPOSITORY, unnamed_source(text))?;
    if let Some(section) = file.section(&parts) {
        return Ok(section);
    }
    let path = DottedKey::find(parts, key)?;
    Ok(file.setting(&path.parents(), path.key))
}

/// Splits a dotted key into names; the name of a model may itself contain dots.
pub fn key_names(key: &str) -> Vec<String> {
    parse_key(key).unwrap_or_else(|_| key.split('.').map(str::to_owned).collect())
}

/// Returns every key of a repository: those with a default, and those of optional sections that the file sets.
pub fn list_settings(text: &str, file: &Path) -> Result<Vec<SettingEntry>, ConfigError> {
    list_in(REPOSITORY, ConfigSource { text, file })
}

/// Returns the keys of a repository that differ from the defaults, with their values as TOML.
pub fn list_changes(text: &str, file: &Path) -> Result<BTreeMap<String, String>, ConfigError> {
    let differs = |setting: &SettingEntry| get("", &setting.key).ok().is_none_or(|usual| usual.value != setting.value);
    let changed = list_settings(text, file)?.into_iter().filter(differs);
    Ok(changed.filter_map(|setting| Some((setting.key, setting.value?))).collect())
}

/// Returns the keys whose values differ between two texts; all keys of the other if one cannot be read.
pub fn changed_keys(base: &str, text: &str) -> Vec<String> {
    let read = |text: &str| list_settings(text, Path::new("")).unwrap_or_default();
    let before = read(base);
    let after = read(text);
    let value =
        |of: &[SettingEntry], key: &str| of.iter().find(|found| found.key == key).and_then(|found| found.value.clone());
    let mut keys: Vec<String> = before.iter().chain(&after).map(|setting| setting.key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| value(&before, key) != value(&after, key));
    keys
}

/// Returns every key of the daemon's settings.
pub fn list_daemon_settings(text: &str, file: &Path) -> Result<Vec<SettingEntry>, ConfigError> {
    list_in(DAEMON, ConfigSource { text, file })
}

fn list_in(sections: &'static [ConfigSection], source: ConfigSource<'_>) -> Result<Vec<SettingEntry>, ConfigError> {
    let file = ParsedFile::read(sections, source)?;
    let sections = sections
        .iter()
        .flat_map(|section| section_paths(&file.table, section).into_iter().map(move |path| (section, path)));
    let settings = sections.flat_map(|(section, path)| {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let all = section.keys.iter().map(|key| file.setting(&path, key)).collect::<Vec<_>>();
        all.into_iter()
            .filter(|setting| section.shown == SectionDisplay::Full || setting.origin != ValueOrigin::Default)
    });
    Ok(settings.collect())
}

/// Sets a key to a value given as TOML, or as a bare word if only a string is possible; or the keys of a section to
/// those of an inline table. Returns the new text, which is valid as a whole.
pub fn set(text: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let parts = parse_key(key)?;
    let mut document = parse_document(text)?;
    if let Some(values) = parse_section_value(&parts, value) {
        for (name, value) in &values {
            let path = DottedKey::find([&parts[..], &[name.to_owned()]].concat(), key)?;
            put_value(&mut document, &path, value.clone().decorated(" ", ""))?;
        }
    } else {
        let path = DottedKey::find(parts, key)?;
        let value = path.read_value(value)?;
        if let Some(text) = replace_comment(text, &path, &value).filter(|_| !path.is_set(&document)) {
            return check_edited(text, key);
        }
        put_value(&mut document, &path, value)?;
    }
    check_edited(document.to_string(), key)
}

/// Sets every key that `defaults`, another configuration, sets.
pub fn apply_defaults(text: &str, defaults: &str, file: &Path) -> Result<String, ConfigError> {
    let mut text = text.to_owned();
    for setting in list_settings(defaults, file)? {
        let (ValueOrigin::File { .. }, Some(value)) = (setting.origin, setting.value) else { continue };
        let path = DottedKey::find(parse_key(&setting.key)?, &setting.key)?;
        let value = path.read_value(&value)?;
        let mut document = parse_document(&text)?;
        if let Some(replaced) = replace_comment(&text, &path, &value).filter(|_| !path.is_set(&document)) {
            text = replaced;
        } else {
            put_value(&mut document, &path, value)?;
            text = document.to_string();
        }
    }
    super::parse(&text, file).map(|_| text)
}

/// Replaces the comment that shows a key's default; `None` if its section has no such line.
fn replace_comment(text: &str, path: &DottedKey, value: &toml_edit::Value) -> Option<String> {
    let header = format!("[{}]", path.parents().join("."));
    let prefix = format!("# {} = ", path.key.name);
    let mut is_inside = path.parents().is_empty();
    let position = text.lines().position(|line| {
        if line.starts_with('[') || line.starts_with("# [") {
            is_inside = line.trim_end() == header;
        }
        is_inside && line.starts_with(&prefix)
    })?;
    let set = format!("{} = {}", path.key.name, value.clone().decorated("", ""));
    let lines = text.lines().enumerate().map(|(number, line)| if number == position { &set } else { line });
    Some(lines.flat_map(|line| [line, "\n"]).collect())
}

fn put_value(document: &mut DocumentMut, path: &DottedKey, value: toml_edit::Value) -> Result<(), ConfigError> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in path.parents() {
        let item = table.entry(part).or_insert_with(new_table);
        table = item.as_table_like_mut().ok_or_else(|| not_a_section_error(part))?;
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

/// Returns the inline table if a section is set as a whole.
fn parse_section_value(parts: &[String], value: &str) -> Option<InlineTable> {
    let path: Vec<_> = parts.iter().map(String::as_str).collect();
    keys::find_section(REPOSITORY, &path)?;
    match value.parse() {
        Ok(toml_edit::Value::InlineTable(table)) if !table.is_empty() => Some(table),
        _ => None,
    }
}

/// Removes a key, so that its default applies again, and returns the new text.
pub fn unset(text: &str, key: &str) -> Result<String, ConfigError> {
    let path = DottedKey::find(parse_key(key)?, key)?;
    let mut document = parse_document(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in path.parents() {
        let Some(inner) = table.get_mut(part).and_then(Item::as_table_like_mut) else {
            return Ok(text.to_owned());
        };
        table = inner;
    }
    table.remove(path.key.name);
    check_edited(document.to_string(), key)
}

/// A dotted key that exists.
struct DottedKey {
    parts: Vec<String>,
    key: &'static KeyDefinition,
}

/// Parses a dotted key into names.
fn parse_key(key: &str) -> Result<Vec<String>, ConfigError> {
    let parts = toml_edit::Key::parse(key).map_err(|_| unknown_key_error(&[], key))?;
    Ok(join_dotted_name(parts.iter().map(|part| part.get().to_owned()).collect()))
}

/// Accepts a name with dots, such as that of a model, even without quotes, if only a name can follow.
fn join_dotted_name(parts: Vec<String>) -> Vec<String> {
    let section = REPOSITORY.iter().find(|section| match section.parts().split_last() {
        Some((&"*", above)) => parts.len() > above.len() && above.iter().zip(&parts).all(|(a, b)| a == b),
        _ => false,
    });
    let Some(section) = section else { return parts };
    let from = section.parts().len() - 1;
    let has_key = parts.len() > from + 1 && parts.last().is_some_and(|last| section.key(last).is_some());
    let to = parts.len() - usize::from(has_key);
    [&parts[..from], &[parts[from..to].join(".")], &parts[to..]].concat()
}

fn unknown_key_error(path: &[&str], name: &str) -> ConfigError {
    ConfigError::without_position(check::unknown_key(REPOSITORY, path, name))
}

impl DottedKey {
    /// Finds the key with these names; `key` is its spelling in messages.
    fn find(parts: Vec<String>, key: &str) -> Result<Self, ConfigError> {
        let path: Vec<_> = parts.iter().map(String::as_str).collect();
        let leads = |end: &usize| keys::leads_to_section(REPOSITORY, &path[..*end]);
        let known = (1..=path.len()).take_while(leads).last().unwrap_or(0);
        let section = keys::find_section(REPOSITORY, &path[..known]);
        match (section.and_then(|section| section.key(path.get(known)?)), &path[known..]) {
            (Some(key), [_]) => Ok(Self { parts, key }),
            (_, []) => Err(ConfigError::without_position(ConfigProblem::NotASection(key.to_owned()))),
            (_, [name, ..]) => Err(unknown_key_error(&path[..known], name)),
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
        let is_list = |value: &toml_edit::Value| value.is_array();
        match given.parse::<toml_edit::Value>() {
            parsed if self.key.kind.is_command() && !parsed.as_ref().is_ok_and(is_list) && is_plain_command(given) => {
                Ok(given.split_whitespace().collect::<toml_edit::Array>().into())
            }
            Ok(value) if value.is_str() || !textual => Ok(value),
            // Several words, or a list where there is none.
            parsed if textual && !parsed.as_ref().is_ok_and(is_list) => Ok(given.into()),
            _ => Err(ConfigError::without_position(ConfigProblem::Invalid {
                key: keys::dotted_key(&self.parents(), self.key.name),
                expected: self.key.kind.expected(),
                found: format!("`{given}`"),
                nearest: None,
            })),
        }
    }
}

/// Whether a text is a program and its arguments, with nothing in it that a shell would change.
fn is_plain_command(text: &str) -> bool {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | ':' | '=' | '+' | ',' | '@' | '%');
    !text.trim().is_empty() && text.chars().all(is_plain)
}

fn unnamed_source(text: &str) -> ConfigSource<'_> {
    ConfigSource { text, file: Path::new(FILE_NAME) }
}

fn parse_document(text: &str) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let offset = error.span().map(|span| span.start);
        unnamed_source(text).error_at(offset, ConfigProblem::Syntax(error.message().to_owned()))
    })
}

fn new_table() -> Item {
    let mut table = toml_edit::Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn not_a_section_error(part: &str) -> ConfigError {
    ConfigError::without_position(ConfigProblem::NotASection(part.to_owned()))
}

/// Validates a changed text; a fault of the key just changed is reported without a position, since the text is not in a
/// file yet.
fn check_edited(text: String, key: &str) -> Result<String, ConfigError> {
    let is_edited_key = |faulty: &str| {
        parse_key(faulty).ok().zip(parse_key(key).ok()).is_some_and(|(faulty, key)| faulty.starts_with(&key))
    };
    match super::parse(&text, Path::new(FILE_NAME)) {
        Ok(_) => Ok(text),
        Err(ConfigError::Invalid { problem, .. }) if problem.key().is_some_and(is_edited_key) => {
            Err(ConfigError::without_position(*problem))
        }
        Err(other) => Err(other),
    }
}

/// A file as a table of values, and as a table of positions.
struct ParsedFile<'s> {
    source: ConfigSource<'s>,
    table: Table,
    spans: Option<toml::Spanned<DeTable<'s>>>,
}

impl<'s> ParsedFile<'s> {
    fn read(sections: &'static [ConfigSection], source: ConfigSource<'s>) -> Result<Self, ConfigError> {
        let table = parse::parse_checked(sections, source)?;
        Ok(Self { source, table, spans: DeTable::parse(source.text).ok() })
    }

    fn section(&self, parts: &[String]) -> Option<SettingEntry> {
        let path: Vec<_> = parts.iter().map(String::as_str).collect();
        let (name, parents) = path.split_last()?;
        keys::find_section(REPOSITORY, &path)?;
        let table = path.iter().try_fold(&self.table, |table, part| table.get(*part)?.as_table())?;
        let first = self.spans.as_ref().and_then(|places| check::locate_value(places.get_ref(), &path));
        let line =
            FaultPosition::locate(self.source.file, self.source.text, first).position.map_or(1, |(line, _)| line);
        let value = Some(Value::Table(table.clone()).to_string());
        Some(SettingEntry {
            key: keys::dotted_key(parents, name),
            value,
            origin: ValueOrigin::File { line },
            choices: &[],
        })
    }

    fn setting(&self, path: &[&str], key: &KeyDefinition) -> SettingEntry {
        let table = path.iter().try_fold(&self.table, |table, part| table.get(*part)?.as_table());
        let set = table.and_then(|table| table.get(key.name));
        let default = match key.default {
            KeyDefault::Toml(toml) => Some(toml.to_owned()),
            KeyDefault::Example(_) | KeyDefault::Required => None,
        };
        SettingEntry {
            key: keys::dotted_key(path, key.name),
            value: set.map(Value::to_string).or(default),
            origin: if set.is_some() {
                ValueOrigin::File { line: self.line_of(path, key) }
            } else {
                ValueOrigin::Default
            },
            choices: key.kind.choices(),
        }
    }

    fn line_of(&self, path: &[&str], key: &KeyDefinition) -> usize {
        let path: Vec<&str> = path.iter().copied().chain([key.name]).collect();
        let offset = self.spans.as_ref().and_then(|places| check::locate_value(places.get_ref(), &path));
        FaultPosition::locate(self.source.file, self.source.text, offset).position.map_or(1, |(line, _)| line)
    }
}

/// Lists the paths at which a section exists: its own, or for a `*` those in the file.
fn section_paths(file: &Table, section: &ConfigSection) -> Vec<Vec<String>> {
    let parts = section.parts();
    let Some((&"*", parents)) = parts.split_last() else {
        return vec![parts.into_iter().map(str::to_owned).collect()];
    };
    let table = parents.iter().try_fold(file, |table, part| table.get(*part)?.as_table());
    let names = table.into_iter().flat_map(Table::keys);
    names.map(|name| parents.iter().map(|part| (*part).to_owned()).chain([name.clone()]).collect()).collect()
}
