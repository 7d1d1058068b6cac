//! `doctor`: checks the machine, the daemon and a repository, and says how to fix problems. Changes nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use protocol::client::{ConnectError, Connection};
use protocol::error::ExitStatus;
use protocol::path::WirePath;
use protocol::paths::Paths;
use protocol::view::DaemonView;
use serde::Serialize;

use crate::args::RepoTarget;
use crate::doctor::remote::{self, RepositoryReport};
use crate::doctor::{DoctorCheck, machine, rules};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::doctor::render;

const EXAMPLES: &str = "Examples:
  runnerctl doctor           machine, daemon and this repository
  runnerctl doctor ~/proj
  runnerctl doctor --json    for a bug report; contains no secrets

Exit codes:
  0  no check failed; there may be warnings
  1  a check failed";

/// Check machine, daemon and repository, and say how to fix them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    place: RepoTarget,
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
    let place = invocation.resolve(args.place.path())?;
    let paths = Paths::find(invocation.socket.as_deref()).map_err(ConnectError::from)?;
    let connection = invocation.connect_running().await;
    let daemon = connection.as_ref().map(Connection::daemon);
    let room = async {
        let disk = remote::disk(connection.as_ref().ok()?.client()).await;
        disk.map_or_else(|trouble| Some(trouble.check("workspaces")), |disk| rules::workspaces(&disk))
    };
    let asked = RepositoryQuery { place: &place, is_named: args.place.path().is_some() };
    let (mut machine, room, repository) =
        tokio::join!(machine_checks(&paths, daemon), room, asked.run_checks(connection.as_ref()));
    machine.extend(room);
    if !repository.has_agents {
        machine.push(rules::agents(&machine::agents().await));
    }
    let repository = repository.checks;
    let ok = !rules::has_failed(&machine) && !rules::has_failed(&repository);
    let report = DoctorReport { ok, path: WirePath(place), machine, repository };
    invocation.ui.answer("doctor", &report, |screen| {
        let groups = [("Machine", report.machine.as_slice()), ("Repository", &report.repository)];
        render(&groups, screen)
    })?;
    Ok(if ok { ExitStatus::Fine } else { ExitStatus::Error })
}

async fn machine_checks(paths: &Paths, daemon: Result<&DaemonView, &ConnectError>) -> Vec<DoctorCheck> {
    let (git, clock) = tokio::join!(machine::git(), machine::clock());
    // A running daemon knows best where it listens and keeps its state.
    let running = daemon.ok();
    let socket = running.map_or(paths.socket.as_path(), |view| view.socket.as_path());
    let state = running.map_or(paths.state.as_path(), |view| view.state_folder.as_path());
    let mut checks = vec![
        rules::git(&git),
        rules::clock(clock, running.map(|view| view.started_at)),
        rules::daemon(daemon, machine::holder(paths)),
        rules::socket(socket, machine::look(socket).as_ref()),
        rules::state(state, machine::look(state).as_ref()),
        rules::disk("disk", state, machine::free(state)),
        rules::service(machine::service(paths).as_ref()),
    ];
    match running {
        Some(view) => checks.extend([rules::containment(view), rules::sleep(view)]),
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
    place: &'a Path,
    is_named: bool,
}

impl RepositoryQuery<'_> {
    async fn run_checks(&self, connection: Result<&Connection, &ConnectError>) -> RepositoryChecks {
        let place = self.place.display();
        if !self.place.exists() {
            return RepositoryChecks::single(DoctorCheck::fail(
                "repository",
                format!("there is no {place}"),
                "runnerctl doctor PATH",
            ));
        }
        if !self.is_in_repository() {
            let (found, fix) = (format!("{place} is not in a git work tree"), "git init, or name a path in one");
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
                format!("{place}: not checked while no daemon is running"),
            ));
        };
        match Box::pin(remote::repository(connection, &WirePath(self.place.to_owned()))).await {
            Ok(repository) => check_repository(&repository).await,
            Err(trouble) => RepositoryChecks::single(trouble.check("repository")),
        }
    }

    /// Whether the path or a parent contains git's folder or a link to it.
    fn is_in_repository(&self) -> bool {
        let real: PathBuf = self.place.canonicalize().unwrap_or_else(|_| self.place.to_owned());
        real.ancestors().map(|folder| folder.join(".git")).any(|git| git.is_file() || git.join("HEAD").exists())
    }
}

async fn check_repository(repository: &RepositoryReport) -> RepositoryChecks {
    let RepositoryReport { facts, held, settings, files, agents, guard } = repository;
    let root = facts.path.as_path();
    // A clone may bring a `just` of its own.
    let recipe = if facts.confirmed == Some(true) { machine::recipe(guard, root).await } else { None };
    let mut checks = vec![
        rules::work_tree(root, machine::look(root).as_ref()),
        rules::engine(facts),
        rules::git_state(facts),
        rules::disk("disk", root, machine::free(root)),
        rules::configuration(settings, facts),
        rules::guard(guard, machine::has_program(guard, root), recipe.as_ref()),
    ];
    checks.extend(facts.guard.as_ref().map(rules::guard_files));
    checks.extend(facts.workspace.as_ref().map(rules::workspace));
    checks.extend(held.as_ref().map(rules::held));
    checks.extend(rules::configured(agents));
    checks.extend(rules::files(files, facts));
    RepositoryChecks { checks: rules::without_repeats(checks), has_agents: agents.is_ok() }
}
