//! Writes the JSON Schemas of the data contracts into `schemas/`: `cargo run -p runner-core --example schemas`.
//!
//! A test compares what is checked in; nothing reads these files at run time.

use std::io;
use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "a generator that is run by hand, not a rule")]
fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in runner_core::tree::schema::schema_files() {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}
