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
    Daemons,
    /// Also reads or changes this machine; holds the command's words, as typed on another machine.
    Machine(&'static str),
    /// Needs no daemon, or uses its own.
    Apart,
}

/// Returns the machines that a command is to ask, if they are remote: none, one, or several that are asked
/// concurrently.
///
/// The environment variable does not affect a command that needs no other machine; an option that makes no sense is
/// refused.
pub(crate) fn hosts_of(cli: &Cli) -> Result<Vec<Host>, Failure> {
    let subject = subject(&cli.command);
    let named = named(cli)?;
    let is_named = !named.is_empty();
    let hosts = match is_named {
        true => named,
        false if cli.global.socket.is_some() || subject == TargetKind::Apart => Vec::new(),
        false => of_variable()?.into_iter().collect(),
    };
    match (hosts.as_slice(), subject) {
        ([], _) | (_, TargetKind::Daemons) => Ok(hosts),
        ([_], TargetKind::Daemon) if !cli.global.all_hosts => Ok(hosts),
        ([host, ..], TargetKind::Machine(words)) => Err(mixed(words, host, is_named)),
        (_, TargetKind::Apart) => Err(Failure::usage("this command asks no daemon: leave --host away")),
        ([first, ..], TargetKind::Daemon) => {
            let message = "this command asks one machine alone";
            Err(Failure::usage(message)
                .hint(format!("name one: --host {first}; status, watch, questions and ui ask several")))
        }
    }
}

/// Returns the machines named on the command line, without duplicates.
fn named(cli: &Cli) -> Result<Vec<Host>, Failure> {
    let is_known_by_name = |host: &&String| !host.contains("://");
    if !cli.global.all_hosts && cli.global.host.iter().find(is_known_by_name).is_none() {
        return once(cli.global.host.iter().map(|host| url(host)));
    }
    let known = Settings::load()?.hosts;
    if cli.global.all_hosts {
        if known.is_empty() {
            return Err(Failure::usage("[hosts] of the client's settings names no machine").hint(HOSTS_HINT));
        }
        return once(known.into_values().map(|HostUrl(host)| Ok(host)));
    }
    once(cli.global.host.iter().map(|host| {
        match known.get(host) {
            Some(HostUrl(known)) => Ok(known.clone()),
            None if is_known_by_name(&host) => Err(Failure::usage(format!(
                "`{host}` is no ssh:// URL, and no name in [hosts] of the client's settings"
            ))
            .hint(HOSTS_HINT)),
            None => url(host),
        }
    }))
}

fn url(text: &str) -> Result<Host, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("--host: {error}")))
}

fn once(hosts: impl Iterator<Item = Result<Host, Failure>>) -> Result<Vec<Host>, Failure> {
    let mut all = Vec::new();
    for host in hosts {
        let host = host?;
        if !all.contains(&host) {
            all.push(host);
        }
    }
    Ok(all)
}

fn of_variable() -> Result<Option<Host>, Failure> {
    let Some(value) = env::var_os(HOST_VARIABLE).filter(|value| !value.is_empty()) else { return Ok(None) };
    let host = value.to_string_lossy().parse();
    host.map(Some)
        .map_err(|error| Failure::usage(format!("{HOST_VARIABLE}: {error}")).hint(format!("unset {HOST_VARIABLE}")))
}

fn mixed(words: &str, host: &Host, is_named: bool) -> Failure {
    let message = format!("`runnerctl {words}` is about the machine that it runs on, and not asked of {host}");
    let there = host.ssh_line(&format!("runnerctl {words}"));
    let here =
        if is_named { String::new() } else { format!("; for this machine: env -u {HOST_VARIABLE} runnerctl {words}") };
    Failure::new(ExitStatus::Usage, Failure::ELSEWHERE, message).hint(there + &here)
}

fn subject(command: &Command) -> TargetKind {
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
        Command::Status(_) | Command::Questions(_) | Command::Watch(_) | Command::Ui(_) => TargetKind::Daemons,
        Command::Daemon(args) if args.is_run() => TargetKind::Machine("daemon run"),
        Command::Export(_) | Command::Daemon(_) => TargetKind::Daemon,
        Command::Deliver(_) => TargetKind::Machine("deliver"),
        Command::Submit(_) => TargetKind::Machine("submit"),
        Command::Service(_) => TargetKind::Machine("service"),
        Command::Doctor(_) => TargetKind::Machine("doctor"),
        Command::Uninstall(_) => TargetKind::Machine("uninstall"),
        Command::Version(_) => TargetKind::Machine("version"),
        Command::SelfUpdate(_) => TargetKind::Machine("self-update"),
        Command::Demo(_)
        | Command::Stdio(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Help(_)
        | Command::DemoAgent => TargetKind::Apart,
    }
}
