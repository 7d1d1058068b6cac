//! The interface to an agent program: how it is started, and how its output is read.
//!
//! One implementation per kind, each in its own file. How the end of a session is judged is not decided by them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use protocol::answer::SessionUsage;
use protocol::event::Activity;
use runner_config::Executor;
use runner_core::files::answer::AnswerForm;
use runner_process::StopPolicy;
use serde_json::{Map, Value};

use super::agent_unavailable::AgentUnavailable;
use super::evidence::EndEvidence;
use super::inherited::ServerFile;

/// One kind of agent program.
pub(super) trait AgentBackend: Sync {
    /// Returns how a session is started.
    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan;

    /// Returns what is known of the program; `None` if the user names it.
    fn info(&self) -> Option<&'static AgentInfo> {
        None
    }

    /// Checks for what would keep every session from working, as far as files and variables show.
    fn preflight(&self, _executor: &Executor, _env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        Ok(())
    }

    /// Whether the program has a login, or needs none; `None` if that cannot be determined.
    fn has_login(&self, _executor: &Executor, _env: &[(OsString, OsString)]) -> Option<bool> {
        None
    }

    /// Returns the file with the person's MCP servers.
    fn server_file(&self, _env: &[(OsString, OsString)]) -> Option<ServerFile> {
        None
    }

    /// Returns a reader for a session's output.
    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader>;

    /// Returns a reader for the output of a past session; `None` if its output has no structure.
    fn replay_reader(&self) -> Option<Box<dyn OutputReader>> {
        None
    }
}

/// What is known of a program before it runs.
#[derive(Debug)]
pub(super) struct AgentInfo {
    /// Its name in `PATH`.
    pub(super) program: &'static str,
    /// The command that installs or updates it.
    pub(super) install: &'static str,
    /// The oldest release that supports the arguments with their current meaning.
    pub(super) min_version: [u32; 3],
    /// The newest release that the tests with the real program have passed.
    pub(super) tested_version: [u32; 3],
    /// Names and globs of the variables that it reads: its login, its folder, its service.
    pub(super) variables: &'static [&'static str],
    /// Paths in the work tree that it obeys regardless of its arguments: they are moved away while it runs.
    pub(super) config_paths: &'static [&'static str],
    /// The same if it is behind a wrapper and has no separate home for the session.
    pub(super) wrapped_config_paths: &'static [&'static str],
}

/// What a session is started with.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchRequest<'a> {
    /// Which agent, and its settings.
    pub(super) executor: &'a Executor,
    /// The kind of answer that it is asked for.
    pub(super) form: AnswerForm,
    /// The work tree, in which it starts.
    pub(super) folder: &'a Path,
    /// Git's folder of the repository, which may be outside the work tree.
    pub(super) git_folder: &'a Path,
    /// Its environment.
    pub(super) env: &'a [(OsString, OsString)],
    /// The record of the iteration: a folder for files that the session needs in addition to its prompt.
    pub(super) record: &'a Path,
    /// The session's own home, empty; `None` behind a wrapper, which provides its own environment.
    pub(super) home: Option<&'a Path>,
    /// The MCP servers that it takes from the person's set-up, in the form of its program.
    pub(super) servers: &'a Map<String, Value>,
    /// The file that `$RUNNER_OUTPUT` names.
    pub(super) output: &'a Path,
}

/// How a session is started.
#[derive(Debug)]
pub(super) struct LaunchPlan {
    /// Program and arguments, without a wrapper. The prompt is sent on standard input.
    pub(super) argv: Vec<OsString>,
    /// Variables in addition to those of every session; they override others of the same name.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Files to write before it starts.
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    /// Links to create before it starts, each with its target.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Whether its standard output is for the [`OutputReader`].
    pub(super) is_structured: bool,
    /// How it is asked to exit.
    pub(super) stop_policy: StopPolicy,
}

/// Parses the standard output of a session.
pub(super) trait OutputReader: Send + Sync {
    /// Takes the next line, without its terminator; returns the step of the agent's work that it shows. Lines longer
    /// than 8 MiB are not passed.
    fn read_line(&mut self, line: &[u8]) -> Option<Activity>;

    /// Takes the next line of standard error, without its terminator.
    fn read_error_line(&mut self, _line: &[u8]) {}

    /// Whether the session has given its answer, or can give none while its service is out, so that it may end.
    fn has_answered(&self) -> bool;

    /// Returns the result, once no process of the session is alive.
    fn finish_output(self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput;
}

/// What a session leaves in addition to its standard output.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionRest<'a> {
    /// The end of its standard error.
    pub(super) errors: &'a [u8],
}

/// What a session has output.
#[derive(Debug, Default)]
pub(super) struct SessionOutput {
    /// Its answer as JSON, if its structured output had one; untrusted.
    pub(super) answer: Option<Vec<u8>>,
    /// What it consumed.
    pub(super) usage: SessionUsage,
    /// The id by which its service knows the session.
    pub(super) session_id: Option<String>,
    /// The model that it used, if its own record names it.
    pub(super) model: Option<String>,
    /// Evidence for classifying its end.
    pub(super) evidence: EndEvidence,
}
