//! What passes between a run and those who are to take its result: the description of a pull request, and the feedback
//! on it.
//!
//! Data of a branch in, text out. It knows no forge: what is sent, and how, is the client's.

mod description;
mod feedback;
mod markdown;

pub use self::description::{BODY_LIMIT, DeliveredRun, PullRequestText, IterationCommit, describe_run};
pub use self::feedback::{PullRequestFeedback, RenderedFeedback, render_feedback, leaf_title};
