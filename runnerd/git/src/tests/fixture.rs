//! A test repository and the git program on it, independent of the user's settings.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runner_testkit::ScratchDir;

use crate::repository::engine::GitEngine;
use crate::repository::handle::ConfigSources;
use crate::{ChangeKind, CommitOutcome, CommitRequest, GitError, HoldBackRule, Id, Identity, Repository};

pub(super) const ENGINES: [GitEngine; 2] = [GitEngine::Gix, GitEngine::Git];

const SETTINGS: &str = "[user]\n\tname = A U Thor\n\temail = author@example.com\n[maintenance]\n\tauto = false\n";

/// A work tree in a temporary folder that is removed with it.
pub(super) struct Fixture {
    folder: ScratchDir,
    tree: PathBuf,
}

impl Fixture {
    /// Creates a repository without commits.
    pub(super) fn unborn() -> Self {
        Self::with_init(&[])
    }

    pub(super) fn with_init(options: &[&str]) -> Self {
        Self::in_folder(ScratchDir::new(), options)
    }

    /// Creates a repository without commits in memory, if possible: flushing it costs nothing.
    pub(super) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        Self::in_folder(if memory.is_dir() { ScratchDir::new_in(memory) } else { ScratchDir::new() }, &[])
    }

    fn in_folder(folder: ScratchDir, options: &[&str]) -> Self {
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let fixture = Self { folder, tree };
        // A template is copied into the git folder, wherever that is; git's default has a dozen sample hooks.
        fixture.write("../template/config", SETTINGS);
        fixture.write("../template/info/exclude", "# what is ignored here alone\n");
        fixture.git(&[&["init", "--quiet", "--initial-branch=main", "--template=../template"], options].concat());
        fixture
    }

    /// Creates a repository with a few files in nested folders, committed.
    pub(super) fn new() -> Self {
        let fixture = Self::unborn();
        for name in ["a.txt", "b.txt", "dir/c.txt", "dir/sub/d.txt", "dir/sub/e.txt", "other/f.txt"] {
            fixture.write(name, format!("content of {name}\n"));
        }
        fixture.commit_by_git("base");
        fixture
    }

    /// The same work tree under another root, such as a linked one.
    pub(super) fn at(self, tree: impl Into<PathBuf>) -> Self {
        Self { folder: self.folder, tree: tree.into() }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn path(&self, name: impl AsRef<[u8]>) -> PathBuf {
        self.tree.join(OsStr::from_bytes(name.as_ref()))
    }

    pub(super) fn write(&self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub(super) fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.symlink_metadata().unwrap().is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .unwrap();
    }

    pub(super) fn link(&self, target: &str, name: &str) {
        symlink(target, self.path(name)).unwrap();
    }

    pub(super) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Creates a folder that changes after these paths, by the clock of the file system.
    pub(super) fn clock_after(&self, names: &[&str]) -> PathBuf {
        let changed = |path: &Path| path.symlink_metadata().map(|found| (found.ctime(), found.ctime_nsec())).unwrap();
        let newest = names.iter().map(|name| changed(&self.path(name))).max();
        let clock = self.folder().join("clock");
        fs::create_dir_all(&clock).unwrap();
        while Some(changed(&clock)) <= newest {
            fs::write(clock.join("name"), "").unwrap();
            fs::remove_file(clock.join("name")).unwrap();
        }
        clock
    }

    pub(super) fn fifo(&self, name: &str) {
        nix::unistd::mkfifo(&self.path(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }

    /// Creates a repository with one commit in a subfolder.
    pub(super) fn nested(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
        self.git_in(&self.path(name), &["init", "--quiet", "--initial-branch=main"]);
        self.write(format!("{name}/inner.txt"), "inner\n");
        self.commit_in(name);
    }

    /// Commits everything in the repository in a subfolder.
    pub(super) fn commit_in(&self, name: &str) {
        let path = self.path(name);
        self.git_in(&path, &["add", "-A"]);
        self.git_in(&path, &["-c", "user.name=N", "-c", "user.email=n@x", "commit", "--quiet", "-m", "inner"]);
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.tree, args)
    }

    pub(super) fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.try_git(folder, args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(super) fn try_git(&self, folder: &Path, args: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.env_clear().current_dir(folder).args(args);
        git.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.folder()).env("LC_ALL", "C");
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        // The same commits in every fixture, so that ids can be compared.
        git.env("GIT_AUTHOR_DATE", "1700000000 +0100").env("GIT_COMMITTER_DATE", "1700000000 +0100");
        git.env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "protocol.file.allow")
            .env("GIT_CONFIG_VALUE_0", "always");
        git.output().unwrap()
    }

    /// Puts a file where the folder for this content's blob must be, which stops even root; returns its path.
    pub(super) fn block_object(&self, content: &str) -> PathBuf {
        self.write("content", content);
        let id = self.git(&["hash-object", "content"]);
        self.remove("content");
        let file = self.path(format!(".git/objects/{}", &id[..2]));
        fs::write(&file, "").unwrap();
        file
    }

    pub(super) fn commit_by_git(&self, message: &str) -> Id {
        self.git(&["add", "-A"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.head()
    }

    pub(super) fn head(&self) -> Id {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(super) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "-uall", "--ignore-submodules=dirty"])
    }

    pub(super) fn repository(&self) -> Repository {
        let found = Repository::discover_with(&self.tree, ConfigSources::RepositoryOnly).unwrap();
        found.pin_config(&self.folder().join("trusted")).unwrap()
    }

    pub(super) fn with_engine(&self, engine: GitEngine) -> Repository {
        self.repository().with_engine(engine)
    }

    /// Returns the changes that the repository reports, as text.
    pub(super) fn list_changes(&self, engine: GitEngine) -> Vec<(String, ChangeKind)> {
        let changes = self.with_engine(engine).list_changes().unwrap();
        changes.into_iter().map(|change| (change.display_path(), change.kind)).collect()
    }

    /// Asserts that nothing is left to commit, and that the repository is intact.
    pub(super) fn assert_sound(&self) {
        assert_eq!(self.status(), "");
        let fsck = self.try_git(&self.tree, &["fsck", "--strict", "--cache", "--no-dangling"]);
        let text = [fsck.stdout, fsck.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&text), "");
        assert_eq!(self.git(&["write-tree"]), self.git(&["rev-parse", "HEAD^{tree}"]));
    }
}

