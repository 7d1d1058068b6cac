//! Which machine a command is about: the daemon's, wherever that is, this one, or none.
//!
//! How another one is reached is in `protocol::client`.

use std::env;

use protocol::error::ExitStatus;
use protocol::host::{HOST_VARIABLE, Host};

use crate::args::{Cli, Command};
use crate::failure::Failure;

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Asks a daemon, which may be on another machine.
    Daemon,
    /// Looks at or changes this machine besides; its words, as they are typed on another one.
    Machine(&'static str),
    /// Needs no daemon, or has one of its own.
    Apart,
}

/// Returns the machine that a command is to ask, where it is another one.
///
/// A variable of a login does not lead a command on that needs no other machine; an option that makes no sense is refused.
pub(crate) fn host_of(cli: &Cli) -> Result<Option<Host>, Failure> {
    let (subject, named) = (subject(&cli.command), &cli.global.host);
    let host = match named {
        Some(host) => Some(host.clone()),
        None if cli.global.socket.is_some() || subject == Subject::Apart => None,
        None => of_variable()?,
    };
    match (host, subject) {
        (None, _) => Ok(None),
        (Some(host), Subject::Daemon) => Ok(Some(host)),
        (Some(host), Subject::Machine(words)) => Err(mixed(words, &host, named.is_some())),
        (Some(_), Subject::Apart) => Err(Failure::usage("this command asks no daemon: leave --host away")),
    }
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

fn subject(command: &Command) -> Subject {
    match command {
        Command::Start(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Step(_)
        | Command::Cancel(_)
        | Command::Fork(_)
        | Command::Land(_)
        | Command::Status(_)
        | Command::Watch(_)
        | Command::Tree(_)
        | Command::Log(_)
        | Command::Questions(_)
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
        | Command::Repos(_) => Subject::Daemon,
        Command::Export(args) if args.is_page() => Subject::Machine("export html"),
        Command::Daemon(args) if args.is_run() => Subject::Machine("daemon run"),
        Command::Export(_) | Command::Daemon(_) => Subject::Daemon,
        Command::Deliver(_) => Subject::Machine("deliver"),
        Command::Ui(_) => Subject::Machine("ui"),
        Command::Service(_) => Subject::Machine("service"),
        Command::Doctor(_) => Subject::Machine("doctor"),
        Command::Uninstall(_) => Subject::Machine("uninstall"),
        Command::Demo(_)
        | Command::Stdio(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Help(_)
        | Command::DemoAgent => Subject::Apart,
    }
}
