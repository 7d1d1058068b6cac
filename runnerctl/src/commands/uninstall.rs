//! `uninstall`: lists what is installed where, and the commands that remove it. Removes nothing.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use protocol::client::ConnectError;
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::paths::{Paths, client_settings_path};
use protocol::shell::{quote, quote_path};
use serde::Serialize;

use crate::failure::Failure;
use crate::installation::Installation;
use crate::invocation::Invocation;
use crate::program::{self, ProgramCall};
use crate::text::paint::{DIM, HINT, paint};
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl uninstall              files, and commands to remove them";

/// The programs, found next to this one or in `PATH`.
const PROGRAMS: [&str; 4] = ["runnerctl", "runnerd", "runnerd-shim", "runner-ui"];

/// Show the installed files, and the commands that remove them
///
/// Removes nothing. The commands are in the order in which to run them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UninstallArgs {
    /// Accepted for scripts; the command never removes anything
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct InstalledParts {
    parts: Vec<InstalledPart>,
}

/// An installed item.
#[derive(Debug, Serialize)]
struct InstalledPart {
    what: &'static str,
    path: WirePath,
    remove: String,
}

/// Runs the command. It neither queries nor starts a daemon.
pub(crate) async fn run(invocation: &Invocation<'_>, _args: &UninstallArgs) -> Result<ExitStatus, Failure> {
    let paths = Paths::find(invocation.socket.as_deref()).map_err(ConnectError::from)?;
    let parts = InstalledParts { parts: list_parts(&paths).await };
    invocation.ui.print_answer("uninstall", &parts, |_| render(&parts.parts))?;
    invocation.ui.print_note(
        "\nIn each repository: the directory .runner/, the branches runner/*,\nand the references below refs/runner/.\n",
    );
    Ok(ExitStatus::Success)
}

async fn list_parts(paths: &Paths) -> Vec<InstalledPart> {
    let part = |what, path: PathBuf, remove: String| InstalledPart { what, path: WirePath(path), remove };
    let removable = |what, path: &Path| part(what, path.to_owned(), format!("rm -r -- {}", quote_path(path)));
    let folder = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
    let mut all: Vec<InstalledPart> = [paths.service_unit(), paths.socket_unit()]
        .into_iter()
        .map(|unit| part("service", unit, "runnerctl service uninstall".to_owned()))
        .collect();
    all.push(part("socket", paths.socket.clone(), "runnerctl daemon stop".to_owned()));
    all.push(removable("state and logs", &paths.state));
    all.push(removable("settings", &folder(&paths.config)));
    all.extend(client_settings_path().map(|file| removable("settings", &folder(&file))));
    let installer = Installation::find().ok().map(|installation| installation.uninstall_command());
    for path in PROGRAMS.iter().filter_map(|name| find_program(name)) {
        let command = match &installer {
            None => owning_package(&path).await,
            command => command.clone(),
        };
        all.push(match command {
            Some(command) => part("program", path, command),
            None => removable("program", &path),
        });
    }
    all.retain(|part| part.path.as_path().symlink_metadata().is_ok());
    all
}

/// Returns the path of a program next to this one, else from `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let sibling = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    let folders = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&folders).map(|folder| folder.join(name));
    sibling.into_iter().chain(on_path).find(|path| path.is_file())
}

/// Returns the command that removes the system's package with a program; `None` if no package has it.
async fn owning_package(path: &Path) -> Option<String> {
    match owning_deb(path) {
        None => owning_rpm(path).await,
        found => found,
    }
}

async fn owning_rpm(path: &Path) -> Option<String> {
    let argv =
        ["rpm", "-qf", "--queryformat", "%{NAME}"].map(OsString::from).into_iter().chain([path.into()]).collect();
    let call = ProgramCall { argv, folder: Path::new("/"), env: &[], input: Vec::new(), tail: None };
    let answer = program::run_program(call).await.ok().filter(|answer| answer.status.success())?;
    Some(format!("sudo rpm -e {}", quote(answer.stdout.trim())))
}

fn owning_deb(program: &Path) -> Option<String> {
    let lists = std::fs::read_dir("/var/lib/dpkg/info").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut lists = lists.filter(|path| path.extension().is_some_and(|ending| ending == "list"));
    let is_listed = |list: &PathBuf| {
        let text = std::fs::read_to_string(list).unwrap_or_default();
        text.lines().any(|line| Path::new(line) == program)
    };
    let package = lists.find(is_listed)?.file_stem()?.to_str()?.to_owned();
    let package = package.split(':').next().unwrap_or_default();
    Some(format!("sudo apt remove {}", quote(package)))
}

fn render(parts: &[InstalledPart]) -> String {
    parts.iter().fold(String::new(), |mut text, InstalledPart { what, path, remove }| {
        let head = paint(DIM, &format!("{what:<14}"));
        let _ = writeln!(text, "{head}  {}\n    {}", sanitize(&path.to_string()), paint(HINT, &sanitize(remove)));
        text
    })
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn each_part_has_the_command_that_removes_it() {
        let parts = [
            ("service", "/h/.config/systemd/user/runnerd.service", "runnerctl service uninstall".to_owned()),
            ("state and logs", "/h/it's", format!("rm -r -- {}", quote_path(Path::new("/h/it's")))),
        ];
        let parts = parts.map(|(what, path, remove)| InstalledPart { what, path: WirePath(path.into()), remove });
        insta::assert_snapshot!(strip_str(&render(&parts)), @r"
        service         /h/.config/systemd/user/runnerd.service
            runnerctl service uninstall
        state and logs  /h/it's
            rm -r -- '/h/it'\''s'
        ");
    }
}
