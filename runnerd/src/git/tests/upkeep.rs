//! What keeps the store small takes nothing away.

use super::fixture::{Fixture, commit};

/// Enough for git to find that packing is worth it.
const COMMITS: u32 = 60;

fn loose(fixture: &Fixture) -> u32 {
    let count = fixture.git(&["count-objects"]);
    count.split(' ').next().and_then(|count| count.parse().ok()).unwrap()
}

fn grown() -> Fixture {
    let fixture = Fixture::new();
    for number in 0..COMMITS {
        fixture.write("a.txt", format!("as commit {number} has it"));
        commit(&fixture.repository()).unwrap();
    }
    fixture
}

#[test]
fn objects_that_lie_about_become_a_pack_and_those_that_nothing_names_stay() {
    let fixture = grown();
    fixture.write("lost.txt", "named by nothing");
    let lost = fixture.git(&["hash-object", "-w", "lost.txt"]);
    let before = loose(&fixture);
    fixture.repository().pack_objects().unwrap();
    fixture.repository().pack_objects().unwrap();
    assert!(before > 100 && loose(&fixture) < 10, "{before}, then {}", loose(&fixture));
    assert_eq!(fixture.git(&["cat-file", "-p", &lost]), "named by nothing");
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn a_lock_that_a_dead_maintenance_left_is_in_nobodys_way() {
    let fixture = grown();
    fixture.write(".git/objects/maintenance.lock", "");
    fixture.repository().pack_objects().unwrap();
    fixture.repository().pack_objects().unwrap();
    assert!(loose(&fixture) < 10, "{}", loose(&fixture));
}
