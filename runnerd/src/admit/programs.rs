//! Checks that the programs of a configuration exist before a run begins; reports what to install.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::error::{ErrorData, ErrorKind};
use runner_config::{FaultPosition, RepoConfig};
use runner_git::{Id, Repository};

use crate::repo::durable;
use crate::repo::layout::Layout;

/// A program that a run starts.
struct RequiredProgram<'a> {
    name: &'a str,
    /// The setting that names it.
    key: String,
    /// The command that installs it, if known.
    install: Option<&'static str>,
}

/// Looks up the programs of agents, guard and hooks in the caller's `PATH`; the error names the first that is missing.
/// If they are the defaults because the configuration is on a run's branch, its hint says so.
pub fn find(repository: &Repository, config: &RepoConfig, env: &BTreeMap<String, String>) -> Result<(), ErrorData> {
    let executors = runner_agents::list_executors(config);
    let agents = executors.iter().map(|(section, executor)| {
        let program = runner_agents::session_program(executor);
        RequiredProgram { name: program.name, key: format!("{section}.{}", program.key), install: program.install }
    });
    let guard = config.guard.command.first().map_or("", String::as_str);
    let guard = RequiredProgram { name: guard, key: "guard.command".to_owned(), install: None };
    let hooks =
        config.hooks.by_key().into_iter().filter_map(|(key, argv)| {
            Some(RequiredProgram { name: argv.first()?, key: key.to_owned(), install: None })
        });
    let mut programs = agents.chain([guard]).chain(hooks);
    let find = |program: RequiredProgram<'_>| {
        find_program(repository.work_dir(), &program, env).map_err(|error| {
            let message = format!("{}{}", locate_key(repository, config, &program.key), error.message);
            ErrorData { message, ..error }
        })
    };
    programs.try_for_each(find).map_err(|error| match find_branch_with_config(repository) {
        Some(branch) => error.hint(format!(
            "there is no {path} here, and one on {branch}: git checkout {branch} -- {path}",
            path = Layout::CONFIG
        )),
        None => error,
    })
}

/// Returns where the configuration of the work tree sets a key, if it is the one that is checked.
fn locate_key(repository: &Repository, config: &RepoConfig, key: &str) -> FaultPosition {
    let file = Layout::new(repository.work_dir()).config();
    let bytes = durable::read(&file).ok().flatten().unwrap_or_default();
    let text = runner_config::decode_text(&bytes, &file).unwrap_or_default();
    let is_checked = runner_config::parse(text, &file).is_ok_and(|found| found == *config);
    if is_checked { runner_config::locate_key(text, &file, key) } else { FaultPosition::default() }
}

/// Returns the branch of the newest run whose tip has a configuration, if there is none in the work tree.
fn find_branch_with_config(repository: &Repository) -> Option<String> {
    if Layout::new(repository.work_dir()).config().exists() {
        return None;
    }
    let branches = repository.list_branches("runner/").ok()?.into_iter();
    let has_config = |tip: &Id| repository.find_entry(tip, Layout::CONFIG).is_ok_and(|entry| entry.is_some());
    let with_config = branches.filter(|(_, tip)| has_config(tip));
    let time = |tip: &Id| Some(repository.first_parents(tip, 1).ok()?.first()?.time);
    with_config.max_by_key(|(_, tip)| time(tip)).map(|(branch, _)| branch)
}

fn find_program(
    work_tree: &Path,
    program: &RequiredProgram<'_>,
    env: &BTreeMap<String, String>,
) -> Result<(), ErrorData> {
    let RequiredProgram { name, key, .. } = program;
    let path = work_tree.join(name);
    let is_path = name.contains('/');
    let is_found = if is_path {
        is_program(&path)
    } else {
        let folders = env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(name)))
    };
    if is_found {
        return Ok(());
    }
    if is_path && path.exists() {
        let change = format!("change {key} in .runner/state/config.toml");
        let (why, hint) = if path.is_dir() {
            ("it is a directory", change)
        } else {
            ("it is not executable", format!("chmod +x {}, or {change}", path.display()))
        };
        let message = format!("{key}: cannot run {}: {why}", path.display());
        return Err(ErrorData::new(ErrorKind::MissingCommand, message).hint(hint));
    }
    let message = format!("{key}: cannot find the program `{name}`");
    Err(ErrorData::new(ErrorKind::MissingCommand, message).hint(install_hint(program)))
}

fn install_hint(program: &RequiredProgram<'_>) -> String {
    let RequiredProgram { name, key, install } = program;
    match (install, *name) {
        (Some(install), _) => format!("{install}; or change {key} in .runner/state/config.toml"),
        (None, "just") => {
            "install just (https://just.systems), or set guard.command in .runner/state/config.toml".to_owned()
        }
        (None, _) => format!("install {name}, put it on PATH, or change {key} in .runner/state/config.toml"),
    }
}

fn is_program(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok() && path.is_file()
}
