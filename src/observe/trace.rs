//! Decides what a trace context is (W3C Trace Context, level 2): which `traceparent` and `tracestate`
//! are believed, and how ours is spelled.
//!
//! Reading is strict: what is not exactly of the form is none, for whoever reads on behind us might
//! read it differently. Must never pass on what it does not understand.

/// A context is one request's place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// Which trace, 16 bytes that are not all zero.
    pub trace: [u8; 16],
    /// Which span in it, 8 bytes that are not all zero.
    pub span: [u8; 8],
    /// Bit 0: the trace is recorded. Bit 1: its id is random.
    pub flags: u8,
}

/// The flag that says that a trace is recorded.
pub const SAMPLED: u8 = 0b01;

/// The flag that says that a trace's id was drawn at random.
pub const RANDOM: u8 = 0b10;

/// The bytes of a `traceparent` of version 00.
pub const LENGTH: usize = 55;

/// The most members of a `tracestate`.
const MOST_MEMBERS: usize = 32;

/// The most bytes of a `tracestate` that are passed on, over all lines. Every platform must take 512.
const MOST_BYTES: usize = 4096;

impl Context {
    /// Reads the value of the one `traceparent` line. `None`: it is none of any version that can be
    /// understood.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let (head, rest) = value.split_at_checked(LENGTH)?;
        let [version, trace, span, flags] = parts(head)?;
        let version: [u8; 1] = bytes(version)?;
        match (version, rest) {
            ([0xff], _) | ([0], [_, ..]) => return None,
            // Later versions may go on, behind a hyphen.
            (_, [first, ..]) if *first != b'-' => return None,
            _ => {}
        }
        let (trace, span): ([u8; 16], [u8; 8]) = (bytes(trace)?, bytes(span)?);
        let [flags]: [u8; 1] = bytes(flags)?;
        let is_real = trace != [0; 16] && span != [0; 8];
        is_real.then_some(Self { trace, span, flags })
    }

    /// Whether the trace is recorded.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The value of a `traceparent` of version 00. Flags that it does not know are left out.
    #[must_use]
    pub fn spell(&self) -> [u8; LENGTH] {
        let mut out = [b'-'; LENGTH];
        hex(&mut out, 0, &[0]);
        hex(&mut out, 3, &self.trace);
        hex(&mut out, 36, &self.span);
        hex(&mut out, 53, &[self.flags & (SAMPLED | RANDOM)]);
        out
    }

    /// The trace's id in hexadecimal.
    #[must_use]
    pub fn spell_trace(&self) -> [u8; 32] {
        let mut out = [0; 32];
        hex(&mut out, 0, &self.trace);
        out
    }

    /// The span's id in hexadecimal.
    #[must_use]
    pub fn spell_span(&self) -> [u8; 16] {
        let mut out = [0; 16];
        hex(&mut out, 0, &self.span);
        out
    }
}

/// The four parts between hyphens.
fn parts(head: &[u8]) -> Option<[&[u8]; 4]> {
    let at = |from: usize, to: usize| head.get(from..to);
    let are_apart = [2, 35, 52].iter().all(|at| head.get(*at) == Some(&b'-'));
    are_apart
        .then(|| Some([at(0, 2)?, at(3, 35)?, at(36, 52)?, at(53, 55)?]))
        .flatten()
}

/// Bytes in lower-case hexadecimal: upper case is invalid here.
fn bytes<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn hex(out: &mut [u8], at: usize, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
    let places = out.get_mut(at..).unwrap_or_default();
    for (pair, byte) in places.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

/// Whether these lines are a `tracestate`: at most 32 members with keys of their own, of a form that
/// everybody reads alike.
#[must_use]
pub fn is_state<'l>(lines: impl Iterator<Item = &'l [u8]>) -> bool {
    let mut keys: Vec<&[u8]> = Vec::new();
    let mut length = 0;
    for line in lines {
        length += line.len();
        if length > MOST_BYTES {
            return false;
        }
        for member in line.split(|byte| *byte == b',') {
            let member = member.trim_ascii();
            if member.is_empty() {
                continue;
            }
            let Some(at) = memchr::memchr(b'=', member) else {
                return false;
            };
            let (key, value) = member.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            let is_new = !keys.contains(&key);
            if !is_key(key) || !is_value(value) || !is_new || keys.len() == MOST_MEMBERS {
                return false;
            }
            keys.push(key);
        }
    }
    !keys.is_empty()
}

