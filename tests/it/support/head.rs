//! HTTP/1.1 heads and bodies as bytes: just enough to take apart what came in, changing nothing.

use std::io::{self, Read};

/// A head: its first line and its fields, in order, names as they were spelled.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub start: String,
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// Takes a head apart.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut lines = bytes
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let start = String::from_utf8_lossy(lines.next().unwrap()).into_owned();
        let fields = lines
            .filter(|line| !line.is_empty())
            .map(|line| {
                let colon = line.iter().position(|byte| *byte == b':').unwrap();
                let name = String::from_utf8(line[..colon].to_vec()).unwrap();
                (name, line[colon + 1..].trim_ascii().to_vec())
            })
            .collect();
        Self { start, fields }
    }

    /// The value of every line of a name, in order, as latin-1 text.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.fields
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.iter().map(|byte| char::from(*byte)).collect())
            .collect()
    }

    /// The value of the only line of a name; `None` when there is none.
    #[track_caller]
    pub fn one(&self, name: &str) -> Option<String> {
        let mut all = self.all(name);
        assert!(all.len() <= 1, "{name} stands {} times", all.len());
        all.pop()
    }

    pub fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    pub fn is_chunked(&self) -> bool {
        self.all("transfer-encoding")
            .iter()
            .any(|coding| coding.eq_ignore_ascii_case("chunked"))
    }

    pub fn length(&self) -> Option<usize> {
        self.one("content-length").map(|text| text.parse().unwrap())
    }
}

/// Reads from a source with a buffer of what came too early.
pub struct Reader<R> {
    pub source: R,
    pub buffer: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
        }
    }

    /// Reads more; `false` at the end.
    pub fn more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 64 * 1024];
        let count = self.source.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count > 0)
    }

    /// Everything up to and including the mark; `None` when the end came before a byte did.
    pub fn until(&mut self, mark: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut from = 0;
        loop {
            if let Some(at) = find(&self.buffer[from..], mark) {
                let rest = self.buffer.split_off(from + at + mark.len());
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            from = self.buffer.len().saturating_sub(mark.len());
            if !self.more()? {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Exactly this many bytes.
    pub fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.buffer.split_off(count);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// One chunk of a chunked body; `None` after the last, its trailers read.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self
            .until(b"\r\n")?
            .ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let line = String::from_utf8(line).unwrap();
        let size = line.trim().split(';').next().unwrap();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        if size == 0 {
            while self.until(b"\r\n")?.is_some_and(|line| line != b"\r\n") {}
            return Ok(None);
        }
        let chunk = self.exactly(size)?;
        assert_eq!(self.exactly(2)?, b"\r\n");
        Ok(Some(chunk))
    }

    /// Reads a chunked body into `body`, which keeps what came when it is cut.
    pub fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        while let Some(chunk) = self.chunk()? {
            body.extend_from_slice(&chunk);
        }
        Ok(())
    }
}

/// Where the needle stands.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
