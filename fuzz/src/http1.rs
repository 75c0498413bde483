//! Holds HTTP/1.1 to slow readings: heads line by line, chunks one after the other, and the same
//! result in whatever pieces the bytes come.
//!
//! Every case is taken for a request, for an answer and for a chunked body.

use bytes::BytesMut;
use forecourt::http1::{
    BadHead, Decoder, Fields, Length, Limits, RequestHead, ResponseHead, ends_head, read_request,
    read_response,
};

/// What a head may use up here.
const LIMITS: Limits = Limits {
    bytes: 1024,
    lines: 12,
};

/// Any bytes as a request, an answer and a chunked body.
pub fn http1(data: &[u8]) {
    request(data);
    response(data);
    chunked(data);
}

/// What came of a head: the head, its bytes and what stands behind it.
type Read<H> = Result<Option<(H, Vec<u8>)>, BadHead>;

/// Sizes of pieces: all at once, byte by byte, and what the case itself says.
fn cuts(data: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let own = usize::from(data.last().copied().unwrap_or(0) % 31) + 2;
    [1, 2, 7, own]
        .into_iter()
        .map(|size| data.chunks(size).collect())
}

/// Reads a head out of pieces, as a connection does.
fn in_pieces<H>(
    pieces: &[&[u8]],
    read: impl Fn(&mut BytesMut, Limits) -> Result<Option<H>, BadHead>,
) -> Read<H> {
    let mut received = BytesMut::new();
    let mut all = pieces.iter();
    for piece in all.by_ref() {
        received.extend_from_slice(piece);
        if let Some(head) = read(&mut received, LIMITS)? {
            let rest = [&received[..], &all.as_slice().concat()].concat();
            return Ok(Some((head, rest)));
        }
    }
    Ok(None)
}

fn request(data: &[u8]) {
    let mut received = BytesMut::from(data);
    let whole = read_request(&mut received, LIMITS);
    for pieces in cuts(data) {
        match (&whole, in_pieces(&pieces, read_request)) {
            (Ok(Some(head)), Ok(Some((same, rest)))) => {
                assert_eq!(rest, received, "what stands behind the head");
                assert_eq!(spelled(&same), spelled(head));
            }
            (Ok(None), Ok(None)) | (Err(_), Err(_)) => {}
            (whole, pieces) => panic!("whole {whole:?}, in pieces {pieces:?}"),
        }
    }
    let Ok(Some(head)) = whole else {
        let Some(why) = strict(data) else { return };
        panic!("a plain head was not read: {why}: {whole:?}");
    };
    let taken = &data[..data.len() - received.len()];
    let start = taken.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let taken = &taken[start.expect("a head is no empty line")..];
    assert!(taken.len() <= LIMITS.bytes && head.fields.len() <= LIMITS.lines);
    assert!(ends_head(taken, 0), "the end would not be seen");
    assert!(
        (0..taken.len()).all(|end| !ends_head(&taken[..end], 0)),
        "a head ended before its end"
    );
    let lines = lines(taken);
    let words: Vec<&[u8]> = lines[0].split(|byte| *byte == b' ').collect();
    let minor = u8::from(head.version == http::Version::HTTP_11);
    let version = format!("HTTP/1.{minor}");
    assert_eq!(words.len(), 3);
    assert_eq!(words[0], head.method.as_str().as_bytes());
    assert!(words[0].iter().all(|byte| is_token(*byte)));
    assert_eq!(words[2], version.as_bytes());
    assert!(words[1].iter().all(|byte| *byte > b' ' && *byte != 0x7f));
    assert_eq!(head.has_fragment, words[1].contains(&b'#'));
    let target = words[1].split(|byte| *byte == b'#').next().expect("a part");
    if target.starts_with(b"/") {
        let read = head.uri.path_and_query().expect("a path").as_str();
        assert_eq!(read.as_bytes(), target);
    }
    let has_bare = taken
        .split_inclusive(|byte| *byte == b'\n')
        .any(|line| !line.ends_with(b"\r\n"));
    assert_eq!(head.has_bare_line_feed, has_bare);
    let told = Told::of(&lines[1..], &head.fields);
    assert_eq!(head.length(), told.length(minor, Length::Exact(0)));
    assert_eq!(head.keeps_alive, told.keeps_alive(minor));

    // Written down again it is the same head.
    let text = spelled(&head);
    let again = read_request(&mut BytesMut::from(&text[..]), LIMITS);
    match again {
        Ok(Some(again)) => assert_eq!(spelled(&again), text),
        // A target in another form, or spaces between name and value, are written longer.
        again => assert!(text.len() > taken.len(), "{again:?}"),
    }
}

