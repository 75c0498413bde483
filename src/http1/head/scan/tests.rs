//! Heads, and what is nearly one, as a well-known parser reads them.

use bytes::BytesMut;
use proptest::prelude::*;

use super::super::{Told, request, response};
use super::*;
use crate::http1::{Fields, Limits, Lines, read_request};

/// What the reference parser makes of a head, and we: the bytes it takes, its first line and fields.
type Heard = Result<Option<(usize, Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>)>, ()>;

/// The most lines of a generated head.
const MANY: usize = 20;

fn reference<'b>(
    parse: impl FnOnce(&mut [httparse::Header<'b>]) -> httparse::Result<(usize, Vec<u8>, usize)>,
) -> Heard {
    let mut lines = [httparse::EMPTY_HEADER; MANY];
    match parse(&mut lines) {
        Ok(httparse::Status::Complete((length, first, count))) => {
            let lines = lines[..count].iter();
            let fields = lines.map(|line| (line.name.into(), line.value.to_vec()));
            Ok(Some((length, first, fields.collect())))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(_) => Err(()),
    }
}

fn reference_request(bytes: &[u8]) -> Heard {
    reference(|lines| {
        let mut head = httparse::Request::new(lines);
        Ok(match head.parse(bytes)? {
            httparse::Status::Partial => httparse::Status::Partial,
            httparse::Status::Complete(length) => {
                let (method, target) = (head.method.unwrap(), head.path.unwrap());
                let first = format!("{method} {target} {}", head.version.unwrap());
                httparse::Status::Complete((length, first.into(), head.headers.len()))
            }
        })
    })
}

fn reference_response(bytes: &[u8]) -> Heard {
    reference(|lines| {
        let mut head = httparse::Response::new(lines);
        Ok(match head.parse(bytes)? {
            httparse::Status::Partial => httparse::Status::Partial,
            httparse::Status::Complete(length) => {
                let first = format!("{} {:03}", head.version.unwrap(), head.code.unwrap());
                httparse::Status::Complete((length, first.into(), head.headers.len()))
            }
        })
    })
}

fn ours<T>(scan: Scan<'_>, read: Step<Option<T>>, of: impl Fn(T) -> (Vec<u8>, Told)) -> Heard {
    match read {
        Ok(Some(read)) => {
            let (first, told) = of(read);
            let fields = Fields::of(scan.of(0..scan.at()).to_vec().into(), told.lines);
            let fields = fields
                .iter()
                .map(|it| (it.name.to_vec(), it.value.to_vec()));
            Ok(Some((scan.at(), first, fields.collect())))
        }
        Err(Stop::Short) => Ok(None),
        Ok(None) | Err(Stop::Malformed | Stop::Version) => Err(()),
    }
}

fn our_request(bytes: &[u8]) -> Heard {
    let mut scan = Scan::new(bytes);
    let read = request(&mut scan, MANY);
    ours(scan, read, |(method, target, minor, told)| {
        let minor = [b' ', b'0' + minor];
        let first = [&bytes[method], b" ", &bytes[target], &minor].concat();
        (first, told)
    })
}

fn our_response(bytes: &[u8]) -> Heard {
    let mut scan = Scan::new(bytes);
    let read = response(&mut scan, MANY);
    ours(scan, read, |(minor, status, told)| {
        ([&[b'0' + minor, b' '][..], &bytes[status]].concat(), told)
    })
}

/// Heads, and what is nearly one: lines of all lengths, spaces and line ends of all kinds.
fn almost_heads() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![40 => Just("\r\n"), 2 => Just("\n"), 1 => Just("\r"), 1 => Just("")];
    let first = prop_oneof![
        6 => "(GET|POST|P~T) [!-~]{1,40} HTTP/1\\.[01]",
        6 => "HTTP/1\\.[01] [0-9]{3}( [ -~\t]{0,20})?",
        1 => "(GET|HTTP/1.1)? ?[/2é]{0,4} ?(HTTP/[12]\\.[0-9])?",
    ];
    let name = prop_oneof![40 => "[A-Za-z0-9-]{1,36}", 4 => "[A-Za-z_.]{1,20}", 1 => "[!-~]{0,20}", 1 => "[\\x00-\u{ff}]{0,3}"];
    let value = prop_oneof![
        40 => "[ -~]{0,70}",
        4 => "[\t -~\u{80}-\u{2ff}]{0,40}",
        1 => "[\\x00-\u{ff}]{0,20}",
    ];
    let colon = prop_oneof![40 => Just(": "), 4 => Just(":"), 4 => Just(":\t "), 1 => Just(" : ")];
    let line = (name, colon, value, end.clone())
        .prop_map(|(name, colon, value, end)| format!("{name}{colon}{value}{end}"));
    let rest =
        prop_oneof![8 => Just("\r\n{}"), 1 => Just("\n{}"), 1 => Just("\r\n"), 1 => Just("")];
    let whole = (first, end, prop::collection::vec(line, 0..24), rest)
        .prop_map(|(first, end, lines, rest)| format!("{first}{end}{}{rest}", lines.concat()));
    let odd = prop::sample::select(&b"\0\t\n\r \x1f#:_\x7f\x80\xff"[..]);
    let odd = prop_oneof![3 => odd, 1 => any::<u8>()];
    let mangled = prop::option::weighted(0.6, (any::<prop::sample::Index>(), odd));
    (whole, mangled).prop_map(|(whole, mangled)| {
        let mut bytes = whole.into_bytes();
        if let Some((at, byte)) = mangled
            && !bytes.is_empty()
        {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn heads_are_read_as_a_well_known_parser_reads_them(bytes in almost_heads(), cut in any::<prop::sample::Index>()) {
        // Empty lines before a request are taken away before it is read.
        let start = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let piece = &bytes[..cut.index(bytes.len() + 1)];
        for bytes in [&bytes[..], piece] {
            prop_assert_eq!(our_response(bytes), reference_response(bytes));
            let bytes = bytes.get(start..).unwrap_or_default();
            prop_assert_eq!(our_request(bytes), reference_request(bytes));
        }
    }

    #[test]
    fn fields_that_travel_are_written_as_they_came(bytes in almost_heads(), travel in any::<u32>()) {
        let bytes = [b"GET / HTTP/1.1\r\n", &bytes[bytes.iter().position(|it| *it == b'\n').map_or(0, |at| at + 1)..]].concat();
        let limits = Limits { bytes: 1 << 20, lines: MANY };
        if let Ok(Some(head)) = read_request(&mut BytesMut::from(&bytes[..]), limits) {
            let (mut copied, mut pushed) = (Lines::new(), Lines::new());
            let mut all = 0..;
            head.fields.copy(&mut copied, |_| travel >> all.next().unwrap() & 1 == 1);
            for (at, field) in head.fields.iter().enumerate() {
                if travel >> at & 1 == 1 {
                    pushed.push(field.name, field.value);
                }
            }
            prop_assert_eq!(copied.as_bytes(), pushed.as_bytes());
        }
    }
}