pub(super) fn author() -> Identity {
    Identity { name: "Run Ner".to_owned(), email: "runner@example.com".to_owned() }
}

pub(super) fn request<'a>(fixture: &Fixture, hold_back: &'a HoldBackRule) -> CommitRequest<'a> {
    CommitRequest {
        message: "chore(loop): work",
        author: author(),
        parent: fixture.repository().head().unwrap().commit(),
        hold_back,
        sign: false,
        allow_empty: false,
        paths: None,
        expected_files: &[],
        keeps_unstorable: false,
    }
}

pub(super) fn commit(repository: &Repository) -> Result<CommitOutcome, GitError> {
    commit_with(repository, &HoldBackRule::nested_only())
}

pub(super) fn commit_with(repository: &Repository, hold_back: &HoldBackRule) -> Result<CommitOutcome, GitError> {
    repository.commit_all(&CommitRequest {
        message: "chore(loop): work\n\nBody.\n",
        author: author(),
        parent: repository.head()?.commit(),
        hold_back,
        sign: false,
        allow_empty: false,
        paths: None,
        expected_files: &[],
        keeps_unstorable: false,
    })
}

/// Moves the last flush an hour ahead, as if all files had been written long before it.
pub(super) fn settle_files(repository: &Repository) {
    repository.flush_work_tree().unwrap();
    repository.cache.advance_flush();
}
