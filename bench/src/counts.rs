//! Instruction counts of parts of the product, measured by callgrind and compared with checked-in values, and the size
//! of the client.
//!
//! Instruction counts do not depend on load, so CI can enforce them. They depend on compiler and libraries: the
//! checked-in values are those of the development profile, and a tolerance applies.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use protocol::state::{Feedback, RunState};
use protocol::test_record::TestRecord;
use protocol::words::Role;
use runner_config::RepoConfig;
use runner_core::prompt::{self, MemoryFiles, PromptInput};
use runner_core::scope::Scope;
use runner_testkit::{Home, binary};

use crate::report::Report;
use crate::{fixture, tree};

/// How far a count may exceed the checked-in value, in percent.
const TOLERANCE: u64 = 5;
const NODES: u32 = 2_000;
/// Size budget of a released client, in MiB.
const CLIENT_MIB: f64 = 6.0;
const MIB: f64 = 1024.0 * 1024.0;

/// What is done with the counts.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CountsArgs {
    /// Writes the counts into the file that they are compared with.
    #[arg(long)]
    renew: bool,
    /// The client whose size is held to its budget: `cargo build --profile dist-client --package runnerctl`.
    #[arg(long, value_name = "FILE")]
    client: Option<PathBuf>,
    /// Does one piece of work and nothing else: for callgrind.
    #[arg(long, hide = true)]
    work: Option<CountedWork>,
}

/// Work of the pure core, each piece in its own function, whose instructions callgrind counts.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CountedWork {
    /// A task tree read, validated, advanced and written.
    Tree,
    /// The prompt of a leaf of that tree.
    Prompt,
}

