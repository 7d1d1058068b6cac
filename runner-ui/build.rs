//! Ensures that there is a page to embed, and that the embedded page is the current one. Runs no other program.

use std::path::Path;
use std::{fs, io};

const DIST: &str = "web/dist";
const STUB: &str = include_str!("web/stub.html");

fn main() -> io::Result<()> {
    // A folder is watched as a whole: new, changed and removed files.
    println!("cargo::rerun-if-changed={DIST}");
    println!("cargo::rerun-if-changed=web/stub.html");
    let index = Path::new(DIST).join("index.html");
    if !index.exists() {
        fs::create_dir_all(DIST)?;
        fs::write(index, STUB)?;
    }
    Ok(())
}
