//! Asks an agent program for its version: once per file, since it takes up to seconds, and before a session depends on it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use runner_core::feedback::clip;
use runner_core::redact::Secrets;
use runner_core::verdict::FaultKind;
use tokio_util::sync::CancellationToken;

use super::backend::About;
use super::keeps_privileges_out;
use super::unfit::Unfit;
use super::version::Version;
use crate::config::Executor;
use crate::process::{
    self, Ended, Farewell, Follower, Launcher, Limits, LogFile, Mark, Report, SpawnError, Spec, Stream,
};

/// Time that a program has to say its version, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of each stream that are looked at.
const MAX_SAID: usize = 4096;
/// Bytes of what a program said instead of a version that are shown.
const MAX_SHOWN: usize = 200;
/// Files whose version is remembered.
const MAX_KNOWN: usize = 64;

/// Versions that were asked for. A version belongs to a file, whoever asks, and a file that changed is another one.
static KNOWN: Mutex<Vec<(File, Version)>> = Mutex::new(Vec::new());

/// A program to ask.
#[derive(Debug, Clone)]
pub(super) struct Probe<'a> {
    /// What is known of it.
    pub(super) about: &'static About,
    /// How it is run.
    pub(super) executor: &'a Executor,
    /// Where it starts.
    pub(super) folder: &'a Path,
    /// Its environment.
    pub(super) env: &'a [(OsString, OsString)],
    /// By which its processes are found.
    pub(super) mark: Mark,
    /// Lock of its shim.
    pub(super) lock: PathBuf,
    /// Where what it prints may go; nothing is left there.
    pub(super) log: PathBuf,
    /// Time that it has at most.
    pub(super) limit: Duration,
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Probed {
    /// A version that is new enough.
    Fit(Version),
    /// A person must change something.
    Unfit(Unfit),
    /// It went wrong, and may go well another time.
    Faulty(FaultKind, String),
    /// The caller wanted it stopped.
    Stopped,
}

/// Finds out the version of a program, and whether it is new enough; also returns the time that it took.
pub(super) async fn ask(
    probe: &Probe<'_>,
    launcher: &Launcher,
    stop: &CancellationToken,
) -> Result<(Probed, Duration), SpawnError> {
    let file = File::of(probe)?;
    if let Some(version) = file.as_ref().and_then(File::known) {
        return Ok((judge(version, probe.about), Duration::ZERO));
    }
    let mut said = Said::default();
    let mut report = process::run(launcher, spec(probe, &mut said), stop).await?;
    process::until_gone(&probe.mark, &probe.lock, report.still_alive.take()).await;
    // Nothing in it is worth an error.
    let _ = fs::remove_file(&probe.log);
    let probed = match outcome(&report, &said, probe.about) {
        Ok(version) => {
            if let Some(file) = file {
                file.remember(version.clone());
            }
            judge(version, probe.about)
        }
        Err(probed) => probed,
    };
    Ok((probed, report.elapsed))
}

fn spec<'a>(probe: &Probe<'_>, said: &'a mut Said) -> Spec<'a> {
    let wrapper = probe.executor.wrapper.iter().map(OsString::from);
    Spec {
        argv: wrapper.chain([probe.about.program.into(), "--version".into()]).collect(),
        cwd: probe.folder.to_owned(),
        env: probe.env.to_owned(),
        stdin: Vec::new(),
        mark: probe.mark.clone(),
        lock: probe.lock.clone(),
        limits: Limits { budget: probe.limit.min(LIMIT), idle: None, grace: Duration::from_secs(1) },
        log: LogFile { path: probe.log.clone(), cap_bytes: MAX_SAID as u64, secrets: Secrets::default() },
        follower: Some(Box::new(said)),
        splits_output: true,
        farewell: Farewell::Terminate,
        output: None,
        no_new_privs: keeps_privileges_out(probe.executor),
    }
}

fn outcome(report: &Report, said: &Said, about: &About) -> Result<Version, Probed> {
    let name = format!("`{} --version`", about.program);
    let unfit = |what: String| Err(Probed::Unfit(Unfit::new(what, about.install)));
    match report.ended {
        Ended::Exited(0) | Ended::Lingered => match Version::find(&String::from_utf8_lossy(&said.output)) {
            Some(version) => Ok(version),
            None => unfit(format!("{name} says no version, but {:?}", shown(&said.output))),
        },
        Ended::Exited(code) => unfit(format!("{name} exits with code {code}: {}", shown(&said.errors))),
        Ended::Signaled(signal) => Err(Probed::Faulty(FaultKind::Crash, format!("{name} died of signal {signal}"))),
        Ended::TimedOut | Ended::Silent => {
            Err(Probed::Faulty(FaultKind::Silence, format!("{name} does not end within {} s", LIMIT.as_secs())))
        }
        Ended::SupervisorLost => Err(Probed::Faulty(FaultKind::Crash, format!("the supervisor of {name} was killed"))),
        Ended::Stopped => Err(Probed::Stopped),
    }
}

fn judge(version: Version, about: &About) -> Probed {
    if version.is_at_least(about.oldest) {
        return Probed::Fit(version);
    }
    let [major, minor, patch] = about.oldest;
    let what =
        format!("{} {version} is older than {major}.{minor}.{patch}, the first that is known to work", about.program);
    Probed::Unfit(Unfit::new(what, about.install))
}

fn shown(said: &[u8]) -> String {
    clip(String::from_utf8_lossy(said).trim(), MAX_SHOWN)
}

/// What a program says, its beginning.
#[derive(Debug, Default)]
struct Said {
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Follower for Said {
    fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        let said = match stream {
            Stream::Output => &mut self.output,
            Stream::Error => &mut self.errors,
        };
        said.extend(bytes.iter().take(MAX_SAID - said.len()));
    }

    fn has_answered(&mut self) -> bool {
        false
    }
}

/// A file as it was when it was asked. The time of its last change of any kind is among what tells two apart: package
/// managers give files the time that their package names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl File {
    /// Finds the file of a program; none behind a wrapper, which may lead anywhere.
    fn of(probe: &Probe<'_>) -> Result<Option<Self>, SpawnError> {
        if !probe.executor.wrapper.is_empty() {
            return Ok(None);
        }
        let path = process::find_program(probe.about.program.as_ref(), probe.folder, probe.env)?;
        Ok(fs::metadata(&path).ok().map(|found| Self {
            path,
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        }))
    }

    fn known(&self) -> Option<Version> {
        let known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.iter().find(|(file, _)| file == self).map(|(_, version)| version.clone())
    }

    fn remember(self, version: Version) {
        let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.retain(|(file, _)| file.path != self.path);
        if known.len() == MAX_KNOWN {
            known.remove(0);
        }
        known.push((self, version));
    }
}
