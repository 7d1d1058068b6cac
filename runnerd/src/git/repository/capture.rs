//! Takes the configuration of a moment as the one that counts, and binds a repository to it.
//!
//! What becomes of the value, and of the folder in which it is laid out, is `trusted`'s.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::config::File;
use protocol::path::WirePath;
use runner_core::digest::{from_hex, to_hex};

use super::handle::Sources;
use super::memory::Memory;
use super::trusted::{ATTRIBUTES, Captured, EXCLUDE, SETTINGS, Trusted, read};
use super::users::users_folder;
use crate::git::{GitError, Repository};

/// Sections that lead to other files or to programs that none of the runner's operations needs.
const SECTIONS_LEFT_OUT: [&str; 6] = ["include", "includeif", "alias", "pager", "runnerd", "hook"];

/// Settings that are replaced by the runner's own, that lead elsewhere, or that would run a program at every look.
const KEYS_LEFT_OUT: [(&str, &str); 11] = [
    ("core", "worktree"),
    ("core", "bare"),
    ("core", "hookspath"),
    ("core", "fsmonitor"),
    ("core", "editor"),
    ("core", "pager"),
    ("core", "askpass"),
    ("core", "alternaterefscommand"),
    ("core", "attributesfile"),
    ("core", "excludesfile"),
    ("extensions", "worktreeconfig"),
];

/// The form of references that a repository has where nothing says which.
const USUAL_FORM: &str = "files";

impl Repository {
    /// Takes the configuration of this moment, the user's and the system's included, as the one that counts from now
    /// on, to be laid out in `folder`. Returns the repository bound to it; the value of it is for the caller to keep.
    pub fn capture(&self, folder: &Path) -> Result<Self, GitError> {
        let present = self.bound_to(None);
        let repo = present.open()?;
        let settings = present.settings(&repo)?;
        let config = repo.config_snapshot();
        let rules = [
            (EXCLUDE, read(&present.common_dir.join(EXCLUDE))?),
            (ATTRIBUTES, read(&present.common_dir.join(ATTRIBUTES))?),
            ("excludes", present.users_file(&config, "core.excludesFile", "ignore")?),
            ("attributes", present.users_file(&config, "core.attributesFile", "attributes")?),
            (SETTINGS, settings.to_bstring().into()),
        ];
        let captured = Captured {
            work_dir: WirePath(present.work_dir.clone()),
            git_dir: WirePath(present.git_dir.clone()),
            common_dir: WirePath(present.common_dir.clone()),
            files: rules.iter().map(|(name, bytes)| ((*name).to_owned(), to_hex(bytes))).collect(),
            accepted: present.places_of()?,
        };
        Ok(present.bound_to(Some(Arc::new(Trusted::new(folder, captured)))))
    }

    /// Returns the repository of which the configuration was captured, whatever has become of its git folder.
    pub fn of_captured(folder: &Path, captured: Captured) -> Self {
        let places = [&captured.work_dir, &captured.git_dir, &captured.common_dir].map(|path| path.0.clone());
        Self::at(places, Sources::User, Some(Arc::new(Trusted::new(folder, captured))))
    }

    /// Binds a repository that is bound to no configuration yet to one that was captured.
    #[must_use]
    pub fn or_bound_to(self, folder: &Path, captured: Captured) -> Self {
        if self.trusted.is_some() { self } else { self.bound_to(Some(Arc::new(Trusted::new(folder, captured)))) }
    }

    /// Returns the configuration that it is bound to.
    pub fn captured(&self) -> Option<&Captured> {
        self.trusted.as_ref().map(|trusted| &trusted.captured)
    }

    /// Returns the configuration that it is bound to, as that of its own work tree, with the git folder that is there now
    /// as the one that a person has asked to go on with.
    pub fn accepting(&self) -> Result<Option<Captured>, GitError> {
        let Some(captured) = self.captured() else { return Ok(None) };
        Ok(Some(Captured {
            work_dir: WirePath(self.work_dir.clone()),
            git_dir: WirePath(self.git_dir.clone()),
            common_dir: WirePath(self.common_dir.clone()),
            accepted: self.places_of()?,
            ..captured.clone()
        }))
    }

