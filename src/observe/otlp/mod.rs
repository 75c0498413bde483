//! Decides how requests and metrics are told to an OpenTelemetry collector: OTLP over HTTP, in
//! protobuf, configured by the standard `OTEL_*` variables alone.
//!
//! What is recorded is written by the worker into a buffer, as a line of the access log is, and leaves
//! on a thread of its own. Must never hold up a request, and never tell a secret.

mod collector;
pub mod environment;
mod export;
mod metrics;
mod sampler;
mod span;
mod spans;

pub use environment::Telemetry;
pub use export::{Export, Sources};
pub use sampler::Sampler;
pub use span::Recorded;
pub use spans::Tracer;
