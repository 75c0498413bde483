//! Decides where the spans of recorded requests wait: each worker's in a buffer of its own, of which
//! the exporter takes what has come together. When nobody takes them, further ones are dropped and
//! counted: a collector that is away costs nothing but its spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;

use super::sampler::Sampler;
use super::span::{self, Recorded};
use crate::observe::line::Line;

/// The most bytes that wait for each worker. Spans of a request have about a thousand.
const FULL: usize = 4 << 20;

/// What the workers and the exporter share.
#[derive(Debug)]
pub(super) struct Desk {
    sheets: Mutex<Vec<Arc<Mutex<Sheet>>>>,
    /// Spans that wait, over all workers.
    waiting: AtomicUsize,
    /// How many may.
    most: usize,
    /// How many make a batch: then the exporter is woken.
    batch: usize,
    pub(super) due: Notify,
    dropped: Counter,
}

/// Spans of one worker that wait, encoded.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    bytes: Vec<u8>,
    count: usize,
    scratch: Vec<u8>,
}

/// A worker's way to record. Clones share one buffer: make one per worker.
#[derive(Clone, Debug)]
pub struct Tracer {
    desk: Arc<Desk>,
    sheet: Arc<Mutex<Sheet>>,
    sampler: Sampler,
}

impl Desk {
    pub(super) fn new(most: usize, batch: usize, dropped: Counter) -> Arc<Self> {
        Arc::new(Self {
            sheets: Mutex::default(),
            waiting: AtomicUsize::new(0),
            most,
            batch,
            due: Notify::new(),
            dropped,
        })
    }

    pub(super) fn tracer(self: &Arc<Self>, sampler: Sampler) -> Tracer {
        let sheet = Arc::<Mutex<Sheet>>::default();
        self.sheets.lock().push(Arc::clone(&sheet));
        Tracer {
            desk: Arc::clone(self),
            sheet,
            sampler,
        }
    }

    /// Takes what waits, as fields of `ScopeSpans`, of a worker at a time; and how many spans that is.
    pub(super) fn take(&self) -> Vec<(Vec<u8>, usize)> {
        let sheets: Vec<_> = {
            let mut sheets = self.sheets.lock();
            sheets.retain(|sheet| Arc::strong_count(sheet) > 1 || sheet.lock().count > 0);
            sheets.clone()
        };
        let taken = sheets.iter().filter_map(|sheet| {
            let mut sheet = sheet.lock();
            let count = std::mem::take(&mut sheet.count);
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            (count > 0).then(|| (std::mem::take(&mut sheet.bytes), count))
        });
        taken.collect()
    }

    /// So many spans were lost.
    pub(super) fn lost(&self, count: usize) {
        self.dropped.inc_by(count as u64);
    }
}

impl Tracer {
    /// Which traces are recorded.
    #[must_use]
    pub const fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// Leaves a request's spans to the exporter. Never waits.
    pub fn record(&self, line: &Line<'_>, recorded: &Recorded) {
        let spans = 1 + usize::from(recorded.exchange.is_some());
        let desk = &*self.desk;
        let before = desk.waiting.fetch_add(spans, Ordering::Relaxed);
        if before + spans > desk.most {
            desk.waiting.fetch_sub(spans, Ordering::Relaxed);
            desk.lost(spans);
            return;
        }
        let mut sheet = self.sheet.lock();
        let Sheet {
            bytes,
            count,
            scratch,
        } = &mut *sheet;
        if bytes.len() > FULL {
            desk.waiting.fetch_sub(spans, Ordering::Relaxed);
            desk.lost(spans);
            return;
        }
        *count += span::append(bytes, scratch, line, recorded);
        drop(sheet);
        if before < desk.batch && before + spans >= desk.batch {
            desk.due.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Timestamp;
    use crate::observe::trace::Context;
    use crate::protocol::Outcome;

    #[test]
    fn what_nobody_takes_is_dropped_and_counted() {
        let dropped = Counter::default();
        let desk = Desk::new(5, 3, dropped.clone());
        let tracers = [
            desk.tracer(Sampler::of_itself(1.0)),
            desk.tracer(Sampler::of_itself(1.0)),
        ];
        let line = Line::new(Timestamp::UNIX_EPOCH, Outcome::Ok);
        let recorded = Recorded {
            call: Context {
                trace: [1; 16],
                span: [1; 8],
                flags: 1,
            },
            parent: None,
            exchange: Some(([2; 8], std::time::Duration::ZERO)),
        };
        for tracer in tracers.iter().cycle().take(4) {
            tracer.record(&line, &recorded);
        }
        assert_eq!(dropped.get(), 4);
        let taken: Vec<_> = desk.take().into_iter().map(|(_, count)| count).collect();
        assert_eq!(taken, [2, 2]);
        assert!(desk.take().is_empty());
        // There is room again, also for a worker that is gone meanwhile.
        let [first, second] = tracers;
        first.record(&line, &recorded);
        drop(first);
        assert_eq!(desk.take().len(), 1);
        second.record(&line, &recorded);
        assert_eq!(desk.take().len(), 1);
        assert_eq!(desk.sheets.lock().len(), 1);
        assert_eq!(dropped.get(), 4);
    }
}
