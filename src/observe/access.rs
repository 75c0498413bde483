//! Decides when access-log lines reach the disk: never on a worker's time.
//!
//! Each worker appends to a buffer of its own through its [`Pen`]. One writer thread swaps the
//! buffers out about every 100 ms, earlier when one fills, and writes them in large pieces. When the
//! disk or the reader of stdout stalls, buffers fill to 1 MiB each and further lines are dropped and
//! counted: losing a line is better than stopping a gateway. Lines of one worker stay in order;
//! those of two may be written up to 100 ms out of order.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;

use super::clock::Rfc3339;
use super::combined;
use super::line::Line;
use super::sample::is_sampled;
use crate::protocol::Outcome;

mod manner;
mod switch;

use manner::{ALL, Sink, open};
pub use manner::{Destination, Manner, Spelling};
pub use switch::{Prepared, Switch};

/// The most bytes a worker may have waiting.
const FULL: usize = 1 << 20;

/// From here on the writer is woken.
const WAKE: usize = 1 << 18;

/// How long lines wait when there are few.
const EVERY: Duration = Duration::from_millis(100);

/// A pipe that takes nothing is tried again this often, so many times.
const STALL: Duration = Duration::from_millis(5);
const STALLS: u32 = 200;

/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(2);

/// The access log of this process. Dropping it writes what waits (for 2 s at most) and closes it.
#[derive(Debug)]
pub struct AccessLog {
    desk: Arc<Desk>,
}

/// A worker's way to write lines. Clones share one buffer: make one per worker.
#[derive(Clone, Debug)]
pub struct Pen {
    desk: Arc<Desk>,
    sheet: Arc<Mutex<Sheet>>,
}

/// What the workers and the writer share.
#[derive(Debug)]
struct Desk {
    on: AtomicBool,
    is_combined: AtomicBool,
    ok_millionths: AtomicU32,
    /// Where the lines go now.
    to: Mutex<Destination>,
    sheets: Mutex<Vec<Arc<Mutex<Sheet>>>>,
    orders: Mutex<Orders>,
    ordered: Condvar,
    obeyed: Condvar,
    dropped: Counter,
}

/// Lines of one worker that wait for the writer.
#[derive(Debug, Default)]
struct Sheet {
    bytes: Vec<u8>,
    spelled: Rfc3339,
}

/// What the writer is to do next.
#[derive(Default)]
struct Orders {
    redirect: Option<Sink>,
    asked: u64,
    done: u64,
    close: bool,
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Orders")
            .field("asked", &self.asked)
            .field("done", &self.done)
            .field("close", &self.close)
            .finish_non_exhaustive()
    }
}

impl AccessLog {
    /// Opens the destination and starts the writer. Lost lines are counted in `dropped`.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or no thread started.
    pub fn start(manner: &Manner, dropped: Counter) -> io::Result<Self> {
        let log = Self::with(open(&manner.to)?, dropped)?;
        log.desk.set(manner);
        Ok(log)
    }

    fn with(sink: Sink, dropped: Counter) -> io::Result<Self> {
        let desk = Arc::new(Desk::new(sink.is_some(), dropped));
        let writer = Writer::new(sink, desk.dropped.clone());
        let theirs = desk.clone();
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || theirs.serve(writer))?;
        Ok(Self { desk })
    }

    /// A pen with a buffer of its own.
    #[must_use]
    pub fn pen(&self) -> Pen {
        let sheet = Arc::<Mutex<Sheet>>::default();
        self.desk.sheets.lock().push(sheet.clone());
        Pen {
            desk: self.desk.clone(),
            sheet,
        }
    }

    /// What changes it while it is written.
    #[must_use]
    pub fn switch(&self) -> Switch {
        Switch::of(Arc::clone(&self.desk))
    }

    /// Writes everything that waits. Blocks, so never call it on a worker. Whether it was done
    /// within the time.
    pub fn flush(&self, within: Duration) -> bool {
        let mine = self.desk.order(|_| ());
        self.desk.wait(mine, within)
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let mine = self.desk.order(|orders| orders.close = true);
        // A writer that hangs in a stalled pipe must not keep the process from ending.
        self.desk.wait(mine, CLOSING);
    }
}

impl Pen {
    /// One that writes nowhere.
    #[must_use]
    pub fn nowhere() -> Self {
        Self {
            desk: Arc::new(Desk::new(false, Counter::default())),
            sheet: Arc::default(),
        }
    }

    /// Appends a line to the worker's buffer. Never waits for I/O.
    pub fn write(&self, line: &Line<'_>) {
        if !self.desk.on.load(Ordering::Relaxed) {
            return;
        }
        let share = self.desk.ok_millionths.load(Ordering::Relaxed);
        if share >= ALL || line.outcome != Outcome::Ok {
            self.append(line);
        } else if is_sampled(line.request_id.unwrap_or_default(), share) {
            self.append(&Line {
                sampled: Some(share),
                ..*line
            });
        }
    }

    fn append(&self, line: &Line<'_>) {
        let is_combined = self.desk.is_combined.load(Ordering::Relaxed);
        let mut sheet = self.sheet.lock();
        let Sheet { bytes, spelled } = &mut *sheet;
        let before = bytes.len();
        if before < FULL {
            if is_combined {
                combined::append(line, bytes, spelled);
            } else {
                line.append(bytes, spelled);
            }
        }
        let after = bytes.len();
        if before >= FULL || after > FULL {
            bytes.truncate(before);
            self.desk.dropped.inc();
            return;
        }
        drop(sheet);
        if before < WAKE && after >= WAKE {
            self.desk.ordered.notify_one();
        }
    }
}

