//! The repository of a sandbox: creates its files, git and `.runner/`, and runs client and git commands in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::daemon::{CallOptions, run_client, run_program};
use super::{Sandbox, TestedPrograms, script, write_file};
use crate::digest::{copy_entry, list_files};
use crate::error::EvalError;
use crate::process::{ManagedProcess, ProcessEnd, ProcessSpec};

/// Name of the sandbox's file that contains the goal.
const GOAL_FILE: &str = "goal.md";

/// Contents of a new repository.
#[derive(Debug)]
pub(crate) struct RepositorySeed<'a> {
    /// Name of the repository's folder.
    pub(crate) name: &'a str,
    pub(crate) goal: &'a str,
    pub(crate) template: Option<&'a Path>,
    pub(crate) files: &'a BTreeMap<String, String>,
    /// Text of the justfile, written unless one exists.
    pub(crate) justfile: Option<String>,
    pub(crate) config: &'a toml::Table,
    /// The task tree, in the runner's format.
    pub(crate) tree: Option<&'a serde_json::Value>,
    /// Folder with prompt templates.
    pub(crate) prompts: Option<&'a Path>,
    pub(crate) script: Option<&'a str>,
}

/// A repository in a sandbox.
#[derive(Debug)]
pub(crate) struct SandboxRepository {
    folder: PathBuf,
    goal: PathBuf,
    programs: TestedPrograms,
    env: BTreeMap<String, String>,
    /// Environment of the client commands that start runs.
    client_env: BTreeMap<String, String>,
    view_env: BTreeMap<String, String>,
    stop: CancellationToken,
}

/// Environments of the repository's programs, and the token that interrupts them.
#[derive(Debug)]
pub(crate) struct RepositoryAccess {
    pub(crate) programs: TestedPrograms,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) client_env: BTreeMap<String, String>,
    pub(crate) view_env: BTreeMap<String, String>,
    pub(crate) stop: CancellationToken,
}

impl SandboxRepository {
    /// Creates the repository with two commits: the case's initial files, and the files for the runner.
    pub(crate) async fn create(
        sandbox: &Sandbox,
        seed: &RepositorySeed<'_>,
        access: RepositoryAccess,
    ) -> Result<Self, EvalError> {
        let RepositoryAccess { programs, env, client_env, view_env, stop } = access;
        sandbox.write(GOAL_FILE, seed.goal)?;
        let folder = sandbox.path("work").join(seed.name);
        let repository = Self { folder, goal: sandbox.path(GOAL_FILE), programs, env, client_env, view_env, stop };
        repository.write_files(seed)?;
        if let Some(text) = seed.script {
            script::install_agent(sandbox, text)?;
        }
        repository.git(&["init", "--quiet", "--template="]).await?;
        repository.commit_all("chore: begin").await?;
        repository.client(&["init", "--yes"]).await?;
        repository.configure_runner(seed)?;
        repository.commit_all("chore: set up the runner").await?;
        Ok(repository)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the file that contains the goal.
    pub(crate) fn goal(&self) -> &Path {
        &self.goal
    }

    /// Opens the web view of the repository; dropping the result closes it.
    pub(crate) fn open_web_view(&self, port: u16) -> Result<ManagedProcess, EvalError> {
        let spec = ProcessSpec {
            program: self.programs.client.clone().into(),
            arguments: ["ui", "--port", &port.to_string()].map(OsString::from).to_vec(),
            folder: &self.folder,
            env: &self.view_env,
            grace: Duration::from_secs(2),
            isolated: false,
        };
        ManagedProcess::start_inherited(&spec)
    }

    /// Runs the client in the repository.
    pub(crate) async fn client(&self, arguments: &[&str]) -> Result<String, EvalError> {
        run_client(&self.call_options(&self.client_env), arguments).await
    }

    /// Runs git in the repository.
    pub(crate) async fn git(&self, arguments: &[&str]) -> Result<String, EvalError> {
        let output = run_program(&self.call_options(&self.env), Path::new("git"), arguments).await?;
        match output.ended {
            ProcessEnd::Exited(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            ProcessEnd::Stopped => Err(EvalError::interrupted()),
            _ => {
                let words = String::from_utf8_lossy(&output.stderr);
                Err(EvalError::new(format!("git {}: {}", arguments.join(" "), words.trim())))
            }
        }
    }

    fn call_options<'a>(&'a self, env: &'a BTreeMap<String, String>) -> CallOptions<'a> {
        CallOptions { programs: &self.programs, folder: &self.folder, env, stop: &self.stop }
    }

    async fn commit_all(&self, message: &str) -> Result<(), EvalError> {
        self.git(&["add", "--all", "--force"]).await?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]).await.map(drop)
    }

    fn write_files(&self, seed: &RepositorySeed<'_>) -> Result<(), EvalError> {
        fs::create_dir_all(&self.folder)
            .map_err(|error| EvalError::file("making the directory", &self.folder, &error))?;
        if let Some(template) = seed.template {
            copy_all(template, &self.folder)?;
        }
        for (path, text) in seed.files {
            write_file(&self.folder.join(path), text)?;
        }
        match &seed.justfile {
            Some(text) if !["justfile", "Justfile", ".justfile"].iter().any(|name| self.folder.join(name).exists()) => {
                write_file(&self.folder.join("justfile"), text)
            }
            _ => Ok(()),
        }
    }

    fn configure_runner(&self, seed: &RepositorySeed<'_>) -> Result<(), EvalError> {
        let runner = self.folder.join(".runner");
        let config = toml::to_string(seed.config);
        let config = config.map_err(|error| EvalError::new("writing the configuration").caused_by(&error))?;
        write_file(&runner.join("state/config.toml"), &config)?;
        if let Some(tree) = seed.tree {
            write_file(&runner.join("state/tree.json"), &format!("{tree:#}\n"))?;
        }
        seed.prompts.map_or(Ok(()), |prompts| copy_all(prompts, &runner.join("prompts")))
    }
}

/// Copies the files and links of a folder.
fn copy_all(from: &Path, to: &Path) -> Result<(), EvalError> {
    for file in list_files(from)? {
        let target = to.join(file.strip_prefix(from).unwrap_or(&file));
        let copied = target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| copy_entry(&file, &target));
        copied.map_err(|error| EvalError::file("copying", &file, &error))?;
    }
    Ok(())
}
