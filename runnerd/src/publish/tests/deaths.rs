//! A death after each step of publishing, and before the next commit or after it: the next life brings the source to the
//! same end.

use super::super::look::Look;
use super::super::{Published, Publisher};
use super::fixture::Pair;

/// Where a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    ObjectsSent,
    ObjectsKept,
    ObjectsChecked,
    MoveNoted,
    BranchMoved,
    MoveLookedAfter,
}

const DEATHS: [Death; 6] = [
    Death::ObjectsSent,
    Death::ObjectsKept,
    Death::ObjectsChecked,
    Death::MoveNoted,
    Death::BranchMoved,
    Death::MoveLookedAfter,
];

/// Publishes until the death.
fn live_until(death: Death, pair: &Pair) {
    let mut publisher = pair.publisher();
    let look = |publisher: &Publisher<'_>| publisher.look().unwrap().unwrap();
    let first: Look = look(&publisher);
    publisher.send(&first, false).unwrap();
    if death == Death::ObjectsSent {
        return;
    }
    publisher.keep(&first).unwrap();
    if death == Death::ObjectsKept {
        return;
    }
    publisher.check(&look(&publisher)).unwrap();
    if death == Death::ObjectsChecked {
        return;
    }
    let from = first.branch.as_deref().map(|id| id.parse().unwrap());
    let note = Published { from, to: first.tip, is_done: false };
    publisher.note.write(&note).unwrap();
    if death == Death::MoveNoted {
        return;
    }
    publisher.set_branch(from, first.tip).unwrap();
    if death == Death::BranchMoved {
        return;
    }
    publisher.look_after(&note).unwrap();
}

#[test]
fn row_99_a_death_after_any_step_leaves_what_the_next_life_brings_to_its_end() {
    for death in DEATHS {
        for commits_between in 0..2 {
            let pair = Pair::new();
            for text in ["one", "two"] {
                pair.commit(text);
                live_until(death, &pair);
                for number in 0..commits_between {
                    pair.commit(&format!("{text}-{number}"));
                }
                let published = pair.publish();
                assert_eq!((published.behind, published.why), (Some(0), None), "{death:?}");
                pair.assert_sound();
            }
        }
    }
}

#[test]
fn one_death_after_the_other_comes_to_the_same_end() {
    let pair = Pair::new();
    for text in ["one", "two", "three"] {
        pair.commit(text);
        for death in DEATHS {
            if pair.publisher().look().unwrap().unwrap().branch.as_deref() != Some(pair.tip().as_str()) {
                live_until(death, &pair);
            }
        }
        pair.publish();
        pair.assert_sound();
    }
}

#[test]
fn row_102_objects_that_are_collected_after_any_step_are_sent_again() {
    for death in DEATHS {
        let pair = Pair::new();
        for text in ["one", "two"] {
            pair.commit(text);
            live_until(death, &pair);
            pair.source_git("reflog expire --expire=now --all");
            pair.source_git("gc --quiet --prune=now");
            pair.publish();
            pair.assert_sound();
        }
    }
}

#[test]
fn row_103_references_that_are_packed_after_any_step_are_found() {
    for death in DEATHS {
        let pair = Pair::new();
        for text in ["one", "two"] {
            pair.commit(text);
            live_until(death, &pair);
            pair.source_git("pack-refs --all");
            pair.publish();
            pair.assert_sound();
        }
    }
}

#[test]
fn a_commit_that_the_source_had_not_whole_is_sent_whole() {
    // Its own reference says that it is there, and a file of it is not.
    let pair = Pair::new();
    pair.commit("one");
    pair.publish();
    let tip = pair.commit("two");
    live_until(Death::ObjectsKept, &pair);
    let blob = pair.source_git(&format!("rev-parse {tip}:file"));
    std::fs::remove_file(pair.source().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    pair.publish();
    pair.assert_sound();
}

#[test]
fn a_base_that_was_collected_comes_with_what_was_made_upon_it() {
    let pair = Pair::new();
    pair.commit("one");
    pair.source_git("checkout --quiet --orphan other");
    pair.source_git("commit --quiet -m other");
    pair.source_git("branch --quiet -D main");
    pair.source_git("reflog expire --expire=now --all");
    pair.source_git("gc --quiet --prune=now");
    pair.publish();
    pair.assert_sound();
}
