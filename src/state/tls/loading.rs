//! Decides, file by file, whether what was read replaces what is in force, and what
//! has to be made anew for that. Must never put anything in force itself.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::files::{Files, Fingerprint};
use super::library::{to_clients, to_upstream};
use super::names::Names;
use super::pair::{Half, Pair, Refused};
use super::show::Change;
use super::{Held, Kept, Listening, Loaded, Reaching, Terminator, roots};
use crate::config::{self, NamedFile, PairFiles, Problem, Problems, Severity};
use crate::observe::Timestamp;
use crate::state::issuers::{Keys, Read};
use crate::upstream::Secure;

/// One reading in the making.
pub(super) struct Loading<'l> {
    pub(super) before: &'l Held,
    pub(super) files: &'l Files,
    pub(super) now: Timestamp,
    problems: Vec<Problem>,
    pub(super) ready: Ready,
}

/// What is to be put in force.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) next: Held,
    pub(super) replaced: Vec<(Arc<Terminator>, Arc<ServerConfig>)>,
    pub(super) renewed: Vec<(Arc<Secure>, Arc<ClientConfig>)>,
    /// What came of reading the keys of issuers.
    pub(super) read: Vec<(Arc<Keys>, Read)>,
    pub(super) loaded: Loaded,
}

impl<'l> Loading<'l> {
    pub(super) fn new(before: &'l Held, files: &'l Files, now: Timestamp) -> Self {
        Self {
            before,
            files,
            now,
            problems: Vec::new(),
            ready: Ready::default(),
        }
    }

    /// What can be put in force, where nothing stands in the way.
    pub(super) fn finish(self) -> Result<Ready, Problems> {
        let Self {
            problems,
            mut ready,
            ..
        } = self;
        if !problems.is_empty() {
            return Err(in_order(problems).collect());
        }
        ready.loaded.warnings = in_order(ready.loaded.warnings).collect();
        Ok(ready)
    }

    /// Makes what a listener's handshakes are made with.
    pub(super) fn listener(&mut self, name: &str, tls: &config::Tls) {
        let default = self.pair(&tls.default);
        let others: Vec<_> = tls.others.iter().map(|files| self.pair(files)).collect();
        let clients = tls.clients.as_ref().map(|clients| {
            let roots = self.roots(&clients.ca)?;
            Some((roots, clients.is_required))
        });
        let others: Option<Vec<_>> = others.into_iter().collect();
        let (Some(default), Some(others)) = (default, others) else {
            return;
        };
        let clients = match clients {
            None => None,
            Some(Some(clients)) => Some(clients),
            Some(None) => return,
        };
        let before = self.before.listeners.get(name);
        self.ambiguities(tls, &default, &others, before);
        let is_same_trust = before.is_some_and(|it| are_same_clients(&it.clients, &clients));
        let ticketer = match before.filter(|_| is_same_trust) {
            Some(before) => Ok(Arc::clone(&before.ticketer)),
            None => Ticketer::new(),
        };
        let config = ticketer.and_then(|ticketer| {
            let names = Names::new(&default, &others);
            let config = to_clients(names, clients.as_ref(), &ticketer)?;
            Ok((Arc::new(config), ticketer))
        });
        let (config, ticketer) = match config {
            Ok(made) => made,
            Err(error) => {
                let what = format!("cannot be served: {error}");
                self.problem(&tls.default.certificate, &what, None);
                return;
            }
        };
        let terminator = match before {
            Some(before) => {
                let is_same = is_same_trust
                    && Arc::ptr_eq(&before.default, &default)
                    && are_same(&before.others, &others);
                if !is_same {
                    self.ready
                        .replaced
                        .push((Arc::clone(&before.terminator), config));
                }
                Arc::clone(&before.terminator)
            }
            None => Arc::new(Terminator(ArcSwap::new(config))),
        };
        let listening = Listening {
            files: tls.clone(),
            default,
            others,
            clients,
            ticketer,
            terminator,
        };
        self.ready.next.listeners.insert(name.into(), listening);
    }

