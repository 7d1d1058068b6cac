//! From text to typed values: size, syntax, keys, defaults, types, in this order.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::DeTable;
use toml::{Table, Value};

use super::check;
use super::error::{ConfigError, Position, Problem};
use super::keys::{Default, Section, Shown};

/// Bytes that a configuration may have.
pub(super) const LIMIT: usize = 256 << 10;

/// A configuration text and the name by which messages call it.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    pub(super) text: &'s str,
    pub(super) file: &'s Path,
}

impl Source<'_> {
    /// Reports a fault at a byte of the text.
    pub(super) fn fault(self, offset: Option<usize>, problem: Problem) -> ConfigError {
        ConfigError::wrong(Position::at(self.file, self.text, offset), problem)
    }

    /// Reports a fault at the value of a key.
    pub(super) fn fault_at_key(self, path: &[&str], problem: Problem) -> ConfigError {
        let root = DeTable::parse(self.text).ok();
        let offset = root.and_then(|root| check::locate(root.get_ref(), path));
        self.fault(offset, problem)
    }
}

/// Returns the text of the file that `file` names; an error points at the first byte that is not UTF-8.
pub fn text<'b>(bytes: &'b [u8], file: &Path) -> Result<&'b str, ConfigError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        Source { text: before, file }.fault(Some(before.len()), Problem::NotUtf8)
    })
}

/// Reads a text whose keys are listed in `sections`; keys that it lacks have their defaults.
pub(super) fn read<T: DeserializeOwned>(sections: &'static [Section], source: Source<'_>) -> Result<T, ConfigError> {
    let mut table = defaults(sections);
    overlay(&mut table, checked(sections, source)?);
    table.try_into().map_err(|error: toml::de::Error| source.fault(None, Problem::Shape(error.message().to_owned())))
}

/// Reads a text into a plain table after checking every key and value on its own.
pub(super) fn checked(sections: &'static [Section], source: Source<'_>) -> Result<Table, ConfigError> {
    let size = source.text.len();
    if size > LIMIT {
        return Err(source.fault(None, Problem::TooLarge { size, limit: LIMIT }));
    }
    let syntax = |error: toml::de::Error| {
        let offset = error.span().map(|span| span.start);
        source.fault(offset, Problem::Syntax(error.message().to_owned()))
    };
    let root = DeTable::parse(source.text).map_err(syntax)?;
    if let Some(finding) = check::first_fault(sections, root.get_ref()) {
        return Err(source.fault(Some(finding.span.start), finding.problem));
    }
    source.text.parse().map_err(syntax)
}

/// Returns what an empty file means.
fn defaults(sections: &[Section]) -> Table {
    let mut root = Table::new();
    for section in sections.iter().filter(|section| section.shown == Shown::InFull) {
        let table = section.parts().into_iter().fold(&mut root, |table, part| {
            let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            entry.as_table_mut().expect("BUG: a section is named like a key")
        });
        for key in section.keys {
            if let Default::Is(toml) = key.default {
                table.insert(key.name.to_owned(), value_of(toml));
            }
        }
    }
    root
}

fn value_of(toml: &str) -> Value {
    let line = format!("value = {toml}");
    let mut table: Table = line.parse().expect("BUG: a default in the table of keys is no TOML");
    table.remove("value").expect("BUG: a default in the table of keys is empty")
}

fn overlay(below: &mut Table, above: Table) {
    for (name, value) in above {
        match (below.get_mut(&name), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                below.insert(name, value);
            }
        }
    }
}
