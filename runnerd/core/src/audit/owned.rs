//! What a commit of a run may change, by its kind: a table, asked of every commit that the runner has made. Whether what
//! stands there then is what the kind makes is looked at with the kind.
//!
//! A person's own commits, and those that sessions make themselves, are not in it: what people did is judged together, and
//! what a session did with its receipt.

use protocol::verify::AuditRule;

use super::findings::Findings;
use super::link::Stored;
use super::net_diff::NetDiff;
use super::state::State;
use crate::layout::{self, Ownership, class};

/// The files that the runner writes when it settles: they are compared with what the rules lead to.
const SETTLED: &[&str] = &[layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::PROGRESS];

/// A kind of commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The start of a run: what a person has prepared, and what the runner makes of it.
    Start,
    /// The start of a fork.
    Fork,
    /// The result of the guard on the base, with what the guard wrote.
    Baseline,
    /// Counters reset or iterations granted.
    Resume,
    /// Who drives the run.
    Driver,
    /// An iteration, with what its session and its guard have left.
    Iteration,
    /// An iteration whose session, or whose guard, has rewritten history: all is as it was.
    Rewritten,
    /// An iteration that stands for a person's word, and had no guard to ask.
    Word,
    /// A commit made for a person, by a command that is about these files.
    Human(&'static [&'static str]),
}

/// What may change under `.runner/`.
enum Folder {
    /// Whatever a person may prepare.
    Prepared,
    /// What an agent may write, and these.
    Agents(&'static [&'static str]),
    /// These alone.
    Only(&'static [&'static str]),
}

/// A row of the table.
struct Row {
    /// The rule that it breaks to change more.
    rule: AuditRule,
    /// Whether a path outside of `.runner/` may change.
    code: bool,
    folder: Folder,
}

impl Kind {
    fn row(self) -> Row {
        use AuditRule::{Milestone, Owned, Person, Verdict};
        use Folder::{Agents, Only, Prepared};
        let (rule, code, folder) = match self {
            Self::Start => (Milestone, false, Prepared),
            Self::Fork => (Milestone, false, Only(&[layout::GOAL, layout::RUN_STATE])),
            Self::Baseline => (Owned, true, Agents(&[layout::RUN_STATE, layout::FEEDBACK])),
            Self::Resume => (Milestone, false, Only(&[layout::RUN_STATE])),
            Self::Driver => (Milestone, false, Only(&[])),
            Self::Iteration => (Owned, true, Agents(SETTLED)),
            Self::Rewritten => (Verdict, false, Only(SETTLED)),
            Self::Word => (Owned, false, Only(SETTLED)),
            Self::Human(files) => (Person, false, Only(files)),
        };
        Row { rule, code, folder }
    }

    /// Whether it may take out again what is never tracked, which somebody may have committed.
    fn takes_out(self) -> bool {
        !matches!(self, Self::Driver | Self::Human(_))
    }
}

