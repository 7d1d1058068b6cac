//! The real control socket: a server with scripted methods, and clients that behave well or badly.
//!
//! The daemon's own methods are tested elsewhere.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod hostile;
mod lifecycle;
mod orderly;
mod peers;
mod raw;
