//! Decides what is answered at which path, by which method, and to whom.
//!
//! Probes and metrics are for machines that come by name. Everything that tells about the inside or
//! changes it is for operators ([`super::guard`]). The page holds nothing of the inside.

use bytes::Bytes;
use http::header::{ALLOW, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode, request};

use super::answer::{Answer, text};
use super::guard::Guard;
use super::query::Wrong;
use super::{Office, Visitor, config, drain, explain, limits, log, page, probe, status};
use crate::config::LARGEST;

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Front,
    Live,
    Ready,
    Metrics,
    Config,
    Status,
    Reload,
    Log,
    Diff,
    Rollback,
    Generations,
    Drain,
    Limits,
    Caller,
    Explain,
    Decisions,
    Decision,
}

impl Page {
    pub(super) fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/" => Self::Front,
            "/livez" | "/healthz" => Self::Live,
            "/readyz" => Self::Ready,
            "/metrics" => Self::Metrics,
            "/config" => Self::Config,
            "/status" => Self::Status,
            "/reload" => Self::Reload,
            "/log" => Self::Log,
            "/diff" => Self::Diff,
            "/rollback" => Self::Rollback,
            "/generations" => Self::Generations,
            "/drain" => Self::Drain,
            "/limits" => Self::Limits,
            "/explain" => Self::Explain,
            "/decisions" => Self::Decisions,
            _ if caller(path).is_some() => Self::Caller,
            _ if decision(path).is_some() => Self::Decision,
            _ => return None,
        })
    }

    /// The value of `Allow`.
    const fn allow(self) -> &'static str {
        match self {
            Self::Front
            | Self::Live
            | Self::Ready
            | Self::Metrics
            | Self::Config
            | Self::Status
            | Self::Generations
            | Self::Limits
            | Self::Decisions
            | Self::Decision => "GET, HEAD",
            Self::Caller => "GET, HEAD, DELETE",
            Self::Log => "GET, HEAD, PUT",
            Self::Reload | Self::Diff | Self::Rollback | Self::Explain | Self::Drain => "POST",
        }
    }

    /// How many bytes of a body it takes at most; of others none is read.
    pub(super) fn takes(self, office: &Office) -> usize {
        match self {
            Self::Explain => explain::takes(office),
            Self::Diff => LARGEST,
            Self::Front
            | Self::Live
            | Self::Ready
            | Self::Metrics
            | Self::Config
            | Self::Status
            | Self::Limits
            | Self::Caller
            | Self::Rollback
            | Self::Generations
            | Self::Decisions
            | Self::Decision
            | Self::Drain
            | Self::Reload => 0,
            Self::Log => log::LARGEST,
        }
    }

    /// Who gets it.
    fn whom(self, headers: &HeaderMap) -> Whom {
        match self {
            Self::Status if page::is_preferred(headers) => Whom::Browsers,
            Self::Live | Self::Ready | Self::Metrics => Whom::Everyone,
            Self::Front => Whom::Browsers,
            Self::Config
            | Self::Status
            | Self::Reload
            | Self::Log
            | Self::Diff
            | Self::Rollback
            | Self::Generations
            | Self::Drain
            | Self::Limits
            | Self::Caller
            | Self::Explain
            | Self::Decisions
            | Self::Decision => Whom::Operators,
        }
    }
}

/// Who gets what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    Everyone,
    /// Whoever may see a page that holds nothing.
    Browsers,
    Operators,
}

/// The answer, whichever it is.
fn either(answer: Result<Answer, Wrong>) -> Answer {
    answer.unwrap_or_else(|wrong| wrong.answer())
}

/// The caller that a path names, percent-encoded.
fn caller(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/limits/")?;
    (!name.is_empty()).then_some(name)
}

/// The id that a path names, percent-encoded.
fn decision(path: &str) -> Option<&str> {
    let id = path.strip_prefix("/decisions/")?;
    (!id.is_empty()).then_some(id)
}

impl Office {
    /// The answer to whoever may not have this page, or asks for it by a wrong method.
    pub(super) fn refuse(
        &self,
        page: Page,
        head: &request::Parts,
        visitor: &Visitor,
    ) -> Option<Answer> {
        let allow = page.allow();
        let method = head.method.as_str();
        if !allow.split(", ").any(|allowed| allowed == method) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(allow));
            return Some(response);
        }
        let snapshot = self.reloader.live().load();
        let guard = Guard {
            tokens: &snapshot.settings.admin.token_sha256,
            is_local: self.process.admin.ip().to_canonical().is_loopback(),
            attempts: &visitor.attempts,
        };
        let refused = match page.whom(&head.headers) {
            Whom::Everyone => return None,
            Whom::Browsers => guard.page(&head.headers),
            Whom::Operators => guard.operator(&head.headers, visitor.peer),
        };
        let refused = refused.err()?;
        self.shared.metrics.admin.refused(refused.why);
        Some(refused.answer())
    }

    /// Answers one request. Waits for nothing but stores that callers are looked up in, and for workers
    /// to take up a reload, no longer than a second for each, and where it is asked to wait for the end.
    pub(super) async fn answer(&self, page: Page, request: &Request<Bytes>) -> Answer {
        let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
        let query = request.uri().query();
        match page {
            Page::Front => page::show(),
            Page::Live => probe::live(),
            Page::Ready => probe::ready(self, query),
            Page::Metrics => probe::metrics(self, headers),
            Page::Config => config::show(self),
            Page::Status if page::is_preferred(headers) => page::show(),
            Page::Status => status::tell(self),
            Page::Log if *method == Method::PUT => log::turn(self, request.body()),
            Page::Log => log::show(self),
            Page::Reload => either(config::reload(self, query).await),
            Page::Diff => either(config::diff(self, query, request.body())),
            Page::Rollback => either(config::roll_back(self, query).await),
            Page::Generations => either(config::generations(self, query)),
            Page::Drain => drain::begin(self, query == Some("wait")).await,
            Page::Limits => limits::all(self),
            Page::Caller if *method == Method::DELETE => {
                limits::forgive(self, caller(path).unwrap_or_default()).await
            }
            Page::Caller => limits::one(self, caller(path).unwrap_or_default()).await,
            Page::Explain => either(explain::ask(self, query, request.body()).await),
            Page::Decisions => either(explain::newest(self, query)),
            Page::Decision => explain::one(self, decision(path).unwrap_or_default()),
        }
    }
}
