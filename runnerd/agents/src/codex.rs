//! Kind `codex`: `codex exec`, with events on standard output, and a schema for its answer that its service enforces.
//!
//! The arguments are known to work without other network access, without a terminal and without configuration, hooks,
//! instructions and skills of the user or of the work tree. Its home is the session's own, with a link to the user's login.

mod events;
mod preflight;
mod reader;
mod rollout;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use runner_config::{Executor, Sandbox};
use runner_core::files::answer::AnswerForm;
use runner_process::StopPolicy;
use serde_json::json;

use self::reader::{CodexPaths, CodexReader};
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use super::inherited::ServerFile;
use super::session_home;

/// The schema of an answer, in the part of JSON Schema that the service enforces strictly.
const ANSWER_SCHEMA: &str = include_str!("codex/answer.schema.json");
const REVIEW_SCHEMA: &str = include_str!("codex/review.schema.json");

/// Variable that names the program's own folder.
const HOME_VARIABLE: &str = "CODEX_HOME";
/// The file of the login in that folder. The program replaces it where a link leads.
const LOGIN_FILE: &str = "auth.json";
/// The file of the settings in that folder.
const SETTINGS_FILE: &str = "config.toml";
/// The folder of the skills in that folder.
const SKILLS_DIR: &str = "skills";

/// Arguments common to all sessions.
const FIXED_ARGS: [&str; 7] =
    ["exec", "--json", "--color", "never", "--strict-config", "--skip-git-repo-check", "--ignore-rules"];

/// No telemetry, no network but the model's, no keys for the commands that are run, no instructions and no skills.
const FIXED_SETTINGS: [&str; 7] = [
    "analytics.enabled=false",
    "feedback.enabled=false",
    "check_for_update_on_startup=false",
    "web_search=\"disabled\"",
    "project_doc_max_bytes=0",
    "skills.bundled.enabled=false",
    "shell_environment_policy.ignore_default_excludes=false",
];

/// Features that would run programs of others, work alongside the session, ask others, or retry forever.
const DISABLED_FEATURES: [&str; 7] =
    ["hooks", "plugins", "apps", "multi_agent", "goals", "shell_snapshot", "unbounded_connection_retries"];

const INFO: AgentInfo = AgentInfo {
    program: "codex",
    install: "npm install -g @openai/codex@latest",
    min_version: [0, 169, 0],
    tested_version: [0, 171, 0],
    variables: &["CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", HOME_VARIABLE, "OPENAI_BASE_URL"],
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
        let inherit = &order.executor.inherit;
        let mut linked = vec![LOGIN_FILE];
        linked.extend(inherit.has_settings().then_some(SETTINGS_FILE));
        linked.extend(inherit.has_skills().then_some(SKILLS_DIR));
        let argv = codex_argv(order, &files);
        let mut written = vec![(files.schema, answer_schema(order.form).into())];
        if let Some(home) = order.home.filter(|_| has_own_settings(order)) {
            let servers = toml::to_string(&json!({ "mcp_servers": order.servers }));
            written.push((home.join(SETTINGS_FILE), servers.expect("BUG: TOML that was read is no TOML").into_bytes()));
        }
        LaunchPlan {
            argv,
            env: order.home.map(|home| (HOME_VARIABLE.into(), home.into())).into_iter().collect(),
            files: written,
            links: order
                .home
                .zip(codex_home(order.env))
                .map_or_else(Vec::new, |(own, person)| session_home::link_files(&person, own, &linked)),
            is_structured: true,
            stop_policy: StopPolicy::Interrupt,
        }
    }

    fn server_file(&self, env: &[(OsString, OsString)]) -> Option<ServerFile> {
        let path = codex_home(env)?.join(SETTINGS_FILE);
        Some(ServerFile { path, key: "mcp_servers", parse: |text| toml::from_str(text).ok() })
    }

    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        let CodexFiles { schema, last_message } = CodexFiles::in_record(order);
        let home = order.home.map(Path::to_owned).or_else(|| codex_home(order.env));
        Box::new(CodexReader::new(CodexPaths { home, schema, last_message }))
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
}

impl CodexFiles {
    fn in_record(order: &LaunchRequest<'_>) -> Self {
        let at = |name: &str| order.record.join(name);
        Self { schema: at("codex_schema.json"), last_message: at("codex_last.json") }
    }
}

/// Returns the person's folder of the program.
fn codex_home(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    session_home::person_dir(env, HOME_VARIABLE, ".codex")
}

fn codex_argv(order: &LaunchRequest<'_>, files: &CodexFiles) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![INFO.program.into()];
    argv.extend(FIXED_ARGS.map(OsString::from));
    let inherit = &order.executor.inherit;
    if !inherit.has_settings() && !has_own_settings(order) {
        argv.push("--ignore-user-config".into());
    }
    argv.extend(FIXED_SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(OsString::from));
    argv.extend(["-c".into(), format!("skills.include_instructions={}", inherit.has_skills()).into()]);
    argv.extend(DISABLED_FEATURES.iter().flat_map(|feature| ["--disable", feature]).map(OsString::from));
    let option = |name: &str, value: &OsStr| [OsString::from(name), value.to_owned()];
    argv.extend(option("-C", order.folder.as_os_str()));
    argv.extend(order.executor.model.iter().flat_map(|model| option("-m", model.as_ref())));
    let effort = order.executor.effort.map(|effort| format!("model_reasoning_effort={:?}", effort.as_str()));
    argv.extend(effort.iter().flat_map(|setting| option("-c", setting.as_ref())));
    argv.extend(option("--output-schema", files.schema.as_os_str()));
    argv.extend(option("-o", files.last_message.as_os_str()));
    argv.extend(sandbox_args(order.executor, order.git_folder.as_os_str()));
    argv.extend(order.executor.extra_args.iter().map(OsString::from));
    argv.push("-".into());
    argv
}

/// Whether the session's home has settings of the runner: the servers that the session is given.
fn has_own_settings(order: &LaunchRequest<'_>) -> bool {
    !order.servers.is_empty() && !order.executor.inherit.has_settings()
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
