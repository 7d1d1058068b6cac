//! The small program that the daemon makes shims of, where it finds it beside itself: a start of it takes half of the time
//! that one of the daemon's own takes. It is nothing else, and of no use to people.

use std::process::ExitCode;

fn main() -> ExitCode {
    supervisor::main().unwrap_or(ExitCode::FAILURE)
}
