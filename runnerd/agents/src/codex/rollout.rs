//! The rollout: what `codex` records of a session in its own folder, and does not print.
//!
//! It has the usage after a kill, the cause of a failure in stable terms, and the end of a limit. Only its end is read,
//! once, and it is removed: the record of the iteration has what is worth keeping.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use protocol::answer::SessionUsage;
use serde::Deserialize;
use serde_json::Value;

use super::super::regular_file;
use super::events::CodexTokens;

/// Bytes read from the end; a single line may have more than a megabyte.
const MAX_TAIL: u64 = 8 << 20;
/// Number of days searched, the newest first.
const MAX_DAYS: usize = 4;
/// Maximum number of entries read from a folder.
const MAX_ENTRIES: usize = 50_000;
/// A line contains this, and no text in a line does, where the session was compacted.
const COMPACTED: &[u8] = br#""type":"compacted""#;
/// Bytes that are searched at once.
const BLOCK: u64 = 1 << 20;
/// Type of the lines with the settings of a turn.
const TURN_KIND: &str = "turn_context";
/// Length limit of a session id in bytes.
const MAX_ID: usize = 64;

/// The content of a rollout.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CodexRollout {
    /// What the session consumed so far.
    pub(super) usage: Option<SessionUsage>,
    /// The model that was used last.
    pub(super) model: Option<String>,
    /// Why it failed.
    pub(super) cause: Option<RolloutCause>,
    /// Whether the program has replaced the beginning of the session by a summary, which it does not print.
    pub(super) is_compacted: bool,
    /// When the limit that is reached, or closest to it, ends.
    pub(super) resets_at: Option<Timestamp>,
}

/// Why a session failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct RolloutCause {
    /// A message for people.
    #[serde(default)]
    pub(super) message: String,
    /// A code, or a code with details.
    #[serde(default, rename = "codex_error_info")]
    info: Value,
}

impl RolloutCause {
    /// Returns the code.
    pub(super) fn info_word(&self) -> &str {
        let word = || self.info.as_object().and_then(|details| details.keys().next()).map(String::as_str);
        self.info.as_str().or_else(word).unwrap_or_default()
    }

    /// Returns the HTTP status of the service's reply, if the details have one.
    pub(super) fn http_status(&self) -> Option<u64> {
        self.info.as_object()?.values().next()?.get("http_status_code")?.as_u64()
    }
}

/// Reads the rollout of a session and removes it.
pub(super) fn take_rollout(home: &Path, session: &str) -> Option<CodexRollout> {
    let path = find_rollout(&home.join("sessions"), session)?;
    let read = |mut file: File| Ok((is_compacted(&mut file)?, read_tail(file)?));
    match regular_file::open_regular(&path).and_then(|file| file.map(read).transpose()) {
        Ok(Some((is_compacted, tail))) => {
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(path = %path.display(), %error, "failed to remove the agent's own record");
            }
            Some(CodexRollout { is_compacted, ..parse_rollout(&tail) })
        }
        Ok(None) => None,
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "failed to read the agent's own record");
            None
        }
    }
}

/// Finds `YYYY/MM/DD/rollout-<time>-<session>.jsonl`.
fn find_rollout(sessions: &Path, session: &str) -> Option<PathBuf> {
    let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if session.is_empty() || session.len() > MAX_ID || !session.bytes().all(is_id) {
        return None;
    }
    let end = format!("-{session}.jsonl");
    let days = numbered_dirs(sessions).flat_map(|year| numbered_dirs(&year)).flat_map(|month| numbered_dirs(&month));
    days.take(MAX_DAYS).find_map(|day| {
        let names = entry_names(&day).find(|name| name.starts_with("rollout-") && name.ends_with(&end));
        names.map(|name| day.join(name))
    })
}

/// Returns the folders with a number as name, the highest first.
fn numbered_dirs(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let is_number = |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let mut found: Vec<String> = entry_names(folder).filter(is_number).collect();
    found.sort_unstable();
    let folder = folder.to_owned();
    found.into_iter().rev().map(move |name| folder.join(name))
}

