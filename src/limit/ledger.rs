//! Decides what an operator is told of buckets, and forgives callers. Charges nobody.
//!
//! A bucket keeps eight digits of whose it is and which quota it is of, and nothing else: what is told
//! here is found by these, through every shard. Two callers with the same eight digits (they are what
//! the log shows) cannot be told apart. Nothing here is on the path of a request.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::caller::{Caller, address_digest, by_address, network_digest};
use super::clock::{Clock, Moment};
use super::fingerprint::{Domain, Fingerprint};
use super::limiter::{Limiter, debt};
use super::notable::{Notable, SAMPLED};
use super::pace::Standing;
use super::quota::{Kind, Quota};
use super::shared::{Digest, Meaning};
use super::store::Seen;

/// Whom a name is of: by this its buckets are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// What buckets of this process keep of it.
    pub(super) digits: Vec<u32>,
    /// What may name it as a caller in every process.
    pub(super) callers: Vec<Digest>,
    /// What names it as a caller and as an address, where it is one.
    pub(super) address: Option<(Digest, Digest)>,
    /// Whether its name is of a header, of whose value only the digits are known.
    pub(super) is_by_digits: bool,
}

impl Owner {
    /// Whoever the access log names so: `acme`, `x-api-key#1a2b3c4d`, `address 192.0.2.7`,
    /// `address 2001:db8::/64` or `nobody`. An address has its buckets as a caller and those of
    /// quotas per address.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut owners = vec![Fingerprint::of(Domain::Proven, [name.as_bytes()])];
        let mut callers = vec![Digest::of(Meaning::Proven, [name.as_bytes()])];
        if name == "nobody" {
            owners.push(Fingerprint::of(Domain::Nobody, []));
            callers.push(Digest::of(Meaning::Nobody, []));
        }
        let address = name.strip_prefix("address ").and_then(|text| {
            let text = text.strip_suffix("/64").unwrap_or(text);
            text.parse::<IpAddr>().ok()
        });
        if let Some(address) = address {
            owners.push(by_address(Domain::Caller, address));
            owners.push(by_address(Domain::Address, address));
        }
        let address = address.map(|it| (network_digest(Meaning::Caller, it), address_digest(it)));
        callers.extend(address.map(|(caller, _)| caller));
        let mut owners: Vec<u32> = owners.into_iter().map(Fingerprint::short).collect();
        let digits = name.rsplit_once('#').map(|(_, digits)| digits);
        let digits =
            digits.filter(|it| it.len() == 8 && it.bytes().all(|it| it.is_ascii_hexdigit()));
        let digits = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        owners.extend(digits);
        Self {
            digits: owners,
            callers,
            address,
            is_by_digits: digits.is_some(),
        }
    }
}

/// A bucket of one owner, of a configured quota.
#[derive(Clone, Debug)]
pub struct Entry<'q> {
    /// The place of its quota among those that were given.
    pub quota: usize,
    /// Which skill, where the quota counts skills apart and that can be told; `other` for those that
    /// are not known.
    pub skill: Option<&'q str>,
    /// Whether it is of a tenant, or of an address beside the caller, of which nothing is kept.
    pub is_of_another: bool,
    /// How it stands, with the plan that was given.
    pub standing: Standing,
}

impl Entry<'_> {
    /// The emptiest first.
    pub(super) fn rank(&self) -> (u32, Reverse<Duration>) {
        let standing = &self.standing;
        (standing.remaining(), Reverse(standing.until_full()))
    }
}

/// What was forgiven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgiven {
    /// Buckets that owed something.
    pub buckets: usize,
    /// Places among requests at once, which stay taken until their requests end.
    pub still_open: u64,
}

/// How a bucket stands. `None`: it is what it was before a reload made something else of it.
fn standing(quota: &Quota, plan: Option<usize>, seen: Seen, now: Moment) -> Option<Standing> {
    match (&quota.measure(plan).kind, seen) {
        (Kind::Rate(pace), Seen::Owes(tat)) => Some(pace.standing(debt(tat, now))),
        (Kind::AtOnce(most), Seen::Taken(taken)) => Some(Standing::AtOnce { most: *most, taken }),
        (Kind::Rate(_), Seen::Taken(_)) | (Kind::AtOnce(_), Seen::Owes(_)) => None,
    }
}

