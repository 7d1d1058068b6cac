//! The connection to the remote: a bare repository of the job's own that contains only the remote's address. It uses
//! the objects of the work tree, whose configuration, hooks and references take no part.
//!
//! The outcome of a failed push is determined by querying the remote, not from git's messages. When to push is decided
//! in the parent module.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::tip_log;
use runner_git::Id;

use super::UpstreamError;
use super::deadline::Deadline;
use super::user_git::{CommandOutput, UserGit, UserSettings};

/// Time limit for transferring a whole repository.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_hours(2);
/// Time limit for listing a remote's references.
const LOOK_TIMEOUT: Duration = Duration::from_mins(1);
/// Exit status of `git remote get-url` if there is no such remote.
const NO_REMOTE: i32 = 2;
/// Time limit for a push.
pub(crate) const PUSH_TIMEOUT: Duration = Duration::from_mins(5);

/// A remote, and the object store that is sent to it.
#[derive(Debug, Clone)]
pub struct RemoteClient {
    folder: PathBuf,
    objects: PathBuf,
    url: String,
    deadline: Deadline,
    /// The user's settings as they were when this was created.
    settings: UserSettings,
    tip_log: Option<PathBuf>,
    /// A commit in the store that the remote need not send again, if it has it.
    known_commit: Option<Id>,
}

/// State of a run at a remote, and where a new run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRefs {
    /// Tip of the run's branch.
    pub tip: Option<Id>,
    /// The branch that HEAD points to, without `refs/heads/`, and its commit.
    pub head: Option<(String, Id)>,
}

/// Result of a push, according to the remote's state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushResult {
    /// The branch was pushed; the text says why additional references were not.
    Done(Option<String>),
    /// The branch was moved by someone else, or was removed: its current value.
    Diverged(Option<Id>),
    /// The branch is unchanged: the remote refuses, or does not respond.
    Rejected(String),
}

/// A push of a run's branch.
#[derive(Debug, Clone, Copy)]
pub struct PushRequest<'a> {
    /// The branch, such as `runner/x`.
    pub branch: &'a str,
    /// The commit to push.
    pub tip: &'a Id,
    /// Its value after the previous push.
    pub last_pushed: Option<&'a Id>,
    /// Objects, and the full names of their references at the remote.
    pub extras: &'a [(String, String)],
    /// Time limit.
    pub limit: Duration,
}

impl RemoteClient {
    /// Creates the bare repository in `folder`, which must not exist, for the objects of a repository.
    pub fn create(folder: &Path, objects: &Path, url: &str, deadline: Deadline) -> Result<Self, UpstreamError> {
        let folder = folder.to_owned();
        let objects = objects.to_owned();
        let url = url.to_owned();
        let settings = UserSettings::default();
        let client = Self { folder, objects, url, deadline, settings, tip_log: None, known_commit: None };
        fs::create_dir_all(&client.folder).map_err(client.io_error())?;
        let git = || client.git_with_current_settings(LOOK_TIMEOUT);
        client.run_checked(git().args(["init", "--quiet", "--bare", "--template=", "."]))?;
        let listed = client.run_checked(git().args(["config", "--list", "--show-scope", "--includes", "-z"]))?;
        Ok(Self { settings: UserSettings::parse(&listed), ..client })
    }

    /// Adds every commit that the remote accepts as a run's last to a tip log.
    #[must_use]
    pub fn with_tip_log(self, tip_log: Option<PathBuf>) -> Self {
        Self { tip_log, ..self }
    }

    /// Sets a commit in the store: only what follows it is fetched.
    #[must_use]
    pub fn with_known_commit(self, known: Option<Id>) -> Self {
        Self { known_commit: known, ..self }
    }

    /// Returns the remote's address without any password.
    pub fn display_url(&self) -> String {
        without_password(&self.url)
    }

    /// Queries the state of the remote.
    pub fn read_refs(&self, branch: &str) -> Result<RemoteRefs, UpstreamError> {
        list_remote_refs(self.git_command(LOOK_TIMEOUT)?, &self.url, branch)
    }

