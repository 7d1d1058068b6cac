//! Agents: from an executor's configuration to a session, and from its end to facts.
//!
//! One file per kind. The facts are judged in `runner_core::verdict`.

mod agent_check;
mod agent_unavailable;
mod answer_file;
mod backend;
mod backends;
mod claude;
mod codex;
mod command;
mod embedded_error;
mod end;
mod environment;
mod evidence;
mod gemini;
#[cfg(any(test, fuzzing))]
pub mod hostile;
mod inherited;
mod line_splitter;
mod opencode;
mod output_router;
mod regular_file;
mod session;
mod session_home;
mod signatures;
mod steps;
mod version;
mod version_probe;
mod zone;

use std::path::Path;

use runner_config::Executor;
use runner_core::text::redact::Secrets;
use runner_core::verdict::{SessionEnd, SessionEndKind};
use runner_process::Launcher;

pub use self::agent_check::{AgentCandidates, AgentReadiness, check_agents, examine_agent, list_executors, list_known};
pub use self::agent_unavailable::AgentUnavailable;
pub use self::environment::{caller_variables, session_environment};
pub use self::session::{AgentSession, run_session};
pub use self::session_home::SessionDirs;
pub use self::steps::{bound_step, parse_steps};

/// Variable that names the file for the answer.
pub const OUTPUT_VARIABLE: &str = "RUNNER_OUTPUT";

/// The program that a session of an executor starts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionProgram<'a> {
    /// Name or path; empty if the configuration names none.
    pub name: &'a str,
    /// The command that installs it, for a known agent.
    pub install: Option<&'static str>,
    /// The key of the section that names it.
    pub key: &'static str,
}

/// Returns the program that a session starts first.
pub fn session_program(executor: &Executor) -> SessionProgram<'_> {
    let about = backends::backend_for(executor.kind).info();
    match (executor.wrapper.first(), about) {
        (Some(wrapper), _) => SessionProgram { name: wrapper, install: None, key: "wrapper" },
        (None, Some(about)) => SessionProgram { name: about.program, install: Some(about.install), key: "kind" },
        (None, None) => {
            SessionProgram { name: executor.command.first().map_or("", String::as_str), install: None, key: "command" }
        }
    }
}

/// Returns the paths in the work tree that configure the program of an executor and that nothing keeps it from reading.
pub fn config_paths(executor: &Executor) -> &'static [&'static str] {
    match backends::backend_for(executor.kind).info() {
        Some(about) if executor.wrapper.is_empty() => about.config_paths,
        Some(about) => about.wrapped_config_paths,
        None => &[],
    }
}

/// Redacts secrets in an answer's file, if it is a regular file.
pub fn redact_answer(file: &Path, secrets: &Secrets) {
    if let Err(error) = answer_file::redact_file(file, secrets) {
        tracing::warn!(path = %file.display(), %error, "the answer may contain a secret");
    }
}

/// Returns the end of a session that a dead daemon has left; it was contained as this daemon would have done.
pub fn interrupted_end<A>(executor: &Executor, survivors: u32, launcher: &Launcher) -> SessionEnd<A> {
    SessionEnd { survivors, ..blank_end(executor, launcher) }
}

fn blank_end<A>(executor: &Executor, launcher: &Launcher) -> SessionEnd<A> {
    SessionEnd {
        agent: executor.kind.to_string(),
        containment: launcher.capabilities().level_for(denies_privileges(executor)),
        ..SessionEnd::new(SessionEndKind::Cut)
    }
}

/// Whether privileges are denied. Programs started by a wrapper may need set-user-id helpers, as rootless `podman`
/// does.
fn denies_privileges(executor: &Executor) -> bool {
    executor.wrapper.is_empty()
}
