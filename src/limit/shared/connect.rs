//! Decides how a store is connected to: a single server, a cluster, or whichever server sentinels name,
//! in clear or over TLS.
//!
//! The client library's own time limits and repetitions are set here, every one of them: none of its
//! defaults decides how long a request waits. Must never put a password into an error or a log.

use std::path::PathBuf;
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    Pipeline, RedisConnectionInfo, RedisError, RedisFuture, TlsCertificates, TlsMode, Value,
};

/// How long connecting may take, the handshakes included. No request waits for it.
pub(super) const CONNECT: Duration = Duration::from_secs(2);

/// Where a store is and how it is spoken to.
#[derive(Clone)]
pub struct Link {
    /// Host and port of the server; of the first of a cluster's, or of the sentinels.
    pub host: Box<str>,
    /// See `host`.
    pub port: u16,
    /// The others.
    pub nodes: Box<[(Box<str>, u16)]>,
    /// What is there.
    pub topology: Topology,
    /// Whether TLS is spoken, and to servers that come from which roots.
    pub tls: Option<Roots>,
    /// Who we are; the server's default user where it is left out.
    pub username: Option<Box<str>>,
    /// What proves it.
    pub password: Option<Box<str>>,
    /// The number of the database.
    pub database: u32,
}

/// What is at a store's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Single,
    /// Some servers of a cluster, which know the others.
    Cluster,
    /// Sentinels, which know the server of this name.
    Sentinel(Box<str>),
}

/// The roots that a server's certificate must come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The system's.
    System,
    /// Those in a PEM file, which is read anew with each connection.
    File(PathBuf),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unconnected {
    /// The file with the roots cannot be read.
    #[error("cannot read {path}: {source}")]
    Roots {
        path: String,
        source: std::io::Error,
    },
    /// It took too long.
    #[error("no connection within {} s", CONNECT.as_secs())]
    TooSlow,
    /// The client library's reason.
    #[error("{0}")]
    Refused(#[from] RedisError),
}

/// A connection that many calls share. Clones are the same connection.
#[derive(Clone)]
pub(super) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    /// Connects, within [`CONNECT`]. The connection's task runs on the runtime this is called on.
    pub(super) async fn connect(&self) -> Result<Connection, Unconnected> {
        let connecting = tokio::time::timeout(CONNECT, self.open());
        connecting.await.unwrap_or(Err(Unconnected::TooSlow))
    }

    async fn open(&self) -> Result<Connection, Unconnected> {
        let certificates = match &self.tls {
            None => None,
            Some(Roots::System) => Some(TlsCertificates {
                client_tls: None,
                root_cert: None,
            }),
            Some(Roots::File(path)) => {
                let roots = std::fs::read(path).map_err(|source| Unconnected::Roots {
                    path: path.display().to_string(),
                    source,
                })?;
                Some(TlsCertificates {
                    client_tls: None,
                    root_cert: Some(roots),
                })
            }
        };
        // Calls are cut off by whoever makes them.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(1024);
        Ok(match &self.topology {
            Topology::Single => {
                let info = self.info(&self.host, self.port)?;
                let client = match certificates {
                    None => Client::open(info)?,
                    Some(certificates) => Client::build_with_tls(info, certificates)?,
                };
                let connection = client.get_multiplexed_async_connection_with_config(&config);
                Connection::Single(connection.await?)
            }
            Topology::Sentinel(master) => {
                let sentinels = self
                    .addresses()
                    .map(|(host, port)| self.address(host, port));
                let mut builder =
                    SentinelClientBuilder::new(sentinels, master, SentinelServerType::Master)?;
                builder = builder.set_client_to_redis_db(self.database.into());
                if let Some(username) = &self.username {
                    builder = builder.set_client_to_redis_username(username);
                }
                if let Some(password) = &self.password {
                    builder = builder.set_client_to_redis_password(password);
                }
                if let Some(certificates) = certificates {
                    builder = builder
                        .set_client_to_redis_tls_mode(TlsMode::Secure)
                        .set_client_to_redis_certificates(certificates.clone())
                        .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                        .set_client_to_sentinel_certificates(certificates);
                }
                let mut client = builder.build()?;
                let connection = client.get_async_connection_with_config(&config);
                Connection::Single(connection.await?)
            }
            Topology::Cluster => {
                let nodes = self.addresses().map(|(host, port)| self.info(host, port));
                let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
                // A slot that has moved is followed; nothing else is repeated.
                let mut builder = ClusterClientBuilder::new(nodes)
                    .retries(2)
                    .min_retry_wait(1)
                    .max_retry_wait(5)
                    .connection_timeout(CONNECT)
                    .response_timeout(CONNECT)
                    .overall_response_timeout(Some(CONNECT));
                if let Some(certificates) = certificates {
                    builder = builder.tls(TlsMode::Secure).certs(certificates);
                }
                let client = builder.build()?;
                Connection::Cluster(client.get_async_connection().await?)
            }
        })
    }

    fn addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        let others = self.nodes.iter().map(|(host, port)| (&**host, *port));
        std::iter::once((&*self.host, self.port)).chain(others)
    }

    fn address(&self, host: &str, port: u16) -> ConnectionAddr {
        match self.tls {
            None => ConnectionAddr::Tcp(host.to_owned(), port),
            Some(_) => ConnectionAddr::TcpTls {
                host: host.to_owned(),
                port,
                insecure: false,
                tls_params: None,
            },
        }
    }

    fn info(&self, host: &str, port: u16) -> Result<ConnectionInfo, RedisError> {
        let mut server = RedisConnectionInfo::default().set_db(self.database.into());
        if let Some(username) = &self.username {
            server = server.set_username(username);
        }
        if let Some(password) = &self.password {
            server = server.set_password(password);
        }
        let info = self.address(host, port).into_connection_info()?;
        Ok(info.set_redis_settings(server))
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("topology", &self.topology)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(cmd),
            Self::Cluster(connection) => connection.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(cmd, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(cmd, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
