//! Changes of the configuration by people, one key or by hand: the whole text is validated before the request is
//! accepted.
//!
//! Writing it is up to `changes` or the caller; whether this machine supports it is checked when an iteration is
//! opened.

use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use runner_config::{ConfigError, RepoConfig};
use runner_core::files::change::ChangeRequest;
use runner_core::text::digest::sha256_hex;
use runner_os::error_chain::display_chain;

use crate::repo::layout::Layout;

/// Returns a text with one key set, or reset to its default if `value` is `None`, and the configuration it parses to.
pub fn set_config_key(text: &str, key: &str, value: Option<&str>) -> Result<(String, RepoConfig), ErrorData> {
    let with_key = match value {
        Some(value) => runner_config::set(text, key, value),
        None => runner_config::unset(text, key),
    };
    let parsed = with_key.and_then(|text| parse_config(&text).map(|config| (text, config)));
    let (text, config) =
        parsed.map_err(
            |error| if parse_config(text).is_err() { invalid_file_error(&error) } else { refused_error(&error) },
        )?;
    if let Err(error) = config.check_cost_limit() {
        return Err(ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).hint("runnerctl config get prices"));
    }
    Ok((text, config))
}

/// Returns the request to set a key in a text; the value is shown as it is spelled there.
pub(crate) fn key_change(base: &str, key: String, value: Option<&str>) -> Result<ChangeRequest, ErrorData> {
    let (text, _) = set_config_key(base, &key, value)?;
    let value = match value {
        Some(_) => runner_config::get(&text, &key).map_err(|error| refused_error(&error))?.value,
        None => None,
    };
    Ok(ChangeRequest::Config { key, value, base: base.to_owned(), text })
}

/// Returns the request to replace the text that was opened, which is identified by its digest.
pub fn text_change(base: &str, text: String, opened: Option<&str>) -> Result<ChangeRequest, ErrorData> {
    if opened.is_some_and(|digest| digest != sha256_hex(base.as_bytes())) {
        let message = "the configuration has changed since it was opened";
        return Err(ErrorData::new(ErrorKind::WrongState, message).hint("runnerctl config edit"));
    }
    let config = parse_config(&text).map_err(|error| refused_error(&error))?;
    if let Err(error) = config.check_cost_limit() {
        return Err(ErrorData::new(ErrorKind::InvalidRequest, error.to_string()).hint("runnerctl config get prices"));
    }
    Ok(ChangeRequest::Settings { keys: runner_config::changed_keys(base, &text), base: base.to_owned(), text })
}

/// Returns the digest of the commands that a person confirms by changing the configuration: if the old ones were
/// confirmed, the new ones are that person's.
pub(crate) fn confirmed_digest(change: &ChangeRequest, confirmed: &[String]) -> Option<String> {
    let (ChangeRequest::Config { base, text, .. } | ChangeRequest::Settings { base, text, .. }) = change else {
        return None;
    };
    let was_confirmed = parse_config(base).is_ok_and(|config| confirmed.contains(&config.commands_digest()));
    was_confirmed.then(|| parse_config(text).ok().map(|config| config.commands_digest())).flatten()
}

fn parse_config(text: &str) -> Result<RepoConfig, ConfigError> {
    runner_config::parse(text, Path::new(Layout::CONFIG))
}

/// The error for a file that was already invalid, and still is with the key set.
fn invalid_file_error(error: &ConfigError) -> ErrorData {
    ErrorData::new(ErrorKind::InvalidFile, display_chain(error))
        .hint(format!("correct {}, then: runnerctl validate", Layout::CONFIG))
}

fn refused_error(error: &ConfigError) -> ErrorData {
    let hint = match error.missing_key() {
        Some(key) => {
            let example = if key.starts_with("prices") { "10" } else { "sh agent.sh" };
            format!("set {key} first, such as: runnerctl config set {key} {example}")
        }
        None => "runnerctl config show".to_owned(),
    };
    ErrorData::new(ErrorKind::InvalidRequest, display_chain(error)).hint(hint)
}
