//! What each available level of containment ends: nine programs that try to survive, in four ways of ending. A control
//! shows for each that a weaker kill would leave something.

use std::{
    fs::{File, OpenOptions},
    path::PathBuf,
    time::Duration,
};

use nix::{sys::stat::Mode, unistd::mkfifo};
use protocol::words::Containment;
use runner_os::clock::since_boot;
use runner_process::{ProbeOptions, ProgramEnd, ProgramReport, SweepReport, end_survivors, probe_host};
use runner_testkit::invariants::print_figure;
use rustix::process::Signal;

use crate::{
    bare::BareProgram,
    daemon::DyingDaemon,
    kit::{PATIENCE, RunningProgram, TestFolder, WatchedProcess, assert_all_dead, launcher, launcher_at},
};

/// A program of `agent.py`, and how many of its processes a test waits for. The leader is the last of them.
#[derive(Clone, Copy)]
struct LevelCase {
    call: &'static str,
    count: usize,
}

impl LevelCase {
    /// `@` is replaced by the folder of the test.
    fn call(self, bench: &TestFolder) -> String {
        // All processes of a comet share a lock on this file.
        File::create(bench.path("comet")).unwrap();
        self.call.replace('@', bench.folder().to_str().unwrap())
    }
}

macro_rules! cases {
    ($($name:ident: $call:literal, $count:literal;)+) => { $(
        mod $name {
            use super::LevelCase;

            pub(super) const CASE: LevelCase = LevelCase { call: $call, count: $count };

            #[tokio::test]
            async fn does_not_outlive_the_end_of_its_leader() {
                super::assert_end_ends_all(CASE).await;
            }

            #[tokio::test]
            async fn does_not_outlive_a_stop() {
                super::assert_stop_ends_all(CASE).await;
            }

            #[tokio::test]
            async fn does_not_outlive_the_daemon() {
                super::assert_death_of_daemon_ends_all(CASE).await;
            }

            #[test]
            fn would_outlive_a_lesser_kill() {
                super::assert_control_leaks(CASE);
            }
        }
    )+ }
}

cases! {
    child_that_ignores_sigterm: "ignoring-child", 2;
    double_fork: "hides", 2;
    double_fork_without_environment: "hides scrub", 2;
    double_fork_that_hides_itself: "hides nondump", 2;
    double_fork_that_holds_the_output: "hides keepfds", 2;
    stopped_child: "stopped", 2;
    groups_of_their_own: "own-groups", 6;
    nested_subreaper: "nested-subreaper", 3;
    comet: "comet 20 @/comet", 1;
}

#[tokio::test]
async fn double_fork_without_environment_does_not_outlive_its_budget() {
    assert_budget_ends_all(double_fork_without_environment::CASE).await;
}

/// The budgets of the other programs are several seconds each.
mod slow {
    macro_rules! budgets {
        ($($name:ident)+) => { $(
            #[tokio::test]
            async fn $name() {
                crate::levels::assert_budget_ends_all(crate::levels::$name::CASE).await;
            }
        )+ }
    }

    mod does_not_outlive_its_budget {
        budgets! {
            child_that_ignores_sigterm
            double_fork
            double_fork_that_hides_itself
            double_fork_that_holds_the_output
            stopped_child
            groups_of_their_own
            nested_subreaper
            comet
        }
    }
}

/// A program that is ready, at one level.
struct ReadyProgram {
    bench: TestFolder,
    level: Containment,
    running: RunningProgram,
    processes: Vec<WatchedProcess>,
    group: Option<PathBuf>,
}

/// Starts a program at each available level and calls `with` when it is ready. Runs in parallel, except for a program
/// that keeps the machine busy.
async fn at_each_level(case: LevelCase, how: LaunchOptions, with: impl AsyncFn(ReadyProgram)) {
    let at = async |level| match ReadyProgram::start(case, how, level).await {
        Some(ready) => with(ready).await,
        None => print_figure(&format!("{level} is not offered here")),
    };
    if case.call.starts_with("comet") {
        for level in Containment::ALL.iter().copied() {
            Box::pin(at(level)).await;
        }
    } else {
        let [walk, cgroup, pidns] =
            [Containment::Walk, Containment::Cgroup, Containment::Pidns].map(|level| Box::pin(at(level)));
        tokio::join!(walk, cgroup, pidns);
    }
}

