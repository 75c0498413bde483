//! The ground the demo stands on: a directory of its own with a real configuration file, and a port
//! at which certainly nobody answers. Dropped, the directory is gone.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use socket2::{Domain, Socket, Type};

/// Where the demo listens unless somebody else does.
pub(super) const USUAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Any free port of 127.0.0.1.
pub(super) const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The configuration file, but for what `{...}` stands for.
const FILE: &str = r#"# What `forecourt demo` serves. While it runs, edit this file and save: it is reloaded.

[listener.demo]
address = "{listener}"

[admin]
address = "127.0.0.1:0"

[log]
access = "{directory}/access.log"
format = "text"

[shutdown]
timeout = "2s"

[quota.per-buyer]
per   = "caller"          # here: per client address
rate  = "20/min"          # one call is earned back in 3 s
burst = 2

[upstream.lakeside]       # the dealer, AAP contract 3.0
url = "http://{dealer}/3.0"

[upstream.lakeside-1-2]   # the same dealer, AAP contract 1.2
url = "http://{dealer}/1.2"

[upstream.gone]           # nobody is there
url = "http://{nobody}/"

[endpoint.current]
path     = "/a2a"
contract = "aap/3.0"
upstream = "lakeside"

[endpoint.released]
path     = "/a2a-1.2"
contract = "aap/1.2"
upstream = "lakeside-1-2"

[endpoint.busy]
path     = "/busy"
contract = "aap/3.0"
upstream = "lakeside"
quotas   = ["per-buyer"]

[endpoint.busy-released]
path     = "/busy-1.2"
contract = "aap/1.2"
upstream = "lakeside-1-2"
quotas   = ["per-buyer"]

[endpoint.gone]
path     = "/gone"
contract = "aap/3.0"
upstream = "gone"
"#;

/// A version of the configuration file that the walk writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// With another endpoint.
    Grown,
    /// With an endpoint that names what does not exist.
    Broken,
}

impl Version {
    /// What the version adds to the first one.
    pub(super) const fn addition(self) -> &'static str {
        match self {
            Self::Grown => {
                "\n[endpoint.added]\npath     = \"/added\"\ncontract = \"aap/3.0\"\nupstream = \"lakeside\"\n"
            }
            Self::Broken => {
                "\n[endpoint.added]\npath     = \"/added\"\ncontract = \"app/3.0\"\nupstream = \"lakside\"\n"
            }
        }
    }
}

/// The directory and the closed port.
#[derive(Debug)]
pub(super) struct Ground {
    directory: PathBuf,
    dealer: SocketAddr,
    listener: SocketAddr,
    nobody: SocketAddr,
    /// Bound and not listening: it keeps the port from anybody who would answer there.
    _closed: Socket,
    /// Held while the usual port is this demo's.
    claim: Option<UdpSocket>,
}

impl Ground {
    /// Makes the directory, with a configuration that leads to the dealer.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn prepare(dealer: SocketAddr) -> io::Result<Self> {
        let closed = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        closed.bind(&ANY.into())?;
        let nobody = closed.local_addr()?.as_socket();
        let claim = claim(USUAL);
        let ground = Self {
            directory: make_directory()?,
            dealer,
            listener: if claim.is_some() { USUAL } else { ANY },
            claim,
            nobody: nobody.ok_or(io::ErrorKind::AddrNotAvailable)?,
            _closed: closed,
        };
        ground.write("")?;
        Ok(ground)
    }

    /// The configuration file.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join("forecourt.toml")
    }

    /// The access log.
    pub(super) fn access_log(&self) -> PathBuf {
        self.directory.join("access.log")
    }

    /// Gives up the usual port for any free one.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn move_away(&mut self) -> io::Result<()> {
        self.listener = ANY;
        self.claim = None;
        self.write("")
    }

    /// Writes the configuration with an addition, all of it at once.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&self, addition: &str) -> io::Result<()> {
        let mut text = FILE
            .replace("{listener}", &self.listener.to_string())
            .replace("{directory}", &self.directory.display().to_string())
            .replace("{dealer}", &self.dealer.to_string())
            .replace("{nobody}", &self.nobody.to_string());
        text.push_str(addition);
        let draft = self.directory.join("forecourt.toml.new");
        fs::write(&draft, text)?;
        fs::rename(draft, self.file())
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // It lies where temporary files are cleared away anyway.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Claims an address if nobody listens there. The gateway shares its ports with whoever wants to
/// share, so two demos that start together would answer for each other: the UDP port of the same
/// number, which is never shared, tells them apart.
fn claim(address: SocketAddr) -> Option<UdpSocket> {
    let claim = UdpSocket::bind(address).ok()?;
    TcpListener::bind(address).is_ok().then_some(claim)
}

/// A new directory that only this user can read.
fn make_directory() -> io::Result<PathBuf> {
    let parent = std::env::temp_dir();
    for _ in 0..16 {
        let directory = parent.join(name());
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(about(&directory, &error)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn name() -> String {
    format!("forecourt-demo-{:016x}", fastrand::u64(..))
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Format};

    fn problems(ground: &Ground, addition: &str) -> usize {
        ground.write(addition).unwrap();
        let file = ground.file();
        let text = fs::read_to_string(&file).unwrap();
        match config::parse(&text, Format::of(&file), &file, &|_| None) {
            Ok(settings) => {
                assert!(settings.warnings.is_empty());
                0
            }
            Err(problems) => problems.len(),
        }
    }

    #[test]
    fn an_address_is_claimed_once_and_never_from_a_listener() {
        let listener = TcpListener::bind(ANY).unwrap();
        let taken = listener.local_addr().unwrap();
        assert!(claim(taken).is_none());
        drop(listener);
        let claimed = claim(taken);
        assert!(claimed.is_some());
        assert!(claim(taken).is_none());
    }

    #[test]
    fn the_files_say_what_the_walk_needs_and_the_directory_goes() {
        let ground = Ground::prepare(USUAL).unwrap();
        assert!(TcpListener::bind(ground.nobody).is_err());
        assert!(std::net::TcpStream::connect(ground.nobody).is_err());
        assert_eq!(problems(&ground, ""), 0);
        assert_eq!(problems(&ground, Version::Grown.addition()), 0);
        assert_eq!(problems(&ground, Version::Broken.addition()), 2);
        let directory = ground.directory.clone();
        drop(ground);
        assert!(!directory.exists());
    }
}
