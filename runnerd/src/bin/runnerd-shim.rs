//! The small program that the daemon uses for shims if it is next to its own: it starts in half the time that the
//! daemon's own program takes. It does nothing else, and is of no use to people.

use std::process::ExitCode;

fn main() -> ExitCode {
    supervisor::main().unwrap_or(ExitCode::FAILURE)
}
