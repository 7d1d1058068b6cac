//! `list`: the cases, broken ones included, and what there is of each.

use std::collections::BTreeMap;

use protocol::error::ExitStatus;
use protocol::safe::safe;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::answer;
use crate::args::Global;
use crate::case::Case;
use crate::case::find::Places;
use crate::fault::Fault;
use crate::lab::{Programs, Surroundings};
use crate::outcome::Outcome;
use crate::plan::{Changes, lacks, plan};
use crate::progress::Progress;
use crate::rehearsal::Rehearsal;
use crate::report::text::table;
use crate::results::Store;

/// The answer of `list`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EvalCases")]
pub(crate) struct Cases {
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
pub(super) async fn run(global: &Global, places: &Places) -> Result<ExitStatus, Fault> {
    let (store, around) = (Store::at(&places.results), Surroundings::read());
    let found = places.all()?;
    let refused = refused(global, &found, &around).await;
    let mut cases = Vec::new();
    for (name, case) in found {
        let results = store.read(&name)?;
        let mut listed = match case.as_ref().map(|case| (case, refused.get(&name))) {
            Ok((case, None)) => described(case, &around),
            Ok((_, Some(fault))) | Err(fault) => Listed { broken: Some(fault.to_string()), ..nothing() },
        };
        listed.results = results.len() as u64;
        listed.last = results.last().map(|entry| entry.meta.outcome);
        listed.case = name;
        cases.push(listed);
    }
    let cases = Cases { schema: "runner/eval-cases.v1", cases };
    answer(global, &cases, || text(&cases))?;
    Ok(ExitStatus::Fine)
}

/// Returns what the daemon refuses of configurations, by case; nothing where it cannot be asked, which is told.
async fn refused(
    global: &Global,
    found: &BTreeMap<String, Result<Case, Fault>>,
    around: &Surroundings,
) -> BTreeMap<String, Fault> {
    let planned: Vec<_> = found
        .iter()
        .filter_map(|(name, case)| Some((name, case.as_ref().ok()?)))
        .filter_map(|(name, case)| Some((name, case, plan(case, &Changes::default(), around).ok()?)))
        .collect();
    let cases: Vec<_> = planned.iter().map(|(_, case, plan)| (*case, plan)).collect();
    let checked = match Programs::find(global.bin_dir.as_deref(), around) {
        Ok(programs) => Rehearsal { programs: &programs, around, stop: &CancellationToken::new() }.check(&cases).await,
        Err(fault) => Err(fault),
    };
    let checked = checked.unwrap_or_else(|fault| {
        Progress::new("list", global.quiet).say(&format!("configurations are not checked: {fault}"));
        Vec::new()
    });
    planned.iter().zip(checked).filter_map(|((name, ..), checked)| Some(((*name).clone(), checked.err()?))).collect()
}

fn nothing() -> Listed {
    let case = String::new();
    Listed { case, broken: None, goal: None, agent: None, expected: None, lacks: None, results: 0, last: None }
}

fn described(case: &Case, around: &Surroundings) -> Listed {
    let planned = plan(case, &Changes::default(), around);
    let first = case.goal.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    Listed {
        goal: first.map(str::to_owned),
        agent: planned.as_ref().ok().map(|plan| plan.executor.clone()),
        expected: Some(case.expect),
        lacks: planned.as_ref().ok().and_then(|plan| lacks(case, plan, around)),
        broken: planned.err().map(|fault| format!("{}: {fault}", case.file.display())),
        ..nothing()
    }
}

fn text(cases: &Cases) -> String {
    let head = ["CASE", "AGENT", "EXPECTED", "RESULTS", "LAST", "GOAL"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let or = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for listed in &cases.cases {
        let goal = match (&listed.broken, &listed.lacks) {
            (Some(why), _) => format!("broken: {}", safe(why)),
            (None, Some(why)) => format!("would be skipped: {}", safe(why)),
            (None, None) => shortened(&safe(listed.goal.as_deref().unwrap_or_default())),
        };
        let word = |outcome: Option<Outcome>| or(outcome.map(|outcome| outcome.to_string()));
        let results = listed.results.to_string();
        lines.push(vec![
            listed.case.clone(),
            or(listed.agent.clone()),
            word(listed.expected),
            results,
            word(listed.last),
            goal,
        ]);
    }
    table(&lines)
}

fn shortened(goal: &str) -> String {
    if goal.chars().count() <= 60 { goal.to_owned() } else { goal.chars().take(59).chain(['…']).collect() }
}
