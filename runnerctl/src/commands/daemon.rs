//! `daemon`: runs, stops and inspects the daemon itself.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Args, Subcommand};
use protocol::api::DaemonApiClient as _;
use protocol::client::{ConnectError, Connection};
use protocol::error::ExitStatus;
use protocol::request::{LogFilter, SigningKeyParams};
use protocol::shell;
use protocol::view::{DaemonView, SleepView};
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::text::measure::format_ago;
use crate::text::paint::DIM;
use crate::text::sanitize::sanitize;
use crate::text::screen::Screen;
use crate::text::table::{Table, TableCell};

/// How long a daemon that has closed its connections may take to remove its socket.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

const EXAMPLES: &str = "Examples:
  runnerctl daemon status
  runnerctl daemon run      in the foreground, until Ctrl-C
  runnerctl daemon stop     runs continue when it starts again
  runnerctl daemon drain    after the current iterations
  runnerctl daemon log-filter info,runnerd=debug    until it stops
  runnerctl daemon signing-key --make    create a key to sign commits with";

/// Run, stop or inspect the daemon
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    verb: DaemonVerb,
}

#[derive(Debug, Subcommand)]
enum DaemonVerb {
    /// Run the daemon in the foreground
    Run,
    /// Stop the daemon and end every live session
    Stop,
    /// Stop the daemon when the current iterations are done
    Drain,
    /// Show the daemon's state; exit code 5 if none is running
    Status,
    /// Print the daemon's own key as a line for `verify --signers`
    ///
    /// The private key is in the daemon's state directory. Sessions in a namespace cannot read it.
    SigningKey {
        /// Create the key if it does not exist
        #[arg(long)]
        make: bool,
    },
    /// Show or change what the daemon logs
    LogFilter {
        /// Directives as in `RUST_LOG`, valid until the daemon stops
        filter: Option<String>,
    },
}

impl DaemonArgs {
    /// Whether this process is to become the daemon, on this machine.
    pub(crate) fn is_run(&self) -> bool {
        matches!(self.verb, DaemonVerb::Run)
    }
}

