//! Decides which worker serves a new connection, so that all have about the same number of them.
//!
//! The system spreads connections over the listening sockets of an address by chance, and an
//! inherited socket gives them to whoever asks first. So a worker that has more than its share hands
//! what it accepted to the one that has least, before a byte is read. Must never move a connection
//! that is being served, and never lose one: what cannot be handed over is kept.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::observe::Presence;

/// A worker has more than its share from one part in so many above the mean. With few connections
/// any surplus counts; among many, chance alone stays far below, and handing over costs a little.
const TOLERANCE: i64 = 16;

/// One worker's place at one listener: what it has open, and the way to the other workers.
#[derive(Debug)]
pub struct Desk {
    load: Gauge,
    others: Vec<Door>,
    inbox: UnboundedReceiver<Arrival>,
}

/// The way to another worker.
#[derive(Debug)]
pub(super) struct Door {
    load: Gauge,
    inbox: UnboundedSender<Arrival>,
}

/// A connection on its way to its worker. It has its place already.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) socket: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) place: Place,
}

/// The desks of all workers at one listener, in order. `loads` counts the open connections of each
/// worker, over all listeners.
#[must_use]
pub fn desks(loads: &[Gauge]) -> Vec<Desk> {
    let (doors, inboxes): (Vec<_>, Vec<_>) = loads.iter().map(|_| unbounded_channel()).unzip();
    inboxes
        .into_iter()
        .zip(loads)
        .enumerate()
        .map(|(me, (inbox, load))| Desk {
            load: load.clone(),
            others: loads
                .iter()
                .zip(&doors)
                .enumerate()
                .filter(|(other, _)| *other != me)
                .map(|(_, (load, inbox))| Door {
                    load: load.clone(),
                    inbox: inbox.clone(),
                })
                .collect(),
            inbox,
        })
        .collect()
}

impl Desk {
    /// The worker that is to have the next connection; `None`: this one.
    fn better(&self) -> Option<&Door> {
        let mine = self.load.get();
        let (mut workers, mut sum) = (1, mine);
        let mut least: Option<(i64, &Door)> = None;
        for door in self.others.iter().filter(|door| !door.inbox.is_closed()) {
            let load = door.load.get();
            workers += 1;
            sum += load;
            if least.is_none_or(|(known, _)| load < known) {
                least = Some((load, door));
            }
        }
        let (_, door) = least?;
        (mine * workers * TOLERANCE > sum * (TOLERANCE + 1)).then_some(door)
    }

    /// Counts a new connection with the worker that is to have it, at once, so that a burst
    /// spreads. `None`: there are `limit` connections.
    pub(super) fn seat(&self, open: &Open, limit: usize) -> Option<(Place, Option<&Door>)> {
        let door = self.better();
        let load = door.map_or(&self.load, |door| &door.load);
        Some((open.take(limit, load)?, door))
    }

    /// Counts a connection here that another worker could not be given.
    pub(super) fn keep(&self, place: &mut Place) {
        place.on_worker = Presence::of(&self.load);
    }

    /// The next connection that another worker hands over; `None`: none of them accepts any more.
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        self.inbox.recv().await
    }

    /// From here on this worker keeps what it accepts.
    pub(super) fn close_doors(&mut self) {
        self.others.clear();
    }
}

impl Door {
    /// Hands a connection over, or gives it back when the worker is gone.
    pub(super) fn hand(&self, arrival: Arrival) -> Result<(), Arrival> {
        self.inbox.send(arrival).map_err(|unsent| unsent.0)
    }
}

/// The open connections of all workers, and those of one listener among them.
#[derive(Clone, Debug)]
pub struct Open {
    /// Over all listeners and workers.
    pub all: Arc<AtomicUsize>,
    /// Of this listener.
    pub here: Gauge,
}

/// A counted place among the open connections; given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    all: Arc<AtomicUsize>,
    _here: Presence,
    on_worker: Presence,
}

