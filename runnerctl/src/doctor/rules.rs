//! Judges the facts and suggests what to type: pure, one function per check.

mod agents;
mod disk_space;

use std::path::Path;

use jiff::Timestamp;
use protocol::client::ConnectError;
use protocol::doctor::{AttributeFault, GuardFiles, LANDING_GIT, OLDEST_GIT, RepositoryFacts, WorkspaceProposal};
use protocol::reply::{ConfigShowReply, SettingOrigin, SettingView, ValidateReply};
use protocol::shell;
use protocol::view::{DaemonView, StopReason};
use protocol::words::Containment;

pub(crate) use self::agents::check_configured_agents;
pub(crate) use self::disk_space::check_workspaces;
use super::machine::{ClockState, FileAccess, LockHolder, ServiceStatus};
use super::probe::{PROBE_TIMEOUT, ProbeResult};
use super::{CheckLevel, DoctorCheck, QueryError};
use crate::detection::guard_words;
use crate::text::measure::format_bytes;

/// Free bytes below which nothing works reliably.
const DISK_FULL: u64 = 100_000_000;
/// Free bytes below which a night of runs may fill the disk.
const DISK_LOW: u64 = 2_000_000_000;
/// A clock before this time was never set.
const EARLIEST_TIME: &str = "2025-01-01T00:00:00Z";

/// Checks the git program.
pub(crate) fn check_git(result: &ProbeResult) -> DoctorCheck {
    let install = "install git 2.32 or later, and put it on PATH";
    match result {
        ProbeResult::Missing => DoctorCheck::fail("git", "there is no git on PATH", install),
        ProbeResult::TimedOut => slow_program("git", "git --version"),
        ProbeResult::Failed(why) => DoctorCheck::fail("git", format!("git --version fails: {why}"), install),
        ProbeResult::Success(line) => match parse_version(line) {
            Some(version) if version < OLDEST_GIT => {
                DoctorCheck::fail("git", format!("{line} is too old: no run begins with it"), install)
            }
            Some(version) if version < LANDING_GIT => {
                let found = format!("{line}: no result of a run lands with it, and none is delivered");
                DoctorCheck::warn("git", found, "install git 2.38 or later, and put it on PATH")
            }
            Some(_) => DoctorCheck::ok("git", line.clone()),
            None => DoctorCheck::warn("git", format!("git says no version, but: {line}"), install),
        },
    }
}

/// Returns the first two numbers of the first word that contains them.
fn parse_version(line: &str) -> Option<[u32; 2]> {
    line.split_whitespace().find_map(|word| {
        let mut numbers = word.split('.').map(|part| part.parse().ok());
        Some([numbers.next()??, numbers.next()??])
    })
}

fn slow_program(name: &str, what: &str) -> DoctorCheck {
    let found = format!("`{what}` did not end within {} s", PROBE_TIMEOUT.as_secs());
    DoctorCheck::warn(name, found, format!("{what}, to see why"))
}

/// Checks which agents are installed, if no configuration names one.
pub(crate) fn check_agents(all: &[(&str, ProbeResult)]) -> DoctorCheck {
    let mut details = Vec::new();
    for (name, said) in all {
        match said {
            ProbeResult::Missing => {}
            ProbeResult::Success(line) => details.push(format!("{name}: {line}")),
            ProbeResult::Failed(why) => details.push(format!("{name}: {name} --version fails: {why}")),
            ProbeResult::TimedOut => details.push(format!("{name}: no version within {} s", PROBE_TIMEOUT.as_secs())),
        }
    }
    let failing = all
        .iter()
        .find(|(_, said)| matches!(said, ProbeResult::Failed(_) | ProbeResult::TimedOut))
        .map(|(name, _)| *name);
    let working: Vec<&str> =
        all.iter().filter(|(_, said)| matches!(said, ProbeResult::Success(_))).map(|(name, _)| *name).collect();
    let check = match (working.as_slice(), failing) {
        ([], None) => {
            let fix = "npm install -g @openai/codex, and codex login; or see docs/agents.md";
            DoctorCheck::warn("agents", "no known agent is on PATH", fix)
        }
        ([], Some(name)) => {
            DoctorCheck::warn("agents", "no known agent on PATH runs", format!("{name} --version, to see why"))
        }
        (fine, _) => DoctorCheck::ok("agents", fine.join(", ")),
    };
    check.with_details(details)
}

