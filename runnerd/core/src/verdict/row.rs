//! What each verdict leads to: a table, a row each.
//!
//! Data alone; which verdict it is was judged before, and `transition` applies the row.

use protocol::words::{GuardOutcome, IterationStatus, VerdictName};

/// Which task tree a verdict takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeTaken {
    /// The agent's.
    Agents,
    /// The agent's, and the selected leaf passes.
    AgentsPassed,
    /// The agent's if it is legal, else From's.
    AgentsIfLegal,
    /// From's.
    Froms,
}

/// What becomes of the node's feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackEffect {
    /// It is removed.
    Cleared,
    /// It stays.
    Kept,
    /// It is what the verdict tells.
    Told,
}

/// What becomes of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEffect {
    /// It goes on.
    GoesOn,
    /// It waits for a person's review.
    WaitsForPerson,
    /// It waits for the service.
    WaitsForService,
    /// It goes on, and fails after too many in a row.
    CountsFault,
    /// It ends as timed out.
    TimedOut,
    /// It ends as failed, with the fix.
    Failed,
    /// What was asked for; it fails after too many deaths in a row.
    AsAsked,
}

/// One row of the table of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Which task tree is taken.
    pub tree: TreeTaken,
    /// Attempts charged: 0 or 1.
    pub attempts: u32,
    /// `guard=` where the verdict fixes it; else as it ran.
    pub guard: Option<GuardOutcome>,
    /// `status=`.
    pub status: IterationStatus,
    /// What becomes of the run.
    pub run: RunEffect,
    /// What becomes of the node's feedback.
    pub feedback: FeedbackEffect,
}

/// Returns the row of a verdict.
pub fn row(verdict: VerdictName) -> Row {
    use FeedbackEffect::{Cleared, Kept, Told};
    use GuardOutcome::{Fail, Pass, Skipped};
    use IterationStatus as Status;
    use RunEffect as Run;
    use TreeTaken::{Agents, AgentsIfLegal, AgentsPassed, Froms};
    let row = |tree, attempts, guard, status, run, feedback| Row { tree, attempts, guard, status, run, feedback };
    match verdict {
        VerdictName::Accepted => row(AgentsPassed, 0, Some(Pass), Status::Done, Run::GoesOn, Cleared),
        VerdictName::RedGuard => row(Agents, 1, Some(Fail), Status::Done, Run::GoesOn, Told),
        VerdictName::Rejected => row(Agents, 1, Some(Pass), Status::Done, Run::GoesOn, Told),
        VerdictName::Pending => row(Agents, 0, Some(Pass), Status::Done, Run::WaitsForPerson, Kept),
        VerdictName::Retry => row(Agents, 1, Some(Skipped), Status::Retry, Run::GoesOn, Told),
        VerdictName::Narrowed => row(Agents, 0, Some(Skipped), Status::Retry, Run::GoesOn, Told),
        VerdictName::Decomposed => row(Agents, 0, Some(Skipped), Status::Decomposed, Run::GoesOn, Cleared),
        VerdictName::Broken => row(Froms, 1, Some(Skipped), Status::Retry, Run::GoesOn, Told),
        VerdictName::Fault => row(AgentsIfLegal, 0, None, Status::Fault, Run::CountsFault, Told),
        VerdictName::Unavailable => row(AgentsIfLegal, 0, None, Status::Waiting, Run::WaitsForService, Kept),
        VerdictName::Timeout => row(AgentsIfLegal, 0, Some(Skipped), Status::Timeout, Run::TimedOut, Told),
        VerdictName::Misconfigured => row(AgentsIfLegal, 0, Some(Skipped), Status::Fault, Run::Failed, Kept),
        VerdictName::Interrupted => row(AgentsIfLegal, 0, Some(Skipped), Status::Interrupted, Run::AsAsked, Kept),
    }
}
