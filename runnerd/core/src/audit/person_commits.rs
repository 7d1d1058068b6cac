//! Audits what people did to a run between two commits of the runner: all of it is listed, and anything not allowed is
//! reported.

use protocol::verify::{AuditRule, PersonCommit};
use runner_config::goal::Goal;

use super::commit_data::{CommitHeader, PathChange};
use super::compare;
use super::findings::AuditFindings;
use super::net_diff::NetDiff;
use super::ownership::{describe_change, has_own_mode, is_file};
use super::state::RunnerFiles;
use crate::files::layout;
use crate::files::layout::PathOwnership;
use crate::files::person_edit;
use crate::files::person_edit::ForbiddenChange;
use crate::message::{HumanCommit, MessageError};
use crate::text::fence;

/// Most paths named per commit.
const MAX_PATHS: usize = 20;
/// Most bytes of a subject.
const MAX_SUBJECT: usize = 200;
/// Fields of the run state that identify the run, its base and its progress.
const RUN_FIELDS: [&str; 3] = ["base", "next_iter", "run_id"];
/// The field that a person may write: what was accepted of the guard's definition.
const ACCEPTED_FIELD: &str = "guard_definition";

/// Returns the command named in a commit; `None` if git finds none in its message, as stored or as shown.
pub(super) fn parse_human_commit(header: &CommitHeader) -> Option<Result<HumanCommit, MessageError>> {
    let shown = || HumanCommit::parse_bytes(header.recoded.as_deref()?);
    HumanCommit::parse_bytes(&header.message).or_else(|| shown().map(|_| Err(MessageError::Encoding)))
}

/// Describes a person's commit.
pub(super) fn describe_commit(header: &CommitHeader, changes: &[PathChange]) -> PersonCommit {
    let message = String::from_utf8_lossy(&header.message);
    let path = |change: &PathChange| String::from_utf8_lossy(&change.path).into_owned();
    let (mut runners, others): (Vec<String>, Vec<String>) =
        changes.iter().map(path).partition(|path| path.starts_with(".runner/"));
    runners.truncate(MAX_PATHS);
    PersonCommit {
        commit: header.id.clone(),
        subject: fence::one_line(message.lines().next().unwrap_or_default(), MAX_SUBJECT),
        command: parse_human_commit(header).and_then(Result::ok).map(|human| human.command),
        runner_paths: runners,
        other_paths: u32::try_from(others.len()).unwrap_or(u32::MAX),
    }
}

/// Checks the net change of people's commits, from the runner's last commit to where a session begins.
pub(super) fn check(before: &RunnerFiles, after: &RunnerFiles, net: &NetDiff, findings: &mut AuditFindings) {
    // Without a changed file, no content can have changed.
    if net.runner_paths().next().is_none() {
        return;
    }
    if let (Some(old), Some(new)) = (before.tree(), after.tree())
        && let Err(forbidden) = person_edit::check_edit(old, new)
    {
        let rule = match forbidden {
            ForbiddenChange::SetToPass { .. } => AuditRule::Passes,
            ForbiddenChange::Passed { .. } | ForbiddenChange::Attempts { .. } => AuditRule::Person,
        };
        findings.add_violation(rule, layout::TREE, "what a person may change", &forbidden.to_string());
    }
    for (path, (old, new)) in net.runner_paths() {
        let is_runners = match layout::path_ownership(path.strip_prefix(".runner/").unwrap_or_default()) {
            PathOwnership::Runner | PathOwnership::AppendOnly => true,
            // In the place of the task tree, anything but a file is a violation.
            PathOwnership::Agent | PathOwnership::Ignored => path == layout::TREE && new.as_ref().is_some_and(is_file),
        };
        if is_runners && new.as_ref().is_some_and(|new| !has_own_mode(old.as_ref(), new)) {
            let found = describe_change(old.as_ref(), new.as_ref());
            findings.add_warning(AuditRule::Person, &path, "a file that cannot be executed", &found);
        }
    }
    let (Ok(old), Ok(new)) = (before.committed_state(), after.committed_state()) else { return };
    for (field, expected, found) in compare::differing_fields(&old.run_state, &new.run_state) {
        let at = format!("{}: {field}", layout::RUN_STATE);
        if RUN_FIELDS.contains(&field.as_str()) {
            findings.add_violation(AuditRule::Person, &at, &expected, &found);
        } else if field != ACCEPTED_FIELD {
            findings.add_warning(AuditRule::Person, &at, &expected, &found);
        }
    }
    if old.goal.id() != new.goal.id() {
        let id = |goal: &Goal| goal.id().unwrap_or("none").to_owned();
        // A person may want to begin another run there; an iteration of this one would not have begun.
        findings.add_warning(AuditRule::Person, "GOAL.md: id", &id(&old.goal), &id(&new.goal));
    }
    let runners = [layout::FEEDBACK, layout::TESTS, layout::PROGRESS, layout::SCHEMA, layout::ANSWER_SCHEMA];
    for (path, (old, new)) in net.runner_paths().filter(|(path, _)| runners.contains(&path.as_ref())) {
        findings.add_warning(
            AuditRule::Person,
            &path,
            "what the runner wrote",
            &describe_change(old.as_ref(), new.as_ref()),
        );
    }
}
