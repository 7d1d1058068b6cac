//! The mark by which the processes of a program are found again.
//!
//! It is stored as an environment variable, which a program may clear; as the limit on file locks, which Linux has
//! ignored since 2.6, which every child inherits, and which no ordinary process can raise again; and, if control groups
//! are available, in the name of the program's group.

use std::{
    env,
    ffi::OsString,
    fmt::{self, Write as _},
    os::unix::ffi::OsStringExt as _,
};

use nix::sys::resource::{Resource, setrlimit};
use sha2::{Digest as _, Sha256};

use crate::{cgroup, table};

/// Variable that holds the mark.
pub const VARIABLE: &str = "RUNNERD_MARK";

/// A text that belongs to one program and its descendants alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    /// Creates a mark from a text, which must be unique on this machine and must not contain a NUL.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a process has this mark.
    pub fn is_on(&self, pid: i32) -> bool {
        read_lock_limit(pid) == Some(self.lock_limit())
            || read_mark_variable(pid).is_some_and(|mark| mark == self.0.as_bytes())
            || cgroup::is_in_group_of(self, pid)
    }

    /// Whether a process has a mark that the caller does not have: it comes from a program that the caller runs.
    pub fn is_any_on(pid: i32) -> bool {
        let own = env::var_os(VARIABLE).map(OsString::into_vec);
        read_lock_limit(pid) != read_lock_limit(std::process::id())
            || read_mark_variable(pid).is_some_and(|mark| Some(mark) != own)
            || cgroup::is_in_any_group(pid)
    }

    /// Marks the calling process and its future children.
    ///
    /// Fails if a lower limit is already in force; then the variable is the only mark.
    pub(crate) fn apply_to_self(&self) -> nix::Result<()> {
        let limit = self.lock_limit();
        setrlimit(Resource::RLIMIT_LOCKS, limit, limit)
    }

    /// Returns the mark as a lock limit: 62 bits, so that it is never "unlimited".
    fn lock_limit(&self) -> u64 {
        let digest = Sha256::digest(self.0.as_bytes());
        digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)) >> 2
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the first bytes of a text's digest in hexadecimal, for names.
pub(crate) fn digest_prefix(text: &str, bytes: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(bytes).fold(String::new(), |mut name, byte| {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Returns the lock limit of a process; `None` if it has none. Every process can read it, even for one that hides its
/// environment.
fn read_lock_limit(pid: impl fmt::Display) -> Option<u64> {
    let limits = table::read_text(pid, "limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn read_mark_variable(pid: i32) -> Option<Vec<u8>> {
    table::variable(pid, VARIABLE)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn limit_is_never_unlimited_and_differs_from_mark_to_mark() {
        let limit = Mark::new("a").lock_limit();
        assert!(limit < 1 << 62);
        assert_ne!(limit, Mark::new("b").lock_limit());
    }

    #[test]
    fn process_without_the_mark_does_not_bear_it() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!Mark::new("nobody's").is_on(own));
        assert!(!Mark::is_any_on(own));
    }

    #[test]
    fn process_bears_the_mark_of_its_environment_and_no_other() {
        let mut command = Command::new("cat");
        let mut child = command.env(VARIABLE, "mine").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // An echo proves that exec has happened.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let results = (Mark::new("mine").is_on(pid), Mark::new("min").is_on(pid), Mark::is_any_on(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(results, (true, false, true));
    }
}
