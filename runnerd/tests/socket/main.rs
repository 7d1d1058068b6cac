//! The control socket for real: a server with scripted methods, and clients that behave and that do not.
//!
//! What the daemon's own methods do is tested elsewhere.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod hostile;
mod lifecycle;
mod orderly;
mod peers;
mod raw;
