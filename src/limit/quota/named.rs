//! Decides which buckets of a quota belong to whom a name is of, without any call of theirs: under
//! which keys a store has them. Must never guess: what a name does not tell is said to be missing.

use super::{Digest, Meaning, OTHER_SKILLS, Quota};
use crate::config::Dimension;
use crate::limit::Owner;

impl Quota {
    /// What names in every process those buckets of an owner that its name tells of, and of which
    /// skill each is. Of tenants only that of calls that name none.
    pub(in crate::limit) fn named(&self, owner: &Owner) -> Vec<(Digest, Option<&str>)> {
        let whose: Vec<Vec<Digest>> = match (self.by_caller, self.by_address) {
            (false, false) => Vec::new(),
            (true, false) => owner.callers.iter().map(|it| vec![*it]).collect(),
            (false, true) => owner.address.iter().map(|it| vec![it.1]).collect(),
            (true, true) => owner.address.iter().map(|it| vec![it.0, it.1]).collect(),
        };
        let tenant = self.by_tenant.then(|| Digest::of(Meaning::Tenant, []));
        let mut all = Vec::new();
        for whose in whose {
            let scope = [self.everywhere].into_iter().chain(whose).chain(tenant);
            let scope: Vec<Digest> = scope.collect();
            let bucket = |skill: Option<Digest>| {
                let parts = scope.iter().chain(&skill).map(Digest::bytes);
                Digest::of(Meaning::Bucket, parts)
            };
            let Some(known) = &self.by_skill else {
                all.push((bucket(None), None));
                continue;
            };
            all.extend(known.iter().map(|(name, _)| {
                let skill = Digest::of(Meaning::Skill, [name.as_bytes()]);
                (bucket(Some(skill)), Some(&**name))
            }));
            let other = Digest::of(Meaning::Skill, []);
            all.push((bucket(Some(other)), Some(OTHER_SKILLS)));
        }
        all
    }

    /// By what else it counts that an owner's name does not tell: of these, only buckets that are
    /// known otherwise can be found.
    pub fn untold(&self, owner: &Owner) -> impl Iterator<Item = Dimension> {
        let is_its_own = self.by_caller || self.by_address;
        let all = [
            (self.by_caller && owner.is_by_digits, Dimension::Caller),
            (
                self.by_caller && self.by_address && owner.address.is_none(),
                Dimension::Address,
            ),
            (is_its_own && self.by_tenant, Dimension::Tenant),
        ];
        all.into_iter()
            .filter_map(|(is_so, it)| is_so.then_some(it))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::config::{Allowance, Per};
    use crate::http1::Fields;
    use crate::limit::shared::Identity;
    use crate::limit::{Call, Caller, Rule, Source, Subject, identify};

    fn quota(per: &[Dimension]) -> Quota {
        let per: Per = per.iter().copied().collect();
        let most = Allowance::Concurrent(NonZeroU32::MIN);
        Quota::compile(&Rule::new("q", per, most), "lakeside")
    }

    /// What a call of one skill asks a store for.
    fn asked(quota: &Quota, caller: &Caller, skill: Option<&str>) -> Digest {
        let fields = &Fields::default();
        let who = Subject::new(caller, [192, 0, 2, 7].into());
        let call = Call {
            method: "SendMessage",
            skill,
            tenant: None,
        };
        quota.digest(&who.calling(call), &Identity { caller, fields })
    }

    #[test]
    fn a_name_finds_every_bucket_that_a_call_asks_for() {
        let address = || {
            identify(
                &[Source::Address],
                &Fields::default(),
                [192, 0, 2, 7].into(),
            )
        };
        let nobody = identify(&[], &Fields::default(), [192, 0, 2, 7].into());
        let acme = Caller::proven("acme".into(), None);
        let (by_caller, by_address) = (Dimension::Caller, Dimension::Address);
        for (per, caller) in [
            (vec![by_caller], &acme),
            (vec![by_caller], &nobody),
            (vec![by_caller], &address()),
            (vec![by_address], &address()),
            (vec![by_caller, by_address], &address()),
        ] {
            for more in [vec![], vec![Dimension::Tenant], vec![Dimension::Skill]] {
                let quota = quota(&[per.clone(), more].concat());
                let owner = Owner::named(&caller.name());
                let named = quota.named(&owner);
                for skill in [Some("lead.submit"), Some("made.up"), None] {
                    let asked = asked(&quota, caller, skill);
                    let found = named.iter().find(|(digest, _)| *digest == asked);
                    let (_, told) = found.unwrap_or_else(|| panic!("{per:?} {caller} {skill:?}"));
                    let known = skill.filter(|it| *it == "lead.submit");
                    let expected = quota.by_skill.as_ref().map(|_| known.unwrap_or("other"));
                    assert_eq!(*told, expected);
                }
            }
        }
    }

    #[test]
    fn what_a_name_does_not_tell_is_said() {
        use Dimension::{Address, Caller, Endpoint, Skill, Tenant};
        for (name, per, untold) in [
            ("acme", vec![Caller, Skill], vec![]),
            ("acme", vec![Caller, Tenant], vec![Tenant]),
            ("acme", vec![Caller, Address], vec![Address]),
            ("address 192.0.2.7", vec![Caller, Address], vec![]),
            ("address 192.0.2.7", vec![Address, Tenant], vec![Tenant]),
            ("x-api-key#1a2b3c4d", vec![Caller], vec![Caller]),
            ("x-api-key#1a2b3c4d", vec![Address], vec![]),
            ("acme", vec![Endpoint, Tenant], vec![]),
        ] {
            let told: Vec<_> = quota(&per).untold(&Owner::named(name)).collect();
            assert_eq!(told, untold, "{name} {per:?}");
        }
        // What nobody has alone is nobody's.
        let shared = quota(&[Endpoint, Tenant]);
        assert_eq!(shared.named(&Owner::named("acme")), []);
    }
}
