//! Plans: what a caller who has proven who they are may use, and that nothing of it is given twice.

use super::*;

const ACME: (&str, &str) = ("X-Api-Key", "fc_acme-key");

fn tables(plan: &str, plans: &str) -> String {
    let key = forecourt::credential::fresh::digest(ACME.1);
    format!(
        "[quota.q]\nper = \"caller\"\nrate = \"60/min\"\nburst = 6\n\
         [caller.acme]\nkey_sha256 = \"{key}\"\n{plan}\n{plans}\n"
    )
}

fn whole(upstream: &Upstream, plan: &str, plans: &str) -> String {
    let of_endpoint = "authenticate = \"optional\"\nquotas = [\"q\"]";
    let dealer = dealer_with(upstream, "", of_endpoint);
    format!("{}{dealer}", tables(plan, plans))
}

const GOLD: &str = "[plan.gold.quotas]\nq = { rate = \"600/min\", burst = 20 }";

fn left(answer: &Answer) -> (String, String) {
    let one = |name| answer.head.one(name).unwrap();
    (one("ratelimit-policy"), one("ratelimit"))
}

#[test]
fn a_caller_is_told_and_held_to_its_own_plan() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&whole(&upstream, "plan = \"gold\"", GOLD));
    let mut client = gateway.client();
    // Who proves nothing has no plan.
    let answer = asked(&mut client, "/a2a", &[]);
    let plain = ("\"q\";q=6;w=6".to_owned(), "\"q\";r=5;t=1".to_owned());
    assert_eq!(left(&answer), plain);
    let answer = asked(&mut client, "/a2a", &[ACME]);
    let gold = ("\"q\";q=20;w=2".to_owned(), "\"q\";r=19;t=1".to_owned());
    assert_eq!(left(&answer), gold);
    for _ in 0..19 {
        assert_eq!(wait(&asked(&mut client, "/a2a", &[ACME])), None);
    }
    assert_eq!(wait(&asked(&mut client, "/a2a", &[ACME])), Some(100));
    assert_eq!(gateway.last_line()["caller"], "acme");
    gateway.clock.advance(Duration::from_millis(100));
    assert_eq!(wait(&asked(&mut client, "/a2a", &[ACME])), None);
    let shown = gateway.admin_get("/limits/acme").json();
    assert_eq!(shown["plan"], "gold");
    let bucket = &shown["buckets"][0];
    let counts = [&bucket["remaining"], &bucket["most"], &bucket["full_in_ms"]];
    assert_eq!(
        counts,
        [&0.into(), &20.into(), &2000.into()] as [&serde_json::Value; 3]
    );
}

/// Whatever becomes of a plan, what was used stays used, as the time it takes to earn it back.
#[test]
fn a_plan_that_is_changed_taken_or_given_keeps_what_was_used() {
    let upstream = Upstream::recording();
    let gold = "plan = \"gold\"";
    let gateway = Gateway::start(&whole(&upstream, gold, GOLD));
    let mut client = gateway.client();
    let put = |plan: &str, plans: &str| {
        gateway.write(&whole(&upstream, plan, plans));
        gateway.inner.reload().unwrap();
    };
    let mut ask = || asked(&mut client, "/a2a", &[ACME]);
    for _ in 0..20 {
        assert_eq!(wait(&ask()), None);
    }
    // Two seconds are owed: of six at one a second, four are left.
    put("", "");
    assert_eq!(left(&ask()).1, "\"q\";r=3;t=1");
    // Three seconds are owed now: more than the old plan ever gave.
    put(gold, GOLD);
    assert_eq!(wait(&ask()), Some(1100));
    put(
        gold,
        &GOLD
            .replace("600/min", "1200/min")
            .replace("burst = 20", "burst = 100"),
    );
    assert_eq!(left(&ask()).1, "\"q\";r=39;t=1");
    put(gold, &GOLD.replace("burst = 20", "burst = 60"));
    assert_eq!(left(&ask()).1, "\"q\";r=28;t=1");
}

#[test]
fn limits_survive_a_thousand_reloads() {
    let upstream = Upstream::manual();
    let streams =
        "[quota.streams]\nper = \"caller\"\nconcurrent = 1\nmethods = [\"SendStreamingMessage\"]\n";
    let with = |burst: u32, gold: u32| {
        format!(
            "[quota.q]\nper = [\"caller\", \"tenant\", \"skill\"]\nrate = \"1/day\"\nburst = {burst}\n\
             [plan.gold.quotas]\nq = {{ burst = {gold} }}\n{streams}{}",
            dealer_with(&upstream, "", "quotas = [\"q\", \"streams\"]")
        )
    };
    let gateway = Gateway::start(&with(3, 10));
    let streaming = Post::to("/a2a").body(call("1").replace("SendMessage", "SendStreamingMessage"));
    let mut stream = gateway.client();
    stream.send(streaming.bytes());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.head();
    for round in 0..1000 {
        gateway.write(&with(3 + round % 2, 10 + round % 3));
        gateway.inner.reload().unwrap();
    }
    let generation = gateway.series("forecourt_config_generation");
    assert!(generation > 900.0, "{generation}");
    // One was used before, of four now.
    gateway.write(&with(4, 10));
    gateway.inner.reload().unwrap();
    let mut client = gateway.client();
    let refused = client.ask(streaming.bytes());
    assert!(refused.text().contains("RATE_LIMITED"));
    assert_eq!(gateway.last_line()["quota"], "streams");
    for left in [2, 1, 0] {
        client.send(Post::to("/a2a").body(call("1")).bytes());
        let mut peer = upstream.accept();
        peer.request().unwrap();
        peer.send(crate::support::upstream::answer(
            "200 OK",
            "Connection: close\r\n",
            "{}",
        ));
        let state = client.answer().head.one("ratelimit").unwrap();
        assert!(state.starts_with(&format!("\"q\";r={left};")), "{state}");
    }
    let over = client.ask(Post::to("/a2a").body(call("1")).bytes());
    assert!(over.text().contains("RATE_LIMITED"));
}
