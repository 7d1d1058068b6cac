//! `just fuzz trailers`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runner_fuzz::bodies::trailers(input));
