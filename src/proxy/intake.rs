//! Decides how a request body is read: whole, within its size limit, its time, and the memory that
//! all bodies together may take.
//!
//! A body announced as too large is refused before a byte is read. Must never hold bytes that are
//! not counted in the budget.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::timeout;

/// The bytes of request bodies held now, over all workers.
#[derive(Debug, Default)]
pub struct Budget {
    used: AtomicU64,
    gauge: Gauge,
}

impl Budget {
    /// An unused budget that shows its use on a gauge.
    #[must_use]
    pub fn new(gauge: Gauge) -> Self {
        Self {
            used: AtomicU64::new(0),
            gauge,
        }
    }
}

/// What may be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Bytes of one body.
    pub(super) body: u64,
    /// Bytes of all bodies held at once.
    pub(super) in_flight: u64,
    /// Time for the whole body.
    pub(super) time: Duration,
    /// Whether a body says where it ends beside its bytes, as over HTTP/2.
    pub(super) is_marked: bool,
}

/// A body held in memory, counted until dropped.
#[derive(Debug)]
pub(super) struct Held {
    /// The bytes as they came.
    pub(super) bytes: Bytes,
    reservation: Reservation,
}

impl Held {
    /// How many bytes.
    #[must_use]
    pub(super) const fn len(&self) -> u64 {
        self.reservation.bytes
    }
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(super) enum Unread {
    /// Larger than one body may be.
    TooLarge,
    /// Not complete in time.
    TooSlow,
    /// All bodies together are too large.
    NoRoom,
    /// The client broke its framing, or went away.
    Broken(Box<dyn Error + Send + Sync>),
    /// The client took its stream back without saying that anything is wrong.
    Cut,
}

/// Reads a body to its end. `announced` is the length the client told, where it told one.
///
/// # Errors
/// Why it was not read; what was read is dropped.
pub(super) async fn read<B>(
    body: B,
    announced: Option<u64>,
    budget: &Arc<Budget>,
    allowance: Allowance,
) -> Result<Held, Unread>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if announced.is_some_and(|length| length > allowance.body) {
        return Err(Unread::TooLarge);
    }
    let mut reservation = Reservation::new(budget);
    let reading = collect(body, &mut reservation, announced, allowance);
    let bytes = match timeout(allowance.time, reading).await {
        Ok(read) => read?,
        Err(_) => return Err(Unread::TooSlow),
    };
    Ok(Held { bytes, reservation })
}

async fn collect<B>(
    mut body: B,
    reservation: &mut Reservation,
    announced: Option<u64>,
    allowance: Allowance,
) -> Result<Bytes, Unread>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut first: Option<Bytes> = None;
    let mut joined: Option<BytesMut> = None;
    let mut length = 0_u64;
    loop {
        let next = poll_fn(|context| {
            let polled = Pin::new(&mut body).poll_frame(context);
            if polled.is_pending() {
                // Of a piece that is not whole yet, what is here already is held too. What was only
                // announced is not: whoever sends nothing takes nothing from others.
                let hint = body.size_hint();
                let here = hint.lower() * u64::from(hint.exact().is_none());
                reservation.grow(length.saturating_add(here), allowance.in_flight)?;
            }
            polled.map(Ok)
        });
        let Some(frame) = next.await? else { break };
        // Trailers are not forwarded: nothing was promised about them.
        let Ok(piece) = frame
            .map_err(|error| Unread::Broken(error.into()))?
            .into_data()
        else {
            continue;
        };
        length = length.saturating_add(piece.len() as u64);
        if length > allowance.body {
            return Err(Unread::TooLarge);
        }
        reservation.grow(length, allowance.in_flight)?;
        match (&mut joined, first.take()) {
            (Some(joined), _) => joined.extend_from_slice(&piece),
            (None, None) => first = Some(piece),
            (None, Some(start)) => {
                let expected = announced.unwrap_or(0).max(length);
                let mut both = BytesMut::with_capacity(usize::try_from(expected).unwrap_or(0));
                both.extend_from_slice(&start);
                both.extend_from_slice(&piece);
                joined = Some(both);
            }
        }
    }
    if allowance.is_marked && !body.is_end_stream() {
        return Err(Unread::Cut);
    }
    Ok(joined.map_or_else(|| first.unwrap_or_default(), BytesMut::freeze))
}

