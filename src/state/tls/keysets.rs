//! Decides which keys of issuers are in force: those of their files, as long as they can be used, and
//! otherwise the last that could; those of their URLs, whoever fetches them.

use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;

use super::loading::{Loading, News, keep};
use super::pair::Refused;
use super::show::Change;
use super::{Held, Keyring, Trusting};
use crate::config::{self, Jwks, KeysUrl, NamedFile, UpstreamTls};
use crate::credential::token::Keyset;
use crate::state::issuers::{Keys, Source};
use crate::upstream::{Meters, Parts, Timeouts, Upstream};

impl Keyring {
    /// The keys of an issuer.
    #[must_use]
    pub fn keys(&self, issuer: &str) -> Option<Arc<Keys>> {
        let held = self.held.lock();
        held.issuers.get(issuer).map(|it| Arc::clone(&it.keys))
    }

    /// All keys that are fetched.
    #[must_use]
    pub fn fetched(&self) -> Vec<Arc<Keys>> {
        let held = self.held.lock();
        let keys = held.issuers.values().map(|it| &it.keys);
        keys.filter(|it| it.is_fetched()).cloned().collect()
    }

    /// Waits until settings were loaded, or were since this was waited for last.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Held {
    /// Whether an issuer's keys are where they were.
    fn same(&self, issuer: &config::Issuer) -> Option<&Trusting> {
        let before = self.issuers.get(&issuer.name)?;
        let is_file = matches!(issuer.jwks, Jwks::File(_));
        let is_same = before.jwks == issuer.jwks && (is_file || before.refresh == issuer.refresh);
        is_same.then_some(before)
    }
}

impl Loading<'_> {
    /// Makes what an issuer's tokens are verified with.
    pub(super) fn issuer(&mut self, issuer: &config::Issuer) {
        let keys = match &issuer.jwks {
            Jwks::File(file) => self.of_file(issuer, file),
            Jwks::Url { url, tls } => self.of_url(issuer, url, tls.as_ref()),
        };
        let Some(keys) = keys else { return };
        let trusting = Trusting {
            jwks: issuer.jwks.clone(),
            refresh: issuer.refresh,
            keys,
        };
        self.ready
            .next
            .issuers
            .insert(issuer.name.clone(), trusting);
    }

    fn of_file(&mut self, issuer: &config::Issuer, file: &NamedFile) -> Option<Arc<Keys>> {
        let (keyset, news) = self.keyset(file)?;
        let Some(before) = self.before.same(issuer) else {
            return Some(Arc::new(Keys::of_file(keyset, self.now)));
        };
        let keys = Arc::clone(&before.keys);
        let path: &Path = &file.path;
        match news {
            News::None => {}
            News::Taken => {
                self.ready.loaded.changes.push(Change::Keys {
                    issuer: issuer.name.clone(),
                    file: path.to_owned(),
                    count: keyset.len(),
                    left_out: keyset.left_out(),
                });
                self.ready.read.push((Arc::clone(&keys), Ok(keyset)));
            }
            News::Refused(why) => {
                self.ready.loaded.changes.push(Change::Refused {
                    file: path.to_owned(),
                    why: why.to_string(),
                });
                let why = why.to_string().into();
                self.ready.read.push((Arc::clone(&keys), Err(why)));
            }
        }
        Some(keys)
    }

    /// The set in this file that is in force; `None` where there never was a good one.
    fn keyset(&mut self, file: &NamedFile) -> Option<(Arc<Keyset>, News)> {
        let path = &*file.path;
        let read = || {
            let bytes = self.files.content(path);
            let bytes = bytes.map_err(|why| Refused::keys(format!("cannot be read: {why}")))?;
            let keyset = Keyset::parse(bytes).map_err(|why| Refused::keys(why.to_string()))?;
            Ok(Arc::new(keyset))
        };
        let before = self.before.keysets.get(path);
        let seen = self.files.fingerprint(&[path]);
        let (kept, news) = keep(before, seen, read, |_, _| Ok(()))
            .map_err(|refused| self.problem(file, &refused.what, refused.hint))
            .ok()?;
        let good = Arc::clone(&kept.good);
        self.ready.next.keysets.insert(path.to_owned(), kept);
        Some((good, news))
    }

    fn of_url(
        &mut self,
        issuer: &config::Issuer,
        url: &KeysUrl,
        tls: Option<&UpstreamTls>,
    ) -> Option<Arc<Keys>> {
        let secure = match tls {
            None => None,
            Some(tls) => {
                // No upstream is called this: names have no slash.
                let name = format!("issuer/{}", issuer.name);
                self.upstream(&name, tls);
                let reaching = self.ready.next.upstreams.get(&*name)?;
                Some(Arc::clone(&reaching.secure))
            }
        };
        if let Some(before) = self.before.same(issuer) {
            return Some(Arc::clone(&before.keys));
        }
        let is_same_url =
            |it: &&Trusting| matches!(&it.jwks, Jwks::Url { url: it, .. } if it == url);
        let before = self.before.issuers.get(&issuer.name).filter(is_same_url);
        let timeouts = Timeouts {
            connect: std::time::Duration::from_secs(5),
            response: std::time::Duration::from_secs(5),
            idle: std::time::Duration::from_secs(5),
            keep_alive: std::time::Duration::ZERO,
        };
        let upstream = Upstream::new(Parts {
            name: issuer.name.clone(),
            host: url.base.host.clone(),
            port: url.base.port,
            authority: HeaderValue::from_str(&url.base.authority).ok()?,
            path: url.base.path.clone(),
            trailing_slash: url.base.trailing_slash,
            http2: false,
            preserve_host: false,
            headers: [].into(),
            timeouts,
            max_connections: 1,
            max_waiting: 1,
            max_in_flight: None,
            meters: Meters::default(),
            secure,
        });
        let source = Source {
            issuer: issuer.name.clone(),
            upstream: Arc::new(upstream),
            target: url.target(),
            refresh: issuer.refresh,
        };
        let before = before.map(|it| &*it.keys);
        Some(Arc::new(Keys::of_url(source, before)))
    }
}
