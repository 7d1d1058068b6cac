//! Build script of the crates: how programs and tests are linked on Linux, so that they start fast (decision 82).
//!
//! The unwinder is linked statically if the C compiler has it as an archive; elsewhere each start loads the library.
//! Debug builds have a fixed address: a run of the tests starts tens of thousands of programs, and one of this size
//! spends half of its start on relocations. Release builds keep their random address.

#![allow(clippy::print_stdout, reason = "so cargo is told")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the rules are for the crates, not their build"
)]

use std::env;
use std::path::PathBuf;
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

fn main() {
    println!("cargo::rerun-if-env-changed=CC");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    if !(is_native && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu")) {
        return;
    }
    if is("PROFILE", "debug") {
        println!("cargo::rustc-link-arg=-no-pie");
        if is("CARGO_PKG_NAME", "runnerd") {
            // Each daemon copies this program into memory.
            println!("cargo::rustc-link-arg-bin=runnerd-shim=-Wl,--strip-debug");
        }
    }
    if let Some(folder) = archive().as_deref().and_then(|archive| archive.parent()) {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Asks the compiler that links; it repeats the bare name of what it has not.
fn archive() -> Option<PathBuf> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let answer = Command::new(compiler).arg(format!("-print-file-name={ARCHIVE}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}
