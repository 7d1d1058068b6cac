//! `just fuzz front_matter`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runner_fuzz::bodies::front_matter(input));
