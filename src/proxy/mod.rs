//! The request path. Read [`ingress`] first: it is the whole path, top to bottom.
//!
//! | file | decides |
//! |---|---|
//! | `ingress` | the order in which a request is tested |
//! | `probe` | what a load balancer is told |
//! | `client` | who the client is, where a trusted proxy tells |
//! | `strict` | what HTTP is acceptable |
//! | `credential` | who is asking where it must be proven, and what of that the dealer gets |
//! | `media` | whether a body says it is JSON |
//! | `intake` | how a body is read |
//! | `admit` | quota, headers and method against the endpoint |
//! | `stored` | quotas of which a store keeps some |
//! | `forward` | what the upstream receives |
//! | `onward` | how what may go on leaves |
//! | `explain` | what would become of a request, and why |
//! | `hop` | what stays on one connection |
//! | `location` | where a redirect of the upstream's leads |
//! | `reply` | what of the upstream's answer the client receives |
//! | `respond` | every answer the gateway makes itself |
//! | `fault` | what a failure becomes |
//! | `body` | the bodies of answers, and when a request has ended |
//! | `request_id` | under which id a request is known |
//! | `repeated` | whether an error was spelled before |
//! | `record` | what is counted and logged of a request |
//! | `token` | whom a signed token proves |
//! | `worker` | what a thread shares among its requests |
//!
//! This room sees the compiled snapshot, never the configuration.

mod admit;
mod body;
mod client;
mod credential;
pub mod explain;
mod fault;
mod forward;
mod hop;
pub mod ingress;
mod intake;
mod location;
mod media;
mod onward;
mod probe;
mod record;
mod repeated;
mod reply;
mod request_id;
mod respond;
mod stored;
mod strict;
mod token;
mod trace;
pub mod worker;

pub use body::Body;
pub use intake::Budget;
pub use worker::Worker;