/// Checks the connection; if nothing answers, also who holds the lock, and what the daemon's program says of its settings.
pub(crate) fn check_daemon(
    reached: Result<&DaemonView, &ConnectError>,
    holder: Option<&LockHolder>,
    settings: Option<&ProbeResult>,
) -> DoctorCheck {
    match (reached, holder) {
        (Err(ConnectError::NoDaemon { .. }), None) if let Some(ProbeResult::Failed(why)) = settings => {
            let why = why.strip_prefix("error: ").unwrap_or(why);
            DoctorCheck::fail("daemon", format!("it does not start: {why}"), "mend that, and then: runnerctl status")
        }
        (Ok(view), _) if view.draining => {
            let found = format!("runnerd {} is shutting down, process {}", view.version, view.pid);
            DoctorCheck::warn("daemon", found, "runnerctl daemon status")
        }
        (Ok(view), _) if view.outdated => {
            let found = format!("runnerd {}, process {}, but its program was replaced", view.version, view.pid);
            DoctorCheck::warn("daemon", found, "runnerctl daemon drain && runnerctl status")
        }
        (Ok(view), _) => DoctorCheck::ok("daemon", format!("runnerd {}, process {}", view.version, view.pid)),
        (Err(ConnectError::NoDaemon { .. }), None) => DoctorCheck::warn(
            "daemon",
            "not running, so its own checks are left out; any other command starts it",
            "runnerctl status",
        ),
        (Err(ConnectError::NoDaemon { socket }), Some(LockHolder { pid, socket: Some(other) })) if other != socket => {
            let found =
                format!("the daemon, process {pid}, listens on {}, not on {}", other.display(), socket.display());
            DoctorCheck::fail("daemon", found, format!("runnerctl --socket {} status", shell::quote_path(other)))
        }
        (Err(ConnectError::NoDaemon { socket }), Some(LockHolder { pid, .. })) => {
            let found = format!("process {pid} holds the daemon's lock, but does not answer on {}", socket.display());
            DoctorCheck::fail("daemon", found, format!("kill {pid} && runnerctl status"))
        }
        (Err(error), _) => {
            let fix = error.hint().unwrap_or_else(|| "runnerctl daemon status".to_owned());
            DoctorCheck::fail("daemon", error.to_string(), fix)
        }
    }
}

/// Checks the socket, if it exists.
pub(crate) fn check_socket(socket: &Path, access: Option<&FileAccess>) -> DoctorCheck {
    let path = socket.display();
    match access {
        None => DoctorCheck::ok("socket", format!("{path}, created when the daemon starts")),
        Some(found) if !found.is_socket => {
            DoctorCheck::fail("socket", format!("{path} is no socket"), format!("mv '{path}' '{path}.old'"))
        }
        Some(found) if !found.is_own => DoctorCheck::fail(
            "socket",
            format!("{path} belongs to another user"),
            "name another one with RUNNERD_SOCKET",
        ),
        Some(found) if found.mode & 0o077 != 0 => DoctorCheck::fail(
            "socket",
            format!("{path} is open to others: mode {:03o}", found.mode),
            format!("chmod 600 '{path}'"),
        ),
        Some(_) => DoctorCheck::ok("socket", path.to_string()),
    }
}

/// Checks the daemon's folder.
pub(crate) fn check_state_dir(folder: &Path, access: Option<&FileAccess>) -> DoctorCheck {
    let path = folder.display();
    match access {
        None => DoctorCheck::ok("state", format!("{path}, created when the daemon starts")),
        Some(found) if !found.is_own => DoctorCheck::fail(
            "state",
            format!("{path} belongs to another user"),
            format!("sudo chown -R \"$USER\" '{path}'"),
        ),
        Some(found) if !found.is_writable => {
            DoctorCheck::fail("state", format!("{path} cannot be written to"), format!("chmod u+rwx '{path}'"))
        }
        Some(found) if found.mode & 0o077 != 0 => DoctorCheck::fail(
            "state",
            format!("{path} is open to others: mode {:03o}", found.mode),
            format!("chmod 700 '{path}'"),
        ),
        Some(_) => DoctorCheck::ok("state", path.to_string()),
    }
}