/// Checks what a commit has changed since `from`: nothing but what its kind may change, and `besides`.
pub(super) fn check((kind, besides): (Kind, &[&str]), (from, net): (&State, &NetDiff), findings: &mut Findings) {
    let Row { rule, code, folder } = kind.row();
    for path in net.code().filter(|_| !code) {
        let at = String::from_utf8_lossy(path);
        findings.violation(rule, &at, ("no change outside .runner/", "a change"));
    }
    let (listed, is_open) = match folder {
        Folder::Prepared => (&[][..], true),
        Folder::Agents(listed) | Folder::Only(listed) => (listed, false),
    };
    for (path, (old, new)) in net.runners() {
        let is_listed = listed.iter().chain(besides).any(|listed| *listed == path);
        let (expected, is_right) = match (class(path.strip_prefix(".runner/").unwrap_or_default()), new) {
            (_, new) if is_listed => ("a file", new.as_ref().is_some_and(is_file)),
            (Ownership::Ignored, None) if kind.takes_out() => continue,
            (Ownership::Agent | Ownership::AppendOnly | Ownership::Runner, _) if is_open => continue,
            (Ownership::Agent, _) if matches!(folder, Folder::Agents(_)) => continue,
            (Ownership::AppendOnly, Some(new)) if matches!(folder, Folder::Agents(_)) && is_file(new) => {
                let (before, now) = (from.bytes(&path).unwrap_or_default(), new.content.as_deref().unwrap_or_default());
                ("what was there stays its beginning", now.starts_with(before))
            }
            (Ownership::Agent | Ownership::AppendOnly | Ownership::Runner | Ownership::Ignored, _) => {
                ("no change", false)
            }
        };
        if !is_right {
            findings.violation(rule, &path, (expected, &change(old.as_ref(), new.as_ref())));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::link::{PathChange, Readers};

    const READERS: Readers = Readers {
        config: |_| Err(crate::audit::FileFault::Missing),
        goal: |_| Err(crate::audit::FileFault::Missing),
        renamed: |_, _| None,
        is_definition: |_, _| false,
    };
    const CODE: &str = "src/lib.rs";
    const CONTEXT: &str = ".runner/nodes/root/context.md";
    const RECORD: &str = ".runner/iterations/run-1/0001/meta.json";
    const TEMPLATE: &str = ".runner/prompts/worker.md";
    /// One path of each sort.
    const ALL: [&str; 11] = [
        CODE,
        layout::TREE,
        layout::RUN_STATE,
        layout::FEEDBACK,
        layout::PROGRESS,
        layout::ASSUMPTIONS,
        layout::CONFIG,
        layout::GOAL,
        CONTEXT,
        TEMPLATE,
        RECORD,
    ];

    fn paths(kind: Kind, new: Option<&Stored>, old: Option<&Stored>) -> Vec<&'static str> {
        let is_right = |path: &&str| {
            let (old, new) = (old.cloned(), new.cloned());
            let net = NetDiff::of(&[PathChange { path: path.as_bytes().to_vec(), old, new }]);
            let mut findings = Findings::default();
            check((kind, &[]), (&State::empty(&READERS), &net), &mut findings);
            findings.into_findings().is_empty()
        };
        ALL.into_iter().filter(is_right).collect()
    }

    fn file(mode: u32) -> Stored {
        Stored { mode, id: "1".repeat(40), content: Some(b"text".as_slice().into()) }
    }

    /// The paths of which a commit of this kind may make a file.
    fn may(kind: Kind) -> Vec<&'static str> {
        paths(kind, Some(&file(0o100_644)), None)
    }

    fn may_remove(kind: Kind) -> Vec<&'static str> {
        paths(kind, None, Some(&file(0o100_644)))
    }

    #[test]
    fn a_start_brings_what_was_prepared_under_runner() {
        let all: Vec<&str> = ALL.into_iter().filter(|path| ![CODE, RECORD].contains(path)).collect();
        assert_eq!(may(Kind::Start), all);
    }

    #[test]
    fn a_fork_changes_goal_and_bookkeeping() {
        assert_eq!(may(Kind::Fork), [layout::RUN_STATE, layout::GOAL]);
    }

    #[test]
    fn a_baseline_has_what_the_guard_wrote() {
        let all = [CODE, layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::ASSUMPTIONS, CONTEXT];
        assert_eq!(may(Kind::Baseline), all);
    }

    #[test]
    fn a_resume_changes_the_bookkeeping() {
        assert_eq!(may(Kind::Resume), [layout::RUN_STATE]);
    }

    #[test]
    fn a_claim_and_a_release_change_nothing() {
        assert_eq!(may(Kind::Driver), Vec::<&str>::new());
        assert_eq!(may_remove(Kind::Driver), Vec::<&str>::new());
    }

    #[test]
    fn an_iteration_has_what_session_and_guard_left_and_what_is_settled() {
        let settled = [CODE, layout::TREE, layout::RUN_STATE, layout::FEEDBACK, layout::PROGRESS];
        assert_eq!(may(Kind::Iteration), [&settled[..], &[layout::ASSUMPTIONS, CONTEXT]].concat());
        assert_eq!(may_remove(Kind::Iteration), [CODE, CONTEXT, RECORD]);
    }

    #[test]
    fn after_rewritten_history_and_with_a_word_alone_nothing_but_what_is_settled_differs() {
        for kind in [Kind::Rewritten, Kind::Word] {
            assert_eq!(may(kind), SETTLED);
            assert_eq!(may_remove(kind), [RECORD]);
        }
    }

    #[test]
    fn a_persons_command_changes_its_file() {
        let note = Kind::Human(&[layout::GOAL]);
        assert_eq!(may(note), [layout::GOAL]);
        assert_eq!(may_remove(note), Vec::<&str>::new());
    }

    #[test]
    fn what_the_runner_writes_is_a_file_and_memory_keeps_its_beginning() {
        let link = file(0o120_000);
        assert_eq!(paths(Kind::Iteration, Some(&link), None), [CODE, CONTEXT]);
        let mut findings = Findings::default();
        let (old, mut state) =
            (Stored { content: Some(b"longer".as_slice().into()), ..file(0o100_644) }, State::empty(&READERS));
        let change = |old: Option<Stored>, new| PathChange { path: layout::ASSUMPTIONS.into(), old, new };
        state.apply(&[change(None, Some(old.clone()))], &crate::audit::Reading::default());
        let net = NetDiff::of(&[change(Some(old), Some(file(0o100_755)))]);
        check((Kind::Iteration, &[]), (&state, &net), &mut findings);
        assert_eq!(findings.into_findings().len(), 1);
    }
}
