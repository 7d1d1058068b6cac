//! Build script: says for which system the crate is, and gives it a number that two programs have in common if they were
//! built of the same source of it.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" {
        println!(
            "cargo::error=runnerd runs on Linux only; for {system}, build the clients: cargo build --package runnerctl --package runner-ui"
        );
        return Ok(());
    }
    let files: io::Result<Vec<PathBuf>> = fs::read_dir("src")?.map(|item| Ok(item?.path())).collect();
    let mut files = files?;
    files.sort();
    let mut digest = DefaultHasher::new();
    for file in files {
        digest.write(&fs::read(file)?);
    }
    println!("cargo::rustc-env=SUPERVISOR_BUILD={:016x}", digest.finish());
    Ok(())
}
