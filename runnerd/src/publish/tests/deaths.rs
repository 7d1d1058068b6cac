//! Crashes after each step of publishing, before the next commit or after it: the next process brings the source to the
//! same result.

use super::super::snapshot::PublishSnapshot;
use super::super::{PublishedMove, Publisher};
use super::fixture::PublishFixture;

/// Where a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PublishDeath {
    ObjectsSent,
    ObjectsKept,
    ObjectsChecked,
    MoveNoted,
    BranchMoved,
    MoveVerified,
}

const DEATHS: [PublishDeath; 6] = [
    PublishDeath::ObjectsSent,
    PublishDeath::ObjectsKept,
    PublishDeath::ObjectsChecked,
    PublishDeath::MoveNoted,
    PublishDeath::BranchMoved,
    PublishDeath::MoveVerified,
];

/// Publishes until the crash.
fn publish_until(death: PublishDeath, pair: &PublishFixture) {
    let mut publisher = pair.publisher();
    let look = |publisher: &Publisher<'_>| publisher.read_snapshot().unwrap().unwrap();
    let first: PublishSnapshot = look(&publisher);
    publisher.send_objects(&first, false).unwrap();
    if death == PublishDeath::ObjectsSent {
        return;
    }
    publisher.update_keep_refs(&first).unwrap();
    if death == PublishDeath::ObjectsKept {
        return;
    }
    publisher.check_complete(&look(&publisher)).unwrap();
    if death == PublishDeath::ObjectsChecked {
        return;
    }
    let from = first.branch.as_deref().map(|id| id.parse().unwrap());
    let note = PublishedMove { from, to: first.tip, is_done: false };
    publisher.record_file.write(&note).unwrap();
    if death == PublishDeath::MoveNoted {
        return;
    }
    publisher.set_branch(from, first.tip).unwrap();
    if death == PublishDeath::BranchMoved {
        return;
    }
    publisher.verify_move(&note).unwrap();
}

#[test]
fn row_99_a_death_after_any_step_leaves_what_the_next_life_brings_to_its_end() {
    for death in DEATHS {
        for commits_between in 0..2 {
            let pair = PublishFixture::new();
            for text in ["one", "two"] {
                pair.commit(text);
                publish_until(death, &pair);
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
fn repeated_deaths_lead_to_the_same_result() {
    let pair = PublishFixture::new();
    for text in ["one", "two", "three"] {
        pair.commit(text);
        for death in DEATHS {
            if pair.publisher().read_snapshot().unwrap().unwrap().branch.as_deref() != Some(pair.tip().as_str()) {
                publish_until(death, &pair);
            }
        }
        pair.publish();
        pair.assert_sound();
    }
}

#[test]
fn row_102_objects_that_are_collected_after_any_step_are_sent_again() {
    for death in DEATHS {
        let pair = PublishFixture::new();
        for text in ["one", "two"] {
            pair.commit(text);
            publish_until(death, &pair);
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
        let pair = PublishFixture::new();
        for text in ["one", "two"] {
            pair.commit(text);
            publish_until(death, &pair);
            pair.source_git("pack-refs --all");
            pair.publish();
            pair.assert_sound();
        }
    }
}

#[test]
fn a_commit_that_the_source_had_not_whole_is_sent_whole() {
    // Its own reference claims that it is complete, but one of its files is missing.
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.publish();
    let tip = pair.commit("two");
    publish_until(PublishDeath::ObjectsKept, &pair);
    let blob = pair.source_git(&format!("rev-parse {tip}:file"));
    std::fs::remove_file(pair.source().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    pair.publish();
    pair.assert_sound();
}

#[test]
fn a_collected_base_is_sent_with_the_commits_after_it() {
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.source_git("checkout --quiet --orphan other");
    pair.source_git("commit --quiet -m other");
    pair.source_git("branch --quiet -D main");
    pair.source_git("reflog expire --expire=now --all");
    pair.source_git("gc --quiet --prune=now");
    pair.publish();
    pair.assert_sound();
}
