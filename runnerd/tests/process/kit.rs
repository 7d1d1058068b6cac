//! A folder to work in, programs to run in it, and processes observed from outside.

use std::{
    ffi::OsString,
    fs,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use protocol::words::Containment;
use runner_core::text::redact::Secrets;
use runner_process::{
    Launcher, LogFile, Mark, OutputFollower, OutputPiece, OutputStream, ProbeOptions, ProgramReport, ProgramSpec,
    SpawnError, StopPolicy, TimeLimits, probe_host, run_program,
};
use runner_testkit::ScratchDir;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

/// Longest wait for anything that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that is removed with its files on drop.
pub(crate) struct TestFolder {
    path: PathBuf,
    _owned: Option<ScratchDir>,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        let folder = ScratchDir::new();
        Self { path: folder.path().to_owned(), _owned: Some(folder) }
    }

    /// The folder of another process, which removes it.
    pub(crate) fn shared(path: PathBuf) -> Self {
        Self { path, _owned: None }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A shell script; its budget is longer than any test waits.
    pub(crate) fn sh(&self, script: &str) -> ProgramSpec<'static> {
        self.spec(["sh", "-c", script].map(OsString::from).to_vec())
    }

    /// One of the programs of `agent.py`.
    pub(crate) fn agent(&self, call: &str) -> ProgramSpec<'static> {
        self.spec(agent(call))
    }

    /// The same, with a grace period.
    pub(crate) fn patient(&self, call: &str) -> ProgramSpec<'static> {
        let spec = self.agent(call);
        ProgramSpec { limits: TimeLimits { grace: PATIENCE, ..spec.limits }, ..spec }
    }

    pub(crate) fn spec(&self, argv: Vec<OsString>) -> ProgramSpec<'static> {
        ProgramSpec {
            argv,
            cwd: self.path.clone(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            stdin: Vec::new(),
            mark: self.mark(),
            lock: self.path("lock"),
            limits: TimeLimits { budget: PATIENCE * 10, idle: None, grace: Duration::from_secs(1) },
            log: LogFile { path: self.path("log"), cap_bytes: 1 << 20, secrets: Secrets::default() },
            follower: None,
            separates_output: false,
            stop_policy: StopPolicy::Terminate,
            output: None,
            no_new_privs: true,
        }
    }

    /// The folder is unique, so its name is, too.
    pub(crate) fn mark(&self) -> Mark {
        Mark::new(self.path.to_str().unwrap())
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("log")).unwrap()).into_owned()
    }
}

/// The command line of one of the programs of `agent.py`.
pub(crate) fn agent(call: &str) -> Vec<OsString> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/agent.py");
    ["python3", script].into_iter().chain(call.split_whitespace()).map(OsString::from).collect()
}

pub(crate) fn launcher() -> Launcher {
    Launcher::new(env!("CARGO_BIN_EXE_runnerd-shim").into())
}

/// Returns a launcher that reaches exactly this level, if the machine offers it.
pub(crate) async fn launcher_at(level: Containment, bench: &TestFolder) -> Option<Launcher> {
    let owner = bench.folder().to_str().unwrap();
    let offer = probe_host(&launcher(), ProbeOptions { strongest: level, owner, folder: bench.folder() }).await;
    (offer.level() == level).then(|| launcher().with_capabilities(offer))
}

/// Receives nothing; reports whether the answer has arrived.
pub(crate) struct AnswerProbe<F>(pub(crate) F);

impl<F: Fn() -> bool + Send + Sync> OutputFollower for AnswerProbe<F> {
    fn on_output(&mut self, _stream: OutputStream, _bytes: &[u8]) {}

    fn has_answered(&mut self) -> bool {
        self.0()
    }
}

/// Runs the program to its end, which must come in time for the test.
pub(crate) async fn run_to_end(spec: ProgramSpec<'static>) -> ProgramReport {
    RunningProgram::start(spec).report().await
}

/// A running program.
pub(crate) struct RunningProgram {
    task: JoinHandle<Result<ProgramReport, SpawnError>>,
    pub(crate) lines: OutputLines,
    pub(crate) stop: CancellationToken,
}

impl RunningProgram {
    pub(crate) fn start(spec: ProgramSpec<'static>) -> Self {
        Self::start_with(launcher(), spec)
    }

    pub(crate) fn start_with(launcher: Launcher, mut spec: ProgramSpec<'static>) -> Self {
        let (sender, output) = mpsc::channel(1 << 6);
        spec.output = Some(sender);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let mark = spec.mark.clone();
        let task = tokio::spawn(async move { run_program(&launcher, spec, &token).await });
        Self { task, lines: OutputLines { output, rest: Vec::new(), mark }, stop }
    }

