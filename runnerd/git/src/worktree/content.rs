//! Converts one file of the work tree into what git stores for it: filters, line endings, links, the executable bit.
//! Does not depend on the index it will go into.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use gix::ObjectId;
use gix::bstr::BStr;
use gix::filter::Pipeline;
use gix::filter::plumbing::pipeline::convert::ToGitOutcome;
use gix::index::entry::{Mode, Stat};
use gix::objs::Write as _;
use gix::worktree::stack::state::attributes::Source;
use runner_os::retryable::Retryable as _;

use crate::index::cachetree;
use crate::index::edits::IndexEntry;
use crate::path::{display_path, has_safe_name, has_valid_name};
use crate::{GitError, Repository};

/// Two changes within this time can leave a file with the same timestamp.
const CLOCK_GRAIN: Duration = Duration::from_millis(20);

/// Size in bytes above which content is stored in pieces.
const MAX_IN_MEMORY: u64 = 8 * 1024 * 1024;

/// Why a path has no content to store.
#[derive(Debug)]
pub(crate) enum StoreFailure {
    /// The path no longer exists.
    Missing,
    /// git cannot store it, or it cannot be read.
    Unstorable,
    /// The repository cannot store anything now.
    Failed(GitError),
}

/// Stores files of one work tree with the current attributes.
pub(crate) struct ContentStore<'a> {
    repo: &'a gix::Repository,
    repository: &'a Repository,
    pipeline: Pipeline<'a>,
    attributes: gix::AttributeStack<'a>,
    has_symlinks: bool,
    has_executable_bit: bool,
}

impl<'a> ContentStore<'a> {
    /// Prepares to store files; `index` must have no entries for attribute files that were removed.
    pub(crate) fn new(
        repo: &'a gix::Repository,
        repository: &'a Repository,
        index: &gix::index::State,
    ) -> Result<Self, GitError> {
        let prepare = || -> gix::Result<Self> {
            let attributes = || repository.read_attributes(repo, index, Source::WorktreeThenIdMapping);
            let capabilities = repo.filesystem_options()?;
            Ok(Self {
                repo,
                repository,
                pipeline: Pipeline::new(repo, attributes()?.detach())?,
                attributes: attributes()?,
                has_symlinks: capabilities.symlink,
                has_executable_bit: capabilities.executable_bit,
            })
        };
        prepare().map_err(GitError::gix("reading attributes and filters", repository.work_dir()))
    }

    /// Whether a file is text in another encoding, which git refuses if it cannot read it, but the library stores.
    pub(crate) fn has_text_encoding(&mut self, path: &BStr) -> bool {
        if self.repository.is_runner_path(path) {
            return false;
        }
        let mut found = self.attributes.selected_attribute_matches(["working-tree-encoding"]);
        let at_path = self.attributes.at_entry(path, None);
        at_path.is_ok_and(|at_path| at_path.matching_attributes(&mut found))
    }

    /// Writes the file at `path` to the object database. `known_mode` is its mode in the index.
    pub(crate) fn store_file(
        &mut self,
        path: &BStr,
        known_mode: Option<Mode>,
        index: &gix::index::State,
    ) -> Result<IndexEntry, StoreFailure> {
        let file = self.repository.absolute_path(path);
        let found = fs::symlink_metadata(&file).map_err(|error| io_failure(&file, error))?;
        let stat = read_stat(&file)?;
        let kind = found.file_type();
        let (id, mode) = if kind.is_symlink() {
            let target = fs::read_link(&file).map_err(|error| io_failure(&file, error))?;
            (store_bytes(self.repo, &file, target.as_os_str().as_bytes())?, Mode::SYMLINK)
        } else if kind.is_file() {
            let id = if self.repository.is_runner_path(path) {
                store_unfiltered(self.repo, &file)
            } else {
                self.store_filtered(path, &file, index)
            };
            (id?, self.file_mode(found.mode(), known_mode))
        } else if kind.is_dir() {
            (read_head_commit(&file).ok_or(StoreFailure::Unstorable)?, Mode::COMMIT)
        } else {
            return Err(StoreFailure::Unstorable);
        };
        let is_legal = if known_mode.is_some() { has_valid_name } else { has_safe_name };
        if !is_legal(path, mode) {
            return Err(StoreFailure::Unstorable);
        }
        Ok(IndexEntry { id, mode, stat: mark_racy_stat(stat, &file)? })
    }

