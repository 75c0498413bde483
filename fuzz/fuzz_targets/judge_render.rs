//! libFuzzer's door to [`forecourt_fuzz::judge_render`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| forecourt_fuzz::judge_render(data));
