//! What git says of the signatures of commits, held against keys in a file of allowed signers.
//!
//! Nothing that a repository configures takes part: neither keys nor programs, nor signatures of another kind, which hang on
//! a keyring of the user's.

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::audit::Signature;

use crate::git::repository::program::Git;
use crate::git::{GitError, Repository};

/// What git shows of each commit, a line each.
const FORMAT: &str = "--format=tformat:%H%n%G?%n%GF%n%GS";

impl Repository {
    /// Returns what git says of the signatures of commits, by id.
    pub fn signatures(&self, commits: &[String], signers: &Path) -> Result<BTreeMap<String, Signature>, GitError> {
        // Without one git would look at HEAD.
        if commits.is_empty() {
            return Ok(BTreeMap::new());
        }
        let args = ["--stdin", "--no-walk=unsorted", "--no-patch", "--no-show-signature", "--no-color", "-z"];
        let git = Git::new(self, "log").env("GIT_NO_LAZY_FETCH", "1").args(args);
        let git = configured(git, signers).args(["--encoding=UTF-8", FORMAT]);
        let shown = git.input(commits.join("\n").into_bytes()).run()?;
        Ok(String::from_utf8_lossy(&shown).split('\0').filter_map(read).collect())
    }
}

/// Sets what git checks signatures with, whatever is configured.
fn configured<'a>(git: Git<'a>, signers: &Path) -> Git<'a> {
    let programs = [
        ("gpg.ssh.program", "ssh-keygen"),
        ("gpg.program", "false"),
        ("gpg.openpgp.program", "false"),
        ("gpg.x509.program", "false"),
    ];
    let count = programs.len() + 1;
    let git = git.env("GIT_CONFIG_COUNT", count.to_string());
    let git = git.env("GIT_CONFIG_KEY_0", "gpg.ssh.allowedSignersFile").env("GIT_CONFIG_VALUE_0", signers);
    (1..).zip(programs).fold(git, |git, (at, (name, program))| {
        git.env(&format!("GIT_CONFIG_KEY_{at}"), name).env(&format!("GIT_CONFIG_VALUE_{at}"), program)
    })
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
