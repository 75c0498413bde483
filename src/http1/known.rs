//! Decides which fields have a meaning here, by their names alone.
//!
//! A name is told from all others by one comparison. Must never know a value.

/// The fields that something here asks for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the field of its name")]
pub enum Known {
    A2aExtensions,
    A2aVersion,
    Authorization,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Date,
    Expect,
    Forwarded,
    Host,
    Location,
    Te,
    Traceparent,
    Tracestate,
    TransferEncoding,
    UserAgent,
    XForwardedFor,
    XForwardedHost,
    XForwardedProto,
    XRequestId,
    /// What belongs to one connection besides those above: `Keep-Alive`, `Proxy-Authenticate`,
    /// `Proxy-Authorization`, `Proxy-Connection`, `Trailer`, `Upgrade`.
    OneConnection,
    /// What a client says of its own way here, besides those above: any other `X-Forwarded-` name and
    /// `X-Real-IP`.
    OwnWay,
    /// A name that CGI-style servers merge with one of the A2A headers.
    LookAlike,
    /// Any other.
    Other,
}

/// The names of up to sixteen letters, by length.
const NAMES: [&[(u128, Known)]; 17] = {
    let mut names: [&[(u128, Known)]; 17] = [&[]; 17];
    names[2] = &[(named(b"te"), Known::Te)];
    names[4] = &[(named(b"host"), Known::Host), (named(b"date"), Known::Date)];
    names[6] = &[(named(b"expect"), Known::Expect)];
    names[7] = &[
        (named(b"trailer"), Known::OneConnection),
        (named(b"upgrade"), Known::OneConnection),
    ];
    names[8] = &[(named(b"location"), Known::Location)];
    names[9] = &[
        (named(b"forwarded"), Known::Forwarded),
        (named(b"x-real-ip"), Known::OwnWay),
    ];
    names[10] = &[
        (named(b"user-agent"), Known::UserAgent),
        (named(b"connection"), Known::Connection),
        (named(b"tracestate"), Known::Tracestate),
        (named(b"keep-alive"), Known::OneConnection),
    ];
    names[11] = &[
        (named(b"a2a-version"), Known::A2aVersion),
        (named(b"traceparent"), Known::Traceparent),
        (named(b"a2a_version"), Known::LookAlike),
    ];
    names[12] = &[
        (named(b"content-type"), Known::ContentType),
        (named(b"x-request-id"), Known::XRequestId),
    ];
    names[13] = &[(named(b"authorization"), Known::Authorization)];
    names[14] = &[
        (named(b"content-length"), Known::ContentLength),
        (named(b"a2a-extensions"), Known::A2aExtensions),
        (named(b"a2a_extensions"), Known::LookAlike),
    ];
    names[15] = &[(named(b"x-forwarded-for"), Known::XForwardedFor)];
    names[16] = &[
        (named(b"x-forwarded-host"), Known::XForwardedHost),
        (named(b"content-encoding"), Known::ContentEncoding),
        (named(b"proxy-connection"), Known::OneConnection),
    ];
    names
};

/// The longer ones.
const LONG_NAMES: [(&[u8], Known); 4] = [
    (b"x-forwarded-proto", Known::XForwardedProto),
    (b"transfer-encoding", Known::TransferEncoding),
    (b"proxy-authenticate", Known::OneConnection),
    (b"proxy-authorization", Known::OneConnection),
];

/// What the names begin with by which a client tells its own way here.
const OWN_WAY: &[u8] = b"x-forwarded-";

/// A name of ours, of up to sixteen letters, as one word.
const fn named(name: &[u8]) -> u128 {
    match name {
        [] => 0,
        [first, rest @ ..] => named(rest) << 8 | *first as u128,
    }
}

impl Known {
    /// What a name, in whatever case, is.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let mut lower = [0; 16];
        if let Some(room) = lower.get_mut(..name.len()) {
            room.copy_from_slice(name);
            lower.make_ascii_lowercase();
            return Self::of_word(u128::from_le_bytes(lower), name.len());
        }
        let long = LONG_NAMES
            .iter()
            .find(|(wanted, _)| name.eq_ignore_ascii_case(wanted));
        match (long, name.get(..OWN_WAY.len())) {
            (Some((_, known)), _) => *known,
            (None, Some(start)) if start.eq_ignore_ascii_case(OWN_WAY) => Self::OwnWay,
            _ => Self::Other,
        }
    }

    /// What a name is that stands in lower case in one word; so many letters.
    #[inline]
    pub(super) fn of_word(name: u128, length: usize) -> Self {
        let likes = NAMES.get(length).copied().unwrap_or_default();
        for (wanted, known) in likes {
            if *wanted == name {
                return *known;
            }
        }
        const START: u128 = u128::MAX >> (128 - 8 * OWN_WAY.len());
        if name & START == named(OWN_WAY) {
            return Self::OwnWay;
        }
        Self::Other
    }

    /// A bit of its own.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Whether the field belongs to one connection and stops at each (RFC 9110 section 7.6.1).
    #[must_use]
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection | Self::OneConnection | Self::Te | Self::TransferEncoding
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_in_any_case_and_nothing_else_is() {
        for (name, known) in [
            ("Host", Known::Host),
            ("A2A-VERSION", Known::A2aVersion),
            ("a2a_version", Known::LookAlike),
            ("A2A_Extensions", Known::LookAlike),
            ("x-a2a-extensions", Known::Other),
            ("content-length", Known::ContentLength),
            ("content-lengtH ", Known::Other),
            ("x-forwarded-for", Known::XForwardedFor),
            ("X-Forwarded-", Known::OwnWay),
            ("X-Forwarded-Port", Known::OwnWay),
            ("x-forwarded-prefix", Known::OwnWay),
            ("x-forwarder", Known::Other),
            ("X-Real-IP", Known::OwnWay),
            ("Proxy-Connection", Known::OneConnection),
            ("TraceParent", Known::Traceparent),
            ("tracestate", Known::Tracestate),
            ("trace-state", Known::Other),
            ("transfer-encoding", Known::TransferEncoding),
            ("", Known::Other),
        ] {
            assert_eq!(Known::of(name.as_bytes()), known, "{name}");
        }
    }

    #[test]
    fn what_stops_at_each_hop() {
        for name in [
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ] {
            assert!(Known::of(name.as_bytes()).is_hop_by_hop(), "{name}");
        }
        for name in [
            "content-length",
            "host",
            "a2a-version",
            "x-api-key",
            "expect",
        ] {
            assert!(!Known::of(name.as_bytes()).is_hop_by_hop(), "{name}");
        }
    }
}
