//! Changes between a person's decision and its receipt.

use protocol::verify::AuditRule as Rule;
use protocol::words::RunStatus;

use super::{BranchForge, violation};
use crate::play::RUN;
use crate::review_by_person::waiting_play;

#[test]
fn what_a_person_commits_of_a_word_under_way_is_no_finding_and_code_that_comes_and_goes_is_one() {
    let play = waiting_play(2);
    play.home.review_in(&play.repo, &["approve"]).exits(0);
    play.client().wait_for(play.repo.path(), RunStatus::Limit);
    let forge = BranchForge::from_play(play);
    let word = forge.tip().clone();
    let pending = forge.pieces[forge.pieces.len() - 2].id.clone();
    assert!(word.message.contains("approved by a person"), "{}", word.message);
    let settled = forge.commit(Some(&pending), &word.tree, "A person puts it right");
    forge.assert_honest("what the runner had written", &forge.commit(Some(&settled), &word.tree, &word.message));
    let code = forge.tree_with(&word.tree, "result.txt", "2\n");
    let came = forge.commit(Some(&pending), &code, "A person puts it right");
    let went = forge.commit(Some(&came), &word.tree, &word.message);
    forge.assert_finds_at((RUN, &went), violation(Rule::Owned, "commits"));
}
