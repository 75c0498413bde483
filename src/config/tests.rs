//! What the room as a whole must do: good fixtures load, bad ones give exactly the problems beside
//! them, examples and documentation load, no text makes it panic, no secret is shown.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

mod documentation;
mod effective;
mod fixtures;
mod including;
mod property;
mod rules;
mod schema;

/// The variables of every test.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "DEALER_TOKEN" => "s3cret-token",
        "UPSTREAM" => "lakeside",
        "UPSTREAM_URL" => "http://10.0.0.7:9001/a2a",
        "WRONG_URL" => "ftp://s3cret.example",
        "PORT" => "8080",
        "WORKERS" => "4",
        "YES" => "true",
        "QUOTED" => "\"\n[endpoint.injected]\n",
        "LINE" => "s3cret\n",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn toml(text: &str) -> Result<Settings, Problems> {
    parse(text, Format::Toml, Path::new("forecourt.toml"), &env)
}

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
