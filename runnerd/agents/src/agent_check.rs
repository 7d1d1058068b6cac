//! Whether the agents of a configuration can work at all, checked before a run begins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use runner_config::{Executor, ExecutorKind, RepoConfig};
use runner_process::{Launcher, Mark, find_program};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::AgentUnavailable;
use super::backend::AgentBackend;
use super::backends;
use super::environment::session_environment;
use super::inherited;
use super::version_probe::{self, VersionProbe, VersionResult};

/// Time limit for a program to report its version while a caller waits.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// The agents to check for a run.
#[derive(Debug, Clone, Copy)]
pub struct AgentCandidates<'a> {
    /// The configuration that names them.
    pub config: &'a RepoConfig,
    /// The work tree.
    pub folder: &'a Path,
    /// The caller's environment.
    pub env: &'a BTreeMap<String, String>,
    /// A folder of the daemon for temporary files.
    pub scratch: &'a Path,
}

/// Returns the executors of a configuration, each with its section; includes those that may replace another one.
pub fn list_executors(config: &RepoConfig) -> Vec<(&'static str, Executor)> {
    let mut all: Vec<(&'static str, Executor)> = Vec::new();
    for (section, executor) in config.executor.by_section() {
        let fallbacks = executor.fallback.iter().map(|kind| executor.for_fallback(*kind));
        for executor in std::iter::once(executor.clone()).chain(fallbacks) {
            let is_known = |(_, known): &(_, Executor)| {
                known.kind == executor.kind
                    && known.wrapper == executor.wrapper
                    && known.command == executor.command
                    && known.inherit == executor.inherit
            };
            if !all.iter().any(is_known) {
                all.push((section, executor));
            }
        }
    }
    all
}

/// Returns an executor with the settings of a configuration for each known agent whose program the caller has.
pub fn list_known(config: &RepoConfig, env: &BTreeMap<String, String>) -> Vec<Executor> {
    let kinds = [ExecutorKind::Codex, ExecutorKind::Claude, ExecutorKind::Opencode, ExecutorKind::Gemini];
    let executors = kinds.into_iter().map(|kind| config.executor.work.for_fallback(kind));
    let is_installed = |executor: &Executor| {
        let program = super::session_program(executor).name;
        let env = session_environment(executor, &config.env.agent, env);
        find_program(program.as_ref(), Path::new("/"), &env).is_ok()
    };
    executors.filter(is_installed).collect()
}

/// Whether an agent can work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentReadiness {
    /// No problem was found.
    Ready {
        /// Its version, if the program is known and could be asked.
        version: Option<String>,
        /// The newest version that was tested, if this one is newer.
        tested: Option<String>,
        /// Whether it has a login, if that can be determined.
        login: Option<bool>,
    },
    /// A person must change something.
    Unavailable(AgentUnavailable),
    /// Why the check failed; it may succeed another time.
    Unknown(String),
}

/// Checks the agents of a configuration; the error names the first that cannot work.
///
/// A failed check that may succeed another time is not a reason to refuse.
pub async fn check_agents(candidates: AgentCandidates<'_>, launcher: &Launcher) -> Result<(), AgentUnavailable> {
    for (section, executor) in list_executors(candidates.config) {
        match examine_agent(&executor, candidates, launcher).await {
            AgentReadiness::Ready { version: None, .. } => {}
            AgentReadiness::Ready { version: Some(version), .. } => {
                tracing::info!(kind = %executor.kind, version, "the agent's version");
            }
            AgentReadiness::Unknown(why) => {
                tracing::warn!(kind = %executor.kind, why, "the agent's version is unknown so far");
            }
            AgentReadiness::Unavailable(error) => {
                return Err(AgentUnavailable { what: format!("[{section}] {}", error.what), ..error });
            }
        }
    }
    Ok(())
}

/// Checks an agent by its files and variables, and by asking for its version.
pub async fn examine_agent(
    executor: &Executor,
    candidates: AgentCandidates<'_>,
    launcher: &Launcher,
) -> AgentReadiness {
    static PROBE_COUNT: AtomicU32 = AtomicU32::new(0);
    let backend = backends::backend_for(executor.kind);
    let env = session_environment(executor, &candidates.config.env.agent, candidates.env);
    if let Some(about) = backend.info().filter(|_| executor.wrapper.is_empty())
        && find_program(about.program.as_ref(), candidates.folder, &env).is_err()
    {
        let what = format!("{} is not installed: no directory of PATH has it", about.program);
        return AgentReadiness::Unavailable(AgentUnavailable::new(what, about.install));
    }
    if let Err(error) = run_preflight(backend, executor, &env) {
        return AgentReadiness::Unavailable(error);
    }
    let login = if executor.wrapper.is_empty() { backend.has_login(executor, &env) } else { None };
    let Some(about) = backend.info() else { return AgentReadiness::Ready { version: None, tested: None, login } };
    let scratch = candidates.scratch.join(format!("version-{}", PROBE_COUNT.fetch_add(1, Ordering::Relaxed)));
    if let Err(error) = block_in_place(|| fs::create_dir_all(&scratch)) {
        return AgentReadiness::Unknown(format!("cannot create {}: {error}", scratch.display()));
    }
    let probe = VersionProbe {
        info: about,
        executor,
        folder: candidates.folder,
        env: &env,
        mark: Mark::new(scratch.display().to_string()),
        lock: scratch.join("lock"),
        log: scratch.join("log"),
        limit: VERSION_LIMIT,
    };
    let result = version_probe::probe_version(&probe, launcher, &CancellationToken::new()).await;
    // The parent folder may be in use by another caller.
    let _ = fs::remove_dir_all(&scratch).and_then(|()| fs::remove_dir(candidates.scratch));
    match result {
        Ok((VersionResult::Unavailable(unfit), _)) => AgentReadiness::Unavailable(unfit),
        Ok((VersionResult::Supported(version), _)) => {
            let tested =
                version.is_newer(about.tested_version).then(|| about.tested_version.map(|part| part.to_string()));
            let tested = tested.map(|parts| parts.join("."));
            AgentReadiness::Ready { version: Some(version.to_string()), tested, login }
        }
        Ok((VersionResult::Faulty(_, what), _)) => AgentReadiness::Unknown(what),
        Ok((VersionResult::Stopped, _)) => {
            AgentReadiness::Unknown(format!("`{} --version` was stopped", about.program))
        }
        Err(error) if error.is_misconfigured() => {
            AgentReadiness::Unavailable(AgentUnavailable::new(error.to_string(), about.install))
        }
        Err(error) => AgentReadiness::Unknown(describe_with_cause(&error)),
    }
}

fn describe_with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Runs the backend's checks, except behind a wrapper, which may use other files.
pub(super) fn run_preflight(
    backend: &dyn AgentBackend,
    executor: &Executor,
    env: &[(OsString, OsString)],
) -> Result<(), AgentUnavailable> {
    if !executor.wrapper.is_empty() {
        return Ok(());
    }
    block_in_place(|| {
        backend.preflight(executor, env)?;
        inherited::find_servers(backend, executor, env).map(drop)
    })
}
