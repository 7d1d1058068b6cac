//! The rules of the runner: pure functions over plain data.
//!
//! No I/O, no async, no clock, no environment: everything from outside is passed in as a value. The daemon carries out
//! what is decided here, and reports what happened as events.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod audit;
pub mod bisect;
pub mod committed_state;
pub mod config;
pub mod delivery;
pub mod driver;
pub mod environment;
pub mod feedback;
mod files;
pub mod fsck;
pub mod git_version;
mod guard;
pub mod hook;
pub mod iteration;
pub mod landing;
pub mod message;
pub mod policy;
pub mod prompt;
pub mod publish;
pub mod run;
mod text;
pub mod tree;
pub mod verdict;

pub use self::files::{answer, change, goal, guardrails, layout, notes, person_edit, questions};
pub use self::guard::{definition, ignored_files, test_results, watched_files};
pub use self::iteration::{forecast, session_failure, transition, tree_examination};
pub(crate) use self::prompt::template;
pub use self::run::{approval, blocker, commit_advice, fallback, usage, wait};
pub(crate) use self::text::{ansi, clip, strict_json};
pub use self::text::{digest, fence, json, redact, reset_time};
pub use self::tree::{ids, schema, select, validate};
pub(crate) use self::tree::{merge, outline, tree_length};
pub use protocol::shell;
