//! Decides which calls a quota looks at, in which bucket, at what cost, and how much it lets through.
//!
//! What it counts apart makes the bucket; how much is let through never does: a plan, and a changed
//! rate, find the bucket that was there before. Nothing here knows where a bucket is kept, and no
//! quota holds state.

mod named;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::config::{Allowance, Dimension, Per};
use crate::protocol::SKILLS;

use super::fingerprint::{Domain, Fingerprint};
use super::pace::Pace;
use super::shared::{Digest, Identity, Meaning};
use super::store::Tag;
use super::subject::{Subject, no_tenant};

/// What a quota says, under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The quota's name. Its buckets belong to the name: renamed, it starts afresh.
    pub name: Box<str>,
    /// What it counts by.
    pub per: Per,
    /// How much it lets through: of a rate, an interval of at least 1 ns.
    pub allowance: Allowance,
    /// How much instead, by the place of the caller's plan.
    pub plans: Vec<Option<Allowance>>,
    /// One bucket across all endpoints that name the quota, instead of one for each.
    pub shared: bool,
    /// Only calls for these skills.
    pub skills: Option<Vec<Box<str>>>,
    /// Only calls of these methods.
    pub methods: Option<Vec<Box<str>>>,
    /// What a call of a skill or method costs; any other costs 1.
    pub cost: Vec<(Box<str>, NonZeroU32)>,
    /// Whether its buckets are kept by this process.
    pub is_local: bool,
}

impl Rule {
    /// A rule for every call, whoever's, each at a cost of 1, kept here.
    #[must_use]
    pub fn new(name: &str, per: impl Into<Per>, allowance: Allowance) -> Self {
        Self {
            name: name.into(),
            per: per.into(),
            allowance,
            plans: Vec::new(),
            shared: false,
            skills: None,
            methods: None,
            cost: Vec::new(),
            is_local: true,
        }
    }
}

/// A quota compiled for one endpoint: a few words, no state.
pub struct Quota {
    name: Arc<str>,
    scope: Fingerprint,
    /// What names the scope in every process.
    everywhere: Digest,
    by_endpoint: bool,
    by_caller: bool,
    by_address: bool,
    by_tenant: bool,
    /// The skills with a bucket each, where they are counted apart.
    by_skill: Option<Skills>,
    skills: Option<Box<[Box<str>]>>,
    methods: Option<Box<[Box<str>]>>,
    cost: Box<[(Box<str>, NonZeroU32)]>,
    own: Measure,
    plans: Box<[Option<Measure>]>,
    is_local: bool,
}

/// Skills that are known, by name.
type Skills = Box<[(Box<str>, Fingerprint)]>;

/// How much is let through, and how that is announced.
#[derive(Debug)]
pub(super) struct Measure {
    pub(super) kind: Kind,
    policy: Box<str>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Rate(Pace),
    AtOnce(NonZeroU32),
}

/// What one call asks of one quota.
pub(super) struct Ask<'q> {
    pub(super) bucket: Fingerprint,
    pub(super) of: Tag,
    pub(super) cost: NonZeroU32,
    pub(super) kind: &'q Kind,
    /// Whether traffic can make up more buckets like this one, so that they need room.
    pub(super) floods: bool,
}

impl Quota {
    /// Compiles a rule for the endpoint of this name.
    ///
    /// Total: a rate that cannot be counted is held to one that can.
    #[must_use]
    pub fn compile(rule: &Rule, endpoint: &str) -> Self {
        let by = |dimension| rule.per.contains(dimension);
        let [by_caller, by_address, by_tenant, by_skill] = [
            Dimension::Caller,
            Dimension::Address,
            Dimension::Tenant,
            Dimension::Skill,
        ]
        .map(by);
        let dimensions = [by_caller, by_address, by_tenant, by_skill].map(u8::from);
        let is_apart = dimensions.contains(&1);
        let by_endpoint = by(Dimension::Endpoint) || (is_apart && !rule.shared);
        let endpoint = by_endpoint.then_some(endpoint.as_bytes());
        let parts = [rule.name.as_bytes(), &dimensions];
        let parts = || parts.into_iter().chain(endpoint);
        let measure = |allowance: &Allowance| Measure::new(&rule.name, *allowance);
        let words = |words: &Vec<Box<str>>| words.clone().into_boxed_slice();
        Self {
            name: Arc::from(&*rule.name),
            scope: Fingerprint::of(Domain::Quota, parts()),
            everywhere: Digest::of(Meaning::Quota, parts()),
            by_endpoint,
            by_caller,
            by_address,
            by_tenant,
            by_skill: by_skill.then(|| known_skills(rule)),
            skills: rule.skills.as_ref().map(words),
            methods: rule.methods.as_ref().map(words),
            cost: rule.cost.clone().into(),
            own: measure(&rule.allowance),
            plans: rule
                .plans
                .iter()
                .map(|plan| plan.as_ref().map(measure))
                .collect(),
            is_local: rule.is_local,
        }
    }

