//! Checks out a commit in a separate folder, with a git folder that borrows this repository's objects. The repository
//! does not know about the copy, and removing the folder leaves nothing behind.

use std::fs;
use std::path::Path;

use gix::bstr::BString;
use protocol::hex::to_hex;

use crate::path::display_path;
use crate::repository::cache::SubmoduleRepository;
use crate::repository::pinned_config::CONFIG_FILE;
use crate::repository::program::GitCommand;
use crate::repository::user_config::refuse_user_pipes;
use crate::{EntryKind, GitError, Id, Repository};

/// Hexadecimal digits of a SHA-256 id.
const SHA256_DIGITS: usize = 64;
/// Configuration of a SHA-256 repository.
const SHA256_CONFIG: &str = "\n[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n";

impl Repository {
    /// Checks out the files of a commit in `folder`, which must be new or empty, as a repository whose HEAD is that
    /// commit. Filters come from the captured configuration that this repository is bound to, or else from its current
    /// one.
    ///
    /// Submodules that are checked out here are laid out in it, each at the commit that is named, with what this
    /// repository's own folders have of it: nothing is fetched. The others are left empty.
    pub fn create_commit_copy(&self, commit: &Id, folder: &Path) -> Result<Self, GitError> {
        refuse_user_pipes()?;
        gix::init(folder).map_err(GitError::gix("making a repository in", folder))?;
        if commit.to_string().len() == SHA256_DIGITS {
            let config = folder.join(".git/config");
            let mut text = fs::read_to_string(&config).map_err(GitError::io("reading", &config))?;
            text.push_str(SHA256_CONFIG);
            fs::write(&config, text).map_err(GitError::io("writing", &config))?;
        }
        let objects = folder.join(".git/objects/info");
        fs::create_dir_all(&objects).map_err(GitError::io("making", &objects))?;
        let alternates = objects.join("alternates");
        let borrowed = self.common_dir().join("objects");
        let text = [borrowed.as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(&alternates, text).map_err(GitError::io("writing", &alternates))?;
        let head = folder.join(".git/HEAD");
        fs::write(&head, format!("{commit}\n")).map_err(GitError::io("writing", &head))?;
        self.verify_files(commit)?;
        let copy = self.open_copy(folder)?;
        GitCommand::new(&copy, "reset").args(["--quiet", "--hard", &commit.to_string()]).run()?;
        for (path, id) in self.list_submodule_commits(commit)? {
            if let Some(SubmoduleRepository { repository, .. }) = self.find_submodule_commit(&path, &id) {
                repository.create_commit_copy(&id, &copy.absolute_path(&path))?;
            }
        }
        Ok(copy)
    }

    /// Returns the submodules of a commit that its copy has not: they are not checked out here, or lack their commit.
    pub fn list_missing_submodules(&self, commit: &Id) -> Result<Vec<String>, GitError> {
        let named = self.list_submodule_commits(commit)?;
        let missing = named.iter().filter(|(path, id)| self.find_submodule_commit(path, id).is_none());
        Ok(missing.map(|(path, _)| display_path(path)).collect())
    }

    fn list_submodule_commits(&self, commit: &Id) -> Result<Vec<(BString, Id)>, GitError> {
        let entries = self.list_entries(commit, "")?.into_iter();
        let submodules = entries.filter(|entry| entry.kind == EntryKind::Submodule);
        Ok(submodules.map(|entry| (entry.path.into(), entry.id)).collect())
    }

    fn find_submodule_commit(&self, path: &BString, id: &Id) -> Option<SubmoduleRepository> {
        self.open_submodule(path).filter(|submodule| submodule.repository.has_commit(id))
    }

    /// Opens the repository in a folder with this repository's configuration.
    fn open_copy(&self, folder: &Path) -> Result<Self, GitError> {
        let settings = folder.join(".git/captured");
        let source = if self.pinned_config().is_some() { self.clone() } else { self.pin_config(&settings)? };
        let Some(captured) = source.pinned_config() else { return Self::discover(folder) };
        let bound = Self::discover_own_config(folder)?.or_pinned_to(&settings, captured.clone());
        let Some(mut own) = bound.repinned_config()? else { return Ok(bound) };
        own.files.insert(CONFIG_FILE.to_owned(), to_hex(&captured.settings_for(&bound.common_dir)));
        Ok(Self::from_pinned(&settings, own))
    }
}
