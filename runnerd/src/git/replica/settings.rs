//! Settings and rules for a replica: what counts for the source, as it was captured, less what is about places, formats,
//! collection, receiving and branches.
//!
//! The user's own settings are among them, since a condition may hold for the source's place alone. Remotes are named by
//! absolute addresses, and none leads to the source.

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
use crate::git::repository::exclude_block::strip_blocks;
use crate::git::repository::open::CONFIG_OVERRIDES;
use crate::git::repository::trusted::{ATTRIBUTES_FILE, EXCLUDE_FILE, CONFIG_FILE, append_runner_attributes};
use crate::git::{GitError, Repository};

/// Sections that are the replica's own, or have no meaning in it.
const EXCLUDED_SECTIONS: [&str; 6] = ["extensions", "gc", "maintenance", "receive", "branch", "safe"];
/// So keys of `core`.
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
/// Keys of a remote that say that objects are left with it.
const PROMISOR_KEYS: [&str; 2] = ["promisor", "partialclonefilter"];
/// Where the attributes are that the user has for all repositories, as they were for the source.
pub(super) const USER_ATTRIBUTES_FILE: &str = "info/users-attributes";
/// The rules that the user has for all repositories: as they were captured, where they are, and what names them.
const USER_RULES: [(&str, &str, &str); 2] =
    [("excludes", "info/users-exclude", "excludesFile"), ("attributes", USER_ATTRIBUTES_FILE, "attributesFile")];

/// Whose remotes a replica has.
#[derive(Debug)]
pub(super) enum RemoteSource {
    /// Those that were captured.
    Pinned,
    /// Those of a submodule: name, and where it is.
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
    /// Takes over settings and rules.
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

    /// Returns remotes by absolute addresses, without those that lead to the source.
    fn filter_remotes(&self, remotes: Vec<GitSetting>) -> Vec<GitSetting> {
        let is_address = |setting: &GitSetting| ["url", "pushurl"].contains(&setting.key.to_ascii_lowercase().as_str());
        let points_to_source = |setting: &GitSetting| {
            let path = setting.value.as_ref().and_then(|url| self.source.resolve_local_path(url.as_bstr()));
            is_address(setting) && path.is_some_and(|path| self.source.is_located_at(&path))
        };
        let excluded: Vec<Option<BString>> =
            remotes.iter().filter(|setting| points_to_source(setting)).map(|setting| setting.subsection.clone()).collect();
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

    /// Tells whether a setting makes an address lead to the source.
    fn rewrites_to_source(&self, setting: &GitSetting) -> bool {
        let base = setting.subsection.as_ref().filter(|_| setting.section == "url");
        base.and_then(|base| self.source.resolve_local_path(base.as_bstr())).is_some_and(|path| self.source.is_located_at(&path))
    }

    /// Tells whether a setting names the folder of large files within the source.
    fn is_shared_store(&self, setting: &GitSetting) -> bool {
        let is_storage = setting.section == "lfs" && setting.key.eq_ignore_ascii_case("storage");
        let path = setting.value.as_ref().map(|value| Path::new(OsStr::from_bytes(value)));
        is_storage && path.is_some_and(|path| is_within(path, self.source.common_dir()))
    }
}

impl Repository {
    /// Returns a file of the captured configuration.
    fn read_pinned_file(&self, name: &str) -> Result<Vec<u8>, GitError> {
        let missing = || GitError::PinnedConfigLost {
            path: self.work_dir().to_owned(),
            source: format!("{name} was not captured").into(),
        };
        let captured = self.pinned_config().ok_or_else(missing)?;
        let hex = captured.files.get(name).ok_or_else(missing)?;
        runner_core::digest::from_hex(hex).ok_or_else(missing)
    }

    /// Returns the path that an address of a remote names; none if it names another machine.
    fn resolve_local_path(&self, url: &BStr) -> Option<PathBuf> {
        if let Some(path) = url.strip_prefix(b"file://") {
            return Some(PathBuf::from(OsStr::from_bytes(path)));
        }
        // As git tells them apart: a colon before any slash ends the name of a host.
        let is_of_host = url.find_byte(b':').is_some_and(|colon| url.find_byte(b'/').is_none_or(|slash| colon < slash));
        (!is_of_host && !url.is_empty()).then(|| self.work_dir().join(OsStr::from_bytes(url)))
    }

    /// Tells whether a path leads to this repository: its git folder, or one of its work trees.
    fn is_located_at(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let found = [path.join(".git"), path.clone()].into_iter().find_map(|folder| find_common_dir(&folder));
        path.starts_with(self.common_dir())
            || path.starts_with(self.git_dir())
            || found.as_deref() == Some(self.common_dir())
    }
}

/// Returns the folder that is shared by the work trees of the git folder at a path, or that a file there names.
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

/// Leaves out what was set for the runner's own operations: each came last.
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

/// Writes a file that may hold what is nobody else's business.
fn write_private_file(file: &Path, bytes: &[u8]) -> Result<(), GitError> {
    fs::write(file, bytes).map_err(GitError::io("writing", file))?;
    fs::set_permissions(file, Permissions::from_mode(0o600)).map_err(GitError::io("writing", file))
}