    /// Fetches a branch of the remote into the store: what is new since the known commit, or everything if the store
    /// turns out to lack a part of that.
    pub fn fetch(&self, branch: &str) -> Result<(), UpstreamError> {
        match &self.known_commit {
            Some(known) => self.fetch_since(branch, Some(known)).or_else(|_| self.fetch_since(branch, None)),
            None => self.fetch_since(branch, None),
        }
    }

    fn fetch_since(&self, branch: &str, known: Option<&Id>) -> Result<(), UpstreamError> {
        let refspec = format!("+refs/heads/{branch}:refs/heads/{branch}");
        let git = self.git_command(FETCH_TIMEOUT)?.env("GIT_OBJECT_DIRECTORY", &self.objects);
        let git = git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        // What was fetched earlier has a name here, and is known as well.
        let tips =
            known.map(|known| ["--negotiation-tip=refs/heads/*".to_owned(), format!("--negotiation-tip={known}")]);
        let git = git.args(tips.into_iter().flatten());
        self.run_checked(git.args(["--end-of-options", self.url.as_str(), refspec.as_str()])).map(drop)
    }

    /// Pushes a branch as a fast-forward, together with what belongs to it.
    ///
    /// Both are pushed atomically: a driver that was overtaken must not overwrite what the other one has stored. A
    /// remote that does not support this gets only the branch.
    pub fn push(&self, push: &PushRequest<'_>) -> Result<PushResult, UpstreamError> {
        let result = self.push_all(push)?;
        if let (Some(log), PushResult::Done(_)) = (&self.tip_log, &result) {
            let run = push.branch.trim_start_matches("runner/");
            if let Err(error) = tip_log::append_tip(log, run, &push.tip.to_string()) {
                tracing::error!(%error, log = %log.display(), tip = %push.tip, "the tip log lacks a commit that is published");
            }
        }
        Ok(result)
    }

    fn push_all(&self, push: &PushRequest<'_>) -> Result<PushResult, UpstreamError> {
        let branch = format!("{}:refs/heads/{}", push.tip, push.branch);
        if push.extras.is_empty() {
            let output = self.run_push(&[branch], push.limit)?;
            return Ok(self.classify_push(push, &output));
        }
        let extras = push.extras.iter().map(|(id, name)| format!("+{id}:{name}"));
        let all: Vec<String> = ["--atomic".to_owned(), branch.clone()].into_iter().chain(extras).collect();
        let together = self.run_push(&all, push.limit)?;
        match self.classify_push(push, &together) {
            PushResult::Rejected(_) if !self.deadline.is_given_up() => {}
            came => return Ok(came),
        }
        let alone = self.run_push(&[branch], push.limit)?;
        Ok(match self.classify_push(push, &alone) {
            PushResult::Done(_) => PushResult::Done(Some(together.failure_reason())),
            came => came,
        })
    }

    /// Determines the result of a push from the remote's state after it.
    fn classify_push(&self, push: &PushRequest<'_>, output: &CommandOutput) -> PushResult {
        if output.is_success {
            return PushResult::Done(None);
        }
        if self.deadline.is_given_up() {
            return PushResult::Rejected(output.failure_reason());
        }
        match self.read_refs(push.branch).map(|now| now.tip) {
            Ok(Some(tip)) if tip == *push.tip && Some(push.tip) != push.last_pushed => PushResult::Done(None),
            Ok(tip) if tip.as_ref() != push.last_pushed => PushResult::Diverged(tip),
            Ok(_) | Err(_) => PushResult::Rejected(output.failure_reason()),
        }
    }

    /// Stores a commit at the remote under its own name.
    pub fn push_ref(&self, id: &Id, name: &str, limit: Duration) -> Result<(), UpstreamError> {
        let output = self.run_push(&[format!("+{id}:{name}")], limit)?;
        if output.is_success { Ok(()) } else { Err(self.unreachable_error(&output)) }
    }

    fn run_push(&self, specs: &[String], limit: Duration) -> Result<CommandOutput, UpstreamError> {
        let git = self.git_command(limit)?.env("GIT_OBJECT_DIRECTORY", &self.objects);
        let (options, specs): (Vec<&String>, Vec<&String>) = specs.iter().partition(|word| word.starts_with("--"));
        let git = git.args(["push", "--porcelain", "--no-verify", "--no-signed"]).args(options);
        git.args(["--end-of-options", &self.url]).args(specs).run().map_err(self.io_error())
    }