impl Desk {
    fn new(is_on: bool, dropped: Counter) -> Self {
        Self {
            on: AtomicBool::new(is_on),
            is_combined: AtomicBool::new(false),
            ok_millionths: AtomicU32::new(ALL),
            to: Mutex::new(Destination::Off),
            sheets: Mutex::default(),
            orders: Mutex::default(),
            ordered: Condvar::new(),
            obeyed: Condvar::new(),
            dropped,
        }
    }

    /// How lines are written from now on.
    fn set(&self, manner: &Manner) {
        let is_combined = manner.spelling == Spelling::Combined;
        self.is_combined.store(is_combined, Ordering::Relaxed);
        self.ok_millionths
            .store(manner.ok_millionths, Ordering::Relaxed);
        *self.to.lock() = manner.to.clone();
    }

    /// Tells the writer something. The number under which it will be done.
    fn order(&self, tell: impl FnOnce(&mut Orders)) -> u64 {
        let mut orders = self.orders.lock();
        tell(&mut orders);
        orders.asked += 1;
        let mine = orders.asked;
        drop(orders);
        self.ordered.notify_one();
        mine
    }

    fn wait(&self, mine: u64, within: Duration) -> bool {
        let mut orders = self.orders.lock();
        let waited = self
            .obeyed
            .wait_while_for(&mut orders, |orders| orders.done < mine, within);
        !waited.timed_out()
    }

    /// The writer thread's whole life.
    fn serve(&self, mut writer: Writer) {
        loop {
            let (asked, redirect, close) = {
                let mut orders = self.orders.lock();
                if orders.asked == orders.done {
                    self.ordered.wait_for(&mut orders, EVERY);
                }
                (orders.asked, orders.redirect.take(), orders.close)
            };
            if close {
                self.on.store(false, Ordering::Relaxed);
            }
            self.collect(&mut writer);
            if let Some(sink) = redirect {
                writer.turn_to(sink);
                self.collect(&mut writer);
            }
            self.orders.lock().done = asked;
            self.obeyed.notify_all();
            if close {
                return;
            }
        }
    }

    /// Writes what waits. Without a sink it goes on waiting: one may be on its way.
    fn collect(&self, writer: &mut Writer) {
        if writer.sink.is_some() {
            for sheet in self.all_sheets() {
                writer.take(&sheet);
            }
        }
    }

    /// The buffers of the pens that still exist, and those that left something behind.
    fn all_sheets(&self) -> Vec<Arc<Mutex<Sheet>>> {
        let mut sheets = self.sheets.lock();
        sheets.retain(|sheet| Arc::strong_count(sheet) > 1 || !sheet.lock().bytes.is_empty());
        sheets.clone()
    }
}

/// The writer thread's side.
struct Writer {
    sink: Sink,
    spare: Vec<u8>,
    /// The last thing written was half a line.
    torn: bool,
    /// The trouble was reported and has not ended.
    failing: bool,
    dropped: Counter,
}

impl Writer {
    fn new(sink: Sink, dropped: Counter) -> Self {
        Self {
            sink,
            spare: Vec::new(),
            torn: false,
            failing: false,
            dropped,
        }
    }

    fn turn_to(&mut self, sink: Sink) {
        self.sink = sink;
        self.torn = false;
        self.failing = false;
    }

    /// Swaps a worker's buffer for an empty one and writes it.
    fn take(&mut self, sheet: &Mutex<Sheet>) {
        std::mem::swap(&mut self.spare, &mut sheet.lock().bytes);
        if self.spare.is_empty() {
            return;
        }
        match self.write() {
            Ok(()) => self.failing = false,
            Err((left, error)) => {
                let rest = self.spare.get(left..).unwrap_or_default();
                self.dropped
                    .inc_by(memchr::memchr_iter(b'\n', rest).count() as u64);
                // Without a byte written, what came before is as torn or as whole as it was.
                if let Some(last) = left.checked_sub(1) {
                    self.torn = self.spare.get(last) != Some(&b'\n');
                }
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::error!(%error, "the access log cannot be written; lines are lost");
                }
            }
        }
        self.spare.clear();
    }

    /// Writes the spare buffer. On error: from where on it was not written.
    fn write(&mut self) -> Result<(), (usize, io::Error)> {
        let Some(sink) = &mut self.sink else {
            return Ok(());
        };
        if self.torn {
            put(sink, b"\n").map_err(|(_, error)| (0, error))?;
            self.torn = false;
        }
        put(sink, &self.spare)?;
        sink.flush().map_err(|error| (self.spare.len(), error))
    }
}

fn put(sink: &mut dyn Write, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut done = 0;
    let mut stalls = 0;
    while let Some(rest @ [_, ..]) = bytes.get(done..) {
        match sink.write(rest) {
            Ok(0) => return Err((done, io::ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Somebody made our stdout non-blocking; nothing tells this thread when it drains.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && stalls < STALLS => {
                stalls += 1;
                thread::park_timeout(STALL);
            }
            Err(error) => return Err((done, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
