//! A long run whose daemon and shims are killed at random: what happens to the work, and how soon the run continues.

use std::fs;
use std::time::{Duration, Instant};

use protocol::tree::{Node, TREE_VERSION, TaskTree};
use protocol::words::RunStatus;
use runner_testkit::{Daemon, Home, RandomSource, Repo};

use crate::observe::{find_shims, kill_process, wait_until};
use crate::report::{FigureGroup, Report, print_progress};
use crate::samples::{Samples, format_duration};

const GROUP: &str = "random kill -9 of daemon and shim";
/// A process that outlives the daemon by more than this is an orphan.
const ORPHAN_LIMIT: Duration = Duration::from_secs(5);
/// A daemon that does nothing for this long has stalled.
const STALL_LIMIT: Duration = Duration::from_mins(1);

/// A session that appends one line to a file in the work tree and a witness of it outside. The line is a unique name: a
/// counter could lose an increment in a kill.
const SESSION: &str = r#"
exec 9> "$kit/lock"
flock -n 9 || echo "$n" >> "$kit/overlap"
id=$(cat /proc/sys/kernel/random/uuid)
echo "session $id" >> log.txt
echo "$id" >> "$kit/wrote"
sleep 0.3
answer done 'One part is done.'
"#;

/// How much is killed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CrashesArgs {
    /// Kills, of daemons, shims, or both at once.
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// Begins the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Default for CrashesArgs {
    fn default() -> Self {
        Self { kills: 1000, seed: 1 }
    }
}

/// Counts collected during the run.
#[derive(Debug, Default)]
struct CrashCounts {
    daemons: u32,
    shims: u32,
    orphans: usize,
    stalls: usize,
    death_times: Samples,
    recovery_times: Samples,
}

/// Kills at random, lets the run finish, and checks what is left.
pub(crate) fn measure(args: &CrashesArgs, report: &mut Report) {
    let home = Home::new();
    let repo = create_long_repo(&home, args.kills);
    let mut daemon = home.daemon();
    home.ctl_in(&repo, &["start", "--yes", "--id", "long", "-m", "Do it"]).exits(0);
    let mut random = RandomSource::new(args.seed);
    let mut counts = CrashCounts::default();
    for number in 1..=args.kills {
        std::thread::sleep(Duration::from_millis(random.below(600)));
        if number % 100 == 0 {
            print_progress(&format!("crashes: {number} of {}", args.kills));
        }
        let victim = random.below(10);
        if victim < 4 {
            counts.shims += kill_shims(&home);
        }
        if victim >= 3 {
            daemon = kill_and_restart(&home, &repo, daemon, &mut counts);
        }
        if ended_early(&home, &repo) {
            home.ctl_in(&repo, &["resume"]);
        }
    }
    let end = wait_for_end(&home, &repo);
    drop(daemon);
    let mut group = report.group(GROUP);
    counts.add_figures(&mut group);
    report_branch(&repo, &end, &mut group);
}

fn kill_shims(home: &Home) -> u32 {
    let shims = find_shims(home);
    for shim in &shims {
        kill_process(*shim);
    }
    u32::try_from(shims.len()).unwrap_or(u32::MAX)
}

/// Kills the daemon, starts the next one, and waits until it is working again.
fn kill_and_restart(home: &Home, repo: &Repo, daemon: Daemon, counts: &mut CrashCounts) -> Daemon {
    let killed_at = Instant::now();
    daemon.kill();
    counts.daemons += 1;
    if wait_until(ORPHAN_LIMIT, || home.processes().is_empty()) {
        counts.death_times.add(killed_at.elapsed());
    } else {
        counts.orphans += home.processes().len();
    }
    let daemon = home.daemon();
    let client = home.client();
    let is_at_work = || {
        let run = client.run(repo.path());
        run.phase.is_some() || run.summary.state.is_terminal()
    };
    if wait_until(STALL_LIMIT, is_at_work) {
        counts.recovery_times.add(killed_at.elapsed());
    } else {
        counts.stalls += 1;
    }
    daemon
}

