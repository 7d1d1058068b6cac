//! Replicas compared with their sources: the same steps give the same trees, and nothing done in one is visible in the
//! other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::fixture::{Fixture, commit};
use crate::{GitError, Repository, RepositoryClone};

/// Creates a replica of a source, with its HEAD checked out.
fn clone_of(source: &Fixture) -> Fixture {
    let other = Fixture::unborn();
    let place = other.folder().join("made");
    make_clone(&source.repository(), &other, &place).unwrap();
    other.at(place)
}

fn make_clone(source: &Repository, other: &Fixture, place: &Path) -> Result<Vec<String>, GitError> {
    let base = source.head()?.commit().unwrap();
    let making = other.folder().join("making");
    let replica = RepositoryClone::create(source, &making, place)?;
    replica.copy_settings()?;
    replica.copy_objects(&base)?;
    replica.copy_references()?;
    replica.copy_large_files()?;
    replica.check_out(&base)?;
    let left_out = replica.clone_submodules(&base, &other.folder().join("laid"))?;
    fs::rename(&making, place).unwrap();
    Ok(left_out)
}

/// Simulates a session: adds, changes and removes files of every kind that the rules distinguish.
fn steps(fixture: &Fixture) {
    fixture.write("a.txt", "one\r\ntwo\r\n");
    fixture.write("new.txt", "new\r\n");
    fixture.write("new.big", "large file\n");
    fixture.write("dir/sub/d.txt", "other\n");
    fixture.write("dir/debug.log", "ignored by .gitignore\n");
    fixture.write("local.tmp", "ignored by info/exclude\n");
    fixture.write("mine.user", "ignored by core.excludesFile\n");
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.chmod("run.sh", 0o755);
    fixture.chmod("b.txt", 0o755);
    fixture.link("a.txt", "link");
    fixture.remove("other/f.txt");
}

/// Creates a source from `git` commands, and files written before its commit.
fn with_settings(settings: &[&[&str]], files: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new();
    for setting in settings {
        fixture.git(setting);
    }
    for (name, text) in files {
        fixture.write(name, text);
    }
    fixture.commit_by_git("rules");
    fixture
}

const LFS_LIKE: &[&[&str]] = &[
    &["config", "filter.big.clean", "sed s/^/pointer:/"],
    &["config", "filter.big.smudge", "sed s/^pointer://"],
    &["config", "filter.big.required", "true"],
];

fn sparse() -> Fixture {
    let fixture = with_settings(&[], &[("wide/g.txt", "g\n")]);
    fixture.git(&["sparse-checkout", "set", "--cone", "dir", "other"]);
    assert!(!fixture.has("wide"));
    fixture
}

fn clone_fixture(how: &[&str]) -> Fixture {
    let origin = Fixture::new();
    origin.commit_by_git("second");
    let tree = origin.folder().join("clone");
    let path = origin.path("").display().to_string();
    let from = if how.contains(&"--shared") { path } else { format!("file://{path}") };
    origin.git(&[&["clone", "--quiet"], how, &[&from, tree.to_str().unwrap()]].concat());
    let clone = origin.at(tree);
    clone.git(&["config", "user.name", "Clo Ne"]);
    clone.git(&["config", "user.email", "clone@example.com"]);
    clone
}

fn linked_fixture() -> Fixture {
    let fixture = Fixture::new();
    let tree = fixture.folder().join("linked");
    fixture.git(&["worktree", "add", "--quiet", "-b", "side", tree.to_str().unwrap()]);
    fixture.at(tree)
}

fn worktree_settings() -> Fixture {
    let fixture = linked_fixture();
    fixture.git(&["config", "extensions.worktreeConfig", "true"]);
    fixture.git(&["config", "--worktree", "core.autocrlf", "input"]);
    fixture.git(&["config", "--worktree", "user.name", "Here Alone"]);
    fixture
}

