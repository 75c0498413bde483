//! Changing the configuration in daylight: what a change would do, going back, and going back by
//! itself.

mod compared;
mod guarded;
mod returned;

use serde_json::Value;

use crate::support::{Answer, Gateway, Post};

/// POSTs to the admin socket.
#[track_caller]
fn order(gateway: &Gateway, target: &str, body: &str) -> Answer {
    let request = Post::method("POST", target)
        .field("Host", "127.0.0.1")
        .body(body);
    gateway.admin().ask(request.bytes())
}

/// What `/status` says of the configuration.
#[track_caller]
fn configuration(gateway: &Gateway) -> Value {
    gateway.admin_get("/status").json()["configuration"].clone()
}

fn rollbacks(gateway: &Gateway, cause: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_config_rollbacks_total{{cause=\"{cause}\"}}"
    ))
}

/// A number of a JSON value.
#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}
