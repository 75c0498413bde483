//! Decides what one look at certificate and key files saw: bytes, or why there are none.
//!
//! Two looks are the same when they saw the same bytes. Must never show a byte of a key.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Larger files are not read, in bytes: a bundle of every root there is is a quarter of it.
const LARGEST: u64 = 1 << 20;

/// What one look saw of several files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<PathBuf, Seen>);

/// What one look saw of one file.
#[derive(Clone)]
struct Seen {
    fingerprint: Fingerprint,
    /// `None`: forgotten.
    content: Option<Result<Arc<[u8]>, Box<str>>>,
}

/// Tells contents apart.
pub(super) type Fingerprint = [u8; 32];

impl Files {
    /// Looks at these files.
    pub fn look<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut files = Self::default();
        files.add(paths);
        files
    }

    /// Looks at those of these files that were not looked at.
    pub(super) fn add<'p>(&mut self, paths: impl IntoIterator<Item = &'p Path>) {
        for path in paths {
            let is_known = self.0.get(path).is_some_and(|seen| seen.content.is_some());
            if !is_known {
                self.0.insert(path.to_owned(), Seen::of(read(path)));
            }
        }
    }

    /// Forgets the files that are not wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(&Path) -> bool) {
        self.0.retain(|path, _| is_wanted(path));
    }

    /// The paths that were looked at.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The same look, of which nothing but the fingerprints is left.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        let forget = |(path, seen): (&PathBuf, &Seen)| {
            let seen = Seen {
                fingerprint: seen.fingerprint,
                content: None,
            };
            (path.clone(), seen)
        };
        Self(self.0.iter().map(forget).collect())
    }

    /// The bytes of a file, or why there are none.
    pub(super) fn content(&self, path: &Path) -> Result<&[u8], &str> {
        match self.0.get(path).and_then(|seen| seen.content.as_ref()) {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(why)) => Err(why),
            None => Err("it was not looked at"),
        }
    }

    /// What tells the contents of these files from any other.
    pub(super) fn fingerprint(&self, paths: &[&Path]) -> Fingerprint {
        let mut hash = Sha256::new();
        for seen in paths.iter().filter_map(|path| self.0.get(*path)) {
            hash.update(seen.fingerprint);
        }
        hash.finalize().into()
    }
}

impl Seen {
    fn of(content: io::Result<Vec<u8>>) -> Self {
        let mut hash = Sha256::new();
        let content = match content {
            Ok(bytes) => {
                hash.update(b"+");
                hash.update(&bytes);
                Ok(bytes.into())
            }
            Err(error) => {
                let why = error.to_string();
                hash.update(b"-");
                hash.update(&why);
                Err(why.into())
            }
        };
        Self {
            fingerprint: hash.finalize().into(),
            content: Some(content),
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST) {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Seen {}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").finish_non_exhaustive()
    }
}
