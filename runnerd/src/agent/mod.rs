//! Agents: from an executor's configuration to a session, and from its end to facts.
//!
//! One file per kind. What the facts amount to is judged in `runner_core::verdict`.

mod answer_file;
mod backend;
mod claude;
mod codex;
mod command;
mod embedded;
mod end;
mod environment;
mod evidence;
mod fitness;
mod gemini;
#[cfg(any(test, fuzzing))]
pub mod hostile;
mod kinds;
mod opencode;
mod output_router;
mod probe;
mod regular;
mod session;
mod signatures;
mod steps;
mod stream;
mod unfit;
mod version;
mod zone;

use std::path::Path;

use runner_core::redact::Secrets;
use runner_core::verdict::{SessionEnd, SessionHow};

pub use self::environment::{environment, wanted_of_caller};
pub use self::fitness::{Candidates, Fitness, check, examine, executors};
pub use self::session::{Session, run};
pub use self::steps::{bounded, steps};
pub use self::unfit::Unfit;
use crate::config::Executor;
use crate::process::Launcher;

/// Variable that names the file for the answer.
pub const OUTPUT_VARIABLE: &str = "RUNNER_OUTPUT";

/// A program that a session of an executor starts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'a> {
    /// Name or path; empty where the configuration names none.
    pub name: &'a str,
    /// The command that installs it, for an agent that is known.
    pub install: Option<&'static str>,
    /// The key of the section that names it.
    pub key: &'static str,
}

/// Returns the program that a session starts first.
pub fn program(executor: &Executor) -> Program<'_> {
    let about = kinds::of(executor.kind).about();
    match (executor.wrapper.first(), about) {
        (Some(wrapper), _) => Program { name: wrapper, install: None, key: "wrapper" },
        (None, Some(about)) => Program { name: about.program, install: Some(about.install), key: "kind" },
        (None, None) => {
            Program { name: executor.command.first().map_or("", String::as_str), install: None, key: "command" }
        }
    }
}

/// Takes the secrets out of an answer's file, where it is one.
pub fn redact_answer(file: &Path, secrets: &Secrets) {
    if let Err(error) = answer_file::redact(file, secrets) {
        tracing::warn!(path = %file.display(), %error, "the answer may hold a secret");
    }
}

/// Returns the end of a session that a dead daemon has left; it was held as this daemon would have held it.
pub fn interrupted<A>(executor: &Executor, survivors: u32, launcher: &Launcher) -> SessionEnd<A> {
    SessionEnd { survivors, ..blank(executor, launcher) }
}

fn blank<A>(executor: &Executor, launcher: &Launcher) -> SessionEnd<A> {
    SessionEnd {
        agent: executor.kind.to_string(),
        containment: launcher.offer().level_for(keeps_privileges_out(executor)),
        ..SessionEnd::new(SessionHow::Cut)
    }
}

/// What a wrapper starts may need its set-user-id programs, as rootless `podman` does.
fn keeps_privileges_out(executor: &Executor) -> bool {
    executor.wrapper.is_empty()
}
