//! What a commit of a run may change, by its kind: a table, applied to every commit made by the runner. Whether the new
//! content is right is checked with the kind, not here.
//!
//! A person's own commits and those made by sessions are not in the table: people's changes are judged together, and a
//! session's with its receipt.

use protocol::verify::AuditRule;

use super::commit_data::PathEntry;
use super::findings::AuditFindings;
use super::net_diff::NetDiff;
use super::state::RunnerFiles;
use crate::files::layout::{self, PathOwnership, path_ownership};
use crate::fsck::is_like_runner_path;

/// Files that the runner writes when it settles, which are compared with what the rules lead to.
const SETTLED: &[&str] = &[layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::PROGRESS, layout::TESTS];

/// A kind of commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitKind {
    /// The start of a run: what a person has prepared, and what the runner adds.
    Start,
    /// The start of a fork.
    Fork,
    /// The result of the guard on the base, with the files the guard wrote.
    Baseline,
    /// Counters reset or iterations granted.
    Resume,
    /// A change of the run's driver.
    Driver,
    /// An iteration, with what its session and its guard have left.
    Iteration,
    /// An iteration whose session or guard has rewritten history: everything is as before.
    Rewritten,
    /// An iteration for a person's decision that needed no guard.
    PersonReview,
    /// A commit made for a person, by a command that may change these files.
    Human(&'static [&'static str]),
}

/// What may change under `.runner/`.
enum FolderRule {
    /// Everything that a person may prepare.
    AnyPrepared,
    /// Everything that an agent may write, and these files.
    AgentPaths(&'static [&'static str]),
    /// Only these files.
    OnlyPaths(&'static [&'static str]),
}

/// A row of the table.
struct OwnershipRow {
    /// The rule that is broken by changing more.
    rule: AuditRule,
    /// Whether a path outside `.runner/` may change.
    may_change_code: bool,
    folder: FolderRule,
}

impl CommitKind {
    fn row(self) -> OwnershipRow {
        use AuditRule::{Milestone, Owned, Person, Verdict};
        use FolderRule::{AgentPaths, AnyPrepared, OnlyPaths};
        let (rule, code, folder) = match self {
            Self::Start => (Milestone, false, AnyPrepared),
            Self::Fork => (Milestone, false, OnlyPaths(&[layout::GOAL, layout::RUN_STATE])),
            Self::Baseline => (Owned, true, AgentPaths(&[layout::RUN_STATE, layout::FEEDBACK, layout::TESTS])),
            Self::Resume => (Milestone, false, OnlyPaths(&[layout::RUN_STATE])),
            Self::Driver => (Milestone, false, OnlyPaths(&[])),
            Self::Iteration => (Owned, true, AgentPaths(SETTLED)),
            Self::Rewritten => (Verdict, false, OnlyPaths(SETTLED)),
            Self::PersonReview => (Owned, false, OnlyPaths(SETTLED)),
            Self::Human(files) => (Person, false, OnlyPaths(files)),
        };
        OwnershipRow { rule, may_change_code: code, folder }
    }

    /// Whether it may remove paths that are never tracked, which someone may have committed: records, and what some
    /// file system takes for `.runner`.
    fn may_untrack(self) -> bool {
        !matches!(self, Self::Driver | Self::Human(_))
    }
}

