//! Decides how quotas are announced in header fields, so that a caller can slow down by itself.
//!
//! Two spellings: the structured fields of draft-ietf-httpapi-ratelimit-headers (`RateLimit-Policy`
//! says what holds, `RateLimit` how the caller stands), and the older `X-RateLimit-*` of the
//! tightest quota. A policy is named by its quota's name and nothing of the caller. Times are
//! rounded up: who waits as long as is said is not early.

use http::header::HeaderValue;

use super::quota::{Quota, Standing};
use crate::http1::Lines;

const POLICY: &[u8] = b"ratelimit-policy";
const STATE: &[u8] = b"ratelimit";
const LEGACY_LIMIT: &[u8] = b"x-ratelimit-limit";
const LEGACY_REMAINING: &[u8] = b"x-ratelimit-remaining";
const LEGACY_RESET: &[u8] = b"x-ratelimit-reset";

/// How an endpoint announces its quotas, made once per configuration.
#[derive(Clone, Debug)]
pub enum Announcement {
    /// Not at all.
    Off,
    /// `RateLimit` and `RateLimit-Policy`; the policies' text is always the same.
    Draft(HeaderValue),
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    Legacy,
}

/// What one answer says.
#[derive(Clone, Debug)]
pub enum Announced {
    /// The values of `RateLimit-Policy` and `RateLimit`.
    Draft {
        /// What holds.
        policy: HeaderValue,
        /// How the caller stands.
        state: String,
    },
    /// The tightest quota.
    Legacy(Standing),
}

impl Announcement {
    /// The structured fields for these quotas; nothing for none.
    #[must_use]
    pub fn draft(quotas: &[Quota]) -> Self {
        let mut text = String::new();
        for quota in quotas {
            let window = quota.interval().as_nanos() * u128::from(quota.burst().get());
            let window = window.div_ceil(1_000_000_000).max(1);
            push(&mut text, quota.name());
            text.push_str(&format!(";q={};w={window}", quota.burst()));
        }
        match HeaderValue::try_from(text) {
            Ok(policy) if !quotas.is_empty() => Self::Draft(policy),
            _ => Self::Off,
        }
    }

    /// What an answer says, given how the caller stands with each of the quotas, in their order.
    /// `None`: nothing.
    #[must_use]
    pub fn announce(&self, quotas: &[Quota], standings: &[Standing]) -> Option<Announced> {
        match self {
            Self::Off => None,
            Self::Draft(policy) => {
                let mut text = String::with_capacity(32 * quotas.len());
                for (quota, standing) in quotas.iter().zip(standings) {
                    push(&mut text, quota.name());
                    text.push_str(";r=");
                    text.push_str(itoa::Buffer::new().format(standing.remaining()));
                    let wait = seconds(standing.until_next());
                    if wait > 0 {
                        text.push_str(";t=");
                        text.push_str(itoa::Buffer::new().format(wait));
                    }
                }
                Some(Announced::Draft {
                    policy: policy.clone(),
                    state: text,
                })
            }
            Self::Legacy => standings
                .iter()
                .min_by_key(|standing| standing.remaining())
                .map(|tightest| Announced::Legacy(*tightest)),
        }
    }
}

impl Announced {
    /// Writes it among an answer's fields, beside what an upstream may say of its own limits.
    pub fn write(self, lines: &mut Lines) {
        match self {
            Self::Draft { policy, state } => {
                lines.push(POLICY, policy.as_bytes());
                lines.push(STATE, state.as_bytes());
            }
            Self::Legacy(standing) => {
                lines.push_number(LEGACY_LIMIT, standing.burst().into());
                lines.push_number(LEGACY_REMAINING, standing.remaining().into());
                lines.push_number(LEGACY_RESET, seconds(standing.until_full()));
            }
        }
    }

    /// Whether it takes the place of an upstream's field: the legacy names can stand only once.
    #[must_use]
    pub fn replaces(&self, name: &[u8]) -> bool {
        matches!(self, Self::Legacy(_))
            && [LEGACY_LIMIT, LEGACY_REMAINING, LEGACY_RESET]
                .iter()
                .any(|ours| name.eq_ignore_ascii_case(ours))
    }
}

/// A structured-field string (RFC 8941 section 3.3.3) as a member of a list. Names of quotas have
/// nothing that needs an escape.
fn push(list: &mut String, name: &str) {
    if !list.is_empty() {
        list.push_str(", ");
    }
    list.push('"');
    list.push_str(name);
    list.push('"');
}

/// Whole seconds, rounded up.
fn seconds(wait: std::time::Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::Fields;
    use crate::limit::{Dimension, Limiter, ManualClock, Rule, Source, Subject, identify};
    use std::num::NonZeroU32;
    use std::time::Duration;

    fn quota(name: &str, ms: u64, burst: u32) -> Quota {
        let rule = Rule {
            name: name.into(),
            per: Dimension::Caller.into(),
            interval: Duration::from_millis(ms),
            burst: NonZeroU32::new(burst).unwrap(),
            shared: false,
        };
        Quota::compile(&rule, "e")
    }

    fn lines(announced: Announced) -> Vec<String> {
        let mut lines = Lines::new();
        announced.write(&mut lines);
        let text = String::from_utf8(lines.as_bytes().to_vec()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn both_spellings_say_how_a_caller_stands() {
        let quotas = [quota("per-buyer", 600, 100), quota("slow", 30_000, 2)];
        let clock = ManualClock::new();
        let limiter = Limiter::new(clock.clone(), 1000);
        let address = "192.0.2.7".parse().unwrap();
        let caller = identify(&[Source::Address], &Fields::default(), address);
        let subject = Subject::new(&caller, address);
        let standings = || {
            quotas
                .each_ref()
                .map(|quota| limiter.standing(quota, &subject))
        };
        let draft = Announcement::draft(&quotas);
        assert_eq!(
            lines(draft.announce(&quotas, &standings()).unwrap()),
            [
                r#"ratelimit-policy: "per-buyer";q=100;w=60, "slow";q=2;w=60"#,
                r#"ratelimit: "per-buyer";r=100, "slow";r=2"#,
            ]
        );
        limiter.check(&quotas, &subject, NonZeroU32::MIN);
        clock.advance(Duration::from_millis(100));
        assert_eq!(
            lines(draft.announce(&quotas, &standings()).unwrap())[1],
            r#"ratelimit: "per-buyer";r=99;t=1, "slow";r=1;t=30"#
        );
        assert_eq!(
            lines(
                Announcement::Legacy
                    .announce(&quotas, &standings())
                    .unwrap()
            ),
            [
                "x-ratelimit-limit: 2",
                "x-ratelimit-remaining: 1",
                "x-ratelimit-reset: 30"
            ]
        );
        assert!(Announcement::Off.announce(&quotas, &standings()).is_none());
        assert!(matches!(Announcement::draft(&[]), Announcement::Off));
    }
}