fn entry_names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES);
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// Searches the whole file: a compaction may be long ago.
fn is_compacted(file: &mut File) -> io::Result<bool> {
    let mut bytes = Vec::new();
    loop {
        // What was sought may be in two blocks.
        bytes.drain(..bytes.len().saturating_sub(COMPACTED.len()));
        if file.take(BLOCK).read_to_end(&mut bytes)? == 0 {
            return Ok(false);
        }
        if bytes.windows(COMPACTED.len()).any(|window| window == COMPACTED) {
            return Ok(true);
        }
    }
}

/// Reads the end of a file, starting at a complete line.
fn read_tail(mut file: File) -> io::Result<Vec<u8>> {
    let from = file.metadata()?.len().saturating_sub(MAX_TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut bytes)?;
    if from > 0 {
        let line_start = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..line_start);
    }
    Ok(bytes)
}

fn parse_rollout(lines: &[u8]) -> CodexRollout {
    let mut rollout = CodexRollout::default();
    let mut limits = RolloutLimits::default();
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(RolloutLine { kind, payload }) = serde_json::from_slice(line) else { continue };
        rollout.model = payload.model.filter(|_| kind.as_deref() == Some(TURN_KIND)).or(rollout.model);
        let total = payload.info.map(|info| info.total_token_usage).or(payload.thread_token_usage);
        rollout.usage = total.map(SessionUsage::from).or(rollout.usage);
        rollout.cause = payload.error.or(rollout.cause);
        limits = payload.rate_limits.filter(RolloutLimits::has_any).unwrap_or(limits);
    }
    let is_limit = rollout.cause.as_ref().is_some_and(|cause| cause.info_word() == "usage_limit_exceeded");
    rollout.resets_at = limits.full_reset().or_else(|| limits.fullest_reset().filter(|_| is_limit));
    rollout
}

/// A line, whose payload is what matters.
#[derive(Debug, Deserialize)]
struct RolloutLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    payload: RolloutPayload,
}

#[derive(Debug, Deserialize)]
struct RolloutPayload {
    /// With `token_count`: the usage of the session so far.
    info: Option<RolloutInfo>,
    /// With `token_count`: the limits of the user's plan.
    rate_limits: Option<RolloutLimits>,
    /// With a `token_usage_record`, which precedes the tool calls: the usage of the session so far.
    thread_token_usage: Option<CodexTokens>,
    /// With a `turn_context`: the model of the turn.
    model: Option<String>,
    /// With `task_complete`: why it failed.
    error: Option<RolloutCause>,
}

#[derive(Debug, Deserialize)]
struct RolloutInfo {
    total_token_usage: CodexTokens,
}

#[derive(Debug, Default, Deserialize)]
struct RolloutLimits {
    primary: Option<RolloutWindow>,
    secondary: Option<RolloutWindow>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct RolloutWindow {
    used_percent: f64,
    resets_at: Option<f64>,
}

impl RolloutLimits {
    fn has_any(&self) -> bool {
        self.primary.is_some() || self.secondary.is_some()
    }

    fn windows(&self) -> impl Iterator<Item = RolloutWindow> + use<> {
        self.primary.into_iter().chain(self.secondary)
    }

    /// Returns when the last of the exhausted windows is reset.
    fn full_reset(&self) -> Option<Timestamp> {
        self.windows().filter(|window| window.used_percent >= 100.0).filter_map(RolloutWindow::reset_time).max()
    }

    /// Returns when the most used window is reset.
    fn fullest_reset(&self) -> Option<Timestamp> {
        self.windows().max_by(|a, b| a.used_percent.total_cmp(&b.used_percent)).and_then(RolloutWindow::reset_time)
    }
}

impl RolloutWindow {
    fn reset_time(self) -> Option<Timestamp> {
        #[expect(clippy::cast_possible_truncation, reason = "seconds; a number out of range is no time")]
        self.resets_at.and_then(|seconds| Timestamp::from_second(seconds as i64).ok())
    }
}
