//! systemd's own programs with the units and the daemon. These tests are skipped if the programs are not installed,
//! except in continuous integration, which installs them.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_testkit::{Home, binary};

/// Returns one of systemd's programs; `None` if it may be missing.
fn find_program(program: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file());
    let is_needed = env::var_os("CI").is_some_and(|value| value == "true");
    assert!(found.is_some() || !is_needed, "{program} is not installed");
    found
}

fn daemon_command(program: &PathBuf, home: &Home) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(home.env().iter().cloned()).current_dir(home.path());
    command
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let Some(analyze) = find_program("systemd-analyze") else { return };
    let home = Home::new();
    home.ctl(&["service", "install", "--no-start"]).exits(0);
    let verify = || {
        let mut command = daemon_command(&analyze, &home);
        command.args(["--user", "verify", "--man=no"]);
        let units = home.path().join("config/systemd/user");
        let output = command.args([units.join("runnerd.service"), units.join("runnerd.socket")]).output();
        let output = output.expect("it can be run");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(verify(), (true, String::new()));
    // Errors are detected.
    let unit = home.path().join("config/systemd/user/runnerd.service");
    let text = std::fs::read_to_string(&unit).expect("a unit").replace("WatchdogSec", "WachdogSec");
    std::fs::write(&unit, text).expect("it can be changed");
    assert!(verify().1.contains("WachdogSec"), "{:?}", verify());
}

/// `systemd-socket-activate`, which becomes the daemon when a client connects.
struct ActivatedDaemon(Child);

impl Drop for ActivatedDaemon {
    fn drop(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("BUG: a process id is an i32"));
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

#[test]
fn a_daemon_that_systemd_starts_for_a_connection_answers_it() {
    let Some(activate) = find_program("systemd-socket-activate") else { return };
    let home = Home::new();
    let mut command = daemon_command(&activate, &home);
    // It passes on only what it is told to.
    for name in ["HOME", "PATH", "RUNNERD_STATE", "XDG_CONFIG_HOME"] {
        command.args(["-E", name]);
    }
    command.arg("-l").arg(home.socket()).arg(binary("runnerd"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut activated = ActivatedDaemon(child.expect("it can be run"));
    let mut words = BufReader::new(activated.0.stderr.take().expect("BUG: standard error is a pipe"));
    let mut line = String::new();
    words.read_line(&mut line).expect("it says that it listens");
    assert!(line.starts_with("Listening on"), "{line}");
    let status = home.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert_eq!(status["socket_passed"], true, "{status}");
    assert_eq!(status["socket"], home.socket().display().to_string());
    assert_eq!(status["pid"].as_u64(), Some(activated.0.id().into()), "it is the process that systemd made");
    home.ctl(&["daemon", "stop"]).exits(0);
    assert!(home.socket().exists(), "its name is systemd's");
}
