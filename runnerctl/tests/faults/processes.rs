//! How programs end, and what they try to leave. Rows 1 to 35.

use runner_testkit::Home;
use runner_testkit::witness::verdicts;

use crate::checks::{assert_explains, assert_survived};

#[test]
fn row_01_agent_that_does_its_work_makes_one_commit() {
    let home = Home::new();
    let repo = home.scripted("one");
    repo.script().step(1, "echo mine > mine.txt; answer done 'It is done.'");
    let _daemon = home.daemon();
    home.run(&repo, &["-m", "Do it"]).exits(0);
    assert_eq!(verdicts(&repo), ["Accepted"]);
    assert_survived(&home, &repo, &["mine\n"]);
}

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
