//! `runnerctl service` with a scripted service manager: its calls, the files written, and the effect on a running
//! daemon.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::words::RunStatus;
use runner_testkit::invariants::{assert_consistent, list_verdicts, splitting_repo};
use runner_testkit::{Home, ProgramOutput, binary};

/// Records its calls, starts the program named by the unit, and stops it.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$HOME/asked"
pid=$(cat "$HOME/main.pid" 2>/dev/null)
case "$*" in
  *--property=Version*) echo Version=252 ;;
  *"show --property=ActiveState,SubState,MainPID"*)
    if kill -0 "$pid" 2>/dev/null; then echo "ActiveState=active"; echo "SubState=running"; echo "MainPID=$pid"; fi ;;
  *" start runnerd.socket runnerd.service")
    if kill -0 "$pid" 2>/dev/null && [ -S "$RUNNERD_SOCKET" ]; then exit 0; fi
    program=$(sed -n 's/^ExecStart="\(.*\)"$/\1/p' "$XDG_CONFIG_HOME/systemd/user/runnerd.service")
    ( "$program" --launched </dev/null 2>>"$HOME/runnerd.stderr" & echo $! > "$HOME/main.pid" ) | { read -r line; [ "$line" = READY ]; } ;;
  *"disable --now"*)
    kill "$pid"; rm "$HOME/main.pid"
    while [ -S "$RUNNERD_SOCKET" ]; do sleep 0.02; done ;;
esac
"#;

const NO_BUS: &str = "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n";

/// A home with its own copies of the programs, which can be replaced.
struct InstalledService {
    home: Home,
}

impl InstalledService {
    fn with_systemctl(systemctl: &str) -> Self {
        let home = Home::new();
        home.install("systemctl", systemctl);
        fs::create_dir(home.path().join("opt")).expect("a folder can be made");
        let installed = Self { home };
        for program in ["runnerctl", "runnerd"] {
            installed.replace(program);
        }
        installed
    }

    fn program(&self, name: &str) -> PathBuf {
        self.home.path().join("opt").join(name)
    }

    /// Installs a program as an upgrade does: first under another name.
    fn replace(&self, name: &str) {
        let new = self.program("new");
        fs::copy(binary(name), &new).expect("a program can be copied");
        fs::rename(&new, self.program(name)).expect("a program can be replaced");
    }

    fn ctl(&self, args: &[&str]) -> ProgramOutput {
        self.home.run_program(&self.program("runnerctl"), &[&["--no-spawn"], args].concat())
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.home.path().join("config/systemd/user").join(name)
    }

    /// Returns the calls of the service manager since the previous call of this function.
    fn systemctl_calls(&self) -> Vec<String> {
        let file = self.home.path().join("asked");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().filter(|line| !line.contains("show")).map(str::to_owned).collect()
    }

    fn pid(&self) -> u64 {
        self.ctl(&["service", "status", "--json"]).exits(0).json()["pid"].as_u64().expect("a process id")
    }
}

#[test]
fn install_writes_the_units_and_starts_the_daemon_that_they_name() {
    let installed = InstalledService::with_systemctl(SYSTEMCTL);
    let reply = installed.ctl(&["service", "install", "--json"]).exits(0).json();
    assert_eq!(reply["schema"], "runner/service.v1");
    assert_eq!(reply["changed"].as_array().map(Vec::len), Some(2), "{reply}");
    let service = fs::read_to_string(installed.unit("runnerd.service")).expect("a unit");
    assert!(service.contains(&format!("ExecStart=\"{}\"\n", installed.program("runnerd").display())), "{service}");
    let socket = fs::read_to_string(installed.unit("runnerd.socket")).expect("a unit");
    assert!(socket.contains(&format!("ListenStream={}\n", installed.home.socket().display())), "{socket}");
    let calls = installed.systemctl_calls();
    let order =
        ["daemon-reload", "enable runnerd.service", "reset-failed runnerd", "start runnerd.socket runnerd.service"];
    assert!(calls.iter().zip(order).all(|(line, word)| line.contains(word)), "{calls:#?}");
    let status = installed.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert_eq!(status["pid"], installed.pid());
}