#[derive(Debug)]
struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    fn new(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Reserves up to `total` bytes.
    fn grow(&mut self, total: u64, limit: u64) -> Result<(), Unread> {
        let more = total.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > limit {
            self.budget.used.fetch_sub(more, Ordering::Relaxed);
            return Err(Unread::NoRoom);
        }
        self.budget.gauge.inc_by(signed(more));
        self.bytes = total;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
            self.budget.gauge.dec_by(signed(self.bytes));
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use std::task::{Context, Poll};

    const ALLOWANCE: Allowance = Allowance {
        body: 10,
        in_flight: 15,
        time: Duration::from_secs(30),
        is_marked: false,
    };

    struct Pieces(Vec<&'static [u8]>, bool);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            match self.0.pop() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece))))),
                None if self.1 => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    fn pieces(mut all: Vec<&'static [u8]>) -> Pieces {
        all.reverse();
        Pieces(all, false)
    }

    #[tokio::test]
    async fn joins_pieces_and_counts_them_until_dropped() {
        let budget = Arc::new(Budget::default());
        let held = read(pieces(vec![b"abc", b"", b"defg"]), None, &budget, ALLOWANCE)
            .await
            .unwrap();
        assert_eq!(held.bytes, "abcdefg");
        assert_eq!(held.len(), 7);
        assert_eq!(budget.used.load(Ordering::Relaxed), 7);
        drop(held);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
        let empty = read(pieces(vec![]), None, &budget, ALLOWANCE)
            .await
            .unwrap();
        assert!(empty.bytes.is_empty());
    }

    #[tokio::test]
    async fn an_announced_length_is_refused_before_reading() {
        let budget = Arc::new(Budget::default());
        let never = Pieces(vec![], true);
        assert!(matches!(
            read(never, Some(11), &budget, ALLOWANCE).await,
            Err(Unread::TooLarge)
        ));
    }

    #[tokio::test]
    async fn an_unannounced_length_is_refused_where_it_passes_the_limit() {
        let budget = Arc::new(Budget::default());
        let body = pieces(vec![b"123456", b"78901"]);
        assert!(matches!(
            read(body, None, &budget, ALLOWANCE).await,
            Err(Unread::TooLarge)
        ));
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded() {
        let budget = Arc::new(Budget::default());
        let first = read(pieces(vec![b"1234567890"]), None, &budget, ALLOWANCE)
            .await
            .unwrap();
        assert!(matches!(
            read(pieces(vec![b"123456"]), None, &budget, ALLOWANCE).await,
            Err(Unread::NoRoom)
        ));
        drop(first);
        assert!(
            read(pieces(vec![b"123456"]), None, &budget, ALLOWANCE)
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn what_came_is_counted_and_what_was_announced_is_not() {
        /// Some of a piece is here; the rest never comes.
        struct Begun(u64);

        impl Body for Begun {
            type Data = Bytes;
            type Error = std::io::Error;

            fn poll_frame(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
                Poll::Pending
            }

            fn size_hint(&self) -> http_body::SizeHint {
                let mut hint = http_body::SizeHint::default();
                hint.set_upper(10);
                hint.set_lower(self.0);
                hint
            }
        }

        let budget = Arc::new(Budget::default());
        let used = || budget.used.load(Ordering::Relaxed);
        let mut nobody = Context::from_waker(std::task::Waker::noop());
        let mut begun = Vec::new();
        for (came, all) in [(0, 0), (9, 9), (0, 9), (6, 15)] {
            let mut reading = Box::pin(read(Begun(came), Some(10), &budget, ALLOWANCE));
            assert!(reading.as_mut().poll(&mut nobody).is_pending());
            assert_eq!(used(), all);
            begun.push(reading);
        }
        let over = read(Begun(1), Some(10), &budget, ALLOWANCE).await;
        assert!(matches!(over, Err(Unread::NoRoom)));
        drop(begun);
        assert_eq!(used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_time() {
        let budget = Arc::new(Budget::default());
        let stalled = Pieces(vec![b"1"], true);
        assert!(matches!(
            read(stalled, None, &budget, ALLOWANCE).await,
            Err(Unread::TooSlow)
        ));
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
