//! What git says of the signatures of commits, held against keys in a file of allowed signers.
//!
//! Nothing that a repository configures takes part: neither keys nor programs, nor signatures of another kind, which hang on
//! a keyring of the user's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use nix::sys::signal::Signal;
use runner_core::audit::Signature;

use crate::git::repository::program::Git;
use crate::git::repository::users::{REVOKED, revoked_keys};
use crate::git::{GitError, Repository};

/// What git shows of each commit, a line each.
const FORMAT: &str = "--format=tformat:%H%n%G?%n%GF%n%GS";

impl Repository {
    /// Returns what git says of the signatures of commits, by id.
    ///
    /// A signature that is none is refused by `ssh-keygen` before it has read what was signed, and git may end of writing that
    /// to nobody: no signature that holds has git end so. A commit of which git can say nothing at all, since it takes a header
    /// of it for nothing, is looked for among the others, so that it keeps nobody from judging them.
    pub fn signatures(&self, commits: &[String], signers: &Path) -> Result<BTreeMap<String, Signature>, GitError> {
        let revoked = revoked_keys()?;
        let (mut said, mut left) = (BTreeMap::new(), vec![commits]);
        while let Some(part) = left.pop() {
            // Without a commit git would look at HEAD.
            if part.is_empty() {
                continue;
            }
            let outcome = shown(self, part, (signers, revoked.as_deref())).outcome()?;
            let text = String::from_utf8_lossy(&outcome.stdout);
            // What follows the last end of a record is a part of one.
            let records = text.rsplit_once('\0').map_or("", |(records, _)| records);
            said.extend(records.split('\0').filter_map(read));
            let at = part.iter().position(|id| !said.contains_key(id));
            let Some(at) = at.filter(|_| !outcome.status.success()) else { continue };
            let (one, others) = (&part[at], &part[at + 1..]);
            if outcome.status.signal() == Some(Signal::SIGPIPE as i32) {
                said.insert(one.clone(), Signature::Broken);
                left.push(others);
            } else if others.is_empty() {
                self.refuse_unusable()?;
                said.insert(one.clone(), Signature::Unchecked);
            } else {
                let (first, second) = part[at..].split_at(others.len().div_ceil(2));
                left.extend([second, first]);
            }
        }
        Ok(said)
    }
}

/// Prepares git to show what it says of commits, each as soon as it is looked at.
fn shown<'a>(repository: &'a Repository, commits: &[String], keys: (&Path, Option<&Path>)) -> Git<'a> {
    let args = ["--stdin", "--no-walk=unsorted", "--no-patch", "--no-show-signature", "--no-color", "-z"];
    let git = Git::new(repository, "log").env("GIT_NO_LAZY_FETCH", "1").env("GIT_FLUSH", "1").args(args);
    let git = configured(git, keys).args(["--encoding=UTF-8", FORMAT]);
    git.input(commits.join("\n").into_bytes())
}

/// Sets what git checks signatures with, whatever is configured.
fn configured<'a>(git: Git<'a>, (signers, revoked): (&Path, Option<&Path>)) -> Git<'a> {
    let always = [
        ("gpg.ssh.allowedSignersFile", signers.as_os_str()),
        ("gpg.ssh.program", OsStr::new("ssh-keygen")),
        ("gpg.program", OsStr::new("false")),
        ("gpg.openpgp.program", OsStr::new("false")),
        ("gpg.x509.program", OsStr::new("false")),
    ];
    git.configured(always.into_iter().chain(revoked.map(|revoked| (REVOKED, revoked.as_os_str()))))
}

/// Reads what git shows of one commit.
fn read(record: &str) -> Option<(String, Signature)> {
    let mut lines = record.split('\n');
    let (id, state) = (lines.next().filter(|id| !id.is_empty())?, lines.next()?);
    let mut line = || lines.next().unwrap_or_default().to_owned();
    let (key, principal) = (line(), line());
    let signature = match state {
        "G" if !principal.is_empty() && !key.is_empty() => Signature::Holds { principal, key },
        "G" | "U" => Signature::Foreign { key },
        "N" => Signature::None,
        "B" | "X" | "Y" | "R" => Signature::Broken,
        _ => Signature::Unchecked,
    };
    Some((id.to_owned(), signature))
}
