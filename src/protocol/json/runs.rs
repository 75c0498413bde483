//! Decides how far a run of bytes goes that mean nothing by themselves, many bytes at a time: plain
//! text in a string, white space between tokens. Must never skip a byte that means something.

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The top bit of each byte of a word.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the top bit of bytes that are zero; the lowest mark is exact, one above it may be false.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Where the next quote, backslash or control byte stands from `at` on; the end if there is none.
#[inline]
pub(super) fn plain_until(bytes: &[u8], at: usize) -> usize {
    let (words, rest) = bytes.get(at..).unwrap_or_default().as_chunks::<8>();
    let mut at = at;
    for (index, word) in words.iter().enumerate() {
        if index == SHORT {
            return long_plain_until(bytes, at);
        }
        let stop = stops(u64::from_le_bytes(*word));
        if stop != 0 {
            return at + (stop.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    at + rest.iter().take_while(plain).count()
}

/// So many words of a string are looked at one by one; most strings are shorter.
const SHORT: usize = 6;

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

/// Marks the top bit of bytes that end a run of plain text; the lowest mark is exact, one above it
/// may be false.
#[inline]
const fn stops(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let below =
        word.wrapping_sub(ONES * 0x20) | quote.wrapping_sub(ONES) | backslash.wrapping_sub(ONES);
    if word & HIGHS == 0 {
        // ASCII: a top bit can only come from borrowing.
        return below & HIGHS;
    }
    (word.wrapping_sub(ONES * 0x20) & !word & HIGHS) | zero_bytes(quote) | zero_bytes(backslash)
}

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
