//! Replies of the service, independent of the protocol: the model's output, or a failure.

use serde_json::Value;

use super::fault::ServiceFault;

/// The model's output or the service's failure, and how it is delivered.
#[derive(Debug, Clone)]
pub struct ModelReply {
    pub(super) what: ReplyContent,
    pub(super) headers: Vec<(String, String)>,
    pub(super) usage: TokenUsage,
    pub(super) delivery: Delivery,
}

/// Content of a reply.
#[derive(Debug, Clone)]
pub(super) enum ReplyContent {
    /// The client's shell is to run a command.
    Run(String),
    /// The session's result, in the form that the client expects.
    Answer(Value),
    /// A text, then the end of the turn.
    Text(String),
    /// The end of the turn alone.
    Empty,
    /// A text that is truncated because it is too long.
    Truncated(String),
    /// A failure, as the protocol expresses it.
    Fault(ServiceFault),
    /// Any HTTP response.
    Status { code: u16, body: String },
    /// A stream of these bytes.
    Raw(String),
}

/// How the reply is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Completely.
    Complete,
    /// The connection is closed before anything is sent.
    NeverSent,
    /// Nothing is sent, and the connection stays open.
    Withheld,
    /// The connection is closed halfway.
    Dropped,
    /// The reply stops halfway, and the connection stays open.
    Stalled,
    /// Only the last event is not sent, and the connection stays open.
    Unfinished,
}

/// Token usage that a reply reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenUsage {
    /// Input tokens, including those read from the cache.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

impl Default for TokenUsage {
    fn default() -> Self {
        Self { input: 1_000, cached: 200, output: 50 }
    }
}

impl ModelReply {
    pub(super) fn new(what: ReplyContent) -> Self {
        Self { what, headers: Vec::new(), usage: TokenUsage::default(), delivery: Delivery::Complete }
    }

    /// Runs a command in the client's shell.
    pub fn run(command: &str) -> Self {
        Self::new(ReplyContent::Run(command.to_owned()))
    }

    /// Returns the session's result.
    pub fn answer(result: Value) -> Self {
        Self::new(ReplyContent::Answer(result))
    }

    /// Outputs a text and ends the turn.
    pub fn text(text: &str) -> Self {
        Self::new(ReplyContent::Text(text.to_owned()))
    }

    /// Ends the turn without output.
    pub fn empty() -> Self {
        Self::new(ReplyContent::Empty)
    }

    /// Outputs a text that is truncated because it is too long.
    pub fn truncated(text: &str) -> Self {
        Self::new(ReplyContent::Truncated(text.to_owned()))
    }

    /// Replies like an arbitrary HTTP server.
    pub fn status(code: u16, body: &str) -> Self {
        Self::new(ReplyContent::Status { code, body: body.to_owned() })
    }

    /// Streams these bytes unchanged, valid or not.
    pub fn raw(bytes: &str) -> Self {
        Self::new(ReplyContent::Raw(bytes.to_owned()))
    }

    /// Closes the connection without a reply.
    pub fn hang_up() -> Self {
        Self::empty().with_delivery(Delivery::NeverSent)
    }

    /// Never replies.
    pub fn silence() -> Self {
        Self::empty().with_delivery(Delivery::Withheld)
    }

    /// Closes the connection halfway through the reply.
    #[must_use]
    pub fn dropped(self) -> Self {
        self.with_delivery(Delivery::Dropped)
    }

    /// Stalls halfway through the reply.
    #[must_use]
    pub fn stalled(self) -> Self {
        self.with_delivery(Delivery::Stalled)
    }

    /// Sends everything except the final event.
    #[must_use]
    pub fn unfinished(self) -> Self {
        self.with_delivery(Delivery::Unfinished)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the reported token usage.
    #[must_use]
    pub fn usage(mut self, usage: TokenUsage) -> Self {
        self.usage = usage;
        self
    }

    pub(super) fn with_delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }
}
