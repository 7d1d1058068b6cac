//! Builds, starts and stops everything, in order.
//!
//! Locks first, then state, then the socket; in reverse order at the end. The first termination signal gives live
//! sessions their grace; a second one ends the process at once, and the next daemon continues from the journal. A
//! service manager, if there is one, is notified of each step.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::paths::Paths;
use runner_config::DaemonConfig;
use runner_git::Ender;
use runner_os::clock;
use runner_os::error_chain::display_chain;
use runner_process::{DescriptorLimit, Inhibitor, Launcher, ProbeOptions, probe_host};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::events::EventStream;
use crate::isolation::{self, OrphanReservation};
use crate::landing;
use crate::logging::Logging;
use crate::methods::{Api, SingleFlight};
use crate::registry::{RegistryError, RepoRegistry};
use crate::rpc::{self, BoundSocket, DaemonLocks, LockError, SocketError};
use crate::service::{ActivatedSocket, ServiceNotifier, ServiceWatchdog};
use crate::startup::{DaemonProgram, Readiness};
use crate::state_dir::{self, StateDirError};
use crate::upstream::Upstream;
use crate::worker::{RunSlots, WorkerDeps};
use crate::workspace::{self, WorkspaceOwner};

/// How often blocked git programs are searched for while work is being ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time limit for examining the registered repositories before clients are answered.
const LOOK_AROUND: Duration = Duration::from_secs(2);

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another daemon is running, or a folder is not private.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The private part of the state folder cannot be used.
    #[error(transparent)]
    Private(#[from] StateDirError),
    /// The registered repositories cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A system call failed.
    #[error("setting up {what}")]
    System {
        /// What was being set up.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl DaemonError {
    /// Returns the exit code of the daemon's process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Lock(error) => error.exit_code(),
            Self::Socket(error) => error.exit_code(),
            Self::Private(_) | Self::Registry(_) | Self::System { .. } => 1,
        }
    }
}

/// The inputs of a daemon.
#[derive(Debug)]
pub struct DaemonParts {
    /// Paths of its files and folders.
    pub paths: Paths,
    /// Settings from the daemon's `config.toml`.
    pub config: DaemonConfig,
    /// The socket, if a service manager has created it.
    pub passed: Option<ActivatedSocket>,
}

/// Runs the daemon until it is asked to exit.
pub async fn run(parts: DaemonParts, logging: &Logging, readiness: Readiness) -> Result<(), DaemonError> {
    let DaemonParts { paths, config, passed } = parts;
    let notifier = readiness.notifier();
    let up = match RunningDaemon::build(paths, &config, logging, passed, None).await {
        Ok(up) => up,
        Err(error) => {
            readiness.report_failure(&error);
            return Err(error);
        }
    };
    up.wait_until_recovered().await;
    readiness.report_ready();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "listening");
    up.serve(notifier).await;
    tracing::info!("ended");
    Ok(())
}

/// Runs the daemon of a job, as long as the driver of its single run needs it.
pub async fn run_job_daemon<T>(
    paths: Paths,
    config: &DaemonConfig,
    logging: &Logging,
    upstream: Arc<Upstream>,
    drive: impl AsyncFnOnce(&RepoRegistry) -> T,
) -> Result<T, DaemonError> {
    let mut running = RunningDaemon::build(paths, config, logging, None, Some(upstream)).await?;
    running.wait_until_recovered().await;
    let done = drive(&running.registry).await;
    running.shutdown.cancel();
    let _ = (&mut running.workers).await;
    running.close().await;
    Ok(done)
}

/// Inputs for every launcher of a daemon.
struct LauncherInputs {
    /// The canonical path of the private part of the state folder, which programs must not see.
    private: PathBuf,
    descriptors: DescriptorLimit,
}

/// Determines how programs can be contained here. The lock on the state folder is held: no other daemon has its name.
async fn build_launcher(paths: &Paths, config: &DaemonConfig, given: LauncherInputs) -> Launcher {
    let LauncherInputs { private, descriptors } = given;
    let launcher =
        Launcher::from_installed().await.with_descriptor_limit(descriptors.initial).with_hidden_folder(private);
    let owner = paths.state.to_string_lossy();
    let options = ProbeOptions { strongest: config.containment, owner: &owner, folder: &paths.state };
    let offer = probe_host(&launcher, options).await;
    for missing in offer.unused_levels() {
        tracing::info!(level = %missing.level, why = missing.why, "containment is not used");
    }
    tracing::info!(level = %offer.level(), "containment");
    launcher.with_capabilities(offer)
}

/// Removes workspaces that this daemon was creating when it was killed. Remaining ones do no harm: the next attempt
/// removes them.
fn sweep_unfinished_workspaces(folder: &Path, owner: &WorkspaceOwner) {
    match workspace::sweep_unfinished(folder, owner) {
        Ok(swept) if swept.is_empty() => {}
        Ok(swept) => tracing::info!(folders = ?swept, "removed unfinished workspaces"),
        Err(error) => tracing::warn!(error = display_chain(&error), "failed to remove unfinished workspaces"),
    }
}

/// A running daemon.
struct RunningDaemon {
    registry: RepoRegistry,
    events: EventStream,
    server: rpc::ServeHandle,
    workers: crate::registry::RegistryTask,
    stop_serving: CancellationToken,
    shutdown: CancellationToken,
    drain: CancellationToken,
    signals: StopSignals,
    _locks: DaemonLocks,
}