/// Counts everything, then compares with the checked-in values or rewrites them.
pub(crate) fn measure(args: &CountsArgs, report: &mut Report) -> anyhow::Result<()> {
    if let Some(piece) = args.work {
        piece.work();
        return Ok(());
    }
    ensure!(
        Command::new("valgrind").arg("--version").output().is_ok(),
        "valgrind is missing: apt-get install valgrind"
    );
    if let Some(client) = &args.client {
        check_size(fs::metadata(client).with_context(|| format!("reading {}", client.display()))?.len(), report)?;
    }
    let folder = tempfile::tempdir()?;
    let counts = BTreeMap::from([
        ("runner_core: task tree of 2,000 nodes".to_owned(), CountedWork::Tree.count_instructions(folder.path())?),
        ("runner_core: prompt of its next leaf".to_owned(), CountedWork::Prompt.count_instructions(folder.path())?),
        ("runnerctl: status, whole process".to_owned(), count_status(folder.path())?),
        ("runnerctl: --version, whole process".to_owned(), count_version(folder.path())?),
    ]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.json");
    if args.renew {
        fs::write(&file, serde_json::to_string_pretty(&counts)? + "\n")?;
    }
    let known = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    compare_counts(&counts, &serde_json::from_str(&known)?, report)
}

#[expect(clippy::cast_precision_loss, reason = "a size in MiB is shown")]
fn check_size(bytes: u64, report: &mut Report) -> anyhow::Result<()> {
    let size = bytes as f64 / MIB;
    report.group("sizes").add_number("runnerctl, as a release has it", size, "MiB", Some(CLIENT_MIB));
    ensure!(size <= CLIENT_MIB, "runnerctl is {size:.2} MiB, over its budget of {CLIENT_MIB} MiB");
    Ok(())
}

/// Adds each count, and fails if one exceeds its checked-in value by more than the tolerance.
fn compare_counts(
    counts: &BTreeMap<String, u64>,
    known: &BTreeMap<String, u64>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut group = report.group("instructions");
    let mut exceeded = Vec::new();
    for (what, count) in counts {
        let known = *known.get(what).with_context(|| format!("no count is checked in of: {what}"))?;
        let percent = percent_change(*count, known);
        group.add(what, format!("{count} ({percent:+.1} % of {known})"));
        if count * 100 > known * (100 + TOLERANCE) {
            exceeded.push(format!("{what}: {known} before, {count} now ({percent:+.1} %)"));
        }
    }
    ensure!(
        exceeded.is_empty(),
        "more instructions than before:\n{}\nIf they are worth it: cargo run --package runner-bench -- counts --renew",
        exceeded.join("\n")
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a share in percent is shown")]
fn percent_change(now: u64, before: u64) -> f64 {
    (now as f64 / before as f64 - 1.0) * 100.0
}

impl CountedWork {
    fn work(self) {
        match self {
            Self::Tree => drop(tree::step(&tree::canonical_text(NODES))),
            Self::Prompt => drop(leafs_prompt(&fixture::build_tree(NODES))),
        }
    }

    /// Counts the piece in a separate process under callgrind.
    fn count_instructions(self, folder: &Path) -> anyhow::Result<u64> {
        let (name, function) = match self {
            Self::Tree => ("tree", "runner_bench::tree::step*"),
            Self::Prompt => ("prompt", "runner_bench::counts::leafs_prompt*"),
        };
        let mut command = callgrind_command(&folder.join(name), &[&format!("--toggle-collect={function}")]);
        command.arg(std::env::current_exe()?).args(["counts", "--work", name]);
        collect_total(command, &folder.join(name))
    }
}

/// Builds a prompt that must be cut to its budget.
#[inline(never)]
fn leafs_prompt(tree: &protocol::tree::TaskTree) -> String {
    let input = PromptInput {
        tree,
        node: "part-1111",
        role: Role::Worker,
        narrowing: false,
        mode_strict: false,
        goal_body: &"The whole is to be reached.\n".repeat(500),
        instructions: &[],
        inherited: &[],
        scope: Scope::new(&RepoConfig::default()),
        run_state: &RunState::default(),
        feedback: &Feedback::default(),
        notes: Vec::new(),
        guard_notice: None,
        budget_ms: 3_600_000,
        tests: &TestRecord::default(),
        guard_command: &["just".to_owned(), "ci".to_owned()],
        progress: &"- part-1: Part 1 is done.\n".repeat(1_000),
        memory: MemoryFiles { guardrails: &"- Mind the gap.\n".repeat(500), ..MemoryFiles::default() },
        node_context: None,
        own_template: None,
        review: None,
        budget_bytes: 40 * 1024,
    };
    prompt::build_prompt(&input).text
}

/// Counts a whole `runnerctl status` in an idle repository.
fn count_status(folder: &Path) -> anyhow::Result<u64> {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let _daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--queue-only", "--yes", "--id", "it", "-m", "Do it"]).exits(0);
    let out = folder.join("status");
    let mut command = callgrind_command(&out, &[]);
    command.env_clear().envs(home.env().iter().cloned()).current_dir(repo.path());
    command.arg(binary("runnerctl")).args(["--no-spawn", "status"]);
    collect_total(command, &out)
}

/// Counts startup and exit of the program.
fn count_version(folder: &Path) -> anyhow::Result<u64> {
    let out = folder.join("version");
    let mut command = callgrind_command(&out, &[]);
    command.env_clear().arg(binary("runnerctl")).arg("--version");
    collect_total(command, &out)
}

fn callgrind_command(out: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--quiet"]).args(options);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command
}

/// Runs a command under callgrind and returns the instructions it counted.
fn collect_total(mut command: Command, out: &PathBuf) -> anyhow::Result<u64> {
    let output = command.output().context("starting valgrind")?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(out).with_context(|| format!("reading {}", out.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    match total.and_then(|total| total.trim().parse().ok()) {
        Some(0) | None => bail!("callgrind has counted nothing in {command:?}"),
        Some(total) => Ok(total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;

    fn counts(count: u64) -> BTreeMap<String, u64> {
        BTreeMap::from([("work".to_owned(), count)])
    }

    fn compare_one(now: u64, known: u64) -> anyhow::Result<()> {
        compare_counts(&counts(now), &counts(known), &mut Report::new(machine::describe_machine(), true))
    }

    #[test]
    fn a_client_of_more_than_its_budget_fails() {
        let check = |bytes| check_size(bytes, &mut Report::new(machine::describe_machine(), true));
        check(6 << 20).unwrap();
        let error = check((6 << 20) + (1 << 14)).unwrap_err().to_string();
        assert_eq!(error, "runnerctl is 6.02 MiB, over its budget of 6 MiB");
    }

    #[test]
    fn a_count_within_the_tolerance_or_below_is_fine() {
        compare_one(1_050, 1_000).unwrap();
        compare_one(10, 1_000).unwrap();
    }

    #[test]
    fn a_count_beyond_the_tolerance_fails_and_says_how_to_renew_it() {
        let error = compare_one(1_051, 1_000).unwrap_err().to_string();
        assert!(error.contains("work: 1000 before, 1051 now (+5.1 %)"), "{error}");
        assert!(error.contains("counts --renew"), "{error}");
    }
}
