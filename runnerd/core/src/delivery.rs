//! The exchange between a run and the people who take its result: the description of a pull request, and feedback on
//! it.
//!
//! Data of a branch in, text out. Knows no forge: the client decides what is sent, and how.

mod description;
mod feedback;
mod markdown;

pub use self::description::{BODY_LIMIT, DeliveredRun, IterationCommit, PullRequestText, describe_run};
pub use self::feedback::{PullRequestFeedback, RenderedFeedback, leaf_title, render_feedback};
