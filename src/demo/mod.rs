//! `forecourt demo`: a strict dealer agent to stand the gateway in front of.

mod dealer;
mod lot;
mod speech;

pub use dealer::{Dealer, Received};
