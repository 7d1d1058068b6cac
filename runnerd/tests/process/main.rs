//! Runs real programs under the real shim: they must end as they should, and leave nothing behind.
#![expect(clippy::unwrap_used, reason = "a test may panic outside of a test function, too")]

mod bare;
mod daemon;
mod ends;
mod hidden;
mod kills;
mod kit;
mod levels;
mod output;
mod starts;
