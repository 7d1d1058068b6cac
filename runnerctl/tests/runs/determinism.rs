//! Same commit, same inputs: same choices (P1).

use runner_testkit::Receipt;

use crate::play::{LEAVE, Play, leaf, sample};

/// A run with every kind of turn that its agent and guard can bring about.
fn play() -> Play {
    let play = Play::with(&sample(), |config| config.top("max_iterations = 9"));
    play.leaves(|tree| tree.root.children.push(leaf("new", 9)));
    let script = play.script();
    script.step(1, "echo half > work\nanswer done 'It should work.'").guard_step(1, "echo 'FAIL: half'\nexit 1");
    script.step(2, "exit 3");
    script.step(3, &format!("{LEAVE}answer retry 'Planned more.'"));
    script.step(4, "decompose 'Two parts.' one two");
    script.step(5, "git reset -q --soft HEAD~1\nanswer done 'Rewritten.'");
    script.step(6, "echo '{' > \"$tree\"\nanswer done 'Broken.'");
    script.step(7, "echo 7 > work\nanswer done 'Repaired and done.'");
    script.step(
        8,
        "echo x > .runner/state/config.toml\necho '- fast' >> .runner/state/assumptions.md\nanswer done 'Two.'",
    );
    play.run().exits(4);
    play
}

/// A receipt without what names a commit: ids hold the time of the commit.
fn without_ids(receipt: Receipt) -> (String, String, Vec<(String, String)>) {
    let names_commit = |name: &str| name == "Runner-From";
    let trailers = receipt.trailers.into_iter().filter(|(name, _)| !names_commit(name)).collect();
    (receipt.subject, receipt.body, trailers)
}

#[test]
fn same_repository_and_script_make_the_same_run() {
    let (one, other) = (play(), play());
    assert_eq!(one.repo.git(&["rev-parse", "main"]), other.repo.git(&["rev-parse", "main"]));
    let receipts = |play: &Play| play.repo.receipts().into_iter().map(without_ids).collect::<Vec<_>>();
    assert_eq!(receipts(&one), receipts(&other));
    assert_eq!(receipts(&one).len(), 9);
    for session in 1..=9 {
        assert_eq!(one.script().prompt(session), other.script().prompt(session), "prompt of session {session}");
    }
    let trees = |play: &Play| {
        let commits = play.repo.receipts().into_iter().map(|receipt| receipt.commit);
        commits.map(|commit| play.repo.show(&commit, ".runner/state/tree.json")).collect::<Vec<_>>()
    };
    assert_eq!(trees(&one), trees(&other));
    // The run state holds the time that was spent.
    let is_equal = |line: &&str| !line.ends_with("run_state.json");
    let files = |play: &Play| {
        play.repo.git(&["ls-tree", "-r", "HEAD"]).lines().filter(is_equal).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files(&one), files(&other));
}
