//! Kind `gemini`: `gemini -p`, with events on standard output. No schema is enforced: its answer is a file, or its last
//! message.
//!
//! It gets the session's own home, with the runner's settings and a link to the person's login. In the work tree it
//! reads settings and instructions regardless of its arguments, so these are moved away during a session.

mod reader;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_config::{Executor, Sandbox};
use runner_core::files::answer::AnswerForm;
use runner_process::StopPolicy;
use serde_json::{Map, Value, json};

use self::reader::GeminiReader;
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use super::environment::env_value;
use super::inherited::{self, ServerFile};
use super::regular_file;
use super::session_home;

/// Arguments common to all sessions. An empty prompt is appended to standard input.
const FIXED_ARGS: [&str; 6] = ["gemini", "-p", "", "-o", "stream-json", "--skip-trust"];

/// Its folder, in a home and in a work tree.
const FOLDER: &str = ".gemini";

/// Files of that folder that hold a login.
const LOGIN_FILES: [&str; 4] = [".env", "gemini-credentials.json", "google_accounts.json", "oauth_creds.json"];
/// Those of them of which each is a login.
const TOKEN_FILES: [&str; 2] = ["gemini-credentials.json", "oauth_creds.json"];
/// Variables each of which is a login.
const KEY_VARIABLES: [&str; 3] = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];
/// Size limit in bytes of the person's settings.
const MAX_SETTINGS: u64 = 1 << 20;

/// Name of its settings in that folder.
const SETTINGS: &str = "settings.json";
/// The folder of the skills in that folder.
const SKILLS_DIR: &str = "skills";
/// Variable that names the folder in which its own folder is.
const HOME_VARIABLE: &str = "GEMINI_CLI_HOME";

/// What is known of the program.
const INFO: AgentInfo = AgentInfo {
    program: "gemini",
    install: "npm install -g @google/gemini-cli@latest",
    min_version: [0, 61, 0],
    tested_version: [0, 61, 0],
    variables: &[
        "GEMINI_API_KEY",
        HOME_VARIABLE,
        "GEMINI_MODEL",
        "GOOGLE_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_API_VERSION",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_VERTEX_BASE_URL",
    ],
    config_paths: &[FOLDER, "GEMINI.md"],
    // Settings of its home keep it from reading that, and behind a wrapper its home is not the session's.
    wrapped_config_paths: &[FOLDER, "GEMINI.md", ".env"],
};

/// Backend for agents of kind `gemini`.
pub(super) struct GeminiBackend;

impl AgentBackend for GeminiBackend {
    fn info(&self) -> Option<&'static AgentInfo> {
        Some(&INFO)
    }

    fn preflight(&self, executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        if executor.inherit.has_settings() {
            let fix = "remove its comments, or take \"settings\" out of executor.inherit in .runner/state/config.toml";
            person_settings(env).map_err(|what| AgentUnavailable::new(what, fix))?;
        }
        if executor.network || executor.sandbox == Sandbox::DangerFullAccess {
            return Ok(());
        }
        let fix = "set network = true in .runner/state/config.toml, or take it out of the node's tools.json; a wrapper may let it \
                   reach its service alone";
        Err(AgentUnavailable::new("gemini has no way to keep its commands from the network", fix))
    }

    fn has_login(&self, _executor: &Executor, env: &[(OsString, OsString)]) -> Option<bool> {
        let has_key = KEY_VARIABLES.iter().any(|name| env_value(env, name).is_some());
        let folder = session_home::person_dir(env, HOME_VARIABLE, "").map(|home| home.join(FOLDER));
        let has_file = folder.is_some_and(|folder| TOKEN_FILES.iter().any(|name| folder.join(name).is_file()));
        // A key may also be in a file of variables, or in a keychain.
        (has_key || has_file).then_some(true)
    }

    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        let mut env = vec![("GEMINI_TELEMETRY_ENABLED".into(), "false".into())];
        let mut files = Vec::new();
        let mut links = Vec::new();
        if let Some(home) = order.home {
            env.push((HOME_VARIABLE.into(), home.into()));
            let own = home.join(FOLDER);
            let person = session_home::person_dir(order.env, HOME_VARIABLE, "").map(|home| home.join(FOLDER));
            let auth = person.as_deref().and_then(login_method).or_else(|| key_method(order.env));
            let inherit = &order.executor.inherit;
            let mut linked = LOGIN_FILES.to_vec();
            linked.extend(inherit.has_skills().then_some(SKILLS_DIR));
            let mut settings = session_settings(order.executor, order.servers, auth);
            if inherit.has_settings() {
                let mut merged = person_settings(order.env).unwrap_or_default();
                overlay(&mut merged, settings);
                settings = merged;
                linked.extend(["GEMINI.md", "commands", "extensions"]);
            }
            files.push((own.join(SETTINGS), settings.to_string().into()));
            links = person.map_or_else(Vec::new, |person| session_home::link_files(&person, &own, &linked));
        }
        LaunchPlan {
            argv: gemini_argv(order.executor),
            env,
            files,
            links,
            is_structured: true,
            // It reports nothing more when it is interrupted, and leaves its child processes running.
            stop_policy: StopPolicy::Terminate,
        }
    }

    fn server_file(&self, env: &[(OsString, OsString)]) -> Option<ServerFile> {
        let folder = session_home::person_dir(env, HOME_VARIABLE, "")?.join(FOLDER);
        Some(ServerFile::json(folder.join(SETTINGS), "mcpServers"))
    }

    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        Box::new(GeminiReader::new(order.output.to_owned(), order.form))
    }

    fn replay_reader(&self) -> Option<Box<dyn OutputReader>> {
        Some(Box::new(GeminiReader::new(PathBuf::new(), AnswerForm::Answer)))
    }
}

