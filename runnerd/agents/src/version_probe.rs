//! Asks an agent program for its version: once per file, since it may take seconds, and before a session depends on it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use runner_config::Executor;
use runner_core::feedback::clip_output;
use runner_core::text::redact::Secrets;
use runner_core::verdict::FaultKind;
use runner_process::{
    Launcher, LogFile, Mark, OutputFollower, OutputStream, ProgramEnd, ProgramReport, ProgramSpec, SpawnError,
    StopPolicy, TimeLimits,
};
use tokio_util::sync::CancellationToken;

use super::agent_unavailable::AgentUnavailable;
use super::backend::AgentInfo;
use super::denies_privileges;
use super::version::AgentVersion;

/// Time limit for a program to report its version, on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of each stream that are examined.
const MAX_OUTPUT_BYTES: usize = 4096;
/// Bytes shown of what a program printed instead of a version.
const MAX_SHOWN: usize = 200;
/// Number of files whose version is remembered.
const MAX_KNOWN_VERSIONS: usize = 64;

/// Known versions. A version belongs to a file, independent of the caller, and a changed file counts as another one.
static KNOWN_VERSIONS: Mutex<Vec<(ProgramFile, AgentVersion)>> = Mutex::new(Vec::new());

/// A program to ask.
#[derive(Debug, Clone)]
pub(super) struct VersionProbe<'a> {
    /// What is known of it.
    pub(super) info: &'static AgentInfo,
    /// How it is run.
    pub(super) executor: &'a Executor,
    /// Where it starts.
    pub(super) folder: &'a Path,
    /// Its environment.
    pub(super) env: &'a [(OsString, OsString)],
    /// The mark by which its processes are found.
    pub(super) mark: Mark,
    /// Lock of its shim.
    pub(super) lock: PathBuf,
    /// Where its output may go; the file is removed.
    pub(super) log: PathBuf,
    /// Time limit.
    pub(super) limit: Duration,
}

/// The result of asking.
#[derive(Debug)]
pub(super) enum VersionResult {
    /// The version is recent enough.
    Supported(AgentVersion),
    /// A person must change something.
    Unavailable(AgentUnavailable),
    /// Asking failed, and may succeed another time.
    Faulty(FaultKind, String),
    /// The caller cancelled it.
    Stopped,
}

/// Determines the version of a program, and whether it is recent enough; also returns the time that it took.
pub(super) async fn probe_version(
    probe: &VersionProbe<'_>,
    launcher: &Launcher,
    stop: &CancellationToken,
) -> Result<(VersionResult, Duration), SpawnError> {
    let file = ProgramFile::for_program(probe)?;
    if let Some(version) = file.as_ref().and_then(ProgramFile::known_version) {
        return Ok((judge_version(version, probe.info), Duration::ZERO));
    }
    let mut output = ProbeOutput::default();
    let mut report = runner_process::run_program(launcher, program_spec(probe, &mut output), stop).await?;
    runner_process::wait_until_gone(&probe.mark, &probe.lock, report.still_alive.take()).await;
    // Its content is not worth an error.
    let _ = fs::remove_file(&probe.log);
    let result = match parse_report(&report, &output, probe.info) {
        Ok(version) => {
            if let Some(file) = file {
                file.remember_version(version.clone());
            }
            judge_version(version, probe.info)
        }
        Err(probed) => probed,
    };
    Ok((result, report.elapsed))
}

fn program_spec<'a>(probe: &VersionProbe<'_>, output: &'a mut ProbeOutput) -> ProgramSpec<'a> {
    let wrapper = probe.executor.wrapper.iter().map(OsString::from);
    ProgramSpec {
        argv: wrapper.chain([probe.info.program.into(), "--version".into()]).collect(),
        cwd: probe.folder.to_owned(),
        env: probe.env.to_owned(),
        stdin: Vec::new(),
        mark: probe.mark.clone(),
        lock: probe.lock.clone(),
        limits: TimeLimits { budget: probe.limit.min(LIMIT), idle: None, grace: Duration::from_secs(1) },
        log: LogFile { path: probe.log.clone(), cap_bytes: MAX_OUTPUT_BYTES as u64, secrets: Secrets::default() },
        follower: Some(Box::new(output)),
        separates_output: true,
        stop_policy: StopPolicy::Terminate,
        output: None,
        no_new_privs: denies_privileges(probe.executor),
    }
}