    /// Makes what connections to an upstream are made with.
    pub(super) fn upstream(&mut self, name: &str, tls: &config::UpstreamTls) {
        let roots = match &tls.ca {
            Some(ca) => self.roots(ca),
            None => self.system(tls),
        };
        let client = tls.client.as_ref().map(|files| self.pair(files));
        let client = match client {
            None => None,
            Some(Some(pair)) => Some(pair),
            Some(None) => return,
        };
        let Some(roots) = roots else { return };
        let server_name = match ServerName::try_from(tls.server_name.to_string()) {
            Ok(name) => name,
            Err(_) => {
                let what = "is no name that a certificate can be for";
                let hint = Some("set server_name");
                self.problems
                    .push(tls.place.problem(Severity::Error, what, hint));
                return;
            }
        };
        let before = self.before.upstreams.get(name);
        let before = before.filter(|it| it.files == *tls);
        let is_same = before.is_some_and(|it| {
            Arc::ptr_eq(&it.roots, &roots) && are_same(it.client.as_slice(), client.as_slice())
        });
        let secure = match before {
            Some(before) if is_same => Arc::clone(&before.secure),
            before => {
                let config = match to_upstream(&roots, client.as_deref()) {
                    Ok(config) => Arc::new(config),
                    Err(error) => {
                        let what = format!("cannot be spoken to over TLS: {error}");
                        self.problems
                            .push(tls.place.problem(Severity::Error, &what, None));
                        return;
                    }
                };
                match before {
                    Some(before) => {
                        self.ready
                            .renewed
                            .push((Arc::clone(&before.secure), config));
                        Arc::clone(&before.secure)
                    }
                    None => Arc::new(Secure::new(server_name, config)),
                }
            }
        };
        let reaching = Reaching {
            files: tls.clone(),
            roots,
            client,
            secure,
        };
        self.ready.next.upstreams.insert(name.into(), reaching);
    }

    /// The pair of these files that is in force; `None` where there never was a good one.
    fn pair(&mut self, files: &PairFiles) -> Option<Arc<Pair>> {
        let (certificate, key) = (&*files.certificate.path, &*files.key.path);
        let paths = (certificate.to_owned(), key.to_owned());
        if let Some(kept) = self.ready.next.pairs.get(&paths) {
            return Some(Arc::clone(&kept.good));
        }
        let content = |path| self.files.content(path);
        let read = || {
            let pair = Pair::read(content(certificate), content(key))?;
            Ok(Arc::new(pair))
        };
        let now = self.now;
        let before = self.before.pairs.get(&paths);
        let seen = self.files.fingerprint(&[certificate, key]);
        let (kept, news) = keep(before, seen, read, |new, old| {
            if new.is_expired(now) && !old.is_expired(now) {
                return Err(Refused::certificate("is expired"));
            }
            Ok(())
        })
        .map_err(|refused| {
            let file = match refused.half {
                Half::Certificate | Half::Keys => &files.certificate,
                Half::Key => &files.key,
            };
            self.problem(file, &refused.what, refused.hint);
        })
        .ok()?;
        let good = Arc::clone(&kept.good);
        let is_expired = good.is_expired(now);
        if is_expired || good.not_before > now {
            let what = if is_expired {
                format!("expired at {}", good.not_after)
            } else {
                format!("is valid from {} on, which is not yet", good.not_before)
            };
            let warning = files
                .certificate
                .place
                .problem(Severity::Warning, &what, None);
            self.ready.loaded.warnings.push(warning);
        }
        match news {
            News::None => {}
            News::Taken => self.ready.loaded.changes.push(Change::Pair {
                certificate: certificate.to_owned(),
                name: good.name(),
                serial: good.serial.clone(),
                not_after: good.not_after,
                is_expired,
            }),
            News::Refused(why) => self.ready.loaded.changes.push(Change::Refused {
                file: certificate.to_owned(),
                why: why.to_string(),
            }),
        }
        self.ready.next.pairs.insert(paths, kept);
        Some(good)
    }

    /// The roots of this file that are in force; `None` where there never were good ones.
    fn roots(&mut self, file: &NamedFile) -> Option<Arc<RootCertStore>> {
        let path = &*file.path;
        if let Some(kept) = self.ready.next.roots.get(path) {
            return Some(Arc::clone(&kept.good));
        }
        let read = || roots::read(self.files.content(path));
        let before = self.before.roots.get(path);
        let seen = self.files.fingerprint(&[path]);
        let (kept, news) = keep(before, seen, read, |_, _| Ok(()))
            .map_err(|refused| self.problem(file, &refused.what, refused.hint))
            .ok()?;
        let good = Arc::clone(&kept.good);
        match news {
            News::None => {}
            News::Taken => self.ready.loaded.changes.push(Change::Roots {
                file: path.to_owned(),
                count: good.len(),
            }),
            News::Refused(why) => self.ready.loaded.changes.push(Change::Refused {
                file: path.to_owned(),
                why: why.to_string(),
            }),
        }
        self.ready.next.roots.insert(path.to_owned(), kept);
        Some(good)
    }

