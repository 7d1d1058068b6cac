//! A repository in memory: commits as plain data, references, and one work tree.
//!
//! As in git, ids depend on the content and all ancestors, but they are cheap to compute.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use runner_core::audit::{CommitDiff, CommitHeader, PathChange, PathEntry, is_content_read};

/// Files that stay out of commits.
const HELD_BACK: &str = "keys/";

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBlob {
    /// Its id.
    pub(crate) id: Arc<str>,
    /// Its bytes.
    pub(crate) bytes: Arc<[u8]>,
}

impl StoredBlob {
    /// Creates a blob of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { id: id(&[bytes]).into(), bytes: bytes.into() }
    }
}

/// Files by path.
pub(crate) type FileMap = BTreeMap<String, StoredBlob>;

/// A commit with at most one parent.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedCommit {
    /// Its id.
    pub(crate) id: String,
    /// Its parent; `None` for the first commit.
    pub(crate) parent: Option<String>,
    /// Its message.
    pub(crate) message: String,
    /// All of its files.
    pub(crate) files: Arc<FileMap>,
}

/// A repository with one branch, which is checked out.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedRepository {
    commits: BTreeMap<String, SimulatedCommit>,
    /// The tip of the branch.
    pub(crate) tip: String,
    /// Other references: the commits and blobs that each name ever had.
    pub(crate) refs: BTreeMap<String, Vec<String>>,
    /// Blobs that a reference keeps.
    pub(crate) blobs: BTreeMap<String, StoredBlob>,
    /// The files of the work tree.
    pub(crate) work: FileMap,
    /// Where HEAD is if not on the branch, or an unfinished operation.
    pub(crate) strayed: Option<&'static str>,
}

impl SimulatedRepository {
    /// Creates a repository with one commit of these files, checked out.
    pub(crate) fn with(files: FileMap) -> Self {
        let mut repository = Self { work: files, ..Self::default() };
        repository.commit_all("Begin");
        repository
    }

    /// Returns a commit that must exist.
    pub(crate) fn commit(&self, id: &str) -> &SimulatedCommit {
        &self.commits[id]
    }

    /// Returns the commit at the tip.
    pub(crate) fn head(&self) -> &SimulatedCommit {
        self.commit(&self.tip)
    }

    /// Writes a file of the work tree.
    pub(crate) fn write(&mut self, path: &str, bytes: &[u8]) {
        self.work.insert(path.to_owned(), StoredBlob::of(bytes));
    }

    /// Returns the text of a file of the work tree; empty if it does not exist.
    pub(crate) fn text(&self, path: &str) -> String {
        self.work.get(path).map_or_else(String::new, |blob| String::from_utf8_lossy(&blob.bytes).into_owned())
    }

    /// Commits the work tree on top of the tip, except for files that are held back.
    pub(crate) fn commit_all(&mut self, message: &str) -> String {
        let files = self.work.iter().filter(|(path, _)| !is_held_back(path));
        let files = files.map(|(path, blob)| (path.clone(), blob.clone())).collect();
        let parent = Some(self.tip.clone()).filter(|tip| !tip.is_empty());
        self.tip = self.store(parent, message, files);
        self.tip.clone()
    }

    /// Commits these files on top of the tip, regardless of other changes in the work tree, and writes them there.
    pub(crate) fn graft(&mut self, texts: &[(&str, &str)], message: &str) {
        let mut files = (*self.head().files).clone();
        for (path, text) in texts {
            files.insert((*path).to_owned(), StoredBlob::of(text.as_bytes()));
            self.write(path, text.as_bytes());
        }
        self.tip = self.store(Some(self.tip.clone()), message, files);
    }

    /// Stores a commit without a reference.
    pub(crate) fn store(&mut self, parent: Option<String>, message: &str, files: FileMap) -> String {
        let id = commit_id(parent.as_deref(), message, &files, self.commits.len());
        let commit = SimulatedCommit { id: id.clone(), parent, message: message.to_owned(), files: Arc::new(files) };
        self.commits.insert(id.clone(), commit);
        id
    }