fn parse_report(
    report: &ProgramReport,
    output: &ProbeOutput,
    about: &AgentInfo,
) -> Result<AgentVersion, VersionResult> {
    let name = format!("`{} --version`", about.program);
    let unavailable = |what: String| Err(VersionResult::Unavailable(AgentUnavailable::new(what, about.install)));
    match report.end {
        ProgramEnd::Exited(0) | ProgramEnd::Lingered => {
            match AgentVersion::find(&String::from_utf8_lossy(&output.output)) {
                Some(version) => Ok(version),
                None => unavailable(format!("{name} says no version, but {:?}", clip_shown(&output.output))),
            }
        }
        ProgramEnd::Exited(code) => {
            unavailable(format!("{name} exits with code {code}: {}", clip_shown(&output.errors)))
        }
        ProgramEnd::Signaled(signal) => {
            Err(VersionResult::Faulty(FaultKind::Crash, format!("{name} died of signal {signal}")))
        }
        ProgramEnd::TimedOut | ProgramEnd::Silent => {
            Err(VersionResult::Faulty(FaultKind::Silence, format!("{name} does not end within {} s", LIMIT.as_secs())))
        }
        ProgramEnd::SupervisorLost => {
            Err(VersionResult::Faulty(FaultKind::Crash, format!("the supervisor of {name} was killed")))
        }
        ProgramEnd::Stopped => Err(VersionResult::Stopped),
    }
}

fn judge_version(version: AgentVersion, about: &AgentInfo) -> VersionResult {
    if version.is_at_least(about.min_version) {
        return VersionResult::Supported(version);
    }
    let [major, minor, patch] = about.min_version;
    let what =
        format!("{} {version} is older than {major}.{minor}.{patch}, the first that is known to work", about.program);
    VersionResult::Unavailable(AgentUnavailable::new(what, about.install))
}

fn clip_shown(bytes: &[u8]) -> String {
    clip_output(String::from_utf8_lossy(bytes).trim(), MAX_SHOWN)
}

/// The beginning of what a program prints.
#[derive(Debug, Default)]
struct ProbeOutput {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl OutputFollower for ProbeOutput {
    fn on_output(&mut self, stream: OutputStream, bytes: &[u8]) {
        let buffer = match stream {
            OutputStream::Output => &mut self.output,
            OutputStream::Error => &mut self.errors,
        };
        buffer.extend(bytes.iter().take(MAX_OUTPUT_BYTES - buffer.len()));
    }

    fn has_answered(&mut self) -> bool {
        false
    }
}

/// A file's identity when it was asked. Includes the change time (`ctime`): package managers set the modification time
/// that their package names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProgramFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl ProgramFile {
    /// Finds the file of a program; `None` behind a wrapper, which may run any.
    fn for_program(probe: &VersionProbe<'_>) -> Result<Option<Self>, SpawnError> {
        if !probe.executor.wrapper.is_empty() {
            return Ok(None);
        }
        let path = runner_process::find_program(probe.info.program.as_ref(), probe.folder, probe.env)?;
        Ok(fs::metadata(&path).ok().map(|found| Self {
            path,
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        }))
    }

    fn known_version(&self) -> Option<AgentVersion> {
        let known = KNOWN_VERSIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.iter().find(|(file, _)| file == self).map(|(_, version)| version.clone())
    }

    fn remember_version(self, version: AgentVersion) {
        let mut known = KNOWN_VERSIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.retain(|(file, _)| file.path != self.path);
        if known.len() == MAX_KNOWN_VERSIONS {
            known.remove(0);
        }
        known.push((self, version));
    }
}
