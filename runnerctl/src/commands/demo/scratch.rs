//! The scratch repository of the demo: a small program with its checks, under git and `.runner/`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::agent::write_files;
use super::script::SCRATCH;
use crate::failure::Failure;
use crate::text::sanitize::sanitize_lines;

/// Isolates the scratch repository from the caller's git settings except the identity: no signing, hooks, templates.
const GIT_OPTIONS: [&str; 6] =
    ["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "-c", "init.defaultBranch=main"];
/// The identity to use if the caller has none.
const FALLBACK_IDENTITY: [&str; 4] = ["-c", "user.name=runner demo", "-c", "user.email=demo@localhost"];

/// The scratch repository.
#[derive(Debug)]
pub(super) struct ScratchRepo {
    folder: PathBuf,
    /// Options that tell git the committer's identity.
    identity: &'static [&'static str],
}

impl ScratchRepo {
    /// Creates the repository in a new or empty folder; by default in a new temporary folder, which is kept.
    pub(super) fn create(folder: Option<PathBuf>) -> Result<Self, Failure> {
        let folder = match folder {
            Some(folder) => create_empty_dir(folder)?,
            None => create_temp_dir().map_err(|error| Failure::temp_file(&error))?,
        };
        let identity = if has_identity(&folder) { &[][..] } else { &FALLBACK_IDENTITY };
        let scratch = Self { folder, identity };
        write_files(&scratch.folder, SCRATCH)?;
        scratch.run_git(&["init", "--quiet", "--template="])?;
        scratch.commit_all("feat: say what roman is to become")?;
        Ok(scratch)
    }

    /// Returns the path of the folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the agent and the guard into `.runner/`, and commits.
    pub(super) fn write_config(&self, agent: &Path, guard: &[&str]) -> Result<(), Failure> {
        let path = self.folder.join(".runner/state/config.toml");
        let agent = agent
            .to_str()
            .ok_or_else(|| Failure::usage(format!("the path of this program is not UTF-8: {}", agent.display())))?;
        // A list of JSON strings is also a valid TOML list.
        let [agent, guard] = [&[agent, "__demo-agent"], guard].map(|argv| serde_json::json!(argv));
        let text = format!("[executor]\nkind = \"command\"\ncommand = {agent}\n\n[guard]\ncommand = {guard}\n");
        fs::write(&path, text).map_err(|error| Failure::io(format!("writing {}", path.display()), &error))?;
        self.commit_all("chore: set up the runner")
    }

    /// Runs git in the repository and returns its output.
    pub(super) fn run_git(&self, args: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new("git");
        command.args(GIT_OPTIONS).args(self.identity).args(args).current_dir(&self.folder);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE"] {
            command.env_remove(variable);
        }
        let doing = || format!("running git {} in {}", args.join(" "), self.folder.display());
        let output = command.output().map_err(|error| Failure::io(doing(), &error).hint("install git"))?;
        if !output.status.success() {
            let error = io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned());
            return Err(Failure::io(doing(), &error));
        }
        Ok(sanitize_lines(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs the finished program and returns its output.
    pub(super) fn run_roman(&self, argument: &str) -> Result<String, Failure> {
        let output = Command::new("sh").args(["bin/roman", argument]).current_dir(&self.folder).output();
        let output = output.map_err(|error| Failure::io("running bin/roman", &error))?;
        Ok(sanitize_lines(String::from_utf8_lossy(&output.stdout).trim()))
    }

    /// Removes the folder.
    pub(super) fn remove(self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.folder)
            .map_err(|error| Failure::io(format!("removing {}", self.folder.display()), &error))
    }

    fn commit_all(&self, message: &str) -> Result<(), Failure> {
        self.run_git(&["add", "--all"])?;
        self.run_git(&["commit", "--quiet", "--message", message]).map(drop)
    }
}

/// Whether git has a configured identity; one guessed from user and host name does not count.
fn has_identity(folder: &Path) -> bool {
    ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"].iter().all(|variable| {
        let mut git = Command::new("git");
        git.args(["-c", "user.useConfigOnly=true", "var", variable]).current_dir(folder);
        git.output().is_ok_and(|output| output.status.success())
    })
}

fn create_temp_dir() -> io::Result<PathBuf> {
    Ok(tempfile::Builder::new().prefix("runner-demo-").tempdir()?.keep())
}

fn create_empty_dir(folder: PathBuf) -> Result<PathBuf, Failure> {
    let created = fs::create_dir_all(&folder).and_then(|()| fs::read_dir(&folder));
    let mut entries = created.map_err(|error| Failure::io(format!("making {}", folder.display()), &error))?;
    match entries.next() {
        None => Ok(folder),
        Some(_) => Err(Failure::usage(format!("{} is not empty", folder.display())).hint("runnerctl demo")),
    }
}

/// Returns whether a program exists in one of the folders of `path`.
pub(super) fn is_installed(program: &str, path: Option<&OsStr>) -> bool {
    let is_executable = |file: PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    path.is_some_and(|path| std::env::split_paths(path).any(|folder| is_executable(folder.join(program))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_repository_is_clean_and_on_main() {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = ScratchRepo::create(Some(folder.path().join("new"))).expect("makes a repository");
        assert_eq!(scratch.run_git(&["status", "--porcelain", "--branch"]).expect("status"), "## main\n");
    }

    #[test]
    fn a_folder_with_files_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("mine"), "").expect("writes");
        assert_eq!(ScratchRepo::create(Some(folder.path().into())).expect_err("refuses").status().code(), 2);
    }

    #[test]
    fn an_agent_whose_path_has_quotes_is_configured() {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = ScratchRepo::create(Some(folder.path().into())).expect("makes a repository");
        fs::create_dir_all(folder.path().join(".runner/state")).expect("makes a folder");
        scratch.write_config(Path::new("/a \"b\"/runnerctl"), &["just", "ci"]).expect("configures");
        let text = fs::read_to_string(folder.path().join(".runner/state/config.toml")).expect("reads");
        insta::assert_snapshot!(text, @r#"
        [executor]
        kind = "command"
        command = ["/a \"b\"/runnerctl","__demo-agent"]

        [guard]
        command = ["just","ci"]
        "#);
    }

    #[test]
    fn a_program_that_cannot_be_run_is_not_installed() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("just"), "").expect("writes");
        assert!(!is_installed("just", Some(folder.path().as_os_str())));
        assert!(is_installed("sh", std::env::var_os("PATH").as_deref()));
        assert!(!is_installed("sh", None));
    }
}
