//! Runs the user's own git in their own repository: reads the refs of a remote, and pushes exactly one branch.
//!
//! A push is a fast-forward from the state that was read, or it is refused: commits of others are never overwritten.
//! Refs are read from the URL that is pushed to, even if the remote is fetched from elsewhere.

use std::ffi::OsString;
use std::path::PathBuf;

use protocol::error::ExitStatus;
use protocol::shell::join_args;

use crate::failure::Failure;
use crate::program::{self, CommandOutput, LaunchError, ProgramCall};

/// Git does not ask for a password that no one could enter.
const SILENT_ENV: &[(&str, &str)] = &[NO_LAZY_FETCH, ("GIT_TERMINAL_PROMPT", "0")];
const ASKING_ENV: &[(&str, &str)] = &[NO_LAZY_FETCH];
/// Prevents git from lazily fetching missing objects.
const NO_LAZY_FETCH: (&str, &str) = ("GIT_NO_LAZY_FETCH", "1");

/// A repository, seen through the user's git.
#[derive(Debug)]
pub(crate) struct GitCheckout {
    /// A folder in the repository.
    pub(crate) folder: PathBuf,
    /// Whether git may prompt.
    pub(crate) can_ask: bool,
}

/// A remote with a single push URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PushRemote {
    /// Its name.
    pub(crate) name: String,
    /// The push URL. It may contain credentials, so it is never shown.
    pub(crate) address: String,
    /// Whether the fetch URL differs.
    is_fetched_elsewhere: bool,
}

impl PushRemote {
    /// Returns what git is to read from: the push URL, or the remote's name, with its configuration, if both URLs are
    /// the same.
    fn fetch_source(&self) -> &str {
        if self.is_fetched_elsewhere { &self.address } else { &self.name }
    }

    /// Returns options that make git read that URL literally: it is the result of the configured rewriting and must not
    /// be rewritten again.
    fn git_options(&self) -> Vec<String> {
        // An equals sign would end the name of a setting.
        if !self.is_fetched_elsewhere || self.address.contains('=') {
            return Vec::new();
        }
        vec!["-c".to_owned(), format!("url.{0}.insteadOf={0}", self.address)]
    }

    /// Returns the shell word by which a person names that remote.
    pub(crate) fn shell_name(&self) -> String {
        let name = join_args([self.name.as_str()]);
        if self.is_fetched_elsewhere { format!("\"$(git remote get-url --push {name})\"") } else { name }
    }
}

/// Refs of a remote.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RemoteRefs {
    /// The branch that its HEAD points to.
    pub(crate) head: Option<String>,
    /// The commit of the requested branch.
    pub(crate) branch: Option<String>,
    /// A branch whose name conflicts with the requested one, since one would be a folder on the path to the other.
    pub(crate) conflicting_branch: Option<String>,
}

impl GitCheckout {
    async fn run_git(&self, words: &[&str]) -> Result<CommandOutput, Failure> {
        let words = std::iter::once("git").chain(words.iter().copied());
        let env = if self.can_ask { ASKING_ENV } else { SILENT_ENV };
        let argv = words.map(OsString::from).collect();
        let folder = self.folder.as_path();
        program::run_program(ProgramCall { argv, folder, env, input: Vec::new(), tail: None }).await.map_err(|error| {
            match error {
                LaunchError::Failed(failure) => failure,
                LaunchError::Missing => Failure::new(ExitStatus::Error, "git", "git is not on your PATH"),
            }
        })
    }

    async fn git_output(&self, args: &[&str], operation: &str) -> Result<String, Failure> {
        self.run_git(args).await?.require_success("git", operation)
    }

    /// Looks up a remote and its push URL.
    pub(crate) async fn find_remote(&self, remote: &str) -> Result<PushRemote, Failure> {
        let remotes = self.git_output(&["remote"], "listing the remotes").await?;
        if !remotes.lines().any(|name| name == remote) {
            let message = format!("there is no remote `{remote}` in {}", self.folder.display());
            let hint = match remotes.lines().next() {
                Some(first) => format!("runnerctl deliver --remote {first}"),
                None => "git remote add origin URL".to_owned(),
            };
            return Err(Failure::new(ExitStatus::Refused, "not_found", message).hint(hint));
        }
        let doing = format!("reading the address of the remote {remote}");
        let pushed = self.git_output(&["remote", "get-url", "--push", "--all", remote], &doing).await?;
        let fetched = self.git_output(&["remote", "get-url", remote], &doing).await?;
        let [address] = pushed.lines().collect::<Vec<_>>()[..] else {
            let message = format!("the remote {remote} is pushed to several addresses: one is needed for a delivery");
            let hint = join_args(["git", "remote", "get-url", "--push", "--all", remote]);
            return Err(Failure::new(ExitStatus::Refused, "git", message).hint(hint));
        };
        let is_fetched_elsewhere = fetched.trim_end() != address;
        Ok(PushRemote { name: remote.to_owned(), address: address.to_owned(), is_fetched_elsewhere })
    }

