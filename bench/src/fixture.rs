//! Fixtures for measurements: repositories and task trees of any size, always identical for a given size.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use protocol::tree::{Node, TREE_VERSION, TaskTree};
use runner_testkit::{Home, Repo};

/// Number of files that a scripted session changes.
pub(crate) const CHANGED_FILES: u32 = 5;

/// A kind of disk that a home can be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiskKind {
    /// Memory: what is written durably costs nothing.
    Memory,
    /// The disk of temporary files.
    Disk,
}

impl DiskKind {
    /// Returns the folder for homes on this kind of disk.
    pub(crate) fn folder(self) -> PathBuf {
        match self {
            Self::Memory => PathBuf::from("/dev/shm"),
            Self::Disk => env::temp_dir(),
        }
    }

    /// Returns the name used in figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "tmpfs",
            Self::Disk => "disk",
        }
    }
}

/// Creates a packed repository with the given number of files, whose scripted sessions change five of them and answer
/// `done`.
pub(crate) fn create_repository(home: &Home, name: &str, files: u32) -> Repo {
    let repo = home.repo(name);
    import_files(&repo, home, files);
    repo.script().always(&format!("{}answer done \"Part $n is done.\"\n", change_script(files)));
    repo
}

/// Returns the shell commands with which a session changes its files.
fn change_script(files: u32) -> String {
    (0..CHANGED_FILES).fold(String::new(), |mut words, number| {
        let path = file_path(number * (files / CHANGED_FILES));
        let _ = writeln!(words, "echo \"{number} as session $n left it\" > {path}");
        words
    })
}

/// Returns the path of a file: a hundred files per folder, folders four deep.
fn file_path(number: u32) -> String {
    format!("src/area{}/part{}/unit{}/file{number}.txt", number / 10_000, number / 1_000 % 10, number / 100 % 10)
}

/// Imports all files as one pack and checks them out.
fn import_files(repo: &Repo, home: &Home, files: u32) {
    let mut stream = String::from("commit refs/heads/main\ncommitter Kit <kit@localhost> 1767225600 +0000\n");
    stream.push_str("data 5\nFiles\nfrom refs/heads/main^0\n");
    for number in 0..files {
        let text = format!("file {number}\n").repeat(40);
        let _ = write!(stream, "M 100644 inline {}\ndata {}\n{text}\n", file_path(number), text.len());
    }
    let mut git = Command::new("git");
    git.env_clear().envs(home.env().iter().cloned()).current_dir(repo.path());
    let child = git.args(["fast-import", "--quiet", "--force"]).stdin(Stdio::piped()).spawn();
    let mut child = child.expect("git can be started");
    let mut input = child.stdin.take().expect("BUG: standard input is a pipe");
    input.write_all(stream.as_bytes()).expect("git reads what it imports");
    drop(input);
    assert!(child.wait().expect("git can be waited for").success(), "git imports the files");
    repo.git(&["reset", "-q", "--hard"]);
}

/// Runs the scripted agent of a repository without the runner.
pub(crate) fn run_agent_bare(home: &Home, repo: &Repo) {
    let answer = home.path().join("tmp/answer");
    let mut agent = Command::new(home.path().join("bin").join(repo.script().agent_program()));
    agent.env_clear().envs(home.env().iter().cloned()).env("RUNNER_OUTPUT", &answer).current_dir(repo.path());
    assert!(agent.stdin(Stdio::null()).status().expect("the agent can be started").success(), "the agent fails");
    fs::remove_file(answer).expect("the agent has answered");
}

/// Returns a task tree with the given number of nodes, root included, in which each inner node has up to thirty
/// children.
pub(crate) fn build_tree(nodes: u32) -> TaskTree {
    TaskTree { version: TREE_VERSION, root: build_node(0, nodes.max(1)) }
}

/// Node `number` of a heap in which each has thirty children.
fn build_node(number: u32, nodes: u32) -> Node {
    let children = (number * 30 + 1..number * 30 + 31).take_while(|child| *child < nodes);
    Node { children: children.map(|child| build_node(child, nodes)).collect(), ..build_leaf(number) }
}

/// Returns a task tree of a root and the given number of leaves.
pub(crate) fn build_flat_tree(leaves: u32, max_attempts: u32) -> TaskTree {
    let children = (1..=leaves).map(|number| Node { max_attempts, ..build_leaf(number) }).collect();
    TaskTree { version: TREE_VERSION, root: Node { children, ..build_leaf(0) } }
}

fn build_leaf(number: u32) -> Node {
    Node {
        id: if number == 0 { "root".to_owned() } else { format!("part-{number}") },
        order: i64::from(number),
        title: format!("Part {number}"),
        // 20,000 of them must stay below the 8 MiB limit of a tree.
        goal: format!("Part {number} of the whole works."),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_as_many_nodes_as_were_asked_for() {
        fn count(node: &Node) -> u32 {
            1 + node.children.iter().map(count).sum::<u32>()
        }
        assert_eq!([1, 2, 11, 1_234].map(|nodes| count(&build_tree(nodes).root)), [1, 2, 11, 1_234]);
    }

    #[test]
    fn each_file_has_a_path_of_its_own() {
        let paths: std::collections::BTreeSet<_> = (0..20_000).map(file_path).collect();
        assert_eq!(paths.len(), 20_000);
    }
}