/// A key: a word, or a tenant's word at a system.
fn is_key(key: &[u8]) -> bool {
    let is_word = |word: &[u8], most: usize| {
        let starts = matches!(word.first(), Some(b'a'..=b'z' | b'0'..=b'9'));
        let goes_on =
            |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
        starts && word.len() <= most && word.iter().all(goes_on)
    };
    match memchr::memchr(b'@', key).map(|at| key.split_at(at)) {
        None => is_word(key, 256),
        Some((tenant, system)) => {
            is_word(tenant, 241) && is_word(system.get(1..).unwrap_or_default(), 14)
        }
    }
}

/// A value: visible ASCII and spaces, no comma, no equals sign, no space at its end.
fn is_value(value: &[u8]) -> bool {
    let is_fine = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    (1..=256).contains(&value.len()) && value.iter().all(is_fine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_exactly_of_the_form_is_read_and_spelled_the_same() {
        let context = Context::read(GOOD.as_bytes()).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.spell(), GOOD.as_bytes());
        assert_eq!(&context.spell_trace(), b"0af7651916cd43dd8448eb211c80319c");
        assert_eq!(&context.spell_span(), b"b7ad6b7169203331");
        // A later version is read as far as it is known, and answered in ours.
        for later in [
            GOOD.replacen("00", "01", 1),
            format!("{}-more", GOOD.replacen("00", "cc", 1)),
        ] {
            assert_eq!(
                Context::read(later.as_bytes()).unwrap().spell(),
                GOOD.as_bytes()
            );
        }
        let flags = GOOD.replace("-01", "-ff");
        assert!(
            Context::read(flags.as_bytes())
                .unwrap()
                .spell()
                .ends_with(b"-03")
        );
        assert!(
            !Context::read(GOOD.replace("-01", "-02").as_bytes())
                .unwrap()
                .is_sampled()
        );
    }

    #[test]
    fn nothing_else_is() {
        let zero_trace = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let zero_span = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16));
        for bad in [
            "",
            "00",
            &GOOD[..54],
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "ff", 1),
            &format!("{GOOD}-more"),
            &format!("{GOOD} "),
            &format!(" {GOOD}"),
            &format!("{}+more", GOOD.replacen("00", "01", 1)),
            &GOOD.replace('-', "_"),
            &GOOD.replace("0af7", "0xf7"),
            &GOOD.replace("0af7", "0Af7"),
            &zero_trace,
            &zero_span,
        ] {
            assert_eq!(Context::read(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn states() {
        let is = |lines: &[&str]| is_state(lines.iter().map(|line| line.as_bytes()));
        let many = |count: usize| {
            let members: Vec<_> = (0..count).map(|it| format!("k{it}=v")).collect();
            members.join(",")
        };
        for good in [
            &["a=1"][..],
            &["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"],
            &["a=1", "b=2"],
            &["a=1 , , b= 2"],
            &["fw529a3039@dt=FfAA;1", "0a/b_c-d*=x"],
            &[&many(32)],
            &[&format!("{}={}", "a".repeat(256), "v".repeat(256))],
        ] {
            assert!(is(good), "{good:?}");
        }
        for bad in [
            &[][..],
            &[""],
            &[" , "],
            &["a"],
            &["a="],
            &["=1"],
            &["A=1"],
            &["a=1,a=2"],
            &["a=1", "a=2"],
            &["a=b=c"],
            &["a@b@c=1"],
            &["@b=1"],
            &["a@=1"],
            &["a=\u{e9}"],
            &["a=1\u{7}2"],
            &[&many(33)],
            &[&format!("{}=1", "a".repeat(257))],
            &[&format!("a={}", "v".repeat(257))],
            &["a=1", &" ".repeat(MOST_BYTES)],
        ] {
            assert!(!is(bad), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_context_survives_being_spelled(trace: [u8; 16], span: [u8; 8], flags in 0_u8..4) {
            prop_assume!(trace != [0; 16] && span != [0; 8]);
            let context = Context { trace, span, flags };
            prop_assert_eq!(Context::read(&context.spell()), Some(context));
        }

        #[test]
        fn bytes_of_any_kind_are_read_or_not_and_no_more(value: Vec<u8>, state: Vec<u8>) {
            if let Some(context) = Context::read(&value) {
                prop_assert_ne!(context.trace, [0; 16]);
            }
            let _ = is_state([&state[..]].into_iter());
        }

        #[test]
        fn one_wrong_byte_is_enough(at in 0..LENGTH, byte: u8) {
            let mut value = GOOD.as_bytes().to_vec();
            let is_digit = !matches!(at, 2 | 35 | 52);
            let is_fine = if is_digit { digit(byte).is_some() } else { byte == b'-' };
            value[at] = byte;
            // The version's own byte makes another version, which may be read.
            prop_assert_eq!(Context::read(&value).is_some(), is_fine && value[..2] != *b"ff");
        }
    }
}