impl Open {
    fn take(&self, limit: usize, worker: &Gauge) -> Option<Place> {
        if self.all.fetch_add(1, Ordering::Relaxed) >= limit {
            self.all.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Place {
            all: Arc::clone(&self.all),
            _here: Presence::of(&self.here),
            on_worker: Presence::of(worker),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open() -> Open {
        Open {
            all: Arc::default(),
            here: Gauge::default(),
        }
    }

    fn loads(workers: usize) -> Vec<Gauge> {
        (0..workers).map(|_| Gauge::default()).collect()
    }

    fn counts(loads: &[Gauge]) -> Vec<i64> {
        loads.iter().map(Gauge::get).collect()
    }

    /// One connection that this worker accepts.
    fn arrive(desk: &Desk, open: &Open) -> Place {
        desk.seat(open, usize::MAX).unwrap().0
    }

    #[test]
    fn a_burst_at_one_worker_is_spread() {
        for workers in [1, 2, 3, 8] {
            let (loads, open) = (loads(workers), open());
            let desks = desks(&loads);
            let places: Vec<_> = (0..64).map(|_| arrive(&desks[0], &open)).collect();
            let share = 64 / i64::try_from(workers).unwrap();
            let counts = counts(&loads);
            assert!(
                counts.iter().all(|it| (share - 2..=share + 3).contains(it)),
                "{counts:?}"
            );
            assert_eq!(open.all.load(Ordering::Relaxed), 64);
            assert_eq!(open.here.get(), 64);
            drop(places);
            assert_eq!(counts_of(&loads), 0);
            assert_eq!((open.all.load(Ordering::Relaxed), open.here.get()), (0, 0));
        }
    }

    fn counts_of(loads: &[Gauge]) -> i64 {
        counts(loads).iter().sum()
    }

    #[test]
    fn the_limit_counts_all_workers() {
        let (loads, open) = (loads(2), open());
        let desks = desks(&loads);
        let one = desks[0].seat(&open, 2).unwrap();
        let two = desks[1].seat(&open, 2).unwrap();
        assert!(desks[0].seat(&open, 2).is_none());
        assert_eq!(counts(&loads), [1, 1]);
        drop((one, two));
        assert!(desks[0].seat(&open, 2).is_some());
    }

    #[test]
    fn a_worker_that_is_gone_gets_nothing() {
        let (loads, open) = (loads(3), open());
        let mut desks = desks(&loads);
        drop(desks.remove(1));
        let _places: Vec<_> = (0..10).map(|_| arrive(&desks[0], &open)).collect();
        assert_eq!(counts(&loads), [5, 0, 5]);
    }

    #[tokio::test]
    async fn what_cannot_be_handed_over_comes_back_and_is_kept() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = client.local_addr().unwrap();
        let (loads, open) = (loads(2), open());
        let mut desks = desks(&loads);
        let other = desks.pop().unwrap();
        let desk = desks.pop().unwrap();
        let _first = arrive(&desk, &open);
        let (place, door) = desk.seat(&open, usize::MAX).unwrap();
        assert_eq!(counts(&loads), [1, 1]);
        // It goes after it was asked and before it is given.
        drop(other);
        let arrival = Arrival {
            socket: client,
            peer,
            place,
        };
        let mut arrival = door.unwrap().hand(arrival).unwrap_err();
        desk.keep(&mut arrival.place);
        assert_eq!(counts(&loads), [2, 0]);
        drop(arrival);
        assert_eq!(counts(&loads), [1, 0]);
        assert_eq!(open.all.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn the_inbox_ends_with_the_last_that_accepts() {
        let mut desks = desks(&loads(3));
        desks[0].close_doors();
        desks[1].close_doors();
        let mut third = desks.pop().unwrap();
        assert!(third.next().await.is_none());
        third.close_doors();
        assert!(desks[0].next().await.is_none());
    }

    proptest! {
        /// Whatever ends and wherever connections come in: at two workers no split of 64 that is
        /// reached by opening is worse than 60 to 40.
        #[test]
        fn whoever_accepts_and_whatever_ends(
            steps in proptest::collection::vec((any::<bool>(), any::<bool>(), 0_usize..64), 0..400),
        ) {
            let (loads, open) = (loads(2), open());
            let desks = desks(&loads);
            let mut places: Vec<Place> = Vec::new();
            for (ends, second, which) in steps {
                if ends && !places.is_empty() {
                    let which = which % places.len();
                    places.swap_remove(which);
                } else if places.len() < 64 {
                    places.push(arrive(&desks[usize::from(second)], &open));
                }
                prop_assert_eq!(counts_of(&loads), i64::try_from(places.len()).unwrap());
            }
            // All that are left end up on one side, at worst; what is opened then levels it.
            let missing = 64 - places.len();
            let before = (loads[0].get() - loads[1].get()).unsigned_abs();
            for _ in 0..missing {
                places.push(arrive(&desks[0], &open));
            }
            let difference = (loads[0].get() - loads[1].get()).unsigned_abs();
            let unavoidable = before.saturating_sub(u64::try_from(missing).unwrap());
            prop_assert!(difference <= unavoidable.max(4), "{:?}", counts(&loads));
        }
    }
}
