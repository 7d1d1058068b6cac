//! Publishes between two real repositories, with git as the judge of what has arrived: each step before a crash, and
//! changes a person makes to the source meanwhile.

mod deaths;
pub(crate) mod fixture;
mod people;
mod strangers;

use self::fixture::PublishFixture;

#[test]
fn what_the_run_commits_comes_under_its_branch_with_all_that_it_is_made_of() {
    comes_under_its_branch(&[]);
    comes_under_its_branch(&["--object-format=sha256"]);
}

#[test]
fn what_the_run_commits_comes_into_a_reftable_too() {
    comes_under_its_branch(&["--ref-format=reftable"]);
}

fn comes_under_its_branch(options: &[&str]) {
    let pair = PublishFixture::with(options);
    pair.commit("one");
    let published = pair.publish();
    assert_eq!(published.tip.as_deref(), Some(pair.tip().as_str()), "{options:?}");
    assert_eq!((published.behind, published.why), (Some(0), None));
    let tip = pair.commit("two");
    pair.publish();
    assert_eq!(pair.branch(), tip, "{options:?}");
    pair.assert_sound();
}

#[test]
fn many_objects_come_as_one_pack_and_few_one_by_one() {
    let pair = PublishFixture::new();
    let packs = || pair.source_git("count-objects -v").lines().any(|line| line == "packs: 1");
    pair.commit("few");
    pair.publish();
    assert!(!packs());
    for number in 0..120 {
        pair.write(&format!("many/{number}"), &number.to_string());
    }
    pair.commit("many");
    pair.publish();
    assert!(packs());
    pair.assert_sound();
}

#[test]
fn what_is_kept_beside_the_branch_comes_too() {
    let pair = PublishFixture::new();
    pair.commit("one");
    let blob = pair.git("hash-object -w file");
    pair.git(&format!("update-ref refs/runner/raw/x/0001 {blob}"));
    pair.write("file", "lost but for its rescue");
    pair.git("add -A");
    let rescued = pair.git("commit-tree -m rescue HEAD^{tree} -p HEAD");
    pair.git(&format!("update-ref refs/runner/rescue/x/0001 {rescued}"));
    pair.git(&format!("update-ref refs/runner/rescue/y/0001 {rescued}"));
    pair.publish();
    assert_eq!(pair.source_git("cat-file blob refs/runner/raw/x/0001"), "one");
    assert_eq!(pair.source_git("rev-parse refs/runner/rescue/x/0001"), rescued);
    assert_eq!(pair.source_git("for-each-ref refs/runner/rescue/y"), "", "another run's are not this one's");
    pair.assert_sound();
}

#[test]
fn nothing_is_published_of_a_run_that_has_not_begun() {
    let pair = PublishFixture::new();
    pair.git("switch --quiet --detach");
    pair.git("branch --quiet -D runner/x");
    let published = pair.try_publish().unwrap();
    assert_eq!(published, super::PublishOutcome::default());
    assert_eq!(pair.source_git("for-each-ref refs/runner refs/heads/runner"), "");
}

#[test]
fn what_is_up_to_date_is_left_alone() {
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.publish();
    let before = pair.state_of_source();
    pair.publish();
    assert_eq!(pair.state_of_source(), before);
}
