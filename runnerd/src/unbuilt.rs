//! What a configuration can ask for and this version does not do: refused, never passed over in silence.
//!
//! Asked where a run is started and again where an iteration is opened, since a commit in between may bring another
//! configuration. Settings whose default asks for such a thing cannot be refused; their description says so.

use protocol::words::Containment;

use crate::agent;
use crate::config::{RepoConfig, Reviewer};

/// A setting that would not be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbuilt {
    /// What is asked for, naming the key.
    pub message: String,
    /// What to change.
    pub hint: &'static str,
}

/// Returns the first such setting.
pub fn first(config: &RepoConfig) -> Option<Unbuilt> {
    agents(config).or_else(|| {
        let hooks = &config.hooks;
        let hooks = [&hooks.on_complete, &hooks.on_stuck, &hooks.on_stop, &hooks.on_question];
        let asked = [
            (
                config.review.by != Reviewer::Off,
                "review.by: this version has no reviews",
                "set review.by = \"off\" in .runner/state/config.toml",
            ),
            (
                config.containment.require != Containment::Walk,
                "containment.require: this version holds processes at the level \"walk\" alone",
                "set containment.require = \"walk\" in .runner/state/config.toml, and see docs/security.md",
            ),
            (
                hooks.iter().any(|hook| !hook.is_empty()),
                "[hooks]: this version runs no hooks",
                "empty the lists under [hooks] in .runner/state/config.toml; runnerctl start --wait ends with the run",
            ),
        ];
        asked.into_iter().find(|(is_asked, ..)| *is_asked).map(|(_, message, hint)| unbuilt(message, hint))
    })
}

fn agents(config: &RepoConfig) -> Option<Unbuilt> {
    config.executor.by_section().into_iter().find_map(|(section, executor)| {
        if let Some(why) = agent::unsupported(executor.kind) {
            let hint = "runnerctl init; then in .runner/state/config.toml set executor.kind = \"command\" and executor.command";
            return Some(unbuilt(format!("[{section}]: {why}"), hint));
        }
        let has_fallback = !executor.fallback.is_empty();
        has_fallback.then(|| {
            let hint =
                "empty executor.fallback in .runner/state/config.toml; a service that is unavailable is waited for";
            unbuilt(format!("[{section}] fallback: this version goes on with no other kind"), hint)
        })
    })
}

fn unbuilt(message: impl Into<String>, hint: &'static str) -> Unbuilt {
    Unbuilt { message: message.into(), hint }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;

    fn first_of(text: &str) -> Option<String> {
        let config = parse(text, Path::new("config.toml")).unwrap();
        first(&config).map(|unbuilt| unbuilt.message)
    }

    #[test]
    fn a_command_with_a_guard_is_all_that_a_run_needs() {
        assert_eq!(first_of("[executor]\nkind = \"command\"\ncommand = [\"a\"]\n"), None);
    }

    #[test]
    fn what_would_be_ignored_is_refused_by_its_key() {
        let refused = |key: &str, text: &str| {
            let text = format!("{text}\n[executor]\nkind = \"command\"\ncommand = [\"a\"]\n");
            let message = first_of(&text).unwrap_or_default();
            assert!(message.contains(key), "{key}: {message}");
        };
        refused("review.by", "[review]\nby = \"human\"");
        refused("containment.require", "[containment]\nrequire = \"cgroup\"");
        refused("[hooks]", "[hooks]\non_stuck = [\"mail\"]");
        let fallback = "[executor]\nkind = \"command\"\ncommand = [\"a\"]\nfallback = [\"claude\"]\n";
        assert!(first_of(fallback).is_some_and(|message| message.contains("fallback")));
        assert!(first_of("").is_some_and(|message| message.contains("codex")));
    }
}
