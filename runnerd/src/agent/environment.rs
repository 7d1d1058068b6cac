//! Which of the caller's variables an agent is given, and which a caller is to send for it.
//!
//! They go to the agent alone: a guard gets what `[env] guard` names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use super::kinds;
use crate::config::{Executor, ExecutorKind, Patterns, RepoConfig};

/// How a program that speaks to a service gets through a proxy, and whom it trusts.
const NETWORK: [&str; 11] = [
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

/// Returns the environment of a session: what every program gets, what its kind needs, and what `named` adds.
pub fn environment(
    executor: &Executor,
    named: &Patterns,
    given: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let needed = Patterns::new(variables(executor.kind));
    let passed = given.iter().filter(|(name, _)| named.passes(name) || needed.passes(name));
    passed.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns the names and globs of what a caller is to send for the runs of a repository: those of its agents, of the
/// kinds that may take their place, and of its guard.
pub fn wanted_of_caller(config: &RepoConfig) -> Vec<String> {
    let kinds = config
        .executor
        .by_section()
        .into_iter()
        .flat_map(|(_, executor)| std::iter::once(executor.kind).chain(executor.fallback.iter().copied()));
    let needed = kinds.collect::<BTreeSet<_>>().into_iter().flat_map(variables).map(str::to_owned);
    let named = config.env.agent.as_slice().iter().chain(config.env.guard.as_slice()).cloned();
    named.chain(needed).collect::<BTreeSet<_>>().into_iter().collect()
}

fn variables(kind: ExecutorKind) -> impl Iterator<Item = &'static str> {
    let about = kinds::of(kind).about();
    about.into_iter().flat_map(|about| NETWORK.iter().chain(about.variables).copied())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    fn config(text: &str) -> RepoConfig {
        config::parse(text, Path::new("config.toml")).unwrap()
    }

    fn names(text: &str, given: &[&str]) -> Vec<String> {
        let config = config(text);
        let given = given.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let passed = environment(&config.executor.work, &config.env.agent, &given);
        passed.into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
    }

    const SHELL: [&str; 6] = ["CODEX_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "MINE", "OPENAI_API_KEY", "PATH"];

    #[test]
    fn agent_gets_what_its_kind_needs_and_no_other_key() {
        assert_eq!(names("", &SHELL), ["CODEX_API_KEY", "CODEX_HOME", "HTTPS_PROXY", "PATH"]);
        assert_eq!(names("[executor]\nkind = \"command\"\ncommand = [\"a\"]\n", &SHELL), ["PATH"]);
        assert_eq!(
            names("[env]\nagent = [\"MINE\"]\n[executor]\nkind = \"command\"\ncommand = [\"a\"]\n", &SHELL),
            ["MINE", "PATH"]
        );
    }

    #[test]
    fn caller_is_asked_for_what_agents_their_stand_ins_and_the_guard_need() {
        let wanted = wanted_of_caller(&config(
            "[executor]\nkind = \"command\"\ncommand = [\"a\"]\n[executor.review]\nfallback = [\"codex\"]\n[env]\nguard = [\"CI\"]\n",
        ));
        assert!(
            ["CI", "CODEX_HOME", "HTTPS_PROXY"].iter().all(|name| wanted.iter().any(|wanted| wanted == name)),
            "{wanted:?}"
        );
        let command = "[executor]\nkind = \"command\"\ncommand = [\"a\"]\n";
        assert!(wanted_of_caller(&config(command)).is_empty());
    }
}
