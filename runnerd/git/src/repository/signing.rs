//! Chooses the key that commits are signed with: the one git is configured to use for the runner, or else the user's
//! signing key.

use std::ffi::OsStr;

use gix::bstr::ByteSlice as _;

use super::program::GitCommand;
use crate::{GitError, Repository};

/// The git setting for the runner's key: a file, or `key::` and a public key held by an agent.
const SIGNING_KEY_SETTING: &str = "runner.signingKey";

impl Repository {
    /// Prepares git to create a signed commit, with the message on its standard input.
    pub(crate) fn signed_commit_command(&self) -> Result<GitCommand<'_>, GitError> {
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
