//! Kind `codex`: `codex exec`, its events on standard output, its answer held to a schema by its service.
//!
//! The arguments are those that were seen to work without the network of others, without a terminal and without the
//! user's own configuration, which may hold anything. The login is the user's: `CODEX_HOME` stays as it is.

mod events;
mod preflight;
mod reader;
mod rollout;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use runner_core::answer::Form;

use self::reader::{CodexReader, Places};
use super::backend::{About, Backend, Launch, Order, Reader};
use super::unfit::Unfit;
use crate::config::{Executor, Sandbox};
use crate::process::Farewell;

/// What an answer must look like, in the part of JSON Schema that the service enforces to the letter.
const ANSWER_SCHEMA: &str = include_str!("codex/answer.schema.json");
const REVIEW_SCHEMA: &str = include_str!("codex/review.schema.json");

/// Names the file that says that the context was full.
const MARK_VARIABLE: &str = "RUNNER_CONTEXT_FULL";

/// What every session has in common.
const PINNED: [&str; 9] = [
    "exec",
    "--json",
    "--color",
    "never",
    "--strict-config",
    "--skip-git-repo-check",
    "--ignore-user-config",
    "--ignore-rules",
    // The one hook below is not one that a person has looked at in the program's own dialogue.
    "--dangerously-bypass-hook-trust",
];

/// No telemetry, no network but the model's, no keys for the commands that are run, and no compaction.
const SETTINGS: [&str; 7] = [
    "analytics.enabled=false",
    "feedback.enabled=false",
    "check_for_update_on_startup=false",
    "web_search=\"disabled\"",
    "skills.bundled.enabled=false",
    "shell_environment_policy.ignore_default_excludes=false",
    r#"hooks.PreCompact=[{hooks=[{type="command",command="echo > \"$RUNNER_CONTEXT_FULL\"; printf %s '{\"continue\":false}'"}]}]"#,
];

/// What would work beside the session, ask others, or try for ever.
const DISABLED: [&str; 6] =
    ["plugins", "apps", "multi_agent", "goals", "shell_snapshot", "unbounded_connection_retries"];

const ABOUT: About = About {
    program: "codex",
    install: "npm install -g @openai/codex@latest",
    oldest: [0, 150, 0],
    variables: &["CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_HOME", "OPENAI_BASE_URL"],
};

/// The backend.
pub(super) struct Codex;

impl Backend for Codex {
    fn about(&self) -> Option<&'static About> {
        Some(&ABOUT)
    }

    fn preflight(&self, executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), Unfit> {
        preflight::check(executor, env)
    }

    fn has_login(&self, executor: &Executor, env: &[(OsString, OsString)]) -> Option<bool> {
        preflight::has_login(executor, env)
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let files = Files::of(order);
        Launch {
            argv: argv(order, &files),
            env: vec![(MARK_VARIABLE.into(), files.mark.into())],
            files: vec![(files.schema, schema(order.form).into())],
            is_structured: true,
            farewell: Farewell::Interrupt,
        }
    }

    fn reader(&self, order: &Order<'_>) -> Box<dyn Reader> {
        let Files { schema, last, mark } = Files::of(order);
        Box::new(CodexReader::new(Places { home: home(order.env), schema, last, mark }))
    }

    fn onlooker(&self) -> Option<Box<dyn Reader>> {
        Some(Box::new(CodexReader::new(Places::default())))
    }
}

fn schema(form: Form) -> &'static str {
    match form {
        Form::Answer => ANSWER_SCHEMA,
        Form::Review => REVIEW_SCHEMA,
    }
}

/// The session's own files in its record; none of them is left there.
struct Files {
    schema: PathBuf,
    last: PathBuf,
    mark: PathBuf,
}

impl Files {
    fn of(order: &Order<'_>) -> Self {
        let at = |name: &str| order.record.join(name);
        Self { schema: at("codex_schema.json"), last: at("codex_last.json"), mark: at("codex_full") }
    }
}

/// Returns the folder in which the program keeps its own.
fn home(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let value = |name: &str| env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value);
    let named = value("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.or_else(|| value("HOME").map(|home| PathBuf::from(home).join(".codex")))
}

fn argv(order: &Order<'_>, files: &Files) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![ABOUT.program.into()];
    argv.extend(PINNED.map(OsString::from));
    argv.extend(SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(OsString::from));
    argv.extend(DISABLED.iter().flat_map(|feature| ["--disable", feature]).map(OsString::from));
    let option = |name: &str, value: &OsStr| [OsString::from(name), value.to_owned()];
    argv.extend(option("-C", order.folder.as_os_str()));
    argv.extend(order.executor.model.iter().flat_map(|model| option("-m", model.as_ref())));
    argv.extend(option("--output-schema", files.schema.as_os_str()));
    argv.extend(option("-o", files.last.as_os_str()));
    argv.extend(sandbox(order.executor, order.git_folder.as_os_str()));
    argv.extend(order.executor.extra_args.iter().map(OsString::from));
    argv.push("-".into());
    argv
}

/// Git's folder is read-only in its sandbox unless it is named, and the agent is to commit.
fn sandbox(executor: &Executor, git_folder: &OsStr) -> Vec<OsString> {
    match executor.sandbox {
        Sandbox::DangerFullAccess => vec!["--dangerously-bypass-approvals-and-sandbox".into()],
        Sandbox::ReadOnly => vec!["-s".into(), "read-only".into()],
        Sandbox::WorkspaceWrite => vec![
            "-s".into(),
            "workspace-write".into(),
            "--add-dir".into(),
            git_folder.to_owned(),
            "-c".into(),
            format!("sandbox_workspace_write.network_access={}", executor.network).into(),
        ],
    }
}

#[cfg(test)]
mod tests;
