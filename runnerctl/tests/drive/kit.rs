//! A remote, the drivers of a run there, and observations of its branch.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_testkit::{Home, Repo};

/// A session that passes a gate, writes a file and is done.
pub(crate) const GATED: &str = "gate work; echo work > work.txt; answer done 'Wrote work.txt.'";
/// A session that writes a file and is done.
pub(crate) const WRITES: &str = "echo work > work.txt; answer done 'Wrote work.txt.'";

/// A bare repository that runs are published to, and the repository that it was cloned from.
pub(crate) struct TestRemote {
    pub(crate) home: Home,
    pub(crate) repo: Repo,
    pub(crate) bare: PathBuf,
}

/// A driver that has been started.
pub(crate) struct DriverProcess {
    child: Child,
}

impl TestRemote {
    /// Creates a remote from a scripted project on `main`.
    pub(crate) fn new() -> Self {
        Self::in_home(Home::new())
    }

    /// Creates a remote in this home.
    pub(crate) fn in_home(home: Home) -> Self {
        let repo = home.scripted_repo("plain");
        let bare = home.path().join("remote.git");
        repo.git(&["clone", "--quiet", "--bare", ".", bare.to_str().expect("a path is text")]);
        Self { home, repo, bare }
    }

    /// Returns its address.
    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.bare.display())
    }

    /// Runs git in it.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let folder = format!("--git-dir={}", self.bare.display());
        self.repo.git(&[&[folder.as_str()], args].concat())
    }

    /// Returns the subjects of the run's branch along first parents, oldest first, without the base.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let log = self.git(&["log", "--first-parent", "--reverse", "--format=%s", "main..runner/x"]);
        log.lines().map(|line| line.trim_start_matches("chore(loop): ").to_owned()).collect()
    }

    /// Makes it run a script at each push; returns the script's file.
    pub(crate) fn hook(&self, name: &str, script: &str) -> PathBuf {
        let hook = self.bare.join("hooks").join(name);
        fs::create_dir_all(self.bare.join("hooks")).expect("a folder can be made");
        fs::write(&hook, format!("#!/bin/sh\n{script}\n")).expect("a hook can be written");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        hook
    }

    /// Prepares a driver of run `x`, as Slurm would start it.
    pub(crate) fn command(&self, (job, attempt): (&str, u32), options: &[&str]) -> Command {
        let mut command = self.home.command("runnerd");
        command.args(["drive", &self.url(), "--run", "x", "--yes"]).args(options);
        command.env("SLURM_JOB_ID", job).env("SLURM_RESTART_COUNT", attempt.to_string());
        command
    }

    /// Starts a driver that may start the run.
    pub(crate) fn start(&self, job: (&str, u32)) -> DriverProcess {
        self.start_with(job, &["-m", "Do it."])
    }

    /// Starts a driver.
    pub(crate) fn start_with(&self, job: (&str, u32), options: &[&str]) -> DriverProcess {
        DriverProcess::spawn(self.command(job, options))
    }

    /// Asserts that the branch is linear and follows the rules.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.git(&["rev-list", "--merges", "main..runner/x"]), "");
        self.home.ctl(&["verify", "--remote", &self.url(), "--run", "x"]).exits(0);
    }

    /// Asserts that drivers have left nothing in the folder for temporary files.
    #[track_caller]
    pub(crate) fn assert_swept(&self) {
        let left = fs::read_dir(self.home.path().join("tmp")).expect("the folder is there").flatten();
        let jobs = left.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("runnerd-jobs-"));
        let within = jobs.flat_map(|folder| fs::read_dir(folder).expect("it can be listed").flatten());
        let folders: Vec<_> = within.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        assert!(folders.is_empty(), "left: {folders:?}");
    }

    /// Commits to the run's branch as a person does in a clone, and pushes.
    pub(crate) fn commit_as_person(&self, change: impl FnOnce(&str) -> String, path: &str) {
        let old = self.git(&["show", &format!("runner/x:{path}")]);
        self.repo.git(&["fetch", "--quiet", &self.url(), "+runner/x:refs/heads/theirs"]);
        self.repo.git(&["checkout", "--quiet", "theirs"]);
        self.repo.write(path, &change(&old)).commit("By hand");
        self.repo.git(&["push", "--quiet", &self.url(), "theirs:runner/x"]);
        self.repo.git(&["checkout", "--quiet", "main"]);
    }
}

impl DriverProcess {
    /// Starts a prepared driver.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().expect("the program can be started") }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id is an i32");
        kill(Pid::from_raw(pid), signal).expect("it is there");
    }

    /// Reads its notes up to the one that contains this text, and returns them.
    #[track_caller]
    pub(crate) fn wait_for_note(&mut self, text: &str) -> String {
        let stderr = self.child.stderr.as_mut().expect("it is a pipe");
        let mut notes = Vec::new();
        let mut byte = [0];
        loop {
            let read = stderr.read(&mut byte).expect("it can be read");
            notes.extend_from_slice(&byte[..read]);
            let shown = String::from_utf8_lossy(&notes);
            assert!(read > 0, "{text} is not in: {shown}");
            if byte == *b"\n" && shown.contains(text) {
                return shown.into_owned();
            }
        }
    }

    /// Waits for it to exit, and returns the exit code and its output.
    pub(crate) fn wait_for_exit(self) -> (i32, String) {
        let output = self.child.wait_with_output().expect("it can be waited for");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn assert_exits(self, code: i32) -> String {
        let (found, text) = self.wait_for_exit();
        assert_eq!(found, code, "{text}");
        text
    }
}