fn with_submodule() -> Fixture {
    let inner = Fixture::new();
    let fixture = Fixture::new();
    fixture.git(&["submodule", "--quiet", "add", inner.path("").to_str().unwrap(), "sub"]);
    fixture.commit_by_git("submodule");
    fixture
}

fn of_format(options: &[&str]) -> Fixture {
    let fixture = Fixture::with_init(options);
    for name in ["a.txt", "b.txt", "dir/c.txt", "dir/sub/d.txt", "other/f.txt"] {
        fixture.write(name, format!("content of {name}\n"));
    }
    fixture.commit_by_git("base");
    fixture
}

fn include_fixture() -> Fixture {
    let fixture = with_settings(LFS_LIKE, &[(".gitattributes", "*.big filter=big\n"), ("stored.big", "stored\n")]);
    let more = fixture.folder().join("more");
    fs::write(&more, "[user]\n\tname = In Cluded\n[core]\n\tautocrlf = input\n").unwrap();
    fixture.git(&["config", "include.path", more.to_str().unwrap()]);
    fixture
}

fn exclude_fixture() -> Fixture {
    let fixture = with_settings(&[], &[(".gitignore", "*.log\n")]);
    let users = fixture.folder().join("users-ignore");
    fs::write(&users, "*.user\n").unwrap();
    fixture.git(&["config", "core.excludesFile", users.to_str().unwrap()]);
    fixture.write(".git/info/exclude", "*.tmp\n");
    fixture
}

fn attribute_fixture() -> Fixture {
    let fixture = with_settings(LFS_LIKE, &[]);
    let users = fixture.folder().join("users-attributes");
    fs::write(&users, "*.big filter=big\n").unwrap();
    fixture.git(&["config", "core.attributesFile", users.to_str().unwrap()]);
    fixture.write(".git/info/attributes", "new.txt text eol=crlf\n");
    fixture.write("stored.big", "stored\n");
    fixture.commit_by_git("by the user's attributes");
    fixture
}

fn pack_fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.git(&["tag", "-a", "-m", "tag", "v1"]);
    fixture.git(&["notes", "add", "-m", "note"]);
    fixture.git(&["gc", "--quiet"]);
    fixture.write("later.txt", "later\n");
    fixture.commit_by_git("loose");
    fixture
}

fn filter_fixture() -> Fixture {
    with_settings(LFS_LIKE, &[(".gitattributes", "*.big filter=big\n"), ("stored.big", "stored\n")])
}

fn ident_fixture() -> Fixture {
    with_settings(&[&["config", "user.name", "Some Body"], &["config", "user.email", "some@body"]], &[])
}

