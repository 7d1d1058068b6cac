//! Runs the user's own git in their own repository: reads the refs of a remote, and pushes exactly one branch.
//!
//! A push is a fast-forward from the state that was read, or it is refused: commits of others are never overwritten.
//! Refs are read from the URL that is pushed to, even if the remote is fetched from elsewhere.

use std::ffi::OsString;
use std::path::PathBuf;

use protocol::error::ExitStatus;
use protocol::shell::words;

use crate::failure::Failure;
use crate::program::{self, CommandOutput, LaunchError, ProgramCall};

/// Git does not ask for a password that no one could enter.
const SILENT: &[(&str, &str)] = &[NOT_LAZY, ("GIT_TERMINAL_PROMPT", "0")];
const LOUD: &[(&str, &str)] = &[NOT_LAZY];
/// Prevents git from lazily fetching missing objects.
const NOT_LAZY: (&str, &str) = ("GIT_NO_LAZY_FETCH", "1");

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
    fn place(&self) -> &str {
        if self.is_fetched_elsewhere { &self.address } else { &self.name }
    }

    /// Returns options that make git read that URL literally: it is the result of the configured rewriting and must not
    /// be rewritten again.
    fn options(&self) -> Vec<String> {
        // An equals sign would end the name of a setting.
        if !self.is_fetched_elsewhere || self.address.contains('=') {
            return Vec::new();
        }
        vec!["-c".to_owned(), format!("url.{0}.insteadOf={0}", self.address)]
    }

    /// Returns the shell word by which a person names that remote.
    pub(crate) fn in_shell(&self) -> String {
        let name = words([self.name.as_str()]);
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
    pub(crate) in_the_way: Option<String>,
}

impl GitCheckout {
    async fn run(&self, words: &[&str]) -> Result<CommandOutput, Failure> {
        let words = std::iter::once("git").chain(words.iter().copied());
        let env = if self.can_ask { LOUD } else { SILENT };
        let (argv, folder) = (words.map(OsString::from).collect(), self.folder.as_path());
        program::run(ProgramCall { argv, folder, env, input: Vec::new(), tail: None }).await.map_err(
            |error| match error {
                LaunchError::Failed(failure) => failure,
                LaunchError::Missing => Failure::new(ExitStatus::Error, "git", "git is not on your PATH"),
            },
        )
    }

    async fn done(&self, args: &[&str], doing: &str) -> Result<String, Failure> {
        self.run(args).await?.fine("git", doing)
    }

    /// Looks up a remote and its push URL.
    pub(crate) async fn remote(&self, remote: &str) -> Result<PushRemote, Failure> {
        let remotes = self.done(&["remote"], "listing the remotes").await?;
        if !remotes.lines().any(|name| name == remote) {
            let message = format!("there is no remote `{remote}` in {}", self.folder.display());
            let hint = match remotes.lines().next() {
                Some(first) => format!("runnerctl deliver --remote {first}"),
                None => "git remote add origin URL".to_owned(),
            };
            return Err(Failure::new(ExitStatus::Refused, "not_found", message).hint(hint));
        }
        let doing = format!("reading the address of the remote {remote}");
        let pushed = self.done(&["remote", "get-url", "--push", "--all", remote], &doing).await?;
        let fetched = self.done(&["remote", "get-url", remote], &doing).await?;
        let [address] = pushed.lines().collect::<Vec<_>>()[..] else {
            let message = format!("the remote {remote} is pushed to several addresses: one is needed for a delivery");
            let hint = words(["git", "remote", "get-url", "--push", "--all", remote]);
            return Err(Failure::new(ExitStatus::Refused, "git", message).hint(hint));
        };
        let is_fetched_elsewhere = fetched.trim_end() != address;
        Ok(PushRemote { name: remote.to_owned(), address: address.to_owned(), is_fetched_elsewhere })
    }

