//! The effects of each verdict: a table with one row per verdict.
//!
//! Data only; the verdict is already decided, and `transition` applies the row.

use protocol::words::{GuardOutcome, IterationStatus, VerdictName};

/// Which task tree a verdict takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSource {
    /// The agent's.
    Agent,
    /// The agent's, and the selected leaf passes.
    AgentPassed,
    /// The agent's if it is legal, otherwise From's.
    AgentIfLegal,
    /// From's.
    FromCommit,
}

/// Effect on the node's feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackEffect {
    /// It is removed.
    Clear,
    /// It stays.
    Keep,
    /// It is replaced by what the verdict reports.
    Record,
}

/// Effect on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEffect {
    /// It continues.
    Continues,
    /// It waits for a person's review.
    WaitsForPerson,
    /// It waits for the service.
    WaitsForService,
    /// It continues, and fails after too many faults in a row.
    CountsFault,
    /// It ends as timed out.
    TimedOut,
    /// It ends as failed, with the fix.
    Failed,
    /// It follows the request; it fails after too many deaths in a row.
    ByStopCause,
}

/// One row of the table of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictRow {
    /// The task tree that is taken.
    pub tree: TreeSource,
    /// Attempts charged: 0 or 1.
    pub attempts: u32,
    /// Value of `guard=` if the verdict fixes it; `None` for the guard's actual outcome.
    pub guard: Option<GuardOutcome>,
    /// Value of `status=`.
    pub status: IterationStatus,
    /// Effect on the run.
    pub run: RunEffect,
    /// Effect on the node's feedback.
    pub feedback: FeedbackEffect,
}

/// Returns the row of a verdict.
pub fn verdict_row(verdict: VerdictName) -> VerdictRow {
    use FeedbackEffect::{Clear, Keep, Record};
    use GuardOutcome::{Fail, Pass, Skipped};
    use IterationStatus as Status;
    use RunEffect as Run;
    use TreeSource::{Agent, AgentIfLegal, AgentPassed, FromCommit};
    let row =
        |tree, attempts, guard, status, run, feedback| VerdictRow { tree, attempts, guard, status, run, feedback };
    match verdict {
        VerdictName::Accepted => row(AgentPassed, 0, Some(Pass), Status::Done, Run::Continues, Clear),
        VerdictName::RedGuard => row(Agent, 1, Some(Fail), Status::Done, Run::Continues, Record),
        VerdictName::Rejected => row(Agent, 1, Some(Pass), Status::Done, Run::Continues, Record),
        VerdictName::Pending => row(Agent, 0, Some(Pass), Status::Done, Run::WaitsForPerson, Keep),
        VerdictName::Retry => row(Agent, 1, Some(Skipped), Status::Retry, Run::Continues, Record),
        VerdictName::Narrowed => row(Agent, 0, Some(Skipped), Status::Retry, Run::Continues, Record),
        VerdictName::Decomposed => row(Agent, 0, Some(Skipped), Status::Decomposed, Run::Continues, Clear),
        VerdictName::Broken => row(FromCommit, 1, Some(Skipped), Status::Retry, Run::Continues, Record),
        VerdictName::Fault => row(AgentIfLegal, 0, None, Status::Fault, Run::CountsFault, Record),
        VerdictName::Unavailable => row(AgentIfLegal, 0, None, Status::Waiting, Run::WaitsForService, Keep),
        VerdictName::Timeout => row(AgentIfLegal, 0, Some(Skipped), Status::Timeout, Run::TimedOut, Record),
        VerdictName::Misconfigured => row(AgentIfLegal, 0, Some(Skipped), Status::Fault, Run::Failed, Keep),
        VerdictName::Interrupted => row(AgentIfLegal, 0, Some(Skipped), Status::Interrupted, Run::ByStopCause, Keep),
    }
}
