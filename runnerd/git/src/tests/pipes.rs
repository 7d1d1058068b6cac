//! Pipes in places that git reads: those created since a given moment are found anywhere, and nothing else is searched.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use super::fixture::Fixture;
use crate::{GitDirSnapshot, GitError, Repository};

/// Takes a fingerprint later than all folders of the repository: the clock of a file system ticks every few
/// milliseconds.
fn take_snapshot(fixture: &Fixture) -> GitDirSnapshot {
    fixture.repository().snapshot_git_dir(&fixture.clock_after(&["", "dir/sub"])).unwrap()
}

/// Creates a folder next to the work tree, with a pipe deep inside.
fn side_folder(fixture: &Fixture) -> PathBuf {
    let aside = fixture.folder().join("aside");
    let folder = aside.join("deep/old");
    fs::create_dir_all(&folder).unwrap();
    fixture.fifo(folder.join(".gitignore").to_str().unwrap());
    aside
}

fn remove_pipes(fixture: &Fixture, before: &GitDirSnapshot) -> Vec<String> {
    let mut removed = fixture.repository().remove_pipes(before).unwrap();
    removed.sort();
    removed
}

#[test]
fn those_that_came_since_are_removed() {
    let fixture = Fixture::new();
    let before = take_snapshot(&fixture);
    fixture.write("new/folder/file", "");
    for rule in [".gitignore", "dir/sub/.gitattributes", "new/folder/.gitignore", ".git/config.worktree", "dir/plain"] {
        fixture.fifo(rule);
    }
    fixture.link("/dev/tty", "other/.gitmodules");
    let rules =
        [".git/config.worktree", ".gitignore", "dir/sub/.gitattributes", "new/folder/.gitignore", "other/.gitmodules"];
    assert_eq!(remove_pipes(&fixture, &before), rules);
    assert!(fixture.has("dir/plain"), "git reads no such file");
}

#[test]
fn one_that_was_there_before_is_not_the_sessions() {
    let fixture = Fixture::new();
    fixture.fifo("dir/sub/.gitignore");
    let before = take_snapshot(&fixture);
    fixture.write("other/new", "");
    assert_eq!(remove_pipes(&fixture, &before), Vec::<String>::new());
    fixture.write("dir/sub/new", "");
    assert_eq!(remove_pipes(&fixture, &before), ["dir/sub/.gitignore"], "the folder has changed");
}

#[test]
fn one_that_is_brought_in_an_old_folder_is_found() {
    let fixture = Fixture::new();
    let aside = side_folder(&fixture);
    let before = take_snapshot(&fixture);
    fs::rename(&aside, fixture.path("dir/brought")).unwrap();
    assert_eq!(remove_pipes(&fixture, &before), ["dir/brought/deep/old/.gitignore"]);
}

#[test]
fn another_folder_in_the_place_of_the_work_tree_is_looked_into() {
    let fixture = Fixture::new();
    let other = side_folder(&fixture);
    let before = take_snapshot(&fixture);
    fs::rename(fixture.path(".git"), other.join(".git")).unwrap();
    fs::rename(fixture.path(""), fixture.folder().join("gone")).unwrap();
    fs::rename(&other, fixture.path("")).unwrap();
    assert_eq!(remove_pipes(&fixture, &before), ["deep/old/.gitignore"]);
}

#[test]
fn without_a_moment_everything_is_looked_into() {
    let fixture = Fixture::new();
    fixture.fifo("dir/sub/.gitignore");
    let before = fixture.repository().snapshot_git_dir(&fixture.path("nothing")).unwrap();
    assert_eq!(remove_pipes(&fixture, &before), ["dir/sub/.gitignore"]);
}

#[test]
fn those_that_a_person_has_are_found_and_left_alone() {
    let fixture = Fixture::new();
    fixture.fifo("dir/plain");
    fixture.link("/dev/null", ".gitmodules");
    UnixListener::bind(fixture.path(".git/fsmonitor--daemon.ipc")).unwrap();
    assert_eq!(fixture.repository().find_pipes(), Vec::<PathBuf>::new());
    fixture.fifo("dir/sub/.gitignore");
    fixture.link("dir/plain", ".gitattributes");
    let mut found = fixture.repository().find_pipes();
    found.sort();
    assert_eq!(found, [".gitattributes", "dir/sub/.gitignore"].map(|path| fixture.path(path)));
    assert!(fixture.has("dir/sub/.gitignore"));
}

#[test]
fn one_that_a_setting_names_is_refused_before_anything_reads_it() {
    for setting in ["[core]\n\texcludesFile = {}\n", "[trace2]\n\teventTarget = {}\n", "[include]\n\tpath = more\n"] {
        let fixture = Fixture::new();
        let pipe = fixture.folder().join("pipe");
        fixture.fifo(pipe.to_str().unwrap());
        fixture.write(".git/more", format!("[core]\n\tattributesFile = {}\n", pipe.display()));
        let config = fixture.read(".git/config") + &setting.replace("{}", &pipe.display().to_string());
        fixture.write(".git/config", config);
        let refused = Repository::discover(&fixture.path("a.txt")).unwrap_err();
        assert!(matches!(&refused, GitError::Pipe { path } if *path == pipe), "{setting}: {refused}");
    }
}

#[test]
fn a_head_that_became_a_pipe_is_an_error() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    repository.head().unwrap();
    fixture.remove(".git/HEAD");
    fixture.fifo(".git/HEAD");
    assert!(matches!(repository.head(), Err(GitError::Pipe { path }) if path.ends_with(".git/HEAD")));
}
