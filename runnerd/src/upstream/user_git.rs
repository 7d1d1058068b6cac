//! The user's own git for a remote: with the user's settings and credentials, and with none that a session could have
//! written.
//!
//! Runs in its own process group, so that a signal to the job does not kill a push half-way, and within a time limit.
//! What it is used for is up to `remote_client`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use runner_git::{AtWork, Ender};
use supervisor::table;

use super::deadline::{CommandState, Deadline};

/// Variables that would direct git to another repository, or make it prompt.
const REMOVED_ENV: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_ASKPASS",
];
/// Settings that keep it from running programs named by a repository, and from maintenance while a caller waits.
const GIT_SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
];
/// Limit in bytes for its captured output.
const MAX_OUTPUT_BYTES: u64 = 16 * 1024 * 1024;

/// The settings of the user at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct UserSettings(Vec<(String, String)>);

/// A git command.
#[derive(Debug)]
pub(super) struct UserGit {
    command: Command,
    /// The subcommand.
    name: String,
    /// The folder of the repository that it works for.
    common_dir: PathBuf,
    limit: Duration,
    deadline: Deadline,
}

/// A git command that is running.
struct RunningCommand {
    at_work: AtWork,
    group: i32,
}

/// Result of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Whether it exited with 0.
    pub is_success: bool,
    /// Exit status; `None` if it was killed by a signal.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl UserGit {
    /// Prepares a command in a folder.
    pub(super) fn new(folder: &Path, limit: Duration) -> Self {
        let mut command = Command::new("git");
        command.current_dir(folder).process_group(0);
        for name in REMOVED_ENV {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        command.args(["--no-pager", "--no-replace-objects"]);
        for setting in GIT_SETTINGS {
            command.arg("-c").arg(setting);
        }
        let name = String::new();
        let common_dir = folder.to_owned();
        Self { command, name, common_dir, limit, deadline: Deadline::default() }
    }

    /// Sets the folder of the repository that it works for: what it waits for is shown there.
    pub(super) fn for_repository(mut self, common_dir: &Path) -> Self {
        common_dir.clone_into(&mut self.common_dir);
        self
    }

    /// Makes it use the user's settings of an earlier moment, and none written since then; `file` is rewritten.
    pub(super) fn with_settings(self, settings: &UserSettings, file: &Path) -> io::Result<Self> {
        fs::write(file, settings.compose())?;
        Ok(self.env("GIT_CONFIG_GLOBAL", file))
    }

    /// Subjects it to the shutdown deadline.
    pub(super) fn with_deadline(mut self, deadline: &Deadline) -> Self {
        self.deadline = deadline.clone();
        self
    }

    pub(super) fn env(mut self, name: &str, value: &Path) -> Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            if self.name.is_empty() {
                self.name = arg.as_ref().to_string_lossy().into_owned();
            }
            self.command.arg(arg);
        }
        self
    }

    /// Runs it until it exits or reaches its time limit.
    pub(super) fn run(mut self) -> io::Result<CommandOutput> {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.spawn()?;
        let group = i32::try_from(child.id()).map_err(io::Error::other)?;
        let running = RunningCommand { at_work: AtWork::enter(&child, &self.name, &self.common_dir), group };
        let (guard, watch) = self.deadline.watch_command(self.limit);
        thread::scope(|scope| {
            let watchdog = thread::Builder::new().spawn_scoped(scope, || {
                if watch.wait_expired(&running) {
                    let by = if self.deadline.give_up() { Ender::Shutdown } else { Ender::Limit };
                    running.at_work.end(by);
                }
            });
            let output = collect_output(child);
            drop(guard);
            watchdog?.join().map_err(|_| io::Error::other("a thread of the runner died"))?;
            let mut output = output?;
            if let Some(why) = running.at_work.describe_end() {
                output.stderr = why;
            }
            Ok(output)
        })
    }
}

