//! Other things a source may contain: locks, hooks, settings, forged references and objects; and the branch moves for
//! which the daemon accounts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use runner_git::{MovedRef, Repository};
use runner_os::retryable::Retryable as _;

use super::super::PublishedMove;
use super::fixture::PublishFixture;

#[test]
fn a_lock_of_somebody_elses_is_waited_for() {
    let pair = PublishFixture::new();
    pair.commit("one");
    let lock = pair.source().join(".git/refs/heads/runner");
    fs::create_dir_all(&lock).unwrap();
    let lock = lock.join("x.lock");
    let holder = fs::File::create(&lock).unwrap();
    let error = pair.try_publish().unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("x.lock"), "{error}");
    drop(holder);
    fs::remove_file(lock).unwrap();
    pair.publish();
    pair.assert_sound();
}

#[test]
fn no_hook_of_the_source_is_run_and_no_setting_of_it_obeyed() {
    let pair = PublishFixture::new();
    let hooks = pair.source().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for name in ["reference-transaction", "pre-receive", "update", "post-receive", "post-update", "proc-receive"] {
        let hook = hooks.join(name);
        fs::write(&hook, "#!/bin/sh\necho ran >> \"$GIT_DIR/ran\"\nexit 1\n").unwrap();
        fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (key, value) in [
        ("receive.denyCurrentBranch", "refuse"),
        ("transfer.hideRefs", "refs"),
        ("receive.fsckObjects", "true"),
        ("core.hooksPath", ".git/hooks"),
        ("core.fsmonitor", ".git/hooks/update"),
    ] {
        pair.source_git(&format!("config {key} {value}"));
    }
    pair.commit("one");
    pair.publish();
    assert!(!pair.source().join(".git/ran").exists());
    fs::remove_dir_all(hooks).unwrap();
    pair.source_git("config --unset core.fsmonitor");
    pair.assert_sound();
}

#[test]
fn a_reference_that_links_to_a_persons_branch_moves_nothing_of_his() {
    for name in ["refs/runner/at/x", "refs/heads/runner/x"] {
        let pair = PublishFixture::new();
        pair.commit("one");
        let main = pair.source_git("rev-parse main");
        pair.source_git(&format!("symbolic-ref {name} refs/heads/main"));
        let why = pair.hold_reason();
        assert!(why.message.contains("which the run did not make"), "{}", why.message);
        assert_eq!(pair.source_git("rev-parse main"), main);
    }
}

#[test]
fn an_object_that_is_not_what_its_name_says_is_never_published() {
    let pair = PublishFixture::new();
    pair.commit("one");
    pair.publish();
    let first = pair.branch();
    pair.commit("two");
    let [real, other] = ["HEAD:file", "HEAD~1:file"].map(|name| pair.git(&format!("rev-parse {name}")));
    let object = |id: &str| pair.workspace.work_dir().join(".git/objects").join(&id[..2]).join(&id[2..]);
    fs::set_permissions(object(&real), fs::Permissions::from_mode(0o644)).unwrap();
    fs::copy(object(&other), object(&real)).unwrap();
    let refused = match pair.try_publish() {
        Ok(publication) => publication.is_held,
        Err(_) => true,
    };
    assert!(refused);
    assert_eq!((pair.branch(), pair.source_git("rev-parse refs/runner/at/x")), (first.clone(), first));
    assert_eq!(pair.source_git("fsck --no-dangling --connectivity-only"), "", "nothing in the source is in part");
}

#[test]
fn the_daemon_accounts_for_what_it_has_published_and_for_nothing_else() {
    let pair = PublishFixture::new();
    let ids = ["one", "two", "three"].map(|text| {
        let id = pair.commit(text);
        pair.publish();
        id
    });
    let note: PublishedMove = pair.store.published_file().read().unwrap().unwrap();
    let source = Repository::discover(pair.source()).unwrap();
    let other = pair.source_git("commit-tree -m other HEAD^{tree} -p HEAD");
    let is_accounted = |before: Option<&String>, after: Option<&String>| {
        let moved = MovedRef { name: "refs/heads/runner/x".to_owned(), before: before.cloned(), after: after.cloned() };
        note.accounts_for(&moved, &source).unwrap()
    };
    assert!(is_accounted(None, Some(&ids[0])));
    assert!(is_accounted(Some(&ids[0]), Some(&ids[1])), "it has gone on since");
    assert!(is_accounted(Some(&ids[0]), Some(&ids[2])));
    assert!(!is_accounted(Some(&ids[2]), Some(&ids[0])), "set back");
    assert!(!is_accounted(Some(&ids[2]), None), "taken away");
    assert!(!is_accounted(Some(&ids[2]), Some(&other)));
    assert!(!is_accounted(Some(&other), Some(&ids[2])), "what was there is not the run's");
    assert!(!is_accounted(None, Some(&"ref: refs/heads/main".to_owned())));
}

#[test]
fn row_113_an_id_that_is_reserved_for_another_run_is_left_to_it() {
    let pair = PublishFixture::new();
    pair.commit("one");
    let reserve = |nonce: &str| {
        fs::write(pair.place("nonce"), nonce).unwrap();
        let blob = pair.source_git(&format!("hash-object -w {}", pair.place("nonce").display()));
        pair.source_git(&format!("update-ref refs/runner/reserved/x {blob}"));
    };
    reserve("another");
    let before = pair.state_of_source();
    let why = pair.hold_reason();
    assert!(why.message.starts_with("x is reserved for another run in "), "{why:?}");
    assert_eq!(pair.state_of_source(), before);
    pair.follow(&why);
    pair.publish();
    reserve(&pair.origin.nonce);
    pair.commit("two");
    pair.publish();
    pair.assert_sound();
}
