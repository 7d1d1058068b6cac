//! Runs as jobs: `runnerd drive` against a bare repository over `file://`, ended, killed, doubled and overtaken.
//!
//! After each the branch is one line that `verify` accepts.

mod ends;
mod forges;
mod from_git;
mod kit;
mod real;
mod rivals;
mod submit;
