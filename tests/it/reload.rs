//! Configurations change under load: all of one or all of the other, and nothing is lost.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use forecourt::state::Rejected;
use forecourt::state::reload::Reloaded;

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, dealer_with, two_workers};
use crate::support::{Gateway, Post, U, Upstream, upstream, wait_until};

const V12: &str = "https://autoagentprotocol.org/extensions/aap/v1.2";

/// Reloads a good file; says which generation serves. The watch may have been faster.
#[track_caller]
fn applied(gateway: &Gateway) -> u64 {
    match gateway.inner.reload() {
        Ok(
            Reloaded::Applied(generation)
            | Reloaded::Unchanged(generation)
            | Reloaded::Again { generation, .. },
        ) => generation,
        Err(rejected) => panic!("{rejected}"),
    }
}

fn rejected(gateway: &Gateway) -> Rejected {
    gateway.inner.reload().expect_err("taken")
}

fn reloads(gateway: &Gateway, result: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_config_reloads_total{{result=\"{result}\"}}"
    ))
}

fn generation(gateway: &Gateway) -> f64 {
    gateway.series("forecourt_config_generation")
}

#[test]
fn nothing_is_lost_and_nothing_is_mixed() {
    const REQUESTS: usize = 2000;
    const CLIENTS: usize = 4;
    const RELOADS: usize = 20;
    let body_of = |tag: &str| upstream::answer("200 OK", &format!("X-Tag: {tag}\r\n"), "{}");
    let odd = Upstream::answering(body_of("odd"));
    let even = Upstream::answering(body_of("even"));
    // Everything differs between the two: contract, upstream, the header that is set.
    let configuration = |is_odd: bool, round: usize| {
        let (upstream, contract, tag) = match is_odd {
            true => (&odd, "aap/3.0", "odd"),
            false => (&even, "aap/1.2", "even"),
        };
        two_workers(&format!(
            "# {round}\n[quota.once]\nper = \"all\"\nrate = \"1/day\"\nburst = 1\n{}\n\
             [endpoint.spent]\npath = \"/spent\"\nupstream = \"lakeside\"\nquotas = [\"once\"]\n",
            dealer_with(
                upstream,
                &format!("headers = {{ x-tag = \"{tag}\", x-round = \"{round}\" }}"),
                &format!("contract = \"{contract}\"")
            )
        ))
    };
    let gateway = Gateway::start_whole(&configuration(true, 0));
    assert_eq!(
        gateway
            .ask(Post::to("/spent").body(call("1")).bytes())
            .status,
        200
    );
    let is_spent = || {
        let text = gateway
            .ask(Post::to("/spent").body(call("1")).bytes())
            .text();
        text.contains("RATE_LIMITED")
    };
    let done = AtomicUsize::new(0);
    // Each client may be one round ahead of the last reload: all are busy while it happens.
    let each = REQUESTS / CLIENTS;
    let allowed = AtomicUsize::new(0);
    let mut taken = 1;
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (gateway, done, allowed) = (&gateway, &done, &allowed);
            scope.spawn(move || {
                let mut connection = gateway.client();
                for id in 0..each {
                    wait_until("the next round", || allowed.load(Ordering::SeqCst) > id);
                    let id = format!("\"{client}-{id}\"");
                    let answer = connection.ask(post(call(&id)));
                    assert_eq!(answer.status, 200);
                    let told = answer.head.one("a2a-extensions").unwrap();
                    match &*answer.head.one("x-tag").unwrap() {
                        "odd" => assert_eq!(told, U),
                        _ => assert_eq!(told, V12),
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 1..=RELOADS {
            allowed.store(each * (round + 1) / (RELOADS + 1), Ordering::SeqCst);
            let due = CLIENTS * (each * round / (RELOADS + 1));
            wait_until("requests", || done.load(Ordering::SeqCst) >= due);
            let next = configuration(round % 2 == 0, round);
            match round % 5 {
                // By rename and a signal.
                1 => {
                    gateway.write_whole(&next);
                    applied(&gateway);
                }
                // By writing in place and a POST.
                2 => {
                    fs::write(gateway.path(), &next).unwrap();
                    let request = Post::method("POST", "/reload").field("Host", "127.0.0.1");
                    let answer = gateway.admin().ask(request.bytes());
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
                // A file with a mistake.
                3 => {
                    gateway.write_whole(
                        &next.replace("upstream = \"lakeside\"", "upstrem = \"lakeside\""),
                    );
                    rejected(&gateway);
                }
                // Half a file.
                4 => {
                    fs::write(gateway.path(), &next[..next.len() / 2]).unwrap();
                    rejected(&gateway);
                }
                // Nobody tells: the directory is watched.
                _ => {
                    let before = generation(&gateway);
                    gateway.write_whole(&next);
                    wait_until("the change is seen", || generation(&gateway) > before);
                }
            }
            taken += usize::from(!matches!(round % 5, 3 | 4));
            assert!(is_spent(), "a bucket was refilled");
        }
    });
    assert_eq!(done.load(Ordering::SeqCst), REQUESTS);
    assert!(is_spent());
    // One of these was for the quota.
    assert_eq!(odd.count() + even.count(), REQUESTS + 1);
    for (upstream, tag, uri) in [(&odd, "odd", U), (&even, "even", V12)] {
        assert!(
            upstream.count() > REQUESTS / 10,
            "{tag}: {}",
            upstream.count()
        );
        for arrival in upstream.arrivals() {
            assert_eq!(arrival.head.all("x-tag"), [tag]);
            assert_eq!(arrival.head.all("a2a-extensions"), [uri]);
            let round: usize = arrival.head.one("x-round").unwrap().parse().unwrap();
            assert_eq!(round.is_multiple_of(2), tag == "odd");
        }
    }
    assert_eq!(generation(&gateway), taken as f64);
    assert!(reloads(&gateway, "failure") >= 8.0);
    let served = gateway.access_log();
    assert_eq!(
        served
            .iter()
            .filter(|line| line["endpoint"] == "lakeside")
            .count(),
        REQUESTS
    );
    assert!(served.iter().all(|line| line["outcome"] != "internal"));
}

#[test]
fn what_is_in_flight_finishes_on_its_own_configuration() {
    let old = Upstream::manual();
    let new = Upstream::recording();
    let gateway = Gateway::start(&dealer_with(&old, "keep_alive = \"100ms\"", ""));
    let mut waiting = gateway.client();
    waiting.send(post(call("1")));
    let mut peer = old.accept();
    peer.request().unwrap();
    let mut streaming = gateway.client();
    streaming.send(post(call("2")));
    let mut stream = old.accept();
    stream.request().unwrap();
    stream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.chunk("one");
    streaming.head();
    assert_eq!(streaming.bytes(3), b"one");

    // Another contract, another upstream; then the endpoint is gone altogether.
    gateway.write(&dealer_with(&new, "", "contract = \"aap/1.2\""));
    assert_eq!(applied(&gateway), 2);
    assert_eq!(gateway.post(call("3")).head.all("a2a-extensions"), [V12]);
    gateway.write(&dealer(&new).replace("path = \"/a2a\"", "path = \"/elsewhere\""));
    assert_eq!(applied(&gateway), 3);
    let mut gone = gateway.client();
    assert_eq!(gone.ask(post(call("3"))).status, 404);

    peer.send(upstream::ok());
    let answer = waiting.answer();
    assert_eq!(
        (answer.status, answer.head.all("a2a-extensions")),
        (200, vec![U.to_owned()])
    );
    stream.chunk("two");
    assert_eq!(streaming.bytes(3), b"two");
    stream.send("0\r\n\r\n");
    assert_eq!(streaming.chunk().unwrap(), None);
    // The same connection is served by the new configuration from its next request on.
    assert_eq!(waiting.ask(post(call("4"))).status, 404);
    let log = gateway.access_log();
    let generations: Vec<_> = log
        .iter()
        .map(|line| line["generation"].as_u64().unwrap())
        .collect();
    assert_eq!(generations, [2, 3, 1, 1, 3]);
    // What no configuration names is closed.
    assert!(peer.is_closed_within(crate::support::PATIENCE));
    assert!(stream.is_closed_within(crate::support::PATIENCE));
}

#[test]
fn pools_survive() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    assert_eq!(client.ask(post(call("1"))).status, 200);
    for round in 0..5 {
        let more = format!(
            "{}[endpoint.more]\npath = \"/more{round}\"\nupstream = \"lakeside\"\n",
            dealer(&upstream)
        );
        gateway.write(&more);
        applied(&gateway);
        assert_eq!(client.ask(post(call("1"))).status, 200);
    }
    assert_eq!(upstream.connections(), 1, "a reload dropped a pool");
    // A changed upstream is another one.
    gateway.write(&dealer_with(&upstream, "headers = { x-new = \"1\" }", ""));
    applied(&gateway);
    assert_eq!(client.ask(post(call("1"))).status, 200);
    assert!(upstream.last().head.has("x-new"));
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn a_bad_file_changes_nothing_but_the_count() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let good = fs::read_to_string(gateway.path()).unwrap();
    let mut client = gateway.client();
    let mut failures = 0.0;
    for (bad, told) in [
        (good.replace("[endpoint.lakeside]", "[endpoint.lakeside"), "forecourt.toml:"),
        (good.replace("upstream = ", "upstrem = "), "upstrem"),
        (good.replace("http://", "ftp://"), "ftp"),
        (good.replace("/a2a\"\nupstream", "a2a\"\nupstream"), "path"),
        (format!("{good}[endpoint.twin]\npath = \"/a2a/\"\nupstream = \"lakeside\"\n"), "twin"),
        (String::new(), "listener"),
        (good[..good.find("[endpoint").unwrap()].to_owned(), "endpoint"),
        (good.replace("[upstream", "[listener.tls]\naddress = \"127.0.0.1:0\"\ntls = { certificate = \"c\", key = \"k\" }\n[upstream"), "No such file"),
        (good.replace("workers = 1", "workers = 2"), "restart needed"),
    ] {
        assert_ne!(bad, good);
        gateway.write_whole(&bad);
        let problem = rejected(&gateway).to_string();
        assert!(problem.contains(told), "{told}: {problem}");
        failures += 1.0;
        assert!(reloads(&gateway, "failure") >= failures);
        assert_eq!(generation(&gateway), 1.0);
        assert_eq!(client.ask(post(call("1"))).status, 200);
        assert_eq!(gateway.admin_get("/readyz").status, 200);
        let request = Post::method("POST", "/reload").field("Host", "localhost");
        let answer = gateway.admin().ask(request.bytes());
        assert_eq!(answer.status, 422);
        assert!(answer.text().contains(told), "{}", answer.text());
    }
    // A file that is gone, too.
    fs::remove_file(gateway.path()).unwrap();
    rejected(&gateway);
    assert_eq!(client.ask(post(call("1"))).status, 200);
    // The next good file is taken, also one that was served before.
    gateway.write_whole(&good);
    assert_eq!(gateway.inner.reload().unwrap(), Reloaded::Unchanged(1));
    gateway.write_whole(&good.replace("path = \"/a2a\"", "path = \"/b2b\""));
    assert_eq!(applied(&gateway), 2);
    assert_eq!(client.ask(post(call("1"))).status, 404);
    assert_eq!(
        gateway.ask(Post::to("/b2b").body(call("1")).bytes()).status,
        200
    );
    gateway.write_whole(&good);
    assert_eq!(applied(&gateway), 3);
    assert_eq!(gateway.post(call("1")).status, 200);
}

#[test]
fn the_watch_follows_renames_writes_and_swaps() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let file = |path: &str| {
        format!(
            "{}{}",
            crate::support::gateway::PRELUDE,
            dealer(&upstream).replace("path = \"/a2a\"", &format!("path = \"{path}\""))
        )
    };
    let mut client = gateway.client();
    let mut serves = |path: &str| {
        wait_until(path, || {
            let answer = client.ask(Post::to(path).body(call("1")).bytes());
            if answer.closes() {
                client = gateway.client();
            }
            answer.status == 200
        });
    };
    serves("/a2a");
    gateway.write_whole(&file("/renamed"));
    serves("/renamed");
    fs::write(gateway.path(), file("/written")).unwrap();
    serves("/written");
    // A bad one in between is counted, and the good one after it is taken.
    gateway.write_whole("[listener");
    wait_until("counted", || reloads(&gateway, "failure") == 1.0);
    gateway.write_whole(&file("/recovered"));
    serves("/recovered");
    // As Kubernetes does it: the name leads through a directory that is swapped.
    let root = gateway.directory.path();
    for (name, path) in [("v1", "/one"), ("v2", "/two"), ("v3", "/three")] {
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join("forecourt.toml"), file(path)).unwrap();
        symlink(name, root.join("..tmp")).unwrap();
        fs::rename(root.join("..tmp"), root.join("..data")).unwrap();
        if name == "v1" {
            symlink("..data/forecourt.toml", root.join("link")).unwrap();
            fs::rename(root.join("link"), gateway.path()).unwrap();
        }
        serves(path);
    }
    assert_eq!(reloads(&gateway, "failure"), 1.0);
    assert_eq!(generation(&gateway), 7.0);
}

