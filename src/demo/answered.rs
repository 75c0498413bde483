//! What the dealer has to answer in the walk, and no gateway may change.
//!
//! Written out by hand from what is known to stand on the dealer's lot. Only `compare`'s
//! placeholders stand for what differs from run to run.

pub(super) const DEALERSHIP: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "result": {
    "message": {
      "messageId": "answer-to-m-1",
      "role": "ROLE_AGENT",
      "parts": [{
        "data": {
          "type": "dealer.information.response",
          "data": {
            "name": "Lakeside Motors",
            "welcome_message": "Welcome to Lakeside Motors.",
            "rooftops": [
              {
                "name": "Lakeside Motors Northport",
                "timezone": "America/Los_Angeles"
              },
              {
                "name": "Lakeside Motors Eastgate",
                "timezone": "America/Los_Angeles"
              }
            ]
          }
        },
        "mediaType": "application/vnd.autoagent.dealer-information-response+json"
      }]
    }
  }
}"#;

/// What the strict dealer says by itself.
pub(super) const DEALER_WANTS_A_VERSION: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32009,
    "message": "A2A-Version must be 1.0.",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "VERSION_NOT_SUPPORTED",
      "domain": "a2a-protocol.org",
      "metadata": {}
    }]
  }
}"#;

pub(super) const DEALER_WANTS_3_0: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32008,
    "message": "A2A-Extensions must list https://autoagentprotocol.org/extensions/aap/v3.0.",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "EXTENSION_SUPPORT_REQUIRED",
      "domain": "a2a-protocol.org",
      "metadata": {}
    }]
  }
}"#;

pub(super) const DEALER_WANTS_1_2: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32008,
    "message": "A2A-Extensions must list https://autoagentprotocol.org/extensions/aap/v1.2.",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "EXTENSION_SUPPORT_REQUIRED",
      "domain": "a2a-protocol.org",
      "metadata": {}
    }]
  }
}"#;

pub(super) const FACETS_FOUND: &str = r#"{
  "jsonrpc": "2.0",
  "id": "facets-1",
  "result": {
    "message": {
      "messageId": "answer-to-m-2",
      "role": "ROLE_AGENT",
      "parts": [{
        "data": {
          "type": "inventory.facets.response",
          "data": {
            "makes": [{ "value": "Honda", "count": 2 }, { "value": "BMW", "count": 1 }],
            "conditions": [{ "value": "used", "count": 3 }],
            "bodies": [{ "value": "suv", "count": 3 }],
            "rooftops": [
              { "value": "Lakeside Motors Northport", "count": 2 },
              { "value": "Lakeside Motors Eastgate", "count": 1 }
            ],
            "price_range": { "min": 27450, "max": 31900 }
          }
        },
        "mediaType": "application/vnd.autoagent.inventory-facets-response+json"
      }]
    }
  }
}"#;

pub(super) const SEARCH_FOUND: &str = r#"{
  "jsonrpc": "2.0",
  "id": "search-1",
  "result": {
    "message": {
      "messageId": "answer-to-m-3",
      "role": "ROLE_AGENT",
      "parts": [{
        "data": {
          "type": "inventory.search.response",
          "data": {
            "total": 3,
            "skip": 1,
            "limit": 2,
            "vehicles": [
              {
                "vin": "1FRCTDEM000000002",
                "stock": "LM-0388",
                "year": 2023,
                "make": "Honda",
                "model": "CR-V",
                "trim": "EX",
                "condition": "used",
                "status": "available",
                "rooftop": "Lakeside Motors Northport",
                "body": "suv",
                "fuel": "gas",
                "mileage": 28450,
                "price": 27450
              },
              {
                "vin": "1FRCTDEM000000005",
                "stock": "LM-0299",
                "year": 2021,
                "make": "BMW",
                "model": "X3",
                "trim": "xDrive30i",
                "condition": "used",
                "status": "available",
                "rooftop": "Lakeside Motors Eastgate",
                "body": "suv",
                "fuel": "gas",
                "mileage": 41200,
                "price": 29800
              }
            ]
          }
        },
        "mediaType": "application/vnd.autoagent.inventory-search-response+json"
      }]
    }
  }
}"#;