/// Tests each kind of source with the given assertion, by name.
macro_rules! kinds {
    ($($kind:ident: $source:expr;)*) => {
        mod same_steps_give_the_same_trees_as_in_the_source {
            use super::*;
            $(#[test] fn $kind() { assert_same_trees(&$source); })*
        }
        mod nothing_that_is_done_in_a_replica_is_seen_in_its_source {
            use super::*;
            $(#[test] fn $kind() { assert_independent(&$source); })*
        }
    };
}

kinds! {
    plain: Fixture::new();
    identity: ident_fixture();
    filter: filter_fixture();
    attributes_of_the_repository_and_the_user: attribute_fixture();
    line_ends: with_settings(&[&["config", "core.autocrlf", "true"]], &[]);
    excludes_of_all_three_kinds: exclude_fixture();
    file_mode: with_settings(&[&["config", "core.fileMode", "false"]], &[]);
    sparse_checkout: sparse();
    settings_of_a_work_tree: worktree_settings();
    included_settings: include_fixture();
    alternates: clone_fixture(&["--shared"]);
    shallow: clone_fixture(&["--depth=1"]);
    linked_work_tree: linked_fixture();
    submodule: with_submodule();
    sha256: of_format(&["--object-format=sha256"]);
    packs_tags_and_notes: pack_fixture();
    reftable: if knows_reftable() { of_format(&["--ref-format=reftable"]) } else { Fixture::new() };
}

/// Whether the installed git supports reftables.
fn knows_reftable() -> bool {
    let fixture = Fixture::unborn();
    let tree = fixture.folder().join("tables");
    fixture
        .try_git(fixture.folder(), &["init", "--quiet", "--ref-format=reftable", tree.to_str().unwrap()])
        .status
        .success()
}

fn tree_of(fixture: &Fixture) -> String {
    fixture.git(&["rev-parse", "HEAD^{tree}"])
}

/// Asserts that the same steps give the same trees, by the same identity.
fn assert_same_trees(source: &Fixture) {
    let made = clone_of(source);
    assert_eq!(tree_of(&made), tree_of(source));
    assert_eq!(made.status(), "", "it is clean");
    for fixture in [source, &made] {
        steps(fixture);
        commit(&fixture.repository()).unwrap();
    }
    assert_eq!(tree_of(&made), tree_of(source));
    assert_eq!(made.repository().identity(), source.repository().identity());
    let fsck = made.try_git(&made.path(""), &["fsck", "--no-dangling"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
}

#[test]
fn references_are_taken_but_those_of_runs() {
    let source = pack_fixture();
    for branch in ["runner/x", "topic/y"] {
        source.git(&["branch", branch]);
    }
    source.git(&["update-ref", "refs/runner/at/x", "HEAD"]);
    source.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    source.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    let made = clone_of(&source);
    let names = made.git(&["for-each-ref", "--format=%(refname)"]);
    let expected = [
        "refs/heads/main",
        "refs/heads/topic/y",
        "refs/notes/commits",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/tags/v1",
    ];
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    assert_eq!(made.git(&["rev-parse", "v1^{}"]), source.git(&["rev-parse", "v1^{}"]));
    assert!(!made.try_git(&made.path(""), &["symbolic-ref", "HEAD"]).status.success(), "HEAD is on no branch");
}

#[test]
fn remotes_have_absolute_addresses_and_none_leads_to_the_source() {
    let source = Fixture::new();
    let own = source.path("");
    let up = source.folder().join("up");
    source.git(&["clone", "--quiet", "--bare", ".", up.to_str().unwrap()]);
    let own_git = format!("file://{}", own.join(".git").display());
    for (name, url) in [
        ("near", "../up"),
        ("far", "ssh://host/x"),
        ("scp", "host:x"),
        ("self", "."),
        ("itself", own.to_str().unwrap()),
        ("git", own_git.as_str()),
    ] {
        source.git(&["remote", "add", name, url]);
    }
    source.git(&["config", &format!("url.{}.insteadOf", own.display()), "work:"]);
    source.git(&["config", "branch.main.remote", "self"]);
    let made = clone_of(&source);
    let settings = made.git(&["config", "--local", "--list"]);
    let urls = settings.lines().filter(|line| line.contains(".url="));
    let near = format!("remote.near.url={}/../up", own.display().to_string().trim_end_matches('/'));
    assert_eq!(urls.collect::<Vec<_>>(), [near.as_str(), "remote.far.url=ssh://host/x", "remote.scp.url=host:x"]);
    assert!(!settings.contains("branch.") && !settings.contains("insteadof"), "{settings}");
    made.git(&["fetch", "--quiet", "near"]);
}

#[test]
fn settings_that_lead_elsewhere_or_are_the_runners_own_are_not_taken() {
    let source = with_settings(
        &[
            &["config", "core.hooksPath", "/somewhere"],
            &["config", "core.fsmonitor", "/bin/false"],
            &["config", "receive.denyCurrentBranch", "ignore"],
            &["config", "gc.pruneExpire", "now"],
            &["config", "maintenance.auto", "true"],
            &["config", "diff.algorithm", "patience"],
            &["config", "core.useReplaceRefs", "true"],
        ],
        &[],
    );
    source.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    source.chmod(".git/hooks/pre-commit", 0o755);
    let made = clone_of(&source);
    let settings = made.git(&["config", "--local", "--list"]);
    for name in
        ["core.hookspath", "core.fsmonitor", "receive.", "gc.", "maintenance.", "core.commitgraph", "index.threads"]
    {
        assert!(!settings.contains(name), "{name}: {settings}");
    }
    assert!(
        settings.contains("diff.algorithm=patience") && settings.contains("core.usereplacerefs=true"),
        "{settings}"
    );
    assert!(!made.has(".git/hooks/pre-commit"));
}

/// Everything in a folder: paths, modes, content and targets of links.
fn list_everything(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            let content = if found.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if found.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            all.insert(path, (found.mode(), content));
        }
    }
    all
}

fn files(folder: &Path) -> BTreeSet<(u64, u64)> {
    let all = list_everything(folder);
    let found = all.keys().map(|path| path.symlink_metadata().unwrap()).filter(std::fs::Metadata::is_file);
    found.map(|found| (found.dev(), found.ino())).collect()
}

/// Simulates a hostile session: overwrites every file of git's, opens all permissions, pushes everywhere, and drops all
/// references.
fn modify_everything(made: &Fixture) {
    let try_git = |args: &[&str]| drop(made.try_git(&made.path(""), args));
    for remote in made.git(&["remote"]).lines() {
        try_git(&["push", "--force", "--all", remote]);
        try_git(&["push", "--mirror", remote]);
    }
    for name in made.git(&["for-each-ref", "--format=%(refname)"]).lines() {
        try_git(&["update-ref", "-d", name]);
    }
    try_git(&["reflog", "expire", "--expire=now", "--all"]);
    try_git(&["gc", "--prune=now", "--quiet"]);
    for (path, _) in list_everything(&made.path("")) {
        let found = path.symlink_metadata().unwrap();
        if !found.is_symlink() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        if found.is_file() {
            fs::write(&path, "destroyed").unwrap();
        }
    }
}

/// Asserts that neither making a replica nor anything done in it changes the source: not a byte, a permission or a
/// link.
fn assert_independent(source: &Fixture) {
    source.git(&["remote", "add", "me", "."]);
    let repository = source.repository();
    let own = repository.work_dir().to_owned();
    let shared = repository.common_dir().to_owned();
    let all = || [list_everything(&own), list_everything(&shared)];
    let before = all();
    let made = clone_of(source);
    assert!(before == all(), "making it changes nothing");
    let sources: BTreeSet<_> = files(&own).into_iter().chain(files(&shared)).collect();
    assert!(sources.is_disjoint(&files(&made.path(""))), "no file is shared");
    assert!(!made.has(".git/objects/info/alternates"), "nothing is borrowed");
    modify_everything(&made);
    assert!(before == all(), "what is done there is seen here");
}

#[test]
fn source_of_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let source = Fixture::new();
    let repository = source.repository();
    let other = Fixture::unborn();
    std::os::unix::fs::chown(source.path(".git"), Some(12_345), None).unwrap();
    let refused = RepositoryClone::create(&repository, &other.folder().join("making"), &other.folder().join("made"));
    assert!(matches!(refused, Err(GitError::ForeignOwner { .. })), "{refused:?}");
    assert!(!other.folder().join("making").exists());
}

#[test]
fn loose_object_that_a_crash_has_left_in_part_is_in_nobodys_way() {
    let source = Fixture::new();
    source.write(".git/objects/00/00000000000000000000000000000000000000", "");
    let made = clone_of(&source);
    assert_eq!(tree_of(&made), tree_of(&source));
}

#[test]
fn base_that_no_reference_leads_to_is_taken() {
    let source = Fixture::new();
    source.git(&["checkout", "--quiet", "--detach"]);
    source.write("detached.txt", "detached\n");
    let base = source.commit_by_git("detached");
    source.git(&["gc", "--quiet"]);
    let made = clone_of(&source);
    assert_eq!(made.head(), base);
}
