//! The demo dealer's business: which skill is asked for, and what is answered.
//!
//! Knows nothing of HTTP or JSON-RPC, and nothing of the gateway. The shapes follow AAP's public
//! schemas (contract 1.1 onward).

use std::collections::HashMap;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::stock::{facets, search, vehicle};

/// The dealership's own description, as it is sent.
const DEALERSHIP: &str = r#"{"name":"Lakeside Motors","welcome_message":"Welcome to Lakeside Motors.","rooftops":[{"name":"Lakeside Motors Northport","timezone":"America/Los_Angeles"},{"name":"Lakeside Motors Eastgate","timezone":"America/Los_Angeles"}]}"#;

/// A payload that answers a skill, with its media type.
#[derive(Debug)]
pub(super) struct Answer {
    /// The JSON of the answer's data part.
    pub(super) data: Box<RawValue>,
    /// Its media type.
    pub(super) media_type: &'static str,
}

/// Why a skill was not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No vehicle has this VIN.
    VehicleNotFound(String),
    /// A skill that this dealer does not have.
    UnsupportedSkill(String),
    /// A payload that breaks its schema.
    Invalid(String),
}

/// The lot, and the leads that came in.
#[derive(Debug, Default)]
pub(super) struct Lot {
    leads: Mutex<Leads>,
}

#[derive(Debug, Default)]
struct Leads {
    taken: u32,
    by_key: HashMap<String, u32>,
}

impl Lot {
    /// Carries out the skill that the payload's `type` names.
    ///
    /// # Errors
    /// Why it was not.
    pub(super) fn serve(&self, data: &Value) -> Result<Answer, Trouble> {
        let type_ = data.get("type").and_then(Value::as_str).unwrap_or_default();
        match type_ {
            "dealer.information.request" => information(),
            "inventory.facets.request" => facets(&read(data)?),
            "inventory.search.request" => search(&read(data)?),
            "inventory.vehicle.request" => vehicle(&read(data)?),
            "lead.submit.request" => self.lead(&read(data)?),
            _ => {
                let skill = type_.strip_suffix(".request").unwrap_or(type_);
                Err(Trouble::UnsupportedSkill(skill.into()))
            }
        }
    }

    /// Takes a lead; one with a key that was seen before is the same lead.
    fn lead(&self, lead: &LeadRequest) -> Result<Answer, Trouble> {
        if lead.consent.scope.iter().all(|it| it != "lead_submission") {
            let why = "consent.scope does not contain lead_submission";
            return Err(Trouble::Invalid(why.into()));
        }
        let mut leads = self.leads.lock();
        let known = lead.idempotency_key.as_ref();
        let known = known.and_then(|key| leads.by_key.get(key).copied());
        let number = known.unwrap_or(leads.taken + 1);
        leads.taken = leads.taken.max(number);
        if let Some(key) = &lead.idempotency_key {
            leads.by_key.insert(key.clone(), number);
        }
        answer(
            "lead.submit.response",
            "application/vnd.autoagent.lead-submit-response+json",
            &Acknowledgement {
                lead_id: format!("lead-{number:04}"),
                status: "received",
            },
        )
    }
}

#[derive(Debug, Serialize)]
struct Acknowledgement {
    lead_id: String,
    status: &'static str,
}

/// What of a lead matters here.
#[derive(Debug, Deserialize)]
struct LeadRequest {
    #[serde(rename = "customer")]
    _customer: Customer,
    consent: Consent,
    idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Customer {
    #[serde(rename = "first_name")]
    _first_name: String,
    #[serde(rename = "last_name")]
    _last_name: String,
}

#[derive(Debug, Deserialize)]
struct Consent {
    scope: Vec<String>,
}

fn read<'d, T: Deserialize<'d>>(data: &'d Value) -> Result<T, Trouble> {
    T::deserialize(data).map_err(|error| Trouble::Invalid(error.to_string()))
}

/// An answer of a type.
///
/// # Errors
/// When the data cannot be JSON.
pub(super) fn answer(
    type_: &'static str,
    media_type: &'static str,
    data: &impl Serialize,
) -> Result<Answer, Trouble> {
    #[derive(Serialize)]
    struct Payload<'d, D: Serialize> {
        #[serde(rename = "type")]
        type_: &'static str,
        data: &'d D,
    }
    let data = to_raw_value(&Payload { type_, data });
    Ok(Answer {
        data: data.map_err(|error| Trouble::Invalid(error.to_string()))?,
        media_type,
    })
}

fn information() -> Result<Answer, Trouble> {
    let dealership: Result<&RawValue, _> = serde_json::from_str(DEALERSHIP);
    answer(
        "dealer.information.response",
        "application/vnd.autoagent.dealer-information-response+json",
        &dealership.map_err(|error| Trouble::Invalid(error.to_string()))?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(lot: &Lot, data: Value) -> Value {
        let answer = lot.serve(&data).unwrap();
        let data: Value = serde_json::from_str(answer.data.get()).unwrap();
        data["data"].clone()
    }

    #[test]
    fn a_lead_sent_twice_with_one_key_is_one_lead() {
        let lot = Lot::default();
        let lead = |key: Option<&str>| {
            let mut lead = json!({
                "type": "lead.submit.request",
                "customer": { "first_name": "Test", "last_name": "Buyer" },
                "consent": { "scope": ["lead_submission"] },
            });
            if let Some(key) = key {
                lead["idempotency_key"] = key.into();
            }
            ask(&lot, lead)["lead_id"].as_str().unwrap().to_owned()
        };
        assert_eq!(lead(Some("k-1")), "lead-0001");
        assert_eq!(lead(None), "lead-0002");
        assert_eq!(lead(None), "lead-0003");
        assert_eq!(lead(Some("k-1")), "lead-0001");
        assert_eq!(lead(Some("k-2")), "lead-0004");
        let without_consent = json!({
            "type": "lead.submit.request",
            "customer": { "first_name": "Test", "last_name": "Buyer" },
            "consent": { "scope": [] },
        });
        assert!(matches!(
            lot.serve(&without_consent),
            Err(Trouble::Invalid(_))
        ));
    }
}
