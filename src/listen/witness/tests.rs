//! Panics in a handler, in a stream, and as a connection is accepted: each ends alone.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::*;
use crate::http1::{Answer, Lines, RequestHead};
use crate::listen::{Acceptor, Drain, Handler, Limits, Manner, Open, bind, desks, serve};
use crate::observe::{Caught, Metrics};
use crate::state::Listener;

#[tokio::test]
async fn only_a_panic_is_counted() {
    let counter = Counter::default();
    let run = |panics: bool| {
        let witness = Witness::new(&counter);
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            assert!(!panics, "as it was told");
            drop(witness);
        })
    };
    run(false).await.unwrap();
    assert_eq!(counter.get(), 0);
    run(true).await.unwrap_err();
    assert_eq!(counter.get(), 1);
    // Given up, it has not panicked.
    let given_up = run(true);
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    assert_eq!(counter.get(), 1);
}

/// Answers, or panics where it is asked to.
struct Touchy;

impl Handler for Touchy {
    type Body = Full<Bytes>;

    async fn handle<B>(&self, head: RequestHead, _: B) -> Answer<Full<Bytes>> {
        assert_ne!(head.uri.path(), "/panic");
        Answer {
            status: http::StatusCode::OK,
            lines: Lines::new(),
            body: Full::from("well"),
        }
    }
}

struct Running {
    address: SocketAddr,
    metrics: Metrics,
    open: Open,
    /// Whether the next connection is to panic when it is accepted.
    trips: Rc<Cell<bool>>,
    _drain: Drain,
}

fn start() -> Running {
    let metrics = Metrics::new("0");
    let meters = metrics.listener("public");
    let bound = bind(([127, 0, 0, 1], 0).into(), 1, 16, None)
        .unwrap()
        .remove(0);
    let address = bound.socket.local_addr().unwrap();
    let open = Open {
        all: Arc::default(),
        here: meters.connections.clone(),
    };
    let manner = Manner {
        listener: Rc::new(Listener::bare("public", meters)),
        open: open.clone(),
        doorman: None,
        backlog: 16,
    };
    let desk = desks(&[metrics.worker(0)]).remove(0);
    let (acceptor, reins) = Acceptor::new(bound, manner, desk, metrics.endpoint(""));
    let trips = Rc::new(Cell::new(false));
    let tripping = Rc::clone(&trips);
    let limits = move || {
        // As long as the listener is.
        let _ = &reins;
        assert!(!tripping.take(), "as it was told");
        Limits {
            connections: 100,
            header_bytes: 8192,
            header_count: 100,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            concurrent_streams: 100,
        }
    };
    let drain = Drain::default();
    let serving = serve(acceptor, limits, |_| Touchy, drain.subscribe());
    tokio::task::spawn_local(serving);
    Running {
        address,
        metrics,
        open,
        trips,
        _drain: drain,
    }
}

impl Running {
    fn panics(&self) -> u64 {
        self.metrics.panics(Caught::Connection).get()
    }
}

/// What is answered until the connection ends.
async fn asked(client: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A cut may be a reset.
    let _ = client.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_connection_that_panics_ends_alone() {
    let serving = async {
        let running = start();
        let connect = || TcpStream::connect(running.address);
        let mut other = connect().await.unwrap();
        let mut touched = connect().await.unwrap();
        assert_eq!(asked(&mut touched, "/panic").await, "");
        assert_eq!(running.panics(), 1);
        assert!(asked(&mut other, "/").await.ends_with("well"));
        assert!(
            asked(&mut connect().await.unwrap(), "/")
                .await
                .ends_with("well")
        );
        while running.open.all.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(running.panics(), 1);
    };
    LocalSet::new().run_until(serving).await;
}

#[tokio::test]
async fn a_stream_that_panics_ends_alone() {
    let serving = async {
        let running = start();
        let socket = TcpStream::connect(running.address).await.unwrap();
        let (requests, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::task::spawn_local(connection);
        let ask = async |path: &str| {
            let mut requests = requests.clone().ready().await.unwrap();
            let request = Request::get(format!("http://x{path}")).body(()).unwrap();
            requests.send_request(request, true).unwrap().0.await
        };
        assert_eq!(ask("/").await.unwrap().status(), 200);
        assert!(ask("/panic").await.unwrap_err().is_reset());
        assert_eq!(running.panics(), 1);
        assert_eq!(ask("/").await.unwrap().status(), 200);
        assert_eq!(running.panics(), 1);
    };
    LocalSet::new().run_until(serving).await;
}

#[tokio::test]
async fn what_panics_when_it_is_accepted_keeps_nobody_out() {
    let serving = async {
        let running = start();
        running.trips.set(true);
        let mut touched = TcpStream::connect(running.address).await.unwrap();
        assert_eq!(asked(&mut touched, "/").await, "");
        assert_eq!(running.panics(), 1);
        let mut next = TcpStream::connect(running.address).await.unwrap();
        assert!(asked(&mut next, "/").await.ends_with("well"));
        while running.open.all.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    LocalSet::new().run_until(serving).await;
}