    /// The system's roots, read once.
    fn system(&mut self, tls: &config::UpstreamTls) -> Option<Arc<RootCertStore>> {
        let known = self.ready.next.system.as_ref();
        let known = known.or(self.before.system.as_ref()).cloned();
        let roots = known.map_or_else(roots::system, Ok);
        let roots = roots.map_err(|refused| {
            let hint = Some("install ca-certificates, or name the roots: ca = \"ca.pem\"");
            let problem = tls.place.problem(Severity::Error, &refused.what, hint);
            self.problems.push(problem);
        });
        self.ready.next.system = roots.ok();
        self.ready.next.system.clone()
    }

    /// Says where clients cannot get the certificate that the operator may have in mind.
    fn ambiguities(
        &mut self,
        tls: &config::Tls,
        default: &Pair,
        others: &[Arc<Pair>],
        before: Option<&Listening>,
    ) {
        if default.names.is_empty() && default.addresses.is_empty() {
            let what = "names no host: clients that verify it turn away";
            let hint = Some("a certificate names its hosts as subjectAltName");
            let file = &tls.default.certificate;
            let warning = file.place.problem(Severity::Warning, what, hint);
            self.ready.loaded.warnings.push(warning);
        }
        let mut taken: HashMap<&str, &NamedFile> = HashMap::new();
        let pairs = std::iter::once(default).chain(others.iter().map(|it| &**it));
        for (index, (pair, files)) in pairs.zip(tls.certificates()).enumerate() {
            let file = &files.certificate;
            let wrong = if index > 0 && pair.names.is_empty() {
                let hint = "a certificate names its hosts as subjectAltName";
                Some(("names no host: no client could ask for it".to_owned(), hint))
            } else {
                let twice = pair.names.iter().find_map(|name| {
                    let other = taken.insert(name, file).filter(|it| *it != file)?;
                    Some((name, other))
                });
                let hint = "one certificate for each name: the first is shown";
                twice.map(|(name, other)| {
                    let other = other.path.display();
                    (format!("is for {name}, and so is {other}"), hint)
                })
            };
            let Some((what, hint)) = wrong else { continue };
            // What the files came to say must not keep their listener from being served.
            if before.is_some_and(|it| it.files == *tls) {
                let warning = file.place.problem(Severity::Warning, &what, Some(hint));
                self.ready.loaded.warnings.push(warning);
            } else {
                self.problem(file, &what, Some(hint));
            }
        }
    }

    pub(super) fn problem(&mut self, file: &NamedFile, what: &str, hint: Option<&str>) {
        let path = file.path.display();
        let what = format!("{path}: {what}");
        self.problems
            .push(file.place.problem(Severity::Error, &what, hint));
    }
}

/// What a look brought.
pub(super) enum News {
    None,
    Taken,
    Refused(Refused),
}

/// Decides between what is in force and what was seen now. An error: there is nothing to keep.
pub(super) fn keep<T>(
    before: Option<&Kept<T>>,
    seen: Fingerprint,
    read: impl FnOnce() -> Result<Arc<T>, Refused>,
    may_replace: impl FnOnce(&T, &T) -> Result<(), Refused>,
) -> Result<(Kept<T>, News), Refused> {
    let fresh = |good| Kept {
        good,
        seen,
        refused: None,
    };
    let Some(before) = before else {
        return Ok((fresh(read()?), News::None));
    };
    if before.seen == seen {
        return Ok((before.clone(), News::None));
    }
    let new = read().and_then(|new| may_replace(&new, &before.good).map(|()| new));
    Ok(match new {
        Ok(new) => (fresh(new), News::Taken),
        Err(refused) => {
            let kept = Kept {
                good: Arc::clone(&before.good),
                seen,
                refused: Some(refused.clone()),
            };
            (kept, News::Refused(refused))
        }
    })
}

fn in_order(mut problems: Vec<Problem>) -> impl Iterator<Item = Problem> {
    problems.sort_by_key(Problem::offset);
    problems.into_iter()
}

fn are_same<T>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| Arc::ptr_eq(one, other))
}

fn are_same_clients(
    one: &Option<(Arc<RootCertStore>, bool)>,
    other: &Option<(Arc<RootCertStore>, bool)>,
) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some((one, is_one)), Some((other, is_other))) => {
            Arc::ptr_eq(one, other) && is_one == is_other
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}
