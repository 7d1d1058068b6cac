//! Kind `opencode`: `opencode run`, its events on standard output. It is held to no schema: its answer is a file, or what
//! it says last.
//!
//! Its own settings stay as they are, since they hold its providers; what a session must have is put over them.

mod reader;

use std::ffi::OsString;
use std::path::PathBuf;

use runner_core::answer::Form;
use serde_json::{Value, json};

use self::reader::OpencodeReader;
use super::backend::{About, Backend, Launch, Order, Reader};
use super::unfit::Unfit;
use crate::config::{Executor, Sandbox};
use crate::process::Farewell;

/// No traffic but the model's, nothing fetched or updated under a session, and no compaction.
const SWITCHES: [&str; 6] = [
    "OPENCODE_DISABLE_AUTOCOMPACT",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_SHARE",
];

/// What is known of the program.
const ABOUT: About = About {
    program: "opencode",
    install: "npm install -g opencode-ai@latest",
    oldest: [1, 18, 0],
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

/// The backend.
pub(super) struct Opencode;

impl Backend for Opencode {
    fn about(&self) -> Option<&'static About> {
        Some(&ABOUT)
    }

    fn preflight(&self, executor: &Executor, _env: &[(OsString, OsString)]) -> Result<(), Unfit> {
        if executor.network || executor.sandbox != Sandbox::WorkspaceWrite {
            return Ok(());
        }
        let fix = "set network = true in .runner/state/config.toml, or take it out of the node's tools.json; a wrapper may let it \
                   reach its service alone";
        Err(Unfit::new("opencode has no way to keep its commands from the network", fix))
    }

    fn launch(&self, order: &Order<'_>) -> Launch {
        let switches = SWITCHES.map(|name| (name.into(), "1".into()));
        let settings = ("OPENCODE_CONFIG_CONTENT".into(), settings(order.executor).to_string().into());
        Launch {
            argv: argv(order),
            env: switches.into_iter().chain([settings]).collect(),
            files: Vec::new(),
            is_structured: true,
            farewell: Farewell::Terminate,
        }
    }

    fn reader(&self, order: &Order<'_>) -> Box<dyn Reader> {
        Box::new(OpencodeReader::new(order.output.to_owned(), order.form))
    }

    fn onlooker(&self) -> Option<Box<dyn Reader>> {
        Some(Box::new(OpencodeReader::new(PathBuf::new(), Form::Answer)))
    }
}

fn argv(order: &Order<'_>) -> Vec<OsString> {
    let words = [ABOUT.program, "run", "--format", "json"].map(OsString::from);
    let folder = ["--dir".into(), order.folder.as_os_str().to_owned()];
    let model = order.executor.model.iter().flat_map(|model| ["-m", model]).map(OsString::from);
    let extra = order.executor.extra_args.iter().map(OsString::from);
    words.into_iter().chain(folder).chain(model).chain(extra).collect()
}

/// Nobody can be asked. It has no sandbox: what is not allowed are its tools.
fn settings(executor: &Executor) -> Value {
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
