//! Whether the agents of a configuration can work at all, told before a run begins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::backend::Backend;
use super::kinds;
use super::probe::{self, Probe, Probed};
use super::{Unfit, environment};
use crate::config::{Executor, RepoConfig};
use crate::process::{Launcher, Mark};

/// Longest wait for a program's word on its version while a caller waits.
const LIMIT: Duration = Duration::from_secs(20);

/// Agents that are to work in a run.
#[derive(Debug, Clone, Copy)]
pub struct Candidates<'a> {
    /// Which they are.
    pub config: &'a RepoConfig,
    /// The work tree.
    pub folder: &'a Path,
    /// The caller's environment.
    pub env: &'a BTreeMap<String, String>,
    /// A folder of the daemon's for files that are not needed afterwards.
    pub scratch: &'a Path,
}

/// Returns the executors of a configuration, each with its section; those that may take the place of one are among them.
pub fn executors(config: &RepoConfig) -> Vec<(&'static str, Executor)> {
    let mut all: Vec<(&'static str, Executor)> = Vec::new();
    for (section, executor) in config.executor.by_section() {
        let stand_ins = executor.fallback.iter().map(|kind| executor.for_fallback(*kind));
        for executor in std::iter::once(executor.clone()).chain(stand_ins) {
            let is_known = |(_, known): &(_, Executor)| {
                known.kind == executor.kind && known.wrapper == executor.wrapper && known.command == executor.command
            };
            if !all.iter().any(is_known) {
                all.push((section, executor));
            }
        }
    }
    all
}

/// Whether an agent can work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    /// Nothing speaks against it.
    Fit {
        /// Its version, where the program is known and could be asked.
        version: Option<String>,
        /// Whether it has a login, where that can be seen.
        login: Option<bool>,
    },
    /// A person must change something.
    Unfit(Unfit),
    /// What went wrong in asking, and may go well another time.
    Unknown(String),
}

/// Checks the agents of a configuration; the error names the first that cannot work.
///
/// What went wrong in asking, and may go well another time, is no reason to refuse.
pub async fn check(candidates: Candidates<'_>, launcher: &Launcher) -> Result<(), Unfit> {
    for (section, executor) in executors(candidates.config) {
        match examine(&executor, candidates, launcher).await {
            Fitness::Fit { version: None, .. } => {}
            Fitness::Fit { version: Some(version), .. } => {
                tracing::info!(kind = %executor.kind, version, "the agent's version");
            }
            Fitness::Unknown(why) => tracing::warn!(kind = %executor.kind, why, "the agent's version is not known yet"),
            Fitness::Unfit(unfit) => return Err(Unfit { what: format!("[{section}] {}", unfit.what), ..unfit }),
        }
    }
    Ok(())
}

/// Finds out whether an agent can work: by files and variables, and by its word on its version.
pub async fn examine(executor: &Executor, candidates: Candidates<'_>, launcher: &Launcher) -> Fitness {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let backend = kinds::of(executor.kind);
    let env = environment(executor, &candidates.config.env.agent, candidates.env);
    if let Err(unfit) = preflight(backend, executor, &env) {
        return Fitness::Unfit(unfit);
    }
    let login = if executor.wrapper.is_empty() { backend.has_login(executor, &env) } else { None };
    let Some(about) = backend.about() else { return Fitness::Fit { version: None, login } };
    let scratch = candidates.scratch.join(format!("version-{}", ASKED.fetch_add(1, Ordering::Relaxed)));
    if let Err(error) = block_in_place(|| fs::create_dir_all(&scratch)) {
        return Fitness::Unknown(format!("cannot create {}: {error}", scratch.display()));
    }
    let probe = Probe {
        about,
        executor,
        folder: candidates.folder,
        env: &env,
        mark: Mark::new(scratch.display().to_string()),
        lock: scratch.join("lock"),
        log: scratch.join("log"),
        limit: LIMIT,
    };
    let probed = probe::ask(&probe, launcher, &CancellationToken::new()).await;
    // Another caller's may be in the folder above.
    let _ = fs::remove_dir_all(&scratch).and_then(|()| fs::remove_dir(candidates.scratch));
    match probed {
        Ok((Probed::Unfit(unfit), _)) => Fitness::Unfit(unfit),
        Ok((Probed::Fit(version), _)) => Fitness::Fit { version: Some(version.to_string()), login },
        Ok((Probed::Faulty(_, what), _)) => Fitness::Unknown(what),
        Ok((Probed::Stopped, _)) => Fitness::Unknown(format!("`{} --version` was stopped", about.program)),
        Err(error) if error.is_misconfigured() => Fitness::Unfit(Unfit::new(error.to_string(), about.install)),
        Err(error) => Fitness::Unknown(with_cause(&error)),
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Behind a wrapper nothing can be said of files.
pub(super) fn preflight(backend: &dyn Backend, executor: &Executor, env: &[(OsString, OsString)]) -> Result<(), Unfit> {
    if executor.wrapper.is_empty() { block_in_place(|| backend.preflight(executor, env)) } else { Ok(()) }
}