#[test]
fn install_again_leaves_units_and_daemon_as_they_are() {
    let installed = InstalledService::with_systemctl(SYSTEMCTL);
    installed.ctl(&["service", "install"]).exits(0);
    let before = installed.pid();
    let reply = installed.ctl(&["service", "install", "--json"]).exits(0).json();
    assert_eq!(reply["changed"].as_array().map(Vec::len), Some(0), "{reply}");
    let after = installed.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert_eq!(after["pid"].as_u64(), Some(before));
}

#[test]
fn a_unit_that_a_person_has_changed_is_neither_overwritten_nor_removed() {
    let installed = InstalledService::with_systemctl(SYSTEMCTL);
    installed.ctl(&["service", "install", "--no-start"]).exits(0);
    let unit = installed.unit("runnerd.service");
    let mine = fs::read_to_string(&unit).expect("a unit").replace("WatchdogSec=60", "WatchdogSec=600");
    fs::write(&unit, &mine).expect("it can be changed");
    for verb in ["install", "uninstall"] {
        let stderr = installed.ctl(&["service", verb]).exits(6).stderr.clone();
        assert!(stderr.contains("was changed by hand") && stderr.contains("hint: mv "), "{stderr}");
        assert_eq!(fs::read_to_string(&unit).expect("a unit"), mine);
    }
}

#[test]
fn uninstall_ends_the_daemon_and_leaves_its_state() {
    let installed = InstalledService::with_systemctl(SYSTEMCTL);
    let drop_in = installed.unit("runnerd.service.d/mine.conf");
    fs::create_dir_all(drop_in.parent().unwrap_or(Path::new("/"))).expect("a folder can be made");
    fs::write(&drop_in, "[Service]\nWatchdogSec=600\n").expect("a drop-in can be written");
    installed.ctl(&["service", "install"]).exits(0);
    installed.systemctl_calls();
    installed.ctl(&["service", "uninstall"]).exits(0);
    let calls = installed.systemctl_calls();
    assert!(calls[0].contains("disable --now runnerd.socket runnerd.service"), "{calls:#?}");
    assert!(!installed.unit("runnerd.service").exists() && !installed.unit("runnerd.socket").exists());
    assert!(drop_in.exists() && installed.home.state().join("lock").exists());
    installed.ctl(&["service", "uninstall"]).exits(0);
    installed.ctl(&["service", "status"]).exits(5);
}

#[test]
fn without_a_service_manager_nothing_is_written_and_the_way_without_is_named() {
    let installed = InstalledService::with_systemctl(NO_BUS);
    let stderr = installed.ctl(&["service", "install"]).exits(1).stderr.clone();
    assert!(stderr.contains("Failed to connect to bus") && stderr.contains("hint: runnerctl daemon run"), "{stderr}");
    assert!(!installed.unit("runnerd.service").exists());
    installed.ctl(&["service", "install", "--no-start"]).exits(0);
    assert!(installed.unit("runnerd.service").exists(), "an image can be prepared without one");
}

#[test]
fn a_client_has_the_service_manager_start_the_daemon_where_the_service_is_installed() {
    let installed = InstalledService::with_systemctl(SYSTEMCTL);
    installed.ctl(&["service", "install"]).exits(0);
    installed.ctl(&["daemon", "stop"]).exits(0);
    installed.systemctl_calls();
    installed.home.run_program(&installed.program("runnerctl"), &["repos", "--json"]).exits(0);
    assert_eq!(installed.systemctl_calls(), ["--user start runnerd.socket runnerd.service"]);
}

#[test]
fn an_upgrade_in_the_middle_of_a_run_loses_no_iteration() {
    let installed = InstalledService::with_systemctl(SYSTEMCTL);
    let home = &installed.home;
    let repo = splitting_repo(home, "one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "gate session; decompose 'Split.' first second");
    installed.ctl(&["service", "install"]).exits(0);
    let before = installed.pid();
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    installed.replace("runnerd");
    let status = installed.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert_eq!(status["outdated"], true, "{status}");
    std::thread::scope(|scope| {
        let install = || scope.spawn(|| installed.ctl(&["service", "install"]));
        let install = home.client().act_until_stopping(install);
        gate.open();
        install.join().expect("it ends").exits(0);
    });
    assert_ne!(installed.pid(), before, "the new program runs");
    home.client().wait_for(repo.path(), RunStatus::Completed);
    let status = installed.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert_eq!(status["outdated"], false, "{status}");
    assert!(list_verdicts(&repo).iter().all(|verdict| verdict != "Interrupted"), "{:?}", list_verdicts(&repo));
    assert_consistent(&repo);
}
