//! How services fail, by what it means to their user; what each protocol says then is in its own file.

use super::reply::{ModelReply, ReplyContent};

/// A failure that both protocols know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServiceFault {
    /// The plan's limit is used up until a time, in seconds since 1970.
    UsageLimit(i64),
    /// Too many requests; more are welcome after so many seconds, where it is said.
    RateLimit(Option<u32>),
    /// There is no money left.
    Quota,
    /// The key is wrong.
    Unauthorized,
    /// The account may not.
    Forbidden,
    /// There is no such model.
    UnknownModel,
    /// Everybody else is asking too.
    Overloaded,
    /// The service is broken.
    Broken,
    /// The conversation is too long.
    TooLong,
    /// The schema of the result is not taken.
    Schema,
    /// What is asked is not understood.
    Invalid(String),
}

impl ModelReply {
    /// Refuses because the plan's limit is used up until a time, in seconds since 1970.
    pub fn usage_limit(resets_at: i64) -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::UsageLimit(resets_at)))
    }

    /// Refuses because there are too many requests; more are welcome after so many seconds, where it is said.
    pub fn rate_limit(retry_after: Option<u32>) -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::RateLimit(retry_after)))
    }

    /// Refuses because there is no money left.
    pub fn quota() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Quota))
    }

    /// Refuses the key.
    pub fn unauthorized() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Unauthorized))
    }

    /// Refuses the account.
    pub fn forbidden() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Forbidden))
    }

    /// Knows no such model.
    pub fn unknown_model() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::UnknownModel))
    }

    /// Has no capacity left.
    pub fn overloaded() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Overloaded))
    }

    /// Fails by itself.
    pub fn broken() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Broken))
    }

    /// Refuses a conversation that is too long.
    pub fn too_long() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::TooLong))
    }

    /// Refuses the schema of the result.
    pub fn schema_refused() -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Schema))
    }

    pub(super) fn invalid(why: &str) -> Self {
        Self::new(ReplyContent::Fails(ServiceFault::Invalid(why.to_owned())))
    }
}