/// Checks the containment level.
pub(crate) fn check_containment(view: &DaemonView) -> DoctorCheck {
    let missing = view.containment_missing.iter();
    let details = missing.clone().map(|level| format!("{} not: {}", level.level, level.why)).collect();
    let raise = missing.last().map(|level| level.raise.clone());
    match (view.containment, raise) {
        (Containment::Walk, Some(raise)) => DoctorCheck::warn("containment", "walk", raise).with_details(details),
        (level, raise) => {
            DoctorCheck { fix: raise, ..DoctorCheck::ok("containment", level.to_string()).with_details(details) }
        }
    }
}

/// Checks whether the machine is kept awake.
pub(crate) fn check_sleep(view: &DaemonView) -> DoctorCheck {
    let why = view.sleep.why.as_deref().unwrap_or("nothing keeps it awake");
    match view.running {
        _ if view.sleep.inhibited => DoctorCheck::ok("sleep", "the machine is kept awake while a run is active"),
        0 => DoctorCheck::ok("sleep", format!("the machine may go to sleep: {why}")),
        _ => {
            let found = format!("the machine may go to sleep in the middle of a run: {why}");
            DoctorCheck::warn("sleep", found, "keep it awake by its own settings")
        }
    }
}

/// Checks whether runs continue while the user is logged out.
pub(crate) fn check_service(status: Option<&ServiceStatus>) -> DoctorCheck {
    match status {
        None => DoctorCheck::skipped("service", "this machine has no systemd"),
        Some(ServiceStatus { unit: None, .. }) => {
            let found = "not installed: the daemon starts when needed, and stops when you log out";
            DoctorCheck::ok("service", format!("{found}; runnerctl service install changes that"))
        }
        Some(ServiceStatus { unit: Some(unit), lingers: false }) => {
            let found = format!("{}, but stops when you log out", unit.display());
            DoctorCheck::warn("service", found, "loginctl enable-linger")
        }
        Some(ServiceStatus { unit: Some(unit), .. }) => {
            DoctorCheck::ok("service", format!("{}, even while you are logged out", unit.display()))
        }
    }
}

/// Checks the free space of a disk.
pub(crate) fn check_disk(name: &str, folder: &Path, free: Option<u64>) -> DoctorCheck {
    let Some(free) = free else {
        return DoctorCheck::warn(name, format!("the free space at {} is unknown", folder.display()), "df -h");
    };
    let found = format!("{} free at {}", format_bytes(free), folder.display());
    let fix = "runnerctl gc, which removes the records of old runs; or make room";
    match free {
        0..DISK_FULL => DoctorCheck::fail(name, found, fix),
        DISK_FULL..DISK_LOW => DoctorCheck::warn(name, found, fix),
        _ => DoctorCheck::ok(name, found),
    }
}

/// Checks the clock, also against the start time of a running daemon.
pub(crate) fn check_clock(clock: ClockState, started: Option<Timestamp>) -> DoctorCheck {
    let earliest: Timestamp = EARLIEST_TIME.parse().expect("BUG: not a time");
    let now = clock.now.strftime("%Y-%m-%d %H:%M UTC");
    let fix = match clock.is_synchronised {
        Some(_) => "timedatectl set-ntp true",
        None => "set the clock, and keep it right with an NTP client",
    };
    match clock.is_synchronised {
        _ if clock.now < earliest => DoctorCheck::fail("clock", format!("it shows {now}, and was never set"), fix),
        _ if started.is_some_and(|started| started > clock.now) => {
            DoctorCheck::warn("clock", format!("it shows {now}, and was set back since the daemon started"), fix)
        }
        Some(false) => DoctorCheck::warn("clock", format!("{now}, and not synchronised"), fix),
        Some(true) => DoctorCheck::ok("clock", format!("{now}, synchronised")),
        None => DoctorCheck::ok("clock", now.to_string()),
    }
}

/// Checks the work tree's folder.
pub(crate) fn check_work_tree(root: &Path, access: Option<&FileAccess>) -> DoctorCheck {
    let path = root.display();
    match access {
        Some(found) if found.is_writable => DoctorCheck::ok("repository", path.to_string()),
        _ => DoctorCheck::fail("repository", format!("{path} cannot be written to"), format!("chmod u+w '{path}'")),
    }
}

/// Checks which git engine a repository uses.
pub(crate) fn check_git_engine(facts: &RepositoryFacts) -> DoctorCheck {
    if facts.by_program.is_empty() {
        return DoctorCheck::ok("engine", "built-in, at full speed");
    }
    DoctorCheck::ok("engine", "the git program, which is slower").with_details(facts.by_program.clone())
}