/// Runs the command. Only a request for the signing key starts a daemon in the background.
pub(crate) async fn run(invocation: &Invocation<'_>, args: DaemonArgs) -> Result<ExitStatus, Failure> {
    if args.is_run() {
        return Err(become_daemon(invocation));
    }
    if let DaemonVerb::SigningKey { make } = args.verb {
        return print_signing_key(invocation, make).await;
    }
    let connection = match invocation.connect_running().await {
        Ok(connection) => connection,
        Err(ConnectError::NoDaemon { .. }) if matches!(args.verb, DaemonVerb::Stop | DaemonVerb::Drain) => {
            invocation.ui.print_note("The daemon is not running.\n");
            return Ok(ExitStatus::Success);
        }
        Err(error @ ConnectError::NoDaemon { .. }) => return Err(Failure::from(error).hint("runnerctl daemon run")),
        Err(error) => return Err(error.into()),
    };
    let client = connection.client();
    match args.verb {
        DaemonVerb::Run | DaemonVerb::SigningKey { .. } | DaemonVerb::Status => {
            let view = client.info().await?;
            invocation.ui.print_answer("daemon", &view, |screen| render(&view, screen))?;
            return Ok(ExitStatus::Success);
        }
        DaemonVerb::LogFilter { filter } => {
            let view = match filter {
                Some(filter) => client.log_filter(LogFilter { filter }).await?,
                None => client.info().await?,
            };
            invocation.ui.print_answer("daemon", &view, |_| sanitize(&view.log_filter) + "\n")?;
        }
        DaemonVerb::Stop => {
            let view = client.shutdown().await?;
            wait_for_exit(&connection, &view).await?;
            report_stopped(invocation, &view)?;
        }
        DaemonVerb::Drain => {
            let view = client.drain().await?;
            invocation.ui.print_note(&format!("Waiting for the current iterations ({})\n", view.running));
            wait_for_exit(&connection, &view).await?;
            report_stopped(invocation, &view)?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Prints the key and, if it is new, the git settings that make git sign with it.
async fn print_signing_key(invocation: &Invocation<'_>, make: bool) -> Result<ExitStatus, Failure> {
    let reply = invocation.connect().await?.client().signing_key(SigningKeyParams { make }).await?;
    invocation.ui.print_answer("signing-key", &reply, |_| sanitize(&reply.signer) + "\n")?;
    if reply.is_new {
        let file = reply.file.to_string();
        let git = shell::join_args(["git", "config", "--global", "runner.signingKey", &file]);
        let sign = "runnerctl config set git.sign true".to_owned();
        // The key and the git settings that name it belong to the other machine.
        let (git, sign) = match &invocation.host {
            Some(host) => (host.ssh_command_line(&git), host.with_host_in_text(&sign)),
            None => (git, sign),
        };
        invocation.ui.print_note(&format!("Made. To sign with it: {}, and in a repository: {sign}\n", sanitize(&git)));
    }
    Ok(ExitStatus::Success)
}

/// Replaces this process with the daemon; returns only on failure.
fn become_daemon(invocation: &Invocation<'_>) -> Failure {
    let program = find_daemon_program();
    let mut command = Command::new(&program);
    if let Some(socket) = &invocation.socket {
        command.env("RUNNERD_SOCKET", socket);
    }
    let error = command.exec();
    Failure::io(format!("starting {}", program.display()), &error)
        .hint("install runnerd beside runnerctl, or in a directory of PATH")
}

/// Returns the path of `runnerd` next to this program, else its name for `PATH`.
pub(crate) fn find_daemon_program() -> PathBuf {
    let sibling = std::env::current_exe().ok().map(|exe| exe.with_file_name("runnerd"));
    sibling.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("runnerd"))
}

/// Waits until a daemon that was told to stop is gone, including its socket.
pub(crate) async fn wait_for_exit(connection: &Connection, view: &DaemonView) -> Result<(), Failure> {
    connection.client().on_disconnect().await;
    // The socket of another machine cannot be checked: its daemon has closed this connection.
    let is_remote = connection.address().host().is_some();
    if is_remote || view.socket_passed { Ok(()) } else { wait_until_removed(view.socket.as_path()).await }
}

fn report_stopped(invocation: &Invocation<'_>, view: &DaemonView) -> Result<(), Failure> {
    invocation.ui.print_answer("daemon", view, |_| format!("daemon {} stopped\n", view.pid))
}

/// Waits until no file exists at `socket`.
async fn wait_until_removed(socket: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while socket.exists() {
        if Instant::now() > deadline {
            let message = format!("the daemon stopped answering, but {} is still there", socket.display());
            return Err(Failure::new(ExitStatus::Error, "timeout", message).hint("runnerctl daemon status"));
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

fn render(view: &DaemonView, screen: &Screen) -> String {
    let mut facts = Table::without_names();
    let mut fact = |name, value: String| facts.add_row([TableCell::styled(DIM, name), value.into()]);
    fact("version", format!("{} (protocol {})", view.version, view.api_version));
    fact("process", format!("{}, started {}", view.pid, format_ago(view.started_at, screen.now)));
    fact("socket", view.socket.to_string());
    if view.socket_passed {
        fact("", "a service manager keeps it, and starts the daemon for the next command".to_owned());
    }
    if let Some(program) = &view.program {
        fact("program", program.to_string());
    }
    if view.outdated {
        fact("", "it was replaced; to start the new one: runnerctl daemon drain".to_owned());
    }
    fact("state", view.state_folder.to_string());
    fact("containment", view.containment.to_string());
    for missing in &view.containment_missing {
        fact("", format!("{} not: {}", missing.level, missing.why));
        fact("", format!("to have it: {}", missing.raise));
    }
    fact("repositories", format!("{}, {} running", view.repositories, view.running));
    fact("sleep", render_sleep(&view.sleep));
    fact("log", view.log.as_ref().map_or_else(|| "standard error".to_owned(), ToString::to_string));
    fact("log filter", view.log_filter.clone());
    let state = if view.draining { "draining" } else { "running" };
    format!("daemon {}\n{}", sanitize(state), facts.render(screen, 2))
}

fn render_sleep(sleep: &SleepView) -> String {
    match &sleep.why {
        _ if sleep.inhibited => "inhibited while a run is active".to_owned(),
        Some(why) => format!("allowed: {why}"),
        None => "allowed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use protocol::view::MissingLevel;
    use protocol::words::Containment;

    use super::*;

    #[test]
    fn a_daemon_says_where_its_things_are() {
        let view = DaemonView {
            version: "0.1.0".into(),
            api_version: 1,
            pid: 4711,
            started_at: "2026-01-01T11:00:00Z".parse().expect("a time"),
            socket: Path::new("/run/user/1000/runnerd/runnerd.sock").into(),
            state_folder: Path::new("/home/me/.local/state/runnerd").into(),
            containment: Containment::Walk,
            containment_missing: vec![MissingLevel {
                level: Containment::Cgroup,
                why: "/sys/fs/cgroup/init.scope is not writable for this user".into(),
                raise: "start the daemon elsewhere".into(),
            }],
            repositories: 3,
            running: 1,
            draining: false,
            log_filter: "info".into(),
            log: Some(Path::new("/home/me/.local/state/runnerd/logs").into()),
            program: Some(Path::new("/home/me/bin/runnerd").into()),
            outdated: true,
            socket_passed: true,
            sleep: SleepView { inhibited: false, why: Some("no run is active".into()) },
        };
        insta::assert_snapshot!(strip_str(&render(&view, &Screen::fixed())), @r"
        daemon running
          version       0.1.0 (protocol 1)
          process       4711, started 1h 00m ago
          socket        /run/user/1000/runnerd/runnerd.sock
                        a service manager keeps it, and starts the daemon for the next command
          program       /home/me/bin/runnerd
                        it was replaced; to start the new one: runnerctl daemon drain
          state         /home/me/.local/state/runnerd
          containment   walk
                        cgroup not: /sys/fs/cgroup/init.scope is not writable for this user
                        to have it: start the daemon elsewhere
          repositories  3, 1 running
          sleep         allowed: no run is active
          log           /home/me/.local/state/runnerd/logs
          log filter    info
        ");
    }
}
