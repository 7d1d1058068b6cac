//! Decides which reply is sent when: by order, or by the content of the request.

use std::fmt;

use super::reply::ModelReply;
use super::request::ModelRequest;

/// Rules in order; the first that matches a request and has a reply left answers it.
#[derive(Default)]
pub struct ReplyScript {
    rules: Vec<ReplyRule>,
}

struct ReplyRule {
    applies: Box<dyn Fn(&ModelRequest) -> bool + Send>,
    reply: ModelReply,
    remaining: Option<u32>,
}

impl fmt::Debug for ReplyScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| (&rule.reply, rule.remaining))).finish()
    }
}

impl ReplyScript {
    /// Creates a script that replies to nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replies once.
    #[must_use]
    pub fn then(self, reply: ModelReply) -> Self {
        self.times(1, reply)
    }

    /// Sends a reply to the given number of requests.
    #[must_use]
    pub fn times(self, count: u32, reply: ModelReply) -> Self {
        self.add_rule(|_| true, reply, Some(count))
    }

    /// Sends a reply to every remaining request.
    #[must_use]
    pub fn always(self, reply: ModelReply) -> Self {
        self.add_rule(|_| true, reply, None)
    }

    /// Sends a reply to the next matching request.
    #[must_use]
    pub fn once(self, applies: impl Fn(&ModelRequest) -> bool + Send + 'static, reply: ModelReply) -> Self {
        self.add_rule(applies, reply, Some(1))
    }

    /// Sends a reply to all matching requests.
    #[must_use]
    pub fn when(self, applies: impl Fn(&ModelRequest) -> bool + Send + 'static, reply: ModelReply) -> Self {
        self.add_rule(applies, reply, None)
    }

    pub(super) fn add_rule(
        mut self,
        applies: impl Fn(&ModelRequest) -> bool + Send + 'static,
        reply: ModelReply,
        remaining: Option<u32>,
    ) -> Self {
        self.rules.push(ReplyRule { applies: Box::new(applies), reply, remaining });
        self
    }

    /// Takes the reply to a request; refuses the request if the script has none left.
    pub(super) fn take_reply(&mut self, request: &ModelRequest) -> ModelReply {
        let rule = self.rules.iter_mut().find(|rule| rule.remaining != Some(0) && (rule.applies)(request));
        let Some(rule) = rule else { return ModelReply::invalid("the script has no reply to this request") };
        rule.remaining = rule.remaining.map(|left| left - 1);
        rule.reply.clone()
    }
}
