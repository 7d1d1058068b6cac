//! What the service replies, apart from the protocol: the model's word, or how it fails.

use serde_json::Value;

use super::fault::ServiceFault;

/// The model's word or the service's failure, and how it travels.
#[derive(Debug, Clone)]
pub struct ModelReply {
    pub(super) what: ReplyContent,
    pub(super) headers: Vec<(String, String)>,
    pub(super) usage: TokenUsage,
    pub(super) course: Delivery,
}

/// What is said.
#[derive(Debug, Clone)]
pub(super) enum ReplyContent {
    /// The shell is to run a command.
    Run(String),
    /// The session's result, in the way in which the client takes it.
    Answer(Value),
    /// A text and the end of the turn.
    Text(String),
    /// The end of the turn alone.
    Nothing,
    /// The answer is cut because it is too long.
    Cut(String),
    /// The service fails in its protocol's own words.
    Fails(ServiceFault),
    /// Any answer of the web.
    Status { code: u16, body: String },
    /// A stream of these bytes.
    Raw(String),
}

/// How the reply travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// From its beginning to its end.
    Whole,
    /// The connection is closed before anything was sent.
    NeverSent,
    /// Nothing is sent, and the connection stays.
    Withheld,
    /// The connection is closed halfway.
    Dropped,
    /// The connection stays open halfway.
    Stalled,
    /// The last event alone is not sent, and the connection stays open.
    Unfinished,
}

/// Tokens that a reply says to have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens read, those from the cache included.
    pub input: u64,
    /// Of these, tokens from the cache.
    pub cached: u64,
    /// Tokens written.
    pub output: u64,
}

impl Default for TokenUsage {
    fn default() -> Self {
        Self { input: 1_000, cached: 200, output: 50 }
    }
}

impl ModelReply {
    pub(super) fn new(what: ReplyContent) -> Self {
        Self { what, headers: Vec::new(), usage: TokenUsage::default(), course: Delivery::Whole }
    }

    /// Runs a command in the client's shell.
    pub fn run(command: &str) -> Self {
        Self::new(ReplyContent::Run(command.to_owned()))
    }

    /// Gives the session's result.
    pub fn answer(result: Value) -> Self {
        Self::new(ReplyContent::Answer(result))
    }

    /// Says a text and ends the turn.
    pub fn text(text: &str) -> Self {
        Self::new(ReplyContent::Text(text.to_owned()))
    }

    /// Ends the turn without a word.
    pub fn empty() -> Self {
        Self::new(ReplyContent::Nothing)
    }

    /// Says a text that is cut because it is too long.
    pub fn truncated(text: &str) -> Self {
        Self::new(ReplyContent::Cut(text.to_owned()))
    }

    /// Replies as any server of the web might.
    pub fn status(code: u16, body: &str) -> Self {
        Self::new(ReplyContent::Status { code, body: body.to_owned() })
    }

    /// Streams these bytes, whatever they are.
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

    /// Goes silent halfway through the reply.
    #[must_use]
    pub fn stalled(self) -> Self {
        self.with_delivery(Delivery::Stalled)
    }

    /// Says everything but that this was all.
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

    /// Sets what it says to have taken.
    #[must_use]
    pub fn usage(mut self, usage: TokenUsage) -> Self {
        self.usage = usage;
        self
    }

    pub(super) fn with_delivery(mut self, course: Delivery) -> Self {
        self.course = course;
        self
    }
}
