//! Who changed which file under `.runner/`: what an agent's session may leave there, and what it may not.

use protocol::verify::AuditRule;

use super::findings::Findings;
use super::link::Stored;
use super::net_diff::NetDiff;
use super::state::State;
use crate::layout::{self, Ownership, class};

/// The files that the runner writes when it settles: they are compared with what the rules lead to.
pub(super) const SETTLED: [&str; 4] = [layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::PROGRESS];

/// Checks what a session that began at `from` has left under `.runner/`; what `settled` names is the runner's to write,
/// and checked elsewhere.
pub(super) fn check(from: &State, net: &NetDiff, settled: &[&str], findings: &mut Findings) {
    for (path, (old, new)) in net.runners() {
        let is_settled = settled.contains(&path.as_ref());
        let (expected, is_right) = match (class(path.strip_prefix(".runner/").unwrap_or_default()), new) {
            (_, new) if is_settled => ("a file", new.as_ref().is_some_and(is_file)),
            // What is never tracked may have been, by whomever, and is taken out again.
            (Ownership::Agent, _) | (Ownership::Ignored, None) => continue,
            (Ownership::AppendOnly, Some(new)) if is_file(new) => {
                let (before, now) = (from.bytes(&path).unwrap_or_default(), new.content.as_deref().unwrap_or_default());
                ("what was there stays its beginning", now.starts_with(before))
            }
            (Ownership::AppendOnly | Ownership::Runner | Ownership::Ignored, _) => ("no change", false),
        };
        if !is_right {
            findings.violation(AuditRule::Owned, &path, (expected, &change(old.as_ref(), new.as_ref())));
        }
    }
}

/// Says in words what became of a file.
pub(super) fn change(old: Option<&Stored>, new: Option<&Stored>) -> String {
    match (old, new) {
        (None, Some(_)) => "it was added".to_owned(),
        (Some(_), None) => "it was removed".to_owned(),
        (_, Some(new)) if !is_file(new) => "it is no file any more".to_owned(),
        _ => "it was changed".to_owned(),
    }
}

fn is_file(stored: &Stored) -> bool {
    matches!(stored.mode, 0o100_644 | 0o100_755)
}
