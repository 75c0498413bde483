//! Decides how quotas are announced in header fields, so that a caller can slow down by itself.
//!
//! Two spellings: the structured fields of draft-ietf-httpapi-ratelimit-headers (`RateLimit-Policy`
//! says what holds, `RateLimit` how the caller stands), and the older `X-RateLimit-*` of the
//! tightest quota. A policy is named by its quota's name and nothing of the caller; what it says is
//! what holds for this caller's plan. A quota that does not look at a call is not announced on its
//! answer. Times are rounded up: who waits as long as is said is not early.

use bytes::Bytes;

use super::pace::Standing;
use super::quota::Quota;
use super::subject::Subject;
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
    /// `RateLimit` and `RateLimit-Policy`; the policies' text, where it is always the same.
    Draft(Option<Bytes>),
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    Legacy,
}

/// What one answer says.
#[derive(Clone, Debug)]
pub enum Announced {
    /// The values of `RateLimit-Policy` and `RateLimit`.
    Draft {
        /// What holds.
        policy: Bytes,
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
        if quotas.is_empty() {
            return Self::Off;
        }
        if !quotas.iter().all(Quota::is_same_for_all) {
            return Self::Draft(None);
        }
        Self::Draft(Some(policies(quotas.iter().map(Quota::own_policy))))
    }

    /// What an answer says to this caller, given how it stands with each of the quotas that look at
    /// its call, in their order. `None`: nothing.
    #[must_use]
    pub fn announce(
        &self,
        who: &Subject<'_>,
        standings: &[(&Quota, Standing)],
    ) -> Option<Announced> {
        match self {
            Self::Off => None,
            Self::Draft(_) if standings.is_empty() => None,
            Self::Draft(same) => {
                let mut text = String::with_capacity(32 * standings.len());
                for (quota, standing) in standings {
                    push(&mut text, quota.name());
                    text.push_str(";r=");
                    text.push_str(itoa::Buffer::new().format(standing.remaining()));
                    let wait = seconds(standing.until_next());
                    if wait > 0 {
                        text.push_str(";t=");
                        text.push_str(itoa::Buffer::new().format(wait));
                    }
                }
                let policy = same.clone().unwrap_or_else(|| {
                    policies(standings.iter().map(|(quota, _)| quota.policy(who)))
                });
                Some(Announced::Draft {
                    policy,
                    state: text,
                })
            }
            // It has a time, which nobody knows of requests at once.
            Self::Legacy => standings
                .iter()
                .map(|(_, standing)| standing)
                .filter(|standing| matches!(standing, Standing::Rate { .. }))
                .min_by_key(|standing| standing.remaining())
                .map(|tightest| Announced::Legacy(*tightest)),
        }
    }
}

/// The members of a list.
fn policies<'q>(each: impl Iterator<Item = &'q str>) -> Bytes {
    let mut text = String::new();
    for policy in each {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(policy);
    }
    text.into()
}

