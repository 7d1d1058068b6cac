//! The daemon's own state of one repository, stored outside of it, where no agent writes.
//!
//! One folder per repository in the private part of the state folder: `repo.json` (identity, queue, confirmed
//! configurations), `env.json` (the caller's environment), `changes.json` (a person's requests that are not committed
//! yet), `journal.jsonl` (the live iteration) and `live/` (what its effects store). All are sealed; a file that cannot
//! be read is never overwritten.

mod changes;
mod hooks;
mod landing;
mod saved_tree;
mod settings;
mod workspace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::path::WirePath;
use protocol::request::CallerEnv;
use runner_core::run::RunRecord;
use runner_core::run::blocker::Transience;
use runner_core::text::digest::sha256_hex;
use runner_os::dir_permissions;
use runner_os::retryable::{Retryable, fix_path_remedy, path_remedy};
use serde::{Deserialize, Serialize};

use crate::repo::disk::{Disk, RealDisk};
use crate::repo::durable::{self, DurableError, FileAccess};
use crate::repo::seal::SealKey;
use crate::repo::sealed::{Sealable, SealedFile, SealedFileError, StateDir};

pub use changes::{ChangeQueue, QueuedChange};
pub use hooks::{HookQueue, PendingHook};
pub use saved_tree::SavedTree;
pub use settings::RunSettings;
pub use workspace::WorkspaceRecord;

/// Maximum number of finished runs listed per repository.
const MAX_PAST_RUNS: usize = 50;
/// The folder that contains all repositories' folders.
const REPOSITORIES: &str = "repos";
/// Names in a repository's folder.
const REPO_FILE: &str = "repo.json";
const ENVIRONMENT: &str = "env.json";
const JOURNAL: &str = "journal.jsonl";
const LIVE: &str = "live";
/// Folder beside the private one in which the sessions of all repositories have their homes.
const SESSIONS: &str = "sessions";
const GIT: &str = "git";
/// What was published of an isolated run.
const PUBLISHED: &str = "published.json";
/// The checkout in progress.
const CHECKOUT: &str = "checkout.json";
/// Ignored files of the guard's definition, one note per run.
const IGNORED: &str = "ignored";
/// State in which sessions have left the user's own git configuration.
const SUSPECTS: &str = "git-suspects.json";

/// `repo.json`: what the daemon must remember about a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepoFile {
    /// Id of the repository.
    pub id: String,
    /// Its git folder, shared by all linked work trees.
    pub common_dir: WirePath,
    /// The registered work tree.
    pub path: WirePath,
    /// Digests of the commands that this user has confirmed.
    pub confirmed: Vec<String>,
    /// Its runs: finished ones first, followed by the queue.
    pub runs: Vec<RunRecord>,
    /// Events waiting for a hook.
    pub hooks: HookQueue,
    /// Where its only run was started from, if this is the workspace of an isolated run.
    pub source: Option<SourceRepo>,
}

/// The repository that an isolated run was started from and is published to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRepo {
    /// Its git folder, shared by all linked work trees.
    pub common_dir: WirePath,
    /// The work tree in which the run was requested.
    pub path: WirePath,
    /// Id of the run.
    pub run: String,
    /// Value of `refs/runner/reserved/<run>`: distinguishes this run from another with the same id.
    pub nonce: String,
}

impl Sealable for RepoFile {
    const KIND: &'static str = "repository";
    const VERSION: u32 = 1;
}

/// Stored in `env.json`.
impl Sealable for CallerEnv {
    const KIND: &'static str = "environment";
    const VERSION: u32 = 1;
}

impl RepoFile {
    /// Describes a new repository of which only the location is known.
    pub fn new(common_dir: &Path, path: &Path) -> Self {
        let common_dir = WirePath::from(common_dir);
        let path = WirePath::from(path);
        let id = repo_id(common_dir.as_path());
        Self { common_dir, path, ..Self::placeholder(id) }
    }

