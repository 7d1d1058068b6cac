//! The same through a real `ssh` and a real `sshd` without a port: the client's `ssh` starts it in place of a
//! connection, with keys and configurations of the test.
//!
//! Skipped with a message if no `sshd` can be run; `.ci/run` installs one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runner_testkit::Home;
use runner_testkit::invariants::print_figure;

use super::{RUN, TwoMachines};

/// Returns an OpenSSH program, which may be only in root's `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Returns `ssh` and `sshd` if both can be run; as root, the latter needs its own folder.
fn find_ssh_programs() -> Option<(PathBuf, PathBuf)> {
    let is_root = nix::unistd::geteuid().is_root();
    let is_ready = !is_root || Path::new("/run/sshd").is_dir();
    find_program("ssh").zip(find_program("sshd")).filter(|_| is_ready)
}

/// Creates a key pair and returns the private key.
fn make_key(home: &Home, name: &str) -> PathBuf {
    let file = home.path().join(name);
    let mut keygen = Command::new("ssh-keygen");
    let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file).status();
    assert!(made.expect("ssh-keygen can be started").success());
    file
}

/// Makes the client's `ssh` reach a real `sshd`, whose logins get the environment of the other machine.
fn assert_connects(machines: &TwoMachines, (ssh, sshd): &(PathBuf, PathBuf)) {
    let local = machines.here.path();
    let remote = machines.there.path();
    let host_key = make_key(&machines.there, "host_key");
    let own_key = make_key(&machines.here, "id");
    fs::copy(own_key.with_extension("pub"), remote.join("authorized")).expect("a key can be authorized");
    let login: Vec<String> = machines.there.env().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let server = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPidFile none\nPermitRootLogin yes\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv {}\n",
        host_key.display(),
        remote.join("authorized").display(),
        login.join(" "),
    );
    fs::write(remote.join("sshd_config"), server).expect("a configuration can be written");
    let client = format!(
        "Host gpu\n  ProxyCommand {} -i -f {} -E {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
         StrictHostKeyChecking accept-new\n",
        sshd.display(),
        remote.join("sshd_config").display(),
        remote.join("sshd.log").display(),
        own_key.display(),
        local.join("known_hosts").display(),
    );
    fs::write(local.join("ssh_config"), client).expect("a configuration can be written");
    let text = format!("#!/bin/sh\nexec '{}' -F '{}' \"$@\"\n", ssh.display(), local.join("ssh_config").display());
    machines.here.install("ssh", &text);
}

#[test]
fn a_real_sshd_leads_to_the_daemon_and_the_person_behind_it_may_steer() {
    let Some(programs) = find_ssh_programs() else {
        print_figure("left out: there is no sshd that can be run here (.ci/run installs one)");
        return;
    };
    let machines = TwoMachines::new();
    assert_connects(&machines, &programs);
    let started = machines.run_on_host(&["start", "--yes", "-m", "Do it.", "--id", RUN, "--queue-only"]);
    let log = fs::read_to_string(machines.there.path().join("sshd.log")).unwrap_or_default();
    assert_eq!(started.code, 0, "{}{log}", started.stderr);
    machines.run_on_host(&["step"]).exits(0);
    let mut follows = machines.tty(&["log", "-f", "--prompt"]);
    assert_eq!(follows.wait_exit(), 0);
    // The prompt is longer than the screen.
    let printed = String::from_utf8_lossy(follows.bytes()).into_owned();
    assert!(printed.contains("A session without it has failed."), "{printed}");
    let home = machines.there.path().display().to_string();
    assert_eq!(machines.repo.git(&["show", &format!("runner/{RUN}:home.txt")]), home);
    let unknown = machines.here.ctl(&["--host", "ssh://no-such-host.invalid", "status"]);
    unknown.exits(5);
    assert!(unknown.stderr.contains("ssh did not get to ssh://no-such-host.invalid: "), "{}", unknown.stderr);
}
