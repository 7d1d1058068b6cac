//! A test source with a workspace of it, and the git program on both, independent of the user's settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use protocol::path::WirePath;
use protocol::view::{PublishedView, StopReason};
use runner_git::Repository;
use runner_testkit::ScratchDir;

use crate::publish::{PublishError, PublishOutcome, Publisher, publish_run};
use crate::repo::seal::SealKey;
use crate::repo::sealed::StateDir;
use crate::store::{RepoStore, SourceRepo};

/// A source with one commit, and a workspace on the branch of run `x` based on it.
pub(crate) struct PublishFixture {
    folder: ScratchDir,
    pub(crate) store: RepoStore,
    pub(crate) origin: SourceRepo,
    pub(crate) workspace: Repository,
}

impl PublishFixture {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = ScratchDir::new();
        let root = folder.path().canonicalize().unwrap();
        let source = root.join("source");
        let workspace = root.join("workspace");
        for tree in [&source, &workspace] {
            fs::create_dir(tree).unwrap();
            let init = [&["init", "--quiet", "--initial-branch=main", "--template="], options].concat();
            ok(tree, &git(tree, &init));
        }
        for (key, value) in [("user.name", "A"), ("user.email", "a@example.com"), ("maintenance.auto", "false")] {
            for tree in [&source, &workspace] {
                ok(tree, &git(tree, &["config", key, value]));
            }
        }
        fs::write(source.join("file"), "base").unwrap();
        ok(&source, &git(&source, &["add", "-A"]));
        ok(&source, &git(&source, &["commit", "--quiet", "-m", "base"]));
        let from = source.to_str().unwrap();
        ok(&workspace, &git(&workspace, &["fetch", "--quiet", "--update-head-ok", from, "main:main"]));
        ok(&workspace, &git(&workspace, &["reset", "--quiet", "--hard"]));
        ok(&workspace, &git(&workspace, &["switch", "--quiet", "-c", "runner/x"]));
        let vault = StateDir::new(root.join("private"), SealKey::random().unwrap());
        let store = RepoStore::new(&vault, "0123456789ab");
        store.create().unwrap();
        let of = SourceRepo {
            common_dir: WirePath(source.join(".git")),
            path: WirePath(source),
            run: "x".to_owned(),
            nonce: "1".to_owned(),
        };
        let workspace = Repository::discover(&workspace).unwrap().pin_config(&root.join("captured")).unwrap();
        Self { folder, store, origin: of, workspace }
    }

    pub(crate) fn source(&self) -> &Path {
        self.origin.path.as_path()
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let file = self.workspace.work_dir().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Commits in the workspace and returns the commit's id.
    pub(crate) fn commit(&self, text: &str) -> String {
        self.write("file", text);
        self.git("add -A");
        self.git(&format!("commit --quiet -m {text}"));
        self.tip()
    }

    pub(crate) fn tip(&self) -> String {
        self.git("rev-parse refs/heads/runner/x")
    }

    /// Returns the value of the branch in the source.
    pub(crate) fn branch(&self) -> String {
        self.source_git("rev-parse --verify refs/heads/runner/x")
    }

    pub(crate) fn git(&self, words: &str) -> String {
        in_tree(self.workspace.work_dir(), words)
    }

    pub(crate) fn source_git(&self, words: &str) -> String {
        in_tree(self.source(), words)
    }

    pub(crate) fn publisher(&self) -> Publisher<'_> {
        Publisher::new(&self.store, &self.workspace, &self.origin).unwrap()
    }

    pub(crate) fn try_publish(&self) -> Result<PublishOutcome, PublishError> {
        publish_run(&self.store, &self.workspace, &self.origin)
    }

    pub(crate) fn publish(&self) -> PublishedView {
        let publication = self.try_publish().unwrap();
        assert!(!publication.is_held, "{publication:?}");
        publication.view.unwrap()
    }

    /// Publishes, expecting the run to be held; returns the reason.
    pub(crate) fn hold_reason(&self) -> StopReason {
        let publication = self.try_publish().unwrap();
        assert!(publication.is_held, "{publication:?}");
        publication.view.unwrap().why.unwrap()
    }

    /// Runs the command suggested to a person, without its last part, which is the client's.
    pub(crate) fn follow(&self, why: &StopReason) {
        let command = why.command.as_deref().unwrap();
        let (typed, resume) = command.rsplit_once(" && ").unwrap();
        assert_eq!(resume, format!("runnerctl resume {} --run x", self.source().display()));
        let mut shell = Command::new("sh");
        shell.args(["-ec", typed]).current_dir("/");
        ok(Path::new(typed), &clean(&mut shell));
    }

    /// Returns the source's references and the status of its work tree.
    pub(crate) fn state_of_source(&self) -> String {
        let refs = self.source_git("for-each-ref --format=%(refname)=%(objectname)");
        format!("{refs}\n{}\n{}", self.source_git("status --porcelain"), self.source_git("count-objects"))
    }

    /// Asserts that the branch matches the workspace's, nothing is damaged, and the person's work tree is unchanged.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.branch(), self.tip());
        assert_eq!(self.source_git("rev-parse refs/runner/at/x"), self.tip());
        assert_eq!(self.source_git("fsck --strict --no-dangling --connectivity-only"), "");
        assert_eq!(self.source_git("status --porcelain"), "");
    }
}

fn in_tree(tree: &Path, words: &str) -> String {
    ok(tree, &git(tree, &words.split_whitespace().collect::<Vec<_>>()))
}

pub(crate) fn git(tree: &Path, args: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.current_dir(tree).args(args);
    clean(&mut git)
}

fn clean(command: &mut Command) -> Output {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LC_ALL", "C");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap()
}

fn ok(what: &Path, output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", what.display());
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
