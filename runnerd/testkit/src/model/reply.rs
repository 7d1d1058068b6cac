//! What the service replies, apart from the protocol: the model's word, or how it fails.

use serde_json::Value;

use super::fault::Fault;

/// The model's word or the service's failure, and how it travels.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) what: What,
    pub(super) headers: Vec<(String, String)>,
    pub(super) usage: Usage,
    pub(super) course: Course,
}

/// What is said.
#[derive(Debug, Clone)]
pub(super) enum What {
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
    Fails(Fault),
    /// Any answer of the web.
    Status { code: u16, body: String },
    /// A stream of these bytes.
    Raw(String),
}

/// How the reply travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
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
pub struct Usage {
    /// Tokens read, those from the cache included.
    pub input: u64,
    /// Of these, tokens from the cache.
    pub cached: u64,
    /// Tokens written.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1_000, cached: 200, output: 50 }
    }
}

impl Reply {
    pub(super) fn new(what: What) -> Self {
        Self { what, headers: Vec::new(), usage: Usage::default(), course: Course::Whole }
    }

    /// Runs a command in the client's shell.
    pub fn run(command: &str) -> Self {
        Self::new(What::Run(command.to_owned()))
    }

    /// Gives the session's result.
    pub fn answer(result: Value) -> Self {
        Self::new(What::Answer(result))
    }

    /// Says a text and ends the turn.
    pub fn text(text: &str) -> Self {
        Self::new(What::Text(text.to_owned()))
    }

    /// Ends the turn without a word.
    pub fn nothing() -> Self {
        Self::new(What::Nothing)
    }

    /// Says a text that is cut because it is too long.
    pub fn cut(text: &str) -> Self {
        Self::new(What::Cut(text.to_owned()))
    }

    /// Replies as any server of the web might.
    pub fn status(code: u16, body: &str) -> Self {
        Self::new(What::Status { code, body: body.to_owned() })
    }

    /// Streams these bytes, whatever they are.
    pub fn raw(bytes: &str) -> Self {
        Self::new(What::Raw(bytes.to_owned()))
    }

    /// Closes the connection without a reply.
    pub fn hang_up() -> Self {
        Self::nothing().on(Course::NeverSent)
    }

    /// Never replies.
    pub fn silence() -> Self {
        Self::nothing().on(Course::Withheld)
    }

    /// Closes the connection halfway through the reply.
    #[must_use]
    pub fn dropped(self) -> Self {
        self.on(Course::Dropped)
    }

    /// Goes silent halfway through the reply.
    #[must_use]
    pub fn stalled(self) -> Self {
        self.on(Course::Stalled)
    }

    /// Says everything but that this was all.
    #[must_use]
    pub fn unfinished(self) -> Self {
        self.on(Course::Unfinished)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets what it says to have taken.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    pub(super) fn on(mut self, course: Course) -> Self {
        self.course = course;
        self
    }
}
