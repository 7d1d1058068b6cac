//! `list`: lists the cases, including invalid ones, with their results so far.

use std::collections::BTreeMap;

use protocol::error::ExitStatus;
use protocol::sanitize::sanitize;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::print_answer;
use crate::args::GlobalOptions;
use crate::case::Case;
use crate::case::find::EvalDirs;
use crate::dry_run::DryRun;
use crate::error::EvalError;
use crate::outcome::Outcome;
use crate::plan::{CaseOverrides, find_missing, plan_run};
use crate::progress::RunProgress;
use crate::report::text::format_table;
use crate::results::ResultStore;
use crate::sandbox::{HostEnv, TestedPrograms};

/// The answer of `list`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalCases")]
pub(crate) struct ListReply {
    /// `runner/eval-cases.v1`.
    pub(crate) schema: &'static str,
    /// By id.
    pub(crate) cases: Vec<Listed>,
}

/// A case file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listed {
    /// Its name.
    pub(crate) case: String,
    /// Why it cannot be used, where that is so; the rest is unknown then.
    pub(crate) broken: Option<String>,
    /// First line of its goal.
    pub(crate) goal: Option<String>,
    /// Kind of its agent.
    pub(crate) agent: Option<String>,
    /// How a run is expected to come out.
    pub(crate) expected: Option<Outcome>,
    /// What this machine lacks, so that a run is skipped.
    pub(crate) lacks: Option<String>,
    /// Results that there are.
    pub(crate) results: u64,
    /// How the last one came out.
    pub(crate) last: Option<Outcome>,
}

/// Runs the command.
pub(super) async fn run(global: &GlobalOptions, places: &EvalDirs) -> Result<ExitStatus, EvalError> {
    let store = ResultStore::new(&places.results);
    let host_env = HostEnv::from_env();
    let found = places.load_all()?;
    let refusals = find_refused_configs(global, &found, &host_env).await;
    let mut cases = Vec::new();
    for (name, case) in found {
        let results = store.read_results(&name)?;
        let mut listed = match case.as_ref().map(|case| (case, refusals.get(&name))) {
            Ok((case, None)) => describe_case(case, &host_env),
            Ok((_, Some(fault))) | Err(fault) => Listed { broken: Some(fault.to_string()), ..empty_row() },
        };
        listed.results = results.len() as u64;
        listed.last = results.last().map(|entry| entry.meta.outcome);
        listed.case = name;
        cases.push(listed);
    }
    let cases = ListReply { schema: "runner/eval-cases.v1", cases };
    print_answer(global, &cases, || render_text(&cases))?;
    Ok(ExitStatus::Success)
}

/// Returns what the daemon rejects in the configurations, by case; empty, with a message, if it cannot be queried.
async fn find_refused_configs(
    global: &GlobalOptions,
    found: &BTreeMap<String, Result<Case, EvalError>>,
    host_env: &HostEnv,
) -> BTreeMap<String, EvalError> {
    let planned: Vec<_> = found
        .iter()
        .filter_map(|(name, case)| Some((name, case.as_ref().ok()?)))
        .filter_map(|(name, case)| Some((name, case, plan_run(case, &CaseOverrides::default(), host_env).ok()?)))
        .collect();
    let cases: Vec<_> = planned.iter().map(|(_, case, plan)| (*case, plan)).collect();
    let checked = match TestedPrograms::find(global.bin_dir.as_deref(), host_env) {
        Ok(programs) => {
            DryRun { programs: &programs, host_env, stop: &CancellationToken::new() }.check_all(&cases).await
        }
        Err(fault) => Err(fault),
    };
    let checked = checked.unwrap_or_else(|fault| {
        RunProgress::new("list", global.quiet).print_line(&format!("configurations are not checked: {fault}"));
        Vec::new()
    });
    planned.iter().zip(checked).filter_map(|((name, ..), checked)| Some(((*name).clone(), checked.err()?))).collect()
}

fn empty_row() -> Listed {
    let case = String::new();
    Listed { case, broken: None, goal: None, agent: None, expected: None, lacks: None, results: 0, last: None }
}

fn describe_case(case: &Case, host_env: &HostEnv) -> Listed {
    let planned = plan_run(case, &CaseOverrides::default(), host_env);
    let first = case.goal.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    Listed {
        goal: first.map(str::to_owned),
        agent: planned.as_ref().ok().map(|plan| plan.executor.clone()),
        expected: Some(case.expect),
        lacks: planned.as_ref().ok().and_then(|plan| find_missing(case, plan, host_env)),
        broken: planned.err().map(|fault| format!("{}: {fault}", case.file.display())),
        ..empty_row()
    }
}

fn render_text(cases: &ListReply) -> String {
    let head = ["CASE", "AGENT", "EXPECTED", "RESULTS", "LAST", "GOAL"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for listed in &cases.cases {
        let goal = match (&listed.broken, &listed.lacks) {
            (Some(why), _) => format!("broken: {}", sanitize(why)),
            (None, Some(why)) => format!("would be skipped: {}", sanitize(why)),
            (None, None) => shorten_goal(&sanitize(listed.goal.as_deref().unwrap_or_default())),
        };
        let word = |outcome: Option<Outcome>| or_dash(outcome.map(|outcome| outcome.to_string()));
        let results = listed.results.to_string();
        lines.push(vec![
            listed.case.clone(),
            or_dash(listed.agent.clone()),
            word(listed.expected),
            results,
            word(listed.last),
            goal,
        ]);
    }
    format_table(&lines)
}

fn shorten_goal(goal: &str) -> String {
    if goal.chars().count() <= 60 { goal.to_owned() } else { goal.chars().take(59).chain(['…']).collect() }
}
