//! The service manager of this user, asked by its own programs: systemd, or launchd under macOS.

use std::path::Path;
use std::process::{Output, Stdio};

use protocol::error::ExitStatus;
use protocol::service::{SERVICE_UNIT, SOCKET_UNIT};
use serde::Serialize;
use tokio::process::Command;

use crate::failure::Failure;

/// The name of the agent.
pub(super) const LABEL: &str = "dev.runnerd";

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServiceManager {
    /// The user's instance of systemd.
    Systemd,
    /// The user's session of launchd.
    Launchd,
}

/// What a service manager says of the service.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct ServiceState {
    /// The state of the daemon, in the service manager's words.
    pub(super) state: Option<String>,
    /// Its process.
    pub(super) pid: Option<u32>,
    /// What it last said of itself.
    pub(super) said: Option<String>,
    /// How often it was started again after a failure.
    pub(super) restarts: Option<u32>,
    /// Whether it is started with the session.
    pub(super) enabled: Option<String>,
    /// The state of its socket.
    pub(super) socket: Option<String>,
    /// Whether it is up while nobody is logged in.
    pub(super) linger: Option<bool>,
}

impl ServiceManager {
    /// Returns the one of this system.
    pub(super) fn for_platform() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Fails if it cannot be talked to.
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

    /// Takes notice of files that were written, and starts the service with each session from now on.
    pub(super) async fn enable(self) -> Result<(), Failure> {
        match self {
            Self::Systemd => {
                systemctl(&["daemon-reload"]).await?;
                systemctl(&["enable", SERVICE_UNIT, SOCKET_UNIT]).await
            }
            Self::Launchd => Ok(()),
        }
    }

    /// Starts the service; with `anew`, its socket is made anew, too.
    pub(super) async fn start(self, file: &Path, anew: bool) -> Result<(), Failure> {
        match self {
            Self::Systemd => {
                if anew {
                    systemctl(&["stop", SOCKET_UNIT]).await?;
                }
                // A start that was given up after failures would be refused.
                let _ = systemctl(&["reset-failed", SERVICE_UNIT, SOCKET_UNIT]).await;
                systemctl(&["start", SOCKET_UNIT, SERVICE_UNIT]).await
            }
            Self::Launchd => {
                let _ = run_command("launchctl", &["bootout", &format!("{}/{LABEL}", launchd_domain())]).await;
                run_command("launchctl", &["bootstrap", &launchd_domain(), &file.to_string_lossy()]).await
            }
        }
    }

    /// Stops the service, and starts it with no session any more.
    pub(super) async fn disable(self) -> Result<(), Failure> {
        match self {
            Self::Systemd => systemctl(&["disable", "--now", SOCKET_UNIT, SERVICE_UNIT]).await,
            Self::Launchd => run_command("launchctl", &["bootout", &format!("{}/{LABEL}", launchd_domain())]).await,
        }
    }

    /// Takes notice of files that were removed.
    pub(super) async fn reload_after_removal(self) -> Result<(), Failure> {
        match self {
            Self::Systemd => {
                systemctl(&["daemon-reload"]).await?;
                // Nothing failed where this says so.
                let _ = systemctl(&["reset-failed", SERVICE_UNIT, SOCKET_UNIT]).await;
                Ok(())
            }
            Self::Launchd => Ok(()),
        }
    }

    /// Asks how the service is; what cannot be told is left out.
    pub(super) async fn query_state(self) -> ServiceState {
        match self {
            Self::Systemd => query_systemd().await,
            Self::Launchd => {
                let output = command_output("launchctl", &["print", &format!("{}/{LABEL}", launchd_domain())]).await;
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
    let state =
        |of: &[(String, String)]| Some(format!("{} ({})", property(of, "ActiveState")?, property(of, "SubState")?));
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

/// Asks for properties; none where the program does not answer.
async fn query_properties(program: &str, arguments: &[&str]) -> Vec<(String, String)> {
    let text = match command_output(program, arguments).await {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    };
    text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.into(), value.into())).collect()
}

fn property(of: &[(String, String)], key: &str) -> Option<String> {
    of.iter().find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.clone())
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
