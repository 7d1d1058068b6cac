//! A daemon with many repositories: the latency of `status`, the daemon's memory, and how often it wakes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use protocol::api::RunApiClient as _;
use runner_testkit::{Daemon, Home, IdleConnections, Repo};

use crate::observe::{peak_mib, resident_mib};
use crate::report::{Report, print_progress};
use crate::samples::Samples;

const REQUEST_BUDGET: Duration = Duration::from_millis(1);
const RESIDENT_BUDGET_MIB: f64 = 25.0;
/// Below the daemon's limit of connections, which is 1,024.
const CONNECTIONS: usize = 1_000;
const REQUESTS_AMONG_THEM: u32 = 1_000;

/// How large the crowd is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CrowdArgs {
    /// Repositories that are registered, none of which does anything.
    #[arg(long, default_value_t = 100)]
    repositories: u32,
    /// Processes that are started of each kind.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Requests on the open connection.
    #[arg(long, default_value_t = 5_000)]
    requests: u32,
    /// Seconds for which the idle daemon is watched.
    #[arg(long, default_value_t = 60)]
    idle_secs: u64,
}

impl Default for CrowdArgs {
    fn default() -> Self {
        Self { repositories: 100, rounds: 100, requests: 5_000, idle_secs: 60 }
    }
}

/// Registers the repositories and measures daemon and client.
pub(crate) fn measure(args: &CrowdArgs, report: &mut Report) {
    print_progress(&format!("crowd: registering {} repositories", args.repositories));
    let home = Home::new();
    let repos = register_repositories(&home, args.repositories);
    // A freshly started daemon: memory needed only to register the repositories must not count.
    let daemon = home.daemon();
    measure_idle(args, &daemon, report);
    measure_requests(args, &home, &repos[0], report);
    measure_processes(args, &home, report);
    measure_connections(&home, &daemon, &repos[0], report);
}

/// Registers repositories, each with a paused run, and returns their work trees.
pub(crate) fn register_repositories(home: &Home, count: u32) -> Vec<PathBuf> {
    let first = home.scripted_repo("repo");
    let folder = |number: u32| home.path().join(format!("repos/repo{number}"));
    let copy = |number: u32| {
        let status = Command::new("cp").arg("-r").arg(first.path()).arg(folder(number)).status();
        assert!(status.expect("cp can be started").success(), "a repository can be copied");
        folder(number)
    };
    let repos: Vec<PathBuf> = (0..count).map(copy).collect();
    let _daemon = home.daemon();
    for repo in &repos {
        let path = repo.display().to_string();
        home.ctl(&["start", "--queue-only", "--yes", "-m", "Do it", &path]).exits(0);
    }
    repos
}

fn measure_idle(args: &CrowdArgs, daemon: &Daemon, report: &mut Report) {
    let mut group = report.group(format!("idle daemon, {} repositories", args.repositories));
    // Startup work is over once the daemon has been idle for a second.
    let mut before = voluntary_switches(daemon.pid());
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = voluntary_switches(daemon.pid());
        if now == before {
            break;
        }
        before = now;
    }
    group.add_number("resident", resident_mib(daemon.pid()), "MiB", Some(RESIDENT_BUDGET_MIB));
    group.add_number("resident at most since its start", peak_mib(daemon.pid()), "MiB", None);
    print_progress(&format!("crowd: watching the idle daemon for {} s", args.idle_secs));
    let began = Instant::now();
    let before = voluntary_switches(daemon.pid());
    thread::sleep(Duration::from_secs(args.idle_secs));
    let wakeups = voluntary_switches(daemon.pid()) - before;
    group.add(format!("wake-ups in {:.0} s, all threads", began.elapsed().as_secs_f64()), wakeups.to_string());
    group.add("threads", list_threads(daemon.pid()).len().to_string());
}

fn list_threads(pid: i32) -> Vec<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon is alive");
    tasks.flatten().map(|task| task.path()).collect()
}

/// Returns how often threads of a process yielded the processor voluntarily: each was woken as often.
fn voluntary_switches(pid: i32) -> u64 {
    let task_switches = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    list_threads(pid).into_iter().filter_map(task_switches).sum()
}

fn measure_requests(args: &CrowdArgs, home: &Home, repo: &Path, report: &mut Report) {
    let client = home.client();
    let mut one = Samples::default();
    let mut all = Samples::default();
    for _ in 0..args.requests {
        one.time(|| client.status(repo));
    }
    for _ in 0..args.requests / 10 {
        all.time(|| client.wait(client.rpc().status_all()).expect("the daemon answers"));
    }
    let mut group = report.group(format!("open connection, {} repositories", args.repositories));
    group.add_bounded("status of one", &one, 99, REQUEST_BUDGET);
    group.add_times("status of all", &all);
}

fn measure_processes(args: &CrowdArgs, home: &Home, report: &mut Report) {
    print_progress("crowd: starting processes");
    let empty = home.repo("empty");
    empty.git(&["checkout", "-q", "--orphan", "empty"]);
    empty.git(&["rm", "-rqf", "."]);
    let repo = home.path().join("repos/repo0");
    let [mut nothing, mut git, mut one, mut all] = [(); 4].map(|()| Samples::default());
    for _ in 0..args.rounds {
        nothing.time(|| run_silently(home, "true", &[]));
        git.time(|| run_silently_in(&empty, "git", &["status"]));
        one.time(|| run_silently(home, "runnerctl", &["--no-spawn", "status", &repo.display().to_string()]));
        all.time(|| run_silently(home, "runnerctl", &["--no-spawn", "status", "--all"]));
    }
    let mut group = report.group(format!("whole process, {} repositories", args.repositories));
    group.add_times("true", &nothing);
    group.add_times("git status, empty repository", &git);
    group.add_times("runnerctl status PATH", &one);
    group.add_times("runnerctl status --all", &all);
    for (what, times) in [("runnerctl status PATH", &one), ("runnerctl status --all", &all)] {
        group.add_ratio(format!("{what} against true"), times, &nothing, 3.0);
        group.add_ratio(format!("{what} against git status"), times, &git, 1.0);
    }
}

/// Runs a program as a user's shell would, discarding its output.
fn run_silently(home: &Home, program: &str, args: &[&str]) {
    let mut command = if program == "runnerctl" { home.command(program) } else { Command::new(program) };
    command.env_clear().envs(home.env().iter().cloned()).current_dir(home.path()).args(args);
    assert_succeeds(command);
}

fn run_silently_in(repo: &Repo, program: &str, args: &[&str]) {
    let mut command = Command::new(program);
    command.args(args).current_dir(repo.path());
    assert_succeeds(command);
}

fn assert_succeeds(mut command: Command) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("the program can be started").success(), "{command:?} fails");
}

fn measure_connections(home: &Home, daemon: &Daemon, repo: &Path, report: &mut Report) {
    let before = resident_mib(daemon.pid());
    raise_descriptor_limit();
    let crowd = IdleConnections::open(&home.socket(), CONNECTIONS);
    let with = resident_mib(daemon.pid());
    let client = home.client();
    let mut status = Samples::default();
    for _ in 0..REQUESTS_AMONG_THEM {
        status.time(|| client.status(repo));
    }
    drop(crowd);
    let mut group = report.group(format!("{CONNECTIONS} open connections that ask nothing"));
    group.add_number("resident before", before, "MiB", None);
    group.add_number("resident with them", with, "MiB", None);
    group.add_bounded("status of one, on one more", &status, 99, REQUEST_BUDGET);
}

/// Raises the descriptor limit so that this program can hold the client ends.
fn raise_descriptor_limit() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a process has limits");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("a limit can be raised to what is allowed");
}
