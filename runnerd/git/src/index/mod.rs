//! The index file: read it, lock it, write it whole. What its entries should be is decided elsewhere.

pub(crate) mod cachetree;
pub(crate) mod edits;
pub(crate) mod index_diff;
pub(crate) mod index_flags;

use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use gix::index::State;
use gix::index::write::Extensions;
use gix::lock::acquire::Fail;
use runner_os::retryable::Retryable as _;

use self::index_flags::UNKNOWN_STAT;
use crate::objects::object_reader;
use crate::repository::cache::FileStamp;
use crate::worktree::sparse_patterns::SparsePatterns;
use crate::{GitError, Id, Repository};

/// How long to wait for another git that is just finishing.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Limit in bytes of an index that is read: one of some million files.
pub(crate) const MAX_INDEX_BYTES: u64 = 512 << 20;

/// The lock on the index: its holder may replace the file.
pub(crate) struct IndexLock {
    lock: gix::lock::File,
    repository: Repository,
    skip_hash: bool,
}

/// An index that is written but not yet visible to git.
pub(crate) struct PendingIndex {
    lock: gix::lock::File,
    repository: Repository,
}

/// Reads the index. One that cannot be decoded, or is too large for that, counts as the tree of `head`: it is a cache,
/// and the files matter.
pub(crate) fn read_index(repo: &gix::Repository, repository: &Repository, head: Option<Id>) -> Result<State, GitError> {
    let path = repository.index_path();
    let stamp = FileStamp::read(&path);
    if stamp.is_some_and(|stamp| stamp.len() > MAX_INDEX_BYTES) {
        tracing::warn!(file = %path.display(), "the index is too large to be read; rebuilding it");
        return from_commit(repo, repository, head);
    }
    let skips_hash =
        repo.config_snapshot().boolean("index.skipHash").unwrap_or(false) || repository.verified_index.matches(stamp);
    // The library panics here if the system refuses it a thread.
    let options = gix::index::decode::Options { thread_limit: Some(1), ..Default::default() };
    let error = match gix::index::File::at_or_default(&path, repo.object_hash(), skips_hash, options) {
        Ok(file) => {
            if !skips_hash {
                repository.verified_index.set(stamp.filter(|stamp| FileStamp::read(&path) == Some(*stamp)));
            }
            return Ok(file.into());
        }
        Err(error) => GitError::gix("reading", &path)(error),
    };
    if error.is_transient() {
        return Err(error);
    }
    tracing::warn!(%error, "failed to read the index; rebuilding it");
    from_commit(repo, repository, head)
}

fn from_commit(repo: &gix::Repository, repository: &Repository, head: Option<Id>) -> Result<State, GitError> {
    let Some(head) = head else { return Ok(State::new(repo.object_hash())) };
    let read = || Ok(repo.index_from_tree(&object_reader::read_commit_tree(repo, head.object_id())?.id)?.into());
    let mut state = read().map_err(GitError::gix("reading the tree of HEAD", repository.git_dir()))?;
    SparsePatterns::read(repo, repository)?.mark_left_out(&mut state);
    Ok(state)
}

impl Repository {
    /// Makes the git program read every file before it trusts the index. Entries and flags stay: staged work and flags
    /// may be a person's.
    pub(crate) fn invalidate_index_stats(&self) -> Result<(), GitError> {
        let repo = self.open()?;
        let lock = IndexLock::acquire(&repo, self)?;
        let mut state = read_index(&repo, self, self.head()?.commit())?;
        // The library would write folders that are single entries in a way the program does not read.
        if state.is_sparse() {
            return Ok(());
        }
        state.remove_tree();
        state.entries_mut().iter_mut().for_each(|entry| entry.stat = UNKNOWN_STAT);
        lock.write(&state)?.publish()
    }

    /// Writes the index of HEAD if a program has removed it: without one, every file counts as changed.
    pub fn restore_missing_index(&self) -> Result<(), GitError> {
        let is_missing = self.index_path().symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let head = if is_missing { self.head()?.commit() } else { None };
        head.map_or(Ok(()), |head| self.rebuild_index(head))
    }

    /// Replaces the index, whatever it has, with the files of a commit.
    pub(crate) fn rebuild_index(&self, commit: Id) -> Result<(), GitError> {
        let repo = self.open()?;
        let lock = IndexLock::acquire(&repo, self)?;
        lock.write(&from_commit(&repo, self, Some(commit))?)?.publish()
    }
}

impl IndexLock {
    /// Takes the lock, waiting briefly for another git.
    pub(crate) fn acquire(repo: &gix::Repository, repository: &Repository) -> Result<Self, GitError> {
        let lock = repository.with_stale_lock_retry(|| {
            let patience = Fail::AfterDurationWithBackoff(LOCK_TIMEOUT);
            gix::lock::File::acquire_to_update_resource(repository.index_path(), patience, None, 0)
                .map_err(GitError::gix("locking", &repository.git_dir().join("index.lock")))
        })?;
        let skip_hash = repo.config_snapshot().boolean("index.skipHash").unwrap_or(false);
        Ok(Self { lock, repository: repository.clone(), skip_hash })
    }

    /// Writes `state` to the lock file. Dropping the result leaves the index as it was.
    pub(crate) fn write(self, state: &State) -> Result<PendingIndex, GitError> {
        let lock = write_index_to(self.lock, &self.repository.index_path(), state, self.skip_hash)?;
        Ok(PendingIndex { lock, repository: self.repository })
    }
}

/// Writes `state` to a file with this path, and returns the file.
pub(crate) fn write_index_to<W: io::Write>(
    file: W,
    path: &Path,
    state: &State,
    skip_hash: bool,
) -> Result<W, GitError> {
    let options = gix::index::write::Options { extensions: Extensions::default(), skip_hash };
    let mut out = gix::hash::io::Write::new(file, state.object_hash());
    // The digest is computed over whole buffers: one entry is a dozen writes.
    let mut buffer = BufWriter::with_capacity(256 * 1024, &mut out);
    state.write_to(&mut buffer, options).map_err(GitError::gix("writing", path))?;
    buffer.flush().map_err(GitError::io("writing", path))?;
    drop(buffer);
    let gix::hash::io::Write { hash, inner: mut file } = out;
    let digest = if skip_hash { state.object_hash().null() } else { finish_hash(hash, path)? };
    file.write_all(digest.as_bytes()).map_err(GitError::io("writing", path))?;
    Ok(file)
}

/// Returns the digest of everything written.
fn finish_hash(hash: gix::hash::Hasher, path: &Path) -> Result<gix::ObjectId, GitError> {
    hash.try_finalize().map_err(GitError::gix("writing", path))
}

impl PendingIndex {
    /// Makes this the index that git sees.
    pub(crate) fn publish(self) -> Result<(), GitError> {
        let path = self.repository.index_path();
        self.lock.commit().map_err(|failed| GitError::io("replacing", &path)(failed.error))?;
        self.repository.verified_index.set(FileStamp::read(&path));
        Ok(())
    }
}
