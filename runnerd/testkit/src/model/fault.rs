//! Failures of a service, by what they mean to its user; how each protocol expresses them is in that protocol's file.

use super::reply::{ModelReply, ReplyContent};

/// A failure that both protocols can express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServiceFault {
    /// The plan's usage limit is reached until a time, in seconds since 1970.
    UsageLimit(i64),
    /// Too many requests; retry after this many seconds, if stated.
    RateLimit(Option<u32>),
    /// The account has no credit left.
    Quota,
    /// The key is wrong.
    Unauthorized,
    /// The account lacks permission.
    Forbidden,
    /// The requested model does not exist.
    UnknownModel,
    /// The service is at capacity.
    Overloaded,
    /// Internal error of the service.
    Broken,
    /// The conversation exceeds the context window.
    TooLong,
    /// The JSON schema of the result is rejected.
    Schema,
    /// The request is invalid, with a message.
    Invalid(String),
}

impl ModelReply {
    /// Refuses because the plan's usage limit is reached until a time, in seconds since 1970.
    pub fn usage_limit(resets_at: i64) -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::UsageLimit(resets_at)))
    }

    /// Refuses because there are too many requests; `retry_after` is in seconds, if stated.
    pub fn rate_limit(retry_after: Option<u32>) -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::RateLimit(retry_after)))
    }

    /// Refuses because the account has no credit left.
    pub fn quota() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Quota))
    }

    /// Refuses because the key is wrong.
    pub fn unauthorized() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Unauthorized))
    }

    /// Refuses because the account lacks permission.
    pub fn forbidden() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Forbidden))
    }

    /// Refuses because the requested model does not exist.
    pub fn unknown_model() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::UnknownModel))
    }

    /// Refuses because the service is at capacity.
    pub fn overloaded() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Overloaded))
    }

    /// Fails with an internal error.
    pub fn broken() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Broken))
    }

    /// Refuses because the conversation is too long.
    pub fn too_long() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::TooLong))
    }

    /// Refuses the JSON schema of the result.
    pub fn schema_refused() -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Schema))
    }

    pub(super) fn invalid(why: &str) -> Self {
        Self::new(ReplyContent::Fault(ServiceFault::Invalid(why.to_owned())))
    }
}
