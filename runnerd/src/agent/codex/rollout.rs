//! The rollout: what `codex` writes down of a session in its own folder, and does not print.
//!
//! Usage after a kill, the cause of a failure in words that do not change, and when a limit ends. It is read once, its
//! end alone, and removed: the record of the iteration has what is to stay.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use protocol::answer::SessionUsage;
use serde::Deserialize;
use serde_json::Value;

use super::super::regular;
use super::events::Tokens;

/// Bytes of the end that are read; one line may have more than a megabyte.
const MAX_TAIL: u64 = 8 << 20;
/// Days that are looked through, the newest first.
const MAX_DAYS: usize = 4;
/// Entries of a folder that are looked at.
const MAX_ENTRIES: usize = 50_000;
/// The lines that say what a turn is asked with.
const TURN: &str = "turn_context";
/// Longest id of a session.
const MAX_ID: usize = 64;

/// What a rollout says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rollout {
    /// What the session consumed so far.
    pub(super) usage: Option<SessionUsage>,
    /// The model that was asked last.
    pub(super) model: Option<String>,
    /// Why it failed.
    pub(super) cause: Option<Cause>,
    /// When the limit that is reached, or nearest, ends.
    pub(super) resets_at: Option<Timestamp>,
}

/// Why a session failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Cause {
    /// For people.
    #[serde(default)]
    pub(super) message: String,
    /// A word, or a word with details.
    #[serde(default, rename = "codex_error_info")]
    info: Value,
}

impl Cause {
    /// Returns the word.
    pub(super) fn info(&self) -> &str {
        let word = || self.info.as_object().and_then(|details| details.keys().next()).map(String::as_str);
        self.info.as_str().or_else(word).unwrap_or_default()
    }

    /// Returns the status of the service's reply, where the details have one.
    pub(super) fn http_status(&self) -> Option<u64> {
        self.info.as_object()?.values().next()?.get("http_status_code")?.as_u64()
    }
}

/// Reads the rollout of a session and removes it.
pub(super) fn take(home: &Path, session: &str) -> Option<Rollout> {
    let path = find(&home.join("sessions"), session)?;
    let tail = regular::open(&path).and_then(|file| file.map(tail).transpose());
    match tail {
        Ok(Some(tail)) => {
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(path = %path.display(), %error, "the agent's own record stays");
            }
            Some(read(&tail))
        }
        Ok(None) => None,
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "the agent's own record is not read");
            None
        }
    }
}

/// Finds `YYYY/MM/DD/rollout-<time>-<session>.jsonl`.
fn find(sessions: &Path, session: &str) -> Option<PathBuf> {
    let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if session.is_empty() || session.len() > MAX_ID || !session.bytes().all(is_id) {
        return None;
    }
    let end = format!("-{session}.jsonl");
    let days = newest_first(sessions).flat_map(|year| newest_first(&year)).flat_map(|month| newest_first(&month));
    days.take(MAX_DAYS).find_map(|day| {
        let names = names(&day).find(|name| name.starts_with("rollout-") && name.ends_with(&end));
        names.map(|name| day.join(name))
    })
}

/// Returns the folders that are named by a number, the last first.
fn newest_first(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let is_number = |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let mut found: Vec<String> = names(folder).filter(is_number).collect();
    found.sort_unstable();
    let folder = folder.to_owned();
    found.into_iter().rev().map(move |name| folder.join(name))
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES);
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// Reads the end of a file, from the first line that is whole.
fn tail(mut file: File) -> io::Result<Vec<u8>> {
    let from = file.metadata()?.len().saturating_sub(MAX_TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut bytes)?;
    if from > 0 {
        let begun = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..begun);
    }
    Ok(bytes)
}

fn read(lines: &[u8]) -> Rollout {
    let mut rollout = Rollout::default();
    let mut limits = Limits::default();
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(RolloutLine { kind, payload }) = serde_json::from_slice(line) else { continue };
        rollout.model = payload.model.filter(|_| kind.as_deref() == Some(TURN)).or(rollout.model);
        let total = payload.info.map(|info| info.total_token_usage).or(payload.thread_token_usage);
        rollout.usage = total.map(SessionUsage::from).or(rollout.usage);
        rollout.cause = payload.error.or(rollout.cause);
        limits = payload.rate_limits.filter(Limits::has_any).unwrap_or(limits);
    }
    let is_limit = rollout.cause.as_ref().is_some_and(|cause| cause.info() == "usage_limit_exceeded");
    rollout.resets_at = limits.full().or_else(|| limits.fullest().filter(|_| is_limit));
    rollout
}

/// A line, of which the payload is what counts.
#[derive(Debug, Deserialize)]
struct RolloutLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    payload: Payload,
}

#[derive(Debug, Deserialize)]
struct Payload {
    /// With `token_count`: the session so far.
    info: Option<Info>,
    /// With `token_count`: the limits of the user's plan.
    rate_limits: Option<Limits>,
    /// With a `token_usage_record`, which comes before the tools are run: the session so far.
    thread_token_usage: Option<Tokens>,
    /// With a `turn_context`: the model that the turn asks.
    model: Option<String>,
    /// With `task_complete`: why it failed.
    error: Option<Cause>,
}

#[derive(Debug, Deserialize)]
struct Info {
    total_token_usage: Tokens,
}

#[derive(Debug, Default, Deserialize)]
struct Limits {
    primary: Option<Window>,
    secondary: Option<Window>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Window {
    used_percent: f64,
    resets_at: Option<f64>,
}

impl Limits {
    fn has_any(&self) -> bool {
        self.primary.is_some() || self.secondary.is_some()
    }

    fn windows(&self) -> impl Iterator<Item = Window> + use<> {
        self.primary.into_iter().chain(self.secondary)
    }

    /// Returns when the last of the windows that are used up begins anew.
    fn full(&self) -> Option<Timestamp> {
        self.windows().filter(|window| window.used_percent >= 100.0).filter_map(Window::end).max()
    }

    /// Returns when the window of which most is used begins anew.
    fn fullest(&self) -> Option<Timestamp> {
        self.windows().max_by(|a, b| a.used_percent.total_cmp(&b.used_percent)).and_then(Window::end)
    }
}

impl Window {
    fn end(self) -> Option<Timestamp> {
        #[expect(clippy::cast_possible_truncation, reason = "seconds; a number out of range is no time")]
        self.resets_at.and_then(|seconds| Timestamp::from_second(seconds as i64).ok())
    }
}
