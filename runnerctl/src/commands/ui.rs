//! `ui`: starts the web view's server, opens its page, and stops it at Ctrl-C.
//!
//! `runner-ui` does the serving; it exits when this program exits, for any reason.

use std::convert::Infallible;
use std::env;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use futures_util::future::join_all;
use protocol::command::NextSteps;
use protocol::error::ExitStatus;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;
use crate::invocation::Invocation;

/// What to do if it is not installed.
pub(super) const INSTALL_HINT: &str = "install runner-ui beside runnerctl, or in a directory of PATH";
/// Maximum length of the line in which the server prints its URL, in bytes.
const MAX_LINE_BYTES: u64 = 16 * 1024;

const EXAMPLES: &str = "Examples:
  runnerctl ui                     every repository, in the browser
  runnerctl ui ~/proj              one repository
  runnerctl ui --steer             steer runs from the page
  runnerctl --host ssh://gpu ui    another machine's runs, in the browser here
  runnerctl --no-spawn ui ~/proj   from its records, without a daemon";

/// Show runs in the browser, until Ctrl-C
///
/// Serves the page to this machine only. Without `--steer`, the page cannot change anything. Its address contains a
/// token: anyone who has the token can do everything that the page can.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UiArgs {
    /// Show only the repository at this path [default: all repositories]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// The port to listen on [default: a free port]
    #[arg(long, value_name = "P", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the address without opening a browser
    #[arg(long)]
    no_open: bool,
    /// Let the page answer, approve, reject, retry, note, pause and resume
    #[arg(long)]
    steer: bool,
}

/// The page's URL, printed by the server once it listens.
#[derive(Debug, Serialize, Deserialize)]
struct UiServerInfo {
    url: String,
    /// URL for the browser that is opened; it can be used once.
    #[serde(skip_serializing)]
    url_once: String,
    token: String,
    pid: u32,
}

/// Why the server cannot start, as reported by it.
#[derive(Debug, Deserialize)]
struct UiErrorReply {
    error: UiErrorBody,
}

