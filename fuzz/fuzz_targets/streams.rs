//! `just fuzz streams`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runnerd::agent::hostile::stream(input));
