//! One use of the program: where it was started, what it talks to, and how it answers.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use protocol::client::{self, ConnectError, ConnectOptions, Connection, OneShotClient};
use protocol::host::Host;
use protocol::path::WirePath;
use protocol::paths::job_of;
use tokio::time::timeout;

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::ui::Ui;

/// Another machine is waited for in silence for so long.
const UNTOLD: Duration = Duration::from_secs(3);

/// What is told to who starts a daemon where it does not last.
const DRIVES: &str = "`runnerd drive` drives a run as a job, and another job goes on with it";

/// What every command needs.
#[derive(Debug, Clone)]
pub(crate) struct Invocation<'a> {
    /// Where output goes.
    pub(crate) ui: &'a Ui,
    /// The daemon's socket, where one was named.
    pub(crate) socket: Option<PathBuf>,
    /// The daemon's machine, where it is another one: paths that are sent to it are that machine's.
    pub(crate) host: Option<Host>,
    /// Several machines, where they are asked side by side.
    pub(crate) hosts: Vec<Host>,
    directory: Option<PathBuf>,
    spawn: bool,
}

impl<'a> Invocation<'a> {
    /// Takes the options that hold for every command.
    pub(crate) fn new(ui: &'a Ui, global: GlobalArgs, hosts: Vec<Host>) -> Result<Self, Failure> {
        let (host, hosts) =
            if hosts.len() > 1 || global.all_hosts { (None, hosts) } else { (hosts.into_iter().next(), Vec::new()) };
        if let Some(folder) = global.directory.as_ref().filter(|_| host.is_none() && hosts.is_empty()) {
            check_folder(folder)?;
        }
        // What is not absolute then has no current directory either, and is refused where it is used.
        let socket = global.socket.map(|path| std::path::absolute(&path).unwrap_or(path));
        Ok(Self { ui, socket, host, hosts, directory: global.directory, spawn: !global.no_spawn })
    }

    /// Returns the same use of the program with a daemon that runs already.
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

    /// Returns a use of the program in a folder of this machine, with the daemon that it has for itself.
    pub(crate) fn apart(&self, socket: PathBuf, folder: PathBuf) -> Self {
        Self { directory: Some(folder), ..self.with_daemon(socket) }
    }

    /// Returns the same use of the program on one of several machines, with what it says about that one.
    pub(crate) fn at(&self, host: &Host) -> Self {
        Self { host: Some(host.clone()), hosts: Vec::new(), ..self.clone() }
    }

    /// Connects, and starts a daemon where none runs and that is allowed.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.open(self.spawn).await?;
        if let Some((engine, _)) = job_of(|name| env::var(name).ok()).filter(|_| connection.has_started_daemon()) {
            self.ui.note(&format!("A daemon was started in this job of {engine}, and ends with it: {DRIVES}\n"));
        }
        Ok(connection)
    }

    /// Connects to a daemon that runs.
    pub(crate) async fn connect_running(&self) -> Result<Connection, ConnectError> {
        self.open(false).await
    }

    /// Asks a daemon, started where none runs and that is allowed, what changes nothing.
    pub(crate) async fn ask<T>(&self, question: impl AsyncFnOnce(&OneShotClient) -> T) -> Result<T, Failure> {
        let options = self.connect_options(self.spawn);
        Ok(self.telling(client::ask(&options, question)).await?)
    }

    async fn open(&self, spawn: bool) -> Result<Connection, ConnectError> {
        self.telling(Connection::open(&self.connect_options(spawn))).await
    }

    /// Waits for an answer, and says so where another machine takes its time.
    async fn telling<T>(&self, asked: impl Future<Output = T>) -> T {
        let mut asked = pin!(asked);
        if let Some(host) = &self.host {
            match timeout(UNTOLD, &mut asked).await {
                Ok(done) => return done,
                Err(_) => self.ui.note(&format!("Waiting for {host}\n")),
            }
        }
        asked.await
    }

    /// Returns how the daemon is reached; one may be started where this use of the program may do so.
    pub(crate) fn any_options(&self) -> ConnectOptions {
        self.connect_options(self.spawn)
    }

    /// Returns how the daemon is reached.
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

    /// Returns the absolute form of a path of this machine; the current directory by default.
    ///
    /// With another machine's daemon, `-C` is a folder of that one.
    pub(crate) fn resolve(&self, path: Option<&Path>) -> Result<PathBuf, Failure> {
        let base = self.directory.as_deref().filter(|_| self.host.is_none()).unwrap_or(Path::new("."));
        let wanted = path.map_or_else(|| base.to_owned(), |path| base.join(path));
        // `absolute` keeps a leading `.` out, but not symbolic links: the daemon finds the work tree.
        std::path::absolute(&wanted).map_err(|error| Failure::io(format!("finding {}", wanted.display()), &error))
    }

    /// Returns a path of the daemon's machine as it is sent: [`Self::resolve`] on this one; as it was typed on another, where
    /// this program has no current directory.
    pub(crate) fn place(&self, path: Option<&Path>) -> Result<WirePath, Failure> {
        let Some(host) = &self.host else { return self.resolve(path).map(WirePath) };
        let typed = self.typed(path);
        if typed.is_absolute() { Ok(WirePath(typed)) } else { Err(relative(host, &typed)) }
    }

    /// Returns [`Self::place`], and none where nothing says which one is meant: the current directory is of this machine.
    pub(crate) fn place_if_any(&self, path: Option<&Path>) -> Result<Option<WirePath>, Failure> {
        let is_unsaid = self.host.is_some() && self.typed(path).as_os_str().is_empty();
        if is_unsaid { Ok(None) } else { self.place(path).map(Some) }
    }

    /// Joins what was typed.
    fn typed(&self, path: Option<&Path>) -> PathBuf {
        let base = self.directory.as_deref().unwrap_or(Path::new(""));
        path.map_or_else(|| base.to_owned(), |path| base.join(path))
    }
}

/// Refuses a path that another machine cannot find: it has no current directory of this program's.
fn relative(host: &Host, typed: &Path) -> Failure {
    if typed.as_os_str().is_empty() {
        return Failure::usage(format!("nothing says which repository on {host} is meant"))
            .hint(format!("name one of these with -C: runnerctl --host {host} repos"));
    }
    Failure::usage(format!("`{}` is not absolute, and on {host} there is no current directory", typed.display()))
        .hint("write the path from / on, as it is on that machine")
}

/// Refuses a folder of `-C` that is not there: nothing in it can be meant.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!("cannot work in {}", folder.display()))
            .caused_by(error.to_string())
            .hint("name an existing folder: runnerctl -C DIR …")
    };
    let found = fs::metadata(folder).map_err(failed)?;
    if found.is_dir() { Ok(()) } else { Err(failed(io::ErrorKind::NotADirectory.into())) }
}
