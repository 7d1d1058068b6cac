//! What stands in the way of a start: programs that cannot be run, and daemons that were there before. Rows 24 to 29.

use runner_testkit::Home;

use crate::checks::assert_explains;

#[test]
fn row_25_agent_that_cannot_be_found_is_refused_before_anything_begins() {
    let home = Home::new();
    let repo = home.repo("one");
    repo.configure(&runner_testkit::Config::new(&["no-such-agent"], &["true"]));
    let _daemon = home.daemon();
    let refused = home.run(&repo, &["-m", "Do it"]);
    assert_explains(&refused, &["no-such-agent", "hint:"]);
    assert!(repo.receipts().is_empty());
}
