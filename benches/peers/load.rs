//! The load generator: keeps so many calls going, or sends so many a second, and checks every
//! answer. One thread that polls instead of sleeping. Must never tell of a run without telling what
//! went wrong in it.

use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};

use super::payload::{Request, call};
use super::stub::nanoseconds;
use super::wire::{Answer, Wire};
use super::{Failure, certificate};

/// What to send.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) to: SocketAddr,
    pub(crate) connections: usize,
    pub(crate) until: Until,
    /// Calls a second over all connections; `None`: as fast as answers come.
    pub(crate) rate: Option<f64>,
    /// How many keys take turns.
    pub(crate) callers: u64,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of the request body.
    pub(crate) body: usize,
    pub(crate) status: u16,
    /// Bytes of the answer's body, where they are known.
    pub(crate) answer: Option<usize>,
    /// The certificate (DER) to trust; `None`: clear text.
    pub(crate) tls: Option<PathBuf>,
    /// A new connection for each call.
    pub(crate) fresh: bool,
    /// Answers are streams of events, and their delay is what is told.
    pub(crate) events: bool,
}

/// When to stop.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Until {
    /// After so many seconds.
    Seconds(f64),
    /// After so many answers.
    Answers(u64),
    /// Every connection has one answer; then they stay open until standard input ends.
    Idle,
}

/// What came of it.
#[derive(Default, Clone, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Answers that are what they must be.
    pub(crate) answers: u64,
    pub(crate) events: u64,
    /// Answers that are not, and connections that broke.
    pub(crate) bad: u64,
    /// The first of them.
    pub(crate) first: Option<String>,
    pub(crate) seconds: f64,
    /// Microseconds, of calls or events.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

struct Lane {
    wire: Wire,
    answer: Answer,
    /// Since when an answer is due.
    since: Option<Instant>,
    /// A line of an event that came in pieces.
    line: Vec<u8>,
}

struct Load {
    job: Job,
    tls: Option<Arc<ClientConfig>>,
    request: Request,
    poll: Poll,
    lanes: Vec<Lane>,
    /// Lanes without a call.
    idle: Vec<usize>,
    begun: Instant,
    end: Option<Instant>,
    /// When the next call of a fixed rate is due.
    next: Instant,
    sent: u64,
    delays: Vec<u32>,
    told: Told,
}

/// The first part of an events run is not told: streams begin.
const SETTLING: Duration = Duration::from_millis(500);

/// No run takes so long.
const PATIENCE: Duration = Duration::from_secs(180);

/// Does the job and tells of it on standard output.
pub(crate) fn run(job: Job) -> Result<(), Failure> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    let tls = match &job.tls {
        Some(file) => Some(Arc::new(certificate::trusting(file)?)),
        None => None,
    };
    let begun = Instant::now();
    let mut load = Load {
        tls,
        request: Request::new(&job.path, &job.headers, &call(job.body)),
        poll: Poll::new()?,
        lanes: Vec::new(),
        idle: Vec::new(),
        begun,
        end: match job.until {
            Until::Seconds(seconds) => Some(begun + Duration::from_secs_f64(seconds)),
            Until::Answers(_) | Until::Idle => None,
        },
        next: begun,
        sent: 0,
        delays: Vec::with_capacity(1 << 20),
        told: Told::default(),
        job,
    };
    load.go()?;
    println!("{}", serde_json::to_string(&load.told)?);
    Ok(())
}

