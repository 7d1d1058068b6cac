//! A Slurm of two nodes on this machine's loopback, with all of its files in one folder, and queries to it.
//!
//! These are Debian's programs, not started as services: two `slurmd` with different names and ports are two nodes.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use runner_testkit::{Home, ProgramOutput};
use tempfile::TempDir;

use crate::kit::TestRemote;

/// Longest wait for a state: a node counts as lost after half a minute or more.
const PATIENCE: Duration = Duration::from_secs(110);
/// The settings that all sites share: no accounting, no MPI, and used credentials expire soon.
const ALWAYS: &str = "\
    ClusterName=kit\nSlurmUser=root\nAuthType=auth/munge\nCredType=cred/munge\n\
    CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nSlurmdParameters=config_overrides\nTaskPlugin=task/none\n\
    JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nMpiDefault=none\n\
    SwitchType=switch/none\nReturnToService=2\nSlurmdTimeout=15\nKillWait=10\nJobRequeue=1\nSelectType=select/cons_tres\n\
    SchedulerParameters=sched_interval=5,bf_interval=5,batch_sched_delay=0,requeue_delay=0\n\
    SelectTypeParameters=CR_Core\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n";

/// The settings that differ between sites.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClusterSite {
    /// How the processes of a job are tracked.
    pub(super) track: &'static str,
    /// Whether an exit code alone requeues a job.
    pub(super) is_requeued_by_code: bool,
}

/// A site with common settings.
pub(super) const USUAL: ClusterSite = ClusterSite { track: "proctrack/cgroup", is_requeued_by_code: false };

/// Slurm, and a remote with the runs submitted to it.
pub(super) struct SlurmCluster {
    programs: Vec<(String, Child)>,
    pub(super) remote: TestRemote,
    folder: TempDir,
}

/// Slurm's description of a job.
#[derive(Debug)]
pub(super) struct JobInfo(String);

impl JobInfo {
    /// Returns the value of a key such as `JobState`.
    pub(super) fn get(&self, word: &str) -> &str {
        let found = self.0.split_whitespace().find_map(|pair| pair.strip_prefix(word)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {word} in {}", self.0))
    }

    /// Whether it is in a state, after this number of restarts.
    pub(super) fn is(&self, state: &str, restarts: u32) -> bool {
        self.get("JobState") == state && self.get("Restarts") == restarts.to_string()
    }
}

impl SlurmCluster {
    /// Starts Slurm; returns when a node is idle.
    pub(super) fn start(site: ClusterSite) -> Self {
        let folder = tempfile::Builder::new().prefix("slurm").tempdir().expect("a folder can be made");
        let conf = folder.path().join("slurm.conf");
        let home = Home::new().export("SLURM_CONF", conf.to_str().expect("a path is text"));
        let mut cluster = Self { programs: Vec::new(), remote: TestRemote::in_home(home), folder };
        let nodes = cluster.configure(&conf, site);
        let at = |name: &str| cluster.folder.path().join(name).display().to_string();
        let munge = ["key-file=key", "socket=munge", "pid-file=munge.pid", "log-file=munge.log", "seed-file=seed"];
        let munge = munge.map(|option| {
            let (name, file) = option.split_once('=').expect("it is a pair");
            format!("--{name}={}", at(file))
        });
        cluster.spawn("munged", &[&["--foreground".to_owned(), "--force".to_owned()][..], &munge].concat());
        cluster.spawn("slurmctld", &["-D".to_owned()]);
        for node in nodes {
            cluster.spawn("slurmd", &["-D".to_owned(), "-N".to_owned(), node]);
        }
        cluster.assert_idle();
        cluster
    }

    /// Waits until nothing of a job is left on the nodes, each of which is in two partitions.
    #[track_caller]
    pub(super) fn assert_idle(&self) {
        wait_until("both nodes are idle", || {
            self.run_program("sinfo", &["-h", "-N", "-o", "%t"]).matches("idle").count() >= 4
        });
    }

