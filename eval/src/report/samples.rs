//! Sample results for tests.

use std::collections::BTreeMap;

use protocol::state::UsageTotal;

use crate::outcome::{Outcome, is_met};
use crate::results::{CheckResult, ChecksFile, Digests, ResultEntry, ResultMeta, RunFacts, Versions};

pub(crate) fn sample_facts(iterations: u64, attempts: u64) -> RunFacts {
    RunFacts {
        id: "a".into(),
        state: "completed".into(),
        iterations,
        attempts,
        leaves_passed: 1,
        leaves_total: 1,
        verdicts: BTreeMap::from([("Accepted".into(), iterations)]),
        usage: UsageTotal::default(),
        elapsed_ms: 900,
        wall_ms: 1500,
        tip: None,
    }
}

pub(crate) fn sample_entry(case: &str, outcome: Outcome) -> ResultEntry {
    let failed = u32::from(outcome == Outcome::Fail);
    let time = "2026-01-01T12:00:00Z".parse().expect("a time");
    let meta = ResultMeta {
        schema: "runner/eval-meta.v1".into(),
        case: case.into(),
        result: "r".into(),
        outcome,
        expected: Outcome::Success,
        met: is_met(outcome, Outcome::Success, failed as usize),
        reason: (outcome != Outcome::Success).then(|| format!("it is {outcome}")),
        label: None,
        started_at: time,
        ended_at: time,
        duration_ms: 2000,
        executor: "script".into(),
        model: None,
        agent: None,
        run: (outcome != Outcome::Skipped).then(|| sample_facts(2, 1)),
        checks_passed: 1,
        checks_failed: failed,
        containment: "walk".into(),
        versions: Versions::default(),
        digests: Digests { case: "case".into(), ..Digests::default() },
        evidence: Vec::new(),
    };
    let check = |name: &str, passed| CheckResult {
        name: name.into(),
        kind: "file_exists".into(),
        passed,
        detail: None,
        stdout: None,
        stderr: None,
        duration_ms: 1,
    };
    let checks = vec![check("a exists", true), check("b exists", failed == 0)];
    ResultEntry { meta, checks: Some(ChecksFile { schema: "runner/eval-checks.v1".into(), checks }) }
}
