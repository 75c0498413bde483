//! `forecourt healthcheck`: whether the gateway beside this command is well, for a container's health
//! check. Says nothing when it is, and why not when it is not.
//!
//! The admin socket is found as the gateway found it: from the same configuration file. A file that has
//! become bad since must not make a healthy gateway look ill, so of one that has problems no more is
//! believed than where its admin socket is.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use http::{Method, StatusCode, Uri};

use super::DEFAULT_FILE;
use super::print::fail;
use super::remote::{Remote, admin_url};
use crate::app::Options;
use crate::config::{self, Admin, Format};

/// How long the gateway may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whom to ask.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// Whether new calls are welcome too, and not only whether the process turns.
    #[arg(long)]
    ready: bool,
    /// The configuration file, for the address of the admin socket.
    #[arg(
        short,
        long = "config",
        value_name = "FILE",
        env = "FORECOURT_CONFIG",
        default_value = DEFAULT_FILE
    )]
    config: PathBuf,
    /// The admin socket, whatever the file says.
    #[arg(long, value_name = "URL", env = "FORECOURT_ADMIN", value_parser = admin_url)]
    admin: Option<Uri>,
}

pub(super) fn healthcheck(asked: Asked) -> ExitCode {
    let remote = match asked.admin.map_or_else(|| found(&asked.config), Ok) {
        Ok(admin) => Remote::at(admin),
        Err(why) => return fail(why),
    };
    let page = if asked.ready { "/readyz" } else { "/livez" };
    match remote.ask_within(PATIENCE, Method::GET, page, Vec::new()) {
        Ok(answer) if answer.status == StatusCode::OK => ExitCode::SUCCESS,
        Ok(answer) => fail(answer),
        Err(error) => fail(error),
    }
}

/// The admin socket that a configuration file has.
fn found(file: &Path) -> Result<Uri, String> {
    let cannot = |why: &str| format!("{}: {why}", file.display());
    let env = Options::new(file.to_owned()).env;
    let address = match config::load(file, &*env) {
        Ok(settings) => settings.admin.address,
        Err(_) => {
            let text = fs::read_to_string(file).map_err(|error| cannot(&error.to_string()))?;
            believed(&text, Format::of(file)).ok_or_else(|| {
                cannot("it has problems, and does not tell where the admin socket is")
            })?
        }
    };
    if address.port() == 0 {
        return Err(cannot(
            "the admin socket has any port: say which by --admin",
        ));
    }
    url(address).ok_or_else(|| cannot("the admin socket has no address"))
}

/// What a file with problems says of the admin socket, where it says that plainly.
fn believed(text: &str, format: Format) -> Option<SocketAddr> {
    let address = match format {
        Format::Toml => {
            let table: toml::Table = text.parse().ok()?;
            let admin = table.get("admin").map(|it| it.get("address"));
            admin.map(|it| it.and_then(|it| it.as_str().map(str::to_owned)))
        }
        Format::Json => {
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            let admin = value.get("admin").map(|it| it.get("address"));
            admin.map(|it| it.and_then(|it| it.as_str().map(str::to_owned)))
        }
    };
    match address {
        None => Some(Admin::USUAL),
        Some(address) => address?.parse().ok(),
    }
}

/// The way to a socket from beside it: one that listens everywhere is here as well.
fn url(address: SocketAddr) -> Option<Uri> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V4(_) | IpAddr::V6(_) => address.ip(),
    };
    let address = SocketAddr::new(ip, address.port());
    format!("http://{address}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_listens_everywhere_is_asked_here() {
        for (address, way) in [
            ("127.0.0.1:9901", "http://127.0.0.1:9901/"),
            ("0.0.0.0:9901", "http://127.0.0.1:9901/"),
            ("[::]:9901", "http://[::1]:9901/"),
            ("10.0.0.7:1", "http://10.0.0.7:1/"),
        ] {
            let found = url(address.parse().unwrap()).unwrap();
            assert_eq!(found.to_string(), way, "{address}");
        }
    }

    #[test]
    fn of_a_bad_file_only_the_admin_socket_is_believed() {
        let usual = "127.0.0.1:9901".parse().ok();
        let told = "127.0.0.1:7".parse().ok();
        for (text, format, address) in [
            ("nonsense = 1", Format::Toml, usual),
            (
                "[admin]\naddress = \"127.0.0.1:7\"\nx = 1",
                Format::Toml,
                told,
            ),
            ("[admin]\naddress = \"${ADMIN}\"", Format::Toml, None),
            ("[admin]\n", Format::Toml, None),
            ("[admin", Format::Toml, None),
            (
                "{\"admin\": {\"address\": \"127.0.0.1:7\"}}",
                Format::Json,
                told,
            ),
            ("{}", Format::Json, usual),
            ("{", Format::Json, None),
        ] {
            assert_eq!(believed(text, format), address, "{text}");
        }
    }
}
