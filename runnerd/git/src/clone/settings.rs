//! Settings and rules for a replica: the captured settings of the source, without those about places, formats, garbage
//! collection, receiving and branches.
//!
//! The user's own settings are included, since a condition may hold only for the source's path. Remotes have absolute
//! addresses, and none leads to the source.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::config::File;
use gix::config::file::Metadata;

use super::RepositoryClone;
use super::objects::is_within;
use crate::repository::exclude_block::strip_blocks;
use crate::repository::open::CONFIG_OVERRIDES;
use crate::repository::pinned_config::{ATTRIBUTES_FILE, CONFIG_FILE, EXCLUDE_FILE, append_runner_attributes};
use crate::{GitError, Repository};

/// Sections that are the replica's own, or have no meaning in it.
const EXCLUDED_SECTIONS: [&str; 6] = ["extensions", "gc", "maintenance", "receive", "branch", "safe"];
/// The same for keys of `core`.
const EXCLUDED_CORE_KEYS: [&str; 10] = [
    "worktree",
    "bare",
    "hookspath",
    "fsmonitor",
    "repositoryformatversion",
    "attributesfile",
    "excludesfile",
    "sparsecheckout",
    "sparsecheckoutcone",
    "alternaterefscommand",
];
/// Keys that mark a remote as holding missing objects.
const PROMISOR_KEYS: [&str; 2] = ["promisor", "partialclonefilter"];
/// The user's global attributes, as they applied to the source.
pub(super) const USER_ATTRIBUTES_FILE: &str = "info/users-attributes";
/// The user's global rules: captured file, location in the replica, and the key that names it.
const USER_RULES: [(&str, &str, &str); 2] =
    [("excludes", "info/users-exclude", "excludesFile"), ("attributes", USER_ATTRIBUTES_FILE, "attributesFile")];

/// Source of a replica's remotes.
#[derive(Debug)]
pub(super) enum RemoteSource {
    /// The captured ones.
    Pinned,
    /// A submodule's own: name and address.
    Submodule(Vec<(BString, BString)>),
}

/// One setting.
#[derive(Debug)]
struct GitSetting {
    section: String,
    subsection: Option<BString>,
    key: String,
    value: Option<BString>,
}

