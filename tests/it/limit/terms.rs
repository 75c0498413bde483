//! Quotas in the protocol's terms: skills, tenants, methods, costs.

use super::*;

/// A call of a method, for a skill (as `data.type` has it) and a tenant, each as JSON text.
fn terms(method: &str, skill: &str, tenant: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{\"tenant\":{tenant},\
         \"message\":{{\"parts\":[{{\"data\":{{\"type\":{skill}}}}}]}}}}}}"
    )
}

fn skilled(skill: &str) -> String {
    terms("SendMessage", &format!("\"{skill}.request\""), "null")
}

#[track_caller]
fn sent(client: &mut Client, body: &str) -> Answer {
    let answer = client.ask(Post::to("/a2a").field(KEY.0, KEY.1).body(body).bytes());
    assert!(answer.status == 200, "{}", answer.text());
    answer
}

#[track_caller]
fn is_over(client: &mut Client, body: &str) -> bool {
    wait(&sent(client, body)).is_some()
}

#[test]
fn each_known_skill_has_a_bucket_and_all_others_share_one() {
    let upstream = Upstream::recording();
    let quota = "[quota.q]\nper = [\"caller\", \"skill\"]\nrate = \"1/day\"\n\
                 cost = { \"house.inspect\" = 1 }";
    let gateway = gateway(&upstream, quota, "\"q\"");
    let mut client = gateway.client();
    for skill in [
        "dealer.information",
        "inventory.facets",
        "inventory.search",
        "inventory.vehicle",
        "lead.submit",
        "house.inspect",
    ] {
        assert!(!is_over(&mut client, &skilled(skill)), "{skill}");
        assert!(is_over(&mut client, &skilled(skill)), "{skill}");
        // Written otherwise it is the same skill.
        let escaped = skilled(skill).replacen(".request", "\\u002erequest", 1);
        assert!(is_over(&mut client, &escaped), "{skill}");
    }
    // Nobody gets a fresh bucket by making one up, or by asking for none.
    assert!(!is_over(&mut client, &skilled("made.up")));
    for other in ["made.up.2", "lead.submit2", "LEAD.SUBMIT", ""] {
        assert!(is_over(&mut client, &skilled(other)), "{other}");
    }
    for none in ["null", "7", "\"lead.submit\"", "[]"] {
        assert!(
            is_over(&mut client, &terms("SendMessage", none, "null")),
            "{none}"
        );
    }
    assert!(is_over(&mut client, &terms("GetTask", "null", "null")));
    // Another caller has its own, and a batch is none.
    let other = Post::to("/a2a").field(OTHER_KEY.0, OTHER_KEY.1);
    let answer = client.ask(other.body(skilled("lead.submit")).bytes());
    assert_eq!(wait(&answer), None);
    let batch = format!("[{},{}]", skilled("lead.submit"), skilled("made.up"));
    assert_eq!(sent(&mut client, &batch).code(), -32600);
}

#[test]
fn tenants_are_counted_apart_as_text_and_bounded_like_callers() {
    let upstream = Upstream::recording();
    let quota = "[limits]\nlimiter_keys = 64\n[quota.q]\nper = \"tenant\"\nrate = \"2/day\"";
    let gateway = gateway(&upstream, quota, "\"q\"");
    let mut client = gateway.client();
    let tenant = |text: &str| terms("SendMessage", "null", text);
    // One bucket for all that is no tenant.
    let long = format!("\"{}\"", "x".repeat(257));
    let long_in_escapes = format!("\"{}\"", "\\u0078".repeat(257));
    assert!(!is_over(&mut client, &tenant("null")));
    assert!(!is_over(&mut client, &tenant("\"\"")));
    for none in [
        "null",
        "7",
        "{\"a\":1}",
        "[]",
        "true",
        &long,
        &long_in_escapes,
    ] {
        assert!(is_over(&mut client, &tenant(none)), "{none}");
    }
    assert!(is_over(&mut client, &call("1")));
    // One for each other, however it is written.
    assert!(!is_over(&mut client, &tenant("\"east\"")));
    assert!(!is_over(&mut client, &tenant("\"\\u0065ast\"")));
    assert!(is_over(&mut client, &tenant("\"east\"")));
    let longest = format!("\"{}\"", "\\u0078".repeat(256));
    assert!(!is_over(&mut client, &tenant(&longest)));
    assert!(!is_over(
        &mut client,
        &tenant(&format!("\"{}\"", "x".repeat(256)))
    ));
    assert!(is_over(&mut client, &tenant(&longest)));
    // Whoever makes them up gets into the bucket of strangers.
    let admitted = (0..500)
        .filter(|number| !is_over(&mut client, &tenant(&format!("\"t{number}\""))))
        .count();
    assert!(admitted < 80, "{admitted}");
    assert!(gateway.series("forecourt_ratelimit_keys") < 70.0);
    assert!(gateway.series("forecourt_ratelimit_overflow_total") > 400.0);
    assert!(is_over(&mut client, &tenant("\"east\"")), "its debt stays");
}