impl Announced {
    /// Writes it among an answer's fields, beside what an upstream may say of its own limits.
    pub fn write(self, lines: &mut Lines) {
        match self {
            Self::Draft { policy, state } => {
                lines.push(POLICY, &policy);
                lines.push(STATE, state.as_bytes());
            }
            Self::Legacy(standing) => {
                lines.push_number(LEGACY_LIMIT, standing.most().into());
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
    use crate::limit::{
        Allowance, Call, Caller, Dimension, Limiter, ManualClock, Rule, Source, identify,
    };
    use std::num::NonZeroU32;
    use std::time::Duration;

    fn quota(name: &str, ms: u64, burst: u32) -> Rule {
        let allowance = Allowance::Rate {
            interval: Duration::from_millis(ms),
            burst: NonZeroU32::new(burst).unwrap(),
        };
        Rule::new(name, Dimension::Caller, allowance)
    }

    fn lines(announced: Option<Announced>) -> Vec<String> {
        let mut lines = Lines::new();
        if let Some(announced) = announced {
            announced.write(&mut lines);
        }
        let text = String::from_utf8(lines.as_bytes().to_vec()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn said(
        announcement: &Announcement,
        limiter: &Limiter<ManualClock>,
        quotas: &[Quota],
        who: &Subject<'_>,
    ) -> Vec<String> {
        let standing = |quota| Some((quota, limiter.standing(quota, who)?));
        let standings: Vec<_> = quotas.iter().filter_map(standing).collect();
        lines(announcement.announce(who, &standings))
    }

    #[test]
    fn both_spellings_say_how_a_caller_stands() {
        let quotas = [quota("per-buyer", 600, 100), quota("slow", 30_000, 2)];
        let quotas = quotas.map(|rule| Quota::compile(&rule, "e"));
        let clock = ManualClock::new();
        let limiter = Limiter::new(clock.clone(), 1000);
        let address = "192.0.2.7".parse().unwrap();
        let caller = identify(&[Source::Address], &Fields::default(), address);
        let subject = Subject::new(&caller, address);
        let said = |announcement| said(&announcement, &limiter, &quotas, &subject);
        let draft = Announcement::draft(&quotas);
        assert_eq!(
            said(draft.clone()),
            [
                r#"ratelimit-policy: "per-buyer";q=100;w=60, "slow";q=2;w=60"#,
                r#"ratelimit: "per-buyer";r=100, "slow";r=2"#,
            ]
        );
        limiter.check(&quotas, &subject);
        clock.advance(Duration::from_millis(100));
        assert_eq!(
            said(draft)[1],
            r#"ratelimit: "per-buyer";r=99;t=1, "slow";r=1;t=30"#
        );
        assert_eq!(
            said(Announcement::Legacy),
            [
                "x-ratelimit-limit: 2",
                "x-ratelimit-remaining: 1",
                "x-ratelimit-reset: 30"
            ]
        );
        assert!(said(Announcement::Off).is_empty());
        assert!(matches!(Announcement::draft(&[]), Announcement::Off));
    }

    #[test]
    fn what_is_said_is_what_holds_for_this_call_of_this_caller() {
        let at_once = |most| Allowance::Concurrent(NonZeroU32::new(most).unwrap());
        let gold = Allowance::Rate {
            interval: Duration::from_millis(100),
            burst: NonZeroU32::new(200).unwrap(),
        };
        let rules = [
            Rule {
                plans: vec![Some(gold)],
                ..quota("per-buyer", 600, 100)
            },
            Rule {
                skills: Some(vec!["lead.submit".into()]),
                cost: vec![("lead.submit".into(), NonZeroU32::new(3).unwrap())],
                ..quota("leads", 1000, 10)
            },
            Rule {
                methods: Some(vec!["SendStreamingMessage".into()]),
                ..Rule::new("streams", Dimension::Caller, at_once(4))
            },
        ];
        let quotas = rules.map(|rule| Quota::compile(&rule, "e"));
        let limiter = Limiter::new(ManualClock::new(), 1000);
        let address = "192.0.2.7".parse().unwrap();
        let who = |plan| Subject::new(&Caller::proven("acme".into(), plan), address);
        let (plain, gold) = (who(None), who(Some(0)));
        let call = |method, skill| Call {
            method,
            skill,
            tenant: None,
        };
        let draft = Announcement::draft(&quotas);
        let said = |who: &Subject<'_>| said(&draft, &limiter, &quotas, who);
        let lead = call("SendStreamingMessage", Some("lead.submit"));
        let admitted = limiter.check(&quotas, &plain.calling(lead));
        assert_eq!(
            said(&plain.calling(lead)),
            [
                "ratelimit-policy: \"per-buyer\";q=100;w=60, \"leads\";q=10;w=10, \
                 \"streams\";q=4;qu=\"concurrent-requests\"",
                r#"ratelimit: "per-buyer";r=99;t=1, "leads";r=7;t=1, "streams";r=3"#,
            ]
        );
        // Another plan, the same bucket; the other quotas say nothing of this call.
        let get = call("GetTask", None);
        assert_eq!(
            said(&gold.calling(get)),
            [
                r#"ratelimit-policy: "per-buyer";q=200;w=20"#,
                r#"ratelimit: "per-buyer";r=194;t=1"#,
            ]
        );
        drop(admitted);
        let of_streams = limiter.standing(&quotas[2], &plain.calling(lead)).unwrap();
        assert_eq!(of_streams.remaining(), 4);
        // Requests at once have no time, which the older fields are about.
        let only = [(&quotas[2], of_streams)];
        assert!(Announcement::Legacy.announce(&plain, &only).is_none());
        assert!(draft.announce(&plain, &[]).is_none());
    }
}
