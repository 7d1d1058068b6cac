//! Paths where git would write through a link: the other file stays as it is, commits succeed, and the link is
//! reported.

use std::fs;
use std::path::Path;

use runner_core::run::blocker::Transience;
use runner_os::retryable::Retryable as _;

use super::fixture::{Fixture, commit};

const VICTIM: &[u8] = b"somebody else's bytes\n";

/// Replaces a reflog with something, commits twice, and checks someone else's file each time.
fn assert_untouched(place: impl Fn(&Fixture, &Path), named: &[&str]) {
    let fixture = Fixture::new();
    let victim = fixture.folder().join("victim");
    fs::write(&victim, VICTIM).unwrap();
    let repository = fixture.repository();
    let before = repository.snapshot_git_dir(&fixture.path("nothing")).unwrap();
    place(&fixture, &victim);
    fixture.write("one.txt", "1");
    commit(&repository).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), VICTIM, "before anything has read it");
    let mut found = repository.remove_pipes(&before).unwrap();
    found.extend(repository.replace_linked_files(&before).unwrap());
    assert_eq!(found, named);
    fixture.write("two.txt", "2");
    commit(&repository).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), VICTIM);
    assert_eq!(fixture.git(&["reflog", "-1", "--format=%gs", "HEAD"]), "commit: chore(loop): work");
    assert_eq!(fs::read_dir(fixture.folder().join("victims")).into_iter().flatten().count(), 0);
    assert!(repository.replace_linked_files(&before).unwrap().is_empty());
}

#[test]
fn a_link_in_the_place_of_a_log_is_not_followed() {
    for log in [".git/logs/HEAD", ".git/logs/refs/heads/main"] {
        let place = |fixture: &Fixture, victim: &Path| {
            fixture.remove(log);
            fixture.link(victim.to_str().unwrap(), log);
        };
        assert_untouched(place, &[log]);
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
        assert_untouched(place, &[folder]);
    }
}

#[test]
fn another_name_of_a_file_in_the_place_of_a_log_is_not_written_through() {
    let place = |fixture: &Fixture, victim: &Path| {
        fixture.remove(".git/logs/HEAD");
        fs::hard_link(victim, fixture.path(".git/logs/HEAD")).unwrap();
    };
    assert_untouched(place, &[".git/logs/HEAD"]);
}

#[test]
fn a_pipe_in_the_place_of_a_log_is_not_waited_for() {
    let place = |fixture: &Fixture, _: &Path| {
        fixture.remove(".git/logs/HEAD");
        fixture.fifo(".git/logs/HEAD");
    };
    assert_untouched(place, &[".git/logs/HEAD"]);
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

#[test]
fn index_and_packed_references_are_not_written_where_a_link_leads() {
    let fixture = Fixture::new();
    fixture.git(&["pack-refs", "--all"]);
    let repository = fixture.repository();
    let before = repository.snapshot_git_dir(&fixture.path("nothing")).unwrap();
    for name in [".git/index", ".git/packed-refs"] {
        let victim = fixture.folder().join("victim");
        fs::rename(fixture.path(name), &victim).unwrap();
        let bytes = fs::read(&victim).unwrap();
        fixture.link(victim.to_str().unwrap(), name);
        assert_eq!(repository.replace_linked_files(&before).unwrap(), [name]);
        fixture.write("mine.txt", name);
        commit(&repository).unwrap();
        fixture.git(&["pack-refs", "--all"]);
        assert_eq!(fs::read(&victim).unwrap(), bytes);
        assert!(fixture.path(name).symlink_metadata().unwrap().is_file());
    }
}

#[test]
fn a_link_to_what_is_too_large_to_be_an_index_is_removed_and_not_read() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let before = repository.snapshot_git_dir(&fixture.path("nothing")).unwrap();
    let huge = fixture.folder().join("huge");
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    fixture.remove(".git/index");
    fixture.link(huge.to_str().unwrap(), ".git/index");
    assert_eq!(repository.replace_linked_files(&before).unwrap(), [".git/index"]);
    assert!(!fixture.has(".git/index"));
    assert_eq!(huge.metadata().unwrap().len(), 1 << 40);
}

#[test]
fn a_folder_that_leads_elsewhere_is_no_folder_of_the_repositorys() {
    for folder in [".git/refs", ".git/refs/heads", ".git/objects", ".git/objects/info"] {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let before = repository.snapshot_git_dir(&fixture.path("nothing")).unwrap();
        let away = fixture.folder().join("away");
        fs::rename(fixture.path(folder), &away).unwrap();
        fixture.link(away.to_str().unwrap(), folder);
        let refused = repository.replace_linked_files(&before).unwrap_err();
        assert!(refused.transience() == Transience::Lost && refused.to_string().contains(folder), "{refused}");
        fixture.remove(folder);
        fs::rename(&away, fixture.path(folder)).unwrap();
        assert!(repository.replace_linked_files(&before).unwrap().is_empty());
    }
}

#[test]
fn links_that_a_person_had_before_stay() {
    let fixture = Fixture::new();
    let away = fixture.folder().join("away");
    fs::rename(fixture.path(".git/objects/info"), &away).unwrap();
    fixture.link(away.to_str().unwrap(), ".git/objects/info");
    let repository = fixture.repository();
    let before = repository.snapshot_git_dir(&fixture.clock_after(&[".git/objects", ".git/objects/info"])).unwrap();
    assert!(repository.replace_linked_files(&before).unwrap().is_empty());
}
