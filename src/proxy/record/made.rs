//! Decides what is remembered of an answer that the gateway made.

use uuid::Uuid;

use crate::limit::Shortage;

/// What is remembered of an answer the gateway made.
#[derive(Debug)]
pub(in crate::proxy) struct Made {
    /// The JSON-RPC error number.
    pub(in crate::proxy) code: i32,
    /// The `error_id`, where the answer carries one.
    pub(in crate::proxy) error_id: Option<Uuid>,
    /// The wait it told, in ms.
    pub(in crate::proxy) retry_after_ms: Option<u64>,
    /// Which of the endpoint's quotas refused, and at what cost.
    pub(in crate::proxy) shortage: Option<Shortage>,
}
