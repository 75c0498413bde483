//! Decides how far a run of bytes goes that mean nothing by themselves, many bytes at a time: plain
//! text in a string, white space between tokens. Must never skip a byte that means something.

use wide::u8x16;

/// Where the next quote, backslash or control byte stands from `at` on; the end if there is none.
#[inline]
pub(super) fn plain_until(bytes: &[u8], at: usize) -> usize {
    let (blocks, rest) = bytes.get(at..).unwrap_or_default().as_chunks::<16>();
    let mut at = at;
    for (index, block) in blocks.iter().enumerate() {
        if index == SHORT {
            return long_plain_until(bytes, at);
        }
        let stops = stops(u8x16::new(*block));
        if stops != 0 {
            return at + stops.trailing_zeros() as usize;
        }
        at += block.len();
    }
    let plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    at + rest.iter().take_while(plain).count()
}

/// One bit for each byte that ends a run of plain text, the first byte's the lowest.
#[inline]
fn stops(block: u8x16) -> u32 {
    let quote = block.simd_eq(u8x16::splat(b'"'));
    let backslash = block.simd_eq(u8x16::splat(b'\\'));
    let control = block.min(u8x16::splat(b' ' - 1)).simd_eq(block);
    (quote | backslash | control).to_bitmask()
}

/// So many blocks of a string are looked at one by one; most strings are shorter.
const SHORT: usize = 4;

/// The same, for a long run: vector searches that a short one would not repay.
#[inline(never)]
fn long_plain_until(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let run = rest.get(..end).unwrap_or(rest);
    // Without an early end the compiler looks at many bytes at once.
    if run.iter().fold(u8::MAX, |least, byte| least.min(*byte)) >= b' ' {
        return at + end;
    }
    at + run.iter().take_while(|byte| **byte >= b' ').count()
}

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Where the next byte that is no white space stands from `at` on; the end if there is none.
pub(super) fn blank_until(bytes: &[u8], mut at: usize) -> usize {
    while let Some((chunk, _)) = bytes.get(at..).and_then(<[u8]>::split_first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk) ^ (ONES * b' ' as u64);
        if word != 0 {
            at += (word.trailing_zeros() / 8) as usize;
            break;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let blank = |byte: &&u8| matches!(**byte, b' ' | b'\n' | b'\r' | b'\t');
    at + rest.iter().take_while(blank).count()
}
