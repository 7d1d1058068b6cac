//! The result of a person's review.

use protocol::reply::ReviewReply;
use protocol::words::ReviewVerdict;

use super::sanitize::sanitize;

/// Returns a line with the decision and the node.
pub(crate) fn render_review(reply: &ReviewReply) -> String {
    let ReviewReply { run, node, iteration, verdict } = reply;
    let decision = match verdict {
        ReviewVerdict::Accept => "approved; it passes in a separate commit",
        ReviewVerdict::Reject => "rejected; the next session on it reads why",
    };
    format!("run {}: task {} of iteration {iteration:04} is {decision}\n", sanitize(&run.id), sanitize(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::samples;

    #[test]
    fn a_review_says_what_was_decided_of_which_node() {
        let reply = |verdict| ReviewReply { run: samples::summary(), node: "b".into(), iteration: 7, verdict };
        insta::assert_snapshot!(render_review(&reply(ReviewVerdict::Accept)), @"run run-1a2b3c4d: task b of iteration 0007 is approved; it passes in a separate commit");
        insta::assert_snapshot!(render_review(&reply(ReviewVerdict::Reject)), @"run run-1a2b3c4d: task b of iteration 0007 is rejected; the next session on it reads why");
    }
}
