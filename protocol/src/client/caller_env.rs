//! The caller's variables that are sent to the daemon with a request: `PATH`, locale, the names in `[env]`, and those
//! the agents need, which the daemon lists.
//!
//! The daemon's own environment is that of a service; an agent that works in the caller's shell must also work in a
//! run.

use std::ffi::OsString;

use super::Connection;
use crate::api::ConfigApiClient as _;
use crate::path::WirePath;
use crate::request::{CallerEnv, ConfigKey, UserDefaults};

/// Always sent. `TERM` is not included: sessions have no terminal.
const ALWAYS_SENT: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LANGUAGE", "LC_*", "TZ"];

/// Collects the variables for the repository at `path`. For a daemon on another machine they come from the login there;
/// no local variables are sent, since folders and programs differ.
pub async fn collect(connection: &Connection, path: &WirePath) -> CallerEnv {
    collect_for_new(connection, path, None).await
}

/// Like [`collect`], for a repository that may not have a configuration yet: then the caller's own defaults apply.
pub async fn collect_for_new(connection: &Connection, path: &WirePath, defaults: Option<UserDefaults>) -> CallerEnv {
    // If the configuration cannot be read, the request itself reports that.
    let config = connection.client().get(ConfigKey { path: path.clone(), key: None, defaults }).await;
    let patterns = config.map(|reply| reply.variables).unwrap_or_default();
    match connection.environment() {
        Some(remote) => select_variables(remote.iter().map(|(name, value)| (name.into(), value.into())), &patterns),
        None => select_variables(std::env::vars_os(), &patterns),
    }
}

/// Whether a variable is sent with every request, and so cannot be one that an engine injects for a single run.
pub fn is_sent_always(name: &str) -> bool {
    ALWAYS_SENT.iter().any(|pattern| matches_pattern(pattern, name))
}

/// Keeps the variables that are always sent or that match a name; values that are not UTF-8 are not sent.
fn select_variables(variables: impl Iterator<Item = (OsString, OsString)>, patterns: &[String]) -> CallerEnv {
    let is_wanted = |name: &str| is_sent_always(name) || patterns.iter().any(|pattern| matches_pattern(pattern, name));
    let pairs = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    CallerEnv(pairs.filter(|(name, _)| is_wanted(name)).collect())
}

/// Whether a name matches a pattern in which `*` matches any characters.
///
/// Repositories write the patterns, so each part is searched only once, from the left.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn only_named_variables_leave_the_shell() {
        let named = ["ACME_*", "CI"].map(str::to_owned);
        let shell =
            [("PATH", "/bin"), ("LC_TIME", "C"), ("ACME_KEY", "k"), ("CI", "1"), ("TERM", "x"), ("SECRET", "s")];
        let env = select_variables(shell.iter().map(|(name, value)| (name.into(), value.into())), &named);
        assert_eq!(env.0.into_keys().collect::<Vec<_>>(), ["ACME_KEY", "CI", "LC_TIME", "PATH"]);
    }

    #[test]
    fn a_value_that_is_not_text_is_skipped() {
        let shell = [("PATH".into(), OsString::from_vec(vec![0xff])), ("HOME".into(), "/h".into())];
        assert_eq!(select_variables(shell.into_iter(), &[]).0.into_keys().collect::<Vec<_>>(), ["HOME"]);
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        assert!(
            matches_pattern("*_PROXY", "HTTPS_PROXY") && matches_pattern("A*C", "ABBC") && matches_pattern("*", "")
        );
        assert!(
            !matches_pattern("LC_*", "LANG") && !matches_pattern("PATH", "PATHEXT") && !matches_pattern("A*C", "ABCD")
        );
    }
}