fn gemini_argv(executor: &Executor) -> Vec<OsString> {
    // Its only sandbox is a container image that it downloads.
    let mode = if executor.sandbox == Sandbox::ReadOnly { "plan" } else { "yolo" };
    let words = FIXED_ARGS.into_iter().chain(["--approval-mode", mode]);
    let model = executor.model.iter().flat_map(|model| ["-m", model]);
    words.chain(model).chain(executor.extra_args.iter().map(String::as_str)).map(OsString::from).collect()
}

/// Returns how the person logs in, as their settings say. Nothing else of them counts.
fn login_method(folder: &Path) -> Option<String> {
    // It may be a link of the person's own, and have comments.
    let file = folder.join(SETTINGS).canonicalize().ok()?;
    let bytes = regular_file::read_regular(&file, MAX_SETTINGS).ok().flatten()?;
    let settings = String::from_utf8_lossy(&bytes);
    let value = settings.split_once("\"selectedType\"")?.1.trim_start().strip_prefix(':')?;
    value.trim_start().strip_prefix('"')?.split_once('"').map(|(method, _)| method.to_owned())
}

/// Returns the method where a key is all that is given. The program would take the address of a service for another one.
fn key_method(env: &[(OsString, OsString)]) -> Option<String> {
    let is_given = |name: &str| env.iter().any(|(given, value)| given == name && !value.is_empty());
    let is_other = is_given("GOOGLE_GENAI_USE_GCA") || is_given("GOOGLE_GENAI_USE_VERTEXAI");
    (is_given("GEMINI_API_KEY") && !is_other).then(|| "gemini-api-key".to_owned())
}

/// Returns the person's settings, which may be none.
fn person_settings(env: &[(OsString, OsString)]) -> Result<Value, String> {
    let file = GeminiBackend.server_file(env).filter(|file| file.path.exists());
    file.map_or(Ok(json!({})), |file| inherited::read_setup(&file))
}

/// Replaces the values in `settings` that `ours` has too, key by key, and adds the others.
fn overlay(settings: &mut Value, ours: Value) {
    match (settings, ours) {
        (Value::Object(settings), Value::Object(ours)) => {
            for (key, value) in ours {
                overlay(settings.entry(key).or_insert(Value::Null), value);
            }
        }
        (settings, ours) => *settings = ours,
    }
}

/// Returns the settings: no update, no statistics, and none of the person's hooks, servers, extensions and skills but
/// what is inherited.
fn session_settings(executor: &Executor, servers: &Map<String, Value>, auth: Option<String>) -> Value {
    let inherit = &executor.inherit;
    let enabled = |is_enabled: bool| json!({ "enabled": is_enabled });
    let settings = inherit.has_settings();
    let skills = enabled(inherit.has_skills());
    json!({
        "admin": {"extensions": enabled(settings), "mcp": enabled(settings || !servers.is_empty()), "skills": skills},
        "advanced": {"ignoreLocalEnv": true},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "hooksConfig": enabled(settings),
        "mcpServers": servers,
        "privacy": {"usageStatisticsEnabled": false},
        "security": {"auth": auth.map_or(json!({}), |method| json!({"selectedType": method}))},
        "skills": skills,
    })
}

#[cfg(test)]
mod tests;
