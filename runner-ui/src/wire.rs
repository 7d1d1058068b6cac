//! What is said to a page and to nobody else; all other replies are the protocol's own types.
//!
//! `schemas/web.v1.schema.json` is generated from these.

use jiff::Timestamp;
use protocol::command::Command;
use protocol::view::DaemonView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
