//! The folder of the captured configuration after others have written to it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fixture::Fixture;
use crate::repository::engine::GitEngine;
use crate::{HoldBackRule, Repository, WorktreeChange};

/// Returns every path below a folder with its content; does not follow links.
fn contents(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            let content = match kind {
                kind if kind.is_dir() => "folder".to_owned(),
                kind if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
                _ => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            };
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, content));
        }
    }
    found.sort();
    found
}

struct PinnedFixture {
    fixture: Fixture,
    repository: Repository,
    folder: PathBuf,
}

impl PinnedFixture {
    fn new() -> Self {
        let fixture = Fixture::new();
        fixture.write("a.txt", "one\n");
        fixture.commit_by_git("one");
        let repository = fixture.repository();
        repository.list_changes().unwrap();
        let folder = fixture.folder().join("trusted");
        Self { fixture, repository, folder }
    }
}

#[test]
fn whatever_somebody_makes_of_the_folder_is_put_right_before_it_is_used() {
    let PinnedFixture { fixture, repository, folder } = PinnedFixture::new();
    let right = contents(&folder);
    let elsewhere = fixture.folder().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "theirs\n").unwrap();
    let deeds: [(&str, &dyn Fn()); 9] = [
        ("a setting", &|| fs::write(folder.join("config"), "[core]\n\tfsmonitor = /bin/false\n").unwrap()),
        ("settings of a working tree", &|| fs::write(folder.join("config.worktree"), "[core]\n").unwrap()),
        ("attributes", &|| fs::write(folder.join("info/attributes"), "* filter=x\n").unwrap()),
        ("grafts", &|| fs::write(folder.join("info/grafts"), "x\n").unwrap()),
        ("hooks", &|| fs::create_dir(folder.join("hooks")).unwrap()),
        ("another store of objects", &|| {
            fs::remove_file(folder.join("objects")).unwrap();
            symlink(&elsewhere, folder.join("objects")).unwrap();
        }),
        ("a link in the place of a file", &|| {
            fs::remove_file(folder.join("excludes")).unwrap();
            symlink(elsewhere.join("file"), folder.join("excludes")).unwrap();
        }),
        ("a folder in the place of a file", &|| {
            fs::remove_file(folder.join("attributes")).unwrap();
            fs::create_dir_all(folder.join("attributes/full")).unwrap();
        }),
        ("nothing", &|| fs::remove_dir_all(&folder).unwrap()),
    ];
    for (what, deed) in deeds {
        for engine in [GitEngine::Gix, GitEngine::Git] {
            deed();
            assert_ne!(fs::metadata(&folder).ok().map(|_| contents(&folder)), Some(right.clone()), "{what}");
            repository.clone().with_engine(engine).list_changes().unwrap();
            assert_eq!(contents(&folder), right, "{what}");
        }
    }
    assert_eq!(fs::read_to_string(elsewhere.join("file")).unwrap(), "theirs\n");
}

#[test]
fn what_the_runner_holds_back_stays_hidden_and_nothing_else_is() {
    for engine in [GitEngine::Gix, GitEngine::Git] {
        let PinnedFixture { fixture, repository, folder } = PinnedFixture::new();
        let repository = repository.with_engine(engine);
        fixture.write("large", "x".repeat(101));
        fixture.write("hidden", "by somebody");
        let rule = HoldBackRule { max_file_bytes: 100, ..HoldBackRule::nested_only() };
        let mut changes = repository.list_changes().unwrap();
        assert_eq!(repository.apply_hold_back(&rule, &mut changes).unwrap().paths, ["large"]);
        let seen = || repository.list_changes().unwrap().iter().map(WorktreeChange::display_path).collect::<Vec<_>>();
        assert_eq!(seen(), ["hidden"]);
        let exclude = folder.join("info/exclude");
        let right = fs::read_to_string(&exclude).unwrap();
        fs::write(&exclude, format!("{right}/hidden\n")).unwrap();
        assert!(seen().contains(&"hidden".to_owned()), "{engine:?}: rules that were not captured hide nothing");
    }
}

#[test]
fn folder_that_became_a_link_is_one_again_and_what_it_led_to_is_untouched() {
    let PinnedFixture { fixture, repository, folder } = PinnedFixture::new();
    let right = contents(&folder);
    let away = fixture.folder().join("away");
    fs::rename(&folder, &away).unwrap();
    fs::write(away.join("config"), "[core]\n\tfsmonitor = /bin/false\n").unwrap();
    symlink(&away, &folder).unwrap();
    let theirs = contents(&away);
    repository.list_changes().unwrap();
    assert_eq!((contents(&folder), contents(&away)), (right, theirs));
}

#[test]
fn what_was_captured_is_the_same_from_its_value() {
    let PinnedFixture { fixture: _fixture, repository, folder } = PinnedFixture::new();
    let right = contents(&folder);
    let text = serde_json::to_string(repository.pinned_config().unwrap()).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let again = Repository::from_pinned(&folder, serde_json::from_str(&text).unwrap());
    again.list_changes().unwrap();
    assert_eq!(contents(&folder), right);
}