impl<C: Clock> Limiter<C> {
    /// The buckets of an owner that are not full, with those quotas; the emptiest first.
    #[must_use]
    pub fn entries<'q>(
        &self,
        owner: &Owner,
        quotas: &[&'q Quota],
        plan: Option<usize>,
    ) -> Vec<Entry<'q>> {
        let now = self.clock.now();
        let places: HashMap<u32, usize> =
            (0..).zip(quotas).map(|(at, it)| (it.tag(), at)).collect();
        let mut entries = Vec::new();
        self.store.look(now, |bucket, of, seen| {
            if !owner.digits.contains(&of.owner) {
                return;
            }
            let Some(at) = places.get(&of.quota).copied() else {
                return;
            };
            let Some(quota) = quotas.get(at) else { return };
            let Some(standing) = standing(quota, plan, seen, now) else {
                return;
            };
            let told = quota.tell(bucket, of.owner);
            entries.push(Entry {
                quota: at,
                skill: told.as_ref().and_then(|told| told.skill),
                is_of_another: told.is_none(),
                standing,
            });
        });
        entries.sort_by_key(Entry::rank);
        entries
    }

    /// Of each of these callers the bucket in which least is left, of its quotas that are not full: the
    /// quota's place, and how it stands. One walk through all shards, however many callers.
    #[must_use]
    pub fn tightest(
        &self,
        callers: &[&Caller],
        quotas: &[&Quota],
    ) -> Vec<Option<(usize, Standing)>> {
        let now = self.clock.now();
        let places: HashMap<u32, usize> =
            (0..).zip(quotas).map(|(at, it)| (it.tag(), at)).collect();
        let mut owners: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, caller) in callers.iter().enumerate() {
            for digits in Owner::named(&caller.to_string()).digits {
                owners.entry(digits).or_default().push(at);
            }
        }
        let mut found: Vec<Option<(usize, Standing)>> = vec![None; callers.len()];
        if callers.is_empty() {
            return found;
        }
        self.store.look(now, |_, of, seen| {
            let (Some(theirs), Some(at)) = (owners.get(&of.owner), places.get(&of.quota)) else {
                return;
            };
            for caller in theirs {
                let (Some(quota), Some(who)) = (quotas.get(*at), callers.get(*caller)) else {
                    continue;
                };
                let Some(standing) = standing(quota, who.plan(), seen, now) else {
                    continue;
                };
                if let Some(kept) = found.get_mut(*caller)
                    && kept.is_none_or(|(_, it)| standing.is_tighter_than(&it))
                {
                    *kept = Some((*at, standing));
                }
            }
        });
        found
    }

    /// Forgets what an owner owes, in every bucket that is its own, whatever quota, endpoint, skill
    /// or tenant it is of.
    pub fn forgive(&self, owner: &Owner) -> Forgiven {
        let now = self.clock.now();
        let mut still_open = 0;
        self.store.look(now, |_, of, seen| {
            if let Seen::Taken(taken) = seen
                && owner.digits.contains(&of.owner)
            {
                still_open += u64::from(taken);
            }
        });
        Forgiven {
            buckets: self.store.forgive(&owner.digits, now),
            still_open,
        }
    }

    /// For each of the quotas, how many buckets of it are not full.
    #[must_use]
    pub fn in_use(&self, quotas: &[&Quota]) -> Vec<usize> {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        self.store.look(self.clock.now(), |_, of, _| {
            *counts.entry(of.quota).or_default() += 1;
        });
        let count = |quota: &&Quota| counts.get(&quota.tag()).copied().unwrap_or_default();
        quotas.iter().map(count).collect()
    }

    /// How long until the bucket that strangers share is full again; `None` where it is.
    #[must_use]
    pub fn overflow(&self, quota: &Quota) -> Option<Duration> {
        let now = self.clock.now();
        let tat = *self.store.lock_overflow().tat(quota.overflow())?;
        let owed = debt(tat, now);
        (owed > 0).then_some(Duration::from_nanos(owed))
    }

    /// Notes an admitted call for operators, where it is one of the [`SAMPLED`] that is noted.
    pub fn note_admitted(&self, caller: &Caller) {
        self.notables.admitted(caller, SAMPLED, self.clock.now());
    }

    /// Notes for operators that a quota refused a call.
    pub fn note_refused(&self, caller: &Caller, quota: &Quota) {
        let name = quota.shared_name();
        self.notables.refused(caller, name, self.clock.now());
    }

    /// The callers that are remembered, in no order.
    #[must_use]
    pub fn notables(&self) -> Vec<Notable> {
        self.notables.all(self.clock.now())
    }
}

#[cfg(test)]
mod tests;
