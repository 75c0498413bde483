//! What is kept, for how long, and how it is found.

use super::*;
use crate::protocol::Step;

fn line<'l>(ms: i64, request_id: &'l str) -> Line<'l> {
    Line {
        request_id: Some(request_id.as_bytes()),
        endpoint: Some("lakeside"),
        contract: Some("aap/3.0"),
        caller: Some("acme"),
        rpc_method: Some(b"SendMessage"),
        skill: Some(b"lead.submit"),
        normalized: &["a2a-extensions"],
        status: Some(200),
        rpc_code: Some(-1),
        error_id: Some("0190b3a4-0000-7000-8000-000000000001"),
        quota: Some("per-buyer"),
        cost: Some(3),
        limit_source: Some("local"),
        retry_after_ms: Some(1500),
        reported: [Step::Version].into_iter().collect(),
        stripped_query: true,
        why: Some("because"),
        upstream: Some("dealer"),
        bytes_in: 7,
        duration: Duration::from_micros(12),
        upstream_duration: Some(Duration::from_micros(11)),
        generation: 4,
        ..Line::new(
            Timestamp::from_millisecond(ms).unwrap(),
            Outcome::RateLimited,
        )
    }
}

#[test]
fn what_a_line_says_is_found_by_both_ids() {
    let decisions = Decisions::new(2);
    decisions.ring(1).keep(&line(5, "req-1"));
    let [one] = &decisions.of("req-1")[..] else {
        panic!("not found")
    };
    let expected = Decision {
        ts: Timestamp::from_millisecond(5).unwrap(),
        request_id: "req-1".into(),
        endpoint: Some("lakeside".into()),
        contract: Some("aap/3.0".into()),
        caller: Some("acme".into()),
        rpc_method: Some("SendMessage".into()),
        skill: Some("lead.submit".into()),
        normalized: vec!["a2a-extensions"],
        status: Some(200),
        rpc_code: Some(-1),
        outcome: Outcome::RateLimited,
        error_id: Some("0190b3a4-0000-7000-8000-000000000001".into()),
        quota: Some("per-buyer".into()),
        cost: Some(3),
        limit_source: Some("local".into()),
        retry_after_ms: Some(1500),
        reported: [Step::Version].into_iter().collect(),
        stripped_query: true,
        why: Some("because".into()),
        upstream: Some("dealer".into()),
        bytes_in: 7,
        duration: Duration::from_micros(12),
        upstream_duration: Some(Duration::from_micros(11)),
        generation: 4,
    };
    assert_eq!(*one, expected);
    let by_error = decisions.of("0190B3A4-0000-7000-8000-000000000001");
    assert_eq!(by_error, [expected]);
    assert!(decisions.of("req-2").is_empty());
    assert!(decisions.of("").is_empty());
}

#[test]
fn an_entry_that_is_written_over_keeps_nothing_of_what_it_was() {
    let decisions = Decisions::keeping(1, 1);
    let ring = decisions.ring(0);
    ring.keep(&line(1, "req-1"));
    let bare = Line::new(Timestamp::from_millisecond(2).unwrap(), Outcome::NoRoute);
    ring.keep(&bare);
    let [one] = &decisions.find(10, |_| true)[..] else {
        panic!("more than fit")
    };
    let fresh = Entry::of(&bare).told();
    assert_eq!(*one, fresh);
    assert_eq!(
        (&*one.request_id, &one.caller, one.status),
        ("", &None, None)
    );
}

#[test]
fn the_last_ten_thousand_are_kept_and_told_newest_first() {
    for workers in [1, 2, 3, 64] {
        let decisions = Decisions::new(workers);
        let rings: Vec<_> = (0..workers).map(|it| decisions.ring(it)).collect();
        let ids: Vec<String> = (0..KEPT + 500).map(|it| format!("r{it}")).collect();
        for (at, id) in ids.iter().enumerate() {
            rings[at % workers].keep(&line(at as i64, id));
        }
        let kept = decisions.find(KEPT, |_| true);
        let kept: Vec<_> = kept.iter().map(|it| &*it.request_id).collect();
        let last: Vec<_> = ids.iter().rev().take(KEPT).collect();
        assert_eq!(kept, last, "{workers}");
        assert_eq!(decisions.of("r0").is_empty(), workers == 1, "{workers}");
        // However many workers, no more than twice as many take memory.
        let room: usize = decisions.rings.iter().map(|it| it.lock().most).sum();
        assert!(room <= 2 * KEPT + 2 * workers, "{room}");
    }
}

#[test]
fn what_is_wanted_is_found_and_no_more() {
    let decisions = Decisions::new(1);
    let ring = decisions.ring(0);
    for at in 0..1000 {
        ring.keep(&Line {
            endpoint: Some(if at % 10 == 0 { "rare" } else { "often" }),
            ..line(at, "same")
        });
    }
    let rare = decisions.find(7, |it| it.endpoint == b"rare");
    let times: Vec<_> = rare.iter().map(|it| it.ts.as_millisecond()).collect();
    assert_eq!(times, [990, 980, 970, 960, 950, 940, 930]);
    // An id that a caller chose may stand for many.
    assert_eq!(decisions.of("same").len(), 1000);
}

#[test]
fn texts_are_cut_where_they_have_no_room() {
    let long = "é".repeat(500);
    let decisions = Decisions::new(1);
    decisions.ring(0).keep(&Line {
        endpoint: Some(&long),
        caller: Some(&long),
        quota: Some(&long),
        rpc_method: Some(long.as_bytes()),
        why: Some(&long),
        ..line(1, &long)
    });
    let [one] = &decisions.of(&long)[..] else {
        panic!("not found")
    };
    assert_eq!(one.request_id, "é".repeat(64));
    assert_eq!(one.endpoint.as_deref(), Some(&*"é".repeat(32)));
    assert_eq!(one.caller.as_deref(), Some(&*"é".repeat(32)));
    assert_eq!(one.quota.as_deref(), Some(&*"é".repeat(32)));
    assert_eq!((&one.rpc_method, &one.why), (&None, &None));
    assert!(size_of::<Entry>() <= 512, "{}", size_of::<Entry>());
}

#[test]
fn looking_and_writing_do_not_disturb_each_other() {
    let decisions = Decisions::keeping(1, 100);
    let ring = decisions.ring(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for at in 0..50_000 {
                ring.keep(&line(at, "same"));
            }
        });
        loop {
            let found = decisions.find(1000, |_| true);
            let mut times: Vec<_> = found.iter().map(|it| it.ts.as_millisecond()).collect();
            assert!(times.len() <= 100 + AT_ONCE as usize, "{}", times.len());
            times.dedup();
            assert_eq!(times.len(), found.len());
            if times.first() == Some(&49_999) {
                return;
            }
        }
    });
}
