//! A reply in one protocol's form, ready to be sent.

use super::events::SseEvents;

/// An HTTP response: status, headers and body.
#[derive(Debug)]
pub(super) struct HttpReply {
    pub(super) code: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: ReplyBody,
}

/// The body of a response.
#[derive(Debug)]
pub(super) enum ReplyBody {
    /// Of a known length.
    Complete(String),
    /// Events, sent as the course requires.
    Events(SseEvents),
}

impl HttpReply {
    pub(super) fn json(code: u16, body: &serde_json::Value) -> Self {
        Self::text(code, "application/json", body.to_string())
    }

    pub(super) fn text(code: u16, kind: &str, body: String) -> Self {
        Self { code, headers: vec![("content-type".to_owned(), kind.to_owned())], body: ReplyBody::Complete(body) }
    }

    pub(super) fn stream(events: SseEvents) -> Self {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Self { code: 200, headers, body: ReplyBody::Events(events) }
    }

    #[must_use]
    pub(super) fn header(mut self, name: &str, value: &impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}