/// Reports a repository that the daemon holds.
pub(crate) fn check_hold(reason: &StopReason) -> DoctorCheck {
    let fix = reason.command.clone().unwrap_or_else(|| "runnerctl resume".to_owned());
    DoctorCheck::fail("daemon's state", reason.message.clone(), fix)
}

/// Checks for a commit, leftovers of git, operations in progress, and uncommitted work.
pub(crate) fn check_git_state(facts: &RepositoryFacts) -> DoctorCheck {
    if let Some(AttributeFault { what, fix }) = &facts.attribute {
        return DoctorCheck::fail("git state", what.clone(), fix.clone());
    }
    if facts.unborn {
        let found = "there is no commit yet, and a run begins from one";
        return DoctorCheck::fail("git state", found, "git commit --allow-empty -m Begin");
    }
    if let Some(operation) = &facts.operation {
        let found = format!("a {operation} is in progress");
        return DoctorCheck::warn(
            "git state",
            found,
            format!("finish or abort the {operation}; a run is held until then"),
        );
    }
    if facts.locks.is_empty() && !facts.uncommitted.is_empty() {
        let found = format!("not committed: {}", facts.uncommitted.join(", "));
        let fix = "commit that, or put it aside: git stash -u; or work beside it: runnerctl start --isolated";
        return DoctorCheck::warn("git state", found, fix);
    }
    let [first, ..] = facts.locks.as_slice() else {
        return DoctorCheck::ok("git state", "no locks, no operation in progress");
    };
    let fix = format!("if no git is at work there: rm '{first}'");
    let locks = facts.locks.iter().map(ToString::to_string).collect();
    DoctorCheck::warn("git state", "git's lock files exist", fix).with_details(locks)
}

/// Checks the configuration, and lists where each configured value comes from. Values are omitted, since reports are
/// shared.
pub(crate) fn check_configuration(
    settings: &Result<ConfigShowReply, QueryError>,
    facts: &RepositoryFacts,
) -> DoctorCheck {
    let reply = match settings {
        Ok(reply) => reply,
        Err(error) => return error.to_check("config"),
    };
    let all = || reply.settings.iter().chain(&reply.daemon_settings);
    let is_set = |setting: &&SettingView| setting.origin != SettingOrigin::Default;
    let origin = |setting: &SettingView| format!("{} from {}", setting.key, setting.place.as_deref().unwrap_or("-"));
    let details: Vec<String> = all().filter(is_set).map(origin).collect();
    let found = format!("valid; {} of {} keys set: runnerctl config show --origin", details.len(), all().count());
    let check = match facts.confirmed {
        Some(false) => DoctorCheck::warn(
            "config",
            format!("{found}; its commands are not confirmed"),
            "runnerctl config show, to see them; runnerctl start --yes, to confirm",
        ),
        _ => DoctorCheck::ok("config", found),
    };
    check.with_details(details)
}

/// Checks the files under `.runner/`: one result per file with a problem, else one for all. The configuration has a
/// separate check.
pub(crate) fn check_files(reply: &Result<ValidateReply, QueryError>, facts: &RepositoryFacts) -> Vec<DoctorCheck> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return vec![error.to_check("files")],
    };
    let failed = reply.checks.iter().filter(|check| !check.ok);
    let is_file_check = |name: &str| !matches!(name, "programs" | "config");
    let mut checks = Vec::new();
    for check in failed.filter(|check| facts.has_layout || !is_file_check(&check.name)) {
        let found = check.faults.first().cloned().unwrap_or_default();
        let details = check.faults.iter().skip(1).cloned().collect();
        let (found, fix) = match found.split_once("; ") {
            Some((found, fix)) => (found.to_owned(), fix.to_owned()),
            None => (found, "fix it, then: runnerctl validate".to_owned()),
        };
        checks.push(DoctorCheck::fail(&check.name, found, fix).with_details(details));
    }
    if !facts.has_layout {
        checks.push(DoctorCheck::skipped("files", "no .runner/ here yet; runnerctl start creates it"));
    } else if checks.is_empty() {
        checks.push(DoctorCheck::ok("files", "goal, task tree and state are valid"));
    }
    checks
}

