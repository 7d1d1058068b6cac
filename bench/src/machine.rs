//! Where figures were taken: they mean little without it.

use std::fs;
use std::process::Command;
use std::thread;

use serde::Serialize;

/// A machine at the moment of measuring.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// Cores that can be used.
    pub(crate) cores: usize,
    /// Load of the last minute before the first measurement.
    pub(crate) load: String,
    /// Version of git.
    pub(crate) git: String,
    /// Version of the product.
    pub(crate) version: &'static str,
    /// How the programs were built.
    pub(crate) profile: &'static str,
}

/// Describes this machine.
pub(crate) fn describe() -> Machine {
    let first_word = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().next().unwrap_or("unknown").to_owned()
    };
    let git = Command::new("git").arg("--version").output();
    Machine {
        kernel: first_word("/proc/sys/kernel/osrelease"),
        cores: thread::available_parallelism().map_or(1, usize::from),
        load: first_word("/proc/loadavg"),
        git: git.map_or_else(|_| "none".to_owned(), |git| String::from_utf8_lossy(&git.stdout).trim().to_owned()),
        version: env!("CARGO_PKG_VERSION"),
        profile: if cfg!(debug_assertions) { "development" } else { "release" },
    }
}
