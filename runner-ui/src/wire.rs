//! Types that are sent only to the page; all other replies are the protocol's own types.
//!
//! `schemas/web.v1.schema.json` is generated from these.

use std::collections::BTreeMap;

use jiff::Timestamp;
use protocol::command::Command;
use protocol::view::DaemonView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `/api/health` and `/api/session`: the server, and its source of data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Version of `runner-ui`.
    pub version: String,
    /// When it was started.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// Whether a daemon answers.
    pub connected: bool,
    /// When the daemon last answered; null if it has not answered yet.
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Timestamp>,
    /// Whether replies come from the files of a work tree, because no daemon has answered.
    #[serde(rename = "static")]
    pub from_records: bool,
    /// Id of the only repository, if the short paths refer to it.
    pub only: Option<String>,
    /// The daemon, as it was when the connection was opened.
    pub daemon: Option<DaemonView>,
    /// Whether the server was started with permission to steer.
    #[serde(default)]
    pub steers: bool,
    /// The machine of the daemon; null if it is this machine.
    #[serde(default)]
    pub host: Option<String>,
    /// All machines that have a page: the first one is at `/`, the others are at `/m/1`, `/m/2` and so on.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// `/api/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The server.
    #[serde(flatten)]
    pub health: Health,
    /// The token that steering requires in addition to the cookie, for the requested host; sent only to a page that was
    /// opened with an address from this server, and null if the server does not steer.
    pub steer_token: Option<String>,
}

/// The body of a request that steers a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Steer {
    /// Answers an agent's question.
    Answer {
        /// Its id, or `RUN/ID`.
        question: String,
        /// The answer, at most 8 KiB.
        text: String,
    },
    /// Approves the node that an iteration has finished and that waits for a person's review.
    Approve {
        /// Number of the iteration; refused if a different one waits.
        iter: u32,
    },
    /// Rejects that node: it stays open.
    Reject {
        /// Number of the iteration.
        iter: u32,
        /// The reason, at most 8 KiB.
        reason: String,
    },
    /// Gives an exhausted node new attempts.
    Retry {
        /// Its id.
        node: String,
    },
    /// Leaves a note for the next session.
    Note {
        /// The note, at most 8 KiB.
        text: String,
    },
    /// Pauses a run after its current iteration.
    Pause {
        /// End the session at once.
        #[serde(default)]
        now: bool,
    },
    /// Continues a run.
    Resume {
        /// Do not wait for the time at which the run would continue automatically.
        #[serde(default)]
        now: bool,
        /// Iterations granted beyond its limit.
        #[serde(default)]
        more: Option<u32>,
    },
}

impl Steer {
    /// Returns the daemon's method for it.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Answer { .. } => "question.answer",
            Self::Approve { .. } => "review.approve",
            Self::Reject { .. } => "review.reject",
            Self::Retry { .. } => "tree.retry",
            Self::Note { .. } => "note.add",
            Self::Pause { .. } => "run.pause",
            Self::Resume { .. } => "run.resume",
        }
    }
}

/// The result of a request that steers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steered {
    /// The result, in one line.
    pub summary: String,
    /// Whether the request has not taken effect yet.
    pub pending: bool,
    /// What the request waits for.
    pub waits_for: Option<String>,
}

/// Why a request has no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReply {
    /// The error.
    pub error: ErrorBody,
}

/// The content of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The code for the page: a kind of the daemon's errors, or one of this server's words.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// What to do next, as a sentence, if there is something to do.
    pub hint: Option<String>,
    /// The commands in that sentence.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// When the daemon last answered, if that is the cause.
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Timestamp>,
}

/// The data of `resync`, `daemon_gone` and `daemon_back` on the stream of events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// One sentence.
    pub message: String,
    /// When it was noticed.
    #[schemars(with = "String")]
    pub time: Timestamp,
}

/// The line printed with `--json` when the server is ready, and again each time the address has been used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The address of the page; it works once.
    pub url: String,
    /// An address that opens the page once, for a browser's command line, which other users may see.
    pub url_once: String,
    /// The token for the header `Authorization: Bearer`; no address contains it.
    pub token: String,
    /// Process id.
    pub pid: u32,
}

/// The content of a file from `runnerctl export html`: a run, in the form in which the page requests it. Replies and
/// texts are named by the end of their path: `tree`, `iterations/7`, `iterations/7/guard.log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFile {
    /// Version of `runner-ui`.
    pub version: String,
    /// When the run was read.
    #[schemars(with = "String")]
    pub made_at: Timestamp,
    /// Id of the repository.
    pub repo: String,
    /// Id of the run.
    pub run: String,
    /// The parts that are left out, in sentences.
    pub cuts: Vec<String>,
    /// Iterations whose texts are left out.
    pub without_texts: Vec<String>,
    /// Replies that are JSON.
    pub replies: BTreeMap<String, Value>,
    /// Texts; invalid UTF-8 is replaced.
    pub texts: BTreeMap<String, String>,
}

/// The line printed with `--json` when such a file has been written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportedFile {
    /// Id of the run.
    pub run: String,
    /// Size of the file.
    pub bytes: u64,
    /// Iterations of the run.
    pub iterations: u64,
    /// Texts that are only partly in the file.
    pub shortened: Vec<Shortened>,
    /// Iterations whose texts are left out.
    pub without_texts: Vec<String>,
    /// The parts that are left out, in sentences.
    pub cuts: Vec<String>,
}

/// A text that is only partly in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortened {
    /// Its iteration.
    pub iter: String,
    /// Its name, such as `guard.log`.
    pub text: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of it in the file.
    pub kept: u64,
}