#[derive(Debug, Deserialize)]
struct UiErrorBody {
    message: String,
    hint: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(invocation: &Invocation<'_>, args: UiArgs) -> Result<ExitStatus, Failure> {
    check_args(invocation, &args)?;
    let (socket, no_daemon) = find_daemon(invocation).await?;
    let path = single_repo_path(invocation, args.path.as_deref(), no_daemon.is_some())?;
    let mut server = spawn_server(runner_ui_command(invocation, socket.as_deref()), path.as_deref(), &args)?;
    let (started, lines) = match wait_until_listening(&mut server).await {
        Ok(found) => found,
        Err(failure) => return Err(no_daemon.unwrap_or(failure)),
    };
    // Before it is announced: the user may press Ctrl-C as soon as it is.
    let interrupt = signal(SignalKind::interrupt()).map_err(|error| Failure::io("listening for Ctrl-C", &error))?;
    invocation.ui.print_answer("ui", &started, |_| format!("{}\n", started.url))?;
    invocation.ui.print_note("Ctrl-C ends it\n");
    if !args.no_open && !invocation.ui.json && io::stdout().is_terminal() && !open_browser(&started.url_once) {
        invocation.ui.print_note("No browser could be opened here: open the address yourself\n");
    }
    tokio::select! {
        ended = wait_for_end(server, interrupt) => ended,
        never = report_opened(invocation, lines) => match never {},
        never = connect_all_hosts(invocation) => match never {},
    }
}

/// Refuses options that the page of another machine does not support.
fn check_args(invocation: &Invocation<'_>, args: &UiArgs) -> Result<(), Failure> {
    if !invocation.hosts.is_empty() && args.path.is_some() {
        let message = "of several machines all repositories are shown";
        return Err(Failure::usage(message).hint("name one machine for a path"));
    }
    if args.steer && (invocation.host.is_some() || !invocation.hosts.is_empty()) {
        return Err(Failure::usage("the page of another machine only looks")
            .hint("leave --steer away: the page shows each command that steers, with the machine in it"));
    }
    Ok(())
}

/// Returns the daemon's socket. If no local daemon answers, also returns that failure, since the records may suffice.
/// With several machines, none is waited for.
pub(super) async fn find_daemon(invocation: &Invocation<'_>) -> Result<(Option<PathBuf>, Option<Failure>), Failure> {
    if !invocation.hosts.is_empty() {
        return Ok((None, None));
    }
    match invocation.connect().await {
        Ok(connection) => Ok((connection.address().socket().map(Path::to_owned), None)),
        Err(failure) if failure.status() == ExitStatus::NoDaemon && invocation.host.is_none() => {
            Ok((invocation.socket.clone(), Some(failure)))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the only repository to show, if restricted to one.
fn single_repo_path(
    invocation: &Invocation<'_>,
    named: Option<&Path>,
    is_lost: bool,
) -> Result<Option<PathBuf>, Failure> {
    if invocation.host.is_some() {
        return Ok(invocation.daemon_path_if_any(named)?.map(|place| place.0));
    }
    let is_one = named.is_some() || is_lost;
    is_one.then(|| invocation.resolve_local(named)).transpose()
}

/// Returns a `runner-ui` command with JSON output, for the daemon at a socket or the daemons of other machines.
pub(super) fn runner_ui_command(invocation: &Invocation<'_>, socket: Option<&Path>) -> Command {
    let mut command = Command::new(find_runner_ui());
    command.arg("--json").args(socket.into_iter().flat_map(|socket| [Path::new("--socket"), socket]));
    let hosts = invocation.host.iter().chain(&invocation.hosts);
    command.args(hosts.flat_map(|host| ["--host".to_owned(), host.to_string()]));
    command
}

/// Starts a daemon on each of several machines, as far as allowed; the page shows which of them do not answer.
async fn connect_all_hosts(invocation: &Invocation<'_>) -> Infallible {
    join_all(invocation.hosts.iter().map(async |host| drop(invocation.for_host(host).connect().await))).await;
    std::future::pending().await
}

/// Prints the page's URL again whenever it was used.
async fn report_opened(invocation: &Invocation<'_>, mut lines: ServerLines) -> Infallible {
    loop {
        let mut line = String::new();
        match lines.read_line(&mut line).await {
            Ok(read) if read > 0 => {}
            // The end of the server is awaited elsewhere.
            Ok(_) | Err(_) => std::future::pending().await,
        }
        let Ok(started) = serde_json::from_str::<UiServerInfo>(&line) else { continue };
        if invocation.ui.json {
            // A closed standard output is not an error.
            let _ = invocation.ui.print_answer("ui", &started, |_| String::new());
        } else {
            invocation.ui.print_note(&format!("opened; in another browser: {}\n", started.url));
        }
    }
}

/// Lines printed by the server.
type ServerLines = BufReader<ChildStdout>;

/// Starts the server; it ends when its standard input is closed.
fn spawn_server(mut command: Command, path: Option<&Path>, args: &UiArgs) -> Result<Child, Failure> {
    command.args(["--until-eof", "--port"]).arg(args.port.to_string());
    command.args(args.steer.then_some("--steer"));
    command.args(path.into_iter().flat_map(|path| [Path::new("--"), path]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
        .spawn()
        .map_err(|error| Failure::io(format!("starting {}", find_runner_ui().display()), &error).hint(INSTALL_HINT))
}

/// Returns the path of `runner-ui` next to this program, else its name for `PATH`.
fn find_runner_ui() -> PathBuf {
    let sibling = env::current_exe().ok().map(|exe| exe.with_file_name("runner-ui"));
    sibling.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("runner-ui"))
}

/// Waits until the server listens or reports why it cannot.
async fn wait_until_listening(server: &mut Child) -> Result<(UiServerInfo, ServerLines), Failure> {
    let mut line = String::new();
    let mut lines = BufReader::new(server.stdout.take().expect("BUG: standard output is a pipe"));
    let first = (&mut lines).take(MAX_LINE_BYTES).read_line(&mut line).await;
    first.map_err(|error| Failure::io("waiting for runner-ui", &error))?;
    if let Ok(info) = serde_json::from_str(&line) {
        return Ok((info, lines));
    }
    drop(server.stdin.take());
    server.wait().await.map_err(|error| Failure::io("waiting for runner-ui", &error))?;
    let failure = Failure::new(ExitStatus::Error, "ui", "runner-ui did not start");
    Err(match serde_json::from_str(&line) {
        Ok(UiErrorReply { error: UiErrorBody { message, hint } }) => failure
            .caused_by(message)
            .or_hint(hint.map_or_else(|| NextSteps::from("runnerctl doctor"), NextSteps::from)),
        Err(_) => failure.hint("runnerctl doctor"),
    })
}

/// Opens a URL in the user's browser; returns whether a browser was started.
fn open_browser(url: &str) -> bool {
    let is_mac = cfg!(target_os = "macos");
    // Without a display, `xdg-open` would start a browser in the terminal.
    if !is_mac && ["DISPLAY", "WAYLAND_DISPLAY"].iter().all(|name| env::var_os(name).is_none()) {
        return false;
    }
    let mut command = Command::new(if is_mac { "open" } else { "xdg-open" });
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}

/// Waits for Ctrl-C, then for the server to exit.
async fn wait_for_end(mut server: Child, mut interrupt: Signal) -> Result<ExitStatus, Failure> {
    let failed = |error| Failure::io("waiting for runner-ui", &error);
    // Waiting for a child closes its standard input unless it was taken out.
    let line = server.stdin.take();
    tokio::select! {
        _ = interrupt.recv() => {}
        ended = server.wait() => {
            let ended = ended.map_err(failed)?;
            return if ended.success() {
                Ok(ExitStatus::Success)
            } else {
                Err(Failure::new(ExitStatus::Error, "ui", format!("runner-ui ended ({ended})")).hint("runnerctl ui"))
            };
        }
    }
    drop(line);
    server.wait().await.map_err(failed)?;
    Ok(ExitStatus::Success)
}
