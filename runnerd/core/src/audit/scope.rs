//! Checks that no iteration changes a path outside of the scope of its run. A person's commit may.

use protocol::verify::AuditRule;
use runner_config::ChangePolicy;

use super::findings::AuditFindings;
use super::guard_definition::SessionDefinition;
use super::net_diff::NetDiff;
use super::ownership::describe_change;
use super::state::AuditedState;
use crate::fsck::is_like_runner_path;
use crate::scope::Scope;
use crate::verdict::{SessionRule, Verdict};

/// An iteration to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScopeAudit<'a> {
    /// The state at From.
    pub from: &'a AuditedState<'a>,
    /// Net difference between From and the iteration.
    pub net: &'a NetDiff,
    /// Paths that were restored.
    pub reverted: &'a [String],
    /// What a person has accepted of the guard's definition.
    pub accepted: Option<&'a SessionDefinition>,
    /// The verdict in the receipt.
    pub verdict: &'a Verdict,
}

impl ScopeAudit<'_> {
    /// Checks every path that the iteration changes, and that a breach of the scope can have happened.
    pub(super) fn check(&self, findings: &mut AuditFindings) {
        let scope = Scope::new(&self.from.config);
        let is_breach = matches!(self.verdict, Verdict::Broken(breach) if breach.rule == SessionRule::Scope);
        if is_breach && scope.is_everything() {
            let expected = "no breach: everything is in the scope of the run";
            findings.add_violation(AuditRule::Verdict, "Runner-Verdict", expected, SessionRule::Scope.as_str());
        }
        let is_wrong = |path: &str| is_breach || !scope.contains(path) && !self.is_accepted(path);
        for (path, (old, new)) in self.net.code_paths() {
            let name = String::from_utf8_lossy(path);
            // What some file system takes for `.runner` is taken out.
            if is_wrong(&name) && !(is_like_runner_path(path) && new.is_none()) {
                let expected = "no change outside of the scope of the run";
                let found = describe_change(old.as_ref(), new.as_ref());
                findings.add_violation(AuditRule::Scope, &name, expected, &found);
            }
        }
    }

    /// Whether the runner has restored what a person has accepted of the guard's definition.
    fn is_accepted(&self, path: &str) -> bool {
        self.from.policy.on_change == ChangePolicy::Revert
            && self.reverted.iter().any(|reverted| reverted == path)
            && self.accepted.is_some_and(|accepted| accepted.is_restored(path, self.net))
    }
}
