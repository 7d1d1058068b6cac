//! Kind `claude`: `claude -p`, with JSON lines on standard output, and a schema for its answer that the program
//! enforces.
//!
//! The arguments are known to work without a terminal, and without settings, hooks, memory and servers other than those
//! of the prompt's commit. If a variable is the login, a session has its own folder for the program's settings;
//! otherwise it has the user's, which contains the login.

mod activity;
mod reader;
mod usage;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use protocol::answer::{AgentAnswer, ReviewAnswer};
use runner_config::{Executor, Sandbox};
use runner_core::files::answer::AnswerForm;
use runner_core::tree::schema;
use runner_process::StopPolicy;
use serde_json::json;

use self::reader::ClaudeReader;
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use super::environment::env_value;
use super::inherited::ServerFile;
use super::session_home;

/// Arguments common to all sessions.
const FIXED_ARGS: [&str; 6] = [
    "-p",
    "--output-format",
    "stream-json",
    // Without it only the last line is printed.
    "--verbose",
    "--no-session-persistence",
    "--strict-mcp-config",
];

/// Allows only the model's traffic; no update during a session, no work after the answer, nothing carried over from one
/// session to the next, no compaction, and no list of commits in front of the prompt: each iteration adds one, so that
/// nothing after it could be read from a cache.
const FIXED_SWITCHES: [&str; 8] = [
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
];

/// How long the program itself retries its service, unless the caller's own values are passed on: a blip costs no
/// session, and a service that is down or silent is noticed long before `idle_timeout_secs`.
const RETRY_LIMITS: [(&str, &str); 2] = [("API_TIMEOUT_MS", "300000"), ("CLAUDE_CODE_MAX_RETRIES", "5")];

/// Variable that names the program's own folder.
const HOME_VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// Variables each of which is a login.
const TOKEN_VARIABLES: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// Allows the program to skip its questions as root.
const ROOT_VARIABLE: &str = "IS_SANDBOX";

const READ_TOOLS: &str = "Read,Glob,Grep";
const WRITE_TOOLS: &str = "Read,Glob,Grep,Bash,Edit,Write,NotebookEdit";
const BROWSE_TOOLS: &str = ",WebFetch,WebSearch";

/// The program's own sandbox around the commands that it runs: they may write in the work tree and in a temporary
/// folder, and have no network. The program does not start if it cannot have that.
const OFFLINE_SETTINGS: &str = r#"{"sandbox":{"enabled":true,"failIfUnavailable":true,"allowUnsandboxedCommands":false,"autoAllowBashIfSandboxed":true,"network":{"allowedDomains":[],"deniedDomains":["*"]}}}"#;

/// The tools that this sandbox consists of, unless it is part of the system.
const SANDBOX_TOOLS: [&str; 2] = ["bwrap", "socat"];

/// What is known of the program.
const INFO: AgentInfo = AgentInfo {
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code@latest",
    min_version: [2, 1, 197],
    tested_version: [2, 1, 332],
    // Variables that an outer session around the caller has set for itself are not included.
    variables: &[
        "ANTHROPIC_*",
        "API_TIMEOUT_MS",
        "BASH_DEFAULT_TIMEOUT_MS",
        "BASH_MAX_TIMEOUT_MS",
        "CLAUDE_CODE_EFFORT_LEVEL",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "CLAUDE_CODE_MAX_RETRIES",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_SKIP_*_AUTH",
        "CLAUDE_CODE_USE_*",
        HOME_VARIABLE,
        "MAX_THINKING_TOKENS",
    ],
    config_paths: &[],
    wrapped_config_paths: &[],
};

/// Backend for agents of kind `claude`.
pub(super) struct ClaudeBackend;

impl AgentBackend for ClaudeBackend {
    fn info(&self) -> Option<&'static AgentInfo> {
        Some(&INFO)
    }

    fn preflight(&self, executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        let is_missing = |tool: &&str| runner_process::find_program(tool.as_ref(), Path::new("/"), env).is_err();
        let needs_tools = is_offline(executor) && executor.wrapper.is_empty() && cfg!(target_os = "linux");
        match SANDBOX_TOOLS.iter().find(|tool| needs_tools && is_missing(tool)) {
            None => Ok(()),
            Some(tool) => Err(AgentUnavailable::new(
                format!("claude keeps its commands from the network with bwrap and socat, and there is no {tool}"),
                "install bubblewrap and socat; or set network = true in .runner/state/config.toml",
            )),
        }
    }

    fn has_login(&self, _executor: &Executor, env: &[(OsString, OsString)]) -> Option<bool> {
        let folder = session_home::person_dir(env, HOME_VARIABLE, ".claude");
        let has_file = folder.is_some_and(|folder| folder.join(".credentials.json").is_file());
        // It may also be in a keychain.
        (has_file || TOKEN_VARIABLES.iter().any(|name| env_value(env, name).is_some())).then_some(true)
    }

    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        let env = session_switches(order).into_iter().map(|(name, value)| (name.into(), value.into()));
        // A login that is a file, or in a keychain, belongs to the person's folder, as settings and skills do.
        let has_token = order.env.iter().any(|(name, _)| TOKEN_VARIABLES.iter().any(|token| name == token));
        let has_own = has_token && !reads_person_dir(order.executor);
        let home = order.home.filter(|_| has_own).map(|home| (HOME_VARIABLE.into(), home.into()));
        let servers = json!({ "mcpServers": order.servers }).to_string().into_bytes();
        LaunchPlan {
            argv: claude_argv(order),
            env: env.chain(home).collect(),
            files: server_config(order).map(|path| (path, servers)).into_iter().collect(),
            links: Vec::new(),
            is_structured: true,
            stop_policy: StopPolicy::Interrupt,
        }
    }

    fn server_file(&self, env: &[(OsString, OsString)]) -> Option<ServerFile> {
        let folder = session_home::person_dir(env, HOME_VARIABLE, "")?;
        Some(ServerFile::json(folder.join(".claude.json"), "mcpServers"))
    }

    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        Box::new(ClaudeReader::new(order.output.to_owned(), order.form))
    }

    fn replay_reader(&self) -> Option<Box<dyn OutputReader>> {
        Some(Box::new(ClaudeReader::default()))
    }
}

