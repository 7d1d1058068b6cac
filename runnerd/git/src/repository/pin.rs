//! Captures the current configuration and binds a repository to it.
//!
//! `pinned_config` handles the captured value and the folder that it is written to.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::config::File;
use protocol::hex::{from_hex, to_hex};
use protocol::path::WirePath;

use super::cache::RepositoryCache;
use super::handle::ConfigSources;
use super::pinned_config::{
    ATTRIBUTES_FILE, CONFIG_FILE, EXCLUDE_FILE, PinnedConfig, PinnedConfigDir, SPARSE_FILE, read_rules_file,
};
use super::user_config::user_config_dir;
use crate::{GitError, Repository};

/// Sections that lead to other files or to programs that none of the runner's operations needs.
const EXCLUDED_SECTIONS: [&str; 6] = ["include", "includeif", "alias", "pager", "runnerd", "hook"];

/// Settings that the runner replaces, that lead elsewhere, or that would run a program on every status.
const EXCLUDED_KEYS: [(&str, &str); 11] = [
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

/// Reference format of a repository that does not declare one.
const DEFAULT_REF_FORMAT: &str = "files";

impl Repository {
    /// Captures the current configuration, including the user's and the system's, as the one in force from now on,
    /// written to `folder`. Returns the repository bound to it; saving the captured value is up to the caller.
    pub fn pin_config(&self, folder: &Path) -> Result<Self, GitError> {
        let current = self.with_pin(None);
        let repo = current.open()?;
        let settings = current.flatten_settings(&repo)?;
        let config = repo.config_snapshot();
        let rules = [
            (EXCLUDE_FILE, read_rules_file(&current.common_dir.join(EXCLUDE_FILE))?),
            (ATTRIBUTES_FILE, read_rules_file(&current.common_dir.join(ATTRIBUTES_FILE))?),
            (SPARSE_FILE, read_rules_file(&current.git_dir.join(SPARSE_FILE))?),
            ("excludes", current.read_users_file(&config, "core.excludesFile", "ignore")?),
            ("attributes", current.read_users_file(&config, "core.attributesFile", "attributes")?),
            (CONFIG_FILE, settings.to_bstring().into()),
        ];
        let captured = PinnedConfig {
            work_dir: WirePath(current.work_dir.clone()),
            git_dir: WirePath(current.git_dir.clone()),
            common_dir: WirePath(current.common_dir.clone()),
            files: rules.iter().map(|(name, bytes)| ((*name).to_owned(), to_hex(bytes))).collect(),
            accepted: current.git_dir_inodes()?,
        };
        Ok(current.with_pin(Some(Arc::new(PinnedConfigDir::new(folder, captured)))))
    }

    /// Returns the repository a configuration was captured from, whatever has become of its git folder.
    pub fn from_pinned(folder: &Path, captured: PinnedConfig) -> Self {
        let places = [&captured.work_dir, &captured.git_dir, &captured.common_dir].map(|path| path.0.clone());
        Self::from_dirs(places, ConfigSources::User, Some(Arc::new(PinnedConfigDir::new(folder, captured))))
    }

    /// Binds an unbound repository to a captured configuration.
    #[must_use]
    pub fn or_pinned_to(self, folder: &Path, captured: PinnedConfig) -> Self {
        if self.pinned.is_some() { self } else { self.with_pin(Some(Arc::new(PinnedConfigDir::new(folder, captured)))) }
    }

    /// Returns the configuration it is bound to.
    pub fn pinned_config(&self) -> Option<&PinnedConfig> {
        self.pinned.as_ref().map(|trusted| &trusted.config)
    }

    /// Returns the configuration it is bound to, as that of its own work tree, with the current git folder as the one a
    /// person has accepted.
    pub fn repinned_config(&self) -> Result<Option<PinnedConfig>, GitError> {
        let Some(captured) = self.pinned_config() else { return Ok(None) };
        Ok(Some(PinnedConfig {
            work_dir: WirePath(self.work_dir.clone()),
            git_dir: WirePath(self.git_dir.clone()),
            common_dir: WirePath(self.common_dir.clone()),
            accepted: self.git_dir_inodes()?,
            ..captured.clone()
        }))
    }

    /// Returns another repository on this machine as a target for objects and references. Its own configuration is not
    /// read: this repository's captured one applies there too, written to `folder`.
    pub fn pinned_target(&self, common_dir: &Path, folder: &Path) -> Result<Self, GitError> {
        let place = WirePath(common_dir.to_owned());
        let settings = self.pinned_config().map(|captured| captured.settings_for(common_dir)).unwrap_or_default();
        let captured = PinnedConfig {
            work_dir: place.clone(),
            git_dir: place.clone(),
            common_dir: place,
            files: [(CONFIG_FILE.to_owned(), to_hex(&settings))].into(),
            accepted: [0; 2],
        };
        let places = [common_dir; 3].map(Path::to_owned);
        let target = Self::from_dirs(places, self.sources, Some(Arc::new(PinnedConfigDir::new(folder, captured))));
        target.check_not_moved().map(|()| target)
    }

    /// Returns the numbers of the git folder that a person has accepted.
    pub(crate) fn accepted_git_dir(&self) -> Option<[u64; 2]> {
        self.pinned_config().map(|captured| captured.accepted)
    }

    /// Restores the folder of the captured configuration for its next reader.
    pub(crate) fn write_pinned_files(&self) -> Result<(), GitError> {
        self.pinned.as_ref().map_or(Ok(()), |trusted| trusted.write_files())
    }

    pub(crate) fn with_pin(&self, trusted: Option<Arc<PinnedConfigDir>>) -> Self {
        Self { pinned: trusted, view: Arc::default(), cache: RepositoryCache::default(), ..self.clone() }
    }

    /// Returns the file of rules in force: the captured one, if there is one.
    pub(crate) fn rules_file(&self, name: &str) -> PathBuf {
        self.pinned_dir().unwrap_or(&self.common_dir).join(name)
    }

    /// Returns the folder of the captured configuration, if bound to one.
    pub(crate) fn pinned_dir(&self) -> Option<&Path> {
        self.pinned.as_ref().map(|trusted| trusted.folder.as_path())
    }

    /// Returns every setting in force, in one file without includes.
    fn flatten_settings(&self, repo: &gix::Repository) -> Result<File, GitError> {
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
        copy().map_err(GitError::gix("reading the configuration of", &self.work_dir))
    }

    /// Returns the content of a file of rules named by a setting, or else the user's own in its usual place.
    pub(crate) fn read_users_file(
        &self,
        config: &gix::config::Snapshot<'_>,
        key: &str,
        default_name: &str,
    ) -> Result<Vec<u8>, GitError> {
        let named = config.trusted_path(key).ok().flatten().map(|path| self.work_dir.join(path));
        let is_users = self.sources == ConfigSources::User;
        match named.or_else(|| user_config_dir().filter(|_| is_users).map(|folder| folder.join(default_name))) {
            Some(file) => read_rules_file(&file),
            None => Ok(Vec::new()),
        }
    }
}

impl PinnedConfig {
    /// Returns the settings for another repository, with the reference format that this one has.
    pub(crate) fn settings_for(&self, common_dir: &Path) -> Vec<u8> {
        let mut settings = self.files.get(CONFIG_FILE).and_then(|hex| from_hex(hex)).unwrap_or_default();
        let ref_format = if common_dir.join("reftable").is_dir() { "reftable" } else { DEFAULT_REF_FORMAT };
        // git before 2.45 opens no repository that has this extension, whatever its value: the usual format is written
        // only if the settings have another one, which such a git cannot have made.
        if ref_format != DEFAULT_REF_FORMAT || settings.to_ascii_lowercase().contains_str("refstorage") {
            let lines = format!("\n[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = {ref_format}\n");
            settings.extend(lines.into_bytes());
        }
        settings
    }
}

fn copy_section(flat: &mut File, section: &gix::config::file::SectionRef<'_>) -> gix::Result<()> {
    let header = section.header();
    let name = header.name().to_str_lossy().to_lowercase();
    if EXCLUDED_SECTIONS.contains(&name.as_str()) {
        return Ok(());
    }
    let mut copy = flat.new_section(&name, header.subsection_name().map(ToOwned::to_owned))?;
    for key in section.value_names() {
        let is_excluded = EXCLUDED_KEYS.contains(&(name.as_str(), key.to_lowercase().as_str()));
        if is_excluded && header.subsection_name().is_none() {
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
