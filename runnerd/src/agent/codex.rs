//! Kind `codex`: `codex exec`, with events on standard output, and a schema for its answer that its service enforces.
//!
//! The arguments are known to work without other network access, without a terminal and without the user's own
//! configuration, which may contain anything. The login is the user's: `CODEX_HOME` stays as it is.

mod events;
mod preflight;
mod reader;
mod rollout;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use runner_core::answer::AnswerForm;

use self::reader::{CodexPaths, CodexReader};
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use crate::config::{Executor, Sandbox};
use crate::process::StopPolicy;

/// The schema of an answer, in the part of JSON Schema that the service enforces strictly.
const ANSWER_SCHEMA: &str = include_str!("codex/answer.schema.json");
const REVIEW_SCHEMA: &str = include_str!("codex/review.schema.json");

/// Names the file whose existence says that the context was full.
const MARKER_VARIABLE: &str = "RUNNER_CONTEXT_FULL";

/// Arguments common to all sessions.
const FIXED_ARGS: [&str; 9] = [
    "exec",
    "--json",
    "--color",
    "never",
    "--strict-config",
    "--skip-git-repo-check",
    "--ignore-user-config",
    "--ignore-rules",
    // The single hook below has not been reviewed by a person in the program's own dialogue.
    "--dangerously-bypass-hook-trust",
];

/// No telemetry, no network but the model's, no keys for the commands that are run, and no compaction.
const FIXED_SETTINGS: [&str; 7] = [
    "analytics.enabled=false",
    "feedback.enabled=false",
    "check_for_update_on_startup=false",
    "web_search=\"disabled\"",
    "skills.bundled.enabled=false",
    "shell_environment_policy.ignore_default_excludes=false",
    r#"hooks.PreCompact=[{hooks=[{type="command",command="echo > \"$RUNNER_CONTEXT_FULL\"; printf %s '{\"continue\":false}'"}]}]"#,
];

/// Features that would work alongside the session, ask others, or retry forever.
const DISABLED_FEATURES: [&str; 6] =
    ["plugins", "apps", "multi_agent", "goals", "shell_snapshot", "unbounded_connection_retries"];

const INFO: AgentInfo = AgentInfo {
    program: "codex",
    install: "npm install -g @openai/codex@latest",
    min_version: [0, 150, 0],
    variables: &["CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_HOME", "OPENAI_BASE_URL"],
    config_paths: &[],
    wrapped_config_paths: &[],
};

/// Backend for agents of kind `codex`.
pub(super) struct CodexBackend;

impl AgentBackend for CodexBackend {
    fn info(&self) -> Option<&'static AgentInfo> {
        Some(&INFO)
    }

    fn preflight(&self, executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        preflight::check_setup(executor, env)
    }

    fn has_login(&self, executor: &Executor, env: &[(OsString, OsString)]) -> Option<bool> {
        preflight::has_login(executor, env)
    }

    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        let files = CodexFiles::in_record(order);
        LaunchPlan {
            argv: codex_argv(order, &files),
            env: vec![(MARKER_VARIABLE.into(), files.full_marker.into())],
            files: vec![(files.schema, answer_schema(order.form).into())],
            links: Vec::new(),
            is_structured: true,
            stop_policy: StopPolicy::Interrupt,
        }
    }

    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        let CodexFiles { schema, last_message, full_marker } = CodexFiles::in_record(order);
        Box::new(CodexReader::new(CodexPaths { home: codex_home(order.env), schema, last_message, full_marker }))
    }

    fn replay_reader(&self) -> Option<Box<dyn OutputReader>> {
        Some(Box::new(CodexReader::new(CodexPaths::default())))
    }
}

fn answer_schema(form: AnswerForm) -> &'static str {
    match form {
        AnswerForm::Answer => ANSWER_SCHEMA,
        AnswerForm::Review => REVIEW_SCHEMA,
    }
}

/// The session's own files in its record, all of which are removed.
struct CodexFiles {
    schema: PathBuf,
    last_message: PathBuf,
    full_marker: PathBuf,
}

impl CodexFiles {
    fn in_record(order: &LaunchRequest<'_>) -> Self {
        let at = |name: &str| order.record.join(name);
        Self { schema: at("codex_schema.json"), last_message: at("codex_last.json"), full_marker: at("codex_full") }
    }
}

/// Returns the program's own folder.
fn codex_home(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let value = |name: &str| env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value);
    let configured = value("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    configured.or_else(|| value("HOME").map(|home| PathBuf::from(home).join(".codex")))
}

fn codex_argv(order: &LaunchRequest<'_>, files: &CodexFiles) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![INFO.program.into()];
    argv.extend(FIXED_ARGS.map(OsString::from));
    argv.extend(FIXED_SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(OsString::from));
    argv.extend(DISABLED_FEATURES.iter().flat_map(|feature| ["--disable", feature]).map(OsString::from));
    let option = |name: &str, value: &OsStr| [OsString::from(name), value.to_owned()];
    argv.extend(option("-C", order.folder.as_os_str()));
    argv.extend(order.executor.model.iter().flat_map(|model| option("-m", model.as_ref())));
    argv.extend(option("--output-schema", files.schema.as_os_str()));
    argv.extend(option("-o", files.last_message.as_os_str()));
    argv.extend(sandbox_args(order.executor, order.git_folder.as_os_str()));
    argv.extend(order.executor.extra_args.iter().map(OsString::from));
    argv.push("-".into());
    argv
}

/// Git's folder is read-only in its sandbox unless it is named, and the agent must be able to commit.
fn sandbox_args(executor: &Executor, git_folder: &OsStr) -> Vec<OsString> {
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
