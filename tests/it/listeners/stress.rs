//! A listener toggled under load: whoever was connected gets an answer, and nobody else notices.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::call::{Post, call, post};
use crate::support::wait::{PATIENCE, wait_until};
use crate::support::{Client, Gateway, Upstream, Watch};

use super::{at, more, reload, with};

const TOGGLES: usize = 100;
const CLIENTS: usize = 4;

/// A client has at least this long for its first request where the listener closes.
const GRACE: Duration = Duration::from_millis(200);

/// A connection, or `None` where nobody listens. Who is not heard may be heard a second later: this
/// client does not wait for that.
fn connected(address: SocketAddr) -> Option<Client> {
    match TcpStream::connect_timeout(&address, Duration::from_millis(30)) {
        Ok(stream) => {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
            Some(Client::over(stream))
        }
        Err(error) => {
            let expected = [ErrorKind::ConnectionRefused, ErrorKind::TimedOut];
            assert!(expected.contains(&error.kind()), "{error}");
            None
        }
    }
}

#[test]
fn toggled_a_hundred_times_it_loses_nobody() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with(&upstream, &more("127.0.0.1:0", "")));
    let address = at(&gateway, "more");
    let there = with(&upstream, &more(address, ""));
    let changed = with(&upstream, &more(address, "health = \"/up\""));
    let gone = with(&upstream, "");
    let is_over = AtomicBool::new(false);
    let (toggled, kept) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (is_over, toggled, kept, gateway) = (&is_over, &toggled, &kept, &gateway);
            scope.spawn(move || {
                let once = Post::to("/a2a")
                    .field("Connection", "close")
                    .body(call("1"));
                let request = [once.bytes(), post(call("1"))][client % 2].clone();
                while !is_over.load(Ordering::SeqCst) {
                    let watch = Watch::start();
                    let Some(mut connection) = connected(address) else {
                        thread::yield_now();
                        continue;
                    };
                    // Connected is promised: the request is answered, whole.
                    let sent = connection.try_send(&request);
                    let took = watch.elapsed();
                    match connection.try_answer() {
                        Ok(Some(answer)) => {
                            assert_eq!(answer.status, 200);
                            toggled.fetch_add(1, Ordering::SeqCst);
                        }
                        // Unless it was so late that nothing more could be expected of the client.
                        lost => assert!(took > GRACE, "{took:?} {sent:?} {lost:?}"),
                    }
                }
            });
            scope.spawn(move || {
                let mut connection = gateway.client();
                while !is_over.load(Ordering::SeqCst) {
                    let answer = connection.ask(post(call("2")));
                    assert!(answer.status == 200 && !answer.closes());
                    kept.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 0..TOGGLES {
            let before = (toggled.load(Ordering::SeqCst), kept.load(Ordering::SeqCst));
            let next = [&gone, &there, &gone, &changed][round % 4];
            reload(&gateway, next);
            let is_open = round % 2 == 1;
            wait_until("clients are served", || {
                kept.load(Ordering::SeqCst) > before.1
                    && (!is_open || toggled.load(Ordering::SeqCst) >= before.0 + CLIENTS)
            });
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let (toggled, kept) = (toggled.into_inner(), kept.into_inner());
    assert!(toggled > TOGGLES && kept > TOGGLES, "{toggled} {kept}");
    assert_eq!(upstream.count(), toggled + kept);
    assert!(
        gateway
            .access_log()
            .iter()
            .all(|line| line["outcome"] == "ok")
    );
    wait_until("nothing is left of it", || {
        let metrics = gateway.metrics();
        let of = |worker| metrics[&format!("forecourt_worker_connections{{worker=\"{worker}\"}}")];
        of(0) + of(1) == 0.0
    });
}
