//! Several machines queried in parallel: a missing or hanging one does not affect the others.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_testkit::{Daemon, Home, PATIENCE, Repo, Tty, binary};
use serde_json::Value;

/// A person's machine, and a machine with a daemon and a run that has an open question.
struct HostFleet {
    here: Home,
    there: Home,
    repo: Repo,
    daemon: Option<Daemon>,
}

impl HostFleet {
    /// `ssh` reaches `gpu`, hangs on the way to `slow`, and knows no other host.
    fn new() -> Self {
        let local = Home::new();
        let remote = Home::new();
        let repo = remote.scripted_repo("one");
        repo.script().step(1, "echo '- Which port?' >> .runner/state/questions.md\nanswer retry 'Not yet.'");
        remote.install("runnerctl", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary("runnerctl").display()));
        let pairs = remote.env().iter().map(|(name, value)| format!("{name}='{value}'")).collect::<Vec<_>>().join(" ");
        let ssh = format!(
            "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nhost=$2\nshift 2\ncase $host in\n\
             gpu) exec env -i {pairs} sh -c \"$*\" ;;\nslow) exec sleep 60 ;;\nesac\n\
             echo \"no route to $host\" >&2\nexit 255\n"
        );
        local.install("ssh", &ssh);
        let daemon = Some(remote.daemon());
        remote.ctl_in(&repo, &["start", "--yes", "-m", "Do it.", "--id", "far", "--queue-only"]).exits(0);
        remote.ctl_in(&repo, &["step"]).exits(0);
        Self { here: local, there: remote, repo, daemon }
    }

    fn write_settings(&self, text: &str) {
        let folder = self.here.path().join("config/runnerctl");
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("config.toml"), text).expect("it can be written");
    }
}

