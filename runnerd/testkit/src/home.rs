//! A home folder for one test: it contains everything that daemon, client and git would find of the user's.
//!
//! On drop the daemon is stopped first; then every process that belongs to the home must be gone.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::socket::{getsockopt, sockopt};
use protocol::paths::{SOCKET_VARIABLE, STATE_VARIABLE};
use protocol::tree::TaskTree;
use serde_json::Value;

use crate::binary::binary;
use crate::client::Client;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::processes::SuspendedProcess;
use crate::repo::Repo;
use crate::scratch::ScratchDir;
use crate::{PATIENCE, audit, processes, script};

/// After each commit git would start background maintenance, which outlives the command and holds a lock.
const GIT_CONFIG: &str = "\
    [user]\n\tname = Kit\n\temail = kit@localhost\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n";
/// The fixture's own commits share one time, so that equal repositories have equal ids.
const COMMIT_TIME: &str = "2026-01-01T00:00:00Z";

/// A home folder.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    env: Vec<(String, String)>,
    /// Whether all its branches obey the rules; false once a test declares a forgery.
    has_valid_branches: bool,
    _folder: ScratchDir,
}

impl Home {
    /// Creates a home that contains git's configuration and nothing else.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
        Self::new_in(&env::temp_dir())
    }

    /// Creates a home in a folder, which determines the kind of disk it is on.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be made.
    pub fn new_in(folder: &Path) -> Self {
        let folder = ScratchDir::new_in(folder);
        let path = folder.path().to_owned();
        for private in ["bin", "state", "run", "config", "repos", "tmp"] {
            DirBuilder::new().mode(0o700).create(path.join(private)).expect("a folder can be made");
        }
        fs::write(path.join(".gitconfig"), GIT_CONFIG).expect("git's configuration can be written");
        let home = Self { env: build_environment(&path), path, has_valid_branches: true, _folder: folder };
        // Each run would start a program for it.
        home.configure("inhibit_sleep = false");
        home
    }

    /// Lets the daemon keep the machine awake while a run is active.
    ///
    /// # Panics
    ///
    /// Panics if the daemon's configuration cannot be removed.
    #[must_use]
    pub fn inhibit_sleep(self) -> Self {
        fs::remove_file(self.daemon_config()).expect("the daemon's configuration can be removed");
        self
    }

    /// Sets an environment variable for everything started here, as the user's shell would.
    #[must_use]
    pub fn export(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Declares that a branch of this home violates the rules or cannot be read, because something unauthorized wrote
    /// to it or to its objects.
    pub fn expect_forgery(&mut self) {
        self.has_valid_branches = false;
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the complete environment of programs run here.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Returns the path of the daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.path.join("run/s")
    }

    /// Returns the daemon's state folder.
    pub fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// Returns the private part of the daemon's state folder.
    pub fn private(&self) -> PathBuf {
        self.state().join("private")
    }

    /// Returns the daemon's folder for the only repository.
    ///
    /// # Panics
    ///
    /// Panics if none is registered.
    pub fn registered_dir(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.private().join("repos")).expect("the daemon keeps its state there");
        folders.next().expect("a repository is registered").expect("its folder can be read").path()
    }

    /// Creates a repository with one commit, and a script for its agent and guard.
    pub fn repo(&self, name: &str) -> Repo {
        let repo = Repo::without_commit(self, name);
        repo.commit_all("First commit");
        repo
    }

    /// Creates a repository with one commit whose configuration uses the scripted agent and guard.
    pub fn scripted_repo(&self, name: &str) -> Repo {
        let repo = Repo::without_commit(self, name);
        repo.write_config(&repo.config());
        repo.commit_all("First commit");
        repo
    }

    /// Creates a repository with one commit: a configuration derived from the scripted one, and a task tree.
    pub fn repo_with_tree(&self, name: &str, tree: &TaskTree, configure: impl FnOnce(Config) -> Config) -> Repo {
        let repo = Repo::without_commit(self, name);
        repo.write_config(&configure(repo.config()));
        repo.write_tree(tree);
        repo.commit_all("First commit");
        repo
    }

    /// Sets how many repositories the daemon works on at once.
    pub fn allow_repositories(&self, count: u32) {
        self.configure(&format!("max_repositories = {count}"));
    }

    /// Adds a line to the daemon's configuration.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be written.
    pub fn configure(&self, line: &str) {
        let file = self.daemon_config();
        fs::create_dir_all(file.parent().expect("BUG: it is in a folder")).expect("a folder can be made");
        let file = File::options().create(true).append(true).open(file);
        let written = file.and_then(|mut file| writeln!(file, "{line}"));
        written.expect("the daemon's configuration can be written");
    }

    fn daemon_config(&self) -> PathBuf {
        self.path.join("config/runnerd/config.toml")
    }

    /// Sets the strongest containment that the daemon uses: `walk`, `cgroup` or `pidns`.
    ///
    /// At `walk`, programs see all processes of the machine under their real ids and can signal them, including their
    /// supervisor and the daemon.
    pub fn limit_containment(&self, level: &str) {
        self.configure(&format!("containment = {level:?}"));
    }

    /// Starts the daemon.
    ///
    /// # Panics
    ///
    /// Panics if it does not come up.
    pub fn daemon(&self) -> Daemon {
        self.daemon_from_command(self.command("runnerd"))
    }

    /// Starts the daemon under limits that a shell sets first, such as `ulimit -n 32`.
    ///
    /// # Panics
    ///
    /// Panics if it does not come up.
    pub fn daemon_with_limits(&self, limits: &str) -> Daemon {
        let mut command = Command::new("sh");
        command.env_clear().envs(self.env.iter().cloned()).current_dir(&self.path);
        command.arg("-c").arg(format!("{limits}; exec \"$0\" \"$@\"")).arg(binary("runnerd"));
        self.daemon_from_command(command)
    }

    /// Starts the daemon with a command that becomes it or runs it as a child.
    ///
    /// # Panics
    ///
    /// Panics if it does not come up.
    pub fn daemon_from_command(&self, mut command: Command) -> Daemon {
        let log = File::options().create(true).append(true).open(self.path.join("runnerd.stderr"));
        command.stderr(log.expect("a file for the daemon's words can be made"));
        Daemon::start(command)
    }

    /// Connects to the daemon, which must be running.
    pub fn client(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// Runs `runnerctl` to completion, without letting it start a daemon.
    pub fn ctl(&self, args: &[&str]) -> ProgramOutput {
        let mut command = self.command("runnerctl");
        command.arg("--no-spawn").args(args);
        ProgramOutput::run_command(command)
    }

    /// Runs `runnerctl` on a repository.
    pub fn ctl_in(&self, repo: &Repo, args: &[&str]) -> ProgramOutput {
        let mut command = self.command("runnerctl");
        command.arg("--no-spawn").args(args).current_dir(repo.path());
        ProgramOutput::run_command(command)
    }

    /// Runs `runnerctl approve` or `reject` on the last iteration of a repository's run.
    pub fn review_in(&self, repo: &Repo, args: &[&str]) -> ProgramOutput {
        let iter = self.client().run(repo.path()).recent.first().map_or(0, |view| view.iter);
        self.ctl_in(repo, &[args, &["--iter", &iter.to_string()]].concat())
    }

    /// Runs `runnerctl` on a repository with additional environment variables.
    pub fn ctl_with(&self, repo: &Repo, args: &[&str], env: &[(&str, &str)]) -> ProgramOutput {
        let mut command = self.command("runnerctl");
        command.arg("--no-spawn").args(args).envs(env.iter().copied()).current_dir(repo.path());
        ProgramOutput::run_command(command)
    }

    /// Returns the command that runs `runnerctl` on a repository, for a [`Tty`](crate::Tty).
    pub fn ctl_command(&self, repo: &Repo, args: &[&str]) -> Command {
        let mut command = self.command("runnerctl");
        command.arg("--no-spawn").args(args).env("TERM", "xterm-256color").current_dir(repo.path());
        command
    }

    /// Starts a run and waits for it to end.
    pub fn run(&self, repo: &Repo, args: &[&str]) -> ProgramOutput {
        self.ctl_in(repo, &[&["start", "--wait", "--yes"], args].concat())
    }

    /// Starts a run, calls `meanwhile`, and waits for the run to end.
    ///
    /// # Panics
    ///
    /// Panics if `meanwhile` does, or if the run does not end.
    pub fn run_while(&self, repo: &Repo, args: &[&str], meanwhile: impl FnOnce()) -> ProgramOutput {
        thread::scope(|scope| {
            let run = scope.spawn(|| self.run(repo, args));
            meanwhile();
            run.join().expect("the run ends")
        })
    }

    /// Returns a command for one of the programs under test, with exactly this home's environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(binary(program));
        command.env_clear().envs(self.env.iter().cloned()).current_dir(&self.path);
        command
    }

    /// Runs a program at a path chosen by the test to completion, with this home's environment.
    pub fn run_program(&self, program: &Path, args: &[&str]) -> ProgramOutput {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().cloned()).current_dir(&self.path).args(args);
        ProgramOutput::run_command(command)
    }

    /// Installs a program where this home's `PATH` finds it first, hiding any other of that name.
    pub fn install(&self, name: &str, text: &str) {
        script::write_program(&self.path.join("bin").join(name), text);
    }

    /// Makes `git version` report another version.
    ///
    /// # Panics
    ///
    /// Panics if git is not installed.
    pub fn fake_git_version(&self, version: &str) {
        let found = Command::new("sh").args(["-c", "command -v git"]).output().expect("sh runs");
        let git = String::from_utf8(found.stdout).expect("a path of text");
        let version_check = format!("[ \"$last\" != version ] || {{ echo git version {version}; exit 0; }}");
        let script = format!("#!/bin/sh\nfor word; do last=$word; done\n{version_check}\nexec {} \"$@\"\n", git.trim());
        self.install("git", &script);
    }

    /// Returns the processes that belong to this home.
    pub fn processes(&self) -> Vec<i32> {
        processes::find_alive(&self.path)
    }

    /// Asserts that nothing started by an iteration is alive; the daemon and its clients may be.
    ///
    /// # Panics
    ///
    /// Panics if something is.
    #[track_caller]
    pub fn assert_no_survivors(&self) {
        let own = ["runnerd", "runnerctl"].map(binary);
        let is_own_program = |pid: &i32| own.iter().any(|program| processes::is_program(*pid, program));
        let survivors: Vec<String> =
            self.processes().into_iter().filter(|pid| !is_own_program(pid)).map(processes::describe_process).collect();
        assert!(survivors.is_empty(), "alive after the iteration: {survivors:#?}");
    }

    /// Waits until no process recognizable by its environment or folder belongs to this home.
    ///
    /// # Panics
    ///
    /// Panics if one does not end on its own.
    pub fn wait_all_gone(&self, limit: Duration) {
        for pid in self.processes() {
            assert!(processes::wait_gone(pid, limit), "lives on: {}", processes::describe_process(pid));
        }
    }

    /// Stops (SIGSTOP) the shims of all sessions and guards; dropping the result resumes them.
    pub fn suspend_shims(&self) -> Vec<SuspendedProcess> {
        let is_shim = |pid: &i32| processes::describe_process(*pid).contains("__shim");
        self.processes().into_iter().filter(is_shim).map(SuspendedProcess::stop).collect()
    }

    /// Stops daemons that a client has started here.
    fn stop_daemons(&self) {
        let daemon = binary("runnerd");
        let is_daemon = |pid: &i32| processes::is_program(*pid, &daemon);
        // The shims of a killed daemon end on their own, after everything they have started.
        let is_daemon_or_shim = |pid: &i32| is_daemon(pid) || processes::is_shim(*pid);
        for pid in self.processes().into_iter().filter(is_daemon_or_shim).chain(self.listener_pid()) {
            processes::send_signal(pid, Signal::SIGTERM);
            processes::wait_gone(pid, PATIENCE);
        }
    }

    /// Returns the process listening on the socket: without root, nothing else reveals a daemon.
    fn listener_pid(&self) -> Option<i32> {
        let connection = UnixStream::connect(self.socket()).ok()?;
        let listener = getsockopt(&connection, sockopt::PeerCredentials).ok()?;
        (listener.pid() > 0).then(|| listener.pid())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.stop_daemons();
        let survivors = self.processes();
        let described: Vec<String> = survivors.iter().map(|pid| processes::describe_process(*pid)).collect();
        for pid in survivors {
            processes::send_signal(pid, Signal::SIGKILL);
        }
        assert!(described.is_empty() || thread::panicking(), "left behind: {described:#?}");
        if self.has_valid_branches && !thread::panicking() {
            let violation = audit::audit_branches(self);
            assert!(violation.is_none(), "the rules do not make this branch: {}", violation.unwrap_or_default());
        }
    }
}

