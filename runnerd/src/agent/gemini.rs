//! Kind `gemini`: `gemini -p`, with events on standard output. No schema is enforced: its answer is a file, or its last
//! message.
//!
//! Its own settings stay as they are: no argument disables them, and they contain its login method.

mod reader;

use std::ffi::OsString;
use std::path::PathBuf;

use runner_core::answer::AnswerForm;

use self::reader::GeminiReader;
use super::agent_unavailable::AgentUnavailable;
use super::backend::{AgentBackend, AgentInfo, LaunchPlan, LaunchRequest, OutputReader};
use crate::config::{Executor, Sandbox};
use crate::process::StopPolicy;

/// Arguments common to all sessions. An empty prompt is appended to standard input.
const FIXED_ARGS: [&str; 6] = ["gemini", "-p", "", "-o", "stream-json", "--skip-trust"];

/// What is known of the program.
const INFO: AgentInfo = AgentInfo {
    program: "gemini",
    install: "npm install -g @google/gemini-cli@latest",
    min_version: [0, 40, 0],
    variables: &[
        "GEMINI_API_KEY",
        "GEMINI_CLI_HOME",
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
};

/// Backend for agents of kind `gemini`.
pub(super) struct GeminiBackend;

impl AgentBackend for GeminiBackend {
    fn info(&self) -> Option<&'static AgentInfo> {
        Some(&INFO)
    }

    fn preflight(&self, executor: &Executor, _env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        if executor.network || executor.sandbox == Sandbox::DangerFullAccess {
            return Ok(());
        }
        let fix = "set network = true in .runner/state/config.toml, or take it out of the node's tools.json; a wrapper may let it \
                   reach its service alone";
        Err(AgentUnavailable::new("gemini has no way to keep its commands from the network", fix))
    }

    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan {
        LaunchPlan {
            argv: gemini_argv(order.executor),
            env: vec![("GEMINI_TELEMETRY_ENABLED".into(), "false".into())],
            files: Vec::new(),
            is_structured: true,
            // It reports nothing more when it is interrupted, and leaves its child processes running.
            stop_policy: StopPolicy::Terminate,
        }
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

#[cfg(test)]
mod tests;
