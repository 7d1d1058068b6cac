//! Inspects the runs of a git remote from git alone: fetches their branches into a private repository, and queries a
//! private daemon. Both are gone when the command ends.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use protocol::api::RunApiClient as _;
use protocol::error::ExitStatus;
use protocol::request::AtRun;
use tempfile::TempDir;

use crate::commands::daemon::find_daemon_program as daemon_program;
use crate::failure::Failure;
use crate::interrupts::unless_interrupted;
use crate::invocation::Invocation;
use crate::program::{CommandOutput, LaunchError, ProgramCall, run};
use crate::submit::run_start::RunStart;
use crate::temp_daemon::TempDaemon;

/// The files of a commit that hold a run's state.
const STATE: [&str; 3] = [".runner/GOAL.md", ".runner/prompts", ".runner/state"];

/// Number of trees listed at once: git's output is kept in memory.
const AT_ONCE: usize = 1000;
/// Number of runs listed if the user has to choose one.
const NAMED: usize = 10;

/// Where runs are looked at.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Look at the runs of a git remote, without a daemon: its name in this repository, or its address
    #[arg(long, value_name = "REMOTE")]
    pub(crate) remote: Option<String>,
}

/// What to inspect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemoteQuery<'a> {
    /// The remote: its name in a repository, or its URL.
    pub(crate) remote: &'a str,
    /// A path in that repository; defaults to the current directory.
    pub(crate) place: Option<&'a Path>,
    /// The run, or a prefix of its id; `None` is all of them.
    pub(crate) run: Option<&'a str>,
    /// How much of their branches is needed.
    pub(crate) depth: FetchDepth,
}

/// How much of a branch is fetched from a remote that supports partial fetches: others send more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchDepth {
    /// The state at the tip.
    Tip,
    /// All commits, and the state at the tip.
    Commits,
    /// Everything.
    Whole,
}

/// Runs queries about the runs of a remote, in a repository that contains their branches and nothing else.
pub(crate) async fn within<T>(
    invocation: &Invocation<'_>,
    wanted: RemoteQuery<'_>,
    asked: impl AsyncFnOnce(&Invocation<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(host) = invocation.host.as_ref().or(invocation.hosts.first()) {
        let message = format!("a remote is looked at from here, and not from {host}");
        return Err(Failure::usage(message).hint("leave --host and --all-hosts away"));
    }
    unless_interrupted("the look", async {
        let folder = tempfile::Builder::new().prefix("runnerd-").tempdir();
        let folder = folder.map_err(|error| Failure::io("making a folder for the branches", &error))?;
        let mirror = MirrorRepo { folder };
        mirror.fill(invocation, wanted).await?;
        let own = TempDaemon::start().await?;
        let inside = invocation.apart(own.socket().to_owned(), mirror.folder.path().to_owned());
        let answer = asked(&inside).await;
        own.stop(&inside).await?;
        answer
    })
    .await
}

/// Returns the run's id; the only run if none is named.
pub(crate) async fn only(inside: &Invocation<'_>, run: Option<String>) -> Result<String, Failure> {
    let at = AtRun { path: inside.place(None)?, run };
    let runs = inside.connect().await?.client().branches(at).await?;
    match &runs[..] {
        [one] => Ok(one.run.clone()),
        runs => {
            let some: Vec<&str> = runs.iter().map(|run| run.run.as_str()).take(NAMED).collect();
            let message = format!("{} runs are there: {}", runs.len(), some.join(", "));
            Err(Failure::usage(message).hint("name one with --run"))
        }
    }
}

/// The private repository.
struct MirrorRepo {
    folder: TempDir,
}

impl MirrorRepo {
    async fn fill(&self, invocation: &Invocation<'_>, wanted: RemoteQuery<'_>) -> Result<(), Failure> {
        let url = address(invocation, wanted).await?;
        let doing = format!("fetching the runs of {url}");
        // Not bare, since it is treated like a user's; nothing is checked out.
        self.git(&["init", "--quiet", "--template=", "."], "").await?.fine("git", "making a repository")?;
        self.git(&["remote", "add", "--", "origin", &url], "").await?.fine("git", "naming the remote")?;
        let run = format!("{}*", wanted.run.unwrap_or_default());
        let branches = format!("+refs/heads/runner/{run}:refs/heads/runner/{run}");
        let options: &[&str] = match wanted.depth {
            FetchDepth::Tip => &["--depth=1", "--filter=blob:none"],
            FetchDepth::Commits => &["--filter=tree:0"],
            FetchDepth::Whole => &[],
        };
        let fetch = [&FETCH, options, &["--", "origin", &branches]].concat();
        let fetched = self.git(&fetch, "").await?;
        if !fetched.ended.success() {
            // If nothing matches, git only returns an exit code.
            let listed = self.git(&["ls-remote", "--heads", "--", "origin", &format!("runner/{run}")], "").await?;
            let is_empty = listed.ended.success() && listed.out.is_empty();
            return Err(if is_empty { nothing_there(&url, wanted.run) } else { fetched.failure("remote", &doing) });
        }
        let tips = self.git(&["for-each-ref", "--format=%(tree)", "refs/heads/runner"], "").await?;
        let tips = tips.fine("git", "listing the branches")?;
        if tips.is_empty() {
            return Err(nothing_there(&url, wanted.run));
        }
        if wanted.depth == FetchDepth::Whole { Ok(()) } else { self.fetch_state(&tips, &doing).await }
    }

    /// Fetches the state at the tips in one request: git would request one file at a time.
    async fn fetch_state(&self, trees: &str, doing: &str) -> Result<(), Failure> {
        self.fetch_missing(trees, doing).await?;
        let empty = self.git(&["hash-object", "-t", "tree", "/dev/null"], "").await?.fine("git", doing)?;
        let compare = ["diff-tree", "--stdin", "-r", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id", "--"];
        let mut files = BTreeSet::new();
        for some in trees.lines().collect::<Vec<_>>().chunks(AT_ONCE) {
            let pairs: String = some.iter().flat_map(|tree| [empty.trim(), " ", tree, "\n"]).collect();
            let found = self.git(&[&compare[..], &STATE].concat(), &pairs).await?.fine("remote", doing)?;
            let of_files = found.lines().filter(|line| line.starts_with(":000000 100"));
            files.extend(of_files.filter_map(|line| line.split(' ').nth(3)).map(str::to_owned));
        }
        self.fetch_missing(&files.into_iter().collect::<Vec<_>>().join("\n"), doing).await
    }

    /// Fetches objects that are missing: a remote without partial fetches has sent them already.
    async fn fetch_missing(&self, ids: &str, doing: &str) -> Result<(), Failure> {
        let known = self.git(&["cat-file", "--batch-check=%(objectname)"], &format!("{ids}\n")).await?;
        let known = known.fine("git", doing)?;
        let missing: BTreeSet<&str> = known.lines().filter_map(|line| line.strip_suffix(" missing")).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: String = missing.into_iter().flat_map(|id| [id, "\n"]).collect();
        let fetch = [&FETCH[..], &["--filter=blob:none", "--stdin", "--", "origin"]].concat();
        self.git(&fetch, &missing).await?.fine("remote", doing).map(drop)
    }

    /// Runs git in it, without lazy fetching and without anything that is configured for repositories.
    async fn git(&self, words: &[&str], input: &str) -> Result<CommandOutput, Failure> {
        let argv: Vec<OsString> = GIT.iter().chain(words).map(OsString::from).collect();
        let env = &[("GIT_NO_LAZY_FETCH", "1"), ("LC_ALL", "C")];
        let said = run(ProgramCall { argv, folder: self.folder.path(), env, input: input.into(), tail: None }).await;
        said.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => Failure::new(ExitStatus::Error, "missing_command", "there is no git on your PATH"),
        })
    }
}