#[test]
fn each_machine_is_shown_below_its_name_and_one_that_hangs_is_not_waited_for() {
    let fleet = HostFleet::new();
    fleet.write_settings("[hosts]\ngpu = \"ssh://gpu\"\nslow = \"ssh://slow\"\ngone = \"ssh://gone\"\n");
    let begun = Instant::now();
    let shown = fleet.here.ctl(&["status", "--all-hosts"]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let text = &shown.exits(0).stdout;
    for words in ["ssh://gpu\n", "paused", "ssh://gone  ssh did not get to ssh://gone", "ssh://slow  no answer within"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let questions = fleet.here.ctl(&["questions", "--host", "gpu", "--host", "ssh://gone", "--json"]).exits(0).json();
    let hosts = questions["hosts"].as_array().expect("it is a list");
    assert_eq!((&hosts[0]["host"], &hosts[0]["questions"][0]["text"]), (&"ssh://gpu".into(), &"Which port?".into()));
    assert_eq!((&hosts[1]["host"], &hosts[1]["error"]["kind"]), (&"ssh://gone".into(), &"host".into()));
    fleet.here.ctl(&["status", "--host", "gone", "--host", "ssh://lost"]).exits(5);
}

#[test]
fn machines_are_watched_one_at_a_time_and_none_is_waited_for() {
    let fleet = HostFleet::new();
    fleet.write_settings("[hosts]\na = \"ssh://gone\"\ngpu = \"ssh://gpu\"\nz = \"ssh://slow\"\n");
    let mut command = fleet.here.command("runnerctl");
    let mut tty = Tty::start(command.args(["watch", "--all-hosts"]), (120, 40));
    tty.wait_until_screen("one that is not there is told, and the others are known", |screen| {
        let expected = ["[ssh://gone] no answer", "ssh://gpu 1 paused", "ssh://slow connecting", "no route to gone"];
        expected.iter().all(|words| screen.contains(words))
    });
    tty.keys(">").wait_for_text("[ssh://gpu] 1 paused");
    tty.wait_for_text("to continue: runnerctl --host ssh://gpu");
    tty.keys("n").wait_for_text("Note to the next session");
    tty.keys("Mind it.\r").wait_for_text("note n1: the next session that answers reads it");
    tty.keys(">").wait_for_text("[ssh://slow] connecting");
    tty.keys(">").wait_for_text("[ssh://gone] no answer");
    tty.keys("q");
    assert_eq!(tty.wait_exit(), 0);
    assert!(tty.is_restored());
    assert!(fleet.there.ctl_in(&fleet.repo, &["status"]).exits(0).stdout.contains("run far"));
    fleet.here.ctl(&["watch", "--all-hosts", "/srv"]).exits(2);
}

#[test]
fn a_name_leads_where_the_settings_say_and_more_than_one_only_to_what_takes_them() {
    let fleet = HostFleet::new();
    let unknown = fleet.here.ctl(&["status", "--host", "gpu"]);
    assert!(unknown.exits(2).stderr.contains("[hosts] NAME"), "{unknown:?}");
    assert!(fleet.here.ctl(&["status", "--all-hosts"]).exits(2).stderr.contains("names no machine"));
    fleet.write_settings("[hosts]\ngpu = \"ssh://gpu\"\n");
    let path = fleet.repo.path().display().to_string();
    assert!(fleet.here.ctl(&["--host", "gpu", "-C", &path, "status"]).exits(0).stdout.contains("run far"));
    let one = fleet.here.ctl(&["status", "--all-hosts", "--json"]).exits(0).json();
    assert_eq!(one["hosts"].as_array().map(Vec::len), Some(1));
    for args in [
        &["tree", "--host", "gpu", "--host", "ssh://gone"][..],
        &["pause", "--all-hosts"],
        &["status", "--all-hosts", "--watch"],
        &["status", "--all-hosts", "--run", "far"],
        &["questions", "--all-hosts", "/srv"],
        &["doctor", "--all-hosts"],
        &["status", "--all-hosts", "--host", "gpu"],
        &["status", "--all-hosts", "--remote", "origin"],
    ] {
        fleet.here.ctl(args).exits(2);
    }
    fleet.write_settings("[hosts]\ngpu = \"gpu\"\n");
    let wrong = fleet.here.ctl(&["status", "--all-hosts"]);
    assert!(wrong.exits(1).stderr.contains("config.toml:2:7: "), "{wrong:?}");
    assert!(fleet.there.ctl_in(&fleet.repo, &["status"]).exits(0).stdout.contains("run far"), "and it is as it was");
}

/// A page at the address that the command prints; it is closed as a person would close it.
struct FleetPage {
    command: Child,
    started: Value,
}

impl FleetPage {
    fn open(fleet: &HostFleet, args: &[&str]) -> Self {
        let mut command = fleet.here.command("runnerctl");
        let command = command.args(["--json", "ui"]).args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut command = command.spawn().expect("the command can be started");
        let mut line = String::new();
        let out = command.stdout.take().expect("BUG: standard output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("it says where the page is");
        Self { command, started: serde_json::from_str(&line).expect("an address") }
    }

    /// Requests a path with the token; returns the status and the body.
    fn get(&self, path: &str) -> (u16, String) {
        let url = self.started["url"].as_str().expect("an address");
        let token = self.started["token"].as_str();
        let host = url.trim_start_matches("http://").split('/').next().expect("a host");
        let mut stream = TcpStream::connect(host).expect("it listens");
        let token = token.expect("a token");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        stream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes()).expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, reply.split_once("\r\n\r\n").expect("a head").1.to_owned())
    }

    /// Repeats the request until the body contains the text.
    fn wait_for_text(&self, path: &str, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let (_, body) = self.get(path);
            if body.contains(words) {
                return body;
            }
            assert!(begun.elapsed() < PATIENCE, "{path} never contained `{words}`: {body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for FleetPage {
    fn drop(&mut self) {
        let pid = i32::try_from(self.command.id()).expect("BUG: a process id is an i32");
        let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
        let _ = self.command.wait();
    }
}

#[test]
fn each_machine_has_a_page_and_one_that_is_not_there_keeps_the_others_from_nothing() {
    let fleet = HostFleet::new();
    fleet.write_settings("[hosts]\na = \"ssh://gone\"\ngpu = \"ssh://gpu\"\nz = \"ssh://slow\"\n");
    let page = FleetPage::open(&fleet, &["--all-hosts"]);
    page.wait_for_text("/m/1/api/repos", "\"far\"");
    page.wait_for_text("/api/repos", "no route to gone");
    page.wait_for_text("/m/2/api/repos", "no daemon has answered yet");
    let health: Value = serde_json::from_str(&page.get("/m/1/api/health").1).expect("it is JSON");
    assert_eq!((&health["host"], &health["connected"]), (&"ssh://gpu".into(), &true.into()));
    assert_eq!(health["hosts"], serde_json::json!(["ssh://gone", "ssh://gpu", "ssh://slow"]));
    assert_eq!(page.get("/m/3/api/repos").0, 404);
    assert_eq!(["/", "/m/1", "/m/2", "/m/3"].map(|path| page.get(path).0), [200, 200, 200, 404]);
    drop(page);
    fleet.here.wait_all_gone(PATIENCE);
}

#[test]
fn the_page_of_one_machine_outlives_its_daemon_and_only_looks() {
    let mut fleet = HostFleet::new();
    let path = fleet.repo.path().display().to_string();
    let page = FleetPage::open(&fleet, &["--host", "ssh://gpu", "-C", &path]);
    page.wait_for_text("/api/repos", "\"far\"");
    page.wait_for_text("/api/health", "\"host\":\"ssh://gpu\"");
    fleet.daemon.take().expect("it runs").stop();
    page.wait_for_text("/api/repos", "daemon_away");
    fleet.daemon = Some(fleet.there.daemon());
    page.wait_for_text("/api/repos", "\"far\"");
    drop(page);
    let refused = fleet.here.ctl(&["ui", "--steer", "--host", "ssh://gpu"]);
    assert!(refused.exits(2).stderr.contains("only looks"), "{}", refused.stderr);
    fleet.here.ctl(&["ui", "--host", "ssh://gpu", "--host", "ssh://gone", &path]).exits(2);
    let gone = fleet.here.ctl(&["ui", "--host", "ssh://gone"]);
    assert!(gone.exits(5).stderr.contains("no route to gone"), "{}", gone.stderr);
}
