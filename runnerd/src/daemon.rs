//! Builds, starts and stops everything, in order.
//!
//! Locks first, then state, then the socket; the other way round at the end. A signal to end lets live
//! sessions end after their grace; a second one ends the process at once, and the journal does the rest. A service
//! manager, where there is one, is told of each step.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use protocol::paths::Paths;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::causes::in_one_line;
use crate::clock;
use crate::config::DaemonConfig;
use crate::events::Events;
use crate::git::{self, Ender};
use crate::isolation::{self, Orphan};
use crate::landing;
use crate::logging::Logging;
use crate::methods::{Api, Flights};
use crate::private::{self, PrivateError};
use crate::process::{Descriptors, Inhibitor, Launcher, Wanted, probe};
use crate::registry::{Registry, RegistryError};
use crate::rpc::{self, Bound, LockError, Locks, SocketError};
use crate::service::{Heart, Notifier, Passed};
use crate::startup::{Program, Readiness};
use crate::upstream::Upstream;
use crate::verify;
use crate::worker::{Means, Slots};
use crate::workspace::{self, Owner};

/// How often programs of git's that give no answer are looked for while the work is ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time to look at the registered repositories before clients are answered.
const LOOK_AROUND: Duration = Duration::from_secs(2);

/// Why the daemon does not come up.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Another daemon, or a folder that is not private.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The private part of the state folder.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The registered repositories.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The system.
    #[error("setting up {what}")]
    System {
        /// What was set up.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl DaemonError {
    /// Returns the exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Lock(error) => error.exit_code(),
            Self::Socket(error) => error.exit_code(),
            Self::Private(_) | Self::Registry(_) | Self::System { .. } => 1,
        }
    }
}

/// What a daemon is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where things are.
    pub paths: Paths,
    /// The settings.
    pub config: DaemonConfig,
    /// The socket, where a service manager has made it.
    pub passed: Option<Passed>,
}

/// Runs the daemon until it is told to end.
pub async fn run(parts: Parts, logging: &Logging, readiness: Readiness) -> Result<(), DaemonError> {
    let Parts { paths, config, passed } = parts;
    let notifier = readiness.notifier();
    let up = match Up::build(paths, &config, logging, (passed, None)).await {
        Ok(up) => up,
        Err(error) => {
            readiness.failed(&error);
            return Err(error);
        }
    };
    up.look_around().await;
    readiness.ready();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "listening");
    up.serve(notifier).await;
    tracing::info!("ended");
    Ok(())
}

/// Runs the daemon of one job: for as long as whoever drives its one run needs it.
pub async fn run_for<T>(
    (paths, config, logging): (Paths, &DaemonConfig, &Logging),
    upstream: Arc<Upstream>,
    drive: impl AsyncFnOnce(&Registry) -> T,
) -> Result<T, DaemonError> {
    let mut up = Up::build(paths, config, logging, (None, Some(upstream))).await?;
    up.look_around().await;
    let done = drive(&up.registry).await;
    up.shutdown.cancel();
    let _ = (&mut up.workers).await;
    up.close().await;
    Ok(done)
}

/// What every launcher of a daemon is given.
struct Given {
    /// The private part of the state folder, by its canonical path: programs are not to see it.
    private: PathBuf,
    descriptors: Descriptors,
}

/// Finds how programs can be held here. The lock on the state folder is held: no other daemon has its name.
async fn launcher(paths: &Paths, config: &DaemonConfig, given: Given) -> Launcher {
    let Given { private, descriptors } = given;
    let launcher = Launcher::installed().await.with_descriptors(descriptors.given).hiding(private);
    let owner = paths.state.to_string_lossy();
    let wanted = Wanted { strongest: config.containment, owner: &owner, folder: &paths.state };
    let offer = probe(&launcher, wanted).await;
    for missing in offer.missing() {
        tracing::info!(level = %missing.level, why = missing.why, "containment not used");
    }
    tracing::info!(level = %offer.level(), "containment");
    launcher.within(offer)
}

/// Removes what this daemon had begun of workspaces when it was killed. What stays is in nobody's way: the next try removes
/// it.
fn sweep_workspaces(folder: &Path, owner: &Owner) {
    match workspace::sweep(folder, owner) {
        Ok(swept) if swept.is_empty() => {}
        Ok(swept) => tracing::info!(folders = ?swept, "removed: workspaces that were not finished"),
        Err(error) => tracing::warn!(error = in_one_line(&error), "workspaces that were not finished stay"),
    }
}

/// A daemon that is up.
struct Up {
    registry: Registry,
    events: Events,
    server: rpc::ServeHandle,
    workers: crate::registry::Task,
    stop_serving: CancellationToken,
    shutdown: CancellationToken,
    drain: CancellationToken,
    signals: Signals,
    _locks: Locks,
}