impl CommandState for RunningCommand {
    /// Adds up the bytes that the group's processes have read and written, and the time that they have computed.
    fn activity(&self) -> Option<u64> {
        let number = |word: &str| word.parse::<u64>().ok();
        let of_process = |pid: i32| {
            let io = table::read_text(pid, "io").ok()?;
            let stat = table::read_text(pid, "stat").ok()?;
            let moved = io.lines().take(2).filter_map(|line| number(line.rsplit(' ').next()?)).sum::<u64>();
            let times = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2);
            Some(moved + times.filter_map(number).sum::<u64>())
        };
        let members = table::entries().ok()?.filter(|entry| entry.group == self.group && !entry.is_zombie);
        members.map(|entry| of_process(entry.pid)).sum()
    }

    fn describe_wait(&self) -> String {
        self.at_work.describe_wait()
    }
}

impl UserSettings {
    /// Reads what `git config --list --show-scope --includes -z` says of the user's files; included files are read
    /// already.
    pub(super) fn parse(listed: &str) -> Self {
        let mut settings = Vec::new();
        let mut words = listed.split('\0');
        while let (Some(scope), Some(setting)) = (words.next(), words.next()) {
            // A setting without a value is true.
            let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
            let is_include = name == "include.path" || name.starts_with("includeif.");
            if scope == "global" && !is_include {
                settings.push((name.to_owned(), value.to_owned()));
            }
        }
        Self(settings)
    }

    /// Returns the text of a file with these settings.
    fn compose(&self) -> String {
        let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let quote = |value: &str| escape(value).replace('\n', "\\n").replace('\t', "\\t");
        let mut text = String::new();
        for (name, value) in &self.0 {
            let (section, key) = name.rsplit_once('.').unwrap_or((name, ""));
            let heading = match section.split_once('.') {
                Some((section, sub)) => format!("{section} \"{}\"", escape(sub)),
                None => section.to_owned(),
            };
            let _ = writeln!(text, "[{heading}]\n\t{key} = \"{}\"", quote(value));
        }
        text
    }
}

impl CommandOutput {
    /// Returns the last line of its error output, which is the most informative.
    pub(super) fn failure_reason(&self) -> String {
        let is_relevant =
            |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ") || line.contains("rejected");
        let lines = || self.stderr.lines().chain(self.stdout.lines()).map(str::trim).filter(|line| !line.is_empty());
        let line = lines().find(is_relevant).or_else(|| lines().next_back()).unwrap_or("it said nothing");
        line.chars().filter(|c| !c.is_control()).take(300).collect()
    }
}

fn collect_output(mut child: Child) -> io::Result<CommandOutput> {
    let out = child.stdout.take();
    let err = child.stderr.take();
    let complaint = thread::Builder::new().spawn(move || read_pipe(err))?;
    let out = read_pipe(out);
    let status = child.wait()?;
    let complaint = complaint.join().unwrap_or_default();
    Ok(CommandOutput { is_success: status.success(), code: status.code(), stdout: out, stderr: complaint })
}

fn read_pipe(pipe: Option<impl io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What was read before the pipe broke is kept.
        let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_settings_are_kept_and_nothing_else_is() {
        let listed = "system\0core.pager\nless\0global\0include.path\n~/more\0global\0user.name\nPat\0\
                      global\0includeif.gitdir:/x.path\ny\0global\0push.followtags\0local\0core.bare\ntrue\0\
                      command\0core.hookspath\n/dev/null\0global\0http.extraheader\na\nb\0";
        let settings = [("user.name", "Pat"), ("push.followtags", "true"), ("http.extraheader", "a\nb")];
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(UserSettings::parse(listed).0, settings);
    }

    #[test]
    fn git_reads_the_settings_that_were_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings");
        let settings = [
            ("user.name", "Pat \"P\" O\\Neil # ; "),
            ("url.ssh://a.b/c \"d\\e.insteadof", "https://a.b/"),
            ("http.https://a.b/.extraheader", "x: y\n\tz"),
            ("push.followtags", "true"),
        ];
        let settings = UserSettings(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec());
        let git = UserGit::new(folder.path(), Duration::from_mins(1)).with_settings(&settings, &file).unwrap();
        let listed = git.args(["config", "--list", "--show-scope", "--includes", "-z"]).run().unwrap();
        let read = UserSettings::parse(&listed.stdout).0;
        assert_eq!(read, settings.0);
    }
}