/// Git without hooks, maintenance and reflogs, for a short-lived repository. Single objects are requested without
/// negotiation, as git itself does.
const GIT: [&str; 13] = [
    "git",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "maintenance.auto=false",
    "-c",
    "gc.auto=0",
    "-c",
    "core.fsync=none",
    "-c",
    "core.logAllRefUpdates=false",
    "-c",
    "fetch.negotiationAlgorithm=noop",
];
/// Options of every fetch.
const FETCH: [&str; 5] = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];

/// Returns the URL of the remote, without contacting it.
async fn address(invocation: &Invocation<'_>, wanted: RemoteQuery<'_>) -> Result<String, Failure> {
    let (runnerd, folder) = (daemon_program(), invocation.resolve(wanted.place)?);
    let is_name = !wanted.remote.contains(['/', ':']) && !invocation.resolve(Some(wanted.remote.as_ref()))?.is_dir();
    let here = folder.display().to_string();
    let path = invocation.resolve(Some(wanted.remote.as_ref()))?;
    let other = if path.is_dir() { path.display().to_string() } else { wanted.remote.to_owned() };
    let (place, remote) = if is_name { (here, wanted.remote) } else { (other, "origin") };
    let beginning = RunStart { runnerd: &runnerd, place: &place, remote, run: "any", goal: None };
    let address = beginning.address(&invocation.resolve(None)?).await;
    address
        .map_err(|failure| failure.hint("git remote -v lists the remotes of a repository; an address will do as well"))
}

fn nothing_there(url: &str, run: Option<&str>) -> Failure {
    let what = run.map_or_else(|| "no run".to_owned(), |run| format!("no run {run}"));
    let failure = Failure::new(ExitStatus::Error, "not_found", format!("{url} has {what}"));
    match run {
        Some(_) => failure.hint("runnerctl status --remote REMOTE lists those that are there"),
        None => failure.hint("`runnerd drive` and `runnerctl submit` publish runs to a remote"),
    }
}
