//! x
mod architecture;
