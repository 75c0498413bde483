//! Decides what the claims of a signed token come to. RFC 7519, section 4.
//!
//! A claim that stands twice has two meanings, so it has none. Must never be asked of a token whose
//! signature was not verified.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use super::{Bad, Rules, Verified};

/// The longest name of a caller, in bytes.
pub const LONGEST_CALLER: usize = 256;

/// The longest name of a plan, in bytes: as configured names.
const LONGEST_PLAN: usize = 64;

/// The last second of the year 9999, which is as good as never.
const NEVER: i64 = 253_402_300_799;

/// A token's claims, each once.
pub(super) struct Claims(BTreeMap<String, Value>);

impl Claims {
    /// What they come to at this time.
    pub(super) fn judge(&self, rules: &Rules, now: i64) -> Result<Verified, Bad> {
        if self.text("iss") != Some(&*rules.issuer) {
            return Err(Bad::UnknownIssuer);
        }
        if !self.is_for(&rules.audience) {
            return Err(Bad::WrongAudience);
        }
        let expires = self.moment("exp")?.ok_or(Bad::Malformed)?;
        let expires = expires.saturating_add(rules.leeway);
        let not_before = self.moment("nbf")?;
        let not_before = not_before.map_or(i64::MIN, |at| at.saturating_sub(rules.leeway));
        if now >= expires {
            return Err(Bad::Expired);
        }
        if now < not_before {
            return Err(Bad::NotYetValid);
        }
        Ok(Verified {
            caller: self.caller(&rules.caller_claim)?.into(),
            plan: rules.plan_claim.as_deref().and_then(|it| self.plan(it)),
            not_before,
            expires,
        })
    }

    fn text(&self, claim: &str) -> Option<&str> {
        self.0.get(claim).and_then(Value::as_str)
    }

    /// Whether one of these is whom it is for.
    fn is_for(&self, audience: &[Box<str>]) -> bool {
        let is_one = |value: &Value| {
            let value = value.as_str();
            value.is_some_and(|value| audience.iter().any(|it| **it == *value))
        };
        match self.0.get("aud") {
            Some(Value::Array(several)) => several.iter().any(is_one),
            Some(one) => is_one(one),
            None => false,
        }
    }

    /// A time in s since 1970, rounded down.
    fn moment(&self, claim: &str) -> Result<Option<i64>, Bad> {
        let Some(value) = self.0.get(claim) else {
            return Ok(None);
        };
        if let Some(second) = value.as_i64() {
            return Ok(Some(second.min(NEVER)));
        }
        // What is no number of any kind cannot be read; a fraction, or a number above all, can be.
        let second = value.as_f64().ok_or(Bad::Malformed)?.floor();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "a cast of a float stops at the bounds"
        )]
        let second = second.min(NEVER as f64) as i64;
        Ok(Some(second))
    }

    fn caller(&self, claim: &str) -> Result<&str, Bad> {
        let caller = self.text(claim).ok_or(Bad::NoCaller)?;
        let is_name =
            (1..=LONGEST_CALLER).contains(&caller.len()) && !caller.chars().any(char::is_control);
        if is_name {
            Ok(caller)
        } else {
            Err(Bad::NoCaller)
        }
    }

    fn plan(&self, claim: &str) -> Option<Box<str>> {
        let plan = self.0.get(claim)?;
        let name = plan.as_str().filter(|it| it.len() <= LONGEST_PLAN);
        Some(name.unwrap_or_default().into())
    }
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;

        impl<'de> Visitor<'de> for Once {
            type Value = Claims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("claims")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Claims, A::Error> {
                let mut claims = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if claims.insert(name, value).is_some() {
                        return Err(A::Error::custom("a claim twice"));
                    }
                }
                Ok(Claims(claims))
            }
        }

        deserializer.deserialize_map(Once)
    }
}