    /// Writes a tracked file as if nothing were known about it: rules newer than the file apply to it too.
    pub(crate) fn store_renormalized(&mut self, path: &BStr, known: Mode) -> Result<IndexEntry, StoreFailure> {
        if self.has_text_encoding(path) {
            return Err(StoreFailure::Failed(encoding_error(self.repository, path)));
        }
        self.store_file(path, Some(known), &cachetree::empty_index(self.repo.object_hash()))
    }

    /// git considers only the owner's executable bit, and keeps the known mode if the file system has none.
    fn file_mode(&self, permissions: u32, known: Option<Mode>) -> Mode {
        match known {
            Some(Mode::SYMLINK) if !self.has_symlinks => Mode::SYMLINK,
            Some(mode @ (Mode::FILE | Mode::FILE_EXECUTABLE)) if !self.has_executable_bit => mode,
            _ if self.has_executable_bit && permissions & 0o100 != 0 => Mode::FILE_EXECUTABLE,
            _ => Mode::FILE,
        }
    }

    fn store_filtered(
        &mut self,
        path: &BStr,
        file: &Path,
        index: &gix::index::State,
    ) -> Result<ObjectId, StoreFailure> {
        let opened = open_regular_file(file).map_err(|error| io_failure(file, error))?;
        let repo = self.repo;
        let mut bytes = Vec::new();
        let read = match self.pipeline.convert_to_git(opened, Path::new(OsStr::from_bytes(path)), index) {
            Ok(ToGitOutcome::Unchanged(content)) => {
                let length = content.metadata().map_or(0, |found| found.len());
                if length > MAX_IN_MEMORY {
                    return store_stream(repo, file, content, length);
                }
                content.take(MAX_IN_MEMORY + 1).read_to_end(&mut bytes)
            }
            Ok(ToGitOutcome::Process(mut content)) => {
                let read = content.by_ref().take(MAX_IN_MEMORY + 1).read_to_end(&mut bytes);
                if bytes.len() as u64 > MAX_IN_MEMORY {
                    return store_spooled(repo, file, &mut bytes.as_slice().chain(content));
                }
                read
            }
            Ok(ToGitOutcome::Buffer(content)) => return store_bytes(repo, file, content),
            Err(error) => {
                let known = index.entry_by_path(path).map(|entry| repo.find_object(entry.id));
                return Err(filter_failure(file, error, known.and_then(Result::err)));
            }
        };
        read.map_err(|error| io_failure(file, error))?;
        store_bytes(repo, file, &bytes)
    }
}

/// Stores a file byte for byte.
fn store_unfiltered(repo: &gix::Repository, file: &Path) -> Result<ObjectId, StoreFailure> {
    let opened = open_regular_file(file).map_err(|error| io_failure(file, error))?;
    let length = opened.metadata().map_err(|error| io_failure(file, error))?.len();
    store_stream(repo, file, opened, length)
}

/// Stores a program's output, whose length is unknown in advance, through an unnamed file.
fn store_spooled(repo: &gix::Repository, file: &Path, output: &mut impl Read) -> Result<ObjectId, StoreFailure> {
    let mut spool = tempfile::tempfile().map_err(|error| io_failure(file, error))?;
    let length = io::copy(output, &mut spool).map_err(|error| io_failure(file, error))?;
    store_stream(repo, file, spool, length)
}

