//! An agent's answer as it left it, in the file that `$RUNNER_OUTPUT` names or elsewhere: its content is untrusted.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use protocol::answer::{AgentAnswer, AgentError, AgentErrorClass, ReviewAnswer, SessionUsage};
use runner_core::files::answer::{self, AnswerForm, MAX_OUTPUT_BYTES, RejectedAnswer, SessionAnswer};
use runner_core::text::digest::Digest;
use runner_core::text::redact::Secrets;
use serde_json::Value;

use super::regular_file;

/// The content of the answer file.
#[derive(Debug)]
pub(super) enum AnswerFile<A = AgentAnswer> {
    /// There is no file, or an empty one.
    Absent,
    /// Something that is not an answer.
    Invalid { what: String, digest: Option<String> },
    /// An answer, or an error reported by the agent itself.
    Given { content: Result<A, AgentError>, usage: SessionUsage, digest: String },
}

impl<A> AnswerFile<A> {
    /// Returns the digest of the file, if it could be read.
    pub(super) fn digest(&self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Invalid { digest, .. } => digest.clone(),
            Self::Given { digest, .. } => Some(digest.clone()),
        }
    }

    /// Turns an error reported by the agent into an invalid answer: only programs of kind `command` may report one.
    pub(super) fn without_stated_error(self) -> Self {
        match self {
            Self::Given { content: Err(_), digest, .. } => {
                Self::Invalid { what: "it has `error` in the place of an answer".to_owned(), digest: Some(digest) }
            }
            other => other,
        }
    }

    /// Whether the agent reports that its service was unavailable.
    pub(super) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Given { content: Err(stated), .. } if stated.class == AgentErrorClass::Unavailable)
    }

    /// Returns what the session reports to have consumed.
    pub(super) fn usage(&self) -> SessionUsage {
        match self {
            Self::Given { usage, .. } => *usage,
            Self::Absent | Self::Invalid { .. } => SessionUsage::default(),
        }
    }
}

/// Returns how long ago the file was written; `None` if it does not exist or its time is unknown.
pub(super) fn file_age(path: &Path, now: Timestamp) -> Option<Duration> {
    let modified = std::fs::symlink_metadata(path).ok()?.modified().ok()?;
    now.duration_since(Timestamp::try_from(modified).ok()?).try_into().ok()
}

/// Reads the file, redacting secrets.
pub(super) fn read_answer<A: SessionAnswer>(path: &Path, secrets: &Secrets) -> AnswerFile<A> {
    match read_bounded(path) {
        Ok(Some(bytes)) => parse_answer(&bytes, secrets),
        Ok(None) => AnswerFile::Absent,
        Err(error) => AnswerFile::Invalid { what: error.to_string(), digest: None },
    }
}

/// Parses an answer, redacting secrets; empty input counts as absent.
pub(super) fn parse_answer<A: SessionAnswer>(bytes: &[u8], secrets: &Secrets) -> AnswerFile<A> {
    if bytes.is_empty() {
        return AnswerFile::Absent;
    }
    let digest = Digest::compute(&secrets.redact_bytes(bytes)).to_string();
    match answer::read_answer(bytes, secrets) {
        Ok(output) => AnswerFile::Given { content: output.content, usage: output.usage, digest },
        Err(RejectedAnswer(what)) => AnswerFile::Invalid { what, digest: Some(digest) },
    }
}

/// Whether the file contains what was asked for, or an error reported by the agent.
pub(super) fn holds_answer(path: &Path, form: AnswerForm) -> bool {
    fn parses<A: SessionAnswer>(path: &Path) -> bool {
        matches!(read_answer::<A>(path, &Secrets::default()), AnswerFile::Given { .. })
    }
    match form {
        AnswerForm::Answer => parses::<AgentAnswer>(path),
        AnswerForm::Review => parses::<ReviewAnswer>(path),
    }
}

/// Returns the answer in a session's last text, unless the file contains one: the text if it is an object, else the only
/// part of it that is an answer.
pub(super) fn find_text_answer(text: &str, form: AnswerForm, file: &Path) -> Option<Vec<u8>> {
    let text = text.trim();
    let is_object = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    let find = || match form {
        AnswerForm::Answer => answer::find_answer::<AgentAnswer>(text),
        AnswerForm::Review => answer::find_answer::<ReviewAnswer>(text),
    };
    let found = if is_object { Some(text) } else { find() }.filter(|_| !holds_answer(file, form));
    found.map(|found| found.as_bytes().to_vec())
}

/// Redacts secrets in the file, which stays in the record.
pub(super) fn redact_file(path: &Path, secrets: &Secrets) -> io::Result<()> {
    let Ok(Some(bytes)) = read_bounded(path) else { return Ok(()) };
    match secrets.redact_bytes(&bytes) {
        Cow::Borrowed(_) => Ok(()),
        Cow::Owned(redacted) => replace_file(path, &redacted),
    }
}

/// Creates a new file: the agent may have another hard link to the old one.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Reads the file up to one byte more than the size limit of an answer.
fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    regular_file::read_regular(path, MAX_OUTPUT_BYTES as u64 + 1)
        .map_err(|error| io::Error::new(error.kind(), format!("$RUNNER_OUTPUT cannot be read: {error}")))
}
