//! An agent's answer as it has left it, in the file that `$RUNNER_OUTPUT` names or elsewhere: it may be anything.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use protocol::answer::{AgentAnswer, AgentError, AgentErrorClass, SessionUsage};
use runner_core::answer::{self, MAX_OUTPUT_BYTES};
use runner_core::digest::Digest;
use runner_core::redact::Secrets;

/// What stands where the answer goes.
#[derive(Debug)]
pub(super) enum AnswerFile {
    /// Nothing.
    Absent,
    /// Something that is no answer.
    Invalid { what: String, digest: Option<String> },
    /// An answer, or an error that the agent states of itself.
    Given { content: Result<AgentAnswer, AgentError>, usage: SessionUsage, digest: String },
}

impl AnswerFile {
    /// Returns the digest of the file, where it could be read.
    pub(super) fn digest(&self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Invalid { digest, .. } => digest.clone(),
            Self::Given { digest, .. } => Some(digest.clone()),
        }
    }

    /// Takes an error that the agent states of itself for no answer: only programs of kind `command` are asked for it.
    pub(super) fn without_stated_error(self) -> Self {
        match self {
            Self::Given { content: Err(_), digest, .. } => {
                Self::Invalid { what: "it has `error` in the place of an answer".to_owned(), digest: Some(digest) }
            }
            other => other,
        }
    }

    /// Returns whether the agent states that its service was not available.
    pub(super) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Given { content: Err(stated), .. } if stated.class == AgentErrorClass::Unavailable)
    }

    /// Returns what the session says it consumed.
    pub(super) fn usage(&self) -> SessionUsage {
        match self {
            Self::Given { usage, .. } => *usage,
            Self::Absent | Self::Invalid { .. } => SessionUsage::default(),
        }
    }
}

/// Reads the file, without the secrets in it.
pub(super) fn read(path: &Path, secrets: &Secrets) -> AnswerFile {
    match read_bounded(path) {
        Ok(Some(bytes)) => of(&bytes, secrets),
        Ok(None) => AnswerFile::Absent,
        Err(error) => AnswerFile::Invalid { what: error.to_string(), digest: None },
    }
}

/// Reads an answer, without the secrets in it; no bytes are none.
pub(super) fn of(bytes: &[u8], secrets: &Secrets) -> AnswerFile {
    if bytes.is_empty() {
        return AnswerFile::Absent;
    }
    let digest = Digest::of(&secrets.redact_bytes(bytes)).to_string();
    match answer::read(bytes, secrets) {
        Ok(output) => AnswerFile::Given { content: output.content, usage: output.usage, digest },
        Err(what) => AnswerFile::Invalid { what, digest: Some(digest) },
    }
}

/// Takes the secrets out of the file, which stays in the record.
pub(super) fn redact(path: &Path, secrets: &Secrets) -> io::Result<()> {
    let Ok(Some(bytes)) = read_bounded(path) else { return Ok(()) };
    match secrets.redact_bytes(&bytes) {
        Cow::Borrowed(_) => Ok(()),
        Cow::Owned(redacted) => replace(path, &redacted),
    }
}

/// Makes the file anew: the agent may hold the old one by another name.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Reads a regular file up to one byte more than an answer may have; a link or a pipe is not followed.
fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("$RUNNER_OUTPUT is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_OUTPUT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