    /// Saves a commit or a blob under a reference.
    pub(crate) fn keep(&mut self, name: &str, id: &str) {
        let commits = self.refs.entry(name.to_owned()).or_default();
        if !commits.iter().any(|known| known == id) {
            commits.push(id.to_owned());
        }
    }

    /// Sets branch, HEAD and work tree to a commit; files that are held back stay.
    pub(crate) fn restore(&mut self, id: &str) {
        id.clone_into(&mut self.tip);
        self.strayed = None;
        let files = Arc::clone(&self.head().files);
        self.work.retain(|path, _| is_held_back(path));
        self.work.extend(files.iter().map(|(path, blob)| (path.clone(), blob.clone())));
    }

    /// Returns the commits from this one back to the first, newest first.
    pub(crate) fn ancestors<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a SimulatedCommit> {
        std::iter::successors(self.commits.get(id), |commit| commit.parent.as_ref().map(|parent| self.commit(parent)))
    }

    /// Returns the commits of the branch, oldest first.
    pub(crate) fn chain(&self) -> Vec<SimulatedCommit> {
        let mut commits: Vec<SimulatedCommit> = self.ancestors(&self.tip).cloned().collect();
        commits.reverse();
        commits
    }

    /// Returns the paths at which the work tree differs from the tip, except for files that are held back.
    pub(crate) fn changes(&self) -> Vec<String> {
        differing(&self.head().files, &self.work).filter(|path| !is_held_back(path)).map(str::to_owned).collect()
    }

    /// Returns the files that stay out of commits.
    pub(crate) fn held_back(&self) -> Vec<String> {
        self.work.keys().filter(|path| is_held_back(path)).cloned().collect()
    }

    /// Whether a blob is kept: in the work tree, on the branch since a commit, or by a reference with this name.
    pub(crate) fn keeps(&self, blob: &str, since: &str, name: &str) -> bool {
        let is_in = |files: &FileMap| files.values().any(|file| &*file.id == blob);
        let referred = self.refs.iter().filter(|(known, _)| known.ends_with(name)).flat_map(|(_, ids)| ids);
        let ids: Vec<&str> = referred.map(String::as_str).chain([self.tip.as_str()]).collect();
        is_in(&self.work)
            || ids.iter().any(|id| self.blobs.contains_key(*id) && *id == blob)
            || ids.iter().any(|id| self.since(id, since).any(|commit| is_in(&commit.files)))
    }

    /// Returns the commits from one back to another, excluding the latter, newest first.
    pub(crate) fn since<'a>(&'a self, id: &str, since: &str) -> impl Iterator<Item = &'a SimulatedCommit> {
        self.ancestors(id).take_while(move |commit| commit.id != since)
    }
}

/// Returns the paths at which two sets of files differ.
pub(crate) fn differing<'a>(a: &'a FileMap, b: &'a FileMap) -> impl Iterator<Item = &'a str> {
    let other = a.iter().filter(|(path, blob)| b.get(*path).is_none_or(|other_blob| other_blob.id != blob.id));
    let new = b.keys().filter(|path| !a.contains_key(*path));
    other.map(|(path, _)| path.as_str()).chain(new.map(String::as_str))
}

