//! Runs as jobs: `runnerd drive` with a bare repository over `file://`; drivers end, are killed, run twice, and are
//! superseded.
//!
//! After each, the branch is linear and `verify` accepts it.

mod ends;
mod forges;
mod from_git;
mod kit;
mod real;
mod rivals;
mod submit;
mod unanswered;
