//! Entry point of the daemon's binary, which is also the program of its shims.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == runnerd::process::SHIM_COMMAND) {
        return runnerd::process::shim_main();
    }
    ExitCode::SUCCESS
}
