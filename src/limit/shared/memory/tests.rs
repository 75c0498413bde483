//! What is known of buckets that a store keeps.

use super::*;
use crate::limit::fingerprint::Domain;
use std::num::NonZeroU32;

fn at(ms: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + ms * 1_000_000)
}

fn bucket(name: &str) -> Fingerprint {
    Fingerprint::of(Domain::Quota, [name.as_bytes()])
}

/// 1000/s, 100 at once.
fn pace() -> Pace {
    Pace::new(Duration::from_millis(1), NonZeroU32::new(100).unwrap())
}

fn want(pace: &Pace, cost: u32, lease: u32) -> Want<'_> {
    Want {
        place: 0,
        pace,
        bucket: bucket("b"),
        of: Tag { owner: 1, quota: 2 },
        cost,
        lease,
    }
}

fn said(granted: u32, debt_ms: u64) -> Said {
    Said {
        granted,
        wait: 0,
        debt: debt_ms * 1_000_000,
    }
}

#[track_caller]
fn asks(memory: &Memory, want: &Want<'_>, now: Moment) -> (u32, Arc<Flight>) {
    let word = memory.look(want, Digest::nothing, now);
    let Word::Ask {
        most,
        flight: Some(flight),
        ..
    } = word
    else {
        panic!("{word:?}")
    };
    (most, flight)
}

#[track_caller]
fn refused(memory: &Memory, want: &Want<'_>, now: Moment) -> Duration {
    let word = memory.look(want, Digest::nothing, now);
    let Word::Refused(wait) = word else {
        panic!("{word:?}")
    };
    wait
}

fn takes(memory: &Memory, want: &Want<'_>, now: Moment) -> bool {
    matches!(memory.look(want, Digest::nothing, now), Word::Taken)
}

#[test]
fn what_was_granted_is_used_up_or_lapses_with_the_question_that_brought_it() {
    let (memory, pace) = (Memory::new(), pace());
    let want = want(&pace, 1, 20);
    let (most, flight) = asks(&memory, &want, at(0));
    assert_eq!(most, 20);
    memory.note(&want, said(20, 20), (at(0), at(5)));
    memory.landed(want.bucket, &flight);
    for _ in 0..10 {
        assert!(takes(&memory, &want, at(199)));
    }
    memory.put_back(&want);
    for _ in 0..10 {
        assert!(takes(&memory, &want, at(199)));
    }
    asks(&memory, &want, at(199));
    let other = Memory::new();
    let (_, flight) = asks(&other, &want, at(0));
    other.note(&want, said(20, 20), (at(0), at(5)));
    other.landed(want.bucket, &flight);
    assert!(!takes(&other, &want, at(200)));
}

#[test]
fn a_refusal_holds_as_long_as_it_surely_does_and_is_told_as_long_as_it_may() {
    let (memory, pace) = (Memory::new(), pace());
    let want = want(&pace, 1, 1);
    let (_, flight) = asks(&memory, &want, at(0));
    // Sent at 0, answered at 8: the store looked somewhen between.
    memory.note(&want, said(0, 150), (at(0), at(8)));
    memory.landed(want.bucket, &flight);
    // 150 owed of 100, and one to come: 51 from when the store looked.
    assert_eq!(refused(&memory, &want, at(10)), Duration::from_millis(49));
    assert_eq!(refused(&memory, &want, at(50)), Duration::from_millis(9));
    asks(&memory, &want, at(51));
}

#[test]
fn a_dearer_call_is_refused_longer_and_a_cheaper_one_shorter() {
    let (memory, pace) = (Memory::new(), pace());
    let one = want(&pace, 1, 1);
    let ten = want(&pace, 10, 1);
    let (_, flight) = asks(&memory, &ten, at(0));
    memory.note(&ten, said(0, 95), (at(0), at(0)));
    memory.landed(ten.bucket, &flight);
    assert_eq!(refused(&memory, &ten, at(0)), Duration::from_millis(5));
    asks(&memory, &one, at(0));
}

#[test]
fn with_a_lease_a_question_waits_until_a_quarter_is_there() {
    let (memory, pace) = (Memory::new(), pace());
    let want = want(&pace, 1, 20);
    let (_, flight) = asks(&memory, &want, at(0));
    memory.note(&want, said(1, 100), (at(0), at(0)));
    memory.landed(want.bucket, &flight);
    assert_eq!(refused(&memory, &want, at(1)), Duration::from_millis(4));
    asks(&memory, &want, at(5));
}

