//! The guards of passing commits, run once more: each in a folder of its own, which is gone afterwards.
//!
//! Contained and limited as in an iteration. What comes out is no proof either way: a guard may depend on more than its
//! commit, so that a difference is a warning.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::request::CallerEnv;
use protocol::verify::{AuditFinding, AuditPass, AuditRule, Severity};
use runner_core::iteration::{GuardEnd, GuardHow};
use runner_core::redact::Secrets;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::VerifyError;
use crate::causes::in_one_line;
use crate::config::{GuardConfig, RepoConfig};
use crate::folders;
use crate::git::{GitError, Id, Repository};
use crate::guard::{self, Guard};
use crate::process::{Launcher, Mark};
use crate::worker::{LoadError, laid_out_at, load_config};
use crate::workspace::{self, Order};

/// Returns the folder for the copies that guards are run in, within that of the daemon's state.
pub fn copies(state: &Path) -> PathBuf {
    state.join("verify")
}

/// Removes the copies that a daemon which was killed has left.
pub fn clear(state: &Path) {
    if let Err(error) = remove(&copies(state)) {
        tracing::warn!(%error, "a copy that a guard was run in is left");
    }
}

/// Counts the runs of guards of this daemon: each has a folder and a mark of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// What guards are run with.
#[derive(Debug)]
pub struct Stage<'a> {
    /// The repository that is audited.
    pub repository: &'a Repository,
    /// A folder of the daemon's, for the copies.
    pub folder: PathBuf,
    /// Starts programs.
    pub launcher: &'a Launcher,
    /// The caller's environment.
    pub env: &'a CallerEnv,
    /// Ends it.
    pub stop: &'a CancellationToken,
    /// Whether what `[workspace]` names is brought before a guard; its commands are confirmed then.
    pub brings: bool,
}

/// Returns the guards' commands of these passes, each once.
pub fn commands(repository: &Repository, passes: &[AuditPass]) -> Result<Vec<Vec<String>>, VerifyError> {
    let mut commands = Vec::new();
    for pass in passes {
        let config = match config_at(repository, &commit(pass)?) {
            // It is told when its guard would be run.
            Err(error) if is_of_branch(&error) => continue,
            config => config?,
        };
        if !commands.contains(&config.guard.command) {
            commands.push(config.guard.command);
        }
    }
    Ok(commands)
}

/// Tells whether it is what the branch holds that cannot be read, and not the machine that refuses.
fn is_of_branch(error: &VerifyError) -> bool {
    let is_broken = |error: &GitError| matches!(error, GitError::Broken { .. });
    match error {
        VerifyError::Git(error) => is_broken(error),
        VerifyError::State(error) => !matches!(&**error, LoadError::Git(error) if !is_broken(error)),
        _ => false,
    }
}

