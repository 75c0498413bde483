//! Who is remembered, for how long, and in how much room.

use super::*;
use crate::limit::Moment;
use proptest::prelude::*;

fn caller(name: &str) -> Caller {
    Caller::proven(name.into(), None)
}

fn found(notables: &Notables, name: &str, now: Moment) -> Option<Notable> {
    let all = notables.all(now).into_iter();
    all.into_iter()
        .find(|notable| notable.caller.to_string() == name)
}

#[test]
fn a_caller_is_remembered_with_what_it_asked_and_what_refused_it() {
    let notables = Notables::default();
    let now = Moment::default();
    let [slow, wide]: [Arc<str>; 2] = ["slow".into(), "wide".into()];
    notables.admitted(&caller("acme"), 16, now);
    notables.admitted(&caller("acme"), 16, now);
    notables.refused(&caller("acme"), &slow, now);
    notables.refused(&caller("acme"), &wide, now);
    notables.refused(&caller("other"), &slow, now);
    let acme = found(&notables, "acme", now).unwrap();
    assert_eq!((acme.calls, acme.refused), (32, 2));
    assert_eq!(acme.quota.as_deref(), Some("wide"));
    let other = found(&notables, "other", now).unwrap();
    assert_eq!((other.calls, other.refused), (0, 1));
    assert!(found(&notables, "nobody", now).is_none());
}

#[test]
fn what_was_fades_and_is_forgotten() {
    let notables = Notables::default();
    let slow: Arc<str> = "slow".into();
    let at = |minutes: u64| Moment::from_nanos(minutes * 60_000_000_000);
    for _ in 0..5 {
        notables.refused(&caller("acme"), &slow, at(0));
    }
    let refused = |minutes| found(&notables, "acme", at(minutes)).map(|it| it.refused);
    assert_eq!(refused(4), Some(5));
    assert_eq!(refused(5), Some(2));
    assert_eq!(refused(9), Some(2));
    assert_eq!(refused(10), Some(1));
    assert_eq!(refused(15), None);
    notables.refused(&caller("acme"), &slow, at(500));
    assert_eq!(refused(500), Some(1));
    // Neither a year nor a clock that jumps back breaks it.
    assert_eq!(refused(0), Some(1));
    assert_eq!(refused(500_000), None);
}

proptest! {
    /// Whoever makes more calls than one in so many of its part is there, whatever a flood of
    /// strangers does; and the room is bounded.
    #[test]
    fn whoever_asks_most_is_never_crowded_out(
        strangers in 1..20_000_u32, every in 2..20_u32, seed in any::<u32>(),
    ) {
        let notables = Notables::default();
        let slow: Arc<str> = "slow".into();
        let now = Moment::default();
        let mut asked = 0;
        for number in 0..strangers {
            notables.refused(&caller(&format!("{seed} {number}")), &slow, now);
            if number % every == 0 {
                notables.refused(&caller("busy"), &slow, now);
                asked += 1;
            }
        }
        let busy = found(&notables, "busy", now);
        prop_assert!(notables.all(now).len() <= SHELVES * SHELF);
        prop_assert!(busy.is_some_and(|busy| busy.refused <= asked));
    }
}
