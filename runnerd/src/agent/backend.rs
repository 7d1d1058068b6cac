//! What there is to know of an agent program: how it is started, and what it prints means.
//!
//! One implementation per kind, in a file of its own. What an end amounts to is not decided by them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use protocol::answer::SessionUsage;
use protocol::event::Activity;
use runner_core::answer::AnswerForm;

use super::evidence::EndEvidence;
use super::unfit::AgentUnavailable;
use crate::config::Executor;
use crate::process::StopPolicy;

/// An agent program.
pub(super) trait AgentBackend: Sync {
    /// Returns how a session is started.
    fn plan_launch(&self, order: &LaunchRequest<'_>) -> LaunchPlan;

    /// Returns what is known of the program; nothing where the user names it.
    fn info(&self) -> Option<&'static AgentInfo> {
        None
    }

    /// Finds what would keep every session from working, as far as files and variables tell.
    fn preflight(&self, _executor: &Executor, _env: &[(OsString, OsString)]) -> Result<(), AgentUnavailable> {
        Ok(())
    }

    /// Returns whether the program has a login, or needs none; nothing where that cannot be seen.
    fn has_login(&self, _executor: &Executor, _env: &[(OsString, OsString)]) -> Option<bool> {
        None
    }

    /// Returns what understands a session's output.
    fn output_reader(&self, order: &LaunchRequest<'_>) -> Box<dyn OutputReader>;

    /// Returns what understands the output of a session that is not there any more; nothing where it has no form.
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
    /// The oldest release that takes the arguments and does what they say.
    pub(super) min_version: [u32; 3],
    /// Names and globs of the variables that it reads: its login, its folder, its service.
    pub(super) variables: &'static [&'static str],
}

/// What a session is started for.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchRequest<'a> {
    /// Which agent, and how.
    pub(super) executor: &'a Executor,
    /// What it is asked for.
    pub(super) form: AnswerForm,
    /// The work tree, in which it starts.
    pub(super) folder: &'a Path,
    /// Git's folder of the repository, which may lie outside of the work tree.
    pub(super) git_folder: &'a Path,
    /// Its environment.
    pub(super) env: &'a [(OsString, OsString)],
    /// The record of the iteration: a folder for what the session needs besides its prompt.
    pub(super) record: &'a Path,
    /// The file that `$RUNNER_OUTPUT` names.
    pub(super) output: &'a Path,
}

/// How a session is started.
#[derive(Debug)]
pub(super) struct LaunchPlan {
    /// Program and arguments, without a wrapper. The prompt comes on standard input.
    pub(super) argv: Vec<OsString>,
    /// Variables besides those that every session gets; they win over others of the same name.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Files that are written before it starts.
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    /// Whether its standard output is for the [`Reader`].
    pub(super) is_structured: bool,
    /// How it is asked to end.
    pub(super) stop_policy: StopPolicy,
}

/// Understands what a session prints on its standard output.
pub(super) trait OutputReader: Send + Sync {
    /// Takes the next line, without its end; returns what it shows of the agent's work. A line that is longer than
    /// [`MAX_LINE`](super::stream::MAX_LINE) does not come.
    fn read_line(&mut self, line: &[u8]) -> Option<Activity>;

    /// Returns whether the session has given its answer, so that it may end.
    fn has_answered(&self) -> bool;

    /// Returns what is known once nothing of the session is alive.
    fn finish_output(self: Box<Self>, rest: &SessionRest<'_>) -> SessionOutput;
}

/// What is left of a session besides its standard output.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionRest<'a> {
    /// The last part of its standard error.
    pub(super) errors: &'a [u8],
}

/// What a session has said.
#[derive(Debug, Default)]
pub(super) struct SessionOutput {
    /// Its answer as JSON, where its structured output has brought one; it may be anything.
    pub(super) answer: Option<Vec<u8>>,
    /// What it consumed.
    pub(super) usage: SessionUsage,
    /// By which its service knows the session.
    pub(super) session_id: Option<String>,
    /// The model that it asked, where its own record names it.
    pub(super) model: Option<String>,
    /// What its end can be classed by.
    pub(super) evidence: EndEvidence,
}
