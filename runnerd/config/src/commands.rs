//! The commands that a configuration would run on this machine, for a person to confirm once.
//!
//! A clone brings its own `config.toml`; none of its commands may run before they were seen.

use std::collections::BTreeSet;

use protocol::hex::to_hex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::executor::{Executor, ExecutorKind};
use super::repository::RepoConfig;

impl RepoConfig {
    /// Returns every command that a run of this repository may start, each with the key that it comes from. Known
    /// agents are shown with the arguments that the file adds to their own.
    pub fn commands(&self) -> Vec<(String, Vec<String>)> {
        let executors =
            self.executor.by_section().into_iter().flat_map(|(section, executor)| agent_commands(section, executor));
        let guard = ("guard.command".to_owned(), self.guard.command.clone());
        let hooks = self.hooks.by_key().into_iter().filter(|(_, argv)| !argv.is_empty());
        let hooks = hooks.map(|(label, argv)| (label.to_owned(), argv.clone()));
        let optional = [("workspace.setup", &self.workspace.setup), ("deliver.command", &self.deliver.command)];
        let optional = optional.into_iter().filter(|(_, argv)| !argv.is_empty());
        let optional = optional.map(|(key, argv)| (key.to_owned(), argv.clone()));
        let mut commands: Vec<_> = executors.chain([guard]).chain(optional).chain(hooks).collect();
        // Overrides that change nothing repeat the common command.
        let mut seen = BTreeSet::new();
        commands.retain(|(_, argv)| seen.insert(argv.clone()));
        commands
    }

    /// Returns the permissions of those commands beyond the default, as key and value.
    pub fn grants(&self) -> Vec<(String, String)> {
        let executors = self.executor.by_section().into_iter().flat_map(|(section, executor)| {
            [
                (format!("{section}.sandbox"), executor.sandbox.to_string()),
                (format!("{section}.network"), executor.network.to_string()),
                (format!("{section}.inherit"), executor.inherit.items().join(" ")),
            ]
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
        });
        let env = [("env.agent", &self.env.agent), ("env.guard", &self.env.guard)];
        let env = env.into_iter().filter(|(_, names)| !names.as_slice().is_empty());
        let env = env.map(|(label, names)| (label.to_owned(), names.as_slice().join(" ")));
        let pushes = ("deliver.on_complete".to_owned(), format!("push to {}", self.deliver.remote));
        executors.chain(env).chain(self.deliver.on_complete.then_some(pushes)).collect()
    }

    /// Returns the SHA-256, in hexadecimal, of [`Self::commands`] and [`Self::grants`]: a confirmation is valid as long
    /// as the digest is the same.
    pub fn commands_digest(&self) -> String {
        let confirmed = json!({ "commands": self.commands(), "grants": self.grants() });
        to_hex(&Sha256::digest(confirmed.to_string()))
    }
}

fn agent_commands(section: &'static str, executor: &Executor) -> Vec<(String, Vec<String>)> {
    let first = (section.to_owned(), agent_argv(executor));
    let fallback =
        executor.fallback.iter().map(|kind| (format!("{section}.fallback"), agent_argv(&executor.for_fallback(*kind))));
    std::iter::once(first).chain(fallback).collect()
}

fn agent_argv(executor: &Executor) -> Vec<String> {
    let is_named = executor.kind == ExecutorKind::Command;
    let program = if is_named { executor.command.clone() } else { vec![executor.kind.to_string()] };
    [executor.wrapper.clone(), program, executor.extra_args.clone()].concat()
}
