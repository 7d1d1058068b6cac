//! An agent changes a file and edits git's index to hide the change: the guard runs with the committed content, and the
//! change is reported.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::play::{RunPlay, sample};

const STRICT: &str = "sh ./check.sh\n";
const FORGE: &str = include_str!("forged_index.py");

/// A run of two iterations whose guard is `ci.sh`, a file of the definition, which uses `check.sh`, which is not one.
fn guarded_play() -> RunPlay {
    let play = RunPlay::with_tree(&sample(), |config| {
        let config = config.top("max_iterations = 2").guard("definition = [\"/ci.sh\"]");
        config.guard("on_change = \"both\"")
    });
    play.repo.write("ci.sh", STRICT).write("check.sh", "test -e done\n");
    // Git reads a file itself if it is as old as the index, in seconds.
    for path in ["ci.sh", "check.sh"] {
        let file = File::options().write(true).open(play.repo.path().join(path)).expect("it was written");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(24)).expect("times can be set");
    }
    play.repo.commit("Check the work");
    play.script().guard_always("sh ./ci.sh").file("forge.py", FORGE);
    play
}

/// A session that writes a file of the same length and hides it, and git's own status afterwards.
fn assert_hides(path: &str, text: &str, mark: &str) -> String {
    format!(
        "touch -r {path} before; printf '{text}' > {path}; touch -r before {path}; rm before\n\
         python3 \"$kit/files/forge.py\" {path} {mark}\n\
         cp .git/index forged; GIT_INDEX_FILE=$PWD/forged git diff --name-only > \"$kit/seen-by-git\"; rm forged\n"
    )
}

/// Runs both iterations, each of which hides a change of `path`, and checks what each has committed.
fn assert_seen(path: &str, mark: &str) {
    let play = guarded_play();
    let before = play.repo.read(path);
    let weak = |word: &str| format!("{word:<width$}\\n", width = before.len() - 1);
    play.script().step(1, &format!("{}answer retry 'Not yet.'", assert_hides(path, &weak("true"), mark)));
    play.script().step(2, &format!("{}answer done 'Done.'", assert_hides(path, &weak(":"), mark)));
    play.run().exits(4);
    let seen_by_git = std::fs::read_to_string(play.script().folder().join("seen-by-git")).expect("git has looked");
    assert_eq!(seen_by_git, "", "the forgery is one that git believes");
    for (iter, word) in [(1, "true"), (2, ":")] {
        let seen = play.iteration_at(iter);
        let committed = play.repo.show(&seen.receipt.commit, path);
        assert_eq!(committed.trim(), word, "{path}, {mark:?}, iteration {iter}");
        let announced = seen.receipt.trailer("Runner-Guard-Changed").unwrap_or_default();
        assert_eq!(announced, if path == "ci.sh" { path } else { "" }, "{mark:?}, iteration {iter}");
    }
    let verdict = if path == "ci.sh" { "RedGuard" } else { "Accepted" };
    assert_eq!(play.iteration_at(2).receipt.verdict(), verdict);
    assert_eq!(play.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_weakened_guard_that_a_forged_index_hides_is_committed_and_named() {
    assert_seen("ci.sh", "");
}

#[test]
fn a_weakened_guard_that_is_assumed_to_be_unchanged_is_committed_and_named() {
    assert_seen("ci.sh", "assume");
}

#[test]
fn a_weakened_guard_that_git_is_told_to_skip_is_committed_and_named() {
    assert_seen("ci.sh", "skip");
}

#[test]
fn a_check_that_a_forged_index_hides_is_committed() {
    assert_seen("check.sh", "");
}

#[test]
fn a_check_that_is_assumed_to_be_unchanged_is_committed() {
    assert_seen("check.sh", "assume");
}
