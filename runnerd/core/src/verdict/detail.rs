//! The details of a verdict on one line, written into receipts and feedback, and parsed by an audit.
//!
//! Receipts and feedback are bounded: a line that was cut is parsed as far as it goes.

use jiff::Timestamp;
use protocol::words::VerdictName;

use super::{FaultKind, RuleBreach, SessionFinding, SessionRule, StopCause, Verdict};
use crate::scope::name_paths;
use crate::tree::validate::TreeLimit;

impl Verdict {
    /// Returns the details on one line; `None` if the verdict has none.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Broken(breach) => Some(format!("{} ({}: {})", breach.rule.as_str(), breach.at, breach.details)),
            Self::Fault { kind, what } => Some(format!("{}: {what}", kind.as_str())),
            Self::Unavailable { why, until: None } => Some(why.clone()),
            Self::Unavailable { why, until: Some(until) } => Some(format!("{why} (until {until})")),
            Self::Timeout { during } => Some(format!("during {during}")),
            Self::Misconfigured { what } => Some(what.clone()),
            Self::Interrupted { by } => Some(by.as_str().to_owned()),
            Self::Rejected { reasons } => Some(reasons.clone()),
            Self::Accepted | Self::RedGuard | Self::Pending | Self::Retry | Self::Narrowed | Self::Decomposed => None,
        }
    }

    /// Returns the verdict with this name and these details; `None` if they do not match.
    pub fn parse(name: VerdictName, detail: Option<&str>) -> Option<Self> {
        let text = detail.unwrap_or_default();
        let own = || text.to_owned();
        Some(match name {
            VerdictName::Accepted => Self::Accepted,
            VerdictName::RedGuard => Self::RedGuard,
            VerdictName::Rejected => Self::Rejected { reasons: own() },
            VerdictName::Pending => Self::Pending,
            VerdictName::Retry => Self::Retry,
            VerdictName::Narrowed => Self::Narrowed,
            VerdictName::Decomposed => Self::Decomposed,
            VerdictName::Broken => Self::Broken(RuleBreach::parse(text)?),
            VerdictName::Fault => parse_fault(text)?,
            VerdictName::Unavailable => parse_unavailable(text),
            VerdictName::Timeout => Self::Timeout { during: text.strip_prefix("during ")?.parse().ok()? },
            VerdictName::Misconfigured => Self::Misconfigured { what: own() },
            VerdictName::Interrupted => Self::Interrupted { by: StopCause::parse(text)? },
        })
    }
}

fn parse_fault(text: &str) -> Option<Verdict> {
    let (kind, what) = text.split_once(": ").unwrap_or((text.strip_suffix(':').unwrap_or(text), ""));
    let kind = FaultKind::ALL.into_iter().find(|known| known.as_str() == kind)?;
    Some(Verdict::Fault { kind, what: what.to_owned() })
}

fn parse_unavailable(text: &str) -> Verdict {
    let timed = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (until "));
    let until = timed.and_then(|(why, until)| Some((why, until.parse::<Timestamp>().ok()?)));
    match until {
        Some((why, until)) => Verdict::Unavailable { why: why.to_owned(), until: Some(until) },
        None => Verdict::Unavailable { why: text.to_owned(), until: None },
    }
}

/// How many children the selected node got, by either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChildCounts {
    /// Number of children in the answer.
    pub answered: usize,
    /// Number of children in the tree.
    pub gained: u32,
}

/// Prefix of the description of history that a guard has rewritten.
const GUARD_PREFIX: &str = "by the guard: ";

impl SessionRule {
    /// Returns the rule at the beginning of a breach's details.
    pub(crate) fn parse(detail: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| detail.starts_with(rule.as_str()))
    }
}

impl SessionFinding {
    /// Explains why the branch is empty, for the person who has to act on it.
    pub(super) fn describe_idle(&self) -> String {
        let dirty = self.dirty_submodules.join(", ");
        if dirty.is_empty() {
            return "nothing differs from the base".to_owned();
        }
        format!("all that was changed lies uncommitted inside of a submodule: commit it there ({dirty})")
    }

    /// Explains that nothing of a claim is in the scope of the run.
    pub(super) fn describe_outside(&self) -> String {
        format!("all that this session changed is outside of it: {}", name_paths(&self.outside))
    }
}

impl RuleBreach {
    /// Describes children that arrived in a way that is not allowed.
    pub(crate) fn for_children(
        rule: SessionRule,
        node: &str,
        ChildCounts { answered: brought, gained }: ChildCounts,
    ) -> Self {
        Self { rule, at: node.to_owned(), details: format!("{brought} in the answer and {gained} in the tree") }
    }

