//! Runs the guards of passing commits again, each in its own temporary folder.
//!
//! Contained and limited as in an iteration. The result proves nothing either way: a guard may depend on more than its
//! commit, so a difference is only a warning.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::request::CallerEnv;
use protocol::verify::{AuditFinding, AuditPass, AuditRule, Severity};
use runner_config::{GuardConfig, RepoConfig};
use runner_core::iteration::{GuardEnd, GuardEndKind};
use runner_core::text::redact::Secrets;
use runner_git::{GitError, Id, Repository};
use runner_os::dir_permissions;
use runner_os::error_chain::display_chain;
use runner_process::{Launcher, Mark};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::VerifyError;
use crate::guard::{self, GuardCall};
use crate::worker::{LoadError, checkout_files_at, load_config};
use crate::workspace::{self, WorkspaceOptions};

/// Number of guard runs of this daemon: each has its own folder and mark.
static RUN_COUNTER: AtomicU64 = AtomicU64::new(0);

/// Context for running guards.
#[derive(Debug)]
pub struct GuardRerunner<'a> {
    /// The repository that is audited.
    pub repository: &'a Repository,
    /// The daemon's folder for temporary files, for the copies.
    pub folder: PathBuf,
    /// Starts programs.
    pub launcher: &'a Launcher,
    /// The caller's environment.
    pub env: &'a CallerEnv,
    /// Cancels the runs.
    pub stop: &'a CancellationToken,
    /// Whether the files that `[workspace]` names are copied before a guard runs; its commands have been confirmed
    /// then.
    pub copies_workspace: bool,
}

/// Returns the guards' commands of these passes, without duplicates.
pub fn list_guard_commands(repository: &Repository, passes: &[AuditPass]) -> Result<Vec<Vec<String>>, VerifyError> {
    let mut commands = Vec::new();
    for pass in passes {
        let config = match load_config_at(repository, &parse_commit(pass)?) {
            // It is reported when its guard is due to run.
            Err(error) if is_branch_fault(&error) => continue,
            config => config?,
        };
        if !commands.contains(&config.guard.command) {
            commands.push(config.guard.command);
        }
    }
    Ok(commands)
}

/// Whether the cause is unreadable content in the branch, rather than a failure of the machine.
fn is_branch_fault(error: &VerifyError) -> bool {
    let is_broken = |error: &GitError| matches!(error, GitError::Corrupt { .. });
    match error {
        VerifyError::Git(error) => is_broken(error),
        VerifyError::State(error) => !matches!(&**error, LoadError::Git(error) if !is_broken(error)),
        _ => false,
    }
}