#[test]
fn what_needs_a_restart_is_refused_whole() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let good = fs::read_to_string(gateway.path()).unwrap();
    let changed = good.replace("path = \"/a2a\"", "path = \"/changed\"");
    let admin = changed.find("[admin]").unwrap();
    let other_port = |from: usize| {
        let (start, rest) = changed.split_at(from);
        format!(
            "{start}{}",
            rest.replacen("127.0.0.1:0", "127.0.0.1:18080", 1)
        )
    };
    for (next, table) in [
        (changed.replace("workers = 1", "workers = 2"), "[runtime]"),
        (other_port(admin), "[admin.address]"),
        (
            changed.replace("[log]", "[log]\nformat = \"text\""),
            "[log.format]",
        ),
    ] {
        gateway.write_whole(&next);
        let problem = rejected(&gateway);
        assert!(matches!(problem, Rejected::RestartNeeded(_)), "{problem}");
        assert_eq!(
            problem.to_string(),
            format!("restart needed: {table} changed")
        );
        // Nor is what stands beside it applied.
        assert_eq!(gateway.post(call("1")).status, 200);
        assert_eq!(generation(&gateway), 1.0);
    }
    gateway.write_whole(&changed);
    assert_eq!(applied(&gateway), 2);
}

#[test]
fn limits_across_reloads() {
    let upstream = Upstream::recording();
    let with = |burst: Option<u32>, endpoint: &str, other: &str| {
        let (quota, quotas) = match burst {
            Some(burst) => (
                format!("[quota.q]\nper = \"caller\"\nrate = \"1/min\"\nburst = {burst}\n"),
                "quotas = [\"q\"]",
            ),
            None => (String::new(), ""),
        };
        format!(
            "[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n{quota}{}\
             [endpoint.other]\npath = \"{other}\"\nupstream = \"lakeside\"\n",
            dealer_with(&upstream, "", quotas)
                .replace("[endpoint.lakeside]", &format!("[endpoint.{endpoint}]"))
        )
    };
    let gateway = Gateway::start_two(&with(Some(10), "lakeside", "/other"));
    let mut client = gateway.client();
    let mut passes = |count: usize| {
        let request = Post::to("/a2a")
            .field("X-Api-Key", "K")
            .body(call("1"))
            .bytes();
        (0..count)
            .filter(|_| !client.ask(&request).text().contains("RATE_LIMITED"))
            .count()
    };
    let reload = |configuration: &str| {
        gateway.write_whole(&two_workers(configuration));
        gateway.inner.reload().unwrap()
    };
    assert_eq!(passes(11), 10);
    // The same content, another comment, another endpoint's change: nothing is refilled.
    assert_eq!(
        reload(&with(Some(10), "lakeside", "/other")),
        Reloaded::Unchanged(1)
    );
    assert_eq!(passes(1), 0);
    let commented = format!("{}# new", with(Some(10), "lakeside", "/other"));
    assert_eq!(reload(&commented), Reloaded::Unchanged(1));
    assert_eq!(passes(1), 0);
    // This one moves the lines that warnings name.
    let moved = reload(&format!("# new\n{commented}"));
    assert_eq!(moved, Reloaded::Unchanged(1));
    assert_eq!(passes(1), 0);
    reload(&with(Some(10), "lakeside", "/elsewhere"));
    assert!(generation(&gateway) >= 2.0);
    assert_eq!(passes(1), 0);
    // A wider limit holds at once, for this caller too, and counts what was spent.
    reload(&with(Some(20), "lakeside", "/elsewhere"));
    assert_eq!(passes(12), 10);
    // A narrower one as well.
    reload(&with(Some(2), "lakeside", "/elsewhere"));
    assert_eq!(passes(1), 0);
    reload(&with(None, "lakeside", "/elsewhere"));
    assert_eq!(passes(5), 5);
    // Back again: the debt was kept meanwhile.
    reload(&with(Some(20), "lakeside", "/elsewhere"));
    assert_eq!(passes(1), 0);
    // Another name is another endpoint.
    reload(&with(Some(10), "renamed", "/elsewhere"));
    assert_eq!(passes(11), 10);
    gateway.clock.advance(Duration::from_secs(60));
    assert_eq!(passes(2), 1);
}

