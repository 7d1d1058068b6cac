//! The way to the remote: a bare repository of the job's own that holds nothing but the remote's address. Its objects are
//! those of the work tree, whose configuration, hooks and references take no part.
//!
//! What a push that failed means is told by looking at the remote, not by git's words. When something is pushed is the
//! parent's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::tip_log;

use super::UpstreamError;
use super::deadline::Deadline;
use super::user_git::{UserGit, CommandOutput};
use crate::git::Id;

/// Longest transfer of a whole repository.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_hours(2);
/// Longest look at what a remote has.
const LOOK_TIMEOUT: Duration = Duration::from_mins(1);
/// With what `git remote get-url` ends where there is no remote of that name.
const NO_REMOTE: i32 = 2;
/// Longest push.
pub(crate) const PUSH_TIMEOUT: Duration = Duration::from_mins(5);

/// A remote, and the store whose objects are sent to it.
#[derive(Debug, Clone)]
pub struct RemoteClient {
    folder: PathBuf,
    objects: PathBuf,
    url: String,
    deadline: Deadline,
    tip_log: Option<PathBuf>,
    /// A commit of the store that the remote need not send again, if it has it.
    known_commit: Option<Id>,
}

/// What a remote has of a run, and where a new one begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRefs {
    /// What the run's branch names.
    pub tip: Option<Id>,
    /// The branch that HEAD names, without `refs/heads/`, and its commit.
    pub head: Option<(String, Id)>,
}

/// How a push ended, by what the remote has since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushResult {
    /// The branch is there; and why something beside it is not.
    Done(Option<String>),
    /// The branch is somebody else's, or is gone: it names this.
    Diverged(Option<Id>),
    /// It is as it was: the remote refuses, or does not answer.
    Rejected(String),
}

/// What is pushed of a run's branch.
#[derive(Debug, Clone, Copy)]
pub struct PushRequest<'a> {
    /// The branch, such as `runner/x`.
    pub branch: &'a str,
    /// The commit that it is to name.
    pub tip: &'a Id,
    /// What it named when it was pushed last.
    pub last_pushed: Option<&'a Id>,
    /// Objects and the full names that they get there.
    pub extras: &'a [(String, String)],
    /// How long it may take.
    pub limit: Duration,
}

impl RemoteClient {
    /// Makes it in `folder`, which is not there yet, for the objects of a repository.
    pub fn create(folder: &Path, (objects, url): (&Path, &str), deadline: Deadline) -> Result<Self, UpstreamError> {
        let (folder, objects) = (folder.to_owned(), objects.to_owned());
        let client = Self { folder, objects, url: url.to_owned(), deadline, tip_log: None, known_commit: None };
        fs::create_dir_all(&client.folder).map_err(client.io_error())?;
        client.run_checked(client.git_command(LOOK_TIMEOUT).args(["init", "--quiet", "--bare", "--template=", "."]))?;
        Ok(client)
    }

    /// Has each commit that the remote takes for the last one of a run added to a tip log.
    #[must_use]
    pub fn with_tip_log(self, tip_log: Option<PathBuf>) -> Self {
        Self { tip_log, ..self }
    }

    /// Names a commit of the store, from which on it is fetched.
    #[must_use]
    pub fn with_known_commit(self, known: Option<Id>) -> Self {
        Self { known_commit: known, ..self }
    }

    /// Returns the address of the remote, without a password in it.
    pub fn display_url(&self) -> String {
        without_password(&self.url)
    }

    /// Looks at what the remote has.
    pub fn read_refs(&self, branch: &str) -> Result<RemoteRefs, UpstreamError> {
        list_remote_refs(self.git_command(LOOK_TIMEOUT), &self.url, branch)
    }

    /// Brings what a branch of the remote names into the store: what it has since the commit that is known, or all of it where
    /// the store turns out to lack something of that.
    pub fn fetch(&self, branch: &str) -> Result<(), UpstreamError> {
        match &self.known_commit {
            Some(known) => self.fetch_since(branch, Some(known)).or_else(|_| self.fetch_since(branch, None)),
            None => self.fetch_since(branch, None),
        }
    }

    fn fetch_since(&self, branch: &str, known: Option<&Id>) -> Result<(), UpstreamError> {
        let refspec = format!("+refs/heads/{branch}:refs/heads/{branch}");
        let git = self.git_command(FETCH_TIMEOUT).env("GIT_OBJECT_DIRECTORY", &self.objects);
        let git = git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        // What was fetched before has a name here, and is known as well.
        let tips =
            known.map(|known| ["--negotiation-tip=refs/heads/*".to_owned(), format!("--negotiation-tip={known}")]);
        let git = git.args(tips.into_iter().flatten());
        self.run_checked(git.args(["--end-of-options", self.url.as_str(), refspec.as_str()])).map(drop)
    }

