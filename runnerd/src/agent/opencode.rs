//! Kind `opencode`: `opencode run`, with events on standard output. No schema is enforced: its answer is a file, or its
//! last message.
//!
//! Its own settings stay as they are, since they contain its providers; required settings override them.

mod reader;

use std::ffi::OsString;
use std::path::PathBuf;

use runner_core::answer::AnswerForm;
use serde_json::{Value, json};

use self::reader::OpencodeReader;
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use crate::config::{Executor, Sandbox};
use crate::process::StopPolicy;

/// Allows only the model's traffic; no downloads or updates during a session, and no compaction.
const FIXED_SWITCHES: [&str; 6] = [
    "OPENCODE_DISABLE_AUTOCOMPACT",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_SHARE",
];

/// What is known of the program.
const INFO: AgentInfo = AgentInfo {
    program: "opencode",
    install: "npm install -g opencode-ai@latest",
    min_version: [1, 18, 0],
    variables: &[
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "GROQ_API_KEY",
        "OPENAI_API_KEY",
        "OPENCODE_API_KEY",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENROUTER_API_KEY",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
    ],
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

    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        let switches = FIXED_SWITCHES.map(|name| (name.into(), "1".into()));
        let settings = ("OPENCODE_CONFIG_CONTENT".into(), session_settings(order.executor).to_string().into());
        LaunchPlan {
            argv: opencode_argv(order),
            env: switches.into_iter().chain([settings]).collect(),
            files: Vec::new(),
            is_structured: true,
            stop_policy: StopPolicy::Terminate,
        }
    }

    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader> {
        Box::new(OpencodeReader::new(order.output.to_owned(), order.form))
    }

    fn replay_reader(&self) -> Option<Box<dyn OutputReader>> {
        Some(Box::new(OpencodeReader::new(PathBuf::new(), AnswerForm::Answer)))
    }
}

fn opencode_argv(order: &LaunchRequest<'_>) -> Vec<OsString> {
    let words = [INFO.program, "run", "--format", "json"].map(OsString::from);
    let folder = ["--dir".into(), order.folder.as_os_str().to_owned()];
    let model = order.executor.model.iter().flat_map(|model| ["-m", model]).map(OsString::from);
    let extra = order.executor.extra_args.iter().map(OsString::from);
    words.into_iter().chain(folder).chain(model).chain(extra).collect()
}

/// Returns the settings. No one can be asked, and it has no sandbox: restrictions apply to its tools.
fn session_settings(executor: &Executor) -> Value {
    let allow = |is_allowed: bool| if is_allowed { "allow" } else { "deny" };
    let may_write = executor.sandbox != Sandbox::ReadOnly;
    let may_browse = executor.network || executor.sandbox == Sandbox::DangerFullAccess;
    json!({
        "autoupdate": false,
        "share": "disabled",
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
