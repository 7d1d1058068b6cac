//! Workspaces as folders: created completely or not at all, swept and removed, and what is copied into them.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use protocol::path::WirePath;
use runner_testkit::{Home, Repo};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::repo::seal::SealKey;

/// A source, and the folder of its workspaces.
struct WorkspaceFixture {
    home: Home,
    source: Repo,
    owner: WorkspaceOwner,
}

impl WorkspaceFixture {
    fn new() -> Self {
        let home = Home::new();
        let source = home.repo("source");
        source.write(".gitignore", "node_modules/\n.env\nbuild/\n*.sock\n");
        source.commit("Rules");
        Self { home, source, owner: WorkspaceOwner::from_key(&SealKey::random().unwrap()) }
    }

    fn workspaces(&self) -> PathBuf {
        self.home.path().join("workspaces")
    }

    fn place(&self) -> PathBuf {
        workspace_path(&self.workspaces(), "0123456789ab", "run")
    }

    fn repository(&self) -> Repository {
        let found = Repository::discover(self.source.path()).unwrap();
        found.pin_config(&self.home.path().join("captured")).unwrap()
    }

    fn make(&self, copy: &[&str]) -> Result<WorkspaceReport, WorkspaceError> {
        self.make_until(copy, &CancellationToken::new(), &|_| {})
    }

    fn make_until(
        &self,
        copy: &[&str],
        stop: &CancellationToken,
        progress: &dyn Fn(WorkspaceProgress),
    ) -> Result<WorkspaceReport, WorkspaceError> {
        let source = self.repository();
        let place = self.place();
        let copy = Patterns::new(copy.iter().copied());
        let base = source.head().unwrap().commit().unwrap();
        create_workspace(
            &WorkspaceOptions { source: &source, target_dir: &place, base, copy: &copy },
            &self.owner,
            progress,
            stop,
        )
    }

    fn has(&self, name: &str) -> bool {
        self.place().join(name).symlink_metadata().is_ok()
    }
}

#[test]
fn workspace_is_made_step_by_step_and_has_the_base_checked_out() {
    let scene = WorkspaceFixture::new();
    let steps = RefCell::new(Vec::new());
    let stop = CancellationToken::new();
    let workspace = scene.make_until(&[], &stop, &|step| steps.borrow_mut().push(step)).unwrap();
    assert!(workspace.objects > 0 && workspace.warnings.is_empty());
    assert_eq!(
        steps.into_inner(),
        [
            WorkspaceProgress::Repository,
            WorkspaceProgress::Repository,
            WorkspaceProgress::Files,
            WorkspaceProgress::Flushing
        ]
    );
    assert_eq!(fs::read_to_string(scene.place().join("README.md")).unwrap(), "A project.\n");
    let rights = fs::metadata(scene.place()).unwrap().permissions().mode();
    assert_eq!(rights & 0o077, 0, "it is private");
    let found = Repository::discover(&scene.place()).unwrap();
    assert_eq!(found.head().unwrap().commit().unwrap().to_string(), scene.source.head());
    assert!(found.list_changes().unwrap().is_empty());
    assert!(matches!(scene.make(&[]), Err(WorkspaceError::AlreadyExists { .. })));
}

#[test]
fn workspace_that_is_stopped_at_any_step_leaves_nothing() {
    let copying = [WorkspaceProgress::Counting { files: 0 }, WorkspaceProgress::Copying { files: 0, total: 1 }];
    for last in [WorkspaceProgress::Repository, WorkspaceProgress::Files].into_iter().chain(copying) {
        let scene = WorkspaceFixture::new();
        scene.source.write(".env", "KEY=1\n");
        let stop = CancellationToken::new();
        let stopping = |step| {
            if step == last {
                stop.cancel();
            }
        };
        assert!(matches!(scene.make_until(&[".env"], &stop, &stopping), Err(WorkspaceError::Stopped)), "{last:?}");
        assert_eq!(fs::read_dir(scene.place().parent().unwrap()).unwrap().count(), 0, "{last:?}");
    }
}

