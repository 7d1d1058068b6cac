//! A key of the configuration that a person sets: the whole text is checked before the request is taken.
//!
//! Where it is written is `changes`', or the caller's; whether this machine can do it shows when an iteration is opened.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use runner_core::change::Change;

use crate::causes::in_one_line;
use crate::config::{self, ConfigError, RepoConfig};
use crate::repo::layout::Layout;

/// Returns a text with one key set, or with its default where there is no value, and what it means.
pub fn set(text: &str, key: &str, value: Option<&str>) -> Result<(String, RepoConfig), ErrorData> {
    let with_key = match value {
        Some(value) => config::set(text, key, value),
        None => config::unset(text, key),
    };
    let meaning = with_key.and_then(|text| parse(&text).map(|config| (text, config)));
    let (text, config) =
        meaning.map_err(|error| if parse(text).is_err() { invalid(&error) } else { refused(&error) })?;
    if let Err(error) = config.check_ceilings() {
        return Err(ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).hint("runnerctl config get prices"));
    }
    Ok((text, config))
}

/// Returns the request to set a key upon a text; the value is shown as the text has it.
pub(crate) fn change(base: &str, key: String, value: Option<&str>) -> Result<Change, ErrorData> {
    let (text, _) = set(base, &key, value)?;
    let value = match value {
        Some(_) => config::get(&text, &key).map_err(|error| refused(&error))?.value,
        None => None,
    };
    Ok(Change::Config { key, value, base: base.to_owned(), text })
}

/// Returns the digest of the commands that a person confirms by setting a key: those before it were confirmed, and what is
/// new of them is theirs.
pub(crate) fn confirms(change: &Change, confirmed: &[String]) -> Option<String> {
    let Change::Config { base, text, .. } = change else { return None };
    let was_confirmed = parse(base).is_ok_and(|config| confirmed.contains(&config.commands_digest()));
    was_confirmed.then(|| parse(text).ok().map(|config| config.commands_digest())).flatten()
}

fn parse(text: &str) -> Result<RepoConfig, ConfigError> {
    config::parse(text, Path::new(Layout::CONFIG))
}

/// The file was not valid before, and setting the key does not mend it.
fn invalid(error: &ConfigError) -> ErrorData {
    ErrorData::new(ErrorKind::InvalidFile, in_one_line(error))
        .hint(format!("correct {}, and: runnerctl validate", Layout::CONFIG))
}

fn refused(error: &ConfigError) -> ErrorData {
    let hint = match error.needed() {
        Some(key) => format!("runnerctl config set {key} … first"),
        None => "runnerctl config show".to_owned(),
    };
    ErrorData::new(ErrorKind::InvalidRequest, in_one_line(error)).hint(hint)
}
