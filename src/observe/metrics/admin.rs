//! Decides why requests are refused on the admin socket, as far as operators need to tell apart. A
//! closed set: nothing that a client sent becomes a label.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{add, made};

/// Why somebody may not see inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminRefusal {
    /// A browser's page may have sent it, or it came under a name.
    Browser,
    /// Others reach the socket, and no token is configured.
    Unprotected,
    /// It has no token.
    Absent,
    /// It has a wrong token.
    Wrong,
    /// Too many wrong ones came from there: it was not looked at.
    TooMany,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Because {
    reason: &'static str,
}

/// What is counted of the admin socket.
#[derive(Clone, Debug, Default)]
pub struct AdminMeters(Family<Because, Counter>);

impl AdminRefusal {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::Browser,
        Self::Unprotected,
        Self::Absent,
        Self::Wrong,
        Self::TooMany,
    ];

    /// As metrics and log lines spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Unprotected => "unprotected",
            Self::Absent => "no_token",
            Self::Wrong => "wrong_token",
            Self::TooMany => "too_many",
        }
    }
}

impl AdminMeters {
    /// Registers the series, all at zero.
    pub(super) fn register(&self, registry: &mut Registry) {
        add(registry, "forecourt_admin_refused_total", self.0.clone());
        for why in AdminRefusal::ALL {
            made(
                &self.0,
                Because {
                    reason: why.label(),
                },
            );
        }
    }

    /// A request was refused.
    pub fn refused(&self, why: AdminRefusal) {
        made(
            &self.0,
            Because {
                reason: why.label(),
            },
        )
        .inc();
    }
}