    /// Runs a git command that reads from a remote.
    async fn reading(&self, remote: &PushRemote, args: &[&str]) -> Result<CommandOutput, Failure> {
        let options = remote.options();
        self.run(&options.iter().map(String::as_str).chain(args.iter().copied()).collect::<Vec<_>>()).await
    }

    /// Reads HEAD and one branch from a remote.
    pub(crate) async fn look(&self, remote: &PushRemote, branch: &str) -> Result<RemoteRefs, Failure> {
        let wanted = format!("refs/heads/{branch}");
        let others = around(&wanted);
        let asked = ["ls-remote", "--symref", remote.place(), "HEAD", &wanted].into_iter();
        let said = self.reading(remote, &asked.chain(others.iter().map(String::as_str)).collect::<Vec<_>>()).await?;
        let told = said.fine("git", &format!("asking the remote {} what it has", remote.name));
        let told = told.map_err(|failure| failure.hint(format!("git ls-remote {}", remote.in_shell())))?;
        Ok(seen(&told, &wanted))
    }

    /// Returns what is known locally about a branch of a remote, without contacting it.
    pub(crate) async fn recall(&self, remote: &str, branch: &str) -> Result<RemoteRefs, Failure> {
        let wanted = format!("refs/heads/{branch}");
        let format = "--format=%(objectname)%09%(refname)";
        let tracked = format!("refs/remotes/{remote}/");
        let told = self.done(&["for-each-ref", format, &tracked], "listing what was fetched").await?;
        Ok(seen(&told.replace(&format!("\t{tracked}"), "\trefs/heads/"), &wanted))
    }

    /// Returns the commit of a revision, if it exists here.
    pub(crate) async fn commit(&self, revision: &str) -> Result<Option<String>, Failure> {
        let commit = format!("{revision}^{{commit}}");
        let said = self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await?;
        let found = said.answer("git", &format!("looking for {revision} in {}", self.folder.display()))?;
        Ok(found.map(|id| id.trim().to_owned()))
    }

    /// Whether a commit is an ancestor of, or equal to, another; false if the commit does not exist here.
    pub(crate) async fn is_within(&self, commit: &str, tip: &str) -> Result<bool, Failure> {
        if self.commit(commit).await?.is_none() {
            return Ok(false);
        }
        let said = self.run(&["merge-base", "--is-ancestor", commit, tip]).await?;
        let doing = format!("comparing {commit} with {tip} in {}", self.folder.display());
        Ok(said.answer("git", &doing)?.is_some())
    }

    /// Fetches a branch of a remote without moving any local branch.
    pub(crate) async fn fetch(&self, remote: &PushRemote, branch: &str) -> Result<(), Failure> {
        let said = self.fetched(remote, &format!("refs/heads/{branch}")).await?;
        said.fine("git", &format!("fetching {branch} from {}", remote.name)).map(drop)
    }

    async fn fetched(&self, remote: &PushRemote, refspec: &str) -> Result<CommandOutput, Failure> {
        let words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote.place(), refspec];
        self.reading(remote, &words).await
    }

    /// Fast-forwards a local branch to the remote's; returns false if that is no fast-forward, or the branch is checked
    /// out.
    pub(crate) async fn catch_up(&self, remote: &PushRemote, branch: &str) -> Result<bool, Failure> {
        let refspec = format!("refs/heads/{branch}:refs/heads/{branch}");
        match self.fetched(remote, &refspec).await?.ended.code() {
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
        (branch, tip): (&str, &str),
        seen: Option<&str>,
    ) -> Result<(), Failure> {
        if let Some(seen) = seen
            && !self.is_within(seen, tip).await?
        {
            let message = format!("{branch} here does not have what {} has of it: nothing was pushed", remote.name);
            let hint = format!("git fetch {} {branch}", remote.in_shell());
            return Err(Failure::new(ExitStatus::Refused, "wrong_state", message).hint(hint));
        }
        let name = format!("refs/heads/{branch}");
        let lease = format!("--force-with-lease={name}:{}", seen.unwrap_or_default());
        let refspec = format!("{tip}:{name}");
        let options =
            ["push", "--quiet", "--no-follow-tags", "--recurse-submodules=check", &lease, &remote.name, &refspec];
        let said = self.run(&options).await?;
        if said.ended.success() {
            return Ok(());
        }
        let failure = said.failure("git", &format!("pushing {branch} to {}", remote.name));
        Err(failure.hint(after_push(&said.complaint, (&remote.name, branch))))
    }
}

