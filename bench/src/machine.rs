//! The machine on which figures were measured; without it they mean little.

use std::fmt;
use std::fs;
use std::process::Command;
use std::thread;

use serde::Serialize;

/// A machine at the time of measuring.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MachineInfo {
    /// Kernel release.
    kernel: String,
    /// Processor model.
    processor: String,
    /// Number of usable cores.
    cores: usize,
    /// One-minute load average before the first measurement.
    load: String,
    /// Version of git.
    git: String,
    /// Version of the product under test.
    version: &'static str,
    /// Build profile of the programs.
    profile: &'static str,
}

/// Describes this machine.
pub(crate) fn describe_machine() -> MachineInfo {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let first_word = |path: &str| text(path).split_whitespace().next().unwrap_or("unknown").to_owned();
    let processor = text("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown".to_owned(), |(_, name)| name.to_owned());
    let git = Command::new("git").arg("--version").output();
    MachineInfo {
        kernel: first_word("/proc/sys/kernel/osrelease"),
        processor,
        cores: thread::available_parallelism().map_or(1, usize::from),
        load: first_word("/proc/loadavg"),
        git: git.map_or_else(|_| "none".to_owned(), |git| String::from_utf8_lossy(&git.stdout).trim().to_owned()),
        version: env!("CARGO_PKG_VERSION"),
        profile: if cfg!(debug_assertions) { "development" } else { "release" },
    }
}

impl fmt::Display for MachineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, processor, cores, load, git, version, profile } = self;
        write!(f, "runnerd {version} ({profile}), Linux {kernel}, {cores} × {processor}, load {load}, {git}")
    }
}