fn claude_argv(order: &LaunchRequest<'_>) -> Vec<OsString> {
    let executor = order.executor;
    let mut words = vec!["claude".to_owned()];
    words.extend(FIXED_ARGS.map(str::to_owned));
    let sources = if reads_person_dir(executor) { "user" } else { "" };
    words.extend(["--setting-sources", sources].map(str::to_owned));
    if !executor.inherit.has_skills() {
        words.push("--disable-slash-commands".to_owned());
    }
    words.extend(server_config(order).iter().flat_map(|path| ["--mcp-config".to_owned(), path.display().to_string()]));
    words.extend(["--json-schema".to_owned(), answer_schema(order.form)]);
    words.extend(executor.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
    words.extend(executor.effort.iter().flat_map(|effort| ["--effort".to_owned(), effort.to_string()]));
    words.extend(permission_args(executor).map(str::to_owned));
    // A list that is given twice adds up.
    let is_chosen = |word: &String| word == "--tools" || word.starts_with("--tools=");
    if !executor.extra_args.iter().any(is_chosen) {
        words.extend(["--tools".to_owned(), allowed_tools(executor)]);
    }
    words.extend(executor.extra_args.iter().cloned());
    words.into_iter().map(OsString::from).collect()
}

/// Whether the program reads the person's folder: it finds skills only where it reads settings.
fn reads_person_dir(executor: &Executor) -> bool {
    executor.inherit.has_settings() || executor.inherit.has_skills()
}

/// Returns the path of the file with the session's MCP servers, if it has any.
fn server_config(order: &LaunchRequest<'_>) -> Option<PathBuf> {
    order.home.filter(|_| !order.servers.is_empty()).map(|home| home.join("servers.json"))
}

/// Returns the schema of an answer without `$schema`: the program refuses a schema whose draft is named by its URL.
fn answer_schema(form: AnswerForm) -> String {
    let mut schema = match form {
        AnswerForm::Answer => schema::schema_for::<AgentAnswer>(),
        AnswerForm::Review => schema::schema_for::<ReviewAnswer>(),
    };
    schema.remove("$schema");
    schema.as_value().to_string()
}

/// No one can be asked, so what would be asked is allowed or denied up front: by mode, or by the sandbox if it is on.
fn permission_args(executor: &Executor) -> impl Iterator<Item = &'static str> {
    let words: &[&str] = if is_offline(executor) {
        &["--permission-mode", "acceptEdits", "--settings", OFFLINE_SETTINGS]
    } else {
        &["--permission-mode", "bypassPermissions"]
    };
    words.iter().copied()
}

/// Returns the tools known to work unattended; no others, since later versions add new ones.
fn allowed_tools(executor: &Executor) -> String {
    let tools = if executor.sandbox == Sandbox::ReadOnly { READ_TOOLS } else { WRITE_TOOLS };
    let browsing = if executor.network || executor.sandbox == Sandbox::DangerFullAccess { BROWSE_TOOLS } else { "" };
    let skills = if executor.inherit.has_skills() { ",Skill" } else { "" };
    format!("{tools}{browsing}{skills}")
}

/// Whether only the program's own sandbox can enforce the setting.
fn is_offline(executor: &Executor) -> bool {
    executor.sandbox == Sandbox::WorkspaceWrite && !executor.network
}

fn session_switches(order: &LaunchRequest<'_>) -> Vec<(&'static str, &'static str)> {
    let is_passed = |name: &str| order.env.iter().any(|(given, _)| given == name);
    let mut env: Vec<_> = FIXED_SWITCHES.iter().map(|name| (*name, "1")).collect();
    env.extend(RETRY_LIMITS.iter().filter(|(name, _)| !is_passed(name)));
    if geteuid().is_root() && !is_offline(order.executor) {
        env.push((ROOT_VARIABLE, "1"));
    }
    env
}

#[cfg(test)]
mod tests;
