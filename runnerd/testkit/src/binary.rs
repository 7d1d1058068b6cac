//! Locates the programs under test: next to the test's own folder in the build output.

use std::env;
use std::path::PathBuf;

/// Returns the path of one of the workspace's programs.
///
/// # Panics
///
/// Panics if the program was not built.
pub fn binary(name: &str) -> PathBuf {
    let own = env::current_exe().expect("a test knows its own executable");
    let path = own.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|path| path.is_file());
    path.unwrap_or_else(|| {
        panic!("`{name}` is not built for {}: run `cargo build --workspace` with the same profile", own.display())
    })
}
