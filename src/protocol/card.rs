//! Decides where agent cards are found. Must never look into one.

/// Where agent cards are found below an endpoint and at a host's root (A2A 1.0 section 8.2; the
/// second is the older name).
pub const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
