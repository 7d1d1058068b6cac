//! What a git server spends on a clone and on a push, in processor time, measured on this machine with git itself.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::publish::processor_time;
use crate::samples::Samples;

/// Number of pushes and clones that are measured.
const ROUNDS: usize = 9;
/// Size of the cloned repository, in MiB.
pub(super) const CLONED_MIB: u32 = 64;

/// Measures what a clone of [`CLONED_MIB`] costs the server.
pub(super) fn measure_clone(folder: &Path) -> anyhow::Result<Duration> {
    let mut bytes = vec![0; (CLONED_MIB << 20) as usize];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    let mut stream = format!("blob\nmark :1\ndata {}\n", bytes.len()).into_bytes();
    stream.append(&mut bytes);
    stream.extend(b"\ncommit refs/heads/main\ncommitter a <a@e> 1 +0000\ndata 1\nx\nM 100644 :1 file\n");
    create_repository(folder, &stream)?;
    let mut costs = Samples::default();
    for _ in 0..ROUNDS {
        // What a server does for a clone: it packs objects that are packed already.
        costs.add(measure_cost(|| {
            run_git(folder, &["pack-objects", "--all", "--stdout", "-q", "--delta-base-offset"], b"")
        })?);
    }
    Ok(costs.median())
}

/// Measures a push of an iteration to a server with the given number of references; the pushing client is included.
pub(super) fn measure_push(folder: &Path, refs: u32) -> anyhow::Result<Duration> {
    let server = folder.join("server.git");
    let local = folder.join("here.git");
    let mut stream =
        b"commit refs/heads/main\nmark :1\ncommitter a <a@e> 1 +0000\ndata 1\nx\nM 100644 inline f\ndata 1\nx\n"
            .to_vec();
    stream.extend((1..refs).flat_map(|run| format!("reset refs/heads/runner/r{run}\nfrom :1\n\n").into_bytes()));
    create_repository(&server, &stream)?;
    run_git(&server, &["pack-refs", "--all"], b"")?;
    let url = format!("file://{}", server.display());
    run_git(folder, &["clone", "-q", "--bare", "--single-branch", "--branch=main", &url, "here.git"], b"")?;
    let mut costs = Samples::default();
    for round in 0..ROUNDS {
        commit_iteration(&local, round)?;
        costs.add(measure_cost(|| run_git(&local, &["push", "-q", &url, "refs/heads/runner/pushed"], b""))?);
    }
    Ok(costs.median())
}

/// Creates the commit of one iteration: nine objects.
fn commit_iteration(local: &Path, round: usize) -> anyhow::Result<()> {
    let files = [".runner/state/tree.json", ".runner/state/run_state.json", ".runner/state/progress.md", "src/work"];
    let parent = if round == 0 { "refs/heads/main" } else { "refs/heads/runner/pushed" };
    let mut stream =
        format!("commit refs/heads/runner/pushed\ncommitter a <a@e> 2 +0000\ndata 1\nx\nfrom {parent}^0\n");
    for file in files {
        let text = format!("{file} {round}");
        write!(stream, "M 100644 inline {file}\ndata {}\n{text}\n", text.len())?;
    }
    run_git(local, &["fast-import", "--quiet", "--force"], stream.as_bytes())
}

/// Returns the processor time of a piece of work, including the programs it starts.
fn measure_cost(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let before = processor_time();
    work()?;
    Ok(processor_time().saturating_sub(before))
}

/// Creates a bare repository from a `git fast-import` stream.
fn create_repository(folder: &Path, stream: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    run_git(folder, &["init", "-q", "--bare", "--initial-branch=main", "."], b"")?;
    run_git(folder, &["fast-import", "--quiet", "--force"], stream)
}

fn run_git(folder: &Path, args: &[&str], input: &[u8]) -> anyhow::Result<()> {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().context("running git")?;
    child.stdin.take().context("git has an input")?.write_all(input)?;
    let status = child.wait()?;
    ensure!(status.success(), "git {args:?} ended with {status}");
    Ok(())
}