pub(super) const VEHICLE_FOUND: &str = r#"{
  "jsonrpc": "2.0",
  "id": "vehicle-1",
  "result": {
    "message": {
      "messageId": "answer-to-m-4",
      "role": "ROLE_AGENT",
      "parts": [{
        "data": {
          "type": "inventory.vehicle.response",
          "data": {
            "vin": "1FRCTDEM000000004",
            "stock": "LM-0502",
            "year": 2025,
            "make": "Toyota",
            "model": "RAV4",
            "trim": "XLE",
            "condition": "new",
            "status": "intransit",
            "rooftop": "Lakeside Motors Eastgate",
            "body": "suv",
            "fuel": "hybrid",
            "mileage": 12,
            "price": 36250
          }
        },
        "mediaType": "application/vnd.autoagent.vehicle-detail-response+json"
      }]
    }
  }
}"#;

pub(super) const VEHICLE_NOT_FOUND_3_0: &str = r#"{
  "jsonrpc": "2.0",
  "id": "vehicle-2",
  "error": {
    "code": -32000,
    "message": "No vehicle here has this VIN.",
    "data": [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "VEHICLE_NOT_FOUND",
        "domain": "autoagentprotocol.org",
        "metadata": {
          "code": "VEHICLE_NOT_FOUND",
          "error_id": "{error_id}",
          "retryable": "false",
          "created_at": "{created_at}"
        }
      },
      {
        "@type": "type.googleapis.com/google.protobuf.Struct",
        "value": {
          "type": "aap.error",
          "error_id": "{error_id}",
          "code": "VEHICLE_NOT_FOUND",
          "message": "No vehicle here has this VIN.",
          "retryable": false,
          "details": { "vin": "1FRCTDEM000000099" },
          "created_at": "{created_at}"
        }
      }
    ]
  }
}"#;

pub(super) const VEHICLE_NOT_FOUND_1_2: &str = r#"{
  "jsonrpc": "2.0",
  "id": "vehicle-2",
  "error": {
    "code": -32001,
    "message": "No vehicle here has this VIN.",
    "data": {
      "type": "aap.error",
      "error_id": "{error_id}",
      "code": "VEHICLE_NOT_FOUND",
      "message": "No vehicle here has this VIN.",
      "retryable": false,
      "details": { "vin": "1FRCTDEM000000099" },
      "created_at": "{created_at}"
    }
  }
}"#;

pub(super) const LEAD_TAKEN: &str = r#"{
  "jsonrpc": "2.0",
  "id": "lead-1",
  "result": {
    "message": {
      "messageId": "answer-to-m-6",
      "role": "ROLE_AGENT",
      "parts": [{
        "data": {
          "type": "lead.submit.response",
          "data": { "lead_id": "lead-0001", "status": "received" }
        },
        "mediaType": "application/vnd.autoagent.lead-submit-response+json"
      }]
    }
  }
}"#;

/// The events of the stream, in order.
pub(super) const EVENTS: &[&str] = &[
    r#"{
  "jsonrpc": "2.0",
  "id": "stream-1",
  "result": {
    "task": {
      "id": "task-m-7",
      "contextId": "context-m-7",
      "status": { "state": "TASK_STATE_SUBMITTED" }
    }
  }
}"#,
    r#"{
  "jsonrpc": "2.0",
  "id": "stream-1",
  "result": {
    "statusUpdate": {
      "taskId": "task-m-7",
      "contextId": "context-m-7",
      "status": { "state": "TASK_STATE_WORKING" }
    }
  }
}"#,
    r#"{
  "jsonrpc": "2.0",
  "id": "stream-1",
  "result": {
    "artifactUpdate": {
      "taskId": "task-m-7",
      "contextId": "context-m-7",
      "artifact": {
        "artifactId": "answer",
        "parts": [{
          "data": {
            "type": "inventory.search.response",
            "data": { "total": 0, "skip": 0, "limit": 20, "vehicles": [] }
          },
          "mediaType": "application/vnd.autoagent.inventory-search-response+json"
        }]
      },
      "lastChunk": true
    }
  }
}"#,
    r#"{
  "jsonrpc": "2.0",
  "id": "stream-1",
  "result": {
    "statusUpdate": {
      "taskId": "task-m-7",
      "contextId": "context-m-7",
      "status": { "state": "TASK_STATE_COMPLETED" }
    }
  }
}"#,
];