impl Load {
    fn go(&mut self) -> Result<(), Failure> {
        for lane in 0..self.job.connections {
            self.open(lane)?;
        }
        if matches!(self.job.until, Until::Idle) {
            // All are there before the first call is made: the hardest burst that can come.
            for lane in 0..self.job.connections {
                self.send(lane, Instant::now())?;
            }
        }
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 256 * 1024];
        while !self.over() {
            if self.begun.elapsed() > PATIENCE {
                let answers = self.told.answers;
                return Err(format!("still {answers} answers after {PATIENCE:?}").into());
            }
            self.on_schedule();
            self.poll.poll(&mut events, Some(Duration::ZERO))?;
            if events.is_empty() {
                std::thread::yield_now();
            }
            for event in &events {
                let lane = event.token().0;
                let went = self.ready(lane, event, &mut buffer);
                if let Err(error) = went {
                    self.broken(lane, &error)?;
                }
            }
        }
        self.told.seconds = self.begun.elapsed().as_secs_f64();
        if matches!(self.job.until, Until::Idle) {
            println!("{}", serde_json::to_string(&self.told)?);
            io::stdin().lock().read_line(&mut String::new())?;
            self.count_closed(&mut events, &mut buffer)?;
        }
        self.delays.sort_unstable();
        self.told.p50 = self.quantile(50);
        self.told.p99 = self.quantile(99);
        Ok(())
    }

    fn over(&self) -> bool {
        let sated = match self.job.until {
            Until::Seconds(_) if self.job.events => self.told.answers + self.told.bad,
            Until::Seconds(_) => return self.end.is_some_and(|end| Instant::now() >= end),
            Until::Answers(count) => return self.told.answers + self.told.bad >= count,
            Until::Idle => self.told.answers + self.told.bad,
        };
        sated >= self.job.connections as u64
    }

    fn open(&mut self, place: usize) -> Result<(), Failure> {
        let mut wire = Wire::connect(self.job.to, self.tls.as_ref())?;
        self.poll.registry().register(
            &mut wire.stream,
            Token(place),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        let lane = Lane {
            wire,
            answer: Answer::default(),
            since: None,
            line: Vec::new(),
        };
        match self.lanes.get_mut(place) {
            Some(slot) => *slot = lane,
            None => self.lanes.push(lane),
        }
        if self.job.rate.is_some() {
            self.idle.push(place);
        } else if !matches!(self.job.until, Until::Idle) {
            self.send(place, Instant::now())?;
        }
        Ok(())
    }

    fn send(&mut self, place: usize, since: Instant) -> io::Result<()> {
        if let Until::Answers(count) = self.job.until
            && self.sent >= count
        {
            return Ok(());
        }
        if self.job.callers > 1 {
            self.request.of_caller(self.sent % self.job.callers);
        }
        self.sent += 1;
        let lane = &mut self.lanes[place];
        lane.since = Some(since);
        lane.wire.send(&self.request.bytes)
    }

    /// Sends what a fixed rate demands by now.
    fn on_schedule(&mut self) {
        let Some(rate) = self.job.rate else {
            return;
        };
        while self.next <= Instant::now()
            && let Some(place) = self.idle.pop()
        {
            let due = self.next;
            self.next += Duration::from_secs_f64(1.0 / rate);
            if let Err(error) = self.send(place, due) {
                self.complain(&error);
            }
        }
    }

    fn ready(
        &mut self,
        place: usize,
        event: &mio::event::Event,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        if event.is_writable() {
            self.lanes[place].wire.flush()?;
        }
        while event.is_readable() {
            let Some(count) = self.lanes[place].wire.receive(buffer)? else {
                return Ok(());
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.take(place, &buffer[..count])? {
                self.answered(place)?;
            }
            if count < buffer.len() && self.tls.is_none() && !event.is_read_closed() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take(&mut self, place: usize, data: &[u8]) -> io::Result<bool> {
        let Lane { answer, line, .. } = &mut self.lanes[place];
        if !self.job.events {
            return answer.take(data, |_| {});
        }
        let told = self.begun.elapsed() > SETTLING;
        let (delays, events) = (&mut self.delays, &mut self.told.events);
        answer.take(data, |body| {
            for piece in body.split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                if !piece.ends_with(b"\n") {
                    continue;
                }
                if let Some(at) = line.strip_prefix(b"data: {\"at\":") {
                    let digits = at.iter().take_while(|byte| byte.is_ascii_digit());
                    let at = digits.fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0'));
                    *events += 1;
                    if told {
                        let delay = nanoseconds().saturating_sub(at);
                        delays.push(u32::try_from(delay).unwrap_or(u32::MAX));
                    }
                }
                line.clear();
            }
        })
    }

    /// An answer is whole: is it the right one, and what comes next on this connection?
    fn answered(&mut self, place: usize) -> io::Result<()> {
        let lane = &mut self.lanes[place];
        let (status, length, close) = (lane.answer.status, lane.answer.length, lane.answer.close);
        let since = lane.since.take();
        let right = status == self.job.status
            && self.job.answer.is_none_or(|it| it == length)
            && since.is_some();
        if right {
            self.told.answers += 1;
        } else {
            self.complain(&io::Error::other(format!(
                "status {status} and {length} bytes"
            )));
        }
        if let Some(since) = since
            && !self.job.events
        {
            let delay = since.elapsed().as_nanos();
            self.delays.push(u32::try_from(delay).unwrap_or(u32::MAX));
        }
        if self.job.events {
            return Ok(());
        }
        if matches!(self.job.until, Until::Idle) {
            if close {
                return Err(io::Error::other("closed after the answer"));
            }
            return Ok(());
        }
        if self.job.fresh || close {
            return self
                .open(place)
                .map_err(|it| io::Error::other(it.to_string()));
        }
        if self.job.rate.is_some() {
            self.idle.push(place);
            return Ok(());
        }
        self.send(place, Instant::now())
    }

    fn complain(&mut self, error: &io::Error) {
        self.told.bad += 1;
        self.told.first.get_or_insert_with(|| error.to_string());
    }

    /// A connection broke: that is told, and the run goes on a little, to tell how often.
    fn broken(&mut self, place: usize, error: &io::Error) -> Result<(), Failure> {
        self.complain(error);
        if self.told.bad > 100 || self.job.events || matches!(self.job.until, Until::Idle) {
            let first = self.told.first.clone().unwrap_or_default();
            return Err(format!(
                "{} of {} answers were bad: {first}",
                self.told.bad,
                self.told.bad + self.told.answers
            )
            .into());
        }
        self.open(place)
    }

    /// Idle connections that did not stay.
    fn count_closed(&mut self, events: &mut Events, buffer: &mut [u8]) -> Result<(), Failure> {
        loop {
            self.poll.poll(events, Some(Duration::ZERO))?;
            if events.is_empty() {
                return Ok(());
            }
            for event in &*events {
                if event.is_read_closed()
                    || matches!(
                        self.lanes[event.token().0].wire.receive(buffer),
                        Ok(Some(0))
                    )
                {
                    self.complain(&io::Error::other("an idle connection was closed"));
                }
            }
        }
    }

    fn quantile(&self, percent: usize) -> f64 {
        let last = self.delays.len().saturating_sub(1);
        let delay = self.delays.get(last * percent / 100).copied();
        f64::from(delay.unwrap_or(0)) / 1000.0
    }
}
