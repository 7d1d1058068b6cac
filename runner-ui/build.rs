//! Sees to it that there is a page to embed, and that what is embedded is what is there. Runs no other program.

use std::path::Path;
use std::{fs, io};

const DIST: &str = "web/dist";
const STUB: &str = include_str!("web/stub.html");

fn main() -> io::Result<()> {
    // A folder is looked through as a whole: files that are new, changed or gone.
    println!("cargo::rerun-if-changed={DIST}");
    println!("cargo::rerun-if-changed=web/stub.html");
    let index = Path::new(DIST).join("index.html");
    if !index.exists() {
        fs::create_dir_all(DIST)?;
        fs::write(index, STUB)?;
    }
    Ok(())
}