#[test]
fn what_a_killed_daemon_has_begun_is_swept_and_is_in_no_tries_way() {
    let scene = WorkspaceFixture::new();
    assert!(sweep_unfinished(&scene.workspaces(), &scene.owner).unwrap().is_empty(), "nothing is there yet");
    let begun = scene.owner.unfinished_path(&scene.place());
    fs::create_dir_all(begun.join(".git/objects")).unwrap();
    scene.make(&[]).unwrap();
    fs::create_dir_all(begun.join("deep/er")).unwrap();
    fs::set_permissions(begun.join("deep"), Permissions::from_mode(0o500)).unwrap();
    let another = WorkspaceOwner::from_key(&SealKey::random().unwrap());
    assert!(
        sweep_unfinished(&scene.workspaces(), &another).unwrap().is_empty(),
        "what another daemon has begun is its own"
    );
    assert_eq!(sweep_unfinished(&scene.workspaces(), &scene.owner).unwrap(), std::slice::from_ref(&begun));
    assert!(!begun.exists() && scene.has("README.md"), "what is finished stays");
}

#[test]
fn ignored_files_that_patterns_name_are_copied() {
    let scene = WorkspaceFixture::new();
    for (name, text) in [
        (".env", "KEY=1\n"),
        ("app/.env", "KEY=2\n"),
        ("node_modules/a/index.js", "a\n"),
        ("node_modules/.cache/big", "cache\n"),
        ("build/out/keep.bin", "keep\n"),
        ("build/other.bin", "other\n"),
        ("untracked.txt", "not ignored\n"),
    ] {
        scene.source.write(name, text);
    }
    let tool = scene.source.path().join("node_modules/a/index.js");
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let workspace =
        scene.make(&[".env", "node_modules", "!/node_modules/.cache/**", "/build/out/**", "untracked.txt"]).unwrap();
    for name in [".env", "app/.env", "node_modules/a/index.js", "build/out/keep.bin"] {
        assert!(scene.has(name), "{name}");
    }
    for name in ["node_modules/.cache/big", "build/other.bin", "untracked.txt"] {
        assert!(!scene.has(name), "{name}");
    }
    assert_eq!(workspace.copied.files, 4);
    let rights = fs::metadata(scene.place().join("node_modules/a/index.js")).unwrap().permissions().mode();
    assert_eq!(rights & 0o777, 0o755);
    assert!(
        Repository::discover(&scene.place()).unwrap().list_changes().unwrap().is_empty(),
        "git ignores them there too"
    );
}

#[test]
fn links_are_copied_as_they_are_and_those_that_lead_out_are_named() {
    let scene = WorkspaceFixture::new();
    scene.source.write("node_modules/a/index.js", "a\n");
    let folder = scene.source.path().join("node_modules");
    symlink("a/index.js", folder.join("inside")).unwrap();
    symlink("../../elsewhere", folder.join("outside")).unwrap();
    symlink(scene.source.path().join("README.md"), folder.join("absolute")).unwrap();
    let workspace = scene.make(&["node_modules"]).unwrap();
    assert_eq!(fs::read_link(scene.place().join("node_modules/outside")).unwrap().to_str(), Some("../../elsewhere"));
    assert_eq!(workspace.copied.outward.count, 2);
    assert!(workspace.warnings[0].contains("node_modules/outside → ../../elsewhere"), "{:?}", workspace.warnings);
}

#[test]
fn nothing_is_written_through_a_link_that_the_base_has() {
    let scene = WorkspaceFixture::new();
    let elsewhere = scene.home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, scene.source.path().join("build")).unwrap();
    scene.source.write("kept/.env", "");
    fs::remove_file(scene.source.path().join("kept/.env")).unwrap();
    scene.source.git(&["add", "-f", "build"]);
    scene.source.commit("A link in the place of a folder");
    let base = scene.repository().head().unwrap().commit().unwrap();
    scene.source.git(&["rm", "-q", "--cached", "build"]);
    fs::remove_file(scene.source.path().join("build")).unwrap();
    scene.source.write("build/out.bin", "out\n");
    let source = scene.repository();
    let place = scene.place();
    let copy = Patterns::new(["/build/**"]);
    let order = WorkspaceOptions { source: &source, target_dir: &place, base, copy: &copy };
    let workspace = create_workspace(&order, &scene.owner, &|_| {}, &CancellationToken::new()).unwrap();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(workspace.copied.skipped.count, 1, "{:?}", workspace.warnings);
}

