//! What the gateway has to answer in the walk where it refuses.
//!
//! Written out by hand from the specifications. Nothing here is rendered by code that is under show;
//! only `compare`'s placeholders stand for what differs from run to run.

/// The gateway's refusal of an empty version or of 0.3 itself.
pub(super) const NOT_0_3: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32009,
    "message": "A2A version 0.3 is not supported at this endpoint, which serves 1.0. Name that version in one A2A-Version header.",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "VERSION_NOT_SUPPORTED",
      "domain": "a2a-protocol.org",
      "metadata": {
        "requestedVersion": "0.3",
        "supportedVersions": "1.0",
        "requiredHeader": "A2A-Version"
      }
    }]
  }
}"#;

pub(super) const NOT_99_0: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32009,
    "message": "A2A version 99.0 is not supported at this endpoint, which serves 1.0. Name that version in one A2A-Version header.",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "VERSION_NOT_SUPPORTED",
      "domain": "a2a-protocol.org",
      "metadata": {
        "requestedVersion": "99.0",
        "supportedVersions": "1.0",
        "requiredHeader": "A2A-Version"
      }
    }]
  }
}"#;

pub(super) const NOT_1: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32009,
    "message": "A2A version 1 is not supported at this endpoint, which serves 1.0. Name that version in one A2A-Version header.",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "VERSION_NOT_SUPPORTED",
      "domain": "a2a-protocol.org",
      "metadata": {
        "requestedVersion": "1",
        "supportedVersions": "1.0",
        "requiredHeader": "A2A-Version"
      }
    }]
  }
}"#;

pub(super) const NEEDS_3_0: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32008,
    "message": "This endpoint requires an extension that the request did not activate. List exactly this URI in the A2A-Extensions header: https://autoagentprotocol.org/extensions/aap/v3.0",
    "data": [{
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      "reason": "EXTENSION_SUPPORT_REQUIRED",
      "domain": "a2a-protocol.org",
      "metadata": {
        "extensionUri": "https://autoagentprotocol.org/extensions/aap/v3.0",
        "requiredHeader": "A2A-Extensions"
      }
    }]
  }
}"#;

pub(super) const OLD_METHOD_LARGE_ID: &str = r#"{
  "jsonrpc": "2.0",
  "id": 9007199254740993,
  "error": {
    "code": -32601,
    "message": "The method 'message/send' is of A2A 0.3, which this endpoint does not serve; use the method names of A2A 1.0."
  }
}"#;

pub(super) const OLD_METHOD_ESCAPED_ID: &str = r#"{
  "jsonrpc": "2.0",
  "id": "a\u0062c",
  "error": {
    "code": -32601,
    "message": "The method 'tasks/get' is of A2A 0.3, which this endpoint does not serve; use the method names of A2A 1.0."
  }
}"#;

pub(super) const PARSE_ERROR: &str = r#"{
  "jsonrpc": "2.0",
  "id": null,
  "error": { "code": -32700, "message": "The request body is not valid JSON." }
}"#;

pub(super) const NO_BATCH: &str = r#"{
  "jsonrpc": "2.0",
  "id": null,
  "error": {
    "code": -32600,
    "message": "Batches are not part of A2A; send one request object."
  }
}"#;

pub(super) const RATE_LIMITED_3_0: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32000,
    "message": "Rate limit exceeded. Retry after {wait}.",
    "data": [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "RATE_LIMITED",
        "domain": "autoagentprotocol.org",
        "metadata": {
          "code": "RATE_LIMITED",
          "error_id": "{error_id}",
          "retryable": "true",
          "created_at": "{created_at}"
        }
      },
      {
        "@type": "type.googleapis.com/google.protobuf.Struct",
        "value": {
          "type": "aap.error",
          "error_id": "{error_id}",
          "code": "RATE_LIMITED",
          "message": "Rate limit exceeded. Retry after {wait}.",
          "retryable": true,
          "details": { "retry_after_ms": "{retry_after_ms}" },
          "created_at": "{created_at}"
        }
      }
    ]
  }
}"#;

pub(super) const RATE_LIMITED_1_2: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32002,
    "message": "Rate limit exceeded. Retry after {wait}.",
    "data": {
      "type": "aap.error",
      "error_id": "{error_id}",
      "code": "RATE_LIMITED",
      "message": "Rate limit exceeded. Retry after {wait}.",
      "retryable": true,
      "details": { "retry_after_ms": "{retry_after_ms}" },
      "created_at": "{created_at}"
    }
  }
}"#;

pub(super) const UNREACHABLE: &str = r#"{
  "jsonrpc": "2.0",
  "id": 1,
  "error": {
    "code": -32603,
    "message": "The dealer agent could not be reached.",
    "data": [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "INTERNAL_ERROR",
        "domain": "autoagentprotocol.org",
        "metadata": {
          "code": "INTERNAL_ERROR",
          "error_id": "{error_id}",
          "retryable": "true",
          "created_at": "{created_at}"
        }
      },
      {
        "@type": "type.googleapis.com/google.protobuf.Struct",
        "value": {
          "type": "aap.error",
          "error_id": "{error_id}",
          "code": "INTERNAL_ERROR",
          "message": "The dealer agent could not be reached.",
          "retryable": true,
          "created_at": "{created_at}"
        }
      }
    ]
  }
}"#;