impl Up {
    async fn build(
        paths: Paths,
        config: &DaemonConfig,
        logging: &Logging,
        (passed, upstream): (Option<Passed>, Option<Arc<Upstream>>),
    ) -> Result<Self, DaemonError> {
        let system = |what| move |source| DaemonError::System { what, source };
        let signals = Signals::listen().map_err(system("signals"))?;
        let locks = Locks::take(&paths)?;
        let vault = private::open(&paths.state)?;
        verify::clear(&paths.state);
        landing::clear(&paths.state);
        landing::recover_all(&vault);
        let workspaces = workspace::folder(config, &paths.state);
        sweep_workspaces(&workspaces, &Owner::of(vault.key()));
        let socket_passed = passed.is_some();
        let bound = match passed {
            Some(passed) => Bound::passed(passed.listener, &paths, &locks)?,
            None => Bound::new(&paths, &locks)?,
        };
        let descriptors = Descriptors::raise().map_err(|errno| system("descriptors")(errno.into()))?;
        let private = vault.folder().canonicalize().map_err(system("the private part of the state folder"))?;
        let launcher = launcher(&paths, config, Given { private, descriptors }).await;
        let (shutdown, drain) = (CancellationToken::new(), CancellationToken::new());
        let events = Events::default();
        let inhibitor = Inhibitor::new(config.inhibit_sleep);
        let begins_only = upstream.as_ref().is_some_and(|upstream| upstream.starts_only());
        let means = Means {
            launcher: launcher.clone(),
            events: events.clone(),
            hidden: logging.hidden(),
            inhibitor: inhibitor.clone(),
            slots: Slots::new(usize::try_from(config.max_repositories).unwrap_or(1)),
            shutdown: shutdown.clone(),
            drain: drain.clone(),
            upstream,
        };
        // Nobody is starting anything yet: what is there without a run is of a life that was killed.
        isolation::stillborn(&vault, &workspaces).iter().for_each(Orphan::remove);
        let per_source = usize::try_from(config.max_runs_per_repository).unwrap_or(1);
        let (registry, workers) = Registry::open(&vault, means, per_source)?;
        let api = Api {
            registry: registry.clone(),
            events: events.clone(),
            callers: rpc::Callers::new(events.clone()),
            paths: Arc::new(paths),
            workspaces,
            vault,
            offer: launcher.shared_offer(),
            begins_only,
            launcher: launcher.clone(),
            inhibitor,
            started_at: clock::now(),
            log: logging.folder().map(Path::to_owned),
            log_filter: logging.filter(),
            socket_passed,
            program: Program::of_this_process(),
            reads: Flights::default(),
            shutdown: shutdown.clone(),
            drain: drain.clone(),
        };
        let stop_serving = CancellationToken::new();
        let server = rpc::serve(
            bound,
            rpc::Served {
                methods: api.into_methods().into(),
                events: events.clone(),
                connections: rpc::connections_within(descriptors.limit),
            },
            stop_serving.clone(),
        );
        Ok(Self { registry, events, server, workers, stop_serving, shutdown, drain, signals, _locks: locks })
    }

    /// Waits until the workers have looked at their repositories, so that the first answers are true.
    async fn look_around(&self) {
        let looked = async {
            for mut worker in self.registry.list().await {
                worker.looked().await;
            }
        };
        if tokio::time::timeout(LOOK_AROUND, looked).await.is_err() {
            tracing::warn!("some repositories are slow to read; they are shown as they were");
        }
    }

    async fn serve(mut self, notifier: Notifier) {
        let heart = Heart::new(notifier, self.registry.clone(), self.shutdown.clone());
        let patience = heart.patience();
        let _heart = AbortOnDropHandle::new(tokio::spawn(heart.beat()));
        tokio::select! {
            () = self.signals.next() => self.events.publish_stopping(),
            () = self.shutdown.cancelled() => {}
            () = self.drain.cancelled() => {}
        }
        if self.drain.is_cancelled() {
            tracing::info!("draining");
            notifier.draining();
            tokio::select! {
                _ = &mut self.workers => {}
                () = self.signals.next() => {}
                () = self.shutdown.cancelled() => {}
            }
        }
        tracing::info!("ending");
        notifier.stopping(patience);
        self.end_workers().await;
        self.close().await;
    }

    /// Ends what is at work; a signal meanwhile ends it at once.
    async fn end_workers(&mut self) {
        self.shutdown.cancel();
        if !self.workers.is_finished() {
            let no_answer = async {
                loop {
                    tokio::time::sleep(LOOK_EVERY).await;
                    git::end_waiting(|_| true, Ender::Shutdown);
                }
            };
            tokio::select! {
                _ = &mut self.workers => {}
                () = no_answer => {}
                () = self.signals.next() => tracing::warn!("ending at once; the next start goes on from the journal"),
            }
        }
    }

    /// Lets everybody hear the last events, and closes the socket.
    async fn close(self) {
        self.events.heard_out().await;
        self.stop_serving.cancel();
        self.server.stopped().await;
    }
}

/// The signals that ask the daemon to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
