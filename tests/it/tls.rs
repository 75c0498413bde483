//! TLS: callers, dealers, and the files that both depend on.

mod callers;
mod clients;
mod dealers;
mod files;
mod http2;
mod rotation;
