//! A repository in a home, manipulated through the git program, never through the code under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use protocol::meta::IterationMeta;
use protocol::state::{Feedback, RunState};
use protocol::tree::{Node, TaskTree};
use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::home::Home;
use crate::receipt::ReceiptCommit;
use crate::script::Script;

/// A repository with one commit on `main`, and the script of its agent and guard.
#[derive(Debug)]
pub struct Repo {
    path: PathBuf,
    script: Script,
    env: Vec<(String, String)>,
}

impl Repo {
    /// Creates a repository with one uncommitted file.
    pub(crate) fn without_commit(home: &Home, name: &str) -> Self {
        let path = home.path().join("repos").join(name);
        fs::create_dir_all(&path).expect("a folder for the repository can be made");
        let repo = Self { path, script: Script::new(home.path(), name), env: home.env().to_vec() };
        // Git's own template contains a dozen sample hooks; a real project has a few files instead.
        repo.git(&["init", "-q", "-b", "main", "--template="]);
        for folder in ["hooks", "info"] {
            fs::create_dir(repo.path.join(".git").join(folder)).expect("a folder in git's own can be made");
        }
        repo.write("README.md", "A project.\n");
        repo
    }

    /// Returns the work tree.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the script of its agent and guard.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Returns a configuration with the scripted agent and guard, and without baseline.
    pub fn config(&self) -> Config {
        Config::new(&[&self.script.agent_program()], &[&self.script.guard_program()]).guard("baseline = false")
    }

    /// Commits a configuration, and a goal if there is none yet.
    pub fn commit_config(&self, config: &Config) -> &Self {
        self.write_config(config);
        self.commit_all("Configure the runner");
        self
    }

    /// Commits a task tree.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be written.
    pub fn commit_tree(&self, tree: &TaskTree) -> &Self {
        self.write_tree(tree);
        self.commit_all("Plan the work");
        self
    }

    pub(crate) fn write_config(&self, config: &Config) {
        self.write(".runner/state/config.toml", &config.text());
        if !self.path().join(".runner/GOAL.md").exists() {
            self.write(".runner/GOAL.md", "# Reach the goal\n");
        }
    }

    pub(crate) fn write_tree(&self, tree: &TaskTree) {
        let text = serde_json::to_string_pretty(tree).expect("BUG: a task tree does not serialize");
        self.write(".runner/state/tree.json", &format!("{text}\n"));
    }

    /// Writes a file, creating parent folders as needed.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be written.
    pub fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        self
    }

    /// Reads a file of the work tree.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be read.
    pub fn read(&self, path: &str) -> String {
        let path = self.path.join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()))
    }

    /// Commits everything in the work tree and returns the commit.
    pub fn commit(&self, message: &str) -> String {
        self.commit_all(message);
        self.head()
    }

    /// Commits everything in the work tree, without automatic maintenance.
    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["-c", "maintenance.auto=false", "commit", "-q", "-m", message]);
    }

    /// Runs git and returns its standard output without the final newline.
    ///
    /// # Panics
    ///
    /// Panics if git fails.
    pub fn git(&self, args: &[&str]) -> String {
        String::from_utf8_lossy(&self.git_bytes(args)).trim_end().to_owned()
    }

    /// Runs git and returns its standard output, byte for byte.
    ///
    /// # Panics
    ///
    /// Panics if git fails.
    pub fn git_bytes(&self, args: &[&str]) -> Vec<u8> {
        let output = self.command("git").args(args).output().expect("git can be started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {}: {stderr}", output.status);
        output.stdout
    }

    /// Returns the commit id of HEAD.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Returns the content of a file in a revision.
    pub fn show(&self, revision: &str, path: &str) -> String {
        self.git(&["show", &format!("{revision}:{path}")])
    }

    /// Returns the task tree of a revision.
    pub fn tree(&self, revision: &str) -> TaskTree {
        self.read_json(revision, ".runner/state/tree.json")
    }

    /// Returns a node of HEAD's task tree.
    ///
    /// # Panics
    ///
    /// Panics if the node does not exist.
    pub fn node(&self, id: &str) -> Node {
        let tree = self.tree("HEAD");
        find_node(&tree.root, id).unwrap_or_else(|| panic!("no node {id} in {tree:#?}")).clone()
    }

    /// Returns the run state of a revision.
    pub fn run_state(&self, revision: &str) -> RunState {
        self.read_json(revision, ".runner/state/run_state.json")
    }

    /// Returns the feedback of a revision.
    pub fn feedback(&self, revision: &str) -> Feedback {
        self.read_json(revision, ".runner/state/feedback.json")
    }

    /// Returns the receipts of the iterations on HEAD's branch, oldest first.
    pub fn receipts(&self) -> Vec<ReceiptCommit> {
        let receipts = ReceiptCommit::read_all(self, &["--reverse", "--first-parent", "HEAD"]).into_iter();
        receipts.filter(|receipt| receipt.trailer("Runner-Commit") == Some("iteration")).collect()
    }

    /// Returns a file of an iteration's record; invalid UTF-8 is replaced.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be read.
    pub fn read_record(&self, iter: u32, file: &str) -> String {
        let run = self.run_state("HEAD").run_id.expect("a run has begun");
        let path = self.path.join(format!(".runner/iterations/{run}/{iter:04}/{file}"));
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the metadata of an iteration's record.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be read.
    pub fn meta(&self, iter: u32) -> IterationMeta {
        let text = self.read_record(iter, "meta.json");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("meta.json of iteration {iter}: {error}:\n{text}"))
    }

    /// Returns the refs under a prefix, in order.
    pub fn refs(&self, prefix: &str) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)", prefix]).lines().map(str::to_owned).collect()
    }

    /// Asserts that the work tree is clean and that `git fsck` finds no fault in the repository.
    ///
    /// # Panics
    ///
    /// Panics if one of these does not hold.
    pub fn assert_sound(&self) {
        assert_eq!(self.git(&["status", "--porcelain"]), "", "the working tree is not clean");
        let output = self.command("git").args(["fsck", "--strict", "--no-progress", "--no-dangling"]).output();
        let output = output.expect("git can be started");
        let printed = [output.stdout, output.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&printed), "", "git fsck has something to say");
        assert!(output.status.success(), "git fsck: {}", output.status);
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env.iter().cloned()).current_dir(&self.path);
        command
    }

    fn read_json<T: DeserializeOwned>(&self, revision: &str, path: &str) -> T {
        let text = self.show(revision, path);
        // A tree of the maximum allowed depth nests deeper than the default recursion limit.
        let mut reader = serde_json::Deserializer::from_str(&text);
        reader.disable_recursion_limit();
        T::deserialize(&mut reader).unwrap_or_else(|error| panic!("{revision}:{path}: {error}:\n{text}"))
    }
}

fn find_node<'a>(node: &'a Node, id: &str) -> Option<&'a Node> {
    if node.id == id { Some(node) } else { node.children.iter().find_map(|child| find_node(child, id)) }
}
