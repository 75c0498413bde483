//! What is written down of requests, of the gateway itself, and of who would be refused; and what is
//! read from it.

mod access;
mod findings;
mod level;
mod readiness;
mod secrets;
