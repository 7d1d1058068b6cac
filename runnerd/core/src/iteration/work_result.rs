//! What an iteration is decided from: a session and what it left, or a person's decision. Contains no rules.

use protocol::answer::AgentAnswer;

use super::{GuardEnd, ReviewEnd};
use crate::run::approval::Decision;
use crate::verdict::{SessionEnd, SessionFinding, SessionTask};

/// A task and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkResult {
    /// The task.
    pub task: SessionTask,
    /// Who worked on it, and with what result.
    pub by: WorkSource,
}

/// Who worked on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one in an iteration, and nearly always a session's")]
pub enum WorkSource {
    /// A session.
    Session {
        /// How the session ended.
        end: SessionEnd,
        /// What the session left.
        finding: SessionFinding,
    },
    /// A person, who has reviewed what an earlier session left: no process ran, and there is nothing to inspect.
    Person(Decision),
}

impl WorkResult {
    /// Returns how the session ended; `None` without a session.
    pub fn session(&self) -> Option<&SessionEnd> {
        if let WorkSource::Session { end, .. } = &self.by { Some(end) } else { None }
    }

    /// Returns what the session left; `None` without a session.
    pub fn finding(&self) -> Option<&SessionFinding> {
        if let WorkSource::Session { finding, .. } = &self.by { Some(finding) } else { None }
    }

    /// Returns the session's answer, if it gave one.
    pub fn answer(&self) -> Option<&AgentAnswer> {
        self.session().and_then(SessionEnd::answer)
    }

    /// Returns the person's decision, if there is one.
    pub fn decision(&self) -> Option<&Decision> {
        if let WorkSource::Person(decision) = &self.by { Some(decision) } else { None }
    }

    pub(super) fn elapsed_ms<'a>(
        &self,
        guards: impl IntoIterator<Item = &'a GuardEnd>,
        review: Option<&ReviewEnd>,
    ) -> u64 {
        let of_session = self.session().map_or(0, |session| session.elapsed_ms);
        let guards_ms = guards.into_iter().fold(0, |spent: u64, guard| spent.saturating_add(guard.elapsed_ms));
        let of_review = review.map_or(0, |review| review.elapsed_ms);
        of_session.saturating_add(guards_ms).saturating_add(of_review)
    }
}
