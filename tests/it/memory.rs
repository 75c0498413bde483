//! Memory of the real process: what slow readers do not take is not held for them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::call::{call, search};
use crate::support::gateway::{PRELUDE, dealer};
use crate::support::process::Process;
use crate::support::tls::Place;
use crate::support::wait::stays;
use crate::support::ways::{Caller, SPEECHES};
use crate::support::{Upstream, Watch, upstream, wait_until};

const LARGE: usize = 200 << 20;
const PIECE: usize = 64 << 10;

#[test]
fn large_answers_to_slow_readers_are_not_held() {
    // As much as is taken, of two hundred megabytes a call; but searches are answered at once.
    let taken = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&taken);
    let upstream = Upstream::scripted(move |mut peer| {
        while let Some(arrival) = peer.request() {
            if arrival.body == search("1").as_bytes() {
                peer.send(upstream::ok());
                continue;
            }
            let fields = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let piece = format!("{PIECE:x}\r\n{}\r\n", "x".repeat(PIECE));
            peer.send(fields);
            for _ in 0..LARGE / PIECE {
                if peer.try_send(&piece).is_err() {
                    return;
                }
                counting.fetch_add(PIECE, Ordering::SeqCst);
            }
            peer.send("0\r\n\r\n");
        }
    });
    let place = Place::new();
    place.issue("own", &["gw.example"]);
    let path = place.directory.path().join("forecourt.toml");
    let secure = format!(
        "[listener.secure]\naddress = \"127.0.0.1:0\"\ntls = {{ {} }}\n",
        place.pair("own")
    );
    fs::write(&path, format!("{PRELUDE}{secure}{}", dealer(&upstream))).unwrap();
    let mut process = Process::start(&path);
    let (addresses, _) = process.addresses_of(["public", "secure"]);
    let connect = |speech| Caller::connect(speech, addresses, &place);
    let is_served_promptly = || {
        for speech in SPEECHES {
            let mut caller = connect(speech);
            let watch = Watch::start();
            caller.send(&search("1"));
            assert_eq!(caller.answer().0, 200, "{speech:?}");
            assert!(watch.elapsed() < Duration::from_secs(1), "{speech:?}");
        }
    };
    is_served_promptly();
    let before = process.memory();
    let mut slow = Vec::new();
    for _ in 0..5 {
        for speech in SPEECHES {
            let mut caller = connect(speech);
            caller.send(&call("1"));
            assert_eq!(caller.head().0, 200);
            slow.push(caller);
        }
    }
    let has_stopped = || {
        let before = taken.load(Ordering::SeqCst);
        stays(Duration::from_millis(200), || {
            taken.load(Ordering::SeqCst) == before
        })
    };
    let is_flat = || {
        let more = process.memory().saturating_sub(before);
        assert!(more < slow_memory(20), "{more} bytes more");
    };
    wait_until("no more is taken", has_stopped);
    is_flat();
    is_served_promptly();
    // Each takes some more of it, and stops again.
    for (index, caller) in slow.iter_mut().enumerate() {
        let mut read = 0;
        while read < 4 << 20 {
            let piece = caller.piece();
            read += piece
                .unwrap_or_else(|e| panic!("{index} {read} {e}"))
                .unwrap()
                .len();
        }
    }
    wait_until("no more is taken", has_stopped);
    is_flat();
    is_served_promptly();
    // The gateway and all sockets between together hold a small part of what was offered.
    let held = taken.load(Ordering::SeqCst) - 20 * (4 << 20);
    assert!(held < 20 * (16 << 20), "{held}");
    drop(slow);
    process.signal("TERM");
    assert!(process.ended().success());
}

/// What so many slow readers may cost: buffers of a few windows, not answers.
fn slow_memory(readers: usize) -> usize {
    readers * (512 << 10)
}