/// Returns the command that sets a key; in a repository without `.runner/`, that is created first.
fn set_command(facts: &RepositoryFacts, key_and_value: &str) -> String {
    let init = if facts.has_layout { "" } else { "runnerctl init && " };
    format!("{init}runnerctl config set {key_and_value}")
}

/// Checks the guard: whether its program exists, and whether `just` knows its recipe.
pub(crate) fn check_guard(
    command: &[String],
    is_installed: bool,
    recipe: Option<&(String, ProbeResult)>,
    facts: &RepositoryFacts,
) -> DoctorCheck {
    let Some(program) = command.first() else {
        return DoctorCheck::skipped("guard", "the configuration cannot be read");
    };
    let line = shell::join_args(command.iter().map(String::as_str));
    let example = match (&facts.guard_suggestion, facts.ci_commands.first()) {
        (Some(found), _) => shell::join_args(found.command.iter().map(String::as_str)),
        (None, Some(command)) => guard_words(command),
        (None, None) => "COMMAND".to_owned(),
    };
    let other = format!("; or: {}", set_command(facts, &format!("guard.command {example}")));
    let with_other = |fix: String| if example == line { fix } else { fix + &other };
    match recipe {
        _ if !is_installed => {
            let found = format!("`{line}` cannot run: there is no program `{program}`");
            DoctorCheck::fail("guard", found, with_other(format!("install {program}")))
        }
        Some((recipe, ProbeResult::Failed(why))) => DoctorCheck::fail(
            "guard",
            format!("`{line}` will fail: {why}"),
            with_other(format!("define the recipe `{recipe}`")),
        ),
        Some((_, ProbeResult::TimedOut)) => slow_program("guard", "just --list"),
        Some((recipe, ProbeResult::Success(_))) => {
            DoctorCheck::ok("guard", format!("{line}; the recipe `{recipe}` is defined"))
        }
        Some((_, ProbeResult::Missing)) | None => DoctorCheck::ok("guard", line),
    }
}

/// Checks whether changes to the guard's definition would be detected.
pub(crate) fn check_guard_files(guard: &GuardFiles, facts: &RepositoryFacts) -> DoctorCheck {
    let set = set_command(facts, "guard.definition '[\"/ci/**\"]'");
    let files = guard.watched.join(", ");
    match guard.watched.as_slice() {
        _ if guard.is_blind => DoctorCheck::warn(
            "guard files",
            "none of the guard's files are watched: an agent could change what it checks",
            format!("name them: {set}; if there is none: '[]'"),
        ),
        _ if !guard.unknown.is_empty() => DoctorCheck::warn(
            "guard files",
            format!("this guard runs files that are not watched: {}", guard.unknown.join(", ")),
            format!("if they check something, name them: {set}; if not: '[]'"),
        )
        .with_details(
            Some(format!("watched for changes: {files}")).filter(|_| !files.is_empty()).into_iter().collect(),
        ),
        [] => DoctorCheck::ok("guard files", "none in this repository"),
        _ => DoctorCheck::ok("guard files", format!("watched for changes: {files}")),
    }
}

/// Reports what a workspace of an isolated run would lack, and how to provide it.
pub(crate) fn check_workspace(proposal: &WorkspaceProposal, facts: &RepositoryFacts) -> DoctorCheck {
    let keys = [("copy", &proposal.copy), ("setup", &proposal.setup)];
    let commands = keys.into_iter().filter(|(_, words)| !words.is_empty());
    let commands = commands.map(|(key, words)| set_command(facts, &format!("workspace.{key} '{words:?}'")));
    let by = proposal.by.join(", ");
    let found =
        format!("an isolated run would begin without what git ignores ({by}), unless it is set what to copy or run");
    DoctorCheck::ok("workspace", found).with_details(commands.collect())
}

/// Drops reports of a missing program if the check of agent or guard covers it.
pub(crate) fn drop_repeats(checks: Vec<DoctorCheck>) -> Vec<DoctorCheck> {
    let is_reported =
        checks.iter().any(|check| check.level == CheckLevel::Fail && matches!(check.name.as_str(), "agent" | "guard"));
    checks.into_iter().filter(|check| !(is_reported && check.name == "programs")).collect()
}

/// Whether any result means that no run can succeed.
pub(crate) fn has_failed(checks: &[DoctorCheck]) -> bool {
    checks.iter().any(|check| check.level == CheckLevel::Fail)
}

#[cfg(test)]
mod tests;
