//! Which key commits are signed with: the one that the user's git names for the runner alone, else the one that it signs with.

use std::ffi::OsStr;

use gix::bstr::ByteSlice as _;

use super::program::GitCommand;
use crate::git::{GitError, Repository};

/// The setting of git's that names a key for the runner: a file, or `key::` and a public key that an agent has.
const SIGNING_KEY_SETTING: &str = "runner.signingKey";

impl Repository {
    /// Prepares git to make a signed commit, with the message on its standard input.
    pub(in crate::git) fn signed_commit_command(&self) -> Result<GitCommand<'_>, GitError> {
        let git = GitCommand::new(self, "commit-tree").args(["-S", "-F", "-"]);
        let Some(key) = self.open()?.config_snapshot().string(SIGNING_KEY_SETTING) else { return Ok(git) };
        let key = key.to_os_str_lossy();
        Ok(git.with_config([
            ("gpg.format", OsStr::new("ssh")),
            ("gpg.ssh.program", OsStr::new("ssh-keygen")),
            ("user.signingKey", key.as_ref()),
        ]))
    }
}
