//! Gateways before a store: their configuration, and what is asked of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::call::call;
use crate::support::gateway::dealer_with;
use crate::support::wait::elapse;
use crate::support::{Answer, Client, Gateway, Post, Upstream, wait_until};

/// Time enough for a store on a busy machine.
pub const PATIENT: &str = "timeout = \"5s\"";

/// A quota per caller that is kept in `central`.
pub fn quota(rate: &str, burst: u32) -> String {
    quota_with(rate, burst, "")
}

pub fn quota_with(rate: &str, burst: u32, more: &str) -> String {
    format!(
        "[quota.q]\nper = \"caller\"\nrate = \"{rate}\"\nburst = {burst}\nstore = \"central\"\n{more}\n"
    )
}

/// A whole configuration but for the prelude.
pub fn configured(upstream: &Upstream, url: &str, of_store: &str, quotas: &str) -> String {
    let names: Vec<_> = quotas
        .split("[quota.")
        .skip(1)
        .map(|rest| format!("\"{}\"", rest.split(']').next().unwrap()))
        .collect();
    format!(
        "[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n\
         [store.central]\nurl = \"{url}\"\n{of_store}\n{quotas}{}",
        dealer_with(upstream, "", &format!("quotas = [{}]", names.join(", ")))
    )
}

/// A gateway whose clock is moved by hand, once it is connected to its store.
#[track_caller]
pub fn gateway(upstream: &Upstream, url: &str, quotas: &str) -> Gateway {
    let gateway = Gateway::start_two(&configured(upstream, url, PATIENT, quotas));
    connected(&gateway);
    gateway
}

/// The same on a clock that runs.
#[track_caller]
pub fn running(upstream: &Upstream, url: &str, of_store: &str, quotas: &str) -> Gateway {
    let gateway = Gateway::start_running(&configured(upstream, url, of_store, quotas));
    connected(&gateway);
    gateway
}

/// Waits until the gateway asks its store.
#[track_caller]
pub fn connected(gateway: &Gateway) {
    wait_until("the store is asked", || !is_degraded(gateway));
}

pub fn is_degraded(gateway: &Gateway) -> bool {
    of_store(gateway, "degraded") > 0.0
}

/// A series of the store.
#[track_caller]
pub fn of_store(gateway: &Gateway, what: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_ratelimit_store_{what}{{store=\"central\"}}"
    ))
}

#[track_caller]
pub fn errors(gateway: &Gateway, kind: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_ratelimit_store_errors_total{{store=\"central\",kind=\"{kind}\"}}"
    ))
}

#[track_caller]
pub fn decisions(gateway: &Gateway, decision: &str, source: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_ratelimit_decisions_total{{quota=\"q\",decision=\"{decision}\",source=\"{source}\"}}"
    ))
}

pub fn asks(client: &mut Client, key: &str) -> Answer {
    client.ask(post(key))
}

pub fn post(key: &str) -> Vec<u8> {
    Post::to("/a2a")
        .field("X-Api-Key", key)
        .body(call("1"))
        .bytes()
}

/// The wait that a refusal tells, in ms; `None` where it was admitted.
#[track_caller]
pub fn wait(answer: &Answer) -> Option<u64> {
    if !answer.text().contains("\"error\"") {
        assert_eq!(answer.status, 200);
        return None;
    }
    assert_eq!(answer.code(), -32000, "{}", answer.text());
    let json = answer.json();
    let details = &json["error"]["data"][1]["value"]["details"];
    let ms = details["retry_after_ms"].as_u64().unwrap();
    assert_eq!(
        answer.head.all("retry-after"),
        [ms.div_ceil(1000).to_string()]
    );
    Some(ms)
}

/// Who decided the last call.
#[track_caller]
pub fn source(gateway: &Gateway) -> Value {
    gateway.last_line()["limit_source"].clone()
}

/// What becomes of the bytes between a gateway and its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    Pass,
    /// Each answer comes 60 ms late.
    Slow,
    /// Answers never come.
    Hang,
    /// Something comes instead of the answer.
    Garbage,
    /// The connection ends in place of the answer.
    Cut,
}

/// A relay before a store, whose mode can be changed at any time.
pub struct Relay {
    pub address: SocketAddr,
    mode: Arc<AtomicU8>,
}

impl Relay {
    pub fn before(store: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mode = Arc::new(AtomicU8::new(Mode::Pass as u8));
        let for_thread = Arc::clone(&mode);
        thread::spawn(move || {
            for near in listener.incoming() {
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(store)) else {
                    continue;
                };
                let (asks, asked) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                thread::spawn(move || copy(asks, asked, |_| true));
                let mode = Arc::clone(&for_thread);
                thread::spawn(move || copy(far, near, move |bytes| changed(&mode, bytes)));
            }
        });
        Self { address, mode }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

/// Whether the bytes, perhaps others by now, go on; else the connection ends.
fn changed(mode: &AtomicU8, bytes: &mut Vec<u8>) -> bool {
    let mode = mode.load(Ordering::SeqCst);
    if mode == Mode::Slow as u8 {
        elapse(Duration::from_millis(60));
    } else if mode == Mode::Hang as u8 {
        bytes.clear();
    } else if mode == Mode::Garbage as u8 {
        *bytes = b"?this is no answer\r\n".to_vec();
    } else if mode == Mode::Cut as u8 {
        return false;
    }
    true
}

fn copy(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut Vec<u8>) -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut bytes = buffer[..count].to_vec();
        if !change(&mut bytes) || to.write_all(&bytes).is_err() {
            break;
        }
    }
    drop(from.shutdown(std::net::Shutdown::Both));
    drop(to.shutdown(std::net::Shutdown::Both));
}
