//! Texts of anybody, made fit to be kept and shown: cut, fenced, redacted, hashed; and JSON, and points in time.

pub(crate) mod ansi;
pub(crate) mod clip;
pub mod digest;
pub mod fence;
pub mod json;
pub mod redact;
pub mod reset_time;
pub(crate) mod strict_json;
