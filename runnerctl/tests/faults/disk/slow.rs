//! What takes long: the daemon dies at a call, or a call of it fails, wherever that may be in a run; and disks of its
//! own.
//!
//! Samples: `FROM`, `STEP` and `LIMIT` say which calls are hit. `FROM=1 STEP=1 LIMIT=100000` hits each of them.

mod deaths;
mod disks;
mod errors;
mod limits;