impl RunningDaemon {
    async fn build(
        paths: Paths,
        config: &DaemonConfig,
        logging: &Logging,
        passed: Option<ActivatedSocket>,
        upstream: Option<Arc<Upstream>>,
    ) -> Result<Self, DaemonError> {
        let system = |what| move |source| DaemonError::System { what, source };
        let signals = StopSignals::listen().map_err(system("signals"))?;
        let locks = DaemonLocks::acquire(&paths)?;
        let state_dir = state_dir::open_state_dir(&paths.state)?;
        state_dir::open_temp_dir(&paths.state)?;
        landing::recover_landings(&state_dir);
        let workspaces = workspace::workspaces_dir(config, &paths.state);
        sweep_unfinished_workspaces(&workspaces, &WorkspaceOwner::from_key(state_dir.key()));
        let socket_passed = passed.is_some();
        let bound = match passed {
            Some(passed) => BoundSocket::from_manager(passed.listener, &paths, &locks)?,
            None => BoundSocket::new(&paths, &locks)?,
        };
        let descriptors = DescriptorLimit::raise().map_err(|errno| system("descriptors")(errno.into()))?;
        let private = state_dir.folder().canonicalize().map_err(system("the private part of the state directory"))?;
        let launcher = build_launcher(&paths, config, LauncherInputs { private, descriptors }).await;
        let shutdown = CancellationToken::new();
        let drain = CancellationToken::new();
        let events = EventStream::default();
        let inhibitor = Inhibitor::new(config.inhibit_sleep);
        let begins_only = upstream.as_ref().is_some_and(|upstream| upstream.starts_only());
        let means = WorkerDeps {
            launcher: launcher.clone(),
            events: events.clone(),
            redactor: logging.redactor(),
            inhibitor: inhibitor.clone(),
            slots: RunSlots::new(usize::try_from(config.max_repositories).unwrap_or(1)),
            shutdown: shutdown.clone(),
            drain: drain.clone(),
            upstream,
        };
        // Nothing is being started yet: a reservation without a run was left by a killed daemon process.
        isolation::find_orphans(&state_dir, &workspaces).iter().for_each(OrphanReservation::remove);
        let per_source = usize::try_from(config.max_runs_per_repository).unwrap_or(1);
        let (registry, workers) = RepoRegistry::open(&state_dir, means, per_source)?;
        let api = Api {
            registry: registry.clone(),
            events: events.clone(),
            callers: rpc::CallerCheck::new(events.clone()),
            paths: Arc::new(paths),
            workspaces,
            state_dir,
            capabilities: launcher.shared_capabilities(),
            is_start_only: begins_only,
            launcher: launcher.clone(),
            inhibitor,
            started_at: clock::now(),
            log: logging.folder().map(Path::to_owned),
            log_filter: logging.filter(),
            socket_passed,
            program: DaemonProgram::current(),
            shared_reads: SingleFlight::default(),
            shutdown: shutdown.clone(),
            drain: drain.clone(),
        };
        let stop_serving = CancellationToken::new();
        let server = rpc::serve(
            bound,
            rpc::ServerOptions {
                methods: api.into_methods().into(),
                events: events.clone(),
                connections: rpc::connection_limit(descriptors.limit),
            },
            stop_serving.clone(),
        );
        Ok(Self { registry, events, server, workers, stop_serving, shutdown, drain, signals, _locks: locks })
    }

    /// Waits until the workers have examined their repositories, so that the first answers are correct.
    async fn wait_until_recovered(&self) {
        let looked = async {
            for mut worker in self.registry.list().await {
                worker.wait_until_recovered().await;
            }
        };
        if tokio::time::timeout(LOOK_AROUND, looked).await.is_err() {
            tracing::warn!("some repositories respond slowly; showing their last known state");
        }
    }

    async fn serve(mut self, notifier: ServiceNotifier) {
        let heart = ServiceWatchdog::new(notifier, self.registry.clone(), self.shutdown.clone());
        let patience = heart.stop_limit();
        let _heart = AbortOnDropHandle::new(tokio::spawn(heart.run()));
        tokio::select! {
            () = self.signals.wait_next() => self.events.publish_stopping(),
            () = self.shutdown.cancelled() => {}
            () = self.drain.cancelled() => {}
        }
        if self.drain.is_cancelled() {
            tracing::info!("draining");
            notifier.notify_draining();
            tokio::select! {
                _ = &mut self.workers => {}
                () = self.signals.wait_next() => {}
                () = self.shutdown.cancelled() => {}
            }
        }
        tracing::info!("ending");
        notifier.notify_stopping(patience);
        self.stop_workers().await;
        self.close().await;
    }

    /// Ends current work; a signal meanwhile ends it at once.
    async fn stop_workers(&mut self) {
        self.shutdown.cancel();
        if !self.workers.is_finished() {
            let no_answer = async {
                loop {
                    tokio::time::sleep(LOOK_EVERY).await;
                    runner_git::end_waiting(|_| true, Ender::Shutdown);
                }
            };
            tokio::select! {
                _ = &mut self.workers => {}
                () = no_answer => {}
                () = self.signals.wait_next() => tracing::warn!("exiting now; the next start continues from the journal"),
            }
        }
    }

    /// Lets all readers receive the last events, and closes the socket.
    async fn close(self) {
        self.events.wait_until_read().await;
        self.stop_serving.cancel();
        self.server.stopped().await;
    }
}

/// The signals that ask the daemon to exit.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn wait_next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