fn build_environment(home: &Path) -> Vec<(String, String)> {
    let subdir = |name: &str| home.join(name).display().to_string();
    let path = format!("{}:{}", subdir("bin"), std::env::var("PATH").unwrap_or_default());
    let entries = [
        ("PATH", path),
        ("HOME", home.display().to_string()),
        ("TMPDIR", subdir("tmp")),
        ("LANG", "C.UTF-8".to_owned()),
        ("XDG_CONFIG_HOME", subdir("config")),
        ("XDG_STATE_HOME", subdir("xdg-state")),
        ("XDG_CACHE_HOME", subdir("cache")),
        ("XDG_DATA_HOME", subdir("data")),
        ("XDG_RUNTIME_DIR", subdir("run")),
        (STATE_VARIABLE, subdir("state")),
        (SOCKET_VARIABLE, subdir("run/s")),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
        ("GIT_AUTHOR_DATE", COMMIT_TIME.to_owned()),
        ("GIT_COMMITTER_DATE", COMMIT_TIME.to_owned()),
    ];
    entries.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// What a program printed, and its exit code.
#[derive(Debug, Clone)]
pub struct ProgramOutput {
    /// Exit code; -1 if a signal ended the program.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl ProgramOutput {
    /// Runs a program to completion, which must take less than twice [`PATIENCE`].
    pub(crate) fn run_command(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program can be started");
        let pid = i32::try_from(child.id()).expect("BUG: a process id is an i32");
        let (sender, output) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = output.recv_timeout(2 * PATIENCE) else {
            processes::send_signal(pid, Signal::SIGKILL);
            panic!("{command:?} does not end");
        };
        let output = output.expect("the program can be waited for");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Asserts the exit code; on a mismatch, shows everything that was printed.
    ///
    /// # Panics
    ///
    /// Panics if the exit code differs.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Returns standard output as JSON.
    ///
    /// # Panics
    ///
    /// Panics if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
