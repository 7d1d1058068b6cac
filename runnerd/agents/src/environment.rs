//! Which of the caller's variables an agent gets, and which a caller must send for it.
//!
//! Only the agent gets them: a guard gets what `[env] guard` names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use runner_config::{Executor, ExecutorKind, Patterns, RepoConfig};

use super::backends;

/// Variables by which a program reaches a service through a proxy, and those that name trusted certificates.
const NETWORK_VARIABLES: [&str; 11] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Returns the environment of a session: what every program gets, what its kind needs, and what `extra_patterns` add.
pub fn session_environment(
    executor: &Executor,
    extra_patterns: &Patterns,
    caller_env: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let needed = Patterns::new(kind_variables(executor.kind));
    let passed =
        caller_env.iter().filter(|(name, _)| extra_patterns.passes_variable(name) || needed.passes_variable(name));
    passed.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns the value of a variable that is set, and not empty.
pub(super) fn env_value<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let given = env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_os_str());
    given.filter(|value| !value.is_empty())
}

/// Returns the names and globs that a caller must send for the runs of a repository: those of its agents, of the kinds
/// that may replace them, and of its guard.
pub fn caller_variables(config: &RepoConfig) -> Vec<String> {
    let kinds = config
        .executor
        .by_section()
        .into_iter()
        .flat_map(|(_, executor)| std::iter::once(executor.kind).chain(executor.fallback.iter().copied()));
    let needed = kinds.collect::<BTreeSet<_>>().into_iter().flat_map(kind_variables).map(str::to_owned);
    let named = config.env.agent.as_slice().iter().chain(config.env.guard.as_slice()).cloned();
    named.chain(needed).collect::<BTreeSet<_>>().into_iter().collect()
}

fn kind_variables(kind: ExecutorKind) -> impl Iterator<Item = &'static str> {
    let about = backends::backend_for(kind).info();
    about.into_iter().flat_map(|about| NETWORK_VARIABLES.iter().chain(about.variables).copied())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse_text(text: &str) -> RepoConfig {
        runner_config::parse(text, Path::new("config.toml")).unwrap()
    }

    fn passed_names(text: &str, given: &[&str]) -> Vec<String> {
        let config = parse_text(text);
        let given = given.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let passed = session_environment(&config.executor.work, &config.env.agent, &given);
        passed.into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    const SHELL: [&str; 6] = ["CODEX_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "MINE", "OPENAI_API_KEY", "PATH"];

    #[test]
    fn agent_gets_what_its_kind_needs_and_no_other_key() {
        assert_eq!(passed_names("", &SHELL), ["CODEX_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "PATH"]);
        assert_eq!(passed_names("[executor]\nkind = \"command\"\ncommand = [\"a\"]\n", &SHELL), ["PATH"]);
        assert_eq!(
            passed_names("[env]\nagent = [\"MINE\"]\n[executor]\nkind = \"command\"\ncommand = [\"a\"]\n", &SHELL),
            ["MINE", "PATH"]
        );
    }

    #[test]
    fn caller_is_asked_for_what_agents_their_stand_ins_and_the_guard_need() {
        let names = caller_variables(&parse_text(
            "[executor]\nkind = \"command\"\ncommand = [\"a\"]\n[executor.review]\nfallback = [\"codex\"]\n[env]\nguard = [\"CI\"]\n",
        ));
        assert!(
            ["CI", "CODEX_HOME", "HTTPS_PROXY"].iter().all(|name| names.iter().any(|names| names == name)),
            "{names:?}"
        );
        let command = "[executor]\nkind = \"command\"\ncommand = [\"a\"]\n";
        assert!(caller_variables(&parse_text(command)).is_empty());
    }
}