    /// Returns a placeholder for a file that cannot be read; never to be written.
    pub fn placeholder(id: String) -> Self {
        let nowhere = WirePath(PathBuf::new());
        Self {
            id,
            common_dir: nowhere.clone(),
            path: nowhere,
            confirmed: Vec::new(),
            runs: Vec::new(),
            hooks: HookQueue::default(),
            source: None,
        }
    }
}

/// What is wrong with the daemon's state of a repository.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error(transparent)]
    Disk(#[from] DurableError),
    /// The folder could not be listed.
    #[error("listing {path}")]
    List {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder could not be removed.
    #[error("removing {path}")]
    Remove {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file that may be needed is in a folder that belongs to no known repository.
    #[error("{path} exists, and its repository is unknown")]
    Orphaned {
        /// The file.
        path: PathBuf,
    },
    /// A file in the folder could not be read, so nothing is written there.
    #[error("nothing is written to {path} while a file there cannot be read")]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// A note could not be read or written.
    #[error(transparent)]
    SealedFile(#[from] SealedFileError),
}

impl Retryable for StoreError {
    fn transience(&self) -> Transience {
        match self {
            Self::Disk(error) => error.transience(),
            Self::SealedFile(error) => error.transience(),
            Self::List { source, .. } | Self::Remove { source, .. } => source.transience(),
            Self::Orphaned { .. } | Self::ReadOnly { .. } => Transience::Lasting,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Disk(error) => error.remedy(),
            Self::SealedFile(error) => error.remedy(),
            Self::List { path, source } | Self::Remove { path, source } => Some(path_remedy(path, source)),
            Self::Orphaned { path } => Some(fix_path_remedy(path)),
            Self::ReadOnly { .. } => None,
        }
    }
}

/// The state folder of one repository.
#[derive(Debug, Clone)]
pub struct RepoStore<D = RealDisk> {
    disk: D,
    vault: StateDir,
    id: String,
}

/// Returns the id of the repository whose git folder is `common_dir`.
pub fn repo_id(common_dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    sha256_hex(common_dir.as_os_str().as_bytes())[..12].to_owned()
}

impl RepoStore {
    /// Creates a handle to the folder of repository `id` in the private part of the daemon's state.
    pub fn new(vault: &StateDir, id: &str) -> Self {
        Self::on_disk(RealDisk, vault, id)
    }

    /// Returns the folders of all repositories that have one.
    pub fn list_all(vault: &StateDir) -> Result<Vec<Self>, StoreError> {
        let folder = vault.folder().join(REPOSITORIES);
        let mut names = match RealDisk.list(&folder) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(StoreError::List { path: folder, source }),
        };
        names.sort();
        // Folders with other names belong to no repository.
        Ok(names.into_iter().filter_map(|name| Some(Self::new(vault, name.to_str()?))).collect())
    }
}

impl RepoStore {
    /// Removes the folder. The file that identifies the repository goes first: if the removal is interrupted, the rest
    /// belongs to no one.
    pub fn remove(&self) -> Result<(), StoreError> {
        durable::with_disk(&self.disk).remove(&self.folder().join(REPO_FILE))?;
        dir_permissions::remove_all(&self.folder()).map_err(|source| StoreError::Remove { path: self.folder(), source })
    }

    /// Removes a folder without a file that identifies its repository: a process was killed before it had registered
    /// the repository, or while it was removing it. A folder that a live iteration or a landing may need stays, and is
    /// named in the error.
    pub fn remove_leftover(&self) -> Result<(), StoreError> {
        let path = self.folder();
        if !path.is_dir() {
            return Ok(());
        }
        for name in [JOURNAL, landing::LANDING_FILE] {
            if path.join(name).symlink_metadata().is_ok() {
                return Err(StoreError::Orphaned { path: path.join(name) });
            }
        }
        tracing::info!(path = %path.display(), "removed state without a repository");
        self.remove()
    }

    /// Returns the folder of the repository whose git folder this is.
    #[must_use]
    pub fn for_repository(&self, common_dir: &Path) -> Self {
        Self::new(&self.vault, &repo_id(common_dir))
    }

    /// Returns the folders of all repositories of this daemon.
    pub fn list_siblings(&self) -> Result<Vec<Self>, StoreError> {
        Self::list_all(&self.vault)
    }
}

impl<D: Disk> RepoStore<D> {
    /// Creates a handle to the folder of repository `id` on a disk.
    pub fn on_disk(disk: D, vault: &StateDir, id: &str) -> Self {
        Self { disk, vault: vault.clone(), id: id.to_owned() }
    }

    /// Returns the disk of the folder.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> PathBuf {
        self.vault.folder().join(self.relative_path(""))
    }

    /// Returns the id of the repository, which is the folder's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the key that seals everything in the folder.
    pub fn key(&self) -> &SealKey {
        self.vault.key()
    }

    /// Returns the place of a file of this folder relative to the private folder, as used in its seal.
    fn relative_path(&self, name: &str) -> String {
        format!("{REPOSITORIES}/{}/{name}", self.id)
    }

    /// Returns the journal of the live iteration: its place in the private folder, and its path.
    pub fn journal(&self) -> (String, PathBuf) {
        let place = self.relative_path(JOURNAL);
        let path = self.vault.folder().join(&place);
        (place, path)
    }

    /// Returns the folder for what the effects of the live iteration store.
    pub fn live_dir(&self) -> PathBuf {
        self.folder().join(LIVE)
    }

    /// Returns the folder for the homes of sessions, which their programs see.
    pub fn sessions_dir(&self) -> PathBuf {
        self.vault.folder().with_file_name(SESSIONS)
    }

    /// Returns a note stored by an effect of the live iteration, by its file name.
    pub fn live_file<T: Sealable>(&self, name: &str) -> SealedFile<T, D> {
        self.sealed_file(&format!("{LIVE}/{name}"))
    }

    /// Returns the note of what git may obey in the work tree `path`, and the folder where it is written out.
    pub fn git_config_file<T: Sealable>(&self, path: &Path) -> (SealedFile<T, D>, PathBuf) {
        let name = repo_id(path);
        (self.sealed_file(&format!("{GIT}/{name}.json")), self.folder().join(GIT).join(name))
    }

    /// Returns the note of a run's ignored files, and the folder that it needs.
    pub fn ignored_file<T: Sealable>(&self, run: &str) -> (SealedFile<T, D>, PathBuf) {
        (self.sealed_file(&format!("{IGNORED}/{run}.json")), self.folder().join(IGNORED))
    }

    /// Returns the note, shared by all repositories, of how a session has left the user's own git configuration.
    pub fn suspects_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.vault.sealed_file(&self.disk, SUSPECTS)
    }

    /// Returns the note of what was last published, if the repository is the workspace of an isolated run.
    pub fn published_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.sealed_file(PUBLISHED)
    }

    /// Returns the note of the checkout in progress.
    pub fn checkout_file<T: Sealable>(&self) -> SealedFile<T, D> {
        self.sealed_file(CHECKOUT)
    }

    /// Creates the folder, private to this user.
    pub fn create(&self) -> Result<(), StoreError> {
        durable::with_disk(&self.disk).create_dir(&self.folder(), FileAccess::Private)?;
        for folder in [LIVE, GIT] {
            durable::with_disk(&self.disk).create_dir(&self.folder().join(folder), FileAccess::Private)?;
        }
        Ok(())
    }

    /// Reads `repo.json`; `None` if there is no such file. It may be written concurrently.
    pub fn read_repo_file(&self) -> Result<Option<RepoFile>, StoreError> {
        Ok(self.sealed_file::<RepoFile>(REPO_FILE).read()?)
    }

    /// Reads `repo.json` for the caller that will write it from now on; `None` if there is no such file.
    ///
    /// What a killed process has written may not be durable yet: it is flushed before it is used. Unfinished writes are
    /// removed.
    pub fn take_over(&self) -> Result<Option<RepoFile>, StoreError> {
        let Some(file) = self.read_repo_file()? else { return Ok(None) };
        self.create()?;
        let disk = durable::with_disk(&self.disk);
        for folder in [self.live_dir(), self.folder()] {
            disk.remove_leftovers(&folder)?;
            disk.sync_folder(&folder)?;
        }
        Ok(Some(file))
    }

    /// Writes `repo.json` durably; drops the oldest finished runs above the limit.
    pub fn save_repo_file(&self, file: &mut RepoFile) -> Result<(), StoreError> {
        let past = file.runs.iter().filter(|run| run.state.is_over()).count();
        let mut surplus = past.saturating_sub(MAX_PAST_RUNS);
        let dropped = file.runs.extract_if(.., |run| {
            let is_dropped = run.state.is_over() && surplus > 0;
            surplus -= usize::from(is_dropped);
            is_dropped
        });
        let dropped: Vec<RunRecord> = dropped.collect();
        self.sealed_file::<RepoFile>(REPO_FILE).write(file)?;
        for run in dropped {
            durable::with_disk(&self.disk).remove(&self.folder().join(IGNORED).join(format!("{}.json", run.id)))?;
        }
        Ok(())
    }

    /// Reads the caller's environment as last passed on; empty if it never was.
    pub fn load_env(&self) -> Result<BTreeMap<String, String>, StoreError> {
        Ok(self.sealed_file::<CallerEnv>(ENVIRONMENT).read()?.unwrap_or_default().0)
    }

    /// Stores the caller's environment, private to this user.
    pub fn save_env(&self, env: &CallerEnv) -> Result<(), StoreError> {
        Ok(self.sealed_file::<CallerEnv>(ENVIRONMENT).write(env)?)
    }

    fn sealed_file<T: Sealable>(&self, name: &str) -> SealedFile<T, D> {
        self.vault.sealed_file(&self.disk, &self.relative_path(name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::repo::disk::TEMPORARY;

    #[test]
    fn state_of_no_repository_is_removed_unless_it_may_be_needed() {
        let home = tempfile::tempdir().unwrap();
        let vault = StateDir::new(home.path().to_owned(), crate::repo::seal::SealKey::random().unwrap());
        let store = RepoStore::new(&vault, "0123456789ab");
        store.remove_leftover().unwrap();
        store.create().unwrap();
        store.save_env(&CallerEnv([("TOKEN".to_owned(), "x".to_owned())].into())).unwrap();
        store.remove_leftover().unwrap();
        assert!(!store.folder().exists());
        store.create().unwrap();
        fs::write(store.journal().1, "{}").unwrap();
        let error = store.remove_leftover().unwrap_err().to_string();
        assert!(error.contains("journal.jsonl") && store.folder().exists(), "{error}");
    }

    #[test]
    fn queue_is_read_while_it_is_written() {
        let home = tempfile::tempdir().unwrap();
        let vault = StateDir::new(home.path().to_owned(), crate::repo::seal::SealKey::random().unwrap());
        let store = RepoStore::new(&vault, "0123456789ab");
        store.create().unwrap();
        store.save_repo_file(&mut RepoFile::placeholder("0123456789ab".to_owned())).unwrap();
        let being_written =
            [store.folder(), store.live_dir()].map(|folder| folder.join(format!(".repo.json.x{TEMPORARY}")));
        assert!(being_written.iter().all(|path| runner_os::temp_file::is_temp_name(path.file_name().unwrap())));
        for path in &being_written {
            fs::write(path, "half").unwrap();
        }
        assert!(store.read_repo_file().unwrap().is_some());
        assert!(being_written.iter().all(|path| path.exists()));
        assert!(store.take_over().unwrap().is_some());
        assert!(!being_written.iter().any(|path| path.exists()), "leftovers of a killed process are removed");
    }
}
