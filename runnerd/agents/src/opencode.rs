//! Kind `opencode`: `opencode run`, with events on standard output. No schema is enforced: its answer is a file, or its
//! last message.
//!
//! It reads no settings of the work tree, and none of the person's: its folder of settings is one of the session's own.
//! The login is the person's file, which stays where it is.

mod reader;

use std::ffi::OsString;
use std::path::PathBuf;

use runner_config::{Executor, Sandbox};
use runner_core::files::answer::AnswerForm;
use runner_process::StopPolicy;
use serde_json::{Map, Value, json};

use self::reader::OpencodeReader;
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use super::environment::env_value;
use super::inherited::ServerFile;
use super::regular_file;
use super::session_home;

/// Allows only the model's traffic; no downloads or updates during a session, no compaction, and no settings, plugins,
/// instructions or skills but those of the program itself.
const FIXED_SWITCHES: [&str; 10] = [
    "OPENCODE_DISABLE_AUTOCOMPACT",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_PURE",
];

/// What its folder of settings lists as installed: without it, every session asks a package registry for its plugins.
const PACKAGE_LOCK: &str = r#"{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}"#;

/// Variable that names the folder of all settings of the person.
const CONFIG_VARIABLE: &str = "XDG_CONFIG_HOME";
/// Variable that names the folder in which its own folder with the logins is.
const DATA_VARIABLE: &str = "XDG_DATA_HOME";
/// The file of the logins in its own folder: an object with one for each service.
const LOGIN_FILE: &str = "auth.json";
/// What its own folder has of settings, and of skills.
const SETTINGS_FILES: [&str; 6] = ["AGENTS.md", "agent", "command", "config.json", "opencode.json", "opencode.jsonc"];
const SKILLS_DIRS: [&str; 2] = ["skill", "skills"];
/// Size limit in bytes of that file.
const MAX_LOGINS: u64 = 1 << 20;

/// What is known of the program.
const INFO: AgentInfo = AgentInfo {
    program: "opencode",
    install: "npm install -g opencode-ai@latest",
    min_version: [1, 18, 33],
    tested_version: [1, 18, 33],
    variables: &[
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "GROQ_API_KEY",
        "OPENAI_API_KEY",
        "OPENCODE_API_KEY",
        "OPENROUTER_API_KEY",
        "XDG_CACHE_HOME",
        CONFIG_VARIABLE,
        DATA_VARIABLE,
        "XDG_STATE_HOME",
    ],
    config_paths: &[],
    wrapped_config_paths: &[],
};

/// Backend for agents of kind `opencode`.
pub(super) struct OpencodeBackend;