    /// Runs a git command that reads from a remote.
    async fn run_git_reading(&self, remote: &PushRemote, args: &[&str]) -> Result<CommandOutput, Failure> {
        let options = remote.git_options();
        self.run_git(&options.iter().map(String::as_str).chain(args.iter().copied()).collect::<Vec<_>>()).await
    }

    /// Reads HEAD and one branch from a remote.
    pub(crate) async fn read_refs(&self, remote: &PushRemote, branch: &str) -> Result<RemoteRefs, Failure> {
        let refname = format!("refs/heads/{branch}");
        let conflict_patterns = conflict_patterns(&refname);
        let args = ["ls-remote", "--symref", remote.fetch_source(), "HEAD", &refname].into_iter();
        let output = self
            .run_git_reading(remote, &args.chain(conflict_patterns.iter().map(String::as_str)).collect::<Vec<_>>())
            .await?;
        let refs = output.require_success("git", &format!("asking the remote {} what it has", remote.name));
        let refs = refs.map_err(|failure| failure.hint(format!("git ls-remote {}", remote.shell_name())))?;
        Ok(parse_refs(&refs, &refname))
    }

    /// Returns what is known locally about a branch of a remote, without contacting it.
    pub(crate) async fn read_tracked_refs(&self, remote: &str, branch: &str) -> Result<RemoteRefs, Failure> {
        let refname = format!("refs/heads/{branch}");
        let format = "--format=%(objectname)%09%(refname)";
        let tracked = format!("refs/remotes/{remote}/");
        let refs = self.git_output(&["for-each-ref", format, &tracked], "listing what was fetched").await?;
        Ok(parse_refs(&refs.replace(&format!("\t{tracked}"), "\trefs/heads/"), &refname))
    }

    /// Returns the commit of a revision, if it exists here.
    pub(crate) async fn resolve_commit(&self, revision: &str) -> Result<Option<String>, Failure> {
        let commit = format!("{revision}^{{commit}}");
        let output = self.run_git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await?;
        let found = output.optional_output("git", &format!("looking for {revision} in {}", self.folder.display()))?;
        Ok(found.map(|id| id.trim().to_owned()))
    }

    /// Whether a commit is an ancestor of, or equal to, another; false if the commit does not exist here.
    pub(crate) async fn is_ancestor(&self, commit: &str, tip: &str) -> Result<bool, Failure> {
        if self.resolve_commit(commit).await?.is_none() {
            return Ok(false);
        }
        let output = self.run_git(&["merge-base", "--is-ancestor", commit, tip]).await?;
        let doing = format!("comparing {commit} with {tip} in {}", self.folder.display());
        Ok(output.optional_output("git", &doing)?.is_some())
    }

    /// Fetches a branch of a remote without moving any local branch.
    pub(crate) async fn fetch(&self, remote: &PushRemote, branch: &str) -> Result<(), Failure> {
        let output = self.run_fetch(remote, &format!("refs/heads/{branch}")).await?;
        output.require_success("git", &format!("fetching {branch} from {}", remote.name)).map(drop)
    }

