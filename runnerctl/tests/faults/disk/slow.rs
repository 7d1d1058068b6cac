//! Slow tests: the daemon dies at any call in a run, or any call fails; and separate disks.
//!
//! They hit a sample of calls: `FROM`, `STEP` and `LIMIT` choose it. `FROM=1 STEP=1 LIMIT=100000` hits every call.

mod deaths;
mod disks;
mod errors;
mod limits;
