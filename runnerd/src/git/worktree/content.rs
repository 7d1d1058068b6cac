//! Turns one file of the work tree into what git stores of it: filters, line endings, links, the executable bit. Knows
//! nothing of the index it will go into.

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

use crate::git::index::cachetree;
use crate::git::index::edits::Stored;
use crate::git::path::{display, has_safe_name, has_valid_name};
use crate::git::{GitError, Repository};
use crate::obstruction::Obstructs as _;

/// Two changes within this time can leave the same time stamp on a file.
const CLOCK_GRAIN: Duration = Duration::from_millis(20);

/// Longer content is stored in pieces; bytes.
const AT_ONCE: u64 = 8 * 1024 * 1024;

/// Why a path has no content to store.
#[derive(Debug)]
pub(in crate::git) enum Refused {
    /// Nothing is there any more.
    Gone,
    /// git cannot store it, or it cannot be read.
    Unstorable,
    /// The repository cannot take anything now.
    Fault(GitError),
}

/// Stores files of one work tree, with the attributes that hold now.
pub(in crate::git) struct Contents<'a> {
    repo: &'a gix::Repository,
    paths: &'a Repository,
    pipeline: Pipeline<'a>,
    attributes: gix::AttributeStack<'a>,
    has_symlinks: bool,
    has_executable_bit: bool,
}

impl<'a> Contents<'a> {
    /// Prepares to store files; `index` has to be free of entries for attribute files that are gone.
    pub(in crate::git) fn new(
        repo: &'a gix::Repository,
        paths: &'a Repository,
        index: &gix::index::State,
    ) -> Result<Self, GitError> {
        let prepare = || -> gix::Result<Self> {
            let attributes = || repo.attributes_only(index, Source::WorktreeThenIdMapping);
            let capabilities = repo.filesystem_options()?;
            Ok(Self {
                repo,
                paths,
                pipeline: Pipeline::new(repo, attributes()?.detach())?,
                attributes: attributes()?,
                has_symlinks: capabilities.symlink,
                has_executable_bit: capabilities.executable_bit,
            })
        };
        prepare().map_err(GitError::library("reading attributes and filters", paths.work_dir()))
    }

    /// Tells whether a file is text in another encoding, which git refuses where it cannot read it and the library stores.
    pub(in crate::git) fn is_recoded(&mut self, path: &BStr) -> bool {
        if self.paths.owns(path) {
            return false;
        }
        let mut found = self.attributes.selected_attribute_matches(["working-tree-encoding"]);
        let at_path = self.attributes.at_entry(path, None);
        at_path.is_ok_and(|at_path| at_path.matching_attributes(&mut found))
    }

    /// Writes what is at `path` into the object database. `known` is the mode that the index has for it.
    pub(in crate::git) fn store(
        &mut self,
        path: &BStr,
        known: Option<Mode>,
        index: &gix::index::State,
    ) -> Result<Stored, Refused> {
        let file = self.paths.file(path);
        let found = fs::symlink_metadata(&file).map_err(|error| refuse(&file, error))?;
        let stat = stat_of(&file)?;
        let kind = found.file_type();
        let (id, mode) = if kind.is_symlink() {
            let target = fs::read_link(&file).map_err(|error| refuse(&file, error))?;
            (write(self.repo, &file, target.as_os_str().as_bytes())?, Mode::SYMLINK)
        } else if kind.is_file() {
            let id = if self.paths.owns(path) { as_it_is(self.repo, &file) } else { self.filtered(path, &file, index) };
            (id?, self.mode_of(found.mode(), known))
        } else if kind.is_dir() {
            (head_of(&file).ok_or(Refused::Unstorable)?, Mode::COMMIT)
        } else {
            return Err(Refused::Unstorable);
        };
        let is_legal = if known.is_some() { has_valid_name } else { has_safe_name };
        if !is_legal(path, mode) {
            return Err(Refused::Unstorable);
        }
        Ok(Stored { id, mode, stat: settled(stat, &file)? })
    }

    /// Writes a tracked file as if nothing were known of it: rules that are younger than it hold for it too.
    pub(in crate::git) fn renormalised(&mut self, path: &BStr, known: Mode) -> Result<Stored, Refused> {
        if self.is_recoded(path) {
            return Err(Refused::Fault(recoded(self.paths, path)));
        }
        self.store(path, Some(known), &cachetree::empty(self.repo.object_hash()))
    }

    /// git looks at the owner's executable bit alone, and keeps what it knows where the file system has none.
    fn mode_of(&self, permissions: u32, known: Option<Mode>) -> Mode {
        match known {
            Some(Mode::SYMLINK) if !self.has_symlinks => Mode::SYMLINK,
            Some(mode @ (Mode::FILE | Mode::FILE_EXECUTABLE)) if !self.has_executable_bit => mode,
            _ if self.has_executable_bit && permissions & 0o100 != 0 => Mode::FILE_EXECUTABLE,
            _ => Mode::FILE,
        }
    }

