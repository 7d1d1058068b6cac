//! The folders of a session: a home for what its program reads and writes beside the work tree, and one for temporary
//! files. Both are removed with the session.
//!
//! A login is reached through a link, so that its program refreshes the person's own file; it is never copied.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use runner_os::dir_permissions;
use runner_process::SpawnError;

use super::backend::LaunchPlan;

/// Where programs find their folder for temporary files.
pub(super) const TEMP_VARIABLE: &str = "TMPDIR";
/// That folder where the variable is not set.
const DEFAULT_TEMP_DIR: &str = "/tmp";

/// The paths of both folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDirs {
    /// The home, outside of all that the sandbox of an agent may write to.
    home: PathBuf,
    /// The folder for temporary files, below the caller's.
    temp: PathBuf,
}

impl SessionDirs {
    /// Returns the paths for a session: its home in `homes`, and the other one where the caller has temporary files.
    pub fn new(homes: &Path, caller_env: &BTreeMap<String, String>, id: &str) -> Self {
        let temp = caller_env.get(TEMP_VARIABLE).map(Path::new).filter(|path| path.is_absolute());
        let temp = temp.unwrap_or(Path::new(DEFAULT_TEMP_DIR)).join(format!("runner-{id}"));
        Self { home: homes.join(id), temp }
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn temp(&self) -> &Path {
        &self.temp
    }

    /// Creates both folders empty; what a killed daemon process has left there is removed.
    pub(super) fn create(&self) -> Result<CreatedDirs<'_>, SpawnError> {
        let created = CreatedDirs(self);
        for path in [&self.home, &self.temp] {
            let failed = |source| SpawnError::SessionHome { path: path.clone(), source };
            dir_permissions::remove_all(path).map_err(failed)?;
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        }
        Ok(created)
    }

    /// Removes the folders of a session that is over, if they exist. Links in them are not followed.
    pub fn remove(&self) {
        for path in [&self.home, &self.temp] {
            if let Err(error) = dir_permissions::remove_all(path) {
                tracing::warn!(path = %path.display(), %error, "failed to remove a session's directory");
            }
        }
    }
}

/// The folders, which are removed when this is dropped.
#[derive(Debug)]
pub(super) struct CreatedDirs<'a>(&'a SessionDirs);

impl Drop for CreatedDirs<'_> {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Writes what a session needs before it starts.
pub(super) fn write_files(launch: &LaunchPlan) -> Result<(), SpawnError> {
    let create_parent = |path: &Path| path.parent().map_or(Ok(()), fs::create_dir_all);
    for (path, bytes) in &launch.files {
        let written = create_parent(path).and_then(|()| fs::write(path, bytes));
        written.map_err(|source| SpawnError::Log { path: path.clone(), source })?;
    }
    for (path, target) in &launch.links {
        let linked = create_parent(path).and_then(|()| symlink(target, path));
        linked.map_err(|source| SpawnError::SessionHome { path: path.clone(), source })?;
    }
    Ok(())
}

/// Returns links in `to` to those of these files of `from` that exist.
pub(super) fn link_files(from: &Path, to: &Path, names: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let existing = names.iter().filter(|name| from.join(name).exists());
    existing.map(|name| (to.join(name), from.join(name))).collect()
}

/// Returns links in `to` to everything in `from` but the folder of one program.
pub(super) fn link_others(from: &Path, to: &Path, program: &str) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(from).into_iter().flatten().flatten();
    let others = entries.filter(|entry| entry.file_name() != program);
    others.map(|entry| (to.join(entry.file_name()), entry.path())).collect()
}