#[test]
fn only_the_calls_that_are_named_count_and_are_told() {
    let upstream = Upstream::recording();
    let tables = "[quota.leads]\nper = \"caller\"\nrate = \"1/day\"\nskills = [\"lead.submit\"]\n\
                  [quota.gets]\nper = \"caller\"\nrate = \"2/day\"\nmethods = [\"GetTask\"]\n\
                  [quota.all]\nper = \"caller\"\nrate = \"100/day\"";
    let gateway = gateway(&upstream, tables, "\"leads\", \"gets\", \"all\"");
    let mut client = gateway.client();
    let policy = |answer: &Answer| answer.head.one("ratelimit-policy").unwrap();
    let state = |answer: &Answer| answer.head.one("ratelimit").unwrap();
    let get = terms("GetTask", "null", "null");
    let answer = sent(&mut client, &skilled("lead.submit"));
    let [leads, gets, all] = [
        "\"leads\";q=1;w=86400",
        "\"gets\";q=2;w=86400",
        "\"all\";q=100;w=86400",
    ];
    assert_eq!(policy(&answer), format!("{leads}, {all}"));
    assert_eq!(state(&answer), "\"leads\";r=0;t=86400, \"all\";r=99;t=864");
    let answer = sent(&mut client, &get);
    assert_eq!(policy(&answer), format!("{gets}, {all}"));
    assert_eq!(state(&answer), "\"gets\";r=1;t=43200, \"all\";r=98;t=864");
    let answer = sent(&mut client, &skilled("inventory.search"));
    assert_eq!(policy(&answer), all);
    assert!(is_over(&mut client, &skilled("lead.submit")));
    assert_eq!(gateway.last_line()["quota"], "leads");
    assert!(!is_over(&mut client, &get));
    assert!(is_over(&mut client, &get));
    assert_eq!(gateway.last_line()["quota"], "gets");
    assert_eq!(gateway.last_line()["limit_source"], "local");
    assert!(!is_over(&mut client, &skilled("inventory.search")));
    // What could not be read counts where every call counts.
    assert_eq!(sent(&mut client, "{").code(), -32700);
    let answer = sent(&mut client, &skilled("inventory.facets"));
    assert_eq!(state(&answer), "\"all\";r=93;t=864");
    let decided = |quota: &str, decision: &str| {
        gateway.series(&format!(
            "forecourt_ratelimit_decisions_total{{quota=\"{quota}\",decision=\"{decision}\",source=\"local\"}}"
        ))
    };
    assert_eq!(
        [decided("leads", "admitted"), decided("leads", "refused")],
        [1.0, 1.0]
    );
    assert_eq!(
        [decided("gets", "admitted"), decided("gets", "refused")],
        [2.0, 1.0]
    );
    assert_eq!(
        [decided("all", "admitted"), decided("all", "refused")],
        [6.0, 0.0]
    );
}

#[test]
fn a_dear_call_counts_more_and_waits_longer() {
    let upstream = Upstream::recording();
    let quota = "[quota.q]\nper = \"caller\"\nrate = \"60/min\"\nburst = 20\n\
                 cost = { \"lead.submit\" = 10, SendStreamingMessage = 3, SendMessage = 2 }";
    let gateway = gateway(&upstream, quota, "\"q\"");
    let mut client = gateway.client();
    let left = |answer: &Answer| answer.head.one("ratelimit").unwrap();
    let lead = skilled("lead.submit");
    assert_eq!(left(&sent(&mut client, &lead)), "\"q\";r=10;t=1");
    assert_eq!(
        left(&sent(&mut client, &skilled("made.up"))),
        "\"q\";r=8;t=1"
    );
    let get = terms("GetTask", "null", "null");
    assert_eq!(left(&sent(&mut client, &get)), "\"q\";r=7;t=1");
    let stream = terms("SendStreamingMessage", "null", "null");
    assert_eq!(left(&sent(&mut client, &stream)), "\"q\";r=4;t=1");
    let answer = sent(&mut client, &lead);
    assert_eq!(wait(&answer), Some(6000));
    let line = gateway.last_line();
    assert_eq!((&line["quota"], &line["cost"]), (&"q".into(), &10.into()));
    // What is cheaper still passes.
    assert_eq!(left(&sent(&mut client, &stream)), "\"q\";r=1;t=1");
    assert_eq!(wait(&sent(&mut client, &lead)), Some(9000));
    gateway.clock.advance(Duration::from_millis(8999));
    assert_eq!(wait(&sent(&mut client, &lead)), Some(1));
    gateway.clock.advance(Duration::from_millis(1));
    assert_eq!(wait(&sent(&mut client, &lead)), None);
    assert_eq!(wait(&sent(&mut client, &get)), Some(1000));
    assert!(gateway.last_line().get("cost").is_none());
}
