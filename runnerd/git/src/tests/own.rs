//! Files of the runner's folder, in the work tree of a run: compared and stored byte for byte, whatever rules apply.

use super::fixture::{ENGINES, Fixture, commit, request};
use crate::repository::engine::GitEngine;
use crate::{ChangeKind, CommitRequest, GitError, HoldBackRule, Repository, WorktreeChange};

const TREE: &str = ".runner/state/tree.json";
const ODD: &str = "+ACI- $Id: x $\r\n";
/// Files of the folder that a rule would change or leave out.
const FILES: [&str; 4] =
    [TREE, ".runner/GOAL.md", ".runner/nodes/x/context.md", ".runner/nodes/x/artifacts/deep/odd.json"];

/// The work tree of a run, with rules of every kind for the folder.
fn fixture_with_rules(engine: GitEngine) -> (Fixture, Repository) {
    let fixture = Fixture::new();
    fixture.git(&["config", "filter.loud.clean", "tr a-z A-Z"]);
    fixture.write(".gitattributes", "* text ident filter=loud\n*.json text eol=crlf\n*.md -text\n");
    fixture.write(".gitignore", ".runner\n*.json\n");
    fixture.write(".runner/nodes/x/artifacts/.gitattributes", "* filter=loud\n");
    fixture.write(".git/info/exclude", "*.md\n");
    let repository = fixture.with_engine(engine);
    repository.set_never_tracked([".runner/context", ".runner/iterations"]);
    (fixture, repository)
}

fn list_changes(repository: &Repository) -> Vec<(String, ChangeKind)> {
    let own = |change: &WorktreeChange| change.display_path().starts_with(".runner/");
    let changes = repository.list_changes().unwrap().into_iter().filter(own);
    changes.map(|change| (change.display_path(), change.kind)).collect()
}

#[test]
fn they_are_stored_as_they_are_whatever_rules_there_are() {
    for engine in ENGINES {
        let (fixture, repository) = fixture_with_rules(engine);
        for file in FILES.into_iter().chain([".runner/context/c", ".runner/iterations/x/0001/meta.json"]) {
            fixture.write(file, ODD);
        }
        let new = list_changes(&repository);
        assert_eq!(new.len(), FILES.len() + 1, "{new:?}");
        commit(&repository).unwrap();
        for file in FILES {
            let stored = fixture.try_git(fixture.path("").as_path(), &["cat-file", "blob", &format!("HEAD:{file}")]);
            assert_eq!(String::from_utf8_lossy(&stored.stdout), ODD, "{engine:?} {file}");
        }
        assert_eq!(fixture.git(&["ls-tree", "-r", "--name-only", "HEAD", ".runner/context", ".runner/iterations"]), "");
        assert_eq!(list_changes(&repository), []);
    }
}

#[test]
fn changes_of_them_are_seen_that_rules_would_hide() {
    for engine in ENGINES {
        let (fixture, repository) = fixture_with_rules(engine);
        for file in FILES {
            fixture.write(file, ODD);
        }
        commit(&repository).unwrap();
        fixture.write(TREE, ODD.replace("\r\n", "\n"));
        fixture.chmod(".runner/GOAL.md", 0o755);
        fixture.remove(FILES[2]);
        fixture.remove(FILES[3]);
        fixture.link("elsewhere", FILES[3]);
        let expected = [
            (".runner/GOAL.md", ChangeKind::Modified),
            (FILES[3], ChangeKind::Retyped),
            (FILES[2], ChangeKind::Deleted),
            (TREE, ChangeKind::Modified),
        ];
        assert_eq!(list_changes(&repository), expected.map(|(path, kind)| (path.to_owned(), kind)), "{engine:?}");
        commit(&repository).unwrap();
        assert_eq!(list_changes(&repository), []);
        let listed = fixture.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD", ".runner"]);
        let modes: Vec<&str> = listed.lines().filter(|line| !line.ends_with(".gitattributes")).collect();
        let expected = [format!("100755 {}", FILES[1]), format!("120000 {}", FILES[3]), format!("100644 {TREE}")];
        assert_eq!(modes, expected, "{engine:?}");
    }
}

#[test]
fn marks_hide_none_that_is_there_and_remove_none_that_is_not() {
    for engine in ENGINES {
        let (fixture, repository) = fixture_with_rules(engine);
        for file in FILES {
            fixture.write(file, ODD);
        }
        commit(&repository).unwrap();
        fixture.git(&["update-index", "--skip-worktree", TREE, ".runner/GOAL.md"]);
        let repository = fixture.with_engine(engine);
        repository.set_never_tracked([".runner/context", ".runner/iterations"]);
        fixture.write(TREE, "other\n");
        fixture.remove(".runner/GOAL.md");
        assert_eq!(list_changes(&repository), [(TREE.to_owned(), ChangeKind::Modified)], "{engine:?}");
        commit(&repository).unwrap();
        assert_eq!(fixture.git(&["show", &format!("HEAD:{TREE}")]), "other");
        assert_eq!(fixture.git(&["ls-tree", "--name-only", "HEAD", ".runner/GOAL.md"]), ".runner/GOAL.md");
    }
}

#[test]
fn nothing_is_committed_that_was_written_otherwise() {
    for engine in ENGINES {
        let (fixture, repository) = fixture_with_rules(engine);
        fixture.write(TREE, ODD);
        let before = fixture.head();
        let nothing = HoldBackRule::nested_only();
        let refused = CommitRequest { expected_files: &[(TREE, b"what was written\n")], ..request(&fixture, &nothing) };
        let error = repository.commit_all(&refused).unwrap_err();
        assert!(matches!(&error, GitError::FileOverwritten { file, .. } if file == TREE), "{engine:?}: {error}");
        assert_eq!(fixture.head(), before);
        let as_written = CommitRequest { expected_files: &[(TREE, ODD.as_bytes())], ..request(&fixture, &nothing) };
        repository.commit_all(&as_written).unwrap();
    }
}
