//! One run per row of the table of verdicts (SPEC 5.2), seen from outside.

use runner_testkit::Home;

#[test]
fn accepted_leaf_passes_and_completes_the_run() {
    let home = Home::new();
    let repo = home.scripted("one");
    let _daemon = home.daemon();
    repo.script().step(1, "echo done > result.txt; answer done 'The result is written.'");
    home.run(&repo, &["-m", "Write the result"]).exits(0);
    let receipts = repo.receipts();
    assert_eq!(receipts.len(), 1, "{receipts:#?}");
    assert_eq!(receipts[0].verdict(), "Accepted");
    assert!(repo.tree("HEAD").root.passes);
    repo.assert_sound();
}
