//! The user's service manager, controlled through its own programs: systemd, or launchd on macOS.

use std::path::Path;
use std::process::{Output, Stdio};

use protocol::error::ExitStatus;
use protocol::service::{SERVICE_UNIT, SOCKET_UNIT};
use serde::Serialize;
use tokio::process::Command;

use crate::failure::Failure;

/// Label of the launchd agent.
pub(super) const LAUNCHD_LABEL: &str = "dev.runnerd";

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServiceManager {
    /// The user's instance of systemd.
    Systemd,
    /// The user's session of launchd.
    Launchd,
}

/// State of the service, as reported by the service manager.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct ServiceState {
    /// The state of the daemon, in the service manager's words.
    pub(super) state: Option<String>,
    /// Process id of the daemon.
    pub(super) pid: Option<u32>,
    /// The daemon's last status message.
    pub(super) said: Option<String>,
    /// Number of restarts after failures.
    pub(super) restarts: Option<u32>,
    /// Whether it is started with the session.
    pub(super) enabled: Option<String>,
    /// State of the socket unit.
    pub(super) socket: Option<String>,
    /// Whether it keeps running while the user is logged out.
    pub(super) linger: Option<bool>,
}

impl ServiceManager {
    /// Returns the service manager of this platform.
    pub(super) fn for_platform() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Fails if the service manager cannot be reached.
    pub(super) async fn check_reachable(self) -> Result<(), Failure> {
        let (program, arguments) = match self {
            Self::Systemd => ("systemctl", vec!["--user", "show", "--property=Version"]),
            Self::Launchd => ("launchctl", vec!["managerpid"]),
        };
        let why = match command_output(program, &arguments).await {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => last_line(&output.stderr),
            Err(error) => error.to_string(),
        };
        let message = "no service manager of this user can be reached";
        Err(Failure::new(ExitStatus::Error, "no_service_manager", message)
            .caused_by(format!("{program}: {why}"))
            .hint("runnerctl daemon run    # in the foreground; any other supervisor can run the same"))
    }

    /// Reloads the unit files, and enables the service for each session.
    pub(super) async fn enable(self) -> Result<(), Failure> {
        match self {
            Self::Systemd => {
                systemctl(&["daemon-reload"]).await?;
                systemctl(&["enable", SERVICE_UNIT, SOCKET_UNIT]).await
            }
            Self::Launchd => Ok(()),
        }
    }

    /// Starts the service; with `restart_socket`, also recreates its socket.
    pub(super) async fn start(self, file: &Path, restart_socket: bool) -> Result<(), Failure> {
        match self {
            Self::Systemd => {
                if restart_socket {
                    systemctl(&["stop", SOCKET_UNIT]).await?;
                }
                // A service that has exceeded its start limit could not be started.
                let _ = systemctl(&["reset-failed", SERVICE_UNIT, SOCKET_UNIT]).await;
                systemctl(&["start", SOCKET_UNIT, SERVICE_UNIT]).await
            }
            Self::Launchd => {
                let _ = run_command("launchctl", &["bootout", &format!("{}/{LAUNCHD_LABEL}", launchd_domain())]).await;
                run_command("launchctl", &["bootstrap", &launchd_domain(), &file.to_string_lossy()]).await
            }
        }
    }

    /// Stops the service and disables it.
    pub(super) async fn disable(self) -> Result<(), Failure> {
        match self {
            Self::Systemd => systemctl(&["disable", "--now", SOCKET_UNIT, SERVICE_UNIT]).await,
            Self::Launchd => {
                run_command("launchctl", &["bootout", &format!("{}/{LAUNCHD_LABEL}", launchd_domain())]).await
            }
        }
    }

    /// Reloads after files were removed.
    pub(super) async fn reload_after_removal(self) -> Result<(), Failure> {
        match self {
            Self::Systemd => {
                systemctl(&["daemon-reload"]).await?;
                // If this reports an error, no unit had failed.
                let _ = systemctl(&["reset-failed", SERVICE_UNIT, SOCKET_UNIT]).await;
                Ok(())
            }
            Self::Launchd => Ok(()),
        }
    }

    /// Queries the state of the service; what cannot be determined is omitted.
    pub(super) async fn query_state(self) -> ServiceState {
        match self {
            Self::Systemd => query_systemd().await,
            Self::Launchd => {
                let output =
                    command_output("launchctl", &["print", &format!("{}/{LAUNCHD_LABEL}", launchd_domain())]).await;
                let text =
                    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
                let value = |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key)).map(str::to_owned);
                ServiceState {
                    state: value("state = "),
                    pid: value("pid = ").and_then(|pid| pid.parse().ok()),
                    ..ServiceState::default()
                }
            }
        }
    }
}

async fn query_systemd() -> ServiceState {
    let properties = "--property=ActiveState,SubState,MainPID,StatusText,NRestarts,UnitFileState";
    let service = query_properties("systemctl", &["--user", "show", properties, SERVICE_UNIT]).await;
    let socket =
        query_properties("systemctl", &["--user", "show", "--property=ActiveState,SubState", SOCKET_UNIT]).await;
    let user = nix::unistd::getuid().to_string();
    let linger = query_properties("loginctl", &["show-user", &user, "--property=Linger"]).await;
    let state = |properties: &[(String, String)]| {
        Some(format!("{} ({})", property(properties, "ActiveState")?, property(properties, "SubState")?))
    };
    ServiceState {
        state: state(&service),
        pid: property(&service, "MainPID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0),
        said: property(&service, "StatusText"),
        restarts: property(&service, "NRestarts").and_then(|count| count.parse().ok()),
        enabled: property(&service, "UnitFileState"),
        socket: state(&socket),
        linger: property(&linger, "Linger").map(|linger| linger == "yes"),
    }
}

/// Queries properties; empty if the program fails.
async fn query_properties(program: &str, arguments: &[&str]) -> Vec<(String, String)> {
    let text = match command_output(program, arguments).await {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    };
    text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

fn property(properties: &[(String, String)], key: &str) -> Option<String> {
    properties.iter().find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.clone())
}

async fn systemctl(arguments: &[&str]) -> Result<(), Failure> {
    run_command("systemctl", &[&["--user"], arguments].concat()).await
}

async fn run_command(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let line = format!("{program} {}", arguments.join(" "));
    let output =
        command_output(program, arguments).await.map_err(|error| Failure::io(format!("running `{line}`"), &error))?;
    if output.status.success() {
        return Ok(());
    }
    let failure = Failure::new(ExitStatus::Error, "service_manager", format!("`{line}` failed ({})", output.status));
    Err(failure.caused_by(last_line(&output.stderr)).hint("runnerctl service logs"))
}

async fn command_output(program: &str, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().await
}

fn launchd_domain() -> String {
    format!("gui/{}", nix::unistd::getuid())
}

fn last_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().last().unwrap_or("it says nothing").to_owned()
}