/// Stores content too large to hold in memory.
fn store_stream(repo: &gix::Repository, file: &Path, mut bytes: File, length: u64) -> Result<ObjectId, StoreFailure> {
    let progress = &mut gix::progress::Discard;
    let stop = &AtomicBool::new(false);
    bytes.rewind().map_err(|error| io_failure(file, error))?;
    let kind = repo.object_hash();
    let blob = gix::objs::Kind::Blob;
    let id = gix::objs::compute_stream_hash(
        kind,
        blob,
        &mut ExactReader { bytes: &bytes, left: length },
        length,
        progress,
        stop,
    );
    let id = id.map_err(|error| filter_failure(file, error, None))?;
    if repo.has_object(id) {
        return Ok(id);
    }
    bytes.rewind().map_err(|error| io_failure(file, error))?;
    let stored = repo.objects.write_stream(blob, length, &mut ExactReader { bytes: &bytes, left: length });
    stored.map_err(|error| StoreFailure::Failed(GitError::gix("storing", file)(error)))
}

/// Reads exactly as many bytes as the file had: an object states its length up front.
struct ExactReader<'a> {
    bytes: &'a File,
    left: u64,
}

impl Read for ExactReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.bytes.read(&mut buffer[..most])?;
        if read == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// Returns the error which says that git itself is needed.
pub(crate) fn encoding_error(repository: &Repository, path: &BStr) -> GitError {
    GitError::Corrupt {
        doing: "storing text",
        path: repository.work_dir().to_owned(),
        source: format!("{} is in another encoding", display_path(path)).into(),
    }
}

/// An error writing to the object database is not the content's fault.
fn store_bytes(repo: &gix::Repository, file: &Path, bytes: &[u8]) -> Result<ObjectId, StoreFailure> {
    let has_id = || gix::objs::compute_hash(repo.object_hash(), gix::objs::Kind::Blob, bytes).is_ok();
    repo.write_blob(bytes).map(gix::Id::detach).map_err(|error| {
        if has_id() { StoreFailure::Failed(GitError::gix("storing", file)(error)) } else { StoreFailure::Unstorable }
    })
}

/// Filters look at the indexed content; `unread` is the reason that content cannot be read.
fn filter_failure(file: &Path, error: gix::Error, read_error: Option<gix::Error>) -> StoreFailure {
    let error = GitError::gix("filtering", file)(error);
    match read_error {
        _ if error.is_transient() => StoreFailure::Failed(error),
        Some(unread) => StoreFailure::Failed(GitError::gix("reading what the index has of", file)(unread)),
        None => StoreFailure::Unstorable,
    }
}

fn io_failure(file: &Path, error: io::Error) -> StoreFailure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoreFailure::Missing,
        _ if error.is_transient() => StoreFailure::Failed(GitError::io("reading", file)(error)),
        _ => StoreFailure::Unstorable,
    }
}

fn read_stat(file: &Path) -> Result<Stat, StoreFailure> {
    let found = gix::index::fs::Metadata::from_path_no_follow(file).map_err(|error| io_failure(file, error))?;
    Stat::from_fs(&found).map_err(|_| StoreFailure::Unstorable)
}

/// Makes git check the file again later if it changed while it was read, or could have without its times showing it.
fn mark_racy_stat(before: Stat, file: &Path) -> Result<Stat, StoreFailure> {
    let recent = SystemTime::UNIX_EPOCH + Duration::new(u64::from(before.mtime.secs), before.mtime.nsecs) + CLOCK_GRAIN;
    let certain = before == read_stat(file)? && recent.elapsed().is_ok();
    Ok(if certain { before } else { Stat { size: 0, ..before } })
}

/// Opens a regular file; neither follows a link nor waits for a pipe that took its place meanwhile.
pub(crate) fn open_regular_file(file: &Path) -> io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(file)
}

/// Returns the commit that the repository in `folder` is at.
pub(crate) fn read_head_commit(folder: &Path) -> Option<ObjectId> {
    let nested = gix::open_opts(folder, gix::open::Options::isolated()).ok()?;
    Some(nested.head_id().ok()?.detach())
}
