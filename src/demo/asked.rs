//! What is sent in the walk, byte for byte.

/// The pinned URIs.
pub(super) const AAP_3_0: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";
pub(super) const AAP_1_2: &str = "https://autoagentprotocol.org/extensions/aap/v1.2";

/// `dealer.information`.
pub(super) const INFORMATION: &str = r#"{ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": {
  "messageId": "m-1", "role": "ROLE_USER", "parts": [{
    "data": { "type": "dealer.information.request" },
    "mediaType": "application/vnd.autoagent.dealer-information-request+json"
  }]
} } }"#;

/// A number that no 64-bit float holds.
pub(super) const LARGE_ID: &str =
    r#"{ "jsonrpc": "2.0", "id": 9007199254740993, "method": "message/send", "params": {} }"#;

/// A string with an escape that a parser would undo.
pub(super) const ESCAPED_ID: &str =
    r#"{ "jsonrpc": "2.0", "id": "a\u0062c", "method": "tasks/get", "params": {} }"#;

pub(super) const BROKEN: &str = r#"{ "jsonrpc": "2.0", "id": 1, "method": "#;

pub(super) const BATCH: &str = r#"[
  { "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "t-1" } },
  { "jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": { "id": "t-2" } }
]"#;

pub(super) const FACETS: &str = r#"{ "jsonrpc": "2.0", "id": "facets-1", "method": "SendMessage", "params": { "message": {
  "messageId": "m-2", "role": "ROLE_USER", "parts": [{
    "data": { "type": "inventory.facets.request", "filters": { "condition": ["used"] } },
    "mediaType": "application/vnd.autoagent.inventory-facets-request+json"
  }]
} } }"#;

pub(super) const SEARCH: &str = r#"{ "jsonrpc": "2.0", "id": "search-1", "method": "SendMessage", "params": { "message": {
  "messageId": "m-3", "role": "ROLE_USER", "parts": [{
    "data": {
      "type": "inventory.search.request",
      "filters": { "make": ["Honda", "BMW"], "price_max": 30000 },
      "sort": { "field": "price", "order": "asc" }, "pagination": { "skip": 1, "limit": 2 }
    },
    "mediaType": "application/vnd.autoagent.inventory-search-request+json"
  }]
} } }"#;

pub(super) const VEHICLE: &str = r#"{ "jsonrpc": "2.0", "id": "vehicle-1", "method": "SendMessage", "params": { "message": {
  "messageId": "m-4", "role": "ROLE_USER", "parts": [{
    "data": { "type": "inventory.vehicle.request", "vin": "1FRCTDEM000000004" },
    "mediaType": "application/vnd.autoagent.vehicle-detail-request+json"
  }]
} } }"#;

pub(super) const UNKNOWN_VEHICLE: &str = r#"{ "jsonrpc": "2.0", "id": "vehicle-2", "method": "SendMessage", "params": { "message": {
  "messageId": "m-5", "role": "ROLE_USER", "parts": [{
    "data": { "type": "inventory.vehicle.request", "vin": "1FRCTDEM000000099" },
    "mediaType": "application/vnd.autoagent.vehicle-detail-request+json"
  }]
} } }"#;

pub(super) const LEAD: &str = r#"{ "jsonrpc": "2.0", "id": "lead-1", "method": "SendMessage", "params": { "message": {
  "messageId": "m-6", "role": "ROLE_USER", "parts": [{
    "data": {
      "type": "lead.submit.request",
      "customer": { "first_name": "Test", "last_name": "Buyer", "email": "buyer@example.com" },
      "consent": {
        "granted_at": "2026-05-01T12:00:00Z", "allowed_channels": ["email"],
        "consent_text": "Lakeside Motors may answer this enquiry by email.",
        "scope": ["lead_submission"]
      },
      "vehicle_of_interest": { "vin": "1FRCTDEM000000001" },
      "source_agent": { "name": "forecourt-demo" }, "idempotency_key": "demo-lead-1"
    },
    "mediaType": "application/vnd.autoagent.lead-submit-request+json"
  }]
} } }"#;

pub(super) const STREAM: &str = r#"{ "jsonrpc": "2.0", "id": "stream-1", "method": "SendStreamingMessage", "params": { "message": {
  "messageId": "m-7", "role": "ROLE_USER", "parts": [{
    "data": { "type": "inventory.search.request", "filters": { "make": ["Fiat"] } },
    "mediaType": "application/vnd.autoagent.inventory-search-request+json"
  }]
} } }"#;
