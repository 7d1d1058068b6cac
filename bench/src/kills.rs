//! Time from the death of the daemon to the death of every process: each misbehaving program, at each containment
//! level.
//!
//! The control is the same program when only its leader is killed, as a runner without containment would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use protocol::api::DaemonApiClient as _;
use protocol::words::Containment;
use runner_testkit::{Home, Repo};

use crate::observe::{HOLD_LOCK, agent_script, kill_all, kill_process, time_to_death, wait_until};
use crate::report::{Report, print_progress};
use crate::samples::Samples;

const GROUP: &str = "kill -9 of the daemon to all dead";
/// A process that outlives the daemon by this has survived.
const SURVIVAL_LIMIT: Duration = Duration::from_secs(20);
/// A process of the control that outlives its leader by this is not about to die.
const LEAK_LIMIT: Duration = Duration::from_millis(500);
const READY_LIMIT: Duration = Duration::from_secs(30);

/// How often each case is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct KillsArgs {
    /// Measurements of each case at each level.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

impl Default for KillsArgs {
    fn default() -> Self {
        Self { rounds: 5 }
    }
}

/// A misbehaving program.
struct KillCase {
    name: &'static str,
    /// Command line of the program.
    call: &'static str,
    /// Number of processes that must report ready.
    ready: usize,
}

const CASES: [KillCase; 9] = [
    KillCase { name: "ignores SIGTERM", call: "ignores-term", ready: 1 },
    KillCase { name: "double fork and setsid", call: "hides", ready: 2 },
    KillCase { name: "the same, environment cleared", call: "hides scrub", ready: 2 },
    KillCase { name: "the same, not dumpable", call: "hides scrub nondump", ready: 2 },
    KillCase { name: "holds the output", call: "hides keepfds", ready: 2 },
    KillCase { name: "stopped", call: "stopped", ready: 2 },
    KillCase { name: "groups of their own", call: "own-groups", ready: 6 },
    KillCase { name: "nested subreaper", call: "nested-subreaper", ready: 3 },
    KillCase { name: "comet, 20 lines", call: "comet 20 \"$kit/files/comet\"", ready: 1 },
];

/// Measures all cases at all levels that the machine supports.
pub(crate) fn measure(args: &KillsArgs, report: &mut Report) {
    for case in &CASES {
        let leaks = if leaks_without_daemon(case) { "leaks" } else { "does not leak: it is its leader alone" };
        report.group("control: only the leader is killed").add(case.name, leaks);
    }
    let mut group = report.group(GROUP);
    for level in [Containment::Walk, Containment::Cgroup, Containment::Pidns] {
        print_progress(&format!("kills: level {level}"));
        for case in &CASES {
            let times: Vec<_> = (0..args.rounds).map(|_| kill_daemon_during(case, level)).collect();
            let Ok(times) = times.into_iter().collect::<Result<Vec<_>, LevelNotOffered>>() else {
                group.add(format!("{level}"), "not offered by this machine");
                break;
            };
            let survived = times.iter().filter(|time| time.is_none()).count();
            let times: Samples = times.into_iter().flatten().collect();
            group.add_times(format!("{level}: {}", case.name), &times);
            group.add_zero(format!("{level}: {}: survived", case.name), survived);
        }
    }
}

/// The machine does not support the level.
#[derive(Debug)]
struct LevelNotOffered;

/// Kills the daemon while the program runs. Returns the time until everything is dead, or `None` if something survives.
fn kill_daemon_during(case: &KillCase, level: Containment) -> Result<Option<Duration>, LevelNotOffered> {
    let home = Home::new();
    let settings = home.path().join("config/runnerd");
    fs::create_dir_all(&settings).expect("a folder can be made");
    fs::write(settings.join("config.toml"), format!("containment = \"{level}\"\n")).expect("a file can be written");
    let repo = home.scripted_repo("one");
    let lock = prepare_script(&repo, case);
    let daemon = home.daemon();
    let client = home.client();
    if client.wait(client.rpc().info()).expect("the daemon says what it is").containment != level {
        return Err(LevelNotOffered);
    }
    home.ctl_in(&repo, &["start", "--yes", "--id", "it", "-m", "Do it"]).exits(0);
    let log = repo.path().join(".runner/iterations/it/0001/executor.log");
    assert!(wait_until(READY_LIMIT, || count_ready(&log) >= case.ready), "{} is never ready", case.name);
    daemon.kill();
    let death_time = time_to_death(&lock, SURVIVAL_LIMIT).expect("the lock can be looked at");
    kill_all(&home);
    Ok(death_time)
}

/// Starts the program without supervision, kills only its leader, and returns whether anything survives.
fn leaks_without_daemon(case: &KillCase) -> bool {
    let home = Home::new();
    let repo = home.scripted_repo("one");
    let lock = prepare_script(&repo, case);
    let log = home.path().join("bare.log");
    let output = fs::File::create(&log).expect("a file can be made");
    let mut leader = Command::new("sh")
        .args(["-c", &agent_command(case)])
        .env("kit", repo.script().folder())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(output)
        .spawn()
        .expect("a shell can be started");
    assert!(wait_until(READY_LIMIT, || count_ready(&log) >= case.ready), "{} is never ready", case.name);
    kill_process(i32::try_from(leader.id()).expect("BUG: a process id is an i32"));
    leader.wait().expect("the leader can be waited for");
    let leaks = time_to_death(&lock, LEAK_LIMIT).expect("the lock can be looked at").is_none();
    let _ = fs::remove_file(repo.script().folder().join("files/comet"));
    kill_all(&home);
    leaks
}

fn prepare_script(repo: &Repo, case: &KillCase) -> PathBuf {
    repo.script().file("alive", "").file("comet", "");
    repo.script().always(&agent_command(case));
    repo.script().folder().join("files/alive")
}

fn agent_command(case: &KillCase) -> String {
    format!("{HOLD_LOCK}exec python3 {} {}", agent_script().display(), case.call)
}

fn count_ready(log: &Path) -> usize {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("PID ")).count()
}