/// Returns what an audit reads of a chain of commits: the headers, and the changes of each.
pub(crate) fn links(
    chain: &[SimulatedCommit],
    raw: &BTreeMap<String, StoredBlob>,
) -> (Vec<CommitHeader>, Vec<CommitDiff>) {
    let none = FileMap::new();
    let head = |commit: &SimulatedCommit| CommitHeader {
        id: commit.id.clone(),
        parents: commit.parent.iter().cloned().collect(),
        headers: header(commit),
        message: commit.message.clone().into_bytes(),
        recoded: None,
    };
    let before = std::iter::once(&none).chain(chain.iter().map(|commit| &*commit.files));
    let links = before.zip(chain).map(|(before, commit)| CommitDiff {
        changes: changes(before, &commit.files),
        raw: raw_id(&commit.message).and_then(|id| raw.get(id)).map(|blob| blob.bytes.clone()),
        diff: reviewed_from(&commit.message)
            .and_then(|from| chain.iter().find(|before| before.id == from))
            .map(|from| patch(&from.files, &commit.files).into_bytes()),
        ..CommitDiff::default()
    });
    (chain.iter().map(head).collect(), links.collect())
}

fn header(commit: &SimulatedCommit) -> Vec<u8> {
    let parent = commit.parent.iter().map(|parent| format!("parent {parent}\n"));
    let who = "A U Thor <author@example.com> 1700000000 +0000\n";
    let tree = format!("tree {}\n", "1".repeat(40));
    let lines = std::iter::once(tree).chain(parent).chain([format!("author {who}"), format!("committer {who}")]);
    lines.collect::<String>().into_bytes()
}

/// Returns all files of a commit as if it had added them.
pub(crate) fn all_files(commit: &SimulatedCommit) -> Vec<PathChange> {
    changes(&FileMap::new(), &commit.files)
}

/// Returns a substitute for a patch of the code: every differing path, with its old and new content.
pub(crate) fn patch(before: &FileMap, after: &FileMap) -> String {
    let id =
        |files: &FileMap, path: &str| files.get(path).map_or_else(|| "nothing".to_owned(), |blob| blob.id.to_string());
    let paths: BTreeSet<&str> = differing(before, after).collect();
    let is_code = |path: &&str| !path.starts_with(".runner/") && !is_held_back(path);
    let line = |path: &str| format!("{path}: {} to {}\n", id(before, path), id(after, path));
    paths.into_iter().filter(is_code).map(line).collect()
}

/// Returns the commit that the reviewer based its decision on, if there was a reviewer.
fn reviewed_from(message: &str) -> Option<&str> {
    let is_reviewed = message.contains("\nRunner-Review: ") && message.contains(" prompt=");
    message.lines().find_map(|line| line.strip_prefix("Runner-From: ")).filter(|_| is_reviewed)
}

fn raw_id(message: &str) -> Option<&str> {
    message.lines().find_map(|line| line.strip_prefix("Runner-Raw: "))
}

fn changes(before: &FileMap, after: &FileMap) -> Vec<PathChange> {
    let stored = |path: &str, files: &FileMap| {
        let blob = files.get(path)?;
        let content = is_content_read(path.as_bytes()).then(|| Arc::clone(&blob.bytes));
        Some(PathEntry { mode: 0o100_644, id: blob.id.to_string(), content })
    };
    let change =
        |path: &str| PathChange { path: path.as_bytes().to_vec(), old: stored(path, before), new: stored(path, after) };
    differing(before, after).map(change).collect()
}

fn is_held_back(path: &str) -> bool {
    path.starts_with(HELD_BACK)
}

/// Computes the id of a commit; otherwise equal commits differ in their time.
pub(crate) fn commit_id(parent: Option<&str>, message: &str, files: &FileMap, at: usize) -> String {
    let names = files.iter().flat_map(|(path, blob)| [path.as_bytes(), blob.id.as_bytes()]);
    let at = at.to_le_bytes();
    id(&[parent.unwrap_or_default().as_bytes(), message.as_bytes(), &at].into_iter().chain(names).collect::<Vec<_>>())
}

/// Computes an id in git's format.
fn id(parts: &[&[u8]]) -> String {
    let mut hasher = DefaultHasher::new();
    let mut length = 0_usize;
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
        length += part.len();
    }
    let first = hasher.finish();
    hasher.write_u8(1);
    format!("{first:016x}{:016x}{:08x}", hasher.finish(), length & 0xffff_ffff)
}
