//! Decides which machine a command is about: the daemon's, wherever that is, this one, or none.
//!
//! How another machine is reached is in `protocol::client`.

use std::env;

use protocol::error::ExitStatus;
use protocol::host::{HOST_VARIABLE, Host};

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::settings::{HostUrl, Settings};

/// What to do if a machine's name is unknown.
const HOSTS_HINT: &str =
    "write it as ssh://HOST, or into $XDG_CONFIG_HOME/runnerctl/config.toml: [hosts] NAME = \"ssh://HOST\"";

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    /// Asks a daemon, which may be on another machine.
    Daemon,
    /// Asks one daemon, or several side by side.
    SeveralDaemons,
    /// Also reads or changes this machine; holds the command's words, as typed on another machine.
    LocalMachine(&'static str),
    /// Needs no daemon, or uses its own.
    NoDaemon,
}

/// Returns the machines that a command is to ask, if they are remote: none, one, or several that are asked
/// concurrently.
///
/// The environment variable does not affect a command that needs no other machine; an option that makes no sense is
/// refused.
pub(crate) fn resolve_hosts(cli: &Cli) -> Result<Vec<Host>, Failure> {
    let target = target_kind(&cli.command);
    let named = named_hosts(cli)?;
    let is_named = !named.is_empty();
    let hosts = match is_named {
        true => named,
        false if cli.global.socket.is_some() || target == TargetKind::NoDaemon => Vec::new(),
        false => host_from_env()?.into_iter().collect(),
    };
    match (hosts.as_slice(), target) {
        ([], _) | (_, TargetKind::SeveralDaemons) => Ok(hosts),
        ([_], TargetKind::Daemon) if !cli.global.all_hosts => Ok(hosts),
        ([host, ..], TargetKind::LocalMachine(words)) => Err(local_only_failure(words, host, is_named)),
        (_, TargetKind::NoDaemon) => Err(Failure::usage("this command asks no daemon: leave --host away")),
        ([first, ..], TargetKind::Daemon) => {
            let message = "this command asks one machine alone";
            Err(Failure::usage(message)
                .hint(format!("name one: --host {first}; status, watch, questions and ui ask several")))
        }
    }
}

/// Returns the machines named on the command line, without duplicates.
fn named_hosts(cli: &Cli) -> Result<Vec<Host>, Failure> {
    let is_name = |host: &&String| !host.contains("://");
    if !cli.global.all_hosts && cli.global.host.iter().find(is_name).is_none() {
        return dedup_hosts(cli.global.host.iter().map(|host| parse_host(host)));
    }
    let known = Settings::load()?.hosts;
    if cli.global.all_hosts {
        if known.is_empty() {
            return Err(Failure::usage("[hosts] of the client's settings names no machine").hint(HOSTS_HINT));
        }
        return dedup_hosts(known.into_values().map(|HostUrl(host)| Ok(host)));
    }
    dedup_hosts(cli.global.host.iter().map(|host| {
        match known.get(host) {
            Some(HostUrl(known)) => Ok(known.clone()),
            None if is_name(&host) => Err(Failure::usage(format!(
                "`{host}` is no ssh:// URL, and no name in [hosts] of the client's settings"
            ))
            .hint(HOSTS_HINT)),
            None => parse_host(host),
        }
    }))
}

fn parse_host(text: &str) -> Result<Host, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("--host: {error}")))
}

fn dedup_hosts(hosts: impl Iterator<Item = Result<Host, Failure>>) -> Result<Vec<Host>, Failure> {
    let mut all = Vec::new();
    for host in hosts {
        let host = host?;
        if !all.contains(&host) {
            all.push(host);
        }
    }
    Ok(all)
}

fn host_from_env() -> Result<Option<Host>, Failure> {
    let Some(value) = env::var_os(HOST_VARIABLE).filter(|value| !value.is_empty()) else { return Ok(None) };
    let host = value.to_string_lossy().parse();
    host.map(Some)
        .map_err(|error| Failure::usage(format!("{HOST_VARIABLE}: {error}")).hint(format!("unset {HOST_VARIABLE}")))
}

fn local_only_failure(subcommand: &str, host: &Host, is_named: bool) -> Failure {
    let message = format!("`runnerctl {subcommand}` is about the machine that it runs on, and not asked of {host}");
    let remote_command = host.ssh_command_line(&format!("runnerctl {subcommand}"));
    let local_command = if is_named {
        String::new()
    } else {
        format!("; for this machine: env -u {HOST_VARIABLE} runnerctl {subcommand}")
    };
    Failure::new(ExitStatus::Usage, Failure::HOST_KIND, message).hint(remote_command + &local_command)
}

fn target_kind(command: &Command) -> TargetKind {
    match command {
        Command::Start(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Step(_)
        | Command::Cancel(_)
        | Command::Fork(_)
        | Command::Land(_)
        | Command::Mcp(_)
        | Command::Tree(_)
        | Command::Log(_)
        | Command::Queue(_)
        | Command::Path(_)
        | Command::Explain(_)
        | Command::Select(_)
        | Command::Verify(_)
        | Command::Bisect(_)
        | Command::Note(_)
        | Command::Answer(_)
        | Command::Approve(_)
        | Command::Reject(_)
        | Command::Retry(_)
        | Command::Add(_)
        | Command::Edit(_)
        | Command::Guard(_)
        | Command::Init(_)
        | Command::Config(_)
        | Command::Validate(_)
        | Command::Gc(_)
        | Command::Repos(_) => TargetKind::Daemon,
        Command::Status(_) | Command::Questions(_) | Command::Watch(_) | Command::Ui(_) => TargetKind::SeveralDaemons,
        Command::Daemon(args) if args.is_run() => TargetKind::LocalMachine("daemon run"),
        Command::Export(_) | Command::Daemon(_) => TargetKind::Daemon,
        Command::Deliver(_) => TargetKind::LocalMachine("deliver"),
        Command::Submit(_) => TargetKind::LocalMachine("submit"),
        Command::Service(_) => TargetKind::LocalMachine("service"),
        Command::Doctor(_) => TargetKind::LocalMachine("doctor"),
        Command::Uninstall(_) => TargetKind::LocalMachine("uninstall"),
        Command::Version(_) => TargetKind::LocalMachine("version"),
        Command::SelfUpdate(_) => TargetKind::LocalMachine("self-update"),
        Command::Demo(_)
        | Command::Stdio(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Help(_)
        | Command::DemoAgent => TargetKind::NoDaemon,
    }
}
