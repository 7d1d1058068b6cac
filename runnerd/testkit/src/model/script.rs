//! Which reply comes when: by order, or by what is asked.

use std::fmt;

use super::reply::ModelReply;
use super::request::ModelRequest;

/// Rules in order; the first that applies to a request and has a reply left gives it.
#[derive(Default)]
pub struct ReplyScript {
    rules: Vec<ReplyRule>,
}

struct ReplyRule {
    applies: Box<dyn Fn(&ModelRequest) -> bool + Send>,
    reply: ModelReply,
    left: Option<u32>,
}

impl fmt::Debug for ReplyScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| (&rule.reply, rule.left))).finish()
    }
}

impl ReplyScript {
    /// Begins a script that has no reply to anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a reply once.
    #[must_use]
    pub fn then(self, reply: ModelReply) -> Self {
        self.times(1, reply)
    }

    /// Gives a reply to so many requests.
    #[must_use]
    pub fn times(self, count: u32, reply: ModelReply) -> Self {
        self.add_rule(|_| true, reply, Some(count))
    }

    /// Gives a reply to every request that is left.
    #[must_use]
    pub fn always(self, reply: ModelReply) -> Self {
        self.add_rule(|_| true, reply, None)
    }

    /// Gives a reply to the next request that is as described.
    #[must_use]
    pub fn once(self, applies: impl Fn(&ModelRequest) -> bool + Send + 'static, reply: ModelReply) -> Self {
        self.add_rule(applies, reply, Some(1))
    }

    /// Gives a reply to all requests that are as described.
    #[must_use]
    pub fn when(self, applies: impl Fn(&ModelRequest) -> bool + Send + 'static, reply: ModelReply) -> Self {
        self.add_rule(applies, reply, None)
    }

    pub(super) fn add_rule(
        mut self,
        applies: impl Fn(&ModelRequest) -> bool + Send + 'static,
        reply: ModelReply,
        left: Option<u32>,
    ) -> Self {
        self.rules.push(ReplyRule { applies: Box::new(applies), reply, left });
        self
    }

    /// Takes the reply to a request; a script that has none left refuses it.
    pub(super) fn take_reply(&mut self, request: &ModelRequest) -> ModelReply {
        let rule = self.rules.iter_mut().find(|rule| rule.left != Some(0) && (rule.applies)(request));
        let Some(rule) = rule else { return ModelReply::invalid("the script has no reply to this request") };
        rule.left = rule.left.map(|left| left - 1);
        rule.reply.clone()
    }
}