impl RepositoryClone<'_> {
    /// Writes the settings and rules.
    pub fn copy_settings(&self) -> Result<(), GitError> {
        let git_dir = self.target.git_dir();
        let read_pinned = |name: &str| self.source.read_pinned_file(name);
        write_private_file(&git_dir.join(EXCLUDE_FILE), &strip_blocks(&read_pinned(EXCLUDE_FILE)?))?;
        write_private_file(&git_dir.join(ATTRIBUTES_FILE), &append_runner_attributes(read_pinned(ATTRIBUTES_FILE)?))?;
        for (name, file, _) in USER_RULES {
            write_private_file(&git_dir.join(file), &read_pinned(name)?)?;
        }
        let file = git_dir.join(CONFIG_FILE);
        let formats = parse_config(&fs::read(&file).map_err(GitError::io("reading", &file))?, &file)?;
        let mut config = File::new(Metadata::api());
        let own = |setting: &GitSetting| setting.section == "core" || setting.section == "extensions";
        let copied = self.collect_settings()?;
        let users = USER_RULES.map(|(_, file, key)| GitSetting {
            section: "core".to_owned(),
            subsection: None,
            key: key.to_owned(),
            value: Some(self.final_path(&git_dir.join(file)).as_os_str().as_bytes().into()),
        });
        let settings = flatten_config(&formats).into_iter().filter(own).chain(copied).chain(users);
        let written = settings.map(|setting| setting.append_to(&mut config)).collect::<gix::Result<Vec<()>>>();
        written.map_err(GitError::gix("writing the configuration of", self.target.work_dir()))?;
        write_private_file(&file, &config.to_bstring())
    }

    fn collect_settings(&self) -> Result<Vec<GitSetting>, GitError> {
        let text = self.source.read_pinned_file(CONFIG_FILE)?;
        let mut settings = flatten_config(&parse_config(&text, self.source.work_dir())?);
        remove_overrides(&mut settings);
        settings.retain(|setting| setting.is_cloned() && !self.is_shared_store(setting));
        let remotes = match &self.remotes {
            RemoteSource::Pinned => {
                let (remotes, others) = settings.into_iter().partition(|setting| setting.section == "remote");
                settings = others;
                self.filter_remotes(remotes)
            }
            RemoteSource::Submodule(urls) => {
                settings.retain(|setting| !["remote", "submodule", "lfs"].contains(&setting.section.as_str()));
                urls.iter().flat_map(|(name, url)| GitSetting::for_remote(name, url)).collect()
            }
        };
        settings.retain(|setting| !self.rewrites_to_source(setting));
        settings.extend(remotes);
        Ok(settings)
    }

    /// Returns the remotes with absolute addresses, without those that lead to the source.
    fn filter_remotes(&self, remotes: Vec<GitSetting>) -> Vec<GitSetting> {
        let is_address = |setting: &GitSetting| ["url", "pushurl"].contains(&setting.key.to_ascii_lowercase().as_str());
        let points_to_source = |setting: &GitSetting| {
            let path = setting.value.as_ref().and_then(|url| self.source.resolve_local_path(url.as_bstr()));
            is_address(setting) && path.is_some_and(|path| self.source.is_located_at(&path))
        };
        let excluded: Vec<Option<BString>> = remotes
            .iter()
            .filter(|setting| points_to_source(setting))
            .map(|setting| setting.subsection.clone())
            .collect();
        let mut remaining: Vec<GitSetting> = remotes
            .into_iter()
            .filter(|setting| setting.subsection.is_none() || !excluded.contains(&setting.subsection))
            .collect();
        for setting in remaining.iter_mut().filter(|setting| is_address(setting)) {
            if let Some(path) = setting.value.as_ref().and_then(|url| self.source.resolve_local_path(url.as_bstr())) {
                setting.value = Some(path.as_os_str().as_bytes().into());
            }
        }
        remaining
    }

    /// Whether a setting rewrites an address to the source.
    fn rewrites_to_source(&self, setting: &GitSetting) -> bool {
        let base = setting.subsection.as_ref().filter(|_| setting.section == "url");
        base.and_then(|base| self.source.resolve_local_path(base.as_bstr()))
            .is_some_and(|path| self.source.is_located_at(&path))
    }

    /// Whether a setting names a large-file folder inside the source.
    fn is_shared_store(&self, setting: &GitSetting) -> bool {
        let is_storage = setting.section == "lfs" && setting.key.eq_ignore_ascii_case("storage");
        let path = setting.value.as_ref().map(|value| Path::new(OsStr::from_bytes(value)));
        is_storage && path.is_some_and(|path| is_within(path, self.source.common_dir()))
    }
}

impl Repository {
    /// Returns the content of a file of the captured configuration.
    fn read_pinned_file(&self, name: &str) -> Result<Vec<u8>, GitError> {
        let missing = || GitError::PinnedConfigLost {
            path: self.work_dir().to_owned(),
            source: format!("{name} was not captured").into(),
        };
        let captured = self.pinned_config().ok_or_else(missing)?;
        let hex = captured.files.get(name).ok_or_else(missing)?;
        protocol::hex::from_hex(hex).ok_or_else(missing)
    }

    /// Returns the local path that a remote's address names; `None` if it is on another machine.
    fn resolve_local_path(&self, url: &BStr) -> Option<PathBuf> {
        if let Some(path) = url.strip_prefix(b"file://") {
            return Some(PathBuf::from(OsStr::from_bytes(path)));
        }
        // git's rule: a colon before any slash ends a host name.
        let is_of_host = url.find_byte(b':').is_some_and(|colon| url.find_byte(b'/').is_none_or(|slash| colon < slash));
        (!is_of_host && !url.is_empty()).then(|| self.work_dir().join(OsStr::from_bytes(url)))
    }

