//! Decides how an issuer is shown.

use super::{literal, named};
use crate::config::amount::spell_duration;
use crate::config::json::{Json, object, some};
use crate::config::settings::{Algorithm, Issuer, Jwks, Settings};

pub(super) fn issuer<'s>(issuer: &'s Issuer, settings: &Settings) -> (&'s str, Json) {
    let plan = issuer.plan.and_then(|at| settings.plans.get(at));
    let endpoints = issuer.endpoints.as_ref().map(|places| {
        let endpoints = places.iter().filter_map(|at| settings.endpoints.get(*at));
        Json::list(endpoints.map(|it| &*it.name))
    });
    let audience = issuer.audience.iter().map(|it| literal(it));
    let algorithms = issuer.algorithms.iter().copied().map(Algorithm::name);
    let (jwks, ca, refresh) = match &issuer.jwks {
        Jwks::File(file) => (named(file), None, None),
        Jwks::Url { url, tls } => (
            literal(&url.to_string()),
            tls.as_ref().and_then(|it| it.ca.as_ref()),
            some(spell_duration(issuer.refresh)),
        ),
    };
    let shown = object([
        ("issuer", some(literal(&issuer.issuer))),
        ("audience", Some(Json::list(audience))),
        ("jwks", some(jwks)),
        ("ca", ca.and_then(|it| some(named(it)))),
        ("algorithms", Some(Json::list(algorithms))),
        ("refresh", refresh),
        ("leeway", some(spell_duration(issuer.leeway))),
        ("caller_claim", some(literal(&issuer.caller_claim))),
        (
            "plan_claim",
            issuer.plan_claim.as_ref().and_then(|it| some(literal(it))),
        ),
        ("plan", plan.and_then(|it| some(&*it.name))),
        ("endpoints", endpoints),
    ]);
    (&issuer.name, shown)
}
