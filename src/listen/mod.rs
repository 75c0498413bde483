//! Sockets in: bind, accept, and serve HTTP/1.1 or HTTP/2 on each connection until it ends or is drained.
//!
//! Each worker thread has a listener of its own on the same address (`SO_REUSEPORT`), so accepting
//! shares nothing but the counts of connections, by which they are spread. Decides the limits of a
//! connection; never looks at a request: a handler made for each connection is handed in.

mod accept;
mod answer;
mod bind;
mod drain;
mod http1;
mod http2;
mod opening;
mod proxy_protocol;
mod reins;
mod request_body;
mod serve;
mod served;
mod spelling;
mod spread;
mod stall;
mod tls;

pub use accept::{Acceptor, serve};
pub use bind::{Bound, bind, somaxconn};
pub use drain::{Drain, Draining, Stage};
pub use reins::{Manner, Reins};
pub use request_body::BodyError;
pub use serve::{Handler, Limits};
pub use spread::{Desk, Open, desks};
pub use tls::Doorman;
