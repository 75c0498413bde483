//! Reads from a head what decides where the message ends. Both sides trust what they read: a proxy
//! that garbles a head makes wrong answers, and those are counted.

/// What a head says of its message.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) length: Option<usize>,
    pub(crate) chunked: bool,
    pub(crate) close: bool,
}

/// Of a whole head, its empty line included.
pub(crate) fn fields(head: &[u8]) -> Fields {
    let mut fields = Fields::default();
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        // Three names matter; the rest is told apart by a letter.
        match line.first() {
            Some(b'c' | b'C') => {
                if let Some(value) = value(line, b"content-length:") {
                    let digits = value.iter().take_while(|it| it.is_ascii_digit());
                    fields.length =
                        Some(digits.fold(0, |sum, it| sum * 10 + usize::from(it - b'0')));
                } else if let Some(value) = value(line, b"connection:") {
                    fields.close = value.starts_with(b"close");
                }
            }
            Some(b't' | b'T') => {
                fields.chunked |= value(line, b"transfer-encoding:").is_some();
            }
            _ => {}
        }
    }
    fields
}

fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    start
        .eq_ignore_ascii_case(name)
        .then(|| rest.trim_ascii_start())
}

/// The status of a response head.
pub(crate) fn status(head: &[u8]) -> u16 {
    let digits = head.get(9..12).unwrap_or_default();
    std::str::from_utf8(digits).map_or(0, |it| it.parse().unwrap_or(0))
}
