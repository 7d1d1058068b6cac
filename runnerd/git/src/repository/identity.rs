//! Who commits: the user as git knows them, or the runner. Identities are not verified.

use runner_core::fsck::clean_ident_field;

use super::program::GitCommand;
use crate::Repository;

/// Name and address for a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Display name, in any script.
    pub name: String,
    /// Email address.
    pub email: String,
}

impl Identity {
    /// Returns the identity used if no user is configured.
    pub fn runner() -> Self {
        Self { name: "runnerd".to_owned(), email: "runnerd@localhost".to_owned() }
    }

    /// Returns a signature with the current time.
    pub(crate) fn signature(&self) -> gix::actor::Signature {
        gix::actor::Signature {
            name: clean_ident_field(&self.name).into(),
            email: clean_ident_field(&self.email).into(),
            time: gix::date::Time::now_local_or_utc(),
        }
    }

    /// Returns a signature with the current time, as git writes it.
    pub fn stamp(&self) -> String {
        let signature = self.signature();
        format!("{} <{}> {}", signature.name, signature.email, signature.time)
    }

    /// Makes a command of the git program commit as this identity.
    pub(crate) fn apply_to<'a>(&self, git: GitCommand<'a>) -> GitCommand<'a> {
        let name = clean_ident_field(&self.name);
        let email = clean_ident_field(&self.email);
        git.env("GIT_AUTHOR_NAME", &name)
            .env("GIT_AUTHOR_EMAIL", &email)
            .env("GIT_COMMITTER_NAME", &name)
            .env("GIT_COMMITTER_EMAIL", &email)
    }
}

impl Repository {
    /// Returns the user's identity from git's configuration, if it is complete.
    pub fn identity(&self) -> Option<Identity> {
        let repo = self.open().ok()?;
        let config = repo.config_snapshot();
        let value = |key: &str| config.string(key).map(|value| value.to_string()).filter(|value| !value.is_empty());
        Some(Identity { name: value("user.name")?, email: value("user.email")? })
    }
}
