//! Logs of references that lead to somebody else's file: it stays as it is, commits are made, and the log is named.

use std::fs;
use std::path::Path;

use super::fixture::{Fixture, commit};

const VICTIM: &[u8] = b"somebody else's bytes\n";

/// Puts something in the place of a log, commits twice, and looks at somebody else's file each time.
fn stays_as_it_is(place: impl Fn(&Fixture, &Path), named: &[&str]) {
    let fixture = Fixture::new();
    let victim = fixture.folder().join("victim");
    fs::write(&victim, VICTIM).unwrap();
    let repository = fixture.repository();
    let before = repository.fingerprint(&fixture.path("nothing")).unwrap();
    place(&fixture, &victim);
    fixture.write("one.txt", "1");
    commit(&repository).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), VICTIM, "before anybody has looked");
    let mut found = repository.remove_pipes(&before).unwrap();
    found.extend(repository.replace_foreign_logs(&before).unwrap());
    assert_eq!(found, named);
    fixture.write("two.txt", "2");
    commit(&repository).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), VICTIM);
    assert_eq!(fixture.git(&["reflog", "-1", "--format=%gs", "HEAD"]), "commit: chore(loop): work");
    assert_eq!(fs::read_dir(fixture.folder().join("victims")).into_iter().flatten().count(), 0);
    assert!(repository.replace_foreign_logs(&before).unwrap().is_empty());
}

#[test]
fn a_link_in_the_place_of_a_log_is_not_followed() {
    for log in [".git/logs/HEAD", ".git/logs/refs/heads/main"] {
        let place = |fixture: &Fixture, victim: &Path| {
            fixture.remove(log);
            fixture.link(victim.to_str().unwrap(), log);
        };
        stays_as_it_is(place, &[log]);
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_of_logs_is_not_followed() {
    for folder in [".git/logs", ".git/logs/refs", ".git/logs/refs/heads"] {
        let place = |fixture: &Fixture, _: &Path| {
            let victims = fixture.folder().join("victims");
            fs::create_dir(&victims).unwrap();
            fs::rename(fixture.path(folder), fixture.folder().join("aside")).unwrap();
            fixture.link(victims.to_str().unwrap(), folder);
        };
        stays_as_it_is(place, &[folder]);
    }
}

#[test]
fn another_name_of_a_file_in_the_place_of_a_log_is_not_written_through() {
    let place = |fixture: &Fixture, victim: &Path| {
        fixture.remove(".git/logs/HEAD");
        fs::hard_link(victim, fixture.path(".git/logs/HEAD")).unwrap();
    };
    stays_as_it_is(place, &[".git/logs/HEAD"]);
}

#[test]
fn a_pipe_in_the_place_of_a_log_is_not_waited_for() {
    let place = |fixture: &Fixture, _: &Path| {
        fixture.remove(".git/logs/HEAD");
        fixture.fifo(".git/logs/HEAD");
    };
    stays_as_it_is(place, &[".git/logs/HEAD"]);
}

#[test]
fn a_link_is_not_followed_where_head_changes_branches() {
    let fixture = Fixture::new();
    let victim = fixture.folder().join("victim");
    fs::write(&victim, VICTIM).unwrap();
    fixture.remove(".git/logs/HEAD");
    fixture.link(victim.to_str().unwrap(), ".git/logs/HEAD");
    fixture.repository().start_branch("runner/x", &fixture.head()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), VICTIM);
}