    /// Whether a path leads to this repository: its git folder or one of its work trees.
    fn is_located_at(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let found = [path.join(".git"), path.clone()].into_iter().find_map(|folder| find_common_dir(&folder));
        path.starts_with(self.common_dir())
            || path.starts_with(self.git_dir())
            || found.as_deref() == Some(self.common_dir())
    }
}

/// Returns the common folder of the repository at a path, following a `.git` file there.
fn find_common_dir(path: &Path) -> Option<PathBuf> {
    let git_dir = if path.is_file() { gix::discover::path::from_gitdir_file(path).ok()? } else { path.to_owned() };
    let git_dir = git_dir.canonicalize().ok()?;
    match fs::read(git_dir.join("commondir")) {
        Ok(text) => git_dir.join(OsStr::from_bytes(text.trim_ascii_end())).canonicalize().ok(),
        Err(_) => git_dir.join("HEAD").exists().then_some(git_dir),
    }
}

impl GitSetting {
    fn is_cloned(&self) -> bool {
        let key = self.key.to_ascii_lowercase();
        let is_excluded = match self.section.as_str() {
            "core" => EXCLUDED_CORE_KEYS.contains(&key.as_str()),
            "index" => key == "sparse",
            "remote" => PROMISOR_KEYS.contains(&key.as_str()),
            section => EXCLUDED_SECTIONS.contains(&section),
        };
        !is_excluded
    }

    fn for_remote(name: &BString, url: &BString) -> [Self; 2] {
        let fetch = [b"+refs/heads/*:refs/remotes/", name.as_slice(), b"/*"].concat();
        [("url", url.clone()), ("fetch", fetch.into())].map(|(key, value)| Self {
            section: "remote".to_owned(),
            subsection: Some(name.clone()),
            key: key.to_owned(),
            value: Some(value),
        })
    }

    fn append_to(self, config: &mut File) -> gix::Result<()> {
        let Self { section, subsection, key, value } = self;
        let name = subsection.as_ref().map(|name| name.as_bstr());
        let mut section = if config.section(&section, name).is_ok() {
            config.section_mut(&section, name)?
        } else {
            config.new_section(&section, subsection)?
        };
        section.push(&key, value.as_ref().map(|value| value.as_bstr())).map(drop)
    }
}

/// Removes the settings for the runner's own operations: each of them comes last.
fn remove_overrides(settings: &mut Vec<GitSetting>) {
    for (name, value) in CONFIG_OVERRIDES.iter().filter_map(|setting| setting.split_once('=')) {
        let is_override = |setting: &GitSetting| {
            let key = name.split_once('.');
            key.is_some_and(|(section, key)| setting.section == section && setting.key.eq_ignore_ascii_case(key))
                && setting.subsection.is_none()
        };
        let last = settings.iter().rposition(is_override);
        if let Some(at) = last.filter(|at| settings[*at].value.as_ref().is_some_and(|found| found == value)) {
            settings.remove(at);
        }
    }
}

fn parse_config(text: &[u8], source: &Path) -> Result<File, GitError> {
    File::from_bytes_no_includes(text, Metadata::api(), gix::config::file::init::Options::default())
        .map_err(GitError::gix("reading the configuration of", source))
}

fn flatten_config(config: &File) -> Vec<GitSetting> {
    let mut settings = Vec::new();
    for section in config.sections() {
        let name = section.header().name().to_str_lossy().to_lowercase();
        let subsection = section.header().subsection_name().map(ToOwned::to_owned);
        let setting = |key: &str, value| GitSetting {
            section: name.clone(),
            subsection: subsection.clone(),
            key: key.to_owned(),
            value,
        };
        for key in section.value_names() {
            let values = section.values(&key);
            if values.is_empty() {
                settings.push(setting(&key, None));
            }
            settings.extend(values.into_iter().map(|value| setting(&key, Some(value))));
        }
    }
    settings
}

/// Writes a file that may contain private data.
fn write_private_file(file: &Path, bytes: &[u8]) -> Result<(), GitError> {
    fs::write(file, bytes).map_err(GitError::io("writing", file))?;
    fs::set_permissions(file, Permissions::from_mode(0o600)).map_err(GitError::io("writing", file))
}
