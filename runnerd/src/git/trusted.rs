//! What git may run and obey in the runner's operations (SPEC 5.3): configuration, attributes and ignore rules as they
//! were when a person asked for the run, kept in a folder where no agent has business.
//!
//! The folder stands in for the repository's common git folder. The library opens it and the git program is pointed to
//! it, so neither reads a configuration that a session could have written; objects, references and the index stay the
//! repository's own. It says nothing about what a session did to the repository: that is `tampering`'s.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::config::File;

use super::durable::replace_file;
use super::open::Sources;
use super::users::users_folder;
use super::{GitError, Repository};

/// The places of a captured repository, separated by zero bytes.
const PLACES: &str = "places";
/// Nobody's branch: what HEAD is, the repository itself says.
const NO_HEAD: &[u8] = b"ref: refs/heads/none\n";
/// Parts of the common folder that hold history and no settings.
const SHARED: [&str; 4] = ["objects", "worktrees", "shallow", "reftable"];

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

impl Repository {
    /// Takes the configuration of this moment, the user's and the system's included, as the one that counts from now
    /// on, and keeps it in `folder`. Returns the repository bound to it.
    pub fn capture(&self, folder: &Path) -> Result<Self, GitError> {
        let present = self.bound_to(None);
        let repo = present.open()?;
        make_frame(folder, &present)?;
        let settings = present.settings(&repo, folder)?;
        let config = repo.config_snapshot();
        let rules = [
            ("info/exclude", read(&present.common_dir.join("info/exclude"))?),
            ("info/attributes", read(&present.common_dir.join("info/attributes"))?),
            ("excludes", present.users_file(&config, "core.excludesFile", "ignore")?),
            ("attributes", present.users_file(&config, "core.attributesFile", "attributes")?),
            ("config", settings.to_bstring().into()),
            (PLACES, present.places()),
        ];
        for (name, bytes) in rules {
            put(&folder.join(name), &bytes)?;
        }
        let captured = present.bound_to(Some(folder.to_owned()));
        captured.accept()?;
        Ok(captured)
    }

    /// Returns the repository that was captured in `folder`, whatever has become of its git folder; none if none was.
    pub fn captured(folder: &Path) -> Result<Option<Self>, GitError> {
        let places = read(&folder.join(PLACES))?;
        let mut paths =
            places.split(|byte| *byte == 0).map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
        let (Some(work_dir), Some(git_dir), Some(common_dir)) = (paths.next(), paths.next(), paths.next()) else {
            return Ok(None);
        };
        let trusted = Some(folder.to_owned());
        Ok(Some(Self::at([work_dir, git_dir, common_dir], Sources::User, trusted)))
    }

    /// Binds a repository that is bound to no configuration yet to the one in `folder`, if one was captured there.
    #[must_use]
    pub fn or_bound_to(self, folder: &Path) -> Self {
        if self.trusted.is_some() || !folder.join(PLACES).is_file() {
            return self;
        }
        self.bound_to(Some(folder.to_owned()))
    }

    fn bound_to(&self, trusted: Option<PathBuf>) -> Self {
        Self { trusted, view: Arc::default(), ..self.clone() }
    }

    /// Returns the file of a name that counts: the captured one, if there is one.
    pub(super) fn rules(&self, name: &str) -> PathBuf {
        self.trusted.as_deref().unwrap_or(&self.common_dir).join(name)
    }

    fn places(&self) -> Vec<u8> {
        [&self.work_dir, &self.git_dir, &self.common_dir].map(|path| path.as_os_str().as_bytes()).join(&0)
    }

    /// Returns every setting in force, in one file without references to others.
    fn settings(&self, repo: &gix::Repository, folder: &Path) -> Result<File, GitError> {
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
            core.push("excludesFile", folder.join("excludes").as_os_str().as_bytes().as_bstr())?;
            core.push("attributesFile", folder.join("attributes").as_os_str().as_bytes().as_bstr())?;
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

/// Makes what git and the library ask of a git folder, with history left where it is.
fn make_frame(folder: &Path, repository: &Repository) -> Result<(), GitError> {
    for part in ["info", "refs"] {
        let part = folder.join(part);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&part);
        made.map_err(GitError::io("making", &part))?;
    }
    for name in SHARED {
        let (link, target) = (folder.join(name), repository.common_dir().join(name));
        if name == "reftable" && !target.exists() || fs::read_link(&link).is_ok_and(|found| found == target) {
            continue;
        }
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(&target, &link),
        }
        .map_err(GitError::io("linking", &link))?;
    }
    put(&folder.join("HEAD"), NO_HEAD)
}

fn put(file: &Path, bytes: &[u8]) -> Result<(), GitError> {
    if fs::read(file).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    replace_file(file, bytes, 0o600).map_err(GitError::io("writing", file))
}

/// Reads a file of rules; nothing where there is no file.
fn read(file: &Path) -> Result<Vec<u8>, GitError> {
    match fs::metadata(file) {
        Ok(found) if found.is_file() => fs::read(file).map_err(GitError::io("reading", file)),
        _ => Ok(Vec::new()),
    }
}