    /// Prepares a command with the settings that the user had before any session.
    fn git_command(&self, limit: Duration) -> Result<UserGit, UpstreamError> {
        let git = self.git_with_current_settings(limit);
        git.with_settings(&self.settings, &self.folder.join("user.gitconfig")).map_err(self.io_error())
    }

    fn git_with_current_settings(&self, limit: Duration) -> UserGit {
        let git = UserGit::new(&self.folder, limit).with_deadline(&self.deadline).env("GIT_DIR", &self.folder);
        git.for_repository(self.objects.parent().unwrap_or(&self.folder))
    }

    fn run_checked(&self, git: UserGit) -> Result<String, UpstreamError> {
        let output = git.run().map_err(self.io_error())?;
        if output.is_success { Ok(output.stdout) } else { Err(self.unreachable_error(&output)) }
    }

    fn unreachable_error(&self, output: &CommandOutput) -> UpstreamError {
        UpstreamError::Unreachable { remote: self.display_url(), why: output.failure_reason() }
    }

    fn io_error(&self) -> impl FnOnce(io::Error) -> UpstreamError {
        let path = self.folder.clone();
        move |source| UpstreamError::Io { doing: "running git in", path, source }
    }
}

/// Queries the state of a run at a remote.
fn list_remote_refs(git: UserGit, url: &str, branch: &str) -> Result<RemoteRefs, UpstreamError> {
    let name = format!("refs/heads/{branch}");
    let unreachable = |why| UpstreamError::Unreachable { remote: without_password(url), why };
    let result = git.args(["ls-remote", "--symref", "--end-of-options", url, "HEAD", &name]).run();
    let output = result.map_err(|source| UpstreamError::Io { doing: "running git for", path: url.into(), source })?;
    if !output.is_success {
        return Err(unreachable(output.failure_reason()));
    }
    // An id that cannot be parsed must not be mistaken for a missing branch.
    let id = |ref_name: &str| {
        let lines =
            output.stdout.lines().filter(|line| !line.starts_with("ref: ")).filter_map(|line| line.split_once('\t'));
        let found = lines.into_iter().find_map(|(id, found)| (found == ref_name).then_some(id));
        found
            .map(|id| id.parse::<Id>().map_err(|_| unreachable(format!("{ref_name} has an id of another kind"))))
            .transpose()
    };
    let named = output.stdout.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD"));
    Ok(RemoteRefs { tip: id(&name)?, head: named.map(str::to_owned).zip(id("HEAD")?) })
}

/// Returns the address of a repository's remote. A relative path starts at the root of the work tree.
pub fn remote_url(repository: &Path, remote: &str) -> Result<String, UpstreamError> {
    let path = || repository.to_owned();
    let run_git = |args: &[&str]| {
        let ran = UserGit::new(repository, LOOK_TIMEOUT).args(args).run();
        let output = ran.map_err(|source| UpstreamError::Io { doing: "running git in", path: path(), source })?;
        match output.code {
            Some(0) => Ok(output.stdout.trim_end().to_owned()),
            Some(NO_REMOTE) => Err(UpstreamError::MissingRemote { path: path(), remote: remote.to_owned() }),
            _ => Err(UpstreamError::Git { command: args[0].to_owned(), path: path(), why: output.failure_reason() }),
        }
    };
    let url = run_git(&["remote", "get-url", "--end-of-options", remote])?;
    // `host:path` and `scheme://` are addresses, not paths.
    let first = url.split('/').next().unwrap_or_default();
    if Path::new(&url).is_relative()
        && !first.contains(':')
        && let Ok(folder) = Path::new(&run_git(&["rev-parse", "--show-toplevel"])?).join(&url).canonicalize()
    {
        return Ok(folder.display().to_string());
    }
    Ok(url)
}

/// Returns an address that is safe to display and to store.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.split_once('@') {
        Some((login, place)) if !login.contains('/') => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{place}")
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_password("https://me:secret@host/x.git"), "https://me@host/x.git");
        for url in ["git@host:x.git", "/srv/x.git", "file:///srv/a@b.git", "ssh://me@host/x"] {
            assert_eq!(without_password(url), url);
        }
    }
}
