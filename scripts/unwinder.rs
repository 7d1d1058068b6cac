//! Build script of the programs: links the unwinder statically if the C compiler has it as an archive, instead of a
//! library that each start would load (decision 82). Anywhere else the library is used, as ever.

#![allow(clippy::print_stdout, reason = "so cargo is told")]

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
