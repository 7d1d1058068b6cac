//! The interface between a service manager and the daemon: the socket, the notifications, the watchdog.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::time::Duration;

use protocol::words::RunStatus;
use runner_testkit::{Home, PATIENCE, ServiceManager, binary};

/// Long enough not to matter.
const UNHURRIED: Duration = PATIENCE;

#[test]
fn a_socket_that_was_passed_is_served_and_stays_when_the_daemon_ends() {
    let home = Home::new();
    let manager = ServiceManager::new(&home);
    let daemon = manager.start(&binary("runnerd"), UNHURRIED);
    let status = home.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert_eq!(status["socket_passed"], true, "{status}");
    assert_eq!(status["pid"], daemon.pid());
    assert!(daemon.stop().success());
    manager.expect_notification("STOPPING=1");
    assert!(home.socket().exists(), "its name is the service manager's");
    let _daemon = manager.start(&binary("runnerd"), UNHURRIED);
    home.client();
}

#[test]
fn a_command_that_came_before_the_daemon_is_answered_when_it_is_up() {
    let home = Home::new();
    let manager = ServiceManager::new(&home);
    let mut command = home.command("runnerctl");
    command.args(["--no-spawn", "daemon", "status"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = command.spawn().expect("the client can be started");
    let _daemon = manager.start(&binary("runnerd"), UNHURRIED);
    let output = waiting.wait_with_output().expect("the client ends");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn stop_and_drain_end_a_daemon_whose_socket_stays() {
    let home = Home::new();
    let manager = ServiceManager::new(&home);
    for verb in ["stop", "drain"] {
        let daemon = manager.start(&binary("runnerd"), UNHURRIED);
        let stdout = home.ctl(&["daemon", verb]).exits(0).stdout.clone();
        assert_eq!(stdout, format!("daemon {} stopped\n", daemon.pid()));
        daemon.wait_killed();
    }
}

#[test]
fn a_daemon_that_stands_still_gives_no_sign_of_life() {
    let home = Home::new();
    let manager = ServiceManager::new(&home);
    let watchdog = Duration::from_millis(200);
    let daemon = manager.start(&binary("runnerd"), watchdog);
    manager.expect_notification("WATCHDOG=1");
    manager.expect_notification("WATCHDOG=1");
    daemon.suspend();
    manager.discard_notifications();
    assert!(!manager.receives_within("WATCHDOG=1", 5 * watchdog), "a stopped process speaks");
    daemon.continue_running();
    manager.expect_notification("WATCHDOG=1");
}

#[test]
fn a_daemon_that_waits_for_a_session_to_end_keeps_the_watchdog_alive() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let gate = repo.script().gate("session");
    repo.script().step(1, "echo done > done.txt; gate session; answer done 'It is done.'");
    let manager = ServiceManager::new(&home);
    let daemon = manager.start(&binary("runnerd"), Duration::from_millis(200));
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    gate.wait_reached();
    manager.expect_notification("STATUS=repositories: 1, running: 1");
    let client = home.client();
    client.wait(protocol::api::DaemonApiClient::drain(client.rpc())).expect("it drains");
    manager.expect_notification("STATUS=draining: ends after the current iterations");
    manager.expect_notification("WATCHDOG=1");
    gate.open();
    manager.expect_notification("STOPPING=1");
    daemon.wait_killed();
}

#[test]
fn what_a_service_manager_passes_reaches_neither_session_nor_guard() {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let look = "env > $WHO.env; ls -l /proc/self/fd > $WHO.fds";
    let session = format!("WHO=session; {look}; answer done 'It is done.'");
    repo.script().step(1, &session).guard_step(1, &format!("WHO=guard; {look}"));
    let manager = ServiceManager::new(&home);
    let _daemon = manager.start(&binary("runnerd"), UNHURRIED);
    home.ctl_in(&repo, &["start", "--yes", "-m", "Do it"]).exits(0);
    home.client().wait_for(repo.path(), RunStatus::Completed);
    for who in ["session", "guard"] {
        let read = |what: &str| fs::read_to_string(repo.path().join(format!("{who}.{what}"))).expect("it looked");
        for name in ["LISTEN_", "NOTIFY_SOCKET", "WATCHDOG_"] {
            assert!(!read("env").contains(name), "{who} has {name}");
        }
        assert!(!read("fds").contains("socket:"), "{who}: {}", read("fds"));
    }
}

#[test]
fn two_sockets_are_refused_with_the_line_that_helps() {
    let home = Home::new();
    let manager = ServiceManager::new(&home);
    let mut command = manager.command(&binary("runnerd"), UNHURRIED);
    let output = command.env("LISTEN_FDS", "2").stderr(Stdio::piped()).output().expect("the daemon can be started");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("passed 2 sockets, and one is served: leave one `ListenStream=`"), "{stderr}");
    assert!(manager.receives_within(
        "STATUS=the service manager passed 2 sockets, and one is served: leave one `ListenStream=` in the socket unit",
        PATIENCE
    ));
}

#[test]
fn under_a_journal_the_log_goes_to_standard_error_with_its_priorities_and_to_no_file() {
    let home = Home::new();
    let manager = ServiceManager::new(&home);
    let mut command = manager.command(&binary("runnerd"), UNHURRIED);
    let journal = home.path().join("runnerd.stderr");
    let found = fs::metadata(&journal).expect("the manager has made it");
    command.env("JOURNAL_STREAM", format!("{}:{}", found.dev(), found.ino()));
    let mut child = command.spawn().expect("the daemon can be started");
    manager.expect_notification("READY=1");
    let status = home.ctl(&["daemon", "status", "--json"]).exits(0).json();
    assert!(status["log"].is_null(), "{status}");
    home.ctl(&["daemon", "stop"]).exits(0);
    child.wait().expect("it ends");
    let text = fs::read_to_string(&journal).expect("a text");
    assert!(text.lines().any(|line| line.starts_with("<6> INFO runnerd::daemon: listening ")), "{text}");
    assert!(text.lines().all(|line| line.starts_with('<')), "{text}");
    assert!(!home.state().join("logs").exists());
}

#[test]
fn what_is_logged_is_changed_while_the_daemon_runs_and_read_by_the_client() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.ctl(&["daemon", "log-filter", "info,runnerd::rpc=debug"]).exits(0);
    let filter = home.ctl(&["daemon", "log-filter"]).exits(0).stdout.clone();
    assert!(filter.contains("runnerd::rpc=debug"), "{filter}");
    let refused = home.ctl(&["daemon", "log-filter", "info,runnerd=loud"]).stderr.clone();
    assert!(refused.contains("cannot read `runnerd=loud`, at character 6 of the log filter"), "{refused}");
    let log = home.ctl(&["service", "logs", "-n", "1000"]).exits(0).stdout.clone();
    assert!(log.contains("INFO runnerd::daemon: listening"), "{log}");
    assert!(log.contains("DEBUG runnerd::rpc::listener: connected"), "{log}");
    let last = home.ctl(&["service", "logs", "-n", "1", "--json"]).exits(0).json();
    assert_eq!(last["schema"], "runner/log-line.v1");
}
