//! One invocation of the program: where it was started, which daemon it talks to, and how it prints.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use protocol::client::{self, ConnectError, ConnectOptions, Connection, OneShotClient};
use protocol::host::Host;
use protocol::path::WirePath;
use protocol::paths::detect_job;
use tokio::time::timeout;

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::ui::Ui;

/// How long another machine may take before a message says that it is being waited for.
const SILENT_WAIT: Duration = Duration::from_secs(3);

/// Hint for users of machines where a background daemon does not last.
const DRIVE_HINT: &str = "`runnerd drive` drives a run as a job, and another job continues with it";

/// Context of every command.
#[derive(Debug, Clone)]
pub(crate) struct Invocation<'a> {
    /// Where output goes.
    pub(crate) ui: &'a Ui,
    /// The daemon's socket, if one was named.
    pub(crate) socket: Option<PathBuf>,
    /// The daemon's machine, if it is another one: paths sent to the daemon are on that machine.
    pub(crate) host: Option<Host>,
    /// Several machines, if they are asked concurrently.
    pub(crate) hosts: Vec<Host>,
    directory: Option<PathBuf>,
    spawn: bool,
}

impl<'a> Invocation<'a> {
    /// Creates it from the global options.
    pub(crate) fn new(ui: &'a Ui, global: GlobalArgs, hosts: Vec<Host>) -> Result<Self, Failure> {
        let (host, hosts) =
            if hosts.len() > 1 || global.all_hosts { (None, hosts) } else { (hosts.into_iter().next(), Vec::new()) };
        if let Some(folder) = global.directory.as_ref().filter(|_| host.is_none() && hosts.is_empty()) {
            check_directory(folder)?;
        }
        // A path that cannot be made absolute has no current directory either, and is refused when it is used.
        let socket = global.socket.map(|path| std::path::absolute(&path).unwrap_or(path));
        Ok(Self { ui, socket, host, hosts, directory: global.directory, spawn: !global.no_spawn })
    }

    /// Returns the same invocation with a daemon that is already running.
    pub(crate) fn with_daemon(&self, socket: PathBuf) -> Self {
        Self {
            ui: self.ui,
            socket: Some(socket),
            host: None,
            hosts: Vec::new(),
            directory: self.directory.clone(),
            spawn: false,
        }
    }

    /// Returns an invocation in a local folder, with a private daemon.
    pub(crate) fn with_own_daemon(&self, socket: PathBuf, folder: PathBuf) -> Self {
        Self { directory: Some(folder), ..self.with_daemon(socket) }
    }

    /// Returns the same invocation for one of several machines, with the output marked as that machine's.
    pub(crate) fn for_host(&self, host: &Host) -> Self {
        Self { host: Some(host.clone()), hosts: Vec::new(), ..self.clone() }
    }

    /// Connects, starting a daemon if none is running and that is allowed.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.open_connection(self.spawn).await?;
        if let Some((engine, _)) = detect_job(|name| env::var(name).ok()).filter(|_| connection.has_started_daemon()) {
            self.ui
                .print_note(&format!("A daemon was started in this job of {engine}, and ends with it: {DRIVE_HINT}\n"));
        }
        Ok(connection)
    }

    /// Connects to a running daemon.
    pub(crate) async fn connect_running(&self) -> Result<Connection, ConnectError> {
        self.open_connection(false).await
    }

    /// Sends read-only requests to a daemon, which is started if none is running and that is allowed.
    pub(crate) async fn ask<T>(&self, request: impl AsyncFnOnce(&OneShotClient) -> T) -> Result<T, Failure> {
        let options = self.connect_options(self.spawn);
        Ok(self.wait_with_notice(client::query(&options, request)).await?)
    }

    async fn open_connection(&self, spawn: bool) -> Result<Connection, ConnectError> {
        self.wait_with_notice(Connection::open(&self.connect_options(spawn))).await
    }

    /// Waits for an answer, and prints a message if another machine takes long.
    async fn wait_with_notice<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        if let Some(host) = &self.host {
            match timeout(SILENT_WAIT, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) => self.ui.print_note(&format!("Waiting for {host}\n")),
            }
        }
        answer.await
    }

    /// Returns the connection options; they allow starting a daemon if this invocation may.
    pub(crate) fn default_options(&self) -> ConnectOptions {
        self.connect_options(self.spawn)
    }

    /// Returns the connection options.
    pub(crate) fn connect_options(&self, spawn: bool) -> ConnectOptions {
        ConnectOptions {
            host: self.host.clone(),
            unattended: false,
            socket: self.socket.clone(),
            spawn,
            program: None,
            client_name: "runnerctl".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Returns the absolute form of a local path; defaults to the current directory.
    ///
    /// With another machine's daemon, `-C` is a folder on that machine.
    pub(crate) fn resolve_local(&self, path: Option<&Path>) -> Result<PathBuf, Failure> {
        let base = self.directory.as_deref().filter(|_| self.host.is_none()).unwrap_or(Path::new("."));
        let joined = path.map_or_else(|| base.to_owned(), |path| base.join(path));
        // `absolute` removes a leading `.`, but does not resolve symbolic links: the daemon finds the work tree.
        std::path::absolute(&joined).map_err(|error| Failure::io(format!("finding {}", joined.display()), &error))
    }

    /// Returns a path as sent to the daemon: [`Self::resolve_local`] on this machine; as typed for another one, where this
    /// program has no current directory.
    pub(crate) fn daemon_path(&self, path: Option<&Path>) -> Result<WirePath, Failure> {
        let Some(host) = &self.host else { return self.resolve_local(path).map(WirePath) };
        let typed = self.typed_path(path);
        if typed.is_absolute() { Ok(WirePath(typed)) } else { Err(relative_path_failure(host, &typed)) }
    }

    /// Returns [`Self::daemon_path`], or `None` if no path is given: the current directory is on this machine.
    pub(crate) fn daemon_path_if_any(&self, path: Option<&Path>) -> Result<Option<WirePath>, Failure> {
        let is_unspecified = self.host.is_some() && self.typed_path(path).as_os_str().is_empty();
        if is_unspecified { Ok(None) } else { self.daemon_path(path).map(Some) }
    }

    /// Joins `-C` and the path as typed.
    fn typed_path(&self, path: Option<&Path>) -> PathBuf {
        let base = self.directory.as_deref().unwrap_or(Path::new(""));
        path.map_or_else(|| base.to_owned(), |path| base.join(path))
    }
}

/// Returns the error for a relative path: another machine does not know this program's current directory.
fn relative_path_failure(host: &Host, typed: &Path) -> Failure {
    if typed.as_os_str().is_empty() {
        return Failure::usage(format!("nothing says which repository on {host} is meant"))
            .hint(format!("name one of these with -C: runnerctl --host {host} repos"));
    }
    Failure::usage(format!("`{}` is not absolute, and on {host} there is no current directory", typed.display()))
        .hint("write the path from / on, as it is on that machine")
}

/// Refuses a folder of `-C` that does not exist.
fn check_directory(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!("cannot work in {}", folder.display()))
            .caused_by(error.to_string())
            .hint("name an existing directory: runnerctl -C DIR …")
    };
    let metadata = fs::metadata(folder).map_err(failed)?;
    if metadata.is_dir() { Ok(()) } else { Err(failed(io::ErrorKind::NotADirectory.into())) }
}
