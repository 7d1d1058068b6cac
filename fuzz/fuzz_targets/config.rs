//! `just fuzz config`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runner_fuzz::bodies::configuration(input));
