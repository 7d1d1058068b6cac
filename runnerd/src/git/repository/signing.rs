//! Which key commits are signed with: the one that the user's git names for the runner alone, else the one that it signs with.

use std::ffi::OsStr;

use gix::bstr::ByteSlice as _;

use super::program::Git;
use crate::git::{GitError, Repository};

/// The setting of git's that names a key for the runner: a file, or `key::` and a public key that an agent has.
const OWN: &str = "runner.signingKey";

impl Repository {
    /// Prepares git to make a signed commit, with the message on its standard input.
    pub(in crate::git) fn signed_commit(&self) -> Result<Git<'_>, GitError> {
        let git = Git::new(self, "commit-tree").args(["-S", "-F", "-"]);
        let Some(key) = self.open()?.config_snapshot().string(OWN) else { return Ok(git) };
        let key = key.to_os_str_lossy();
        Ok(git.configured([
            ("gpg.format", OsStr::new("ssh")),
            ("gpg.ssh.program", OsStr::new("ssh-keygen")),
            ("user.signingKey", key.as_ref()),
        ]))
    }
}
