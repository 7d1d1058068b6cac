//! `doctor`: checks the machine, the daemon and a repository, and says how to fix problems. Changes nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use protocol::client::{ConnectError, Connection};
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::paths::Paths;
use protocol::request::UserDefaults;
use protocol::view::DaemonView;
use serde::Serialize;

use crate::args::RepoTarget;
use crate::commands::daemon::find_daemon_program;
use crate::doctor::remote::{self, RepositoryReport};
use crate::doctor::{DoctorCheck, machine, rules};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::program::has_program;
use crate::settings::Settings;
use crate::text::doctor::render_checks;

const EXAMPLES: &str = "Examples:
  runnerctl doctor           machine, daemon and this repository
  runnerctl doctor ~/proj
  runnerctl doctor --json    for a bug report; contains no secrets

Exit codes:
  0  no check failed; there may be warnings
  1  a check failed";

/// Check the machine, the daemon and the repository, and print fixes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    repo: RepoTarget,
}

#[derive(Debug, Serialize)]
struct DoctorReport {
    ok: bool,
    path: WirePath,
    machine: Vec<DoctorCheck>,
    repository: Vec<DoctorCheck>,
}

/// Runs the command. It does not start a daemon, because that would be a change.
pub(crate) async fn run(invocation: &Invocation<'_>, args: DoctorArgs) -> Result<ExitStatus, Failure> {
    let path = invocation.resolve_local(args.repo.path())?;
    let paths = Paths::find(invocation.socket.as_deref()).map_err(ConnectError::from)?;
    let connection = invocation.connect_running().await;
    let daemon = connection.as_ref().map(Connection::daemon);
    let disk_check = async {
        let disk = remote::query_disk(connection.as_ref().ok()?.client()).await;
        disk.map_or_else(|error| Some(error.to_check("workspaces")), |disk| rules::check_workspaces(&disk))
    };
    let (defaults, settings_check) = match Settings::load() {
        Ok(settings) => (settings.defaults(), None),
        Err(Failure::Report(report)) => {
            (None, Some(DoctorCheck::fail("settings", report.message.clone(), "correct that file")))
        }
        Err(failure @ Failure::BrokenPipe) => return Err(failure),
    };
    let query = RepositoryQuery { path: &path, is_named: args.repo.path().is_some(), defaults };
    let (mut machine, disk_check, repository) =
        tokio::join!(machine_checks(&paths, daemon), disk_check, query.run_checks(connection.as_ref()));
    machine.extend(settings_check.into_iter().chain(disk_check));
    if !repository.has_agents {
        machine.push(rules::check_agents(&machine::agent_versions().await));
    }
    let repository = repository.checks;
    let ok = !rules::has_failed(&machine) && !rules::has_failed(&repository);
    let report = DoctorReport { ok, path: WirePath(path), machine, repository };
    invocation.ui.print_answer("doctor", &report, |screen| {
        let groups = [("Machine", report.machine.as_slice()), ("Repository", &report.repository)];
        render_checks(&groups, screen)
    })?;
    Ok(if ok { ExitStatus::Success } else { ExitStatus::Error })
}

async fn machine_checks(paths: &Paths, daemon: Result<&DaemonView, &ConnectError>) -> Vec<DoctorCheck> {
    let settings = async {
        let is_asked = matches!(daemon, Err(ConnectError::NoDaemon { .. }));
        if is_asked { Some(machine::check_settings(&find_daemon_program(), paths).await) } else { None }
    };
    let (git, clock, settings) = tokio::join!(machine::git_version(), machine::read_clock(), settings);
    // A running daemon knows best where it listens and keeps its state.
    let running = daemon.ok();
    let socket = running.map_or(paths.socket.as_path(), |view| view.socket.as_path());
    let state = running.map_or(paths.state.as_path(), |view| view.state_folder.as_path());
    let mut checks = vec![
        rules::check_git(&git),
        rules::check_clock(clock, running.map(|view| view.started_at)),
        rules::check_daemon(daemon, machine::lock_holder(paths).as_ref(), settings.as_ref()),
        rules::check_socket(socket, machine::inspect_file(socket).as_ref()),
        rules::check_state_dir(state, machine::inspect_file(state).as_ref()),
        rules::check_disk("disk", state, machine::free_bytes(state)),
        rules::check_service(machine::find_service(paths).as_ref()),
    ];
    match running {
        Some(view) => checks.extend([rules::check_containment(view), rules::check_sleep(view)]),
        None => checks.push(DoctorCheck::skipped("containment", "unknown while no daemon is running")),
    }
    checks
}

