//! Performs the checks of a case on the result of a run. Commands are supervised, and limited in time and output.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use protocol::state::UsageTotal;
use protocol::words::RunStatus;
use tokio_util::sync::CancellationToken;

use crate::case::{CaseCheck, CheckRule, RunLimits};
use crate::digest::{copy_entry, list_files};
use crate::error::EvalError;
use crate::process::{CapturedOutput, ManagedProcess, ProcessEnd, ProcessSpec};
use crate::results::{CheckResult, RunFacts};

/// Bytes of a file in which a pattern is searched.
const MAX_MATCH_BYTES: u64 = 8 << 20;

/// Input of the checks.
#[derive(Debug)]
pub(crate) struct CheckContext<'a> {
    /// The work tree.
    pub(crate) folder: &'a Path,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) facts: &'a RunFacts,
    /// Result of auditing the branch, if a check requires it: nothing, or the first violation.
    pub(crate) audit: &'a Result<(), String>,
    pub(crate) stop: &'a CancellationToken,
}

/// Performs checks in order; stops early on interruption.
pub(crate) async fn perform_checks(
    checks: &[CaseCheck],
    context: &CheckContext<'_>,
) -> Result<Vec<CheckResult>, EvalError> {
    let mut results = Vec::new();
    for check in checks {
        let began = Instant::now();
        let observation = context.perform_check(&check.rule).await;
        if context.stop.is_cancelled() {
            return Err(EvalError::interrupted());
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        results.push(CheckResult {
            name: check.name.clone(),
            kind: check.rule.kind().into(),
            passed: observation.fault.is_none(),
            detail: observation.fault,
            stdout: observation.output.as_ref().map(|output| text(&output.stdout)),
            stderr: observation.output.as_ref().map(|output| text(&output.stderr)),
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }
    Ok(results)
}

/// Result of one check; it holds if there is no fault.
struct CheckObservation {
    fault: Option<String>,
    output: Option<CapturedOutput>,
}

impl CheckObservation {
    fn from_result(result: Result<(), String>) -> Self {
        Self { fault: result.err(), output: None }
    }
}

impl CheckContext<'_> {
    async fn perform_check(&self, rule: &CheckRule) -> CheckObservation {
        match rule {
            CheckRule::FileExists { path } => CheckObservation::from_result(self.check_exists(path)),
            CheckRule::FileMatches { path, pattern } => {
                CheckObservation::from_result(self.check_matches(path, pattern))
            }
            CheckRule::CommandSucceeds { cmd, seconds, overlay } => {
                let overlaid = overlay.as_deref().map_or(Ok(()), |overlay| overlay_files(overlay, self.folder));
                match overlaid {
                    Ok(()) => self.check_command(cmd, Duration::from_secs(*seconds)).await,
                    Err(fault) => CheckObservation::from_result(Err(fault.to_string())),
                }
            }
            CheckRule::RunnerCompleted => {
                let state = &self.facts.state;
                CheckObservation::from_result(if state == RunStatus::Completed.as_str() {
                    Ok(())
                } else {
                    Err(format!("the run is {state}"))
                })
            }
            CheckRule::BranchVerifies => CheckObservation::from_result(self.audit.clone()),
            CheckRule::AtMost(ceilings) => CheckObservation::from_result(check_limits(ceilings, self.facts)),
        }
    }

    fn check_exists(&self, path: &str) -> Result<(), String> {
        if self.folder.join(path).exists() { Ok(()) } else { Err(format!("there is no {path}")) }
    }

    fn check_matches(&self, path: &str, pattern: &str) -> Result<(), String> {
        let file = self.folder.join(path);
        // Reading anything but a regular file might never end.
        if !file.is_file() {
            return Err(format!("there is no file {path}"));
        }
        let mut bytes = Vec::new();
        let read = fs::File::open(&file).and_then(|file| file.take(MAX_MATCH_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| format!("reading {path}: {error}"))?;
        let pattern = regex::bytes::RegexBuilder::new(pattern).multi_line(true).build();
        let pattern = pattern.map_err(|error| error.to_string())?;
        if pattern.is_match(&bytes) { Ok(()) } else { Err(format!("nothing in {path} matches")) }
    }

    async fn check_command(&self, cmd: &[String], limit: Duration) -> CheckObservation {
        let (program, arguments) = cmd.split_first().expect("BUG: a command without a program is refused before");
        let spec = ProcessSpec {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            folder: self.folder,
            env: self.env,
            grace: Duration::ZERO,
            isolated: true,
        };
        let output = match ManagedProcess::start(&spec) {
            Ok(held) => held.capture_output(limit, self.stop).await,
            Err(fault) => return CheckObservation::from_result(Err(fault.to_string())),
        };
        let fault = match output.ended {
            ProcessEnd::Exited(0) => None,
            ProcessEnd::Exited(code) => Some(format!("exit code {code}")),
            ProcessEnd::TimedOut => Some(format!("ended after {} s", limit.as_secs())),
            ProcessEnd::Stopped => Some("interrupted".into()),
            ProcessEnd::SupervisorLost => Some("it killed its supervisor, and was ended".into()),
        };
        CheckObservation { fault, output: Some(output) }
    }
}

/// Copies the files of a folder over what the run has left. Symbolic links are not followed: a session may have created
/// one that leads out of the work tree.
fn overlay_files(overlay: &Path, folder: &Path) -> Result<(), EvalError> {
    for file in list_files(overlay)? {
        let below = file.strip_prefix(overlay).unwrap_or(&file);
        let mut target = folder.to_owned();
        let parts: Vec<_> = below.components().collect();
        for (part, remaining) in parts.iter().zip((0..parts.len()).rev()) {
            target.push(part);
            let is_dir = target.symlink_metadata().ok().map(|found| found.is_dir());
            let cleared = match is_dir {
                Some(true) if remaining > 0 => Ok(()),
                Some(true) => fs::remove_dir_all(&target),
                Some(false) => fs::remove_file(&target),
                None => Ok(()),
            };
            let result = cleared.and_then(|()| match (remaining, is_dir) {
                (0, _) => copy_entry(&file, &target),
                (_, Some(true)) => Ok(()),
                _ => fs::create_dir(&target),
            });
            result.map_err(|error| EvalError::file("laying over", &target, &error))?;
        }
    }
    Ok(())
}

fn check_limits(ceilings: &RunLimits, facts: &RunFacts) -> Result<(), String> {
    let check_limit = |ceiling: Option<u64>, found: u64, what: &str| match ceiling {
        Some(most) if found > most => Err(format!("{found} {what}, at most {most}")),
        _ => Ok(()),
    };
    check_limit(ceilings.iterations, facts.iterations, "iterations")?;
    check_limit(ceilings.attempts, facts.attempts, "attempts")?;
    check_limit(ceilings.seconds, facts.wall_ms.div_ceil(1000), "seconds")?;
    if let Some(most) = ceilings.tokens {
        check_limit(Some(most), total_tokens(&facts.usage)?, "tokens")?;
    }
    let Some(most) = ceilings.cost_usd else { return Ok(()) };
    match facts.usage.cost_micro_usd {
        Some(_) if facts.usage.cost_unknown > 0 => {
            Err(format!("the cost of {} sessions is not known", facts.usage.cost_unknown))
        }
        Some(cost) if to_dollars(cost) > most => Err(format!("${:.4}, at most ${most}", to_dollars(cost))),
        Some(_) => Ok(()),
        None => Err("the cost is not known".into()),
    }
}

fn total_tokens(usage: &UsageTotal) -> Result<u64, String> {
    if usage.tokens_unknown > 0 {
        return Err(format!("the tokens of {} sessions are not known", usage.tokens_unknown));
    }
    let read = usage.input_tokens.zip(usage.output_tokens);
    let (read, written) = read.ok_or("the number of tokens is not known")?;
    Ok(read + usage.cached_tokens.unwrap_or(0) + written)
}

#[expect(clippy::cast_precision_loss, reason = "dollars are shown and compared with a few digits")]
fn to_dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::sample_facts;

    #[test]
    fn a_ceiling_names_what_was_found() {
        let facts = sample_facts(5, 2);
        let at = |ceilings: RunLimits| check_limits(&ceilings, &facts);
        assert_eq!(at(RunLimits { iterations: Some(5), attempts: Some(2), ..RunLimits::default() }), Ok(()));
        assert_eq!(
            at(RunLimits { iterations: Some(4), ..RunLimits::default() }),
            Err("5 iterations, at most 4".into())
        );
        assert_eq!(at(RunLimits { attempts: Some(1), ..RunLimits::default() }), Err("2 attempts, at most 1".into()));
    }

    #[test]
    fn tokens_count_where_all_sessions_have_told_them() {
        let mut facts = sample_facts(1, 1);
        let most = RunLimits { tokens: Some(100), ..RunLimits::default() };
        assert_eq!(check_limits(&most, &facts), Err("the number of tokens is not known".into()));
        (facts.usage.input_tokens, facts.usage.cached_tokens, facts.usage.output_tokens) =
            (Some(60), Some(30), Some(10));
        assert_eq!(check_limits(&most, &facts), Ok(()));
        facts.usage.output_tokens = Some(11);
        assert_eq!(check_limits(&most, &facts), Err("101 tokens, at most 100".into()));
        facts.usage.tokens_unknown = 2;
        assert_eq!(check_limits(&most, &facts), Err("the tokens of 2 sessions are not known".into()));
    }

    #[test]
    fn a_cost_that_is_not_known_is_never_within_a_ceiling() {
        let mut facts = sample_facts(1, 1);
        let most = RunLimits { cost_usd: Some(1.0), ..RunLimits::default() };
        assert_eq!(check_limits(&most, &facts), Err("the cost is not known".into()));
        facts.usage.cost_micro_usd = Some(500_000);
        assert_eq!(check_limits(&most, &facts), Ok(()));
        facts.usage.cost_unknown = 1;
        assert!(check_limits(&most, &facts).is_err());
    }
}