#[test]
fn a_bound_is_believed_for_a_second() {
    let (memory, pace) = (Memory::new(), pace());
    let want = want(&pace, 1, 1);
    let (_, flight) = asks(&memory, &want, at(0));
    memory.note(&want, said(0, 1_000_000), (at(0), at(3)));
    memory.landed(want.bucket, &flight);
    refused(&memory, &want, at(1002));
    asks(&memory, &want, at(1003));
    // And no longer than a refund.
    let other = Memory::new();
    let (_, flight) = asks(&other, &want, at(0));
    other.note(&want, said(0, 100), (at(0), at(0)));
    other.landed(want.bucket, &flight);
    refused(&other, &want, at(0));
    other.lower(want.bucket, 1_000_000);
    asks(&other, &want, at(0));
}

#[test]
fn those_who_wait_are_asked_for_together_next_time() {
    let (memory, pace) = (Memory::new(), pace());
    let want = want(&pace, 1, 1);
    let (most, flight) = asks(&memory, &want, at(0));
    assert_eq!(most, 1);
    for _ in 0..7 {
        assert!(matches!(
            memory.look(&want, Digest::nothing, at(0)),
            Word::Wait(_)
        ));
    }
    memory.waits_no_more(&want);
    memory.note(&want, said(1, 1), (at(0), at(0)));
    memory.landed(want.bucket, &flight);
    (0..6).for_each(|_| memory.waits_no_more(&want));
    let (most, flight) = asks(&memory, &want, at(0));
    assert_eq!(most, 6);
    // A question that failed leaves no wish behind.
    assert!(matches!(
        memory.look(&want, Digest::nothing, at(0)),
        Word::Wait(_)
    ));
    flight.fails(Failure::Timeout);
    memory.landed(want.bucket, &flight);
    memory.waits_no_more(&want);
    assert_eq!(asks(&memory, &want, at(0)).0, 1);
}

#[tokio::test]
async fn whoever_waits_goes_on_however_the_question_ends() {
    for failure in [None, Some(Failure::Closed)] {
        let (memory, pace) = (Memory::new(), pace());
        let want = want(&pace, 1, 1);
        let (_, flight) = asks(&memory, &want, at(0));
        let waiting = Arc::clone(&flight);
        let waiting = tokio::spawn(async move { waiting.back().await });
        tokio::task::yield_now().await;
        if let Some(failure) = failure {
            flight.fails(failure);
        }
        memory.landed(want.bucket, &flight);
        assert_eq!(waiting.await.unwrap(), failure);
        assert_eq!(flight.back().await, failure);
    }
}

#[test]
fn it_is_bounded_and_forgets_what_says_nothing_first() {
    let (memory, pace) = (Memory::new(), pace());
    let mut unknown = 0;
    for index in 0..200_000_u32 {
        let want = Want {
            bucket: bucket(&index.to_string()),
            ..want(&pace, 1, 1)
        };
        let word = memory.look(&want, Digest::nothing, at(0));
        let Word::Ask { flight, .. } = word else {
            panic!("{word:?}")
        };
        if let Some(flight) = flight {
            memory.note(&want, said(1, 50), (at(0), at(0)));
            memory.landed(want.bucket, &flight);
        } else {
            unknown += 1;
        }
    }
    assert_eq!(memory.len(), SHARDS * PER_SHARD);
    assert_eq!(unknown, 200_000 - SHARDS * PER_SHARD);
    // Later they are full again, and make room.
    asks(&memory, &want(&pace, 1, 1), at(51));
    assert!(memory.len() < SHARDS * PER_SHARD);
    (0..SHARDS).for_each(|shard| memory.sweep(shard, at(60)));
    assert_eq!(memory.len(), 1, "the one that is asked about");
}

#[test]
fn an_owner_is_forgotten_with_what_is_on_its_way_and_nobody_else() {
    let (memory, pace) = (Memory::new(), pace());
    let mine = want(&pace, 1, 20);
    let other = Want {
        bucket: bucket("other"),
        of: Tag { owner: 9, quota: 2 },
        ..mine
    };
    for want in [&mine, &other] {
        let (_, flight) = asks(&memory, want, at(0));
        memory.note(want, said(20, 60), (at(0), at(0)));
        memory.landed(want.bucket, &flight);
    }
    let (_, late) = asks(&memory, &Want { cost: 40, ..mine }, at(1));
    let found = memory.of(&[1]);
    assert_eq!(found, [(mine.bucket, mine.of, Digest::nothing())]);
    memory.forget(&[1]);
    assert_eq!(memory.of(&[1]), []);
    // It was asked before the bucket was forgiven.
    memory.note(&mine, said(0, 200), (at(1), at(2)));
    memory.landed(mine.bucket, &late);
    assert_eq!(memory.of(&[1]), []);
    asks(&memory, &mine, at(2));
    let word = memory.look(&other, Digest::nothing, at(2));
    assert!(matches!(word, Word::Taken), "{word:?}");
}