    /// The quota's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether its buckets are kept by this process. The limiter passes over any other.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.is_local
    }

    /// Whether it needs to know what a call says of itself.
    #[must_use]
    pub const fn looks_inside(&self) -> bool {
        self.by_tenant
            || self.by_skill.is_some()
            || self.skills.is_some()
            || self.methods.is_some()
            || !self.cost.is_empty()
    }

    /// Whether it looks at this call. At one that could not be read, only if it looks at all.
    #[must_use]
    pub fn looks_at(&self, who: &Subject<'_>) -> bool {
        fits(self.skills.as_deref(), who.skill()) && fits(self.methods.as_deref(), who.method())
    }

    /// What this call counts: where skill and method both have a cost, the larger.
    #[must_use]
    pub fn cost(&self, who: &Subject<'_>) -> NonZeroU32 {
        let (skill, method) = (who.skill(), who.method());
        let costs = self.cost.iter().filter(|(word, _)| {
            let word = Some(&**word);
            word == skill || word == method
        });
        costs
            .map(|(_, cost)| *cost)
            .max()
            .unwrap_or(NonZeroU32::MIN)
    }

    /// The policy that holds for this caller, as a member of `RateLimit-Policy`.
    pub(super) fn policy(&self, who: &Subject<'_>) -> &str {
        &self.measure(who.plan()).policy
    }

    /// The policy that holds without a plan.
    pub(super) const fn own_policy(&self) -> &str {
        &self.own.policy
    }

    /// Whether its policy is one and the same on every answer.
    pub(super) fn is_same_for_all(&self) -> bool {
        self.skills.is_none() && self.methods.is_none() && self.plans.iter().all(Option::is_none)
    }

    /// What this call asks of it; nothing where it does not look at it.
    pub(super) fn ask(&self, who: &Subject<'_>) -> Option<Ask<'_>> {
        if !self.looks_at(who) {
            return None;
        }
        let mut bucket = self.scope;
        let mut owner = 0;
        if self.by_address {
            let address = who.address();
            owner = address.short();
            bucket = bucket.with(address);
        }
        if self.by_caller {
            owner = who.caller().short();
            bucket = bucket.with(who.caller());
        }
        if self.by_tenant {
            bucket = bucket.with(who.tenant());
        }
        if let Some(known) = &self.by_skill {
            bucket = bucket.with(skill_of(known, who.skill()));
        }
        Some(Ask {
            bucket,
            of: Tag {
                owner,
                quota: self.tag(),
            },
            cost: self.cost(who),
            kind: &self.measure(who.plan()).kind,
            floods: self.floods(who),
        })
    }

    /// What names the bucket of this subject in every process.
    pub(super) fn digest(&self, who: &Subject<'_>, identity: &Identity<'_>) -> Digest {
        let skill = |known: &Skills| {
            let asked = who.skill();
            let known = known.iter().find(|(name, _)| Some(&**name) == asked);
            Digest::of(Meaning::Skill, known.map(|(name, _)| name.as_bytes()))
        };
        let parts = [
            Some(self.everywhere),
            self.by_caller
                .then(|| identity.caller.digest(identity.fields)),
            self.by_address.then(|| who.address_digest()),
            self.by_tenant.then(|| who.tenant_digest()),
            self.by_skill.as_ref().map(skill),
        ];
        Digest::of(Meaning::Bucket, parts.iter().flatten().map(Digest::bytes))
    }

    /// The bucket that strangers share when the table is full.
    pub(super) const fn overflow(&self) -> Fingerprint {
        self.scope
    }

    /// By which its buckets are known among all. Where endpoints share a quota, it is the same.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        self.scope.short()
    }

    /// Whether the number of buckets like this subject's depends on traffic, not on the configuration
    /// alone, which names endpoints, skills and some callers.
    const fn floods(&self, who: &Subject<'_>) -> bool {
        (self.by_caller && !who.is_configured()) || self.by_address || self.by_tenant
    }

    /// What holds with a plan.
    pub(super) fn measure(&self, plan: Option<usize>) -> &Measure {
        let changed = plan.and_then(|place| self.plans.get(place)?.as_ref());
        changed.unwrap_or(&self.own)
    }

    /// What can be told of a bucket of this owner: `None` where it is of a tenant, or counts the
    /// address beside the caller.
    pub(super) fn tell(&self, bucket: Fingerprint, owner: u32) -> Option<Told<'_>> {
        let other = (OTHER_SKILLS, other_skill());
        let skills: Vec<_> = match &self.by_skill {
            None => vec![(None, Fingerprint::default())],
            Some(known) => known
                .iter()
                .map(|(name, print)| (&**name, *print))
                .chain([other])
                .map(|(name, print)| (Some(name), print))
                .collect(),
        };
        let tenant = if self.by_tenant {
            no_tenant()
        } else {
            Fingerprint::default()
        };
        let rest = bucket.with(self.scope).with(tenant);
        let found = skills
            .into_iter()
            .find(|(_, print)| rest.with(*print).short() == owner)?;
        Some(Told { skill: found.0 })
    }

    /// Whether it counts this endpoint's calls apart from any other's.
    #[must_use]
    pub const fn is_of_one_endpoint(&self) -> bool {
        self.by_endpoint
    }
}

