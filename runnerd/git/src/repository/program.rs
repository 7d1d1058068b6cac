//! Runs the git program, hardened: its own environment, no hooks, no helpers, no prompts, a time limit. The only file
//! of this module that starts a process.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, Scope};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use runner_os::retryable::Retryable;

use super::at_work::{AtWork, Ended, Ender};
use super::locked_refs::LockedRefs;
use crate::{GitError, Repository};

/// Time limit: no single git command of the runner takes this long unless it waits for something that never happens.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(15);
const MAX_STDERR_BYTES: usize = 4096;
/// The highest errno value.
const MAX_ERRNO: i32 = 133;

/// git's error messages when its objects or its index cannot be written, whatever the file.
const STORE_COMPLAINTS: [&str; 7] = [
    "failed to insert into database",
    "unable to create temporary file",
    "unable to write ",
    "unable to rename temporary '",
    "Unable to create '",
    "index file corrupt",
    "index file open failed",
];

/// Variables passed on from the daemon's environment: where the program is, who the user is, how to sign.
const PASSED_ENV: [&str; 11] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "GNUPGHOME",
    "GPG_TTY",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
];

/// Settings that prevent the program from running anything but itself, and make its writes durable.
const COMMAND_OVERRIDES: [&str; 20] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.editor=true",
    "core.pager=cat",
    "core.askPass=true",
    "core.safecrlf=false",
    "core.fsync=committed,derived-metadata,reference",
    "core.fsyncMethod=batch",
    "core.alternateRefsCommand=true",
    "core.commitGraph=false",
    "core.trustCtime=true",
    "core.checkStat=default",
    "core.splitIndex=false",
    "index.sparse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
];

/// A git command on one repository.
pub(crate) struct GitCommand<'a> {
    repository: &'a Repository,
    command: Command,
    name: String,
    input: Vec<u8>,
    files: CommandFiles,
}

/// Files used in place of pipes, for data too large for memory.
#[derive(Default)]
struct CommandFiles {
    input: Option<File>,
    output: Option<File>,
}

/// Result of a command, for callers that determine the cause of a failure themselves.
pub(crate) struct GitOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// Who terminated it, if it did not exit on its own.
    pub(crate) ended: Option<Ended>,
}

