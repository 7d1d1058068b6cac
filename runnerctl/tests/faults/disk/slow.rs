//! The daemon dies at a call, or a call of it fails, wherever that may be in a run.
//!
//! Samples: `FROM`, `STEP` and `LIMIT` say which calls are hit. `FROM=1 STEP=1 LIMIT=100000` hits each of them.

use std::env;

use super::course::{Every, at_each};

/// Which calls are hit where nobody says it.
fn sampled(step: usize, limit: u32) -> Every {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let limit = number("LIMIT").unwrap_or(limit);
    let step = number("STEP").map_or(step, |step| usize::try_from(step).expect("a small number"));
    Every { from: number("FROM").unwrap_or(1), step, limit }
}

const KILL: &str = "signal=KILL:when={at}";

#[test]
fn row_49_daemon_that_dies_at_a_write_loses_nothing() {
    at_each("write,pwrite64,writev", KILL, sampled(23, 120));
}

#[test]
fn row_50_daemon_that_dies_at_a_flush_loses_nothing() {
    at_each("fsync,fdatasync", KILL, sampled(9, 60));
}

#[test]
fn row_51_daemon_that_dies_at_a_rename_loses_nothing() {
    at_each("rename,renameat,renameat2", KILL, sampled(7, 60));
}

#[test]
fn row_52_daemon_that_dies_at_a_folder_a_link_or_a_removal_loses_nothing() {
    at_each("mkdir,mkdirat,unlink,unlinkat,link,linkat", KILL, sampled(7, 60));
}

#[test]
fn row_53_daemon_that_dies_while_it_starts_or_awaits_a_program_loses_nothing() {
    at_each("clone,clone3,vfork,wait4,waitid", KILL, sampled(5, 40));
}