/// Suggests what to do after a rejected push.
fn after_push(complaint: &str, (remote, branch): (&str, &str)) -> String {
    let says = |words: &[&str]| words.iter().any(|word| complaint.contains(word));
    if says(&["stale info", "fetch first", "non-fast-forward"]) {
        return "somebody pushed to it meanwhile; the same command again takes that in first".to_owned();
    }
    if says(&["Authentication failed", "could not read Username", "Permission denied", "terminal prompts disabled"]) {
        return format!("log in, and try it by hand:\ngit push {remote} {branch}");
    }
    format!("git push {remote} {branch}")
}

/// Returns patterns of refs that git cannot store together with the given one.
fn around(wanted: &str) -> Vec<String> {
    let above = wanted.match_indices('/').skip(2).map(|(slash, _)| wanted[..slash].to_owned());
    above.chain([format!("{wanted}/*")]).collect()
}

fn leaves_no_room(name: &str, wanted: &str) -> bool {
    let is_below = |below: &str, above: &str| below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    is_below(name, wanted) || is_below(wanted, name)
}

/// Parses the output of `ls-remote --symref`.
fn seen(told: &str, wanted: &str) -> RemoteRefs {
    let mut seen = RemoteRefs::default();
    for (value, name) in told.lines().filter_map(|line| line.split_once('\t')) {
        if let Some(target) = value.strip_prefix("ref: ").filter(|_| name == "HEAD") {
            seen.head = target.strip_prefix("refs/heads/").map(str::to_owned);
        } else if name == wanted {
            seen.branch = Some(value.to_owned());
        } else if leaves_no_room(name, wanted) {
            seen.in_the_way = name.strip_prefix("refs/heads/").map(str::to_owned);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_at_a_remote_is_told_by_its_whole_name() {
        let told =
            "ref: refs/heads/main\tHEAD\naa\tHEAD\nbb\trefs/heads/x/refs/heads/deliver/r\ncc\trefs/heads/deliver/r\n";
        let expected = RemoteRefs { head: Some("main".into()), branch: Some("cc".into()), in_the_way: None };
        assert_eq!(seen(told, "refs/heads/deliver/r"), expected);
        assert_eq!(seen("", "refs/heads/deliver/r"), RemoteRefs::default());
    }

    #[test]
    fn a_branch_that_leaves_no_room_for_another_is_told() {
        let wanted = "refs/heads/deliver/r";
        assert_eq!(around(wanted), ["refs/heads/deliver", "refs/heads/deliver/r/*"]);
        for (name, is_told) in [("deliver", true), ("deliver/r/fix", true), ("deliver/rr", false), ("x/deliver", false)]
        {
            let in_the_way = seen(&format!("aa\trefs/heads/{name}\n"), wanted).in_the_way;
            assert_eq!(in_the_way.as_deref(), is_told.then_some(name));
        }
    }

    #[test]
    fn what_helps_depends_on_why_the_push_was_refused() {
        let help = |complaint: &str| after_push(complaint, ("origin", "deliver/r"));
        assert!(help(" ! [rejected] deliver/r (stale info)").contains("takes that in first"));
        assert!(help("fatal: Authentication failed for 'https://…'").starts_with("log in"));
        assert_eq!(help("remote: GH006: Protected branch"), "git push origin deliver/r");
    }
}