impl<'a> GitCommand<'a> {
    /// Prepares `git <name>`.
    pub(crate) fn new(repository: &'a Repository, name: &str) -> Self {
        let mut command = Command::new("git");
        command.env_clear().current_dir(repository.work_dir()).process_group(0);
        command.envs(PASSED_ENV.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(git_environment(repository));
        command.args(["--no-pager", "--no-replace-objects", "--no-optional-locks"]);
        for setting in COMMAND_OVERRIDES {
            command.arg("-c").arg(setting);
        }
        command.arg(name);
        Self { repository, command, name: name.to_owned(), input: Vec::new(), files: CommandFiles::default() }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = bytes;
        self
    }

    /// Makes the command read its input from a file, from the start.
    pub(crate) fn stdin_file(mut self, file: File) -> Self {
        self.files.input = Some(file);
        self
    }

    /// Redirects the command's output to a file, which then holds nothing else.
    pub(crate) fn stdout_file(mut self, file: File) -> Self {
        self.files.output = Some(file);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets configuration for this command that overrides files. All settings must be passed in one call.
    pub(crate) fn with_config<V: AsRef<OsStr>>(self, settings: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let mut count = 0;
        let git = settings.into_iter().fold(self, |git, (name, value)| {
            let at = count;
            count += 1;
            git.env(&format!("GIT_CONFIG_KEY_{at}"), name).env(&format!("GIT_CONFIG_VALUE_{at}"), value)
        });
        git.env("GIT_CONFIG_COUNT", count.to_string())
    }

    /// Sets the working directory of the command.
    pub(crate) fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Starts `update-ref --stdin` with these commands, and returns it after it has locked the references.
    pub(crate) fn lock_refs(mut self, order: &str) -> Result<LockedRefs, GitError> {
        self.repository.check_not_moved()?;
        self.repository.write_pinned_files()?;
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let repository = self.repository;
        let command = RefCell::new(self.command);
        repository.with_stale_lock_retry(|| {
            let path = repository.work_dir();
            let child = command.borrow_mut().spawn().map_err(GitError::io("starting git in", path))?;
            LockedRefs::acquire(child, order, path)
        })
    }

    /// Allows magic such as `:(exclude)` in this command's pathspecs.
    pub(crate) fn with_pathspec_magic(self) -> Self {
        self.env("GIT_LITERAL_PATHSPECS", "0")
    }

    /// Runs the command and returns its output; any exit status but 0 is an error.
    pub(crate) fn run(self) -> Result<Vec<u8>, GitError> {
        let name = self.name.clone();
        let path = self.repository.work_dir().to_owned();
        let outcome = self.output()?;
        if outcome.status.success() { Ok(outcome.stdout) } else { Err(outcome.into_error(name, path)) }
    }

    /// Runs a command that answers by its exit status: returns its output for yes (0), and `None` for no (1). Any other
    /// status is an error: git has not understood the question, or the repository.
    pub(crate) fn run_optional(self) -> Result<Option<Vec<u8>>, GitError> {
        let name = self.name.clone();
        let path = self.repository.work_dir().to_owned();
        let outcome = self.output()?;
        match outcome.status.code() {
            Some(0) => Ok(Some(outcome.stdout)),
            Some(1) => Ok(None),
            _ => Err(outcome.into_error(name, path)),
        }
    }

    /// Runs the command and returns its output as one line of text.
    pub(crate) fn run_line(self) -> Result<String, GitError> {
        let bytes = self.run()?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// Runs the command with its output piped into another, and returns the output of that one. Nothing is held in
    /// memory between them.
    pub(crate) fn pipe_into(self, other: GitCommand<'_>) -> Result<Vec<u8>, GitError> {
        for git in [&self, &other] {
            git.repository.check_not_moved()?;
            git.repository.write_pinned_files()?;
        }
        let names = [&self, &other].map(|git| (git.name.clone(), git.repository.work_dir().to_owned()));
        let [(name, path), (other_name, other_path)] = names;
        let [first, second] = run_piped([self, other]).map_err(GitError::io("running git in", &path))?;
        // The first failure causes the other.
        first.into_result(name, path)?;
        second.into_result(other_name, other_path).map(|outcome| outcome.stdout)
    }

    /// Runs the command to completion, whatever its exit status. Transient obstacles are still errors.
    pub(crate) fn output(mut self) -> Result<GitOutput, GitError> {
        self.repository.check_not_moved()?;
        self.repository.write_pinned_files()?;
        self.command.stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let repository = self.repository;
        let command = RefCell::new(self.command);
        let input = self.input;
        repository.with_stale_lock_retry(|| {
            let command = &mut command.borrow_mut();
            self.files.apply_to(command).map_err(GitError::io("preparing git in", repository.work_dir()))?;
            run_once(repository, &self.name, command, input.clone())
        })
    }
}

impl Repository {
    /// Fails if git does not work in this repository at all, for example because of an unknown format: no file is to
    /// blame for that.
    pub(crate) fn check_git_usable(&self) -> Result<(), GitError> {
        GitCommand::new(self, "rev-parse").arg("--git-dir").run().map(drop)
    }
}

impl CommandFiles {
    /// Attaches the files to a command, rewound to the start: this may be a retry.
    fn apply_to(&self, command: &mut Command) -> io::Result<()> {
        if let Some(mut file) = self.input.as_ref() {
            file.seek(SeekFrom::Start(0))?;
            command.stdin(file.try_clone()?);
        }
        if let Some(mut file) = self.output.as_ref() {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            command.stdout(file.try_clone()?);
        }
        Ok(())
    }
}

/// Runs two commands with the first feeding the second, and returns how each ended.
fn run_piped([mut from, mut to]: [GitCommand<'_>; 2]) -> io::Result<[GitOutput; 2]> {
    from.command.stdin(if from.input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut first = from.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let first_at_work = AtWork::enter(&first, &from.name, from.repository.common_dir());
    to.command.stdin(first.stdout.take().map_or_else(Stdio::null, Stdio::from));
    let second = to.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let second = second.map(|child| (AtWork::enter(&child, &to.name, to.repository.common_dir()), child));
    // The second command then has the only reading end: the first notices if it dies.
    drop(to);
    thread::scope(|scope| {
        let first =
            thread::Builder::new().spawn_scoped(scope, move || communicate(first, first_at_work, from.input))?;
        let second = second.and_then(|(at_work, child)| communicate(child, at_work, Vec::new()));
        let first = first.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the runner died")));
        Ok([first?, second?])
    })
}

/// Runs a command once, without retrying.
fn run_once(repository: &Repository, name: &str, command: &mut Command, input: Vec<u8>) -> Result<GitOutput, GitError> {
    let path = repository.work_dir();
    let child = command.spawn().map_err(GitError::io("starting git in", path))?;
    let at_work = AtWork::enter(&child, name, repository.common_dir());
    let outcome = communicate(child, at_work, input).map_err(GitError::io("running git in", path))?;
    match classify_failure(&outcome, path) {
        Some(error) => Err(error),
        None => Ok(outcome),
    }
}

impl GitOutput {
    /// Whether git complains about its own store. A user's file may have such a name, which then counts as well.
    pub(crate) fn is_store_error(&self) -> bool {
        STORE_COMPLAINTS.iter().any(|complaint| self.stderr.contains(complaint))
    }

    fn into_result(self, command: String, path: PathBuf) -> Result<Self, GitError> {
        match classify_failure(&self, &path) {
            Some(error) => Err(error),
            None if self.status.success() => Ok(self),
            None => Err(self.into_error(command, path)),
        }
    }

    pub(crate) fn into_error(self, command: String, path: PathBuf) -> GitError {
        GitError::CommandFailed { command, path, status: self.status.to_string(), stderr: self.stderr }
    }
}

/// Naming the folders prevents `.git` files, `commondir` and `core.worktree` from redirecting the program; with the
/// trusted folder in place of the common one it reads only the captured configuration.
fn git_environment(repository: &Repository) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&str, OsString)> = vec![
        ("GIT_DIR", repository.git_dir().into()),
        ("GIT_COMMON_DIR", repository.rules_file("").into()),
        ("GIT_OBJECT_DIRECTORY", repository.common_dir().join("objects").into()),
        ("GIT_WORK_TREE", repository.work_dir().into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_LITERAL_PATHSPECS", "1".into()),
        ("LC_ALL", "C".into()),
    ];
    if repository.uses_only_own_config() {
        variables.extend([
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_ATTR_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ]);
    }
    variables
}

/// Feeds and drains the child while a watchdog kills its process group at the time limit.
#[expect(clippy::needless_pass_by_value, reason = "it is at work until it has ended")]
fn communicate(mut child: Child, at_work: AtWork, input: Vec<u8>) -> io::Result<GitOutput> {
    let pipes = ChildPipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let (done, watch) = mpsc::channel::<()>();
    let at_work = &at_work;
    thread::scope(|scope| {
        let watchdog = thread::Builder::new().spawn_scoped(scope, move || {
            if watch.recv_timeout(COMMAND_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
                at_work.end(Ender::Limit);
            }
        });
        let output = watchdog.and_then(|_| transfer_pipes(scope, pipes, input));
        if output.is_err() {
            // Its output is no longer read.
            let _ = killpg(group, Signal::SIGKILL);
        }
        let status = child.wait();
        drop(done);
        let (stdout, stderr) = output?;
        let stderr = String::from_utf8_lossy(&stderr).trim_end().to_owned();
        Ok(GitOutput { status: status?, stdout, stderr, ended: at_work.ended() })
    })
}

/// The daemon's ends of a child's pipes.
struct ChildPipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// Writes a child's input and returns its output and the end of its error output.
fn transfer_pipes<'scope>(
    scope: &'scope Scope<'scope, '_>,
    ChildPipes { stdin, stdout, stderr }: ChildPipes,
    input: Vec<u8>,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    thread::Builder::new().spawn_scoped(scope, move || {
        // A program that exits before it has read everything reports the reason on its standard error.
        let _ = stdin.map(|mut pipe| pipe.write_all(&input));
    })?;
    let errors =
        thread::Builder::new().spawn_scoped(scope, move || stderr.map_or_else(|| Ok(Vec::new()), read_tail))?;
    let mut output = Vec::new();
    stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut output))?;
    Ok((output, errors.join().unwrap_or_else(|_| Ok(Vec::new()))?))
}

fn read_tail(mut pipe: impl io::Read) -> io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    let mut chunk = [0; MAX_STDERR_BYTES];
    loop {
        match pipe.read(&mut chunk)? {
            0 => return Ok(tail),
            n => tail.extend_from_slice(&chunk[..n]),
        }
        tail.drain(..tail.len().saturating_sub(MAX_STDERR_BYTES));
    }
}