    /// Pushes a branch as a fast-forward, and what belongs to it.
    ///
    /// What belongs to it goes with it or not at all: a driver that was overtaken must not write over what the other one has
    /// kept. A remote that does not take it gets the branch alone.
    pub fn push(&self, push: &PushRequest<'_>) -> Result<PushResult, UpstreamError> {
        let result = self.push_all(push)?;
        if let (Some(log), PushResult::Done(_)) = (&self.tip_log, &result) {
            let run = push.branch.trim_start_matches("runner/");
            if let Err(error) = tip_log::add(log, run, &push.tip.to_string()) {
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
            PushResult::Rejected(_) => {}
            came => return Ok(came),
        }
        let alone = self.run_push(&[branch], push.limit)?;
        Ok(match self.classify_push(push, &alone) {
            PushResult::Done(_) => PushResult::Done(Some(together.failure_reason())),
            came => came,
        })
    }

    /// Returns what has come of a push, by what the remote has since.
    fn classify_push(&self, push: &PushRequest<'_>, output: &CommandOutput) -> PushResult {
        if output.is_success {
            return PushResult::Done(None);
        }
        match self.read_refs(push.branch).map(|now| now.tip) {
            Ok(Some(tip)) if tip == *push.tip && Some(push.tip) != push.last_pushed => PushResult::Done(None),
            Ok(tip) if tip.as_ref() != push.last_pushed => PushResult::Diverged(tip),
            Ok(_) | Err(_) => PushResult::Rejected(output.failure_reason()),
        }
    }

    /// Keeps a commit at the remote under a name of its own.
    pub fn push_ref(&self, id: &Id, name: &str, limit: Duration) -> Result<(), UpstreamError> {
        let output = self.run_push(&[format!("+{id}:{name}")], limit)?;
        if output.is_success { Ok(()) } else { Err(self.unreachable_error(&output)) }
    }

    fn run_push(&self, specs: &[String], limit: Duration) -> Result<CommandOutput, UpstreamError> {
        let git = self.git_command(limit).env("GIT_OBJECT_DIRECTORY", &self.objects);
        let (options, specs): (Vec<&String>, Vec<&String>) = specs.iter().partition(|word| word.starts_with("--"));
        let git = git.args(["push", "--porcelain", "--no-verify", "--no-signed"]).args(options);
        git.args(["--end-of-options", &self.url]).args(specs).run().map_err(self.io_error())
    }

    fn git_command(&self, limit: Duration) -> UserGit {
        UserGit::new(&self.folder, limit).with_deadline(&self.deadline).env("GIT_DIR", &self.folder)
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

/// Looks at what a remote has of a run.
fn list_remote_refs(git: UserGit, url: &str, branch: &str) -> Result<RemoteRefs, UpstreamError> {
    let name = format!("refs/heads/{branch}");
    let unreachable = |why| UpstreamError::Unreachable { remote: without_password(url), why };
    let result = git.args(["ls-remote", "--symref", "--end-of-options", url, "HEAD", &name]).run();
    let output = result.map_err(|source| UpstreamError::Io { doing: "running git for", path: url.into(), source })?;
    if !output.is_success {
        return Err(unreachable(output.failure_reason()));
    }
    // An id that is not understood must not be taken for a branch that is not there.
    let id = |ref_name: &str| {
        let lines = output.stdout.lines().filter(|line| !line.starts_with("ref: ")).filter_map(|line| line.split_once('\t'));
        let found = lines.into_iter().find_map(|(id, found)| (found == ref_name).then_some(id));
        found.map(|id| id.parse::<Id>().map_err(|_| unreachable(format!("{ref_name} has an id of another kind")))).transpose()
    };
    let named = output.stdout.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD"));
    Ok(RemoteRefs { tip: id(&name)?, head: named.map(str::to_owned).zip(id("HEAD")?) })
}

/// Returns the address of a remote of a repository. One that is a relative path begins at the root of the work tree.
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
    // `host:path` and `scheme://` are addresses.
    let first = url.split('/').next().unwrap_or_default();
    if Path::new(&url).is_relative()
        && !first.contains(':')
        && let Ok(folder) = Path::new(&run_git(&["rev-parse", "--show-toplevel"])?).join(&url).canonicalize()
    {
        return Ok(folder.display().to_string());
    }
    Ok(url)
}

/// Returns an address as it may be shown and written down.
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