impl AgentBackend for OpencodeBackend {
    fn info(&self) -> Option<&'static AgentInfo> {
        Some(&INFO)
    }

    fn preflight(&self, executor: &Executor, _env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        if executor.network || executor.sandbox != Sandbox::WorkspaceWrite {
            return Ok(());
        }
        let fix = "set network = true in .runner/state/config.toml, or take it out of the node's tools.json; a wrapper may let it \
                   reach its service alone";
        Err(AgentUnavailable::new("opencode has no way to keep its commands from the network", fix))
    }

    fn has_login(&self, _executor: &Executor, env: &[(OsString, OsString)]) -> Option<bool> {
        let has_key = INFO.variables.iter().any(|name| name.ends_with("_API_KEY") && env_value(env, name).is_some());
        // Some models need none.
        (has_key || has_stored_login(env)).then_some(true)
    }

    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        let switches = FIXED_SWITCHES.map(|name| (name.into(), "1".into()));
        let settings =
            ("OPENCODE_CONFIG_CONTENT".into(), session_settings(order.executor, order.servers).to_string().into());
        let mut env: Vec<(OsString, OsString)> = switches.into_iter().chain([settings]).collect();
        let mut files = Vec::new();
        let mut links = Vec::new();
        if let Some(home) = order.home {
            let config = home.join("config");
            let own = config.join(INFO.program);
            env.push(("OPENCODE_TEST_HOME".into(), home.into()));
            env.push(("OPENCODE_DB".into(), home.join("opencode.db").into()));
            env.push((CONFIG_VARIABLE.into(), config.clone().into()));
            files.push((own.join("package-lock.json"), PACKAGE_LOCK.into()));
            files.push((own.join("node_modules/.keep"), Vec::new()));
            let person = session_home::person_dir(order.env, CONFIG_VARIABLE, ".config");
            // The commands of the session find the settings of other programs.
            links = person.map_or_else(Vec::new, |person| {
                let others = session_home::link_others(&person, &config, INFO.program);
                let inherited = session_home::link_files(&person.join(INFO.program), &own, &inherited_files(order));
                [others, inherited].concat()
            });
        }
        LaunchPlan {
            argv: opencode_argv(order),
            env,
            files,
            links,
            is_structured: true,
            stop_policy: StopPolicy::Terminate,
        }
    }

    fn server_file(&self, env: &[(OsString, OsString)]) -> Option<ServerFile> {
        let folder = session_home::person_dir(env, CONFIG_VARIABLE, ".config")?.join(INFO.program);
        Some(ServerFile::json(folder.join("opencode.json"), "mcp"))
    }

    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        Box::new(OpencodeReader::new(order.output.to_owned(), order.form))
    }

    fn replay_reader(&self) -> Option<Box<dyn OutputReader>> {
        Some(Box::new(OpencodeReader::new(PathBuf::new(), AnswerForm::Answer)))
    }
}

fn has_stored_login(env: &[(OsString, OsString)]) -> bool {
    let folder = session_home::person_dir(env, DATA_VARIABLE, ".local/share").map(|data| data.join(INFO.program));
    let file = folder.and_then(|folder| folder.join(LOGIN_FILE).canonicalize().ok());
    let bytes = file.and_then(|file| regular_file::read_regular(&file, MAX_LOGINS).ok().flatten());
    let logins = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    logins.is_some_and(|logins| logins.as_object().is_some_and(|logins| !logins.is_empty()))
}

fn opencode_argv(order: &LaunchRequest<'_>) -> Vec<OsString> {
    // Without a title it asks the model for one, which nothing counts. Only its log says that its service is out.
    let words = [INFO.program, "run", "--format", "json", "--title", "runnerd", "--print-logs", "--log-level", "ERROR"];
    let folder = ["--dir".into(), order.folder.as_os_str().to_owned()];
    let model = order.executor.model.iter().flat_map(|model| ["-m", model]).map(OsString::from);
    let extra = order.executor.extra_args.iter().map(OsString::from);
    words.map(OsString::from).into_iter().chain(folder).chain(model).chain(extra).collect()
}

/// Returns the names in its folder of settings that a session takes from the person.
fn inherited_files(order: &LaunchRequest<'_>) -> Vec<&'static str> {
    let inherit = &order.executor.inherit;
    let settings: &[_] = if inherit.has_settings() { &SETTINGS_FILES } else { &[] };
    let skills: &[_] = if inherit.has_skills() { &SKILLS_DIRS } else { &[] };
    [settings, skills].concat()
}

/// Returns the settings. No one can be asked, and it has no sandbox: restrictions apply to its tools.
fn session_settings(executor: &Executor, servers: &Map<String, Value>) -> Value {
    let allow = |is_allowed: bool| if is_allowed { "allow" } else { "deny" };
    let may_write = executor.sandbox != Sandbox::ReadOnly;
    let may_browse = executor.network || executor.sandbox == Sandbox::DangerFullAccess;
    json!({
        "autoupdate": false,
        "mcp": servers,
        "share": "disabled",
        "snapshot": false,
        "permission": {
            "bash": allow(may_write),
            "edit": allow(may_write),
            "external_directory": allow(may_write),
            "webfetch": allow(may_browse),
        },
    })
}

#[cfg(test)]
mod tests;