impl GuardRerunner<'_> {
    /// Runs the guard of each pass again, and returns those that did not exit with 0.
    pub async fn rerun_guards(&self, passes: &[AuditPass]) -> Result<Vec<AuditFinding>, VerifyError> {
        let mut findings = Vec::new();
        for pass in passes {
            let end = match self.run_guard(&parse_commit(pass)?).await {
                // Content of a branch must not end the check of the rest.
                Err(error) if is_branch_fault(&error) => {
                    GuardEnd::new(GuardEndKind::Missing { what: display_chain(&error) })
                }
                end => end?,
            };
            if self.stop.is_cancelled() {
                return Err(VerifyError::Interrupted);
            }
            findings.extend(to_finding(pass, &end));
        }
        Ok(findings)
    }

    async fn run_guard(&self, commit: &Id) -> Result<GuardEnd, VerifyError> {
        let config = block_in_place(|| load_config_at(self.repository, commit))?;
        self.run_guard_with(commit, &config).await
    }

    /// Runs the guard of a configuration on the files of a commit, in a temporary folder.
    pub async fn run_guard_with(&self, commit: &Id, config: &RepoConfig) -> Result<GuardEnd, VerifyError> {
        self.run_in_copy(commit, config, guard::GUARD_NAME).await
    }

    /// Runs a person's command in place of the guard, in the same way as [`Self::run_guard_with`].
    pub async fn run_command(&self, commit: &Id, config: &RepoConfig) -> Result<GuardEnd, VerifyError> {
        self.run_in_copy(commit, config, "the command").await
    }

    async fn run_in_copy(
        &self,
        commit: &Id,
        config: &RepoConfig,
        label: &'static str,
    ) -> Result<GuardEnd, VerifyError> {
        let number = RUN_COUNTER.fetch_add(1, Ordering::Relaxed);
        let copy_dir = self.folder.join(format!("{}-{number}", std::process::id()));
        let result = block_in_place(|| self.create_copy(commit, &copy_dir));
        let ended = match result {
            Ok(()) => self.run_prepared(config, commit, &copy_dir, label).await,
            Err(error) => Err(error),
        };
        let removed = block_in_place(|| remove_folder(&copy_dir));
        let end = ended?;
        removed?;
        Ok(end)
    }

    fn create_copy(&self, commit: &Id, copy_dir: &Path) -> Result<(), VerifyError> {
        let result = fs::DirBuilder::new().recursive(true).mode(0o700).create(copy_dir.join("work"));
        result.map_err(|source| VerifyError::Folder { path: copy_dir.to_owned(), source })?;
        self.repository.create_commit_copy(commit, &copy_dir.join("work"))?;
        // Rules for line endings and the like may be a session's.
        for (path, file) in checkout_files_at(self.repository, commit).map_err(Box::new)? {
            let path = copy_dir.join("work").join(path);
            fs::write(&path, file.bytes).map_err(|source| VerifyError::Folder { path, source })?;
        }
        Ok(())
    }

    async fn run_prepared(
        &self,
        config: &RepoConfig,
        commit: &Id,
        copy_dir: &Path,
        label: &'static str,
    ) -> Result<GuardEnd, VerifyError> {
        if self.copies_workspace {
            let source = self.repository;
            let place = &copy_dir.join("work");
            let copy = &config.workspace.copy;
            let order = WorkspaceOptions { source, target_dir: place, base: *commit, copy };
            block_in_place(|| workspace::copy_ignored_files(&order, self.stop))?;
        }
        if self.copies_workspace && !config.workspace.setup.is_empty() {
            let setup = GuardConfig { command: config.workspace.setup.clone(), ..config.guard.clone() };
            let as_guard =
                RepoConfig { guard: setup, iteration_timeout: config.workspace.setup_timeout, ..config.clone() };
            let end = self.run_in(&as_guard, copy_dir, "the setup of the workspace").await?;
            if end.how != GuardEndKind::Exited(0) {
                let what = "the setup of the workspace did not exit 0".to_owned();
                return Ok(GuardEnd { how: GuardEndKind::Missing { what }, ..end });
            }
        }
        self.run_in(config, copy_dir, label).await
    }

    async fn run_in(&self, config: &RepoConfig, copy_dir: &Path, label: &'static str) -> Result<GuardEnd, VerifyError> {
        let env = self.env.0.iter().filter(|(name, _)| config.env.guard.passes_variable(name));
        let env: Vec<(OsString, OsString)> = env.map(|(name, value)| (name.into(), value.into())).collect();
        let work = copy_dir.join("work");
        let guard = GuardCall {
            display_name: label,
            config: &config.guard,
            reports: None,
            folder: &work,
            env,
            log: copy_dir.join("guard.log"),
            output: None,
            secrets: Secrets::default(),
            budget: config.iteration_timeout,
            mark: Mark::new(format!("verify-{}", copy_dir.file_name().unwrap_or_default().display())),
            lock: copy_dir.join("shim.lock"),
        };
        Ok(guard::run_guard(guard, self.launcher, self.stop).await?)
    }
}

fn load_config_at(repository: &Repository, commit: &Id) -> Result<RepoConfig, VerifyError> {
    load_config(repository, *commit).map_err(|error| VerifyError::State(Box::new(error)))
}

fn parse_commit(pass: &AuditPass) -> Result<Id, VerifyError> {
    pass.commit.parse().map_err(|_| VerifyError::InvalidCommit(pass.commit.clone()))
}

/// Removes a folder; it is not an error if there is none.
fn remove_folder(copy_dir: &Path) -> Result<(), VerifyError> {
    dir_permissions::remove_all(copy_dir).map_err(|source| VerifyError::Folder { path: copy_dir.to_owned(), source })
}

fn to_finding(pass: &AuditPass, end: &GuardEnd) -> Option<AuditFinding> {
    let found = match &end.how {
        GuardEndKind::Exited(0) => return None,
        GuardEndKind::Exited(code) => format!("exit={code}"),
        GuardEndKind::Signaled(signal) => format!("signal={signal}"),
        GuardEndKind::TimedOut => "it did not end within the budget of an iteration".to_owned(),
        GuardEndKind::Missing { what } => what.clone(),
        GuardEndKind::Cut => "it was ended before it could say".to_owned(),
        GuardEndKind::Lost => "its supervisor was killed".to_owned(),
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
