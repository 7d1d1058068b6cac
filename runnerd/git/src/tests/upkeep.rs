//! Keeping the store small removes nothing.

use std::fs::{self, File};
use std::path::PathBuf;

use super::fixture::{Fixture, commit};

/// Enough for git to consider packing worthwhile.
const COMMITS: u32 = 60;

fn count_loose(fixture: &Fixture) -> u32 {
    let count = fixture.git(&["count-objects"]);
    count.split(' ').next().and_then(|count| count.parse().ok()).unwrap()
}

fn packs(fixture: &Fixture) -> Vec<PathBuf> {
    files(fixture, "pack")
}

/// Returns the pack files with this ending.
fn files(fixture: &Fixture, ending: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(fixture.path(".git/objects/pack")).unwrap();
    listed.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == ending)).collect()
}

fn fixture_with_commits() -> Fixture {
    let fixture = Fixture::new();
    for number in 0..COMMITS {
        fixture.write("a.txt", format!("as commit {number} has it"));
        commit(&fixture.repository()).unwrap();
    }
    fixture
}

#[test]
fn what_lies_about_is_estimated_by_one_folder_and_a_persons_setting_is_seen() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    assert!(repository.count_loose_sample().unwrap() < 2);
    for number in 0..2000 {
        fixture.write(format!("many-{number}"), number.to_string());
    }
    fixture.git(&["add", "-A"]);
    let found = repository.count_loose_sample().unwrap();
    assert!((2..20).contains(&found), "{found}");
    repository.pack_objects().unwrap();
    assert_eq!(repository.count_loose_sample().unwrap(), 0);
    assert!(!repository.is_auto_gc_disabled().unwrap());
    fixture.git(&["config", "gc.auto", "0"]);
    assert!(fixture.repository().is_auto_gc_disabled().unwrap());
}

#[test]
fn objects_that_lie_about_become_a_pack_and_those_that_nothing_names_stay() {
    let fixture = fixture_with_commits();
    fixture.write("lost.txt", "named by nothing");
    let lost = fixture.git(&["hash-object", "-w", "lost.txt"]);
    let before = count_loose(&fixture);
    fixture.repository().pack_objects().unwrap();
    assert!(before > 100 && count_loose(&fixture) == 0, "{before}, then {}", count_loose(&fixture));
    assert_eq!(fixture.git(&["cat-file", "-p", &lost]), "named by nothing");
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn packs_stay_few_and_the_repository_that_is_open_finds_what_is_in_them() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let mut commits = Vec::new();
    for round in 0..12 {
        for number in 0..40 {
            fixture.write("a.txt", format!("as commit {number} of round {round} has it"));
            commits.push(commit(&repository).unwrap().commit);
        }
        repository.pack_objects().unwrap();
        repository.open_chain().unwrap().read_commit(&commits[0]).unwrap();
    }
    assert!(packs(&fixture).len() <= 4, "{:?}", packs(&fixture));
    assert_eq!(repository.first_parents(&commits[479], 1000).unwrap().len(), commits.len() + 1);
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn a_large_pack_is_not_written_again() {
    let fixture = fixture_with_commits();
    fixture.git(&["config", "core.compression", "0"]);
    fixture.write("large.bin", vec![7; 65 << 20]);
    fixture.git(&["add", "large.bin"]);
    fixture.git(&["commit", "-qm", "large"]);
    fixture.git(&["rm", "-q", "large.bin"]);
    fixture.git(&["commit", "-qm", "no longer in the working tree, where it would be read"]);
    fixture.git(&["repack", "-adq"]);
    let large = packs(&fixture);
    // git counts objects: two small packs with as many are enough reason to roll all three up.
    for _ in 0..2 {
        for number in 0..COMMITS {
            fixture.write("b.txt", format!("as commit {number} has it"));
            commit(&fixture.repository()).unwrap();
        }
        fixture.repository().pack_objects().unwrap();
    }
    assert_eq!((large.len(), count_loose(&fixture)), (1, 0));
    assert!(packs(&fixture).contains(&large[0]), "{:?}", packs(&fixture));
}

#[test]
fn in_a_partial_clone_what_the_remote_has_promised_stays_known_as_that() {
    let origin = fixture_with_commits();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let fixture = Fixture::new();
    let url = format!("file://{}", origin.path("").display());
    fixture.git(&["remote", "add", "origin", &url]);
    fixture.git(&["fetch", "-q", "--filter=blob:none", "origin"]);
    let promised = files(&fixture, "promisor");
    for number in 0..3 * COMMITS {
        fixture.write("b.txt", format!("as commit {number} has it"));
        commit(&fixture.repository()).unwrap();
        if number % COMMITS == 0 {
            fixture.repository().pack_objects().unwrap();
        }
    }
    assert!(!files(&fixture, "pack").is_empty());
    assert_eq!((promised.len(), files(&fixture, "promisor")), (1, promised));
    fixture.git(&["fsck"]);
}

#[test]
fn while_a_maintenance_is_under_way_nothing_is_packed() {
    let fixture = fixture_with_commits();
    let before = count_loose(&fixture);
    fixture.write(".git/objects/maintenance.lock", "");
    let _held = File::open(fixture.path(".git/objects/maintenance.lock")).unwrap();
    fixture.repository().pack_objects().unwrap();
    assert_eq!(count_loose(&fixture), before);
}

#[test]
fn a_lock_that_a_dead_maintenance_left_is_in_nobodys_way() {
    let fixture = fixture_with_commits();
    fixture.write(".git/objects/maintenance.lock", "");
    fixture.repository().pack_objects().unwrap();
    assert_eq!(count_loose(&fixture), 0);
}
