//! Makes text from any source fit to be stored and shown: cut, fenced, redacted, hashed; also JSON, and points in time.

pub(crate) mod ansi;
pub(crate) mod clip;
pub mod digest;
pub mod fence;
pub mod json;
pub mod redact;
pub mod reset_time;
pub(crate) mod strict_json;