fn response(data: &[u8]) {
    let mut received = BytesMut::from(data);
    let whole = read_response(&mut received, LIMITS);
    let shown = |head: &ResponseHead| (head.status, head.version, written(&head.fields));
    for pieces in cuts(data) {
        match (&whole, in_pieces(&pieces, read_response)) {
            (Ok(Some(head)), Ok(Some((same, rest)))) => {
                assert_eq!(rest, received, "what stands behind the head");
                assert_eq!(shown(&same), shown(head));
            }
            (Ok(None), Ok(None)) | (Err(_), Err(_)) => {}
            (whole, pieces) => panic!("whole {whole:?}, in pieces {pieces:?}"),
        }
    }
    let Ok(Some(head)) = whole else { return };
    let taken = &data[..data.len() - received.len()];
    let start = taken.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let taken = &taken[start.expect("a head is no empty line")..];
    assert!(ends_head(taken, 0), "the end would not be seen");
    let lines = lines(taken);
    let minor = u8::from(head.version == http::Version::HTTP_11);
    let first = format!("HTTP/1.{minor} {}", head.status.as_str());
    assert!(lines[0].starts_with(first.as_bytes()));
    let told = Told::of(&lines[1..], &head.fields);
    let length = told.length(minor, Length::Close);
    let has_none = head.status.is_informational() || matches!(head.status.as_u16(), 204 | 304);
    let none = length.map(|_| Length::Exact(0));
    assert_eq!(head.length(true), none);
    assert_eq!(head.length(false), if has_none { none } else { length });
    assert_eq!(head.keeps_alive, told.keeps_alive(minor));
}

/// What the lines of a head say, read one by one.
#[derive(Default)]
struct Told {
    lengths: Vec<Option<u64>>,
    encodings: Vec<Vec<u8>>,
    closes: bool,
    keeps: bool,
}

impl Told {
    fn of(lines: &[&[u8]], fields: &Fields) -> Self {
        let mut told = Self::default();
        assert_eq!(lines.len(), fields.len());
        for (line, field) in lines.iter().zip(fields.iter()) {
            let colon = line.iter().position(|byte| *byte == b':').expect("a colon");
            let value = super::headers::trimmed(&line[colon + 1..]);
            assert_eq!((field.name, field.value), (&line[..colon], value));
            assert!(!field.name.is_empty() && field.name.iter().all(|byte| is_token(*byte)));
            assert!(value.iter().all(|byte| is_text(*byte)));
            match &*field.name.to_ascii_lowercase() {
                b"content-length" => told.lengths.push(number(value)),
                b"transfer-encoding" => told.encodings.push(value.to_ascii_lowercase()),
                b"connection" => {
                    for option in value.split(|byte| *byte == b',') {
                        let option = super::headers::trimmed(option).to_ascii_lowercase();
                        told.closes |= option == b"close";
                        told.keeps |= option == b"keep-alive";
                    }
                }
                _ => {}
            }
        }
        told
    }

    fn length(&self, minor: u8, otherwise: Length) -> Option<Length> {
        match (&*self.lengths, &*self.encodings) {
            ([], []) => Some(otherwise),
            ([length], []) => length.map(Length::Exact),
            ([], [coding]) => (coding == b"chunked" && minor == 1).then_some(Length::Chunked),
            _ => None,
        }
    }

    fn keeps_alive(&self, minor: u8) -> bool {
        !self.closes && (self.keeps || minor == 1)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    are_digits.then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}

/// The lines of a head without their ends and without the empty one.
fn lines(head: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    assert_eq!(lines.split_off(lines.len() - 2), [b"", b""]);
    lines
}

/// A head as it would be sent.
fn spelled(head: &RequestHead) -> Vec<u8> {
    let mut text = format!("{} {} {:?}\r\n", head.method, head.uri, head.version).into_bytes();
    text.extend(written(&head.fields));
    text.extend(b"\r\n");
    text
}

fn written(fields: &Fields) -> Vec<u8> {
    let lines = fields
        .iter()
        .map(|field| [field.name, b": ", field.value, b"\r\n"].concat());
    lines.collect::<Vec<_>>().concat()
}

/// Whether bytes begin with a head that nobody could refuse to read; then, what makes it one.
fn strict(data: &[u8]) -> Option<&'static str> {
    let end = data.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = &data[..end];
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
    let words: Vec<_> = lines.next()?.split(' ').collect();
    let [method, target, "HTTP/1.0" | "HTTP/1.1"] = words[..] else {
        return None;
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/.-_?=&%".contains(&byte);
    let is_target = target.starts_with('/') && target.bytes().all(is_plain);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let mut count = 0;
    let are_fields = lines.all(|line| {
        count += 1;
        line.split_once(':').is_some_and(|(name, value)| {
            !name.is_empty()
                && name.bytes().all(is_token)
                && value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
                // Lists of options are bounded; what bounds them is looked at elsewhere.
                && !name.eq_ignore_ascii_case("connection")
        })
    });
    let fits = end <= LIMITS.bytes && count <= LIMITS.lines;
    (is_method && is_target && are_fields && fits).then_some("every line is plain")
}

/// A byte of a token (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A byte of a field's value.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// What came of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ended, and this stands behind it.
    Whole {
        /// The bytes of the next message.
        rest: Vec<u8>,
    },
    /// More is to come.
    Open,
    /// Its end cannot be known.
    Broken,
}

