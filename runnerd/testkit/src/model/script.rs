//! Which reply comes when: by order, or by what is asked.

use std::fmt;

use super::reply::Reply;
use super::request::Request;

/// Rules in order; the first that applies to a request and has a reply left gives it.
#[derive(Default)]
pub struct Script {
    rules: Vec<Rule>,
}

struct Rule {
    applies: Box<dyn Fn(&Request) -> bool + Send>,
    reply: Reply,
    left: Option<u32>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| (&rule.reply, rule.left))).finish()
    }
}

impl Script {
    /// Begins a script that has no reply to anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a reply once.
    #[must_use]
    pub fn then(self, reply: Reply) -> Self {
        self.times(1, reply)
    }

    /// Gives a reply to so many requests.
    #[must_use]
    pub fn times(self, count: u32, reply: Reply) -> Self {
        self.rule(|_| true, reply, Some(count))
    }

    /// Gives a reply to every request that is left.
    #[must_use]
    pub fn always(self, reply: Reply) -> Self {
        self.rule(|_| true, reply, None)
    }

    /// Gives a reply to the next request that is as described.
    #[must_use]
    pub fn once(self, applies: impl Fn(&Request) -> bool + Send + 'static, reply: Reply) -> Self {
        self.rule(applies, reply, Some(1))
    }

    /// Gives a reply to all requests that are as described.
    #[must_use]
    pub fn when(self, applies: impl Fn(&Request) -> bool + Send + 'static, reply: Reply) -> Self {
        self.rule(applies, reply, None)
    }

    pub(super) fn rule(
        mut self,
        applies: impl Fn(&Request) -> bool + Send + 'static,
        reply: Reply,
        left: Option<u32>,
    ) -> Self {
        self.rules.push(Rule { applies: Box::new(applies), reply, left });
        self
    }

    /// Takes the reply to a request; a script that has none left refuses it.
    pub(super) fn take(&mut self, request: &Request) -> Reply {
        let rule = self.rules.iter_mut().find(|rule| rule.left != Some(0) && (rule.applies)(request));
        let Some(rule) = rule else { return Reply::invalid("the script has no reply to this request") };
        rule.left = rule.left.map(|left| left - 1);
        rule.reply.clone()
    }
}