/// Checks of a repository.
struct RepositoryChecks {
    checks: Vec<DoctorCheck>,
    /// Whether they include the configured agents.
    has_agents: bool,
}

impl RepositoryChecks {
    fn single(check: DoctorCheck) -> Self {
        Self { checks: vec![check], has_agents: false }
    }
}

/// The path to check, and whether the user named it.
struct RepositoryQuery<'a> {
    path: &'a Path,
    is_named: bool,
    /// The user's own defaults.
    defaults: Option<UserDefaults>,
}

impl RepositoryQuery<'_> {
    async fn run_checks(&self, connection: Result<&Connection, &ConnectError>) -> RepositoryChecks {
        let path = self.path.display();
        if !self.path.exists() {
            return RepositoryChecks::single(DoctorCheck::fail(
                "repository",
                format!("there is no {path}"),
                "runnerctl doctor PATH",
            ));
        }
        if !self.is_in_repository() {
            let found = format!("{path} is not in a git working tree");
            let fix = "git init, or name a path in one";
            let check = if self.is_named {
                DoctorCheck::fail("repository", found, fix)
            } else {
                DoctorCheck::skipped("repository", found)
            };
            return RepositoryChecks::single(check);
        }
        let Ok(connection) = connection else {
            return RepositoryChecks::single(DoctorCheck::skipped(
                "repository",
                format!("{path}: not checked while no daemon is running"),
            ));
        };
        match Box::pin(remote::query_repository(connection, &WirePath(self.path.to_owned()), self.defaults.clone()))
            .await
        {
            Ok(repository) => check_repository(&repository).await,
            Err(error) => RepositoryChecks::single(error.to_check("repository")),
        }
    }

    /// Whether the path or a parent contains git's folder or a link to it.
    fn is_in_repository(&self) -> bool {
        let real: PathBuf = self.path.canonicalize().unwrap_or_else(|_| self.path.to_owned());
        real.ancestors().map(|folder| folder.join(".git")).any(|git| git.is_file() || git.join("HEAD").exists())
    }
}

async fn check_repository(repository: &RepositoryReport) -> RepositoryChecks {
    let RepositoryReport { facts, hold_reason: held, settings, files, agents, installed, guard } = repository;
    let root = facts.path.as_path();
    // A clone may contain its own `just`.
    let recipe = if facts.confirmed == Some(true) { machine::find_recipe(guard, root).await } else { None };
    let mut checks = vec![
        rules::check_work_tree(root, machine::inspect_file(root).as_ref()),
        rules::check_git_engine(facts),
        rules::check_git_state(facts),
        rules::check_disk("disk", root, machine::free_bytes(root)),
        rules::check_configuration(settings, facts),
        rules::check_guard(guard, has_program(guard, root), recipe.as_ref(), facts),
    ];
    checks.extend(facts.guard.as_ref().map(|guard| rules::check_guard_files(guard, facts)));
    checks.extend(facts.workspace.as_ref().map(|proposal| rules::check_workspace(proposal, facts)));
    checks.extend(held.as_ref().map(rules::check_hold));
    checks.extend(rules::check_configured_agents(agents, installed, facts));
    checks.extend(rules::check_files(files, facts));
    RepositoryChecks { checks: rules::drop_repeats(checks), has_agents: agents.is_ok() }
}
