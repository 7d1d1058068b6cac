//! What git says of the signatures of commits, held against keys in a file of allowed signers.
//!
//! Nothing that a repository configures takes part: neither keys nor programs, nor signatures of another kind, which hang on
//! a keyring of the user's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use nix::sys::signal::Signal;
use runner_core::audit::SignatureStatus;

use crate::git::repository::program::GitCommand;
use crate::git::repository::users::{REVOCATION_FILE_SETTING, find_revoked_keys_file};
use crate::git::{GitError, Repository};

/// What git shows of each commit, a line each.
const FORMAT: &str = "--format=tformat:%H%n%G?%n%GF%n%GS";

impl Repository {
    /// Returns what git says of the signatures of commits, by id.
    ///
    /// A signature that is none is refused by `ssh-keygen` before it has read what was signed, and git may end of writing that
    /// to nobody: no signature that holds has git end so. A commit of which git can say nothing at all, since it takes a header
    /// of it for nothing, is looked for among the others, so that it keeps nobody from judging them.
    pub fn check_signatures(&self, commits: &[String], signers: &Path) -> Result<BTreeMap<String, SignatureStatus>, GitError> {
        let revoked = find_revoked_keys_file()?;
        let (mut signatures, mut pending) = (BTreeMap::new(), vec![commits]);
        while let Some(part) = pending.pop() {
            // Without a commit git would look at HEAD.
            if part.is_empty() {
                continue;
            }
            let outcome = signature_log(self, part, (signers, revoked.as_deref())).output()?;
            let text = String::from_utf8_lossy(&outcome.stdout);
            // What follows the last end of a record is a part of one.
            let records = text.rsplit_once('\0').map_or("", |(records, _)| records);
            signatures.extend(records.split('\0').filter_map(parse_signature));
            let at = part.iter().position(|id| !signatures.contains_key(id));
            let Some(at) = at.filter(|_| !outcome.status.success()) else { continue };
            let (one, others) = (&part[at], &part[at + 1..]);
            if outcome.status.signal() == Some(Signal::SIGPIPE as i32) {
                signatures.insert(one.clone(), SignatureStatus::Invalid);
                pending.push(others);
            } else if others.is_empty() {
                self.check_git_usable()?;
                signatures.insert(one.clone(), SignatureStatus::Unchecked);
            } else {
                let (first, second) = part[at..].split_at(others.len().div_ceil(2));
                pending.extend([second, first]);
            }
        }
        Ok(signatures)
    }
}

/// Prepares git to show what it says of commits, each as soon as it is looked at.
fn signature_log<'a>(repository: &'a Repository, commits: &[String], keys: (&Path, Option<&Path>)) -> GitCommand<'a> {
    let args = ["--stdin", "--no-walk=unsorted", "--no-patch", "--no-show-signature", "--no-color", "-z"];
    let git = GitCommand::new(repository, "log").env("GIT_NO_LAZY_FETCH", "1").env("GIT_FLUSH", "1").args(args);
    let git = with_signature_config(git, keys).args(["--encoding=UTF-8", FORMAT]);
    git.input(commits.join("\n").into_bytes())
}

/// Sets what git checks signatures with, whatever is configured.
fn with_signature_config<'a>(git: GitCommand<'a>, (signers, revoked): (&Path, Option<&Path>)) -> GitCommand<'a> {
    let always = [
        ("gpg.ssh.allowedSignersFile", signers.as_os_str()),
        ("gpg.ssh.program", OsStr::new("ssh-keygen")),
        ("gpg.program", OsStr::new("false")),
        ("gpg.openpgp.program", OsStr::new("false")),
        ("gpg.x509.program", OsStr::new("false")),
    ];
    git.with_config(always.into_iter().chain(revoked.map(|revoked| (REVOCATION_FILE_SETTING, revoked.as_os_str()))))
}

/// Reads what git shows of one commit.
fn parse_signature(record: &str) -> Option<(String, SignatureStatus)> {
    let mut lines = record.split('\n');
    let (id, state) = (lines.next().filter(|id| !id.is_empty())?, lines.next()?);
    let mut line = || lines.next().unwrap_or_default().to_owned();
    let (key, principal) = (line(), line());
    let signature = match state {
        "G" if !principal.is_empty() && !key.is_empty() => SignatureStatus::Valid { principal, key },
        "G" | "U" => SignatureStatus::UnknownKey { key },
        "N" => SignatureStatus::None,
        "B" | "X" | "Y" | "R" => SignatureStatus::Invalid,
        _ => SignatureStatus::Unchecked,
    };
    Some((id.to_owned(), signature))
}