/// Checks that a commit has changed, since `from`, only what its kind allows and the paths in `besides`.
pub(super) fn check(
    kind: CommitKind,
    besides: &[&str],
    from: &RunnerFiles,
    net: &NetDiff,
    findings: &mut AuditFindings,
) {
    let OwnershipRow { rule, may_change_code: code, folder } = kind.row();
    for (path, (old, new)) in net.code_paths() {
        let is_like = is_like_runner_path(path);
        let is_right = if is_like { new.is_none() && kind.may_untrack() } else { code };
        if !is_right {
            let expected = if is_like { "no name like .runner" } else { "no change outside .runner/" };
            let found = describe_change(old.as_ref(), new.as_ref());
            findings.add_violation(rule, &String::from_utf8_lossy(path), expected, &found);
        }
    }
    let (listed, is_open) = match folder {
        FolderRule::AnyPrepared => (&[][..], true),
        FolderRule::AgentPaths(listed) | FolderRule::OnlyPaths(listed) => (listed, false),
    };
    for (path, (old, new)) in net.runner_paths() {
        let is_listed = listed.iter().chain(besides).any(|listed| *listed == path);
        let (expected, is_right) = match (path_ownership(path.strip_prefix(".runner/").unwrap_or_default()), new) {
            (_, new) if is_listed => {
                ("a file that cannot be executed", new.as_ref().is_some_and(|new| has_own_mode(old.as_ref(), new)))
            }
            (PathOwnership::Ignored, None) if kind.may_untrack() => continue,
            (PathOwnership::Agent | PathOwnership::AppendOnly | PathOwnership::Runner, _) if is_open => continue,
            (PathOwnership::Agent, _) if matches!(folder, FolderRule::AgentPaths(_)) => continue,
            (PathOwnership::AppendOnly, Some(new))
                if matches!(folder, FolderRule::AgentPaths(_)) && has_own_mode(old.as_ref(), new) =>
            {
                let before = from.bytes(&path).unwrap_or_default();
                let now = new.content.as_deref().unwrap_or_default();
                ("what was there stays its beginning", now.starts_with(before))
            }
            (PathOwnership::Agent | PathOwnership::AppendOnly | PathOwnership::Runner | PathOwnership::Ignored, _) => {
                ("no change", false)
            }
        };
        if !is_right {
            findings.add_violation(rule, &path, expected, &describe_change(old.as_ref(), new.as_ref()));
        }
    }
}

/// Describes what happened to a file.
pub(super) fn describe_change(old: Option<&PathEntry>, new: Option<&PathEntry>) -> String {
    match (old, new) {
        (None, Some(_)) => "it was added".to_owned(),
        (Some(_), None) => "it was removed".to_owned(),
        (_, Some(new)) if !is_file(new) => "it is no file any more".to_owned(),
        (Some(old), Some(new)) if is_file(old) && old.mode != new.mode => "its mode was changed".to_owned(),
        _ => "it was changed".to_owned(),
    }
}

/// Whether this is a file that cannot be executed, unless it could before: the runner gives none that right.
pub(super) fn has_own_mode(old: Option<&PathEntry>, new: &PathEntry) -> bool {
    new.mode == 0o100_644 || is_file(new) && old.is_some_and(|old| old.mode == new.mode)
}

