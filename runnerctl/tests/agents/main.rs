//! Whole runs with the real Codex and Claude: real daemon, client and guard, and the test kit's scripted model in the
//! place of the services.
//!
//! `scripts/test-agents.sh` installs the agents and runs these; a plain run of all tests leaves them out. No request
//! leaves loopback.

mod real;