/// How a program is started.
#[derive(Clone, Copy)]
struct LaunchOptions {
    /// Whether its leader exits when told to.
    ends: bool,
    budget: Duration,
}

/// Enough time to get ready on a busy machine.
const BUDGET: Duration = Duration::from_secs(6);
const STAYS: LaunchOptions = LaunchOptions { ends: false, budget: Duration::from_secs(200) };

impl ReadyProgram {
    /// Starts a program at a level; `None` if the machine does not offer the level.
    async fn start(case: LevelCase, how: LaunchOptions, level: Containment) -> Option<Self> {
        let bench = TestFolder::new();
        let launcher = launcher_at(level, &bench).await?;
        mkfifo(&bench.path("gate"), Mode::S_IRWXU).unwrap();
        let prefix = if how.ends { "ends " } else { "" };
        let mut spec = bench.agent(&format!("{prefix}{}", case.call(&bench)));
        spec.limits.grace = Duration::ZERO;
        spec.limits.budget = how.budget;
        let mut running = RunningProgram::start_with(launcher, spec);
        let processes = running.lines.processes(case.count).await;
        assert!(processes.iter().all(|process| !process.is_dead()), "a process is dead before its end");
        let (held, group) = processes.last().unwrap().held();
        assert_eq!(held, level, "the level is not in force");
        Some(Self { bench, level, running, processes, group })
    }

    /// Waits for the report, and asserts that everything is gone.
    async fn assert_over(self, case: LevelCase, what: &str) -> ProgramReport {
        let began = since_boot();
        let report = self.running.report().await;
        print_figure(&format!(
            "{}, {what}, {}: all dead after {:?}",
            case.call,
            self.level,
            since_boot().saturating_sub(began)
        ));
        assert_all_dead(&self.processes);
        assert!(report.still_alive.is_none());
        assert_eq!(report.containment, self.level);
        assert_nothing_left(&self.bench, self.group.as_ref());
        report
    }
}

fn assert_nothing_left(bench: &TestFolder, group: Option<&PathBuf>) {
    assert!(File::open(bench.path("comet")).unwrap().try_lock().is_ok(), "a process still holds the lock");
    assert!(group.is_none_or(|group| !group.exists()), "the control group is still there");
}

async fn assert_end_ends_all(case: LevelCase) {
    at_each_level(case, LaunchOptions { ends: true, ..STAYS }, async |ready| {
        let gate = ready.bench.path("gate");
        tokio::task::spawn_blocking(|| drop(OpenOptions::new().write(true).open(gate).unwrap())).await.unwrap();
        assert_eq!(ready.assert_over(case, "end").await.end, ProgramEnd::Exited(0));
    })
    .await;
}

async fn assert_stop_ends_all(case: LevelCase) {
    at_each_level(case, STAYS, async |ready| {
        ready.running.stop.cancel();
        let report = ready.assert_over(case, "stop").await;
        assert_eq!(report.end, ProgramEnd::Stopped);
    })
    .await;
}

async fn assert_budget_ends_all(case: LevelCase) {
    at_each_level(case, LaunchOptions { budget: BUDGET, ..STAYS }, async |ready| {
        let report = ready.assert_over(case, "budget").await;
        assert_eq!(report.end, ProgramEnd::TimedOut);
        assert!(report.elapsed < BUDGET + Duration::from_secs(5), "{:?}", report.elapsed);
    })
    .await;
}

async fn assert_death_of_daemon_ends_all(case: LevelCase) {
    for level in Containment::ALL.iter().copied() {
        let bench = TestFolder::new();
        if launcher_at(level, &bench).await.is_none() {
            continue;
        }
        let mut daemon = DyingDaemon::start_at(level, ("shim", &case.call(&bench)), &bench);
        let mut processes = daemon.processes(case.count);
        let (held, group) = processes.last().unwrap().held();
        assert_eq!(held, level, "the level is not in force");
        processes.extend(processes.last().unwrap().supervisors());
        let began = since_boot();
        daemon.kill();
        for process in &processes {
            assert!(process.dies_within(PATIENCE), "{} is still alive", process.pid);
        }
        print_figure(&format!(
            "{}, death of the daemon, {level}: all dead after {:?}",
            case.call,
            since_boot().saturating_sub(began)
        ));
        assert_nothing_left(&bench, group.as_ref());
    }
}

