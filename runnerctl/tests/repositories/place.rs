//! A folder of a home in which git and the client run, with any name and any contents.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runner_testkit::{Config, Home, Repo};
use serde_json::Value;

/// A work tree, or any other folder.
pub(crate) struct RepoPlace<'a> {
    pub(crate) home: &'a Home,
    pub(crate) path: PathBuf,
}

impl<'a> RepoPlace<'a> {
    /// Makes an empty folder whose name is these bytes.
    pub(crate) fn folder(home: &'a Home, name: &[u8]) -> Self {
        let path = home.path().join("repos").join(OsStr::from_bytes(name));
        fs::create_dir_all(&path).expect("a folder can be made");
        Self { home, path }
    }

    pub(crate) fn of_repo(home: &'a Home, repo: &Repo) -> Self {
        Self { home, path: repo.path().to_owned() }
    }

    /// Creates a repository with one commit of this configuration.
    pub(crate) fn repository(home: &'a Home, name: &[u8], config: &Config) -> Self {
        let place = Self::folder(home, name);
        place.git(&["init", "-q", "-b", "main"]);
        place.write(".runner/state/config.toml", config.text().as_bytes());
        place.commit();
        place
    }

    pub(crate) fn at(&self, path: impl Into<PathBuf>) -> RepoPlace<'a> {
        RepoPlace { home: self.home, path: self.path.join(path.into()) }
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder can be made");
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
    }

    /// Runs git, which must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().expect("git can be started");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs the client here.
    pub(crate) fn ctl(&self, args: &[&str]) -> CtlOutput {
        let mut command = self.home.command("runnerctl");
        command.current_dir(&self.path).arg("--no-spawn").args(args).stdin(Stdio::null());
        CtlOutput(command.output().expect("the client can be started"))
    }

    /// Asserts that the work tree is clean and that git finds no errors.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        assert_eq!(self.git(&["fsck", "--strict", "--no-progress", "--no-dangling"]), "");
    }

    /// Returns the branch that is checked out.
    pub(crate) fn branch(&self) -> String {
        self.git(&["rev-parse", "--abbrev-ref", "HEAD"])
    }

    pub(crate) fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.env_clear().envs(self.home.env().iter().cloned()).current_dir(&self.path);
        command
    }
}

/// What the client printed.
pub(crate) struct CtlOutput(Output);

impl CtlOutput {
    #[track_caller]
    pub(crate) fn assert_exits(self, code: i32) -> Self {
        assert_eq!(self.0.status.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.facts(), self.words());
        self
    }

    /// Asserts that the error contains this.
    #[track_caller]
    pub(crate) fn assert_contains(self, part: &str) -> Self {
        assert!(self.words().contains(part), "`{part}` is not in:\n{}", self.words());
        self
    }

    pub(crate) fn facts(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn words(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.facts()).unwrap_or_else(|error| panic!("{error}: {}{}", self.facts(), self.words()))
    }

    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.words()).unwrap_or_else(|error| panic!("{error}: {}", self.words()));
        value["error"].clone()
    }
}
