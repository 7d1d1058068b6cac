//! The last paragraph of a message, split into named values that are then taken one by one.
//!
//! Stricter than git: no continuation lines, no repetition, and nothing that is not a trailer.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use super::MessageError;
use crate::text::digest::is_lower_hex;

/// The trailers of a message that have not been taken yet.
pub(super) struct TrailerReader<'a> {
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> TrailerReader<'a> {
    /// Splits the paragraph; one without any line of the runner's is someone else's and has no trailers.
    pub(super) fn parse(paragraph: &'a str) -> Result<Self, MessageError> {
        let mut values = BTreeMap::new();
        if !paragraph.lines().any(|line| line.starts_with("Runner-Commit:") || line.starts_with("Runner-Human:")) {
            return Ok(Self { values });
        }
        for line in paragraph.lines() {
            let unexpected = || MessageError::Unexpected(line.to_owned());
            let (name, value) = line.split_once(": ").ok_or_else(unexpected)?;
            if !is_token(name) || values.insert(name, value).is_some() {
                return Err(unexpected());
            }
        }
        Ok(Self { values })
    }

    /// Takes a value, if it is present.
    pub(super) fn take_optional<T: FromStr<Err: Display>>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, MessageError> {
        let Some(value) = self.values.remove(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|error: T::Err| MessageError::Value { name, reason: error.to_string() })
    }

    /// Takes a value that must be present.
    pub(super) fn take_required<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Result<T, MessageError> {
        self.take_optional(name)?.ok_or(MessageError::Missing(name))
    }

    /// Takes the id of a git object, if it is present.
    pub(super) fn take_object_id(&mut self, name: &'static str) -> Result<Option<String>, MessageError> {
        let id: Option<String> = self.take_optional(name)?;
        match id {
            Some(id) if !matches!(id.len(), 40 | 64) || !is_lower_hex(&id) => {
                Err(MessageError::Value { name, reason: "expected 40 or 64 lower-case hexadecimal digits".to_owned() })
            }
            id => Ok(id),
        }
    }

    /// Finishes reading: any value that was not taken is unexpected.
    pub(super) fn finish(self) -> Result<(), MessageError> {
        match self.values.first_key_value() {
            Some((name, value)) => Err(MessageError::Unexpected(format!("{name}: {value}"))),
            None => Ok(()),
        }
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
