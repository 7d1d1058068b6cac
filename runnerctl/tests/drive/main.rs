//! Runs as jobs: `runnerd drive` against a bare repository over `file://`, ended, killed, doubled and overtaken.
//!
//! After each the branch is one line that `verify` accepts.

mod ends;
mod kit;
mod rivals;