    /// Writes the configuration of the programs; returns the names of the nodes.
    fn configure(&self, conf: &Path, site: ClusterSite) -> [String; 2] {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("the machine has a name");
        let host = host.trim().split('.').next().expect("there is a first part");
        let [control, nodes @ ..] = free_ports::<3>();
        let code = if site.is_requeued_by_code { "RequeueExit=75\n" } else { "" };
        // Control groups are named after nodes: another Slurm on this machine has other node names.
        let names = nodes.map(|port| format!("n{port}"));
        let node = |(name, port): (&String, u16)| {
            format!("NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 State=UNKNOWN\n")
        };
        let declared: String = names.iter().zip(nodes).map(node).collect();
        let text = format!(
            "SlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={control}\nAuthInfo=socket={},cred_expire=6\n\
             SlurmctldPidFile={}\nSlurmdPidFile={}\nSlurmdSpoolDir={}\nStateSaveLocation={}\nSlurmctldLogFile={}\n\
             SlurmdLogFile={}\nProctrackType={}\n{code}{ALWAYS}{declared}\
             PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP\n\
             PartitionName=high Nodes=ALL PriorityTier=10 State=UP\n",
            at("munge"),
            at("control.pid"),
            at("%n.pid"),
            at("spool-%n"),
            at("state"),
            at("control.log"),
            at("%n.log"),
            site.track,
        );
        fs::create_dir(self.folder.path().join("state")).expect("a folder can be made");
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).expect("munge asks for it");
        fs::write(conf, text).expect("it can be written");
        fs::write(self.folder.path().join("cgroup.conf"), "CgroupPlugin=cgroup/v1\n").expect("it can be written");
        let key = self.folder.path().join("key");
        fs::write(&key, "A key of thirty-two bytes or more, that opens nothing.").expect("it can be written");
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).expect("it can be kept from others");
        names
    }

    fn spawn(&mut self, program: &str, args: &[String]) {
        let log = fs::File::create(self.folder.path().join(format!("{}.out", self.programs.len()))).expect("a log");
        // Not the home's own, because it must outlive the jobs.
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf")).current_dir("/");
        let child = command.args(args).stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log).spawn();
        let child = child.unwrap_or_else(|error| panic!("{program}: {error}; Debian's slurm-wlm and munge have it"));
        self.programs.push((args.last().cloned().unwrap_or_default(), child));
    }

    /// Submits the run to Slurm; returns the job's number.
    #[track_caller]
    pub(super) fn submit(&self, args: &[&str], engine: &[&str]) -> String {
        let output = self.try_submit(args, engine);
        output.exits(0);
        output.json()["job"].as_str().expect("a job has a number").to_owned()
    }

    /// Submits the run to Slurm; Slurm or the driver may refuse.
    pub(super) fn try_submit(&self, args: &[&str], engine: &[&str]) -> ProgramOutput {
        let url = self.remote.url();
        let output = format!("--output={}", self.output("%j").display());
        let all = ["submit", &url, "--to", "slurm", "--run", "x", "--yes", "--json"];
        self.remote.home.ctl_in(&self.remote.repo, &[&all[..], args, &["--", &output], engine].concat())
    }

    fn output(&self, job: &str) -> PathBuf {
        self.folder.path().join(format!("job-{job}.out"))
    }

    /// Returns the output of a job, from all of its drivers.
    pub(super) fn job_output(&self, job: &str) -> String {
        fs::read_to_string(self.output(job)).unwrap_or_default()
    }

    /// Runs one of Slurm's programs.
    pub(super) fn run_program(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(program).args(args).output().expect("the program can be started");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Prepares one of Slurm's programs, in the environment of a person here.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.remote.home.env().iter().cloned()).current_dir(self.remote.home.path());
        command
    }

    /// Returns what Slurm knows about a job.
    pub(super) fn job(&self, job: &str) -> JobInfo {
        JobInfo(self.run_program("scontrol", &["--oneliner", "show", "job", job]))
    }

    /// Waits for a state of a job, after this number of restarts.
    #[track_caller]
    pub(super) fn wait_for_job(&self, job: &str, state: &str, restarts: u32) -> JobInfo {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = self.job(job);
            if found.is(state, restarts) {
                return found;
            }
            assert!(
                Instant::now() < end,
                "job {job} is not {state}: {}\n{}\n{}",
                found.0,
                self.job_output(job),
                self.logs()
            );
            sleep(Duration::from_millis(100));
        }
    }

    /// Returns the last output of Slurm's own programs.
    fn logs(&self) -> String {
        let files = fs::read_dir(self.folder.path()).expect("it can be listed").flatten().map(|entry| entry.path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        let last = |path: PathBuf| {
            let log = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(40).collect();
            format!("{}:\n{}\n", path.display(), lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
        };
        logs.map(last).collect()
    }

    /// Loses a node: its daemon is killed, but the processes that it started survive.
    pub(super) fn kill_node(&mut self, node: &str) {
        let (_, lost) = self.programs.iter_mut().find(|(name, _)| name == node).expect("there is such a node");
        lost.kill().expect("it can be ended");
        lost.wait().expect("it has ended");
    }

    /// Kills all processes of a job, as a power failure does.
    pub(super) fn kill_all(&self) {
        for pid in self.remote.home.processes() {
            let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// Returns a process that holds a job, or is stuck at its end.
    fn holder(&self) -> Option<i32> {
        let conf = format!("SLURM_CONF={}", self.folder.path().join("slurm.conf").display());
        let is_ours = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == conf.as_bytes())
        };
        let pids = fs::read_dir("/proc").expect("there is /proc").flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_ours)
    }

    /// Asserts that nothing is left of any driver, and that the branch is linear and follows the rules.
    #[track_caller]
    pub(super) fn assert_clean(&self) {
        self.remote.home.wait_all_gone(PATIENCE);
        self.remote.assert_swept();
        self.remote.assert_sound();
    }
}

impl Drop for SlurmCluster {
    fn drop(&mut self) {
        self.run_program("scancel", &["--signal=KILL", "--full", "--user=root"]);
        for (_, program) in self.programs.iter_mut().rev() {
            let _gone = kill(Pid::from_raw(program.id().cast_signed()), Signal::SIGTERM);
            let _ended = program.wait();
        }
        // Those that held jobs on a lost node have no one left to report their end to.
        let end = Instant::now() + PATIENCE;
        while let Some(pid) = self.holder().filter(|_| Instant::now() < end) {
            let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
            sleep(Duration::from_millis(20));
        }
        for (node, _) in &self.programs {
            remove_group(&Path::new("/sys/fs/cgroup/freezer").join(format!("slurm_{node}")));
        }
    }
}

/// Removes a control group and its children if they are empty.
fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        remove_group(&entry.path());
    }
    let _there = fs::remove_dir(group);
}

/// Waits for something to become true.
#[track_caller]
pub(super) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        sleep(Duration::from_millis(50));
    }
}

/// Returns unused ports.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    listeners.map(|listener| listener.local_addr().expect("it has an address").port())
}

/// Prepares a command that finds the daemon only through the job, as in a shell on the node.
pub(super) fn without_addresses(mut command: Command) -> Command {
    command.env_remove("RUNNERD_SOCKET").env_remove("RUNNERD_STATE");
    command
}