/// What stands for every skill that is not known, where buckets are told about.
const OTHER_SKILLS: &str = "other";

/// What is told of a bucket.
pub(super) struct Told<'q> {
    /// The skill, where skills are counted apart.
    pub(super) skill: Option<&'q str>,
}

impl Measure {
    fn new(name: &str, allowance: Allowance) -> Self {
        match allowance {
            Allowance::Rate { interval, burst } => {
                let pace = Pace::new(interval, burst);
                let window = pace.interval().as_nanos() * u128::from(pace.burst().get());
                let window = window.div_ceil(1_000_000_000).max(1);
                Self {
                    policy: format!("\"{name}\";q={};w={window}", pace.burst()).into(),
                    kind: Kind::Rate(pace),
                }
            }
            Allowance::Concurrent(most) => Self {
                policy: format!("\"{name}\";q={most};qu=\"concurrent-requests\"").into(),
                kind: Kind::AtOnce(most),
            },
        }
    }
}

/// Whether a word is one of those that are looked at.
fn fits(only: Option<&[Box<str>]>, word: Option<&str>) -> bool {
    only.is_none_or(|only| word.is_some_and(|word| only.iter().any(|it| **it == *word)))
}

/// AAP's skills, and those that the rule names. Nobody gets a bucket by making one up.
fn known_skills(rule: &Rule) -> Skills {
    let named = rule.skills.iter().flatten().map(|skill| &**skill);
    let costly = rule.cost.iter().map(|(word, _)| &**word);
    let mut known: Vec<(Box<str>, Fingerprint)> = Vec::new();
    for skill in SKILLS.into_iter().chain(named).chain(costly) {
        if known.iter().all(|(name, _)| **name != *skill) {
            known.push((
                skill.into(),
                Fingerprint::of(Domain::Skill, [skill.as_bytes()]),
            ));
        }
    }
    known.into()
}

fn skill_of(known: &[(Box<str>, Fingerprint)], skill: Option<&str>) -> Fingerprint {
    let found = known.iter().find(|(name, _)| Some(&**name) == skill);
    found.map_or_else(other_skill, |(_, print)| *print)
}

/// What stands for every skill that is not known, and for none.
fn other_skill() -> Fingerprint {
    Fingerprint::of(Domain::Skill, [])
}

impl fmt::Debug for Quota {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Quota")
            .field("name", &self.name)
            .field("measure", &self.own)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