    fn filtered(&mut self, path: &BStr, file: &Path, index: &gix::index::State) -> Result<ObjectId, Refused> {
        let opened = open_plain(file).map_err(|error| refuse(file, error))?;
        let (repo, mut bytes) = (self.repo, Vec::new());
        let read = match self.pipeline.convert_to_git(opened, Path::new(OsStr::from_bytes(path)), index) {
            Ok(ToGitOutcome::Unchanged(content)) => {
                let length = content.metadata().map_or(0, |found| found.len());
                if length > AT_ONCE {
                    return stream(repo, file, (content, length));
                }
                content.take(AT_ONCE + 1).read_to_end(&mut bytes)
            }
            Ok(ToGitOutcome::Process(mut content)) => {
                let read = content.by_ref().take(AT_ONCE + 1).read_to_end(&mut bytes);
                if bytes.len() as u64 > AT_ONCE {
                    return spool(repo, file, &mut bytes.as_slice().chain(content));
                }
                read
            }
            Ok(ToGitOutcome::Buffer(content)) => return write(repo, file, content),
            Err(error) => {
                let known = index.entry_by_path(path).map(|entry| repo.find_object(entry.id));
                return Err(refuse_filtered(file, error, known.and_then(Result::err)));
            }
        };
        read.map_err(|error| refuse(file, error))?;
        write(repo, file, &bytes)
    }
}

/// Stores a file byte for byte.
fn as_it_is(repo: &gix::Repository, file: &Path) -> Result<ObjectId, Refused> {
    let opened = open_plain(file).map_err(|error| refuse(file, error))?;
    let length = opened.metadata().map_err(|error| refuse(file, error))?.len();
    stream(repo, file, (opened, length))
}

/// Stores the output of a program, which is as long as it is, by way of a file that has no name.
fn spool(repo: &gix::Repository, file: &Path, output: &mut impl Read) -> Result<ObjectId, Refused> {
    let mut spool = tempfile::tempfile().map_err(|error| refuse(file, error))?;
    let length = io::copy(output, &mut spool).map_err(|error| refuse(file, error))?;
    stream(repo, file, (spool, length))
}

/// Stores bytes that are too many to be held in memory at once.
fn stream(repo: &gix::Repository, file: &Path, (mut bytes, length): (File, u64)) -> Result<ObjectId, Refused> {
    let (progress, stop) = (&mut gix::progress::Discard, &AtomicBool::new(false));
    bytes.rewind().map_err(|error| refuse(file, error))?;
    let (kind, blob) = (repo.object_hash(), gix::objs::Kind::Blob);
    let id = gix::objs::compute_stream_hash(
        kind,
        blob,
        &mut Exactly { bytes: &bytes, left: length },
        length,
        progress,
        stop,
    );
    let id = id.map_err(|error| refuse_filtered(file, error, None))?;
    if repo.has_object(id) {
        return Ok(id);
    }
    bytes.rewind().map_err(|error| refuse(file, error))?;
    let stored = repo.objects.write_stream(blob, length, &mut Exactly { bytes: &bytes, left: length });
    stored.map_err(|error| Refused::Fault(GitError::library("storing", file)(error)))
}

/// As many bytes of a file as it had: an object says in front how many there are.
struct Exactly<'a> {
    bytes: &'a File,
    left: u64,
}

impl Read for Exactly<'_> {
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

/// Says that git itself is needed.
pub(in crate::git) fn recoded(paths: &Repository, path: &BStr) -> GitError {
    GitError::Broken {
        doing: "storing text",
        path: paths.work_dir().to_owned(),
        source: format!("{} is in another encoding", display(path)).into(),
    }
}

/// Whatever keeps bytes that have an id out of the object database is no fault of theirs.
fn write(repo: &gix::Repository, file: &Path, bytes: &[u8]) -> Result<ObjectId, Refused> {
    let has_id = || gix::objs::compute_hash(repo.object_hash(), gix::objs::Kind::Blob, bytes).is_ok();
    repo.write_blob(bytes).map(gix::Id::detach).map_err(|error| {
        if has_id() { Refused::Fault(GitError::library("storing", file)(error)) } else { Refused::Unstorable }
    })
}

/// Filters look at what the index has of the file; `unread` says why that cannot be read.
fn refuse_filtered(file: &Path, error: gix::Error, unread: Option<gix::Error>) -> Refused {
    let error = GitError::library("filtering", file)(error);
    match unread {
        _ if error.passes() => Refused::Fault(error),
        Some(unread) => Refused::Fault(GitError::library("reading what the index has of", file)(unread)),
        None => Refused::Unstorable,
    }
}

fn refuse(file: &Path, error: io::Error) -> Refused {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refused::Gone,
        _ if error.passes() => Refused::Fault(GitError::io("reading", file)(error)),
        _ => Refused::Unstorable,
    }
}

fn stat_of(file: &Path) -> Result<Stat, Refused> {
    let found = gix::index::fs::Metadata::from_path_no_follow(file).map_err(|error| refuse(file, error))?;
    Stat::from_fs(&found).map_err(|_| Refused::Unstorable)
}

/// Makes git look again later if the file changed while it was read, or could have without its times telling.
fn settled(before: Stat, file: &Path) -> Result<Stat, Refused> {
    let recent = SystemTime::UNIX_EPOCH + Duration::new(u64::from(before.mtime.secs), before.mtime.nsecs) + CLOCK_GRAIN;
    let certain = before == stat_of(file)? && recent.elapsed().is_ok();
    Ok(if certain { before } else { Stat { size: 0, ..before } })
}

/// Opens a file; neither a link nor a pipe that took its place meanwhile is followed or waited for.
pub(in crate::git) fn open_plain(file: &Path) -> io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(file)
}

/// Returns the commit that the repository in `folder` is at.
pub(in crate::git) fn head_of(folder: &Path) -> Option<ObjectId> {
    let nested = gix::open_opts(folder, gix::open::Options::isolated()).ok()?;
    Some(nested.head_id().ok()?.detach())
}