/// Returns a folder of the person's that a variable names, else one below their home.
pub(super) fn person_dir(env: &[(OsString, OsString)], name: &str, default: &str) -> Option<PathBuf> {
    let value = |name: &str| env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value);
    let configured = value(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    configured.or_else(|| value("HOME").map(|home| PathBuf::from(home).join(default)))
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use runner_config::ExecutorKind;
    use runner_core::files::answer::AnswerForm;

    use super::super::backend::LaunchRequest;
    use super::super::backends::backend_for;
    use super::*;

    /// What a program's file of a person can be, other than what it should.
    const KINDS: [&str; 6] = ["pipe", "folder", "link to a folder", "link to nothing", "huge file", "invalid file"];

    fn plant(what: &str, path: &Path) {
        match what {
            "pipe" => mkfifo(path, Mode::S_IRWXU).unwrap(),
            "folder" => fs::create_dir(path).unwrap(),
            "link to a folder" => symlink("/", path).unwrap(),
            "link to nothing" => symlink("/absent", path).unwrap(),
            "huge file" => fs::File::create(path).unwrap().set_len(100 << 20).unwrap(),
            _ => fs::write(path, b"{\xff").unwrap(),
        }
    }

    /// Prepares a session of a kind for a person whose file is this.
    fn prepare_session(kind: ExecutorKind, file: &str, what: &str) -> Result<Option<bool>, SpawnError> {
        let folder = tempfile::tempdir().unwrap();
        let person = folder.path().join("person");
        let own = folder.path().join("own");
        fs::create_dir_all(person.join(file).parent().unwrap()).unwrap();
        fs::create_dir(&own).unwrap();
        plant(what, &person.join(file));
        prepare_session_in(kind, &person, &own, folder.path())
    }

    fn prepare_session_in(
        kind: ExecutorKind,
        person: &Path,
        own: &Path,
        folder: &Path,
    ) -> Result<Option<bool>, SpawnError> {
        let env = [("HOME".into(), person.into())];
        let text = format!("executor.kind = {:?}", kind.as_str());
        let executor = runner_config::parse(&text, Path::new("config.toml")).unwrap().executor.work;
        let order = LaunchRequest {
            executor: &executor,
            form: AnswerForm::Answer,
            folder,
            git_folder: folder,
            env: &env,
            record: folder,
            home: Some(own),
            servers: &serde_json::Map::new(),
            output: folder,
        };
        let backend = backend_for(kind);
        write_files(&backend.plan_launch(&order)).map(|()| backend.has_login(&executor, &env))
    }

    #[test]
    fn no_session_writes_into_the_home_of_the_person() {
        let list = |home: &Path| {
            let entries = fs::read_dir(home).unwrap().map(|entry| entry.unwrap());
            let mut entries: Vec<_> =
                entries.map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap())).collect();
            entries.sort();
            (fs::metadata(home).unwrap().modified().unwrap(), entries)
        };
        for kind in [ExecutorKind::Codex, ExecutorKind::Claude, ExecutorKind::Gemini, ExecutorKind::Opencode] {
            let folder = tempfile::tempdir().unwrap();
            let person = folder.path().join("person");
            let own = folder.path().join("own");
            fs::create_dir(&own).unwrap();
            for name in [".codex", ".claude", ".gemini", ".config", ".local"] {
                fs::create_dir_all(person.join(name)).unwrap();
            }
            let before = list(&person);
            prepare_session_in(kind, &person, &own, folder.path()).unwrap();
            assert_eq!(list(&person), before, "{kind}");
        }
    }

    #[test]
    fn no_file_of_the_person_keeps_a_session_from_starting() {
        for (kind, file) in [
            (ExecutorKind::Codex, ".codex/auth.json"),
            (ExecutorKind::Codex, ".codex"),
            (ExecutorKind::Claude, ".claude/.credentials.json"),
            (ExecutorKind::Gemini, ".gemini/settings.json"),
            (ExecutorKind::Gemini, ".gemini/oauth_creds.json"),
            (ExecutorKind::Gemini, ".gemini"),
            (ExecutorKind::Opencode, ".local/share/opencode/auth.json"),
            (ExecutorKind::Opencode, ".config"),
        ] {
            for what in KINDS {
                let prepared = prepare_session(kind, file, what);
                assert!(prepared.is_ok(), "{file} is {what}: {prepared:?}");
            }
        }
    }
}