    /// Describes history that the guard has rewritten.
    pub(crate) fn for_guard(node: &str, details: &str) -> Self {
        Self { rule: SessionRule::History, at: node.to_owned(), details: format!("{GUARD_PREFIX}{details}") }
    }

    /// Returns the children that arrived in a way that is not allowed; zero if the breach is about something else.
    pub(crate) fn child_counts(&self) -> ChildCounts {
        if !matches!(self.rule, SessionRule::ChildrenOnlyWithDecomposed | SessionRule::ChildrenOneWay) {
            return ChildCounts::default();
        }
        let mut numbers = self.details.split(' ').filter_map(|word| word.parse().ok());
        let answered = numbers.next().unwrap_or(0);
        let gained = numbers.next().unwrap_or(0);
        ChildCounts { answered, gained: u32::try_from(gained).unwrap_or(u32::MAX) }
    }

    /// Returns what the guard did to history, if the breach is the guard's.
    pub(crate) fn guard_history(&self) -> Option<&str> {
        self.details.strip_prefix(GUARD_PREFIX).filter(|_| self.rule == SessionRule::History)
    }

    /// Returns why the tree was refused, if not for a wrong field.
    pub(crate) fn tree_limit(&self) -> Option<TreeLimit> {
        TreeLimit::parse(&self.details).filter(|_| self.rule == SessionRule::ValidTree)
    }

    /// Parses `<rule> (<at>: <details>)`.
    fn parse(text: &str) -> Option<Self> {
        let rule = SessionRule::parse(text)?;
        let place = text[rule.as_str().len()..].strip_prefix(" (")?;
        let (at, details) = place.strip_suffix(')').unwrap_or(place).split_once(": ")?;
        Some(Self { rule, at: at.to_owned(), details: details.to_owned() })
    }
}

impl StopCause {
    const ALL: [Self; 5] = [Self::Pause, Self::Cancel, Self::Shutdown, Self::Death, Self::Elsewhere];

    /// Returns the cause in words.
    fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause --now",
            Self::Cancel => "cancel",
            Self::Shutdown => "the daemon was stopped",
            Self::Death => "the daemon or the machine died",
            Self::Elsewhere => "HEAD was not on the run's branch any more",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_read_back_as_they_were_written() {
        let until = "2026-03-01T08:00:00Z".parse().ok();
        let breaches = SessionRule::ALL.map(|rule| {
            Verdict::Broken(RuleBreach { rule, at: "root.2".to_owned(), details: "its parent is (none): x".to_owned() })
        });
        let faults = FaultKind::ALL.map(|kind| Verdict::Fault { kind, what: "it said: no\nmore".to_owned() });
        let stops = StopCause::ALL.map(|by| Verdict::Interrupted { by });
        let others = [
            Verdict::Rejected { reasons: "- a\n- b".to_owned() },
            Verdict::Unavailable { why: "HTTP 503 (until later)".to_owned(), until: None },
            Verdict::Unavailable { why: "limit (5 hours)".to_owned(), until },
            Verdict::Timeout { during: protocol::words::PhaseName::Guard },
            Verdict::Misconfigured { what: "no agent; install it".to_owned() },
            Verdict::Accepted,
        ];
        for verdict in breaches.into_iter().chain(faults).chain(stops).chain(others) {
            assert_eq!(Verdict::parse(verdict.name(), verdict.detail().as_deref()), Some(verdict));
        }
    }

    #[test]
    fn what_was_seen_is_read_back() {
        let counted = ChildCounts { answered: 2, gained: 3 };
        assert_eq!(RuleBreach::for_children(SessionRule::ChildrenOneWay, "root", counted).child_counts(), counted);
        assert_eq!(RuleBreach::for_guard("root", "2 commits").guard_history(), Some("2 commits"));
        let gone = |rule| RuleBreach { rule, at: "tree.json".to_owned(), details: TreeLimit::FileGone.to_string() };
        assert_eq!(gone(SessionRule::ValidTree).tree_limit(), Some(TreeLimit::FileGone));
        assert_eq!(
            (gone(SessionRule::KeepNodes).tree_limit(), gone(SessionRule::History).guard_history()),
            (None, None)
        );
    }

    #[test]
    fn details_of_another_verdict_are_none() {
        for (name, detail) in [
            (VerdictName::Broken, "because"),
            (VerdictName::Fault, "bad luck: x"),
            (VerdictName::Timeout, "work"),
            (VerdictName::Interrupted, "by somebody"),
        ] {
            assert_eq!(Verdict::parse(name, Some(detail)), None, "{name}");
        }
    }
}
