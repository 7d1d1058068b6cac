//! Maps a position in a generated configuration back to the section of the case file that it was generated from. Pure.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::position::byte_offset;

/// A position in a file generated from a section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GeneratedPosition<'a> {
    /// Name of the section in the case file.
    pub(crate) section: &'a str,
    /// Text of the generated file.
    pub(crate) generated: &'a str,
    /// Line and column in the generated file, counted from 1.
    pub(crate) position: (usize, usize),
}

/// Finds the key or value in the case file for a position. `None` if the case contains a different key or value there,
/// so the position was not generated from it.
pub(crate) fn trace_to_case(case: &str, generated_position: GeneratedPosition<'_>) -> Option<Range<usize>> {
    let (line, column) = generated_position.position;
    let offset = byte_offset(generated_position.generated, line, column);
    let generated_items = list_items(generated_position.generated)?;
    let generated_item =
        generated_items.iter().filter(|mark| mark.span.contains(&offset)).min_by_key(|mark| mark.span.len())?;
    let path: Vec<&str> =
        std::iter::once(generated_position.section).chain(generated_item.path.iter().map(String::as_str)).collect();
    let case_item =
        list_items(case)?.into_iter().find(|mark| mark.is_key == generated_item.is_key && mark.path == path)?;
    (case_item.scalar == generated_item.scalar).then_some(case_item.span)
}

/// Position of a key or value.
#[derive(Debug)]
struct TomlItem {
    /// Keys and array indices, from the top.
    path: Vec<String>,
    is_key: bool,
    /// The value, if it is a scalar.
    scalar: Option<String>,
    span: Range<usize>,
}

fn list_items(text: &str) -> Option<Vec<TomlItem>> {
    let mut entries = Vec::new();
    collect_table(DeTable::parse(text).ok()?.get_ref(), &[], &mut entries);
    Some(entries)
}

fn collect_table(table: &DeTable<'_>, parent: &[String], marks: &mut Vec<TomlItem>) {
    for (key, value) in table {
        let path = [parent, &[key.get_ref().to_string()]].concat();
        marks.push(TomlItem { path: path.clone(), is_key: true, scalar: None, span: key.span() });
        collect_value(value, path, marks);
    }
}

fn collect_value(value: &Spanned<DeValue<'_>>, path: Vec<String>, marks: &mut Vec<TomlItem>) {
    let scalar = match value.get_ref() {
        DeValue::Table(table) => {
            collect_table(table, &path, marks);
            None
        }
        DeValue::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect_value(item, [&path[..], &[number.to_string()]].concat(), marks);
            }
            None
        }
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(word) => Some(word.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
    };
    marks.push(TomlItem { path, is_key: false, scalar, span: value.span() });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace_text<'a>(case: &'a str, config: &str, at: (usize, usize)) -> Option<&'a str> {
        trace_to_case(case, GeneratedPosition { section: "config", generated: config, position: at })
            .map(|span| &case[span])
    }

    #[test]
    fn a_key_and_a_value_are_found_however_the_case_is_laid_out() {
        let config = "max_iteration = 3\n[guard]\ncommand = [\"a\", 7]\n";
        for case in [
            "[config]\nmax_iteration = 3\n[config.guard]\ncommand = [\"a\", 7]\n",
            "[config.guard]\ncommand = ['a', 7]\n[config]\nmax_iteration = 3\n",
            "config = { max_iteration = 3, guard.command = [\"a\", 7] }\n",
        ] {
            assert_eq!(trace_text(case, config, (1, 1)), Some("max_iteration"), "{case}");
            assert_eq!(trace_text(case, config, (1, 17)), Some("3"), "{case}");
            assert_eq!(trace_text(case, config, (2, 2)), Some("guard"), "{case}");
            assert_eq!(trace_text(case, config, (3, 17)), Some("7"), "{case}");
        }
    }

    #[test]
    fn what_does_not_stand_in_the_case_is_not_found_there() {
        let config = "[executor]\nkind = \"other\"\n";
        assert_eq!(trace_text("[config.executor]\nkind = \"codex\"\n", config, (2, 8)), None);
        assert_eq!(trace_text("[config]\n", config, (2, 1)), None);
    }
}
