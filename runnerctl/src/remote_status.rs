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
use crate::program::{CommandOutput, LaunchError, ProgramCall, run_program};
use crate::submit::run_start::RunStart;
use crate::temp_daemon::TempDaemon;

/// The files of a commit that hold a run's state.
const STATE_PATHS: [&str; 3] = [".runner/GOAL.md", ".runner/prompts", ".runner/state"];

/// Number of trees listed at once: git's output is kept in memory.
const TREES_PER_BATCH: usize = 1000;
/// Number of runs listed if the user has to choose one.
const NAMED_RUNS: usize = 10;

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
    pub(crate) path: Option<&'a Path>,
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
pub(crate) async fn with_remote<T>(
    invocation: &Invocation<'_>,
    query: RemoteQuery<'_>,
    work: impl AsyncFnOnce(&Invocation<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(host) = invocation.host.as_ref().or(invocation.hosts.first()) {
        let message = format!("a remote is looked at from here, and not from {host}");
        return Err(Failure::usage(message).hint("leave --host and --all-hosts away"));
    }
    unless_interrupted("the look", async {
        let folder = tempfile::Builder::new().prefix("runnerd-").tempdir();
        let folder = folder.map_err(|error| Failure::temp_file(&error))?;
        let mirror = MirrorRepo { directory: folder };
        mirror.fetch_branches(invocation, query).await?;
        let daemon = TempDaemon::start().await?;
        let mirror_invocation =
            invocation.with_own_daemon(daemon.socket().to_owned(), mirror.directory.path().to_owned());
        let result = work(&mirror_invocation).await;
        daemon.stop(&mirror_invocation).await?;
        result
    })
    .await
}

/// Returns the run's id; the only run if none is named.
pub(crate) async fn find_single_run(
    mirror_invocation: &Invocation<'_>,
    run: Option<String>,
) -> Result<String, Failure> {
    let at = AtRun { path: mirror_invocation.daemon_path(None)?, run };
    let runs = mirror_invocation.connect().await?.client().branches(at).await?;
    match &runs[..] {
        [one] => Ok(one.run.clone()),
        runs => {
            let ids: Vec<&str> = runs.iter().map(|run| run.run.as_str()).take(NAMED_RUNS).collect();
            let message = format!("{} runs are there: {}", runs.len(), ids.join(", "));
            Err(Failure::usage(message).hint("name one with --run"))
        }
    }
}

/// The private repository.
struct MirrorRepo {
    directory: TempDir,
}

impl MirrorRepo {
    async fn fetch_branches(&self, invocation: &Invocation<'_>, query: RemoteQuery<'_>) -> Result<(), Failure> {
        let url = remote_address(invocation, query).await?;
        let doing = format!("fetching the runs of {url}");
        // Not bare, since it is treated like a user's; nothing is checked out.
        self.run_git(&["init", "--quiet", "--template=", "."], "")
            .await?
            .require_success("git", "making a repository")?;
        self.run_git(&["remote", "add", "--", "origin", &url], "")
            .await?
            .require_success("git", "naming the remote")?;
        let run = format!("{}*", query.run.unwrap_or_default());
        let branches = format!("+refs/heads/runner/{run}:refs/heads/runner/{run}");
        let options: &[&str] = match query.depth {
            FetchDepth::Tip => &["--depth=1", "--filter=blob:none"],
            FetchDepth::Commits => &["--filter=tree:0"],
            FetchDepth::Whole => &[],
        };
        let fetch = [&FETCH_ARGS, options, &["--", "origin", &branches]].concat();
        let output = self.run_git(&fetch, "").await?;
        if !output.status.success() {
            // If nothing matches, git only returns an exit code.
            let heads = self.run_git(&["ls-remote", "--heads", "--", "origin", &format!("runner/{run}")], "").await?;
            let is_empty = heads.status.success() && heads.stdout.is_empty();
            return Err(if is_empty { no_runs_failure(&url, query.run) } else { output.to_failure("remote", &doing) });
        }
        let tips = self.run_git(&["for-each-ref", "--format=%(tree)", "refs/heads/runner"], "").await?;
        let tips = tips.require_success("git", "listing the branches")?;
        if tips.is_empty() {
            return Err(no_runs_failure(&url, query.run));
        }
        if query.depth == FetchDepth::Whole { Ok(()) } else { self.fetch_state(&tips, &doing).await }
    }

    /// Fetches the state at the tips in one request: git would request one file at a time.
    async fn fetch_state(&self, trees: &str, doing: &str) -> Result<(), Failure> {
        self.fetch_missing(trees, doing).await?;
        let empty =
            self.run_git(&["hash-object", "-t", "tree", "/dev/null"], "").await?.require_success("git", doing)?;
        let compare = ["diff-tree", "--stdin", "-r", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id", "--"];
        let mut files = BTreeSet::new();
        for batch in trees.lines().collect::<Vec<_>>().chunks(TREES_PER_BATCH) {
            let input: String = batch.iter().flat_map(|tree| [empty.trim(), " ", tree, "\n"]).collect();
            let changes =
                self.run_git(&[&compare[..], &STATE_PATHS].concat(), &input).await?.require_success("remote", doing)?;
            let file_lines = changes.lines().filter(|line| line.starts_with(":000000 100"));
            files.extend(file_lines.filter_map(|line| line.split(' ').nth(3)).map(str::to_owned));
        }
        self.fetch_missing(&files.into_iter().collect::<Vec<_>>().join("\n"), doing).await
    }

    /// Fetches objects that are missing: a remote without partial fetches has sent them already.
    async fn fetch_missing(&self, ids: &str, doing: &str) -> Result<(), Failure> {
        let known = self.run_git(&["cat-file", "--batch-check=%(objectname)"], &format!("{ids}\n")).await?;
        let known = known.require_success("git", doing)?;
        let missing: BTreeSet<&str> = known.lines().filter_map(|line| line.strip_suffix(" missing")).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: String = missing.into_iter().flat_map(|id| [id, "\n"]).collect();
        let fetch = [&FETCH_ARGS[..], &["--filter=blob:none", "--stdin", "--", "origin"]].concat();
        self.run_git(&fetch, &missing).await?.require_success("remote", doing).map(drop)
    }

    /// Runs git in it, without lazy fetching and without anything that is configured for repositories.
    async fn run_git(&self, arguments: &[&str], input: &str) -> Result<CommandOutput, Failure> {
        let argv: Vec<OsString> = GIT_COMMAND.iter().chain(arguments).map(OsString::from).collect();
        let env = &[("GIT_NO_LAZY_FETCH", "1"), ("LC_ALL", "C")];
        let output =
            run_program(ProgramCall { argv, folder: self.directory.path(), env, input: input.into(), tail: None })
                .await;
        output.map_err(|error| match error {
            LaunchError::Failed(failure) => failure,
            LaunchError::Missing => Failure::new(ExitStatus::Error, "missing_command", "there is no git on your PATH"),
        })
    }
}

/// Git without hooks, maintenance and reflogs, for a short-lived repository. Single objects are requested without
/// negotiation, as git itself does.
const GIT_COMMAND: [&str; 13] = [
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
const FETCH_ARGS: [&str; 5] = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];

/// Returns the URL of the remote, without contacting it.
async fn remote_address(invocation: &Invocation<'_>, query: RemoteQuery<'_>) -> Result<String, Failure> {
    let runnerd = daemon_program();
    let folder = invocation.resolve_local(query.path)?;
    let is_name =
        !query.remote.contains(['/', ':']) && !invocation.resolve_local(Some(query.remote.as_ref()))?.is_dir();
    let local = folder.display().to_string();
    let path = invocation.resolve_local(Some(query.remote.as_ref()))?;
    let target = if path.is_dir() { path.display().to_string() } else { query.remote.to_owned() };
    let (place, remote) = if is_name { (local, query.remote) } else { (target, "origin") };
    let run_start = RunStart { runnerd: &runnerd, repository: &place, remote, run: "any", goal: None };
    let address = run_start.remote_address(&invocation.resolve_local(None)?).await;
    address
        .map_err(|failure| failure.hint("git remote -v lists the remotes of a repository; an address will do as well"))
}

fn no_runs_failure(url: &str, run: Option<&str>) -> Failure {
    let what = run.map_or_else(|| "no run".to_owned(), |run| format!("no run {run}"));
    let failure = Failure::new(ExitStatus::Error, "not_found", format!("{url} has {what}"));
    match run {
        Some(_) => failure.hint("runnerctl status --remote REMOTE lists the existing ones"),
        None => failure.hint("`runnerd drive` and `runnerctl submit` publish runs to a remote"),
    }
}