#[test]
fn what_leads_to_another_git_folder_and_what_is_no_file_is_left_out() {
    let scene = WorkspaceFixture::new();
    scene.source.write("build/tree/file", "file\n");
    scene.source.write("build/tree/.git", "gitdir: /somewhere\n");
    let _socket = std::os::unix::net::UnixListener::bind(scene.source.path().join("build/s.sock")).unwrap();
    let workspace = scene.make(&["build"]).unwrap();
    assert!(scene.has("build/tree/file") && !scene.has("build/tree/.git") && !scene.has("build/s.sock"));
    assert_eq!(workspace.copied.skipped.count, 2, "{:?}", workspace.warnings);
}

#[test]
fn records_of_the_source_are_never_copied() {
    let scene = WorkspaceFixture::new();
    scene.source.write(".gitignore", "node_modules/\n.runner/iterations/\n");
    scene.source.write(".runner/iterations/run/0001/executor.log", "log\n");
    scene.make(&["**"]).unwrap();
    assert!(!scene.has(".runner"));
}

#[test]
fn files_that_nobody_has_copied_or_set_up_are_named() {
    let scene = WorkspaceFixture::new();
    scene.source.write("node_modules/a/index.js", "a\n");
    scene.make(&["node_modules"]).unwrap();
    let found = Repository::discover(&scene.place()).unwrap();
    let workspace = |name: &str| [WirePath(PathBuf::from(name))];
    let file = workspace("node_modules/a/index.js");
    let folder = workspace("node_modules/");
    assert!(find_unknown_files(&found, &file).unwrap().is_empty());
    for name in ["node_modules/.cache", "notes.txt", ".env"] {
        fs::write(scene.place().join(name), "somebody's\n").unwrap();
    }
    fs::create_dir_all(scene.place().join("build/deep")).unwrap();
    fs::create_dir(scene.place().join("empty")).unwrap();
    fs::write(scene.place().join("build/deep/one"), "somebody's\n").unwrap();
    assert_eq!(find_unknown_files(&found, &file).unwrap(), [".env", "build/", "node_modules/.cache", "notes.txt"]);
    assert_eq!(find_unknown_files(&found, &folder).unwrap(), [".env", "build/", "notes.txt"], "all in it was there");
    assert_eq!(found.list_uncommitted_files().unwrap().len(), 5);
}

#[test]
fn partial_clone_is_refused_with_what_to_do() {
    let scene = WorkspaceFixture::new();
    scene.source.git(&["remote", "add", "origin", "ssh://host/x"]);
    scene.source.git(&["config", "remote.origin.promisor", "true"]);
    let error = scene.make(&[]).unwrap_err();
    assert!(matches!(error, WorkspaceError::PartialClone { .. }));
    assert!(runner_os::retryable::Retryable::remedy(&error).unwrap().contains("runnerctl start"));
    assert!(!scene.workspaces().exists());
}

#[test]
fn what_is_copied_is_counted_first() {
    let scene = WorkspaceFixture::new();
    for name in [".env", "node_modules/a/b", "node_modules/c"] {
        scene.source.write(name, "x\n");
    }
    let steps = std::cell::RefCell::new(Vec::new());
    let workspace =
        scene.make_until(&[".env", "node_modules"], &CancellationToken::new(), &|step| steps.borrow_mut().push(step));
    let files = workspace.unwrap().copied.files;
    let steps = steps.into_inner();
    assert_eq!(files, 3);
    let counted = steps.iter().position(|step| *step == WorkspaceProgress::Counting { files }).expect("the sum");
    let begun = steps
        .iter()
        .position(|step| *step == WorkspaceProgress::Copying { files: 0, total: files })
        .expect("the first");
    assert!(counted < begun && steps.contains(&WorkspaceProgress::Copying { files, total: files }), "{steps:?}");
}
