//! Complete runs with the real Codex and Claude: real daemon, client and guard, with the test kit's scripted model in
//! place of the services.
//!
//! `scripts/test-agents.sh` installs the agents and runs these tests; a plain run of all tests skips them. No request
//! leaves loopback.

mod real;
