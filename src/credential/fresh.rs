//! Decides what a new API key looks like, and which of an operator's own will do.
//!
//! A new key is 256 bits of the operating system's randomness in base64url, after a prefix by which
//! people and scanners of repositories recognise it. It is told once and kept nowhere.

use std::fmt;

use super::key::{Digest, LONGEST};
use crate::config::KeySha256;

/// What every new key begins with.
pub const PREFIX: &str = "fc_";

/// Shorter keys can be found by trying, once their digest is known: in characters.
pub const SHORT: usize = 32;

/// A new key. Shown by nothing but [`Fresh::expose`].
pub struct Fresh(String);

impl Fresh {
    /// Draws a key.
    ///
    /// # Errors
    /// The operating system gives no randomness.
    pub fn draw() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", base64url(&bytes))))
    }

    /// The key itself. Only for whoever is to have it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// The digest of a key, as a configuration has it.
#[must_use]
pub fn digest(key: &str) -> KeySha256 {
    KeySha256(*Digest::of(key.as_bytes()).bytes())
}

/// The table of a caller with this key, to paste into a configuration.
#[must_use]
pub fn table(caller: &str, key: &str) -> String {
    let is_bare = !caller.contains('.');
    let name = if is_bare {
        caller.to_owned()
    } else {
        format!("\"{caller}\"")
    };
    format!("[caller.{name}]\nkey_sha256 = [\"{}\"]\n", digest(key))
}

/// Whether a key of somebody's own can be one.
///
/// # Errors
/// Why not.
pub fn fit(key: &[u8]) -> Result<&str, &'static str> {
    let key = std::str::from_utf8(key).ok().filter(|key| key.is_ascii());
    let key = key.ok_or("a key consists of visible ASCII characters")?;
    if key.is_empty() {
        return Err("the key is empty");
    }
    if key.len() > LONGEST {
        return Err("the key is longer than 4096 characters");
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a key consists of visible ASCII characters, without spaces or line breaks");
    }
    Ok(key)
}

/// RFC 4648 section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let joined = [0, 1, 2].map(|at| u32::from(piece.get(at).copied().unwrap_or(0)));
        let group = joined.iter().fold(0, |group, byte| group << 8 | byte);
        for at in 0..=piece.len() {
            let index = group >> (18 - 6 * at) & 63;
            let letter = ALPHABET.get(index as usize).copied();
            text.extend(letter.map(char::from));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_that_of_the_rfc() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (&[0xfb, 0xff, 0xbf], "-_-_"),
        ] {
            assert_eq!(base64url(bytes), text);
        }
    }

    #[test]
    fn a_new_key_is_new_and_fit_and_not_shown() {
        let (one, other) = (Fresh::draw().unwrap(), Fresh::draw().unwrap());
        assert_ne!(one.expose(), other.expose());
        for key in [&one, &other] {
            let rest = key.expose().strip_prefix("fc_").unwrap();
            // 256 bits, six in a letter.
            assert_eq!(rest.len(), 43);
            assert!(rest.bytes().any(|byte| byte != b'A'));
            assert_eq!(fit(key.expose().as_bytes()), Ok(key.expose()));
            assert_eq!(format!("{key:?}"), "***");
        }
    }

    #[test]
    fn the_table_has_the_digest_and_not_the_key() {
        let digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
        let expected = format!("[caller.acme]\nkey_sha256 = [\"{digest}\"]\n");
        assert_eq!(table("acme", "foo"), expected);
        assert!(table("a.b", "foo").starts_with("[caller.\"a.b\"]\n"));
    }

    #[test]
    fn what_a_header_cannot_carry_is_no_key() {
        for key in [
            &b""[..],
            b" k",
            b"k ",
            b"a b",
            b"k\n",
            b"\xff",
            "é".as_bytes(),
        ] {
            assert!(fit(key).is_err(), "{key:?}");
        }
        assert!(fit(&[b'k'; 4096]).is_ok());
        assert!(fit(&[b'k'; 4097]).is_err());
    }
}
