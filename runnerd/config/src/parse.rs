//! Parses text into typed values: size, syntax, keys, defaults, types, in this order.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, Deserializer};
use toml::{Table, Value};

use super::check;
use super::error::{ConfigError, ConfigProblem, FaultPosition};
use super::keys::{ConfigSection, KeyDefault, SectionDisplay};

/// Size limit of a configuration in bytes.
pub const MAX_BYTES: usize = 256 << 10;

/// A configuration text and its name in messages.
#[derive(Clone, Copy)]
pub(super) struct ConfigSource<'s> {
    pub(super) text: &'s str,
    pub(super) file: &'s Path,
}

impl ConfigSource<'_> {
    /// Reports a fault at a byte of the text.
    pub(super) fn error_at(self, offset: Option<usize>, problem: ConfigProblem) -> ConfigError {
        ConfigError::invalid(FaultPosition::locate(self.file, self.text, offset), problem)
    }

    /// Reports a fault at the value of a key.
    pub(super) fn error_at_key(self, path: &[&str], problem: ConfigProblem) -> ConfigError {
        self.error_at(self.find_key(path), problem)
    }

    /// Finds the byte at which the value of a key begins, or else the innermost table around it.
    fn find_key(self, path: &[&str]) -> Option<usize> {
        check::locate_value(DeTable::parse(self.text).ok()?.get_ref(), path)
    }
}

/// Returns where a text sets a key, or begins its section; in no file if it does neither.
pub fn locate_key(text: &str, file: &Path, key: &str) -> FaultPosition {
    let path: Vec<&str> = key.split('.').collect();
    let offset = ConfigSource { text, file }.find_key(&path);
    offset.map_or_else(FaultPosition::default, |offset| FaultPosition::locate(file, text, Some(offset)))
}

/// Decodes the content of `file`; an error points at the first byte that is not UTF-8.
pub fn decode_text<'b>(bytes: &'b [u8], file: &Path) -> Result<&'b str, ConfigError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        ConfigSource { text: before, file }.error_at(Some(before.len()), ConfigProblem::NotUtf8)
    })
}

/// Parses a text whose keys are listed in `sections`; missing keys get their value in `defaults`.
pub(super) fn parse_typed<T: DeserializeOwned>(
    sections: &'static [ConfigSection],
    defaults: &Table,
    source: ConfigSource<'_>,
) -> Result<T, ConfigError> {
    let mut table = defaults.clone();
    overlay(&mut table, parse_checked(sections, source)?);
    table.try_into().map_err(|error: toml::de::Error| {
        source.error_at(None, ConfigProblem::TypeMismatch(error.message().to_owned()))
    })
}

/// Parses a text into a plain table after checking every key and value individually.
pub(super) fn parse_checked(
    sections: &'static [ConfigSection],
    source: ConfigSource<'_>,
) -> Result<Table, ConfigError> {
    let size = source.text.len();
    if size > MAX_BYTES {
        return Err(source.error_at(None, ConfigProblem::TooLarge { size, limit: MAX_BYTES }));
    }
    let syntax_error = |error: toml::de::Error| {
        let offset = error.span().map(|span| span.start);
        source.error_at(offset, ConfigProblem::Syntax(error.message().to_owned()))
    };
    let root = DeTable::parse(source.text).map_err(syntax_error)?;
    if let Some(finding) = check::find_first_fault(sections, root.get_ref()) {
        return Err(source.error_at(Some(finding.span.start), finding.problem));
    }
    Table::deserialize(Deserializer::from(root)).map_err(syntax_error)
}

/// Returns the values of an empty file.
pub(super) fn default_table(sections: &[ConfigSection]) -> Table {
    let mut root = Table::new();
    for section in sections.iter().filter(|section| section.shown == SectionDisplay::Full) {
        let table = section.parts().into_iter().fold(&mut root, |table, part| {
            let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            entry.as_table_mut().expect("BUG: a section is named like a key")
        });
        for key in section.keys {
            if let KeyDefault::Toml(toml) = key.default {
                table.insert(key.name.to_owned(), parse_default(toml));
            }
        }
    }
    root
}

fn parse_default(toml: &str) -> Value {
    let line = format!("value = {toml}");
    let mut table: Table = line.parse().expect("BUG: a default in the table of keys is no TOML");
    table.remove("value").expect("BUG: a default in the table of keys is empty")
}

fn overlay(base: &mut Table, overrides: Table) {
    for (name, value) in overrides {
        match (base.get_mut(&name), value) {
            (Some(Value::Table(base)), Value::Table(overrides)) => overlay(base, overrides),
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}
