//! The death of the daemon. This test's own binary, started again, takes the daemon's place.

use std::{
    env,
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use protocol::words::Containment;
use runner_process::{Mark, SpawnError, SweepReport, end_survivors, run_program, shield_daemon};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::kit::{PATIENCE, RunningProgram, TestFolder, WatchedProcess, agent, assert_all_dead, launcher, launcher_at};

/// What the stand-in does: see [`stand_in`].
const WAY: &str = "PROCESS_TEST_WAY";
/// The arguments of the `agent.py` that it runs.
const CALL: &str = "PROCESS_TEST_CALL";
/// The folder that it works in.
const FOLDER: &str = "PROCESS_TEST_FOLDER";

/// The level of containment that it uses.
const LEVEL: &str = "PROCESS_TEST_LEVEL";

/// A second process that runs a program, and dies while doing so.
pub(crate) struct DyingDaemon {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The mark of its program, if it sets one.
    mark: Option<Mark>,
}

impl DyingDaemon {
    fn start(way: &str, call: &str, bench: &TestFolder) -> Self {
        Self::start_at(Containment::Walk, (way, call), bench)
    }

    pub(crate) fn start_at(level: Containment, (way, call): (&str, &str), bench: &TestFolder) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "daemon::stand_in", "--ignored", "--nocapture"])
            .envs([(WAY, way), (CALL, call), (LEVEL, level.as_str())])
            .env(FOLDER, bench.folder())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, mark: (way != "bare").then(|| bench.mark()) }
    }

    pub(crate) fn processes(&mut self, count: usize) -> Vec<WatchedProcess> {
        let mark = self.mark.clone();
        let read = |line: String| match &mark {
            Some(mark) => WatchedProcess::of_program(&line, mark),
            None => WatchedProcess::from_line(&line),
        };
        self.lines.by_ref().filter_map(|line| read(line.unwrap())).take(count).collect()
    }

    /// Waits for the line that reports the result.
    fn says(&mut self) -> String {
        self.lines.by_ref().find_map(|line| Some(line.unwrap().strip_prefix("SAYS ")?.to_owned())).unwrap()
    }

    fn watch(&self) -> WatchedProcess {
        WatchedProcess::open(self.child.id().try_into().unwrap())
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
#[ignore = "stands in for the daemon when another test starts it"]
fn stand_in() {
    let bench = TestFolder::shared(env::var_os(FOLDER).unwrap().into());
    let call = env::var(CALL).unwrap();
    match env::var(WAY).unwrap().as_str() {
        "bare" => {
            let argv = agent(&call);
            Command::new(&argv[0]).args(&argv[1..]).status().unwrap();
        }
        "shim" => runtime().block_on(async {
            let level = env::var(LEVEL).unwrap().parse().unwrap();
            let launcher = launcher_at(level, &bench).await.expect("the machine offers it");
            forward(RunningProgram::start_with(launcher, bench.agent(&call))).await;
        }),
        "short budget" => {
            let mut spec = bench.agent(&call);
            // Enough time for the program to report its position on a busy machine.
            spec.limits.budget = Duration::from_secs(5);
            spec.limits.grace = Duration::ZERO;
            runtime().block_on(async { forward(RunningProgram::start(spec)).await });
        }
        "few descriptors" => runtime().block_on(with_few_descriptors(&bench)),
        "small files" => {
            shield_daemon().unwrap();
            setrlimit(Resource::RLIMIT_FSIZE, 4096, 4096).unwrap();
            runtime().block_on(async { forward(RunningProgram::start(bench.agent(&call))).await });
        }
        way => panic!("{way}"),
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Forwards what a program prints and how it ends.
async fn forward(mut running: RunningProgram) {
    while let Some(line) = running.lines.next().await {
        if line.starts_with("PID") {
            say(&line);
        }
    }
    let report = running.report().await;
    let fault = report.log_fault.map(|fault| fault.kind());
    say(&format!("SAYS {:?} {fault:?} {}", report.end, report.captured_bytes));
}

/// Tries to start without a free descriptor, and again with some.
async fn with_few_descriptors(bench: &TestFolder) {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let start = || async { run_program(&launcher(), bench.sh("exit 7"), &CancellationToken::new()).await };
    setrlimit(Resource::RLIMIT_NOFILE, open + 2, hard).unwrap();
    let refused = matches!(start().await, Err(SpawnError::Shortage(_)));
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    say(&format!("SAYS refused: {refused}, then: {:?}", start().await.unwrap().end));
}

/// Kills the daemon when `count` processes are ready, and waits until they and the shim are dead.
fn assert_death_of_daemon_ends_all(call: &str, count: usize) {
    let bench = TestFolder::new();
    let mut daemon = DyingDaemon::start("shim", call, &bench);
    let mut processes = daemon.processes(count);
    let shim = processes.iter().map(WatchedProcess::parent).find(|parent| parent.name() == "runnerd-shim");
    processes.push(shim.expect("one of the processes is the leader, whose parent is the shim"));
    daemon.kill();
    for process in &processes {
        assert!(process.dies_within(PATIENCE), "{} is still alive", process.pid);
    }

    let mut control = DyingDaemon::start("bare", call, &bench);
    let processes = control.processes(count);
    control.kill();
    assert!(processes.iter().any(|process| !process.is_dead()), "the control leaves nothing either");
    processes.iter().for_each(WatchedProcess::kill);
}

#[test]
fn death_of_the_daemon_ends_a_program_and_what_it_hid() {
    assert_death_of_daemon_ends_all("hides scrub", 2);
}

#[test]
fn death_of_the_daemon_ends_a_program_that_ignores_sigterm() {
    assert_death_of_daemon_ends_all("ignores-term", 1);
}

#[test]
fn death_of_the_daemon_ends_groups_of_their_own() {
    assert_death_of_daemon_ends_all("own-groups", 6);
}

#[test]
fn death_of_the_daemon_ends_what_a_subreaper_collected() {
    assert_death_of_daemon_ends_all("nested-subreaper", 3);
}

#[test]
fn death_of_the_daemon_ends_what_is_stopped() {
    assert_death_of_daemon_ends_all("stopped", 2);
}

#[test]
fn daemon_that_is_stopped_does_not_extend_the_budget() {
    let bench = TestFolder::new();
    let mut daemon = DyingDaemon::start("short budget", "hides", &bench);
    let processes = daemon.processes(2);
    daemon.watch().signal(Signal::STOP);
    for process in &processes {
        assert!(process.dies_within(PATIENCE), "{} is still alive", process.pid);
    }
    daemon.watch().signal(Signal::CONT);
    assert_eq!(daemon.says().split(' ').next(), Some("TimedOut"));
    daemon.end();
}

/// Kills daemon and shim, so that hidden processes survive, and searches for these.
fn assert_search_finds(call: &str) {
    let bench = TestFolder::new();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let bystander = WatchedProcess::open(child.id().try_into().unwrap());
    let mut daemon = DyingDaemon::start("shim", call, &bench);
    let processes = daemon.processes(2);
    let hidden = &processes[0];
    let leader = &processes[1];
    let shim = leader.parent();
    shim.signal(Signal::STOP);
    daemon.kill();
    shim.kill();
    assert!(leader.dies_within(PATIENCE), "the leader outlived the shim");
    assert!(!hidden.is_dead(), "there is nothing to search for");

    let swept = end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap();
    assert_eq!(swept, SweepReport { ended: vec![hidden.pid] });
    assert_all_dead(&processes);
    assert_eq!(end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap(), SweepReport { ended: vec![] });
    assert!(!bystander.is_dead(), "a bystander was hit");
    bystander.kill();
    child.wait().unwrap();
}

#[test]
fn survivor_of_an_earlier_life_is_found_without_its_environment() {
    assert_search_finds("hides scrub");
}

#[test]
fn survivor_of_an_earlier_life_is_found_though_it_hides_itself() {
    assert_search_finds("hides nondump");
}

#[test]
fn shim_of_an_earlier_life_that_is_stopped_is_ended_with_its_program() {
    let bench = TestFolder::new();
    let mut daemon = DyingDaemon::start("shim", "hides scrub", &bench);
    let mut processes = daemon.processes(2);
    let shim = processes[1].parent();
    shim.signal(Signal::STOP);
    daemon.kill();
    processes.push(shim);
    assert!(processes.iter().all(|process| !process.is_dead()), "there is nothing to search for");
    end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap();
    assert_all_dead(&processes);
}

#[test]
fn search_without_an_earlier_life_finds_nothing() {
    let bench = TestFolder::new();
    let swept = end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap();
    assert_eq!(swept, SweepReport { ended: vec![] });
}

#[test]
fn shortage_of_descriptors_is_an_obstacle_that_passes() {
    let bench = TestFolder::new();
    let mut daemon = DyingDaemon::start("few descriptors", "", &bench);
    assert_eq!(daemon.says(), "refused: true, then: Exited(7)");
    daemon.end();
}

#[test]
fn log_that_may_not_grow_is_reported_and_holds_nothing_up() {
    let bench = TestFolder::new();
    let mut daemon = DyingDaemon::start("small files", "floods 4 1", &bench);
    assert_eq!(daemon.says(), "Exited(0) Some(FileTooLarge) 4096");
    daemon.end();
}
