//! Copies what is kept of a run out of its sandbox: facts, tree, run state, records, logs and the branch itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use protocol::api::VerifyApiClient as _;
use protocol::path::WirePath;
use protocol::request::VerifyParams;
use protocol::tree::{Node, TaskTree};
use protocol::verify::Severity;
use protocol::view::{IterationView, RunView};

use crate::drive::RunResult;
use crate::error::EvalError;
use crate::results::{RunFacts, write_durably};
use crate::sandbox::{SandboxDaemon, SandboxRepository};

/// State files of a run in its branch, and their names in a result.
const STATE_FILES: [(&str, &str); 2] =
    [(".runner/state/tree.json", "tree.json"), (".runner/state/run_state.json", "run_state.json")];

/// What a run's receipts say about the programs that made it.
#[derive(Debug, Default)]
pub(crate) struct MakerVersions {
    pub(crate) agent: Option<String>,
    pub(crate) prompts: Option<String>,
}

/// Copies files of a run into a result. Returns what could not be copied, since the rest is worth keeping.
pub(crate) async fn save_run(repository: &SandboxRepository, run: &str, result: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    let mut note_missing = |what: &str, saved: Result<(), EvalError>| {
        if let Err(fault) = saved {
            missing.push(format!("{what} is not kept: {fault}"));
        }
    };
    for (path, name) in STATE_FILES {
        let object = format!("runner/{run}:{path}");
        let shown = repository.git(&["show", &object]).await;
        note_missing(name, shown.and_then(|text| write_durably(&result.join(name), text.as_bytes())));
    }
    let bundle = result.join("branch.bundle").display().to_string();
    let branch = format!("runner/{run}");
    note_missing("the branch", repository.git(&["bundle", "create", "--quiet", &bundle, &branch]).await.map(drop));
    let records = result.join("records").display().to_string();
    note_missing("records", repository.client(&["--no-spawn", "export", run, &records]).await.map(drop));
    missing
}

/// Reads the receipts of a run.
pub(crate) async fn read_makers(repository: &SandboxRepository, run: &str) -> MakerVersions {
    let branch = format!("runner/{run}");
    let last_trailer = async |key: &str| {
        let format = format!("--format=%(trailers:key={key},valueonly)");
        let log = repository.git(&["log", "--first-parent", &format, &branch]).await.ok()?;
        log.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    };
    MakerVersions { agent: last_trailer("Runner-Agent").await, prompts: last_trailer("Runner-Version").await }
}

/// Audits the branch; the error is the first violation.
pub(crate) async fn audit_branch(
    daemon: &SandboxDaemon,
    repository: &SandboxRepository,
    run: &str,
) -> Result<(), String> {
    let params = VerifyParams {
        path: WirePath::from(repository.folder()),
        run: Some(run.to_owned()),
        since: None,
        signers: None,
        reviewers: None,
    };
    let report =
        daemon.connection().client().verify(params).await.map_err(|error| EvalError::from(error).to_string())?;
    let violations: Vec<_> = report.findings.iter().filter(|finding| finding.severity == Severity::Violation).collect();
    let Some(first) = violations.first() else { return Ok(()) };
    Err(format!(
        "{} violations, the first of {} in {}: {}: expected {}, found {}",
        violations.len(),
        first.rule,
        first.commit,
        first.at,
        first.expected,
        first.found
    ))
}

/// Builds the facts of a run from its last known status.
pub(crate) fn collect_facts(
    run: &RunView,
    run_result: &RunResult,
    tree: Option<&TaskTree>,
    tip: Option<String>,
) -> RunFacts {
    RunFacts {
        id: run.summary.id.clone(),
        state: run.summary.state.to_string(),
        iterations: run_result.iterations.iter().filter(|iteration| iteration.wait.is_none()).count() as u64,
        attempts: tree.map_or(0, |tree| count_attempts(&tree.root)),
        leaves_passed: run.leaves_passed,
        leaves_total: run.leaves_total,
        verdicts: count_verdicts(&run_result.iterations),
        usage: run.usage.clone(),
        elapsed_ms: run.elapsed_ms,
        wall_ms: to_millis(run_result.wall),
        tip,
    }
}

/// Reads the task tree at the tip of a run.
pub(crate) async fn read_tree(repository: &SandboxRepository, run: &str) -> Option<TaskTree> {
    let text = repository.git(&["show", &format!("runner/{run}:{}", STATE_FILES[0].0)]).await.ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns the tip commit of a run.
pub(crate) async fn find_tip(repository: &SandboxRepository, run: &str) -> Option<String> {
    let text = repository.git(&["rev-parse", "--verify", &format!("runner/{run}")]).await.ok()?;
    Some(text.trim().to_owned())
}

fn count_attempts(node: &Node) -> u64 {
    u64::from(node.attempts) + node.children.iter().map(count_attempts).sum::<u64>()
}

fn count_verdicts(iterations: &[IterationView]) -> BTreeMap<String, u64> {
    iterations.iter().fold(BTreeMap::new(), |mut counts, iteration| {
        *counts.entry(iteration.verdict.to_string()).or_default() += 1;
        counts
    })
}

fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
