//! Decides which certificate a client is shown: the one for the exact name it asks for, then the one
//! for a `*` in place of its first label, then the default. Must never leave a client without one.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::pair::Pair;

/// The certificates of one listener by name.
#[derive(Debug)]
pub(super) struct Names {
    exact: HashMap<Box<str>, Arc<CertifiedKey>>,
    /// By what follows `*.`.
    one_label: HashMap<Box<str>, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
}

impl Names {
    /// Of several certificates for a name the first is shown.
    pub(super) fn new(default: &Pair, others: &[Arc<Pair>]) -> Self {
        let mut names = Self {
            exact: HashMap::new(),
            one_label: HashMap::new(),
            default: Arc::clone(&default.certified),
        };
        for pair in std::iter::once(default).chain(others.iter().map(|it| &**it)) {
            for name in &pair.names {
                let (map, name) = match name.strip_prefix("*.") {
                    Some(rest) => (&mut names.one_label, rest),
                    None => (&mut names.exact, &**name),
                };
                map.entry(name.into())
                    .or_insert_with(|| Arc::clone(&pair.certified));
            }
        }
        names
    }

    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        self.exact.get(name).or_else(|| {
            let (_, rest) = name.split_once('.')?;
            self.one_label.get(rest)
        })
    }
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // The library hands the name over in lower case.
        let found = hello.server_name().and_then(|name| self.find(name));
        Some(Arc::clone(found.unwrap_or(&self.default)))
    }
}
