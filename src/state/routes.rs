//! Decides which endpoint a host and path belong to.
//!
//! An exact host before a wildcard, a wildcard before any host; among them the longest path prefix
//! by whole segments: `/a2a` serves `/a2a`, `/a2a/` and `/a2a/x`, never `/a2a-old`. Never a
//! redirect, never a path that was changed. Pure: knows neither requests nor time.

use std::collections::HashMap;

use crate::config::Host;

/// A table from host and path to what is served there.
#[derive(Debug)]
pub struct Routes<E> {
    exact: HashMap<Box<str>, Vec<Route<E>>>,
    one_label: HashMap<Box<str>, Vec<Route<E>>>,
    any: Vec<Route<E>>,
}

#[derive(Debug)]
struct Route<E> {
    /// Without a trailing slash; empty for `/`.
    path: Box<str>,
    endpoint: E,
}

/// How well a route fits a host and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It is taken.
    Taken,
    /// Its path is a shorter one than that of the route that is taken, at as exact a host.
    ShorterPath,
    /// Its host is less exact than that of the route that is taken.
    LessExactHost,
    /// Its path is another one.
    OtherPath,
    /// Its host is another one.
    OtherHost,
}

/// An endpoint, and what follows its path: empty or beginning with `/`.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'r, 'p, E> {
    /// The endpoint.
    pub endpoint: &'r E,
    /// The rest of the path.
    pub rest: &'p str,
}

impl<E> Default for Routes<E> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            one_label: HashMap::new(),
            any: Vec::new(),
        }
    }
}

impl<E> Routes<E> {
    /// Adds an endpoint. Two on one host and path are a configuration problem found earlier; here
    /// the first wins.
    pub fn add(&mut self, host: &Host, path: &str, endpoint: E) {
        let table = match host {
            Host::Any => &mut self.any,
            Host::Exact(host) => self.exact.entry(host.clone()).or_default(),
            Host::OneLabel(suffix) => self.one_label.entry(suffix.clone()).or_default(),
        };
        let path: Box<str> = path.trim_end_matches('/').into();
        let longer_first = table.partition_point(|route| route.path.len() >= path.len());
        table.insert(longer_first, Route { path, endpoint });
    }

    /// Finds the endpoint for a lower-case host without port and a path as received.
    #[must_use]
    pub fn find<'r, 'p>(&'r self, host: Option<&str>, path: &'p str) -> Option<Found<'r, 'p, E>> {
        self.tables(host)
            .into_iter()
            .find_map(|table| longest(table, path))
    }

    /// Every route at this host, and those at others with this path, with how well it fits; the best
    /// first. Not for the path of a request.
    #[must_use]
    pub fn weigh(&self, host: Option<&str>, path: &str) -> Vec<(Fit, &E)> {
        let tables = self.tables(host);
        let is_here = |table: &[Route<E>]| tables.iter().any(|it| std::ptr::eq(*it, table));
        let mut taken = false;
        let mut all = Vec::new();
        for table in tables {
            let was_taken_before = taken;
            for route in table {
                let fit = match (route.serves(path), taken) {
                    (false, _) => Fit::OtherPath,
                    (true, false) => Fit::Taken,
                    (true, true) if was_taken_before => Fit::LessExactHost,
                    (true, true) => Fit::ShorterPath,
                };
                taken |= fit == Fit::Taken;
                all.push((fit, &route.endpoint));
            }
        }
        let elsewhere = self.exact.values().chain(self.one_label.values());
        for table in elsewhere.filter(|table| !is_here(table.as_slice())) {
            let fitting = table.iter().filter(|route| route.serves(path));
            all.extend(fitting.map(|route| (Fit::OtherHost, &route.endpoint)));
        }
        all.sort_by_key(|(fit, _)| *fit);
        all
    }

    /// What is served at this host, whatever the path, by the most specific table that has anything.
    pub fn at_host(&self, host: Option<&str>) -> impl Iterator<Item = &E> {
        self.tables(host)
            .into_iter()
            .find(|table| !table.is_empty())
            .unwrap_or_default()
            .iter()
            .map(|route| &route.endpoint)
    }

