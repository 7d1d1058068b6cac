//! `just fuzz agent_output`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| runner_fuzz::bodies::agent_output(input));
