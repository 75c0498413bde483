//! Sockets in: bind, accept, and serve HTTP/1.1 or HTTP/2 on each connection until it ends or is drained.
//!
//! Each worker thread has a listener of its own on the same address (`SO_REUSEPORT`), so accepting
//! shares nothing but the count of connections. Decides the limits of a connection; never looks at
//! a request: a service made for each connection is handed in.

mod accept;
mod bind;
mod drain;
mod heads;
mod http2;
mod opening;
mod serve;
mod watched;

pub use accept::{Acceptor, serve};
pub use bind::bind;
pub use drain::{Drain, Draining, Stage};
pub use serve::Limits;
