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

/// `/api/health` and `/api/session`: who answers, and from what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Version of `runner-ui`.
    pub version: String,
    /// When it was started.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// Whether a daemon answers.
    pub connected: bool,
    /// When the daemon was heard last; null where none has answered yet.
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Timestamp>,
    /// Whether replies come from the files of a work tree, since no daemon has answered.
    #[serde(rename = "static")]
    pub from_records: bool,
    /// Id of the only repository, where the short paths name it.
    pub only: Option<String>,
    /// The daemon, as it was when the connection to it was made.
    pub daemon: Option<DaemonView>,
    /// Whether the server was started to steer.
    #[serde(default)]
    pub steers: bool,
    /// The machine of the daemon; null where it is this one.
    #[serde(default)]
    pub host: Option<String>,
    /// All machines that have a page: that of the first is at `/`, that of the one after `n` others at `/m/n`.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// `/api/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Who answers.
    #[serde(flatten)]
    pub health: Health,
    /// What steering needs beside the cookie, under the name of the host that was asked for; told to those alone who came by
    /// an address, and null where the server only looks.
    pub steer_token: Option<String>,
}

/// What is to be done with a run: the body of a request that steers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Steer {
    /// Answers a question of an agent's.
    Answer {
        /// Its id, or `RUN/ID`.
        question: String,
        /// The answer, at most 8 KiB.
        text: String,
    },
    /// Passes the node that an iteration has finished and that waits for a person.
    Approve {
        /// Number of the iteration; it is refused where another one waits.
        iter: u32,
    },
    /// Leaves that node open.
    Reject {
        /// Number of the iteration.
        iter: u32,
        /// Why, at most 8 KiB.
        reason: String,
    },
    /// Gives an exhausted node new attempts.
    Retry {
        /// Its id.
        node: String,
    },
    /// Tells the next session something.
    Note {
        /// What, at most 8 KiB.
        text: String,
    },
    /// Stops a run after its iteration.
    Pause {
        /// End the session at once.
        #[serde(default)]
        now: bool,
    },
    /// Lets a run go on.
    Resume {
        /// Do not wait for the time that it waits for.
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

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steered {
    /// In one line.
    pub summary: String,
    /// Whether it waits for something.
    pub pending: bool,
    /// What it waits for.
    pub waits_for: Option<String>,
}

/// Why a request has no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReply {
    /// The error.
    pub error: ErrorBody,
}

/// What is told of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// What a page acts on: a kind of the daemon's errors, or a word of this server's.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// What to do next, as a sentence, where there is something.
    pub hint: Option<String>,
    /// The commands of that sentence.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// When the daemon was heard last, where that is why.
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

/// The line that is printed once requests are answered, and again whenever the address was used, with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The address of the page; it leads there once.
    pub url: String,
    /// An address that leads to the page once: for a browser's command line, which others may see.
    pub url_once: String,
    /// What the header `Authorization: Bearer` takes; it is in no address.
    pub token: String,
    /// Process id.
    pub pid: u32,
}

/// What a file of `runnerctl export html` holds: a run, as the page asks for it. Replies and texts are named by the end of their
/// path: `tree`, `iterations/7`, `iterations/7/guard.log`.
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
    /// What is left out, in sentences.
    pub cuts: Vec<String>,
    /// Iterations whose texts are left out.
    pub without_texts: Vec<String>,
    /// Replies that are JSON.
    pub replies: BTreeMap<String, Value>,
    /// Texts; bytes that are not UTF-8 are replaced.
    pub texts: BTreeMap<String, String>,
}

/// The line that is printed once such a file is written, with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportedFile {
    /// Id of the run.
    pub run: String,
    /// Size of the file.
    pub bytes: u64,
    /// Iterations of the run.
    pub iterations: u64,
    /// Texts of which the file holds a part.
    pub shortened: Vec<Shortened>,
    /// Iterations whose texts are left out.
    pub without_texts: Vec<String>,
    /// The same in sentences.
    pub cuts: Vec<String>,
}

/// A text of which a file holds a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortened {
    /// Its iteration.
    pub iter: String,
    /// Its name, like `guard.log`.
    pub text: String,
    /// Its size.
    pub bytes: u64,
    /// Bytes of it in the file.
    pub kept: u64,
}