fn assert_control_leaks(case: LevelCase) {
    let bench = TestFolder::new();
    let left = BareProgram::start(&case.call(&bench), case.count).left_after_kill();
    let comet = bench.path("comet");
    let lock = File::open(&comet).unwrap();
    let is_held = lock.try_lock().is_err();
    assert!(left > 0 || is_held, "the control leaves nothing either");
    std::fs::remove_file(&comet).unwrap();
    if is_held {
        lock.lock().unwrap();
    }
}

/// Runs a shell script at a level and returns its output; `None` if the machine does not offer the level.
async fn printed_at(level: Containment, script: &str) -> Option<String> {
    let bench = TestFolder::new();
    let launcher = launcher_at(level, &bench).await?;
    let report = RunningProgram::start_with(launcher, bench.sh(script)).report().await;
    assert_eq!((report.end, report.containment), (ProgramEnd::Exited(0), level));
    Some(bench.log())
}

#[tokio::test]
async fn program_starts_clean_at_every_level() {
    // The fourth descriptor belongs to the listing.
    let script =
        "ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn|NoNewPrivs' /proc/self/status; cat /proc/self/oom_score_adj";
    let own: i32 = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
    for level in Containment::ALL.iter().copied() {
        let Some(printed) = printed_at(level, script).await else { continue };
        let words: Vec<&str> = printed.split_whitespace().collect();
        let adjusted = (own + 500).min(1000).to_string();
        let ["4", "SigBlk:", "0000000000000000", "SigIgn:", ignored, "NoNewPrivs:", "1", raised] = words[..] else {
            panic!("{level}: {printed}");
        };
        // The C library reserves signals 32 and 33: no program can change them.
        assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & !0x1_8000_0000, 0, "{level}: signals are ignored");
        assert_eq!(raised, adjusted, "{level}");
    }
}

#[tokio::test]
async fn program_in_a_namespace_sees_no_other_process_and_cannot_end_its_first() {
    let script = "kill -9 1; kill -STOP 1; echo $PPID; grep -l '^runnerd-shim$' /proc/[0-9]*/comm; echo /proc/[0-9]*";
    let Some(printed) = printed_at(Containment::Pidns, script).await else { return };
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines[..2],
        ["1", "/proc/1/comm"],
        "the parent is the first process, and the only one of the shim's program"
    );
    assert_eq!(lines[2], "/proc/1 /proc/2", "others are seen");
}

#[tokio::test]
async fn program_that_makes_namespaces_of_its_own_is_ended_with_them() {
    let script =
        "unshare --user --map-current-user --pid --fork --mount-proc sh -c 'sleep 1000 & echo READY; sleep 1000'";
    for level in Containment::ALL.iter().copied() {
        let bench = TestFolder::new();
        let Some(launcher) = launcher_at(level, &bench).await else { continue };
        let mut running = RunningProgram::start_with(launcher, bench.sh(script));
        assert_eq!(running.lines.next().await.as_deref(), Some("READY"), "{level}");
        running.stop.cancel();
        assert!(running.report().await.still_alive.is_none());
        assert_eq!(end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap(), SweepReport { ended: vec![] });
    }
}

#[tokio::test]
async fn first_process_of_a_namespace_that_is_killed_takes_all_with_it() {
    let bench = TestFolder::new();
    let Some(launcher) = launcher_at(Containment::Pidns, &bench).await else { return };
    let mut running = RunningProgram::start_with(launcher, bench.agent("hides scrub"));
    let processes = running.lines.processes(2).await;
    processes[1].parent().signal(Signal::KILL);
    let report = running.report().await;
    assert_eq!(report.end, ProgramEnd::Signaled(9));
    assert_all_dead(&processes);
}

