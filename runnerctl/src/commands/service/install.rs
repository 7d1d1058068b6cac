//! Installs the service, upgrades it without losing an iteration, and removes it.
//!
//! The order of an upgrade: write the files, reload the service manager, drain the old daemon, start the new one.
//! Clients that connect meanwhile are answered by the old daemon, or start the new one.

use std::path::{Path, PathBuf};

use protocol::api::DaemonApiClient as _;
use protocol::client::ConnectError;
use protocol::error::ExitStatus;
use protocol::paths::Paths;
use protocol::view::DaemonView;

use super::files::{FileState, ServiceFile};
use super::manager::{LAUNCHD_LABEL, ServiceManager, ServiceState};
use super::units::{self, PASSED_VARIABLES, UnitValueError, UnitValues};
use super::view::{FileView, ServiceView};
use crate::commands::daemon;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The service for one socket.
#[derive(Debug)]
pub(super) struct ServiceInstallation {
    manager: ServiceManager,
    program: PathBuf,
    /// The daemon's unit, followed by the socket's unit if there is one.
    files: Vec<ServiceFile>,
}

impl ServiceInstallation {
    /// Determines what would be installed.
    pub(super) fn from_invocation(invocation: &Invocation<'_>) -> Result<Self, Failure> {
        let paths = Paths::find(invocation.socket.as_deref()).map_err(ConnectError::from)?;
        let manager = ServiceManager::for_platform();
        let program = daemon::find_daemon_program();
        let read_variable =
            |name| std::env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (name, value));
        let environment = PASSED_VARIABLES.into_iter().filter_map(read_variable).collect();
        let values = UnitValues { program: &program, socket: &paths.socket, environment };
        let files = service_files(manager, &paths, &values).map_err(|UnitValueError(text)| {
            Failure::usage(format!("`{text}` cannot be used in a unit: it is not a line of text"))
        })?;
        Ok(Self { manager, program, files })
    }

    /// Returns whether the log goes to a journal that can be queried.
    pub(super) fn has_journal(&self) -> bool {
        self.manager == ServiceManager::Systemd && self.files.iter().all(|file| file.path.exists())
    }

    /// Writes missing or outdated files, and starts the service.
    pub(super) async fn install(self, invocation: &Invocation<'_>, no_start: bool) -> Result<ExitStatus, Failure> {
        if !self.program.is_absolute() {
            let message = "runnerd is not beside runnerctl, and a unit needs its absolute path";
            return Err(Failure::new(ExitStatus::Error, "io", message).hint("install runnerd beside runnerctl"));
        }
        let is_reachable = match self.manager.check_reachable().await {
            Ok(()) => true,
            Err(_) if no_start => false,
            Err(failure) => return Err(failure),
        };
        let states = self.check_files()?;
        let written = self.write_files(&states)?;
        if is_reachable {
            self.manager.enable().await?;
        } else {
            let remedy = "where one can be, `runnerctl service install` does the rest";
            invocation.ui.print_note(&format!(
                "No service manager can be reached: the units are written, not enabled; {remedy}.\n"
            ));
        }
        if no_start {
            return self.print_view(invocation, written, ServiceState::default());
        }
        self.drain_old_daemon(invocation, !written.is_empty()).await?;
        let socket_is_new = self.files.get(1).is_some_and(|file| written.contains(&file.path));
        let was_there = states.get(1).is_some_and(|found| *found == FileState::Outdated);
        self.manager.start(&self.files[0].path, socket_is_new && was_there).await?;
        let connection = invocation.connect_running().await?;
        let view = connection.daemon();
        invocation.ui.print_note(&format!("runnerd {} listens on {}\n", view.version, view.socket));
        self.print_view(invocation, written, self.manager.query_state().await)
    }

    /// Checks every file, and refuses if the user has modified one.
    fn check_files(&self) -> Result<Vec<FileState>, Failure> {
        let mut states = Vec::new();
        for file in &self.files {
            let state = file.read_state()?;
            if state == FileState::Changed {
                let path = file.path.display();
                let message = format!("{path} was changed by hand, or was not written by `runnerctl service install`");
                return Err(Failure::new(ExitStatus::Refused, "changed_by_hand", message)
                    .caused_by("changes belong into a drop-in, which stays: `systemctl --user edit UNIT`")
                    .hint(format!("mv {path} {path}.old")));
            }
            states.push(state);
        }
        Ok(states)
    }

    fn write_files(&self, found: &[FileState]) -> Result<Vec<PathBuf>, Failure> {
        let mut written = Vec::new();
        for (file, state) in self.files.iter().zip(found) {
            if *state != FileState::Current {
                file.write()?;
                written.push(file.path.clone());
            }
        }
        Ok(written)
    }

    /// Drains a daemon that is to be replaced: it stops after its current iterations.
    async fn drain_old_daemon(&self, invocation: &Invocation<'_>, is_changed: bool) -> Result<(), Failure> {
        let connection = match invocation.connect_running().await {
            Ok(connection) => connection,
            Err(ConnectError::NoDaemon { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let running = connection.daemon();
        if !is_changed && !self.is_stale(running).await {
            return Ok(());
        }
        let view = connection.client().drain().await?;
        let message = format!("Waiting for the current iterations ({}) before the daemon is replaced", view.running);
        invocation.ui.print_note(&format!("{message}; after Ctrl-C the next command starts the new one\n"));
        daemon::wait_for_exit(&connection, &view).await
    }

    /// Whether the running daemon differs from the one the service would start.
    async fn is_stale(&self, running: &DaemonView) -> bool {
        let is_other_program = running.program.as_ref().is_none_or(|program| *program.as_path() != *self.program);
        running.outdated || is_other_program || self.manager.query_state().await.pid != Some(running.pid)
    }

    /// Stops the service and removes its files.
    pub(super) async fn uninstall(self, invocation: &Invocation<'_>) -> Result<ExitStatus, Failure> {
        let states = self.check_files()?;
        let present: Vec<_> = self.files.iter().zip(states).filter(|(_, found)| *found != FileState::Missing).collect();
        if present.is_empty() {
            invocation.ui.print_note("The service is not installed.\n");
            return self.print_view(invocation, Vec::new(), ServiceState::default());
        }
        let is_reachable = self.manager.check_reachable().await.is_ok();
        if is_reachable {
            self.manager.disable().await?;
        }
        for (file, _) in &present {
            file.remove()?;
        }
        if is_reachable {
            self.manager.reload_after_removal().await?;
        }
        let removed = present.iter().map(|(file, _)| file.path.clone()).collect();
        self.print_view(invocation, removed, ServiceState::default())
    }

    /// Shows the state of the service.
    pub(super) async fn status(self, invocation: &Invocation<'_>) -> Result<ExitStatus, Failure> {
        let state = self.manager.query_state().await;
        let is_running = state.pid.is_some();
        self.print_view(invocation, Vec::new(), state)?;
        Ok(if is_running { ExitStatus::Success } else { ExitStatus::NoDaemon })
    }

    fn print_view(
        &self,
        invocation: &Invocation<'_>,
        changed: Vec<PathBuf>,
        state: ServiceState,
    ) -> Result<ExitStatus, Failure> {
        let files = self.files.iter().map(|file| Ok(FileView { path: file.path.clone(), state: file.read_state()? }));
        let files = files.collect::<Result<Vec<_>, Failure>>()?;
        let view = ServiceView { manager: self.manager, files, changed, state };
        invocation.ui.print_answer("service", &view, |screen| view.render(screen))?;
        Ok(ExitStatus::Success)
    }
}

fn service_files(
    manager: ServiceManager,
    paths: &Paths,
    values: &UnitValues<'_>,
) -> Result<Vec<ServiceFile>, UnitValueError> {
    match manager {
        ServiceManager::Systemd => Ok(vec![
            ServiceFile::new_unit(paths.service_unit(), &units::render_service_unit(values)?),
            ServiceFile::new_unit(paths.socket_unit(), &units::render_socket_unit(values)?),
        ]),
        ServiceManager::Launchd => {
            let home = std::env::var_os("HOME").unwrap_or_default();
            let path = Path::new(&home).join("Library/LaunchAgents").join(format!("{LAUNCHD_LABEL}.plist"));
            Ok(vec![ServiceFile::new_plist(path, &units::render_plist(values)?)])
        }
    }
}
