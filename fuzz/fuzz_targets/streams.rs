//! `just fuzz streams`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runner_agents::hostile::stream(input));
