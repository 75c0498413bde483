//! libFuzzer's door to [`forecourt_fuzz::headers`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forecourt_fuzz::headers(data));
