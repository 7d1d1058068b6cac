//! What the ignore rules of a commit ignore stays out of commits, whatever the work tree's own rules say.

use super::fixture::{ENGINES, Fixture, commit_with};
use crate::{CommitOutcome, HoldBackRule, Id, IgnoreFiles, Repository};

/// A repository whose first commit ignores two kinds of files and two folders, one of which has a tracked file.
fn with_rules() -> Fixture {
    let fixture = Fixture::unborn();
    fixture.write(".gitignore", "*.db\n/keys/\n/mixed/\n!kept.db\n");
    fixture.write("dir/.gitignore", "/here\n");
    fixture.write("mixed/tracked", "1");
    fixture.git(&["add", "--force", "mixed/tracked"]);
    fixture.commit_by_git("base");
    for name in ["data.db", "sub/x.db", "kept.db", "keys/a", "keys/sub/b", "mixed/new", "dir/here", "here"] {
        fixture.write(name, "x");
    }
    fixture
}

fn rule(base: Id, changed: &[(&str, Option<Id>)]) -> HoldBackRule {
    let changed = changed.iter().map(|(path, blob)| (path.as_bytes().to_owned(), *blob)).collect();
    HoldBackRule { ignore_files: Some(IgnoreFiles { base, changed }), ..HoldBackRule::nested_only() }
}

fn base_of(repository: &Repository) -> Id {
    repository.head().unwrap().commit().unwrap()
}

fn assert_left_out(fixture: &Fixture, committed: &CommitOutcome) {
    assert_eq!(committed.held_back, ["data.db", "dir/here", "keys/", "mixed/new", "sub/x.db"]);
    let listed = fixture.git(&["ls-files"]);
    assert_eq!(listed.lines().filter(|name| committed.held_back.iter().any(|out| name.starts_with(out))).count(), 0);
}

#[test]
fn what_a_commit_ignores_stays_out_when_the_work_tree_does_not_ignore_it_any_more() {
    for engine in ENGINES {
        let fixture = with_rules();
        let repository = fixture.with_engine(engine);
        let rule = rule(base_of(&repository), &[]);
        fixture.write(".gitignore", "!*.db\n");
        fixture.write("dir/.gitignore", "");
        fixture.write("mixed/tracked", "2");
        fixture.git(&["add", "--force", "keys/a", "data.db"]);
        let committed = commit_with(&repository, &rule).unwrap();
        assert_left_out(&fixture, &committed);
        assert_eq!(fixture.git(&["show", "HEAD:mixed/tracked"]), "2", "{engine:?}: what is tracked stays tracked");
        assert_eq!(fixture.git(&["ls-files", "here", "kept.db"]), "here\nkept.db", "{engine:?}");
        // Another commit, where the rules of HEAD ignore none of it.
        fixture.write("here", "2");
        assert_left_out(&fixture, &commit_with(&repository, &rule).unwrap());
        assert!(fixture.has("data.db") && fixture.has("keys/sub/b"));
        fixture.git(&["fsck", "--strict"]);
    }
}

#[test]
fn rules_that_replace_those_of_the_commit_count_instead() {
    for engine in ENGINES {
        let fixture = with_rules();
        let repository = fixture.with_engine(engine);
        let blob = repository.write_blob(b"/keys/\n").unwrap();
        let base = base_of(&repository);
        fixture.write(".gitignore", "");
        fixture.write("dir/.gitignore", "");
        let committed = commit_with(&repository, &rule(base, &[])).unwrap();
        assert_left_out(&fixture, &committed);
        let committed = commit_with(&repository, &rule(base, &[(".gitignore", Some(blob)), ("dir/.gitignore", None)]));
        assert_eq!(committed.unwrap().held_back, ["keys/"], "{engine:?}");
        assert_eq!(fixture.git(&["ls-files", "data.db", "dir/here", "mixed/new"]), "data.db\ndir/here\nmixed/new");
    }
}

#[test]
fn rules_outside_of_commits_hold_too_but_not_the_runners_own_lines() {
    for engine in ENGINES {
        let fixture = with_rules();
        fixture.write(".git/info/exclude", "/excluded\n");
        fixture.write("excluded", "x");
        let repository = fixture.with_engine(engine);
        let rule = rule(base_of(&repository), &[]);
        fixture.write(".gitignore", "!/excluded\n");
        let committed = commit_with(&repository, &rule).unwrap();
        assert!(committed.held_back.contains(&"excluded".to_owned()), "{engine:?}: {:?}", committed.held_back);
        fixture.write(".git/info/exclude", fixture.read(".git/info/exclude").replacen("/excluded\n", "", 1));
        fixture.write("here", "2");
        let committed = commit_with(&fixture.with_engine(engine), &rule).unwrap();
        assert!(!committed.held_back.contains(&"excluded".to_owned()), "{engine:?}: {:?}", committed.held_back);
    }
}

#[test]
fn changed_ignore_files_are_told_with_what_became_of_them() {
    let fixture = with_rules();
    let repository = fixture.repository();
    let base = base_of(&repository);
    fixture.write(".gitignore", "*.o\n");
    fixture.write("new/.gitignore", "x\n");
    fixture.write("not.gitignore", "x\n");
    fixture.remove("dir/.gitignore");
    fixture.commit_by_git("other rules");
    let changed = repository.changed_ignore_files(&base, &base_of(&repository)).unwrap();
    let names: Vec<_> = changed.iter().map(|(path, blob)| (str::from_utf8(path).unwrap(), blob.is_some())).collect();
    assert_eq!(names, [(".gitignore", true), ("dir/.gitignore", false), ("new/.gitignore", true)]);
    assert_eq!(changed.values().next(), Some(&Some(repository.write_blob(b"*.o\n").unwrap())));
}