#[tokio::test]
async fn shim_that_is_killed_takes_its_namespace_with_it() {
    let bench = TestFolder::new();
    let Some(launcher) = launcher_at(Containment::Pidns, &bench).await else { return };
    let mut running = RunningProgram::start_with(launcher, bench.agent("hides scrub"));
    let processes = running.lines.processes(2).await;
    let (_, group) = processes[1].held();
    processes[1].supervisors().last().unwrap().signal(Signal::KILL);
    let report = running.report().await;
    assert_eq!(report.end, ProgramEnd::SupervisorLost);
    assert_all_dead(&processes);
    assert!(group.is_none_or(|group| !group.exists()), "the control group is still there");
}

#[tokio::test]
async fn leftovers_of_a_dead_daemon_are_ended_when_it_starts_again() {
    let bench = TestFolder::new();
    if launcher_at(Containment::Cgroup, &bench).await.is_none() {
        return;
    }
    let mut daemon = DyingDaemon::start_at(Containment::Cgroup, ("shim", "hides scrub"), &bench);
    let processes = daemon.processes(2);
    let group = processes[0].held().1.unwrap();
    let shim = processes[1].parent();
    shim.signal(Signal::STOP);
    daemon.kill();
    shim.kill();
    assert!(!processes[0].is_dead(), "there is nothing to end");

    let owner = bench.folder().to_str().unwrap();
    let other = format!("{owner}-another");
    let options = ProbeOptions { strongest: Containment::Cgroup, owner: &other, folder: bench.folder() };
    probe_host(&launcher(), options).await;
    assert!(!processes[0].is_dead(), "another daemon has ended it");
    probe_host(&launcher(), ProbeOptions { owner, ..options }).await;
    assert_all_dead(&processes);
    assert!(!group.exists(), "the control group is still there");
}

#[tokio::test]
async fn search_by_mark_removes_the_control_group() {
    let bench = TestFolder::new();
    if launcher_at(Containment::Cgroup, &bench).await.is_none() {
        return;
    }
    let mut daemon = DyingDaemon::start_at(Containment::Cgroup, ("shim", "hides scrub"), &bench);
    let processes = daemon.processes(2);
    let group = processes[0].held().1.unwrap();
    let shim = processes[1].parent();
    shim.signal(Signal::STOP);
    daemon.kill();
    shim.kill();
    assert!(processes[1].dies_within(PATIENCE), "the leader outlived the shim");
    let swept = end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap();
    assert_eq!(swept, SweepReport { ended: vec![processes[0].pid] });
    assert!(!group.exists(), "the control group is still there");
}

#[tokio::test]
async fn no_supervisor_holds_the_output_of_its_program() {
    let pipe = |pid: i32, fd: &str| std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    for level in Containment::ALL.iter().copied() {
        let bench = TestFolder::new();
        let Some(launcher) = launcher_at(level, &bench).await else { continue };
        let mut running = RunningProgram::start_with(launcher, bench.agent("obeys"));
        let processes = running.lines.processes(1).await;
        let output = pipe(processes[0].pid, "1").unwrap();
        let supervisors = processes[0].supervisors();
        assert_eq!(supervisors.len(), if level == Containment::Pidns { 2 } else { 1 }, "{level}");
        for supervisor in supervisors {
            // Only root can see the descriptors of a supervisor.
            let held = std::fs::read_dir(format!("/proc/{}/fd", supervisor.pid)).into_iter().flatten().flatten();
            let names = held.map(|fd| fd.file_name().into_string().unwrap());
            let links: Vec<PathBuf> = names.filter_map(|fd| pipe(supervisor.pid, &fd).ok()).collect();
            assert!(!links.contains(&output), "{level}: {links:?}");
        }
        running.stop.cancel();
        running.report().await;
    }
}

#[tokio::test]
async fn program_that_hides_the_table_of_processes_is_ended() {
    let script =
        "mount -t tmpfs none /proc 2>/dev/null; setsid sleep 1000 & setsid sleep 1000 & echo READY; sleep 1000";
    let bench = TestFolder::new();
    // At other levels it is the machine's process table.
    let Some(launcher) = launcher_at(Containment::Pidns, &bench).await else { return };
    let mut running = RunningProgram::start_with(launcher, bench.sh(script));
    assert_eq!(running.lines.next().await.as_deref(), Some("READY"));
    running.stop.cancel();
    assert!(running.report().await.still_alive.is_none());
    assert_eq!(end_survivors(&bench.mark(), &bench.path("lock"), PATIENCE).unwrap(), SweepReport { ended: vec![] });
}