    /// Drops the future while the program runs.
    pub(crate) async fn abort(self) {
        self.task.abort();
        self.task.await.expect_err("the run is under way");
    }

    pub(crate) async fn report(self) -> ProgramReport {
        timeout(PATIENCE, self.task).await.expect("the program is over").unwrap().unwrap()
    }
}

/// What a program prints, as it prints it.
pub(crate) struct OutputLines {
    output: mpsc::Receiver<OutputPiece>,
    rest: Vec<u8>,
    mark: Mark,
}

impl OutputLines {
    /// Waits for the next line; `None` when the program is over.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line = self.rest.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            let chunk = timeout(PATIENCE, self.output.recv()).await.expect("the program prints or ends");
            self.rest.extend(chunk?.bytes);
        }
    }

    /// Waits until `count` processes are ready.
    pub(crate) async fn processes(&mut self, count: usize) -> Vec<WatchedProcess> {
        let mut found = Vec::new();
        while found.len() < count {
            let line = self.next().await.expect("the program prints its processes");
            found.extend(WatchedProcess::of_program(&line, &self.mark));
        }
        found
    }
}

/// A process observed from outside through a pidfd: neither by its mark nor by a walk.
pub(crate) struct WatchedProcess {
    pub(crate) pid: i32,
    /// `None`: it was dead before it could be observed.
    fd: Option<OwnedFd>,
}

impl WatchedProcess {
    pub(crate) fn open(pid: i32) -> Self {
        Self { pid, fd: pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).ok() }
    }

    /// The parent of the process, which must be alive.
    pub(crate) fn parent(&self) -> Self {
        Self::open(self.status("PPid:").parse().unwrap())
    }

    pub(crate) fn name(&self) -> String {
        self.status("Name:")
    }

    /// The shim above the process, which is a leader, with everything between them.
    pub(crate) fn supervisors(&self) -> Vec<Self> {
        let mut found = vec![self.parent()];
        while found.len() < 3 && found.last().unwrap().parent().name() == "runnerd-shim" {
            found.push(found.last().unwrap().parent());
        }
        found
    }

    /// The level visible in the kernel, and the control group.
    pub(crate) fn held(&self) -> (Containment, Option<PathBuf>) {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", self.pid)).unwrap();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::")).filter(|path| path.contains("runnerd-"));
        let level = match (self.status("NSpid:").split_whitespace().count(), own) {
            (2, _) => Containment::Pidns,
            (_, Some(_)) => Containment::Cgroup,
            (_, None) => Containment::Walk,
        };
        let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
        let mount = mounts.into_iter().find(|mount| mount.join("cgroup.procs").exists());
        (level, own.zip(mount).map(|(path, mount)| mount.join(path.trim_start_matches('/'))))
    }

    fn status(&self, field: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        status.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_owned()
    }

    /// Reads `PID <number>` of a program with this mark. The program may see another process id than we do.
    pub(crate) fn of_program(line: &str, mark: &Mark) -> Option<Self> {
        let inside: i32 = line.strip_prefix("PID ")?.parse().unwrap();
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let outside = numbers.find(|pid| number_inside(*pid) == Some(inside) && mark.is_on(*pid));
        Some(outside.map_or(Self { pid: inside, fd: None }, Self::open))
    }

    /// Reads `PID <number>`.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        Some(Self::open(line.strip_prefix("PID ")?.parse().unwrap()))
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dies_within(Duration::ZERO)
    }

    pub(crate) fn dies_within(&self, time: Duration) -> bool {
        self.fd.as_ref().is_none_or(|fd| {
            let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::try_from(time).unwrap()).unwrap() > 0
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(fd) = &self.fd {
            let _ = pidfd_send_signal(fd, signal);
        }
    }

    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
        assert!(self.dies_within(PATIENCE));
    }
}

fn number_inside(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

impl Drop for WatchedProcess {
    /// A failing test must not leave processes behind either.
    fn drop(&mut self) {
        if thread::panicking() {
            self.signal(Signal::KILL);
        }
    }
}

/// Asserts that none of them is alive now.
pub(crate) fn assert_all_dead(processes: &[WatchedProcess]) {
    let alive: Vec<i32> = processes.iter().filter(|process| !process.is_dead()).map(|process| process.pid).collect();
    assert!(alive.is_empty(), "still alive: {alive:?}");
}
