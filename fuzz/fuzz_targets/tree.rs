//! `just fuzz tree`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runner_fuzz::bodies::task_tree(input));