/// Whether the run has ended. A run that died too often on one node has failed, as it should; it is resumed all the
/// same.
fn ended_early(home: &Home, repo: &Repo) -> bool {
    let state = home.client().run(repo.path()).summary.state;
    state.is_terminal() && state != RunStatus::Completed
}

/// Lets the run finish and returns its final status.
fn wait_for_end(home: &Home, repo: &Repo) -> String {
    let client = home.client();
    loop {
        let run = client.wait_until(repo.path(), |run| run.summary.state.is_terminal());
        match run.summary.state {
            RunStatus::Failed => home.ctl_in(repo, &["resume"]).exits(0),
            end => return end.to_string(),
        };
    }
}

impl CrashCounts {
    fn add_figures(self, group: &mut FigureGroup<'_>) {
        group.add("daemons killed", self.daemons.to_string());
        group.add("shims killed", self.shims.to_string());
        group.add_zero("orphans", self.orphans);
        group.add_zero("restarts after which nothing went on", self.stalls);
        for (what, times) in [("to all dead", self.death_times), ("to the run going on", self.recovery_times)] {
            group.add_times(format!("kill -9 of the daemon {what}"), &times);
            group.add(format!("kill -9 of the daemon {what}, worst"), format_duration(times.percentile(100)));
        }
    }
}

/// Compares the branch with what the sessions themselves recorded outside it.
fn report_branch(repo: &Repo, end: &str, group: &mut FigureGroup<'_>) {
    let log = repo.show("HEAD", "log.txt");
    let times = |session: &str| log.lines().filter(|line| line.strip_prefix("session ") == Some(session)).count();
    let witnessed = fs::read_to_string(repo.script().folder().join("wrote")).unwrap_or_default();
    let lost = witnessed.lines().filter(|session| times(session) == 0).count();
    let doubled = witnessed.lines().filter(|session| times(session) > 1).count();
    let numbers: Vec<u32> = repo.receipts().iter().filter_map(|receipt| iteration_number(&receipt.subject)).collect();
    let misnumbered = numbers.iter().zip(1..).filter(|(number, expected)| *number != expected).count();
    let overlaps = fs::read_to_string(repo.script().folder().join("overlap")).unwrap_or_default().lines().count();
    let fsck = repo.git(&["fsck", "--strict", "--no-progress", "--no-dangling"]);
    let leaves = repo.tree("HEAD").root.children;
    let charged = leaves.iter().filter(|leaf| leaf.attempts > 0).count();
    group.add("the run at its end", end);
    group.add("iterations", numbers.len().to_string());
    group.add("sessions that left work", witnessed.lines().count().to_string());
    group.add_zero("work lost", lost);
    group.add_zero("work doubled", doubled);
    group.add_zero("iterations missing or counted twice", misnumbered);
    group.add_zero("sessions that overlapped", overlaps);
    group.add("nodes charged an attempt: their guard's shim was killed", charged.to_string());
    group.add_zero("complaints of git fsck", fsck.lines().count());
}

fn iteration_number(subject: &str) -> Option<u32> {
    subject.split(" iter ").nth(1)?.split(' ').next()?.parse().ok()
}

/// Creates a repository with more leaves than there are kills: each session completes one.
fn create_long_repo(home: &Home, kills: u32) -> Repo {
    let repo = home.repo("long");
    repo.write(".runner/GOAL.md", "# Do every part\n");
    let limits = ["max_iterations = 1000000", "max_consecutive_faults = 1000"];
    repo.commit_config(&limits.iter().fold(repo.config(), |config, line| config.top(line)));
    repo.commit_tree(&TaskTree {
        version: TREE_VERSION,
        root: Node { children: (1..=kills.max(1)).map(build_leaf).collect(), ..build_leaf(0) },
    });
    repo.script().always(SESSION);
    repo
}

fn build_leaf(number: u32) -> Node {
    Node {
        id: if number == 0 { "root".to_owned() } else { format!("part-{number}") },
        order: i64::from(number),
        title: format!("Part {number}"),
        goal: format!("Do part {number}."),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}