/// Recognises transient obstacles in git's error output.
pub(super) fn classify_failure(outcome: &GitOutput, path: &Path) -> Option<GitError> {
    if outcome.status.success() {
        return None;
    }
    if let Some(Ended { command, waited_for, after, by }) = outcome.ended.clone() {
        return Some(GitError::Ended { command, path: path.to_owned(), waited_for, after, by });
    }
    if let Some(lock) = parse_lock_path(&outcome.stderr) {
        return Some(GitError::Locked { path: lock });
    }
    let source = find_transient_error(&outcome.stderr)?;
    Some(GitError::Io { doing: "running git in", path: path.to_owned(), source })
}

/// Returns the system error named in git's message, if it is known to be transient.
fn find_transient_error(stderr: &str) -> Option<io::Error> {
    let mut known = (1..=MAX_ERRNO).map(io::Error::from_raw_os_error).filter(Retryable::is_transient);
    known.find(|error| stderr.contains(error.to_string().split(" (os error").next().unwrap_or_default()))
}

fn parse_lock_path(stderr: &str) -> Option<PathBuf> {
    let line = stderr.lines().find(|line| line.contains(".lock'") && line.contains("File exists"))?;
    let end = line.find(".lock'")? + ".lock".len();
    let start = line[..end].rfind('\'')? + 1;
    Some(PathBuf::from(&line[start..end]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn lock_is_named_by_its_path() {
        let stderr =
            "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process seems to be running";
        assert_eq!(parse_lock_path(stderr), Some(PathBuf::from("/r/.git/index.lock")));
        let reference = "fatal: cannot lock ref 'HEAD': Unable to create '/r/.git/HEAD.lock': File exists.";
        assert_eq!(parse_lock_path(reference), Some(PathBuf::from("/r/.git/HEAD.lock")));
    }

    #[test]
    fn shortages_that_git_complains_of_pass() {
        for stderr in [
            "fatal: unable to create threaded lstat: Resource temporarily unavailable",
            "error: cannot fork() for gpg: Cannot allocate memory",
            "fatal: cannot write: No space left on device",
            "fatal: fsync error on '/r/.git/objects/tmp': Input/output error",
            "fatal: cannot use /x as an exclude file: Too many open files",
        ] {
            let outcome = GitOutput {
                status: ExitStatus::from_raw(128 << 8),
                stdout: Vec::new(),
                stderr: stderr.into(),
                ended: None,
            };
            assert!(classify_failure(&outcome, Path::new("/r")).is_some_and(|error| error.is_transient()), "{stderr}");
        }
    }

    #[test]
    fn complaints_of_the_store_are_told_from_those_of_a_file() {
        let status = ExitStatus::from_raw(1 << 8);
        let outcome = |text: &str| GitOutput { status, stdout: Vec::new(), stderr: text.to_owned(), ended: None };
        for text in [
            "error: insufficient permission for adding an object to repository database .git/objects\n\
             error: x: failed to insert into database\nerror: unable to index file 'x'",
            "error: unable to write file .git/objects/1e/99: Not a directory\n\
             error: x: failed to insert into database\nerror: unable to index file 'x'",
            "fatal: unable to write loose object file: File too large",
            "fatal: Unable to create '/r/.git/index.lock': Permission denied",
            "fatal: unable to write new index file",
            "error: bad index file sha1 signature\nfatal: index file corrupt",
        ] {
            assert!(outcome(text).is_store_error(), "{text}");
        }
        for text in [
            "error: open(\"x\"): Permission denied\nerror: unable to index file 'x'",
            "error: invalid path '.GIT/config'\nerror: unable to add '.GIT/config' to index",
            "error: external filter 'false' failed 1\nerror: external filter 'false' failed\n\
             fatal: x.f: clean filter 'broken' failed",
            "error: a.txt: can only add regular files, symbolic links or git-directories",
            "error: 'nested/' does not have a commit checked out\nerror: unable to index file 'nested/'",
            "fatal: failed to encode 'x' from UTF-16 to UTF-8",
        ] {
            assert!(!outcome(text).is_store_error(), "{text}");
        }
    }

    #[test]
    fn only_the_end_of_long_complaints_is_kept() {
        let long = vec![b'x'; MAX_STDERR_BYTES * 3];
        assert_eq!(read_tail(long.as_slice()).unwrap().len(), MAX_STDERR_BYTES);
    }
}
