//! The `forecourt` command: the allocator and the exit code. What the commands are stands in
//! `forecourt::cli`.

use std::process::ExitCode;

/// Gives freed memory to the next request instead of back and forth to the system: the large pieces
/// of a 100 KB answer would be mapped anew for each.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    forecourt::cli::main()
}