#[test]
fn series_of_what_is_gone_are_dropped_and_others_kept() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    assert_eq!(gateway.post(call("1")).status, 200);
    gateway.write(&dealer(&upstream).replace("[endpoint.lakeside]", "[endpoint.hilltop]"));
    applied(&gateway);
    assert_eq!(gateway.post(call("1")).status, 200);
    let text = gateway.admin_get("/metrics").text();
    assert!(!text.contains("endpoint=\"lakeside\""));
    assert_eq!(gateway.ended_at("hilltop", "ok"), 1.0);
    // Its name comes back from zero; counters of what stays go on.
    gateway.write(&format!(
        "{}[endpoint.hilltop]\npath = \"/hilltop\"\nupstream = \"lakeside\"\n",
        dealer(&upstream)
    ));
    applied(&gateway);
    assert_eq!(
        (gateway.ended("ok"), gateway.ended_at("hilltop", "ok")),
        (0.0, 1.0)
    );
}

#[test]
fn reloads_at_once_end_on_the_newest_file() {
    let upstream = Upstream::recording();
    let with = |round: usize| {
        format!(
            "{}{}",
            crate::support::gateway::PRELUDE,
            dealer_with(
                &upstream,
                &format!("headers = {{ x-round = \"{round}\" }}"),
                ""
            )
        )
    };
    let gateway = Gateway::start_whole(&with(0));
    let is_over = AtomicBool::new(false);
    let mut client = gateway.client();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    drop(gateway.inner.reload());
                }
            });
        }
        let served = (1..60).map(|round| {
            gateway.write_whole(&with(round));
            applied(&gateway);
            assert_eq!(client.ask(post(call("1"))).status, 200);
            let served = upstream.take().head.one("x-round").unwrap();
            (round, served.parse::<usize>().unwrap())
        });
        // Whoever read the file before must not bring it back.
        let stale: Vec<_> = served.filter(|(round, served)| round != served).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(stale.is_empty(), "{stale:?}");
    });
}