fn decoded(pieces: &[&[u8]]) -> (Vec<u8>, Ended) {
    let mut decoder = Decoder::new(Length::Chunked);
    let mut received = BytesMut::new();
    let mut content = Vec::new();
    let mut all = pieces.iter();
    while !decoder.is_done() {
        let Some(piece) = all.next() else {
            assert!(!decoder.connection_ends(), "cut, and nobody would know");
            return (content, Ended::Open);
        };
        received.extend_from_slice(piece);
        loop {
            match decoder.next(&mut received) {
                Ok(Some(piece)) => {
                    assert!(!piece.is_empty());
                    content.extend_from_slice(&piece);
                }
                Ok(None) => break,
                Err(_) => return (content, Ended::Broken),
            }
        }
    }
    let rest = [&received[..], &all.as_slice().concat()].concat();
    (content, Ended::Whole { rest })
}

fn chunked(data: &[u8]) {
    let (content, ended) = decoded(&[data]);
    for pieces in cuts(data) {
        let (in_pieces, same) = decoded(&pieces);
        assert_eq!(same, ended, "in {} pieces", pieces.len());
        // What breaks may take the last piece along.
        assert!(in_pieces.starts_with(&content));
        assert!(in_pieces == content || ended == Ended::Broken);
    }
    let (read, expected) = chunks(data);
    assert_eq!(ended, expected);
    assert!(ended == Ended::Broken || read == content);
}

/// The slow reading of chunks: a line with a size, so many bytes, an empty line.
pub fn chunks(data: &[u8]) -> (Vec<u8>, Ended) {
    let (mut at, mut content, mut extensions) = (0, Vec::new(), 0);
    let broken = || (Vec::new(), Ended::Broken);
    loop {
        let line = match line(&data[at..], 4096) {
            Line::Whole(line) => line,
            Line::Open => return (content, Ended::Open),
            Line::Broken => return broken(),
        };
        at += line.len() + 2;
        let end = line.iter().position(|byte| !byte.is_ascii_hexdigit());
        let (digits, extension) = line.split_at(end.unwrap_or(line.len()));
        let digits = std::str::from_utf8(digits).expect("digits");
        let significant = digits.trim_start_matches('0');
        let size = match (digits, significant) {
            ("", _) => None,
            (_, "") => Some(0),
            (_, significant) => u64::from_str_radix(significant, 16).ok(),
        };
        let Some(size) = size.filter(|size| *size <= 1 << 48) else {
            return broken();
        };
        extensions += extension.len();
        let begins = super::headers::trimmed(extension).first() == Some(&b';');
        let is_fine = begins && extension.iter().all(|byte| *byte == b'\t' || *byte >= b' ');
        if !extension.is_empty() && (!is_fine || extensions > 16 * 1024) {
            return broken();
        }
        if size == 0 {
            break;
        }
        let left = &data[at..];
        let size = usize::try_from(size).expect("on 64 bits");
        content.extend_from_slice(&left[..size.min(left.len())]);
        let Some(after) = left.get(size..) else {
            return (content, Ended::Open);
        };
        match after {
            [b'\r', b'\n', ..] => at += size + 2,
            [] | [b'\r'] => return (content, Ended::Open),
            _ => return broken(),
        }
    }
    let mut trailers = 0;
    loop {
        match line(&data[at..], 8192) {
            Line::Open => return (content, Ended::Open),
            Line::Broken => return broken(),
            Line::Whole(b"") => {
                let rest = data[at + 2..].to_vec();
                return (content, Ended::Whole { rest });
            }
            Line::Whole(line) => {
                at += line.len() + 2;
                trailers += line.len() + 2;
                if trailers > 8192 {
                    return broken();
                }
            }
        }
    }
}

enum Line<'d> {
    Whole(&'d [u8]),
    Open,
    Broken,
}

/// The line that begins here; its end must be CR LF and within `most` bytes.
fn line(data: &[u8], most: usize) -> Line<'_> {
    match data.iter().take(most).position(|byte| *byte == b'\n') {
        Some(end) => match data[..end].split_last() {
            Some((b'\r', line)) => Line::Whole(line),
            _ => Line::Broken,
        },
        None if data.len() >= most => Line::Broken,
        None => Line::Open,
    }
}
