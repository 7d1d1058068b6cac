//! The repository of a lab: files, git, `.runner/`, and what is done with it through the client and git.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::daemon::{Call, client, run};
use super::{Lab, Programs, script, write};
use crate::digest::{copy, files};
use crate::fault::Fault;
use crate::hold::{Ended, Held, Wanted};

/// The file of a lab that holds the goal.
const GOAL: &str = "goal.md";

/// What a repository is made of.
#[derive(Debug)]
pub(crate) struct Seed<'a> {
    /// Name of its folder.
    pub(crate) name: &'a str,
    pub(crate) goal: &'a str,
    pub(crate) template: Option<&'a Path>,
    pub(crate) files: &'a BTreeMap<String, String>,
    /// What is written where no file of that name is there.
    pub(crate) justfile: Option<String>,
    pub(crate) config: &'a toml::Table,
    /// The task tree, as the runner reads it.
    pub(crate) tree: Option<&'a serde_json::Value>,
    /// A folder of prompt templates.
    pub(crate) prompts: Option<&'a Path>,
    pub(crate) script: Option<&'a str>,
}

/// A repository in a lab.
#[derive(Debug)]
pub(crate) struct Repository {
    folder: PathBuf,
    goal: PathBuf,
    programs: Programs,
    env: BTreeMap<String, String>,
    /// Environment of the client that starts runs.
    client_env: BTreeMap<String, String>,
    view_env: BTreeMap<String, String>,
    stop: CancellationToken,
}

/// The environments of a repository's programs, and what interrupts them.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) programs: Programs,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) client_env: BTreeMap<String, String>,
    pub(crate) view_env: BTreeMap<String, String>,
    pub(crate) stop: CancellationToken,
}

impl Repository {
    /// Makes the repository, with two commits: what the case begins with, and what the runner is told.
    pub(crate) async fn make(lab: &Lab, seed: &Seed<'_>, access: Access) -> Result<Self, Fault> {
        let Access { programs, env, client_env, view_env, stop } = access;
        lab.write(GOAL, seed.goal)?;
        let folder = lab.at("work").join(seed.name);
        let repository = Self { folder, goal: lab.at(GOAL), programs, env, client_env, view_env, stop };
        repository.write_files(seed)?;
        if let Some(text) = seed.script {
            script::install(lab, text)?;
        }
        repository.git(&["init", "--quiet", "--template="]).await?;
        repository.commit("chore: begin").await?;
        repository.client(&["init"]).await?;
        repository.set_up(seed)?;
        repository.commit("chore: set up the runner").await?;
        Ok(repository)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the file that holds the goal.
    pub(crate) fn goal(&self) -> &Path {
        &self.goal
    }

    /// Opens the web view of the repository, which ends where what is returned is dropped.
    pub(crate) fn show(&self, port: u16) -> Result<Held, Fault> {
        let wanted = Wanted {
            program: self.programs.client.clone().into(),
            arguments: ["ui", "--port", &port.to_string()].map(OsString::from).to_vec(),
            folder: &self.folder,
            env: &self.view_env,
            grace: Duration::from_secs(2),
            walled: false,
        };
        Held::start_inherited(&wanted)
    }

    /// Runs the client in the repository.
    pub(crate) async fn client(&self, arguments: &[&str]) -> Result<String, Fault> {
        client(&self.call(&self.client_env), arguments).await
    }

    /// Runs git in the repository.
    pub(crate) async fn git(&self, arguments: &[&str]) -> Result<String, Fault> {
        let captured = run(&self.call(&self.env), Path::new("git"), arguments).await?;
        match captured.ended {
            Ended::Exited(0) => Ok(String::from_utf8_lossy(&captured.stdout).into_owned()),
            Ended::Stopped => Err(Fault::interrupted()),
            _ => {
                let words = String::from_utf8_lossy(&captured.stderr);
                Err(Fault::new(format!("git {}: {}", arguments.join(" "), words.trim())))
            }
        }
    }

    fn call<'a>(&'a self, env: &'a BTreeMap<String, String>) -> Call<'a> {
        Call { programs: &self.programs, folder: &self.folder, env, stop: &self.stop }
    }

    async fn commit(&self, message: &str) -> Result<(), Fault> {
        self.git(&["add", "--all", "--force"]).await?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]).await.map(drop)
    }

    fn write_files(&self, seed: &Seed<'_>) -> Result<(), Fault> {
        fs::create_dir_all(&self.folder).map_err(|error| Fault::file("making the folder", &self.folder, &error))?;
        if let Some(template) = seed.template {
            copy_all(template, &self.folder)?;
        }
        for (path, text) in seed.files {
            write(&self.folder.join(path), text)?;
        }
        match &seed.justfile {
            Some(text) if !["justfile", "Justfile", ".justfile"].iter().any(|name| self.folder.join(name).exists()) => {
                write(&self.folder.join("justfile"), text)
            }
            _ => Ok(()),
        }
    }

    fn set_up(&self, seed: &Seed<'_>) -> Result<(), Fault> {
        let runner = self.folder.join(".runner");
        let config = toml::to_string(seed.config);
        let config = config.map_err(|error| Fault::new("writing the configuration").caused_by(&error))?;
        write(&runner.join("state/config.toml"), &config)?;
        if let Some(tree) = seed.tree {
            write(&runner.join("state/tree.json"), &format!("{tree:#}\n"))?;
        }
        seed.prompts.map_or(Ok(()), |prompts| copy_all(prompts, &runner.join("prompts")))
    }
}

/// Copies the files and links of a folder.
fn copy_all(from: &Path, to: &Path) -> Result<(), Fault> {
    for file in files(from)? {
        let target = to.join(file.strip_prefix(from).unwrap_or(&file));
        let made = target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| copy(&file, &target));
        made.map_err(|error| Fault::file("copying", &file, &error))?;
    }
    Ok(())
}
