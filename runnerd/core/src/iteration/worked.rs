//! What an iteration is decided from: a session with what it left, or a person's decision. No rule stands here.

use protocol::answer::AgentAnswer;

use super::{GuardEnd, ReviewEnd};
use crate::approval::Decision;
use crate::verdict::{SessionFinding, SessionEnd, SessionTask};

/// A task with what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkResult {
    /// What was asked.
    pub task: SessionTask,
    /// Who answered, and how.
    pub by: WorkSource,
}

/// Who answered to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one in an iteration, and nearly always a session's")]
pub enum WorkSource {
    /// A session.
    Session {
        /// How it ended.
        end: SessionEnd,
        /// What it left.
        finding: SessionFinding,
    },
    /// A person, who has reviewed what an earlier session left: no process ran, and there is nothing to find.
    Person(Decision),
}

impl WorkResult {
    /// Returns how the session ended, where there was one.
    pub fn session(&self) -> Option<&SessionEnd> {
        if let WorkSource::Session { end, .. } = &self.by { Some(end) } else { None }
    }

    /// Returns what the session left, where there was one.
    pub fn finding(&self) -> Option<&SessionFinding> {
        if let WorkSource::Session { finding, .. } = &self.by { Some(finding) } else { None }
    }

    /// Returns the session's answer, where it gave one.
    pub fn answer(&self) -> Option<&AgentAnswer> {
        self.session().and_then(SessionEnd::answer)
    }

    /// Returns what a person decided, where one did.
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