    fn tables(&self, host: Option<&str>) -> [&[Route<E>]; 3] {
        let exact = host.and_then(|host| self.exact.get(host));
        let one_label = host
            .and_then(|host| host.split_once('.'))
            .filter(|(label, _)| !label.is_empty())
            .and_then(|(_, suffix)| self.one_label.get(suffix));
        [
            exact.map_or(&[], Vec::as_slice),
            one_label.map_or(&[], Vec::as_slice),
            &self.any,
        ]
    }
}

impl<E> Route<E> {
    fn serves(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&*self.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn longest<'r, 'p, E>(table: &'r [Route<E>], path: &'p str) -> Option<Found<'r, 'p, E>> {
    table.iter().find_map(|route| {
        let rest = path.strip_prefix(&*route.path)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(Found {
            endpoint: &route.endpoint,
            rest,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes<&'static str> {
        let mut routes = Routes::default();
        let exact = Host::Exact("lakeside.example.com".into());
        routes.add(&Host::Any, "/a2a", "any");
        routes.add(&Host::Any, "/a2a/deep/er", "deeper");
        routes.add(&exact, "/a2a", "lakeside");
        routes.add(&Host::OneLabel("example.com".into()), "/", "wild");
        routes.add(&Host::Any, "/a2a/deep/", "deep");
        routes
    }

    #[test]
    fn finds_by_host_then_longest_segment_prefix() {
        let routes = routes();
        for (host, path, found) in [
            (Some("lakeside.example.com"), "/a2a", Some(("lakeside", ""))),
            (
                Some("lakeside.example.com"),
                "/a2a/",
                Some(("lakeside", "/")),
            ),
            (
                Some("lakeside.example.com"),
                "/a2a/x",
                Some(("lakeside", "/x")),
            ),
            (
                Some("lakeside.example.com"),
                "/a2a-old",
                Some(("wild", "/a2a-old")),
            ),
            (Some("hill.example.com"), "/", Some(("wild", "/"))),
            (Some("a.b.example.com"), "/a2a", Some(("any", ""))),
            (Some("example.com"), "/", None),
            (Some(".example.com"), "/", None),
            (Some("other"), "/a2a/deep/er/x", Some(("deeper", "/x"))),
            (Some("other"), "/a2a/deep/erx", Some(("deep", "/erx"))),
            (Some("other"), "/a2a/deepx", Some(("any", "/deepx"))),
            (Some("other"), "/a2a-old", None),
            (Some("other"), "/A2A", None),
            (Some("other"), "//a2a", None),
            (None, "/a2a", Some(("any", ""))),
        ] {
            let got = routes.find(host, path).map(|it| (*it.endpoint, it.rest));
            assert_eq!(got, found, "{host:?} {path}");
        }
    }

    #[test]
    fn weighs_every_route() {
        use Fit::{LessExactHost, OtherHost, OtherPath, ShorterPath, Taken};
        let routes = routes();
        let weighed = |host, path| {
            let mut all = routes.weigh(Some(host), path);
            all.sort();
            all.into_iter()
                .map(|(fit, it)| (fit, *it))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            weighed("lakeside.example.com", "/a2a"),
            [
                (Taken, "lakeside"),
                (LessExactHost, "any"),
                (LessExactHost, "wild"),
                (OtherPath, "deep"),
                (OtherPath, "deeper"),
            ]
        );
        assert_eq!(
            weighed("other", "/a2a/deep/x"),
            [
                (Taken, "deep"),
                (ShorterPath, "any"),
                (OtherPath, "deeper"),
                (OtherHost, "lakeside"),
                (OtherHost, "wild"),
            ]
        );
        // What is taken is what is found.
        for host in ["lakeside.example.com", "hill.example.com", "other"] {
            for path in ["/", "/a2a", "/a2a/deep/er", "/a2a-old"] {
                let found = routes.find(Some(host), path).map(|it| *it.endpoint);
                let taken = weighed(host, path);
                let taken: Vec<_> = taken.iter().filter(|it| it.0 == Taken).collect();
                assert_eq!(taken.first().map(|it| it.1), found, "{host} {path}");
                assert!(taken.len() <= 1);
            }
        }
    }

    #[test]
    fn lists_a_host() {
        let routes = routes();
        let at = |host| routes.at_host(Some(host)).copied().collect::<Vec<_>>();
        assert_eq!(at("lakeside.example.com"), ["lakeside"]);
        assert_eq!(at("x.example.com"), ["wild"]);
        assert_eq!(at("other"), ["deeper", "deep", "any"]);
    }
}
