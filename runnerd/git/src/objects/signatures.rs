//! Signatures of commits as git reports them, checked against the keys in an allowed-signers file.
//!
//! No configuration of a repository takes part: neither keys nor programs, nor other kinds of signatures, which depend
//! on a keyring of the user's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use nix::sys::signal::Signal;
use runner_core::audit::SignatureStatus;

use crate::repository::program::GitCommand;
use crate::repository::user_config::{REVOCATION_FILE_SETTING, find_revoked_keys_file};
use crate::{GitError, Repository};

/// The format in which git prints each commit, one field a line.
const FORMAT: &str = "--format=tformat:%H%n%G?%n%GF%n%GS";

impl Repository {
    /// Returns git's verdict on the signatures of commits, by id.
    ///
    /// `ssh-keygen` rejects an invalid signature before it has read what was signed, and git may die of writing to the
    /// closed pipe; a valid signature never has that effect. A commit about which git can say nothing, because it
    /// misparses a header, is missing from the result, so that it does not prevent judging the others.
    pub fn check_signatures(
        &self,
        commits: &[String],
        signers: &Path,
    ) -> Result<BTreeMap<String, SignatureStatus>, GitError> {
        let revoked = find_revoked_keys_file()?;
        let mut signatures = BTreeMap::new();
        let mut pending = vec![commits];
        while let Some(part) = pending.pop() {
            // Without a commit git would show HEAD.
            if part.is_empty() {
                continue;
            }
            let outcome = signature_log(self, part, signers, revoked.as_deref()).output()?;
            let text = String::from_utf8_lossy(&outcome.stdout);
            // Whatever follows the last record separator is incomplete.
            let records = text.rsplit_once('\0').map_or("", |(records, _)| records);
            signatures.extend(records.split('\0').filter_map(parse_signature));
            let at = part.iter().position(|id| !signatures.contains_key(id));
            let Some(at) = at.filter(|_| !outcome.status.success()) else { continue };
            let one = &part[at];
            let others = &part[at + 1..];
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

/// Prepares git to print its verdict on each commit as soon as it has checked it.
fn signature_log<'a>(
    repository: &'a Repository,
    commits: &[String],
    signers: &Path,
    revoked: Option<&Path>,
) -> GitCommand<'a> {
    let args = ["--stdin", "--no-walk=unsorted", "--no-patch", "--no-show-signature", "--no-color", "-z"];
    let git = GitCommand::new(repository, "log").env("GIT_NO_LAZY_FETCH", "1").env("GIT_FLUSH", "1").args(args);
    let git = with_signature_config(git, signers, revoked).args(["--encoding=UTF-8", FORMAT]);
    git.input(commits.join("\n").into_bytes())
}

/// Sets how git verifies signatures, overriding any configuration.
fn with_signature_config<'a>(git: GitCommand<'a>, signers: &Path, revoked: Option<&Path>) -> GitCommand<'a> {
    let always = [
        ("gpg.ssh.allowedSignersFile", signers.as_os_str()),
        ("gpg.ssh.program", OsStr::new("ssh-keygen")),
        ("gpg.program", OsStr::new("false")),
        ("gpg.openpgp.program", OsStr::new("false")),
        ("gpg.x509.program", OsStr::new("false")),
    ];
    git.with_config(always.into_iter().chain(revoked.map(|revoked| (REVOCATION_FILE_SETTING, revoked.as_os_str()))))
}

/// Parses what git prints for one commit.
fn parse_signature(record: &str) -> Option<(String, SignatureStatus)> {
    let mut lines = record.split('\n');
    let id = lines.next().filter(|id| !id.is_empty())?;
    let state = lines.next()?;
    let mut line = || lines.next().unwrap_or_default().to_owned();
    let key = line();
    let principal = line();
    let signature = match state {
        "G" if !principal.is_empty() && !key.is_empty() => SignatureStatus::Valid { principal, key },
        "G" | "U" => SignatureStatus::UnknownKey { key },
        "N" => SignatureStatus::None,
        "B" | "X" | "Y" | "R" => SignatureStatus::Invalid,
        _ => SignatureStatus::Unchecked,
    };
    Some((id.to_owned(), signature))
}
