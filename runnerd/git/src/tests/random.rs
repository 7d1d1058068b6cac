//! Random changes to two identical repositories, committed by the library in one and by git in the other.

use std::fs;
use std::os::unix::fs::symlink;

use super::fixture::{Fixture, commit};
use crate::GitError;
use crate::repository::engine::GitEngine;

const SEEDS: u64 = 6;
const ROUNDS: usize = 5;
const EDITS: usize = 12;

/// Names that collide: files where folders were, and names that sort around a slash.
const NAMES: [&str; 14] =
    ["a", "a.b", "a-b", "a0", "a/b", "a/b/c", "a/d", "b", "b/c/d/e", "B", "x.log", "dir/.gitignore", "z z", "dir/f"];

/// A generator whose choices depend on the seed alone.
struct RandomChoices(u64);

impl RandomChoices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

#[test]
fn random_histories_have_the_trees_that_git_makes() {
    for seed in 0..SEEDS {
        let ours = Fixture::new();
        let theirs = Fixture::new();
        for round in 0..ROUNDS {
            edit(&ours, &mut RandomChoices(seed * 1000 + round as u64));
            edit(&theirs, &mut RandomChoices(seed * 1000 + round as u64));
            let expected = theirs.commit_by_git("round");
            match commit(&ours.with_engine(GitEngine::Gix)) {
                Ok(_) | Err(GitError::NothingToCommit { .. }) => {}
                Err(error) => panic!("seed {seed}, round {round}: {error}"),
            }
            let tree = theirs.git(&["rev-parse", &format!("{expected}^{{tree}}")]);
            assert_eq!(ours.git(&["rev-parse", "HEAD^{tree}"]), tree, "seed {seed}, round {round}");
            ours.assert_sound();
        }
    }
}

fn edit(fixture: &Fixture, choices: &mut RandomChoices) {
    for _ in 0..EDITS {
        let name = NAMES[choices.below(NAMES.len())];
        let content = ["", "*.log\n", "one\n", "two\n", "one\r\ntwo\r\n"][choices.below(5)];
        match choices.below(8) {
            0..=3 => create_at(fixture, name, |path| fs::write(path, content)),
            4 if !name.ends_with(".gitignore") => {
                create_at(fixture, name, |path| symlink(content.trim_end().to_owned() + "x", path));
            }
            5 => drop(fixture.has(name).then(|| fixture.remove(name))),
            6 if fixture.path(name).is_file() => fixture.chmod(name, [0o644, 0o755][choices.below(2)]),
            _ => drop(fixture.try_git(&fixture.path(""), [&["add", "-A"][..], &["add", "-N", name]][choices.below(2)])),
        }
    }
}

/// Creates something at a path, whatever is at or above it now.
fn create_at(fixture: &Fixture, name: &str, make: impl Fn(&std::path::Path) -> std::io::Result<()>) {
    for end in name.match_indices('/').map(|(at, _)| at) {
        let is_other = fixture.path(&name[..end]).symlink_metadata().is_ok_and(|found| !found.is_dir());
        if is_other {
            fixture.remove(&name[..end]);
        }
    }
    if fixture.has(name) {
        fixture.remove(name);
    }
    let path = fixture.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    make(&path).unwrap();
}
