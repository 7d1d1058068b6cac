//! One use of the program: where it was started, what it talks to, and how it answers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use protocol::client::{self, Brief, ConnectError, ConnectOptions, Connection};
use protocol::path::WirePath;

use crate::args::Global;
use crate::failure::Failure;
use crate::ui::Ui;

/// What every command needs.
#[derive(Debug, Clone)]
pub(crate) struct Invocation<'a> {
    /// Where output goes.
    pub(crate) ui: &'a Ui,
    /// The daemon's socket, where one was named.
    pub(crate) socket: Option<PathBuf>,
    directory: Option<PathBuf>,
    spawn: bool,
}

impl<'a> Invocation<'a> {
    /// Takes the options that hold for every command.
    pub(crate) fn new(ui: &'a Ui, global: Global) -> Result<Self, Failure> {
        if let Some(folder) = &global.directory {
            check_folder(folder)?;
        }
        // What is not absolute then has no current directory either, and is refused where it is used.
        let socket = global.socket.map(|path| std::path::absolute(&path).unwrap_or(path));
        Ok(Self { ui, socket, directory: global.directory, spawn: !global.no_spawn })
    }

    /// Returns the same use of the program with a daemon that runs already.
    pub(crate) fn with_daemon(&self, socket: PathBuf) -> Self {
        Self { ui: self.ui, socket: Some(socket), directory: self.directory.clone(), spawn: false }
    }

    /// Connects, and starts a daemon where none runs and that is allowed.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        Ok(self.open(self.spawn).await?)
    }

    /// Connects to a daemon that runs.
    pub(crate) async fn connect_running(&self) -> Result<Connection, ConnectError> {
        self.open(false).await
    }

    /// Asks a daemon, started where none runs and that is allowed, what changes nothing.
    pub(crate) async fn ask<T>(&self, question: impl AsyncFnOnce(&Brief) -> T) -> Result<T, Failure> {
        Ok(client::ask(&self.connect_options(self.spawn), question).await?)
    }

    async fn open(&self, spawn: bool) -> Result<Connection, ConnectError> {
        Connection::open(&self.connect_options(spawn)).await
    }

    /// Returns how the daemon is reached.
    pub(crate) fn connect_options(&self, spawn: bool) -> ConnectOptions {
        ConnectOptions {
            socket: self.socket.clone(),
            spawn,
            program: None,
            client_name: "runnerctl".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Returns the absolute form of a path of the command line; the current directory by default.
    pub(crate) fn resolve(&self, path: Option<&Path>) -> Result<PathBuf, Failure> {
        let base = self.directory.as_deref().unwrap_or(Path::new("."));
        let wanted = path.map_or_else(|| base.to_owned(), |path| base.join(path));
        // `absolute` keeps a leading `.` out, but not symbolic links: the daemon finds the work tree.
        std::path::absolute(&wanted).map_err(|error| Failure::io(format!("finding {}", wanted.display()), &error))
    }

    /// Returns [`Self::resolve`] as it is sent to the daemon.
    pub(crate) fn place(&self, path: Option<&Path>) -> Result<WirePath, Failure> {
        self.resolve(path).map(WirePath)
    }
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