    /// Returns another repository on this machine, to put objects and references into. Its own configuration is not read:
    /// the one that this repository is bound to counts there too, laid out in `folder`.
    pub fn target(&self, common_dir: &Path, folder: &Path) -> Result<Self, GitError> {
        let place = WirePath(common_dir.to_owned());
        let bound = self.captured().and_then(|captured| captured.files.get(SETTINGS));
        let mut settings = bound.and_then(|hex| from_hex(hex)).unwrap_or_default();
        // Which of the two forms its references have is seen, as it may have changed since.
        let form = if common_dir.join("reftable").is_dir() { "reftable" } else { USUAL_FORM };
        // A git before 2.45 opens nothing that has this extension, whatever it says: the usual form is written down only where
        // the settings have another one, which such a git cannot have made.
        if form != USUAL_FORM || settings.to_ascii_lowercase().contains_str("refstorage") {
            let lines = format!("\n[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = {form}\n");
            settings.extend(lines.into_bytes());
        }
        let captured = Captured {
            work_dir: place.clone(),
            git_dir: place.clone(),
            common_dir: place,
            files: [(SETTINGS.to_owned(), to_hex(&settings))].into(),
            accepted: [0; 2],
        };
        let places = [common_dir; 3].map(Path::to_owned);
        let target = Self::at(places, self.sources, Some(Arc::new(Trusted::new(folder, captured))));
        target.refuse_moved().map(|()| target)
    }

    /// Returns the numbers of the git folder that a person has asked to go on with.
    pub(in crate::git) fn accepted(&self) -> Option<[u64; 2]> {
        self.captured().map(|captured| captured.accepted)
    }

    /// Has the folder of the captured configuration be as that was, for whoever reads it next.
    pub(in crate::git) fn lay_trusted(&self) -> Result<(), GitError> {
        self.trusted.as_ref().map_or(Ok(()), |trusted| trusted.lay())
    }

    fn bound_to(&self, trusted: Option<Arc<Trusted>>) -> Self {
        Self { trusted, view: Arc::default(), memory: Memory::default(), ..self.clone() }
    }

    /// Returns the file of a name that counts: the captured one, if there is one.
    pub(in crate::git) fn rules(&self, name: &str) -> PathBuf {
        self.trusted_folder().unwrap_or(&self.common_dir).join(name)
    }

    /// Returns the folder of the captured configuration.
    pub(in crate::git) fn trusted_folder(&self) -> Option<&Path> {
        self.trusted.as_ref().map(|trusted| trusted.folder.as_path())
    }

    /// Returns every setting in force, in one file without references to others.
    fn settings(&self, repo: &gix::Repository) -> Result<File, GitError> {
        let copy = || -> gix::Result<File> {
            let mut flat = File::default();
            for section in repo.config_snapshot().plumbing().sections() {
                copy_section(&mut flat, &section)?;
            }
            let is_logged = flat.string("core.logAllRefUpdates").is_some();
            let mut core = flat.new_section("core", None::<BString>)?;
            core.push("bare", "false")?;
            if !is_logged {
                core.push("logAllRefUpdates", "true")?;
            }
            if flat.string("lfs.storage").is_none() {
                let storage = self.common_dir.join("lfs");
                flat.new_section("lfs", None::<BString>)?.push("storage", storage.as_os_str().as_bytes().as_bstr())?;
            }
            Ok(flat)
        };
        copy().map_err(GitError::library("reading the configuration of", &self.work_dir))
    }

    /// Returns the content of a file of rules that a setting names, else of the user's own by its usual name.
    fn users_file(&self, config: &gix::config::Snapshot<'_>, key: &str, usual: &str) -> Result<Vec<u8>, GitError> {
        let named = config.trusted_path(key).ok().flatten().map(|path| self.work_dir.join(path));
        let is_users = self.sources == Sources::User;
        match named.or_else(|| users_folder().filter(|_| is_users).map(|folder| folder.join(usual))) {
            Some(file) => read(&file),
            None => Ok(Vec::new()),
        }
    }
}

fn copy_section(flat: &mut File, section: &gix::config::file::SectionRef<'_>) -> gix::Result<()> {
    let header = section.header();
    let name = header.name().to_str_lossy().to_lowercase();
    if SECTIONS_LEFT_OUT.contains(&name.as_str()) {
        return Ok(());
    }
    let mut copy = flat.new_section(&name, header.subsection_name().map(ToOwned::to_owned))?;
    for key in section.value_names() {
        let is_left_out = KEYS_LEFT_OUT.contains(&(name.as_str(), key.to_lowercase().as_str()));
        if is_left_out && header.subsection_name().is_none() {
            continue;
        }
        let values = section.values(&key);
        if values.is_empty() {
            copy.push(&key, None::<&BStr>)?;
        }
        for value in values {
            copy.push(&key, Some(value.as_bstr()))?;
        }
    }
    Ok(())
}