pub(super) fn is_file(stored: &PathEntry) -> bool {
    matches!(stored.mode, 0o100_644 | 0o100_755)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::commit_data::PathChange;

    const CODE: &str = "src/lib.rs";
    const CONTEXT: &str = ".runner/nodes/root/context.md";
    const RECORD: &str = ".runner/iterations/run-1/0001/meta.json";
    const LIKE_RUNNER: &str = ".RUNNER/state/config.toml";
    const TEMPLATE: &str = ".runner/prompts/worker.md";
    /// One path of each sort.
    const ALL: [&str; 13] = [
        CODE,
        layout::TREE,
        layout::RUN_STATE,
        layout::FEEDBACK,
        layout::PROGRESS,
        layout::TESTS,
        layout::ASSUMPTIONS,
        layout::CONFIG,
        layout::GOAL,
        CONTEXT,
        TEMPLATE,
        RECORD,
        LIKE_RUNNER,
    ];

    fn paths(kind: CommitKind, new: Option<&PathEntry>, old: Option<&PathEntry>) -> Vec<&'static str> {
        let is_right = |path: &&str| {
            let old = old.cloned();
            let new = new.cloned();
            let net = NetDiff::from_changes(&[PathChange { path: path.as_bytes().to_vec(), old, new }]);
            let mut findings = AuditFindings::default();
            check(kind, &[], &RunnerFiles::default(), &net, &mut findings);
            findings.into_findings().is_empty()
        };
        ALL.into_iter().filter(is_right).collect()
    }

    fn file(mode: u32) -> PathEntry {
        PathEntry { mode, id: "1".repeat(40), content: Some(b"text".as_slice().into()) }
    }

    /// Returns the paths at which a commit of this kind may create a file.
    fn allowed_paths(kind: CommitKind) -> Vec<&'static str> {
        paths(kind, Some(&file(0o100_644)), None)
    }

    fn removable_paths(kind: CommitKind) -> Vec<&'static str> {
        paths(kind, None, Some(&file(0o100_644)))
    }

    #[test]
    fn a_start_brings_what_was_prepared_under_runner() {
        let all: Vec<&str> = ALL.into_iter().filter(|path| ![CODE, RECORD, LIKE_RUNNER].contains(path)).collect();
        assert_eq!(allowed_paths(CommitKind::Start), all);
    }

    #[test]
    fn a_fork_changes_goal_and_bookkeeping() {
        assert_eq!(allowed_paths(CommitKind::Fork), [layout::RUN_STATE, layout::GOAL]);
    }

    #[test]
    fn a_baseline_has_what_the_guard_wrote() {
        let all =
            [CODE, layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::TESTS, layout::ASSUMPTIONS, CONTEXT];
        assert_eq!(allowed_paths(CommitKind::Baseline), all);
    }

    #[test]
    fn a_resume_changes_the_bookkeeping() {
        assert_eq!(allowed_paths(CommitKind::Resume), [layout::RUN_STATE]);
    }

    #[test]
    fn a_claim_and_a_release_change_nothing() {
        assert_eq!(allowed_paths(CommitKind::Driver), Vec::<&str>::new());
        assert_eq!(removable_paths(CommitKind::Driver), Vec::<&str>::new());
    }

    #[test]
    fn an_iteration_has_what_session_and_guard_left_and_what_is_settled() {
        let settled = [CODE, layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::PROGRESS, layout::TESTS];
        assert_eq!(allowed_paths(CommitKind::Iteration), [&settled[..], &[layout::ASSUMPTIONS, CONTEXT]].concat());
        assert_eq!(removable_paths(CommitKind::Iteration), [CODE, CONTEXT, RECORD, LIKE_RUNNER]);
    }

    #[test]
    fn after_rewritten_history_and_with_a_word_alone_nothing_but_what_is_settled_differs() {
        for kind in [CommitKind::Rewritten, CommitKind::PersonReview] {
            assert_eq!(allowed_paths(kind), SETTLED);
            assert_eq!(removable_paths(kind), [RECORD, LIKE_RUNNER]);
        }
    }

    #[test]
    fn a_persons_command_changes_its_file() {
        let note = CommitKind::Human(&[layout::GOAL]);
        assert_eq!(allowed_paths(note), [layout::GOAL]);
        assert_eq!(removable_paths(note), Vec::<&str>::new());
    }

    #[test]
    fn no_file_of_the_runners_becomes_executable() {
        let plain = file(0o100_644);
        let executable = file(0o100_755);
        let own = |kind| paths(kind, Some(&executable), Some(&plain));
        assert_eq!(own(CommitKind::Human(&[layout::NOTES, layout::CONFIG])), [""; 0]);
        assert_eq!(own(CommitKind::Iteration), [CODE, CONTEXT]);
        let before = PathEntry { id: "2".repeat(40), ..executable.clone() };
        assert!(paths(CommitKind::Iteration, Some(&executable), Some(&before)).contains(&layout::TREE));
    }

    #[test]
    fn what_the_runner_writes_is_a_file_and_memory_keeps_its_beginning() {
        let link = file(0o120_000);
        assert_eq!(paths(CommitKind::Iteration, Some(&link), None), [CODE, CONTEXT]);
        let mut findings = AuditFindings::default();
        let old = PathEntry { content: Some(b"longer".as_slice().into()), ..file(0o100_644) };
        let mut state = RunnerFiles::default();
        let change = |old: Option<PathEntry>, new| PathChange { path: layout::ASSUMPTIONS.into(), old, new };
        state.apply_changes(&[change(None, Some(old.clone()))], &crate::committed_state::StateFiles::default());
        let net = NetDiff::from_changes(&[change(Some(old), Some(file(0o100_755)))]);
        check(CommitKind::Iteration, &[], &state, &net, &mut findings);
        assert_eq!(findings.into_findings().len(), 1);
    }
}