impl Stage<'_> {
    /// Runs the guard of each pass once more, and returns where it did not exit 0.
    pub async fn rerun(&self, passes: &[AuditPass]) -> Result<Vec<AuditFinding>, VerifyError> {
        let mut findings = Vec::new();
        for pass in passes {
            let end = match self.run(&commit(pass)?).await {
                // What a branch holds must not end the check of the rest.
                Err(error) if is_of_branch(&error) => GuardEnd::new(GuardHow::Missing { what: in_one_line(&error) }),
                end => end?,
            };
            if self.stop.is_cancelled() {
                return Err(VerifyError::Interrupted);
            }
            findings.extend(finding(pass, &end));
        }
        Ok(findings)
    }

    async fn run(&self, commit: &Id) -> Result<GuardEnd, VerifyError> {
        let config = block_in_place(|| config_at(self.repository, commit))?;
        self.check(commit, &config).await
    }

    /// Runs the guard of a configuration on the files of a commit, in a folder that is gone afterwards.
    pub async fn check(&self, commit: &Id, config: &RepoConfig) -> Result<GuardEnd, VerifyError> {
        self.apart(commit, config, guard::GUARD).await
    }

    /// Runs a person's command that stands in the place of the guard's, as [`Self::check`] runs that.
    pub async fn command(&self, commit: &Id, config: &RepoConfig) -> Result<GuardEnd, VerifyError> {
        self.apart(commit, config, "the command").await
    }

    async fn apart(&self, commit: &Id, config: &RepoConfig, called: &'static str) -> Result<GuardEnd, VerifyError> {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let own = self.folder.join(format!("{}-{number}", std::process::id()));
        let made = block_in_place(|| self.lay_out(commit, &own));
        let ended = match made {
            Ok(()) => self.guarded(config, (commit, &own), called).await,
            Err(error) => Err(error),
        };
        let removed = block_in_place(|| remove(&own));
        let end = ended?;
        removed?;
        Ok(end)
    }

    fn lay_out(&self, commit: &Id, own: &Path) -> Result<(), VerifyError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(own.join("work"));
        made.map_err(|source| VerifyError::Folder { path: own.to_owned(), source })?;
        self.repository.copy_at(commit, &own.join("work"))?;
        // Rules for line ends and the like may be a session's.
        for (path, file) in laid_out_at(self.repository, commit).map_err(Box::new)? {
            let path = own.join("work").join(path);
            fs::write(&path, file.bytes).map_err(|source| VerifyError::Folder { path, source })?;
        }
        Ok(())
    }

    async fn guarded(
        &self,
        config: &RepoConfig,
        (commit, own): (&Id, &Path),
        called: &'static str,
    ) -> Result<GuardEnd, VerifyError> {
        if self.brings {
            let (source, place, copy) = (self.repository, &own.join("work"), &config.workspace.copy);
            let order = Order { source, place, base: *commit, copy };
            block_in_place(|| workspace::bring(&order, self.stop))?;
        }
        if self.brings && !config.workspace.setup.is_empty() {
            let setup = GuardConfig { command: config.workspace.setup.clone(), ..config.guard.clone() };
            let as_guard =
                RepoConfig { guard: setup, iteration_timeout: config.workspace.setup_timeout, ..config.clone() };
            let end = self.run_in(&as_guard, own, "the setup of the workspace").await?;
            if end.how != GuardHow::Exited(0) {
                let what = "the setup of the workspace did not exit 0".to_owned();
                return Ok(GuardEnd { how: GuardHow::Missing { what }, ..end });
            }
        }
        self.run_in(config, own, called).await
    }

    async fn run_in(&self, config: &RepoConfig, own: &Path, called: &'static str) -> Result<GuardEnd, VerifyError> {
        let env = self.env.0.iter().filter(|(name, _)| config.env.guard.passes(name));
        let env: Vec<(OsString, OsString)> = env.map(|(name, value)| (name.into(), value.into())).collect();
        let work = own.join("work");
        let guard = Guard {
            called,
            config: &config.guard,
            folder: &work,
            env,
            log: own.join("guard.log"),
            live: None,
            secrets: Secrets::default(),
            budget: config.iteration_timeout,
            mark: Mark::new(format!("verify-{}", own.file_name().unwrap_or_default().display())),
            lock: own.join("shim.lock"),
        };
        Ok(guard::run(guard, self.launcher, self.stop).await?)
    }
}

fn config_at(repository: &Repository, commit: &Id) -> Result<RepoConfig, VerifyError> {
    load_config(repository, *commit).map_err(|error| VerifyError::State(Box::new(error)))
}

fn commit(pass: &AuditPass) -> Result<Id, VerifyError> {
    pass.commit.parse().map_err(|_| VerifyError::NoCommit(pass.commit.clone()))
}

/// Removes a folder, if it is there.
fn remove(own: &Path) -> Result<(), VerifyError> {
    folders::remove(own).map_err(|source| VerifyError::Folder { path: own.to_owned(), source })
}

fn finding(pass: &AuditPass, end: &GuardEnd) -> Option<AuditFinding> {
    let found = match &end.how {
        GuardHow::Exited(0) => return None,
        GuardHow::Exited(code) => format!("exit={code}"),
        GuardHow::Signaled(signal) => format!("signal={signal}"),
        GuardHow::TimedOut => "it did not end within the budget of an iteration".to_owned(),
        GuardHow::Missing { what } => what.clone(),
        GuardHow::Cut => "it was ended before it could say".to_owned(),
        GuardHow::Lost => "its supervisor was killed".to_owned(),
    };
    Some(AuditFinding {
        commit: pass.commit.clone(),
        iter: Some(pass.iter),
        rule: AuditRule::Rerun,
        severity: Severity::Warning,
        at: format!("the guard of node {}", pass.node),
        expected: "exit=0".to_owned(),
        found,
    })
}
