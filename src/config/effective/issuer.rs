//! Decides how an issuer is shown.

use super::{literal, named};
use crate::config::amount::spell_duration;
use crate::config::json::{Json, object, some};
use crate::config::settings::{Algorithm, Issuer, Jwks};

pub(super) fn issuer(issuer: &Issuer) -> (&str, Json) {
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
    ]);
    (&issuer.name, shown)
}
