//! libFuzzer's door to [`forecourt_fuzz::http1`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forecourt_fuzz::http1(data));
