//! `version`: prints the versions of client and daemon, and those available from where this was installed.

use std::fmt::Write as _;

use clap::Args;
use protocol::api::DaemonApiClient as _;
use protocol::client::ConnectError;
use protocol::error::ExitStatus;
use semver::Version;
use serde::Serialize;

use crate::failure::Failure;
use crate::installation::Installation;
use crate::invocation::Invocation;
use crate::text::paint::{HINT, paint};
use crate::text::sanitize::sanitize;

const EXAMPLES: &str = "Examples:
  runnerctl version
  runnerctl version --check    look for a newer version
  runnerctl self-update        install it";

/// Show the versions; with --check, look for a newer one
///
/// Without --check, this contacts no server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VersionArgs {
    /// Look for a newer version at the source of this installation
    #[arg(long)]
    check: bool,
    /// Look in this directory or http(s) URL with the archives and SHA256SUMS
    #[arg(long, value_name = "FROM", requires = "check")]
    from: Option<String>,
}

/// The versions.
#[derive(Debug, Serialize)]
struct VersionReport {
    client: Version,
    /// The daemon's version, if one is running.
    daemon: Option<String>,
    /// The available versions, if requested.
    available: Option<AvailableVersions>,
}

/// Available versions.
#[derive(Debug, Serialize)]
struct AvailableVersions {
    from: String,
    versions: Vec<Version>,
    /// The newest version, if it is newer than the client.
    newer: Option<Version>,
}

/// Runs the command. No daemon is started.
pub(crate) async fn run(invocation: &Invocation<'_>, args: VersionArgs) -> Result<ExitStatus, Failure> {
    let daemon = match invocation.connect_running().await {
        Ok(connection) => Some(connection.client().info().await?.version),
        Err(ConnectError::ProtocolMismatch { daemon_version, .. }) => Some(daemon_version),
        Err(ConnectError::NoDaemon { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let client = own_version();
    let available = if args.check { Some(fetch_available(&client, args.from).await?) } else { None };
    let report = VersionReport { client, daemon, available };
    invocation.ui.print_answer("version", &report, |_| render(&report))?;
    Ok(ExitStatus::Success)
}

/// Returns the version of this program.
pub(crate) fn own_version() -> Version {
    Version::parse(env!("CARGO_PKG_VERSION")).expect("BUG: a package without a version")
}

async fn fetch_available(client: &Version, from: Option<String>) -> Result<AvailableVersions, Failure> {
    let installed = Installation::find()?;
    let from = installed.update_source(from)?;
    let versions = installed.list_versions(&from).await?;
    Ok(AvailableVersions { newer: find_newer(client, &versions), from, versions })
}

/// Returns the newest of these versions, if it is newer; pre-releases are offered only to users of pre-releases.
pub(crate) fn find_newer(than: &Version, versions: &[Version]) -> Option<Version> {
    let is_eligible = |version: &&Version| version.pre.is_empty() || !than.pre.is_empty();
    versions.iter().filter(is_eligible).max().filter(|newest| *newest > than).cloned()
}

fn render(VersionReport { client, daemon, available }: &VersionReport) -> String {
    let daemon = daemon.as_deref().map_or_else(|| "not running".to_owned(), sanitize);
    let mut text = format!("runnerctl  {client}\nrunnerd    {daemon}\n");
    if let Some(AvailableVersions { from, newer, .. }) = available {
        let from = sanitize(from);
        let line = match newer {
            Some(newer) => format!("{newer} at {from}\nto upgrade: {}", paint(HINT, "runnerctl self-update")),
            None => format!("nothing newer at {from}"),
        };
        let _ = writeln!(text, "available  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_newer_by_its_number_and_what_comes_before_one_is_not_offered() {
        let newest = |than: &str, installed: &[&str]| {
            let version = |text: &&str| Version::parse(text).expect("a version");
            let installed: Vec<Version> = installed.iter().map(version).collect();
            find_newer(&version(&than), &installed).map(|version| version.to_string())
        };
        assert_eq!(newest("0.1.0", &["0.1.0", "0.9.0", "0.10.0", "0.2.0"]).as_deref(), Some("0.10.0"));
        assert_eq!(newest("0.1.0", &["0.1.0", "0.2.0-rc.1"]), None);
        assert_eq!(newest("0.2.0-rc.1", &["0.1.0", "0.2.0-rc.2"]).as_deref(), Some("0.2.0-rc.2"));
        assert_eq!(newest("0.2.0", &["0.1.0"]), None, "it is never older");
    }
}