    async fn run_fetch(&self, remote: &PushRemote, refspec: &str) -> Result<CommandOutput, Failure> {
        let args = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote.fetch_source(), refspec];
        self.run_git_reading(remote, &args).await
    }

    /// Fast-forwards a local branch to the remote's; returns false if that is not a fast-forward, or the branch is
    /// checked out.
    pub(crate) async fn fast_forward(&self, remote: &PushRemote, branch: &str) -> Result<bool, Failure> {
        let refspec = format!("refs/heads/{branch}:refs/heads/{branch}");
        match self.run_fetch(remote, &refspec).await?.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            // That is how it fails if the branch is checked out, or if the remote does not answer, which is reported.
            _ => self.fetch(remote, branch).await.map(|()| false),
        }
    }

    /// Pushes a commit as a branch if the remote is still in the state that was read: no branch, or an ancestor of the
    /// commit.
    pub(crate) async fn push(
        &self,
        remote: &PushRemote,
        branch: &str,
        tip: &str,
        expected: Option<&str>,
    ) -> Result<(), Failure> {
        if let Some(commit) = expected
            && !self.is_ancestor(commit, tip).await?
        {
            let message = format!("{branch} here does not have what {} has of it: nothing was pushed", remote.name);
            let hint = format!("git fetch {} {branch}", remote.shell_name());
            return Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(hint));
        }
        let name = format!("refs/heads/{branch}");
        let lease = format!("--force-with-lease={name}:{}", expected.unwrap_or_default());
        let refspec = format!("{tip}:{name}");
        // git pushes no single branch to a remote that `git clone --mirror` or `git remote add --mirror` made.
        let key = format!("remote.{}.mirror", remote.name);
        let single = format!("{key}=false");
        let options = ["push", "--quiet", "--no-follow-tags", "--recurse-submodules=check"];
        let args = ["-c", &single].into_iter().chain(options).chain([&lease, remote.name.as_str(), &refspec]);
        let output = self.run_git(&args.collect::<Vec<_>>()).await?;
        if output.status.success() {
            return Ok(());
        }
        let failure = output.to_failure("git", &format!("pushing {branch} to {}", remote.name));
        let is_mirror = self.run_git(&["config", "--type=bool", "--get", &key]).await?.stdout.trim() == "true";
        let own_settings: &[&str] = if is_mirror { &["-c", &single] } else { &[] };
        let words = [&["git"], own_settings, &["push", &remote.name, branch]].concat();
        Err(failure.hint(push_hint(&output.stderr, &join_args(words))))
    }
}

/// Suggests what to do after a rejected push.
fn push_hint(stderr: &str, by_hand: &str) -> String {
    let mentions = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if mentions(&["stale info", "fetch first", "non-fast-forward"]) {
        return "someone else has pushed to it since; run the command again, which merges that first".to_owned();
    }
    if mentions(&["Authentication failed", "could not read Username", "Permission denied", "terminal prompts disabled"])
    {
        return format!("log in, and try it by hand:\n{by_hand}");
    }
    by_hand.to_owned()
}

/// Returns patterns of refs that git cannot store together with the given one.
fn conflict_patterns(refname: &str) -> Vec<String> {
    let parents = refname.match_indices('/').skip(2).map(|(slash, _)| refname[..slash].to_owned());
    parents.chain([format!("{refname}/*")]).collect()
}

fn conflicts_with(name: &str, refname: &str) -> bool {
    let is_below = |below: &str, above: &str| below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    is_below(name, refname) || is_below(refname, name)
}

/// Parses the output of `ls-remote --symref`.
fn parse_refs(refs: &str, refname: &str) -> RemoteRefs {
    let mut remote_refs = RemoteRefs::default();
    for (value, name) in refs.lines().filter_map(|line| line.split_once('\t')) {
        if let Some(target) = value.strip_prefix("ref: ").filter(|_| name == "HEAD") {
            remote_refs.head = target.strip_prefix("refs/heads/").map(str::to_owned);
        } else if name == refname {
            remote_refs.branch = Some(value.to_owned());
        } else if conflicts_with(name, refname) {
            remote_refs.conflicting_branch = name.strip_prefix("refs/heads/").map(str::to_owned);
        }
    }
    remote_refs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_at_a_remote_is_told_by_its_whole_name() {
        let refs =
            "ref: refs/heads/main\tHEAD\naa\tHEAD\nbb\trefs/heads/x/refs/heads/deliver/r\ncc\trefs/heads/deliver/r\n";
        let expected = RemoteRefs { head: Some("main".into()), branch: Some("cc".into()), conflicting_branch: None };
        assert_eq!(parse_refs(refs, "refs/heads/deliver/r"), expected);
        assert_eq!(parse_refs("", "refs/heads/deliver/r"), RemoteRefs::default());
    }

    #[test]
    fn a_branch_that_leaves_no_room_for_another_is_told() {
        let refname = "refs/heads/deliver/r";
        assert_eq!(conflict_patterns(refname), ["refs/heads/deliver", "refs/heads/deliver/r/*"]);
        for (name, is_found) in
            [("deliver", true), ("deliver/r/fix", true), ("deliver/rr", false), ("x/deliver", false)]
        {
            let in_the_way = parse_refs(&format!("aa\trefs/heads/{name}\n"), refname).conflicting_branch;
            assert_eq!(in_the_way.as_deref(), is_found.then_some(name));
        }
    }

    #[test]
    fn what_helps_depends_on_why_the_push_was_refused() {
        let help = |complaint: &str| push_hint(complaint, "git push origin deliver/r");
        assert!(help(" ! [rejected] deliver/r (stale info)").contains("merges that first"));
        assert!(help("fatal: Authentication failed for 'https://…'").starts_with("log in"));
        assert_eq!(help("remote: GH006: Protected branch"), "git push origin deliver/r");
    }
}
