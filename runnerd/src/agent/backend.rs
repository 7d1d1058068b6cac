//! What there is to know of an agent program: how it is started, and what it prints means.
//!
//! One implementation per kind, in a file of its own. What an end amounts to is not decided by them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use protocol::answer::SessionUsage;
use protocol::event::Activity;
use runner_core::answer::Form;

use super::evidence::Evidence;
use super::unfit::Unfit;
use crate::config::Executor;
use crate::process::Farewell;

/// An agent program.
pub(super) trait Backend: Sync {
    /// Returns how a session is started.
    fn launch(&self, order: &Order<'_>) -> Launch;

    /// Returns what is known of the program; nothing where the user names it.
    fn about(&self) -> Option<&'static About> {
        None
    }

    /// Finds what would keep every session from working, as far as files and variables tell.
    fn preflight(&self, _executor: &Executor, _env: &[(OsString, OsString)]) -> Result<(), Unfit> {
        Ok(())
    }

    /// Returns whether the program has a login, or needs none; nothing where that cannot be seen.
    fn has_login(&self, _executor: &Executor, _env: &[(OsString, OsString)]) -> Option<bool> {
        None
    }

    /// Returns what understands a session's output.
    fn reader(&self, order: &Order<'_>) -> Box<dyn Reader>;

    /// Returns what understands the output of a session that is not there any more; nothing where it has no form.
    fn onlooker(&self) -> Option<Box<dyn Reader>> {
        None
    }
}

/// What is known of a program before it runs.
#[derive(Debug)]
pub(super) struct About {
    /// Its name in `PATH`.
    pub(super) program: &'static str,
    /// The command that installs or updates it.
    pub(super) install: &'static str,
    /// The oldest release that takes the arguments and does what they say.
    pub(super) oldest: [u32; 3],
    /// Names and globs of the variables that it reads: its login, its folder, its service.
    pub(super) variables: &'static [&'static str],
}

/// What a session is started for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    /// Which agent, and how.
    pub(super) executor: &'a Executor,
    /// What it is asked for.
    pub(super) form: Form,
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
pub(super) struct Launch {
    /// Program and arguments, without a wrapper. The prompt comes on standard input.
    pub(super) argv: Vec<OsString>,
    /// Variables besides those that every session gets; they win over others of the same name.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Files that are written before it starts.
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    /// Whether its standard output is for the [`Reader`].
    pub(super) is_structured: bool,
    /// How it is asked to end.
    pub(super) farewell: Farewell,
}

/// Understands what a session prints on its standard output.
pub(super) trait Reader: Send + Sync {
    /// Takes the next line, without its end; returns what it shows of the agent's work. A line that is longer than
    /// [`MAX_LINE`](super::stream::MAX_LINE) does not come.
    fn line(&mut self, line: &[u8]) -> Option<Activity>;

    /// Returns whether the session has given its answer, so that it may end.
    fn has_answered(&self) -> bool;

    /// Returns what is known once nothing of the session is alive.
    fn finish(self: Box<Self>, rest: &Rest<'_>) -> Heard;
}

/// What is left of a session besides its standard output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    /// The last part of its standard error.
    pub(super) errors: &'a [u8],
}

/// What a session has said.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Its answer as JSON, where its structured output has brought one; it may be anything.
    pub(super) answer: Option<Vec<u8>>,
    /// What it consumed.
    pub(super) usage: SessionUsage,
    /// By which its service knows the session.
    pub(super) session_id: Option<String>,
    /// The model that it asked, where its own record names it.
    pub(super) model: Option<String>,
    /// What its end can be classed by.
    pub(super) evidence: Evidence,
}
